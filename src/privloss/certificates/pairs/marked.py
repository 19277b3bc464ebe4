"""Sampled Gaussian noise whose outcomes are marked by soft windows: transforms of the marked parts, with proven errors
(docs/certificates.md, section 10).

Outcomes y are standard normal under Q, and r(y) = 1 - q + q e^(sy - s^2/2). Window i lets an outcome through with
probability V_i(y) = Phi((b_i - y)/tau_i). A *part* is the measure of all outcomes that pass windows high, high + 1, ...
and, if `low` is given, do not pass window `low`; w(y) is the probability of that. Forward its transform is the integral
of phi r^(z+1) w, backward that of phi r^-z w.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from flint import acb, arb, ctx

from privloss.certificates.balls import MOST_NODES, Rejected, Use, around, given, need, tail, turning_sums, whole
from privloss.certificates.pairs.base import Pair

MOST_WINDOWS = 24
_BITS = 64  # of bounds, which need few digits
_CELLS = 160
_FURTHER, _GROWTH = 160, 1.06  # cells beyond the last node, each wider than the one before
_MULTIPLES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Side:
    """Forward: r^(c+1), Z = log r. Backward: r^-c, Z = -log r."""

    backward: bool
    c: arb

    @property
    def power(self) -> arb:
        return -self.c if self.backward else self.c + 1


class Marked:
    """One kind of step and its windows."""

    def __init__(self, pair: Pair, use: Use) -> None:
        triples = list(pair.triples)
        hit = len(triples) == 2 and all(b == 0 for *_, b in triples) and triples[0][1] == 0
        need(hit and triples[1][1] > 0, "split: needs (1-q) N(0) + q N(s) against N(0)")
        (self.missed, _, _), (self.rate, self.shift, _) = triples
        self.centres, self.widths = _doubles(use, "centres"), _doubles(use, "widths")
        need(0 < len(self.centres) == len(self.widths) <= MOST_WINDOWS, "split: centres and widths do not match")
        need(all(a < b for a, b in itertools.pairwise(self.centres)), "split: the windows are out of order")
        need(all(width > 0 for width in self.widths), "split: a window has no width")

    def hit(self, y: arb) -> arb:
        """q e^(sy - s^2/2)."""
        return self.rate * (self.shift * (y - self.shift / 2)).exp()


class Part:
    """One part on the nodes from + k h, 0 <= k < nodes, and what these miss."""

    def __init__(self, marked: Marked, high: int, low: int | None, use: Use) -> None:
        self.marked, self.low, self.use = marked, low, use
        self.above = list(range(high, len(marked.centres)))
        self.windows = [*self.above, *([] if low is None else [low])]
        self.h, self.v = given(use, "h", high=1.0), given(use, "v")
        self.first, self.count = given(use, "from", -1e9, 1e9), whole(use, "nodes", MOST_NODES)
        need(bool(marked.shift * self.v < arb.pi() / 2), "split: the strip reaches the zeros of the density")

    # -- sums over the nodes --

    @cached_property
    def _nodes(self) -> tuple[list[arb], list[arb]]:
        """log r, and phi h w."""
        marked, root = self.marked, self.h / (2 * arb.pi()).sqrt()
        logs, weights = list[arb](), list[arb]()
        for k in range(self.count):
            y = self.first + k * self.h
            weight = root * (-y * y / 2).exp()
            for i in self.above:
                weight *= _normal((marked.centres[i] - y) / marked.widths[i])
            if self.low is not None:
                weight *= _normal((y - marked.centres[self.low]) / marked.widths[self.low])
            logs.append((marked.missed + marked.hit(y)).log())
            weights.append(weight)
        return logs, weights

    def line(self, side: Side, step: arb, count: int) -> list[acb]:
        """The transform at c + i n step, n = 0..count."""
        logs, weights = self._nodes
        power, turn = side.power, -step if side.backward else step
        tilted = [w * (power * x).exp() for w, x in zip(weights, logs, strict=True)]
        values = turning_sums(tilted, [turn * x for x in logs], count)
        error = self._error(side, step * count)
        return [around(value, error) for value in values]

    def _error(self, side: Side, t: arb) -> arb:
        """At most the distance of sum and integral, up to the height t."""
        with ctx.workprec(_BITS):
            cells = self._cells(side, t)
            strip = cells.carried(side, t, self.v)
            return 2 * strip / ((2 * arb.pi() * self.v / self.h).exp() - 1) + cells.left_out(side, self.h)

    def _cells(self, side: Side, t: arb) -> Cells:
        """Cells over all nodes, and on to where the bounds fall for good, also those that grow with the height t."""
        with ctx.workprec(_BITS):
            end = self.first + self.count * self.h
            if self._known is None:
                width = (end - self.first) / _CELLS
                self._known = Cells(self, [self.first + k * width for k in range(_CELLS)] + [end])
            cells, width = self._known, (end - self.first) / _CELLS
            for _ in range(_FURTHER):
                if cells.falls(side, t, self.v) > 1:
                    return cells
                width = width * _GROWTH
                cells.extend((cells.edges[-1] + width.max(self.h)).mid())
            raise Rejected("split: the tilt is too large for the windows")

    _known: Cells | None = None

    # -- beyond a height --

    def fallen(self, side: Side, t: arb, start: arb) -> arb:
        """At least the transform's modulus at c + iu for every u >= t; `start` is its value at c."""
        with ctx.workprec(_BITS):
            found = start.upper()
            if "bend" in self.use:
                bend = given(self.use, "bend")
                need(bool(self.marked.shift * bend < arb.pi() / 2), "split: the bend reaches the zeros of the density")
                found = found.min(self._cells(side, arb(0)).carried(side, -t, bend))
        return found if self.low is not None else found.min(self._spread(side, t, start))

    def _spread(self, side: Side, t: arb, start: arb) -> arb:
        """The same from the density of Z: boxes under it, and multiples of the height."""
        layers, best = self._cells(side, arb(0)).layers(side), start
        for k in _MULTIPLES:
            deficit = arb(0)
            for height, width in layers:
                if width * (k * t) > 2:
                    deficit += height * (width - 2 / (k * t))
            deficit = deficit.lower()
            if 0 < deficit < start:
                square = start * start - deficit * (2 * start - deficit) / (k * k)
                best = best.min(square.sqrt()) if square > 0 else best
        return best


class Cells:
    """Bounds on |phi r^z w| off the real axis, cell by cell; every factor at the worse end of its cell."""

    def __init__(self, part: Part, edges: list[arb]) -> None:
        self.part, self.edges = part, list[arb]()
        self.last = len(edges) - 1  # beyond it there are no nodes
        self.hits, self.logs = list[arb](), list[arb]()
        self.away = list[list[arb]]()  # (y - b)/tau
        self.down, self.up = list[list[arb]](), list[list[arb]]()  # Phi((b - y)/tau), and what is left to 1
        for y in edges:
            self.extend(y)

    def extend(self, y: arb) -> None:
        marked = self.part.marked
        self.edges.append(y)
        self.hits.append(marked.hit(y))
        self.logs.append((marked.missed + self.hits[-1]).log())
        away = [(y - marked.centres[i]) / marked.widths[i] for i in self.part.windows]
        self.away.append(away)
        self.down.append([tail(x) for x in away])
        self.up.append([tail(-x) for x in away])

    def falls(self, side: Side, turn: arb, v: arb) -> arb:
        """The rate at which the bound beyond the last edge falls at least; log r rises by s at most, arg r by
        s tan(sv/2)/2."""
        marked, y = self.part.marked, self.edges[-1]
        rise = turn.max(arb(0)) * (marked.shift * v / 2).tan() / 2 + (arb(0) if side.backward else side.power)
        rate = y - marked.shift * rise
        for i in self.part.above:
            rate += ((y - marked.centres[i]) / marked.widths[i]).max(arb(0)) / marked.widths[i]
        return rate if y > 0 else arb(0)

    def carried(self, side: Side, turn: arb, v: arb) -> arb:
        """At least the integral of |phi r^z w| over Im y = v, times e^(turn arg r)."""
        inside, (left, right) = self._sizes(side, turn, v)
        total = left * tail(-self.edges[0]) + right / self.falls(side, turn, v)
        for size, a, b in zip(inside, self.edges, self.edges[1:], strict=False):
            total += size * (b - a)
        return total

    def left_out(self, side: Side, h: arb) -> arb:
        """At least h times the sum over all places from + k h that carry no node."""
        inside, (left, right) = self._sizes(side, arb(0), arb(0))
        first = self.edges[0]
        total = left * (tail(-first) + h * _phi(first, first.min(arb(0)))) + right * (1 / self.falls(side, arb(0), arb(0)) + h)
        for k in range(self.last, len(inside)):
            total += inside[k] * (self.edges[k + 1] - self.edges[k] + h)
        return total

    def _sizes(self, side: Side, turn: arb, v: arb) -> tuple[list[arb], tuple[arb, arb]]:
        """The largest |phi r^z w| e^(turn arg r) on every cell; to the left of all cells without phi; at the last edge."""
        part, marked = self.part, self.part.marked
        theta, power, rise = marked.shift * v, side.power, (v * v / 2).exp()
        sine, cosine, one = theta.sin(), theta.cos(), arb(1)
        growth = [((v / marked.widths[i]) ** 2 / 2).exp() for i in part.windows]
        if side.backward:  # |r(y + iv)| rises with y, from 1 - q on
            squares = [(marked.missed + a * cosine) ** 2 + (a * sine) ** 2 for a in self.hits]
            moduli = [(x.log() * power / 2).exp() for x in squares]
        else:  # |r(y + iv)| <= r(y)
            moduli = [(x * power).exp() for x in self.logs]
        turns = [(turn * (a * sine / (marked.missed + a * cosine)).atan()).exp() for a in self.hits]
        inside = list[arb]()
        for k in range(self.last):
            size = self._passed(growth, self.down[k], self.up[k + 1]) * rise * moduli[k if side.backward else k + 1]
            size *= turns[k + 1 if turn > 0 else k] * _phi(self.edges[k], self.edges[k + 1])
            inside.append(size)
        for k in range(self.last, len(self.edges) - 1):  # from the left end on, as fast as it can rise in between
            past = [i for n, i in enumerate(part.windows) if i != part.low and self.away[k][n] > 0]
            size = self._passed(growth, self.down[k], self.up[k + 1], past) * rise * moduli[k] * turns[k]
            size *= _phi(self.edges[k], self.edges[k + 1])
            size *= (self._slope(side, turn, k, theta) * (self.edges[k + 1] - self.edges[k])).exp().max(one)
            inside.append(size)
        none = [one] * len(part.windows)
        left = self._passed(growth, none, self.up[0]) * rise * (turns[0] if turn > 0 else 1)
        left *= (marked.missed.log() * power).exp() if side.backward else moduli[0]
        right = self._passed(growth, self.down[-1], none, self.part.above) * rise * moduli[-1]
        right *= _phi(self.edges[-1], self.edges[-1]) * turns[-1]
        return inside, (left, right)

    def _slope(self, side: Side, turn: arb, k: int, theta: arb) -> arb:
        """At least the derivative of the log of that bound on cell k, without phi: that of log r is s p, which rises,
        that of arg r at most s tan(theta/2)/2 or s sin(theta) q e^../(1-q), and Phi(-x) falls faster than e^(-x^2/2)."""
        marked, hit = self.part.marked, self.hits[k + 1]
        rise = turn.max(arb(0)) * ((theta / 2).tan() / 2).min(hit / marked.missed * theta.sin())
        rise += arb(0) if side.backward else side.power * hit / (marked.missed + hit)
        rise *= marked.shift
        for x, i in zip(self.away[k], self.part.windows, strict=True):
            if i != self.part.low and x > 0:
                rise -= x / marked.widths[i]
        return rise

    def _passed(self, growth: list[arb], down: list[arb], up: list[arb], plain: Sequence[int] = ()) -> arb:
        """At least |w|: |Phi(x + iy)| <= e^(y^2/2) Phi(x), and <= 1 + e^(y^2/2) Phi(-x). For `plain` windows the first."""
        found = arb(1)
        for k, i in enumerate(self.part.windows):
            through, held = growth[k] * down[k], growth[k] * up[k]
            if i == self.part.low:
                through, held = held, through
            found *= through if i in plain else through.min(1 + held)
        return found

    def layers(self, side: Side) -> list[tuple[arb, arb]]:
        """Boxes (height, width) that lie on top of one another below the density phi r^z w / Z' of Z."""
        part, marked = self.part, self.part.marked
        lows = list[arb]()
        for k in range(self.last):
            a, b = self.edges[k], self.edges[k + 1]
            far = (-(a * a).max(b * b) / 2).exp() / (2 * arb.pi()).sqrt()
            power = side.power + 1
            ratio = (power * self.logs[k]).exp().min((power * self.logs[k + 1]).exp())
            size = far * ratio / (marked.shift * self.hits[k + 1])
            for x in self.down[k + 1]:
                size *= x
            lows.append(size.lower())
        left = right = max(range(self.last), key=lambda k: float(lows[k]))
        found, level = list[tuple[arb, arb]](), lows[left]
        while True:  # widen to the side that costs less height
            before = lows[left - 1] if left else arb(0)
            after = lows[right + 1] if right + 1 < self.last else arb(0)
            following = level.min(before.max(after))
            width = self.logs[right + 1] - self.logs[left]
            found.append(((level - following).lower().max(arb(0)), width))
            level = following
            if not level > 0:
                return found
            if left and before >= after:
                left -= 1
            else:
                right += 1


def _phi(a: arb, b: arb) -> arb:
    """At least the largest normal density between a and b."""
    near = (a * a).min(b * b) if a > 0 or b < 0 else arb(0)
    return (-near / 2).exp() / (2 * arb.pi()).sqrt()


def _normal(x: arb) -> arb:
    """Phi(x); within a rounding of 1 where it is."""
    if x > 0 and x * x / 2 > int(ctx.prec) * arb(0.7):
        return arb(1, (-x * x / 2).exp().abs_upper())
    return tail(-x)


def _doubles(use: Use, name: str) -> list[arb]:
    values = use.get(name)
    if not isinstance(values, list) or len(values) > MOST_WINDOWS:
        raise Rejected(f"parameter {name} must be a list of at most {MOST_WINDOWS} numbers")
    return [given({name: value}, name, -1e9, 1e9) for value in values]
