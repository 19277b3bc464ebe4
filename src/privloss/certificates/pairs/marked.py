"""Sampled Gaussian noise whose outcomes are marked by soft windows: transforms of the marked parts, with proven errors
(docs/certificates.md, section 15).

Outcomes y are standard normal under Q, and r(y) = 1 - q + q e^(sy - s^2/2). Window i lets an outcome through with
probability V_i(y) = Phi((b_i - y)/tau_i) up to its end e_i = b_i + E tau_i, and with probability 0 beyond. A *part* is
the measure of all outcomes that pass windows high, high + 1, ... and, if `low` is given, do not pass window `low`; w(y)
is the probability of that. Forward its transform is the integral of phi r^(z+1) w, backward that of phi r^-z w.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

from flint import acb, arb, ctx

from privloss.certificates.balls import MOST_NODES, Rejected, Use, around, given, need, tail, turning_sums, whole
from privloss.certificates.budget import charge
from privloss.certificates.pairs.base import Pair

MOST_WINDOWS = 24
_BITS = 64  # of bounds, which need few digits
_CELLS = 160
_MULTIPLES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Side:
    """Forward: r^(c+1), Z = log r. Backward: r^-c, Z = -log r. c >= 0."""

    backward: bool
    c: arb

    @property
    def power(self) -> arb:
        return -self.c if self.backward else self.c + 1


class Marked:
    """One kind of step and its windows; beyond `top` outcomes are bounded only. If it is `reversed`, P is N(0, 1)."""

    def __init__(self, pair: Pair, use: Use) -> None:
        shape = "split: needs (1-q) N(0) + q N(s) against N(0), or the reverse"
        need(len(pair.triples) == 2, shape)
        (self.missed, *others), (self.rate, above, below) = pair.triples
        self.reversed, self.shift = bool(above == 0), above - below  # the reverse comes mirrored
        need(all(x == 0 for x in others) and bool(above == 0) != bool(below == 0) and bool(self.shift > 0), shape)
        self.centres, self.widths = _doubles(use, "centres"), _doubles(use, "widths")
        self.reach, top = given(use, "reach", high=100.0), given(use, "top", -1e9, 1e9)
        need(0 < len(self.centres) == len(self.widths), "split: centres and widths do not match")
        need(all(width > 0 for width in self.widths), "split: a window has no width")
        self.ends = [b + self.reach * width for b, width in zip(self.centres, self.widths, strict=True)] + [top]
        rising = all(a < b for ys in (self.centres, self.ends) for a, b in itertools.pairwise(ys))
        need(rising and bool(top > self.shift), "split: the windows are out of order")

    def hit(self, y: arb) -> arb:
        """q e^(sy - s^2/2)."""
        return self.rate * (self.shift * (y - self.shift / 2)).exp()

    def beyond(self, side: Side) -> arb:
        """At least the integral of phi r^power beyond the top, where r >= 1."""
        need(side.backward or side.c == 0, "split: the last class has no larger tilts")
        top = self.ends[-1]
        return tail(top) if side.backward else self.missed * tail(top) + self.rate * tail(top - self.shift)


class Part:
    """One part on the nodes e - (k + 1/2) h, 0 <= k < nodes, e its end, and what these miss."""

    def __init__(self, marked: Marked, high: int, low: int | None, use: Use) -> None:
        self.marked, self.low, self.use = marked, low, use
        self.above = list(range(high, len(marked.centres)))
        self.windows = [*self.above, *([] if low is None else [low])]
        self.h, self.v = given(use, "h", high=1.0), given(use, "v")
        self.end, self.count = marked.ends[high], whole(use, "nodes", MOST_NODES)
        need(bool(marked.shift * self.v < arb.pi() / 2), "split: the strip reaches the zeros of the density")

    # -- sums over the nodes --

    @cached_property
    def _nodes(self) -> tuple[list[arb], list[arb]]:
        """log r, and phi h w."""
        marked, root = self.marked, self.h / (2 * arb.pi()).sqrt()
        logs, weights = list[arb](), list[arb]()
        charge(self.count * (4 + 6 * len(self.windows)))
        for k in range(self.count):
            y = self.end - (2 * k + 1) * self.h / 2
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
        charge(3 * len(logs) + 2 * count)
        tilted = [w * (power * x).exp() for w, x in zip(weights, logs, strict=True)]
        values = turning_sums(tilted, [turn * x for x in logs], count)
        with ctx.workprec(_BITS):
            error = self._cells.missed(side, step * count, self.v, self.h)
            error += self._astray(side, values[0].real + error)
        return [around(value, error) for value in values]

    @cached_property
    def _cells(self) -> Cells:
        with ctx.workprec(_BITS):
            return Cells(self)

    def _astray(self, side: Side, start: arb) -> arb:
        """What the analytic integrand up to the end lacks: beyond the end of window `low` nothing passes it, and 1 -
        Phi((b - y)/tau) is that up to Phi(-E); the last class goes on beyond its end."""
        jump = arb(0) if self.low is None else 2 * tail(self.marked.reach) * start.upper()
        return jump if self.above else jump + self.marked.beyond(side)

    # -- beyond a height --

    def fallen(self, side: Side, t: arb, start: arb) -> arb:
        """At least the transform's modulus at c + iu for every u >= t; `start` is its value at c."""
        with ctx.workprec(_BITS):
            found = start.upper()
            if "bend" in self.use:
                bend = given(self.use, "bend")
                need(bool(self.marked.shift * bend < arb.pi() / 2), "split: the bend reaches the zeros of the density")
                found = found.min(self._cells.fallen(side, t, bend) + self._astray(side, start))
        return found if self.low is not None else found.min(self._spread(side, t, start))

    def _spread(self, side: Side, t: arb, start: arb) -> arb:
        """The same from the density of Z: boxes under it, and multiples of the height."""
        with ctx.workprec(_BITS):
            layers, best = self._cells.layers(side), start
            charge(len(_MULTIPLES) * len(layers))
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

    def __init__(self, part: Part) -> None:
        self.part, marked = part, part.marked
        width = part.count * part.h / _CELLS
        self.edges = [part.end - k * width for k in range(_CELLS, -1, -1)]
        self.hits = [marked.hit(y) for y in self.edges]
        self.logs = [(marked.missed + hit).log() for hit in self.hits]
        charge(_CELLS * (4 + 12 * len(part.windows)))
        self.down, self.up = list[list[arb]](), list[list[arb]]()  # Phi((b - y)/tau), and what is left to 1
        for y in self.edges:
            away = [(y - marked.centres[i]) / marked.widths[i] for i in part.windows]
            self.down.append([tail(x) for x in away])
            self.up.append([tail(-x) for x in away])

    def missed(self, side: Side, t: arb, v: arb, h: arb) -> arb:
        """At least the distance of sum and integral up to the end, at heights up to t."""
        strip = 2 * self._carried(side, t, v) / ((2 * arb.pi() * v / h).exp() - 1)
        left = self._left(side, arb(0), arb(0))
        first = self.edges[0]
        return strip + self._side(side, t, v, h) + left * (tail(-first) + h * _phi(first, first.min(arb(0))))

    def fallen(self, side: Side, t: arb, v: arb) -> arb:
        """At least the modulus of the integral at all heights from t on: over Im y = v, and down to the end."""
        growth, last = self._growth(v), self.edges[-1]
        down = _phi(last, last) * self._passed(growth, self.down[-1], self.up[-1]) * self._modulus(side, v, -1)
        return self._carried(side, -t, v) + v * (v * v / 2).exp() * down

    def _growth(self, v: arb) -> list[arb]:
        return [((v / self.part.marked.widths[i]) ** 2 / 2).exp() for i in self.part.windows]

    def _modulus(self, side: Side, v: arb, k: int) -> arb:
        """At least |r|^power at edge k, up to Im y = v: |r(y + iv)| falls in v."""
        if not side.backward:
            return (self.logs[k] * side.power).exp()
        marked, theta, hit = self.part.marked, self.part.marked.shift * v, self.hits[k]
        square = (marked.missed + hit * theta.cos()) ** 2 + (hit * theta.sin()) ** 2
        return (square.log() * side.power / 2).exp()

    def _turn(self, turn: arb, v: arb, k: int) -> arb:
        """e^(turn arg r) at edge k, on Im y = v."""
        marked, theta, hit = self.part.marked, self.part.marked.shift * v, self.hits[k]
        return (turn * (hit * theta.sin() / (marked.missed + hit * theta.cos())).atan()).exp()

    def _carried(self, side: Side, turn: arb, v: arb) -> arb:
        """At least the integral of |phi r^z w| e^(turn arg r) over Im y = v, up to the end; |r| and arg r rise."""
        charge(_CELLS * (12 + 2 * len(self.part.windows)))
        growth, total = self._growth(v), arb(0)
        moduli = [self._modulus(side, v, k) for k in range(len(self.edges))]
        turns = [self._turn(turn, v, k) for k in range(len(self.edges))]
        for k, (a, b) in enumerate(itertools.pairwise(self.edges)):
            size = self._passed(growth, self.down[k], self.up[k + 1]) * moduli[k if side.backward else k + 1]
            total += size * turns[k + 1 if turn > 0 else k] * _phi(a, b) * (b - a)
        return (total + self._left(side, turn, v) * tail(-self.edges[0])) * (v * v / 2).exp()

    def _left(self, side: Side, turn: arb, v: arb) -> arb:
        """At least |r^z w| e^(turn arg r) to the left of all cells, where |r| >= 1 - q and arg r >= 0."""
        size = self._passed(self._growth(v), [arb(1)] * len(self.part.windows), self.up[0])
        size *= (self.part.marked.missed.log() * side.power).exp() if side.backward else self._modulus(side, v, 0)
        return size * self._turn(turn, v, 0) if turn > 0 else size

    def _side(self, side: Side, t: arb, v: arb, h: arb) -> arb:
        """At least twice the integral of |phi r^z w| e^(t arg r) / (1 + e^(2 pi u/h)) over e + iu, 0 < u < v: every
        exponent is at most linear in u, as quadratic ones are below their chord."""
        marked, last = self.part.marked, self.edges[-1]
        size = _phi(last, last) * self._modulus(side, v, -1)
        slope = v / 2 + t * marked.shift * (self.hits[-1] / marked.missed).min(arb(1))
        for i, growth, down, up in zip(self.part.windows, self._growth(v), self.down[-1], self.up[-1], strict=True):
            through, held = (up, down) if i == self.part.low else (down, up)
            if growth * held < 0.1:
                size *= 1 + growth * held
            else:
                size, slope = size * through, slope + v / (2 * marked.widths[i] ** 2)
        rise = (slope - 2 * arb.pi() / h) * v
        return 2 * size * v * rise.exp().max(arb(1))

    def _passed(self, growth: list[arb], down: list[arb], up: list[arb]) -> arb:
        """At least |w|: |Phi(x + iy)| <= e^(y^2/2) Phi(x), and <= 1 + e^(y^2/2) Phi(-x)."""
        found = arb(1)
        for i, g, through, held in zip(self.part.windows, growth, down, up, strict=True):
            if i == self.part.low:
                through, held = held, through
            found *= (g * through).min(1 + g * held)
        return found

    def layers(self, side: Side) -> list[tuple[arb, arb]]:
        """Boxes (height, width) that lie on top of one another below the density phi r^power w / |Z'| of Z."""
        marked, power, root = self.part.marked, side.power + 1, (2 * arb.pi()).sqrt()
        charge(_CELLS * (10 + len(self.part.windows)))
        lows = list[arb]()
        for k, (a, b) in enumerate(itertools.pairwise(self.edges)):
            far = (-(a * a).max(b * b) / 2).exp() / root
            ratio = (power * self.logs[k]).exp().min((power * self.logs[k + 1]).exp())
            size = far * ratio / (marked.shift * self.hits[k + 1])
            for x in self.down[k + 1]:
                size *= x
            lows.append(size.lower().max(arb(0)))
        left = right = max(range(_CELLS), key=lambda k: float(lows[k]))
        found, level = list[tuple[arb, arb]](), lows[left]
        while True:  # widen to the side that costs less height
            before = lows[left - 1] if left else arb(0)
            after = lows[right + 1] if right + 1 < _CELLS else arb(0)
            following = level.min(before.max(after))
            found.append(((level - following).lower().max(arb(0)), self.logs[right + 1] - self.logs[left]))
            level = following
            if not level > 0:
                return found
            if before >= after:
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
