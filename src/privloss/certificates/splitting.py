"""Choosing windows, lines and quadratures of a split by the largest loss, in floating point: any choice is sound.

The windows are those of the floating-point engine. Tilts, periods, heights of cuts and steps of quadratures are found
with rough views of the checker's own bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from privloss.certificates.balls import MOST_NODES, Rejected, Use
from privloss.certificates.pairs.base import Steps, Triple
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.mixture.windows import at_losses
from privloss.numerics.contour.transform import log_kappa
from privloss.numerics.floats import Real

_ANGLES = np.array([0.03, 0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.45, 0.6, 0.8, 1.0, 1.25, 1.5])[:, None]
_TILTS = np.geomspace(0.1, 150.0, 44)  # of c eps
_REACH = 18.0  # widths from a window's centre to its end
_CELLS = 160
_POINTS = 700  # of a grid over outcomes
_GOAL = 30.0  # nats by which every error stays below delta
_LAST = 24.0  # the same for the last class, which has no line, if there is no other way
_FEW = 8.0  # nats of what is only bounded
_ROOM = 4.0  # nats to spare
_AROUND = 40.0  # nats that ways off the real axis may weigh more
_MULTIPLES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024.0])
_HIGHER, _TRIES = 1.1, 80  # of a cut that is too low
_MOST_PRODUCTS = 60_000_000
_NEVER = 1e300
_MORE = 3  # windows


@dataclass(frozen=True)
class Ask:
    """The transform wanted at c, up to the height t, with an error of e^-nats of its value at c."""

    backward: bool
    c: float
    t: float
    nats: float

    @property
    def power(self) -> float:
        return -self.c if self.backward else self.c + 1

    def bent(self) -> Ask:
        """What a way off the real axis asks for."""
        return replace(self, t=0.0, nats=self.nats + _AROUND)


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of step in doubles, outcomes in units of the noise."""

    reversed: bool
    rate: float
    shift: float
    times: int
    centre: Real
    width: Real
    top: float

    @property
    def use(self) -> Use:
        return {"centres": self.centre.tolist(), "widths": self.width.tolist(), "reach": _REACH, "top": self.top}

    def parts(self, j: int) -> list[tuple[str, PartModel]]:
        own = PartModel(self, j, j - 1 if j else None)
        return [("below", PartModel(self, j - 1, None)), ("own", own)] if j else [("own", own)]


@dataclass(frozen=True, eq=False)
class PartModel:
    """A part of marked outcomes in doubles."""

    kind: Kind
    high: int
    low: int | None

    @property
    def end(self) -> float:
        kind = self.kind
        if self.high == len(kind.centre):
            return kind.top
        return float(kind.centre[self.high] + _REACH * kind.width[self.high])

    def log_ratio(self, y: Real) -> Real:
        rate, shift = self.kind.rate, self.kind.shift
        return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + shift * (y - shift / 2)))

    def log_plain(self, y: Real) -> Real:
        """log of phi w."""
        centre, width = self.kind.centre, self.kind.width
        total = -0.5 * y * y - 0.5 * math.log(2 * math.pi)
        for i in range(self.high, len(centre)):
            total = total + log_ndtr((centre[i] - y) / width[i])
        if self.low is not None:
            total = total + log_ndtr((y - centre[self.low]) / width[self.low])
        return np.asarray(total)

    @cached_property
    def grid(self) -> tuple[Real, Real, Real]:
        """Outcomes, log r and log of phi w there."""
        low = -16.0 if self.low is None else float(self.kind.centre[self.low] - 22 * self.kind.width[self.low])
        y = np.linspace(low, self.end, _POINTS)
        return y, self.log_ratio(y), self.log_plain(y)

    def log_totals(self, powers: Real) -> tuple[Real, Real]:
        """log of the transform at real points, and of the integrand at the end over it."""
        y, log_r, plain = self.grid
        logs = np.multiply.outer(powers, log_r) + plain
        top = logs.max(axis=1)
        total = top + np.log(np.exp(logs - top[:, None]).sum(axis=1)) + math.log(y[1] - y[0])
        return total, logs[:, -1] - total

    def span(self, ask: Ask) -> float:
        """Where the nodes must begin."""
        y, log_r, plain = self.grid
        logs = ask.power * log_r + plain
        least = float(logs.max()) - ask.nats - _ROOM
        first = int(np.argmax(logs > least))
        if self.low is not None:  # to the left of all nodes phi is bounded by 1
            passed = log_ndtr((y - self.kind.centre[self.low]) / self.kind.width[self.low])
            passed = passed + (math.log1p(-self.kind.rate) if ask.backward else log_r) * ask.power
            first = min(first, int(np.argmax(passed > least)))
        return float(y[max(first - 1, 0)])

    def use(self, asks: list[Ask], bend: float | None) -> Use:
        """Nodes that serve all that is asked; with a bend, the more so the first."""
        low = min(self.span(ask) for ask in asks)
        low = low if bend is None else min(low, self.span(asks[0].bent()))
        lift, cost = _ANGLES[:, 0] / self.kind.shift, np.full(len(_ANGLES), 1.0)
        for ask in asks:
            view = View(self, ask.backward, ask.c, low)
            cost = np.maximum(cost, view.carried(ask.t) - view.log_total + ask.nats + _ROOM)
            cost = np.maximum(cost, lift * view.slope(ask.t) + view.log_end - view.log_total + ask.nats + _ROOM)
        h = 2 * math.pi * lift / cost
        best = int(np.argmax(h))
        use: Use = {"h": min(float(h[best]), 0.5), "v": float(lift[best])}
        use["nodes"] = math.ceil((self.end - low) / use["h"]) + 1
        if bend is not None:
            use["bend"] = bend
        if use["nodes"] > MOST_NODES:
            raise Rejected("too many nodes")
        return use


class View:
    """Cells of a part at one tilt; arrays (angles, cells)."""

    def __init__(self, part: PartModel, backward: bool, c: float, low: float) -> None:
        self.part, kind = part, part.kind
        self.power = -c if backward else c + 1
        self.y = y = np.linspace(low, part.end, _CELLS + 1)
        step = float(y[1] - y[0])
        total, end = part.log_totals(np.array([self.power]))
        self.log_total, self.log_end = float(total[0]), float(total[0] + end[0])
        self.log_r = part.log_ratio(y)
        self.log_hit = math.log(kind.rate) + kind.shift * (y - kind.shift / 2)
        hit = np.exp(np.minimum(self.log_hit, 600.0))
        real, imag = 1 - kind.rate + hit * np.cos(_ANGLES), hit * np.sin(_ANGLES)
        self.lift = _ANGLES / kind.shift
        near = np.where(y[:-1] > 0, y[:-1], np.where(y[1:] < 0, y[1:], 0.0))
        size = 0.5 * self.lift**2 - 0.5 * near**2 - 0.5 * math.log(2 * math.pi) + math.log(step)
        size = size + self.power * (np.log(np.hypot(real, imag))[:, :-1] if backward else self.log_r[None, 1:])
        left = 0.5 * self.lift**2 + log_ndtr(low) + self.power * (math.log1p(-kind.rate) if backward else self.log_r[0])
        for i in [*range(part.high, len(kind.centre)), *([] if part.low is None else [part.low])]:
            growth = 0.5 * (self.lift / kind.width[i]) ** 2
            away = (y - kind.centre[i]) / kind.width[i]
            through, held = log_ndtr(-away)[:-1], log_ndtr(away)[1:]
            if i == part.low:
                through, held = held, through
            size = size + np.minimum(growth + through, np.logaddexp(0.0, growth + held))
            if i == part.low:
                left = left + growth + log_ndtr(away[0])
        self.log_size, self.arg, self.log_left = size, np.arctan2(imag, real), left[:, 0]

    def carried(self, turn: float) -> Real:
        """log of the integral over |..| e^(turn arg), for every angle."""
        arg = self.arg[:, 1:] if turn > 0 else self.arg[:, :-1]
        left = self.log_left + max(turn, 0.0) * self.arg[:, 0]
        return np.asarray(np.logaddexp(np.logaddexp.reduce(self.log_size + turn * arg, axis=1), left))

    def slope(self, t: float) -> Real:
        """How fast the integrand may grow upwards from the end, for every angle."""
        part, kind = self.part, self.part.kind
        found = 0.5 * self.lift + t * kind.shift * min(math.exp(min(self.log_hit[-1], 0.0)) / (1 - kind.rate), 1.0)
        for i in [*range(part.high, len(kind.centre)), *([] if part.low is None else [part.low])]:
            away = (part.end - kind.centre[i]) / kind.width[i] * (-1 if i == part.low else 1)
            closed = 0.5 * (self.lift / kind.width[i]) ** 2 + log_ndtr(away) > math.log(0.1)
            found = found + np.where(closed, 0.5 * self.lift / kind.width[i] ** 2, 0.0)
        return np.asarray(found[:, 0])

    @cached_property
    def layers(self) -> tuple[Real, Real]:
        """Boxes below the density of the loss: heights over the total, and widths."""
        kind, y, log_r, power = self.part.kind, self.y, self.log_r, self.power + 1
        if self.part.low is not None:
            return np.zeros(1), np.zeros(1)
        size = -0.5 * np.maximum(y[:-1] ** 2, y[1:] ** 2) - 0.5 * math.log(2 * math.pi) - self.log_hit[1:]
        size = size - math.log(kind.shift) + np.minimum(power * log_r[:-1], power * log_r[1:])
        for i in range(self.part.high, len(kind.centre)):
            size = size + log_ndtr((kind.centre[i] - y[1:]) / kind.width[i])
        lows = np.exp(size - self.log_total)
        peak = int(np.argmax(lows))
        lows[peak:] = np.minimum.accumulate(lows[peak:])
        lows[: peak + 1] = np.minimum.accumulate(lows[: peak + 1][::-1])[::-1]
        levels = np.sort(lows)[::-1]
        left = np.searchsorted(lows[: peak + 1], levels, side="left")
        right = peak + np.searchsorted(-lows[peak:], -levels, side="right")
        return levels - np.append(levels[1:], 0.0), log_r[right] - log_r[left]

    def fallen(self, t: float) -> tuple[float, float]:
        """log of the bound on all heights from t on, over the value at c; and the lift that shows it."""
        falls = self.carried(-t) - self.log_total
        best = int(np.argmin(falls))
        log, lift = min(float(falls[best]), 0.0), float(self.lift[best, 0])
        heights, widths = self.layers
        gaps = np.maximum(widths[None, :] - 2 / (_MULTIPLES[:, None] * t), 0.0)
        deficit = np.minimum(gaps @ heights, 1.0)
        gain = float((deficit * (2 - deficit) / _MULTIPLES**2).max())
        return min(log, 0.5 * math.log1p(-min(gain, 1 - 1e-15))), lift


class _TooLow(Rejected):
    """The last class falls below eps: more windows are needed."""


def split(steps: Steps, eps: float, log_delta: float) -> Use:
    """All parameters; `Rejected` where there are none."""
    for last, more in itertools.product((_GOAL, _LAST), range(_MORE)):
        try:
            return _split(_kinds(steps, eps, log_delta, more), eps, log_delta, last)
        except _TooLow:
            continue
    raise Rejected("no windows serve")


def _split(kinds: list[Kind], eps: float, log_delta: float, last: float) -> Use:
    """`last` is the goal of the last class."""
    use: Use = {"method": "split", "steps": {str(i): kind.use for i, kind in enumerate(kinds)}, "classes": []}
    products = 0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for j in range(len(kinds[0].centre) + 1):
            one = _Class(kinds, j, eps, log_delta)
            made = one.made(last if one.last else _GOAL)
            use["classes"].append(made)
            quads = [quad for parts in made["steps"].values() for quad in parts.values()]
            products += made.get("N", 1) * sum(quad["nodes"] for quad in quads)
            if products > _MOST_PRODUCTS:
                raise Rejected("too much work")
    return use


def _kinds(steps: Steps, eps: float, log_delta: float, more: int) -> list[Kind]:
    """Windows around the losses that the engine proposes, and some more above."""
    if not eps > 0 or not all(_is_hit(pair.triples) for pair, _ in steps):
        raise Rejected("not a sample of Gaussian noise")
    hits = [pair.triples[1] for pair, _ in steps]
    rates, shifts = np.array([float(q) for q, _, _ in hits]), np.array([float(a - b) for _, a, b in hits])
    counts = np.array([float(times) for _, times in steps])
    rare = GaussianMixtureLoss(rates, 1 / shifts, counts).rare_losses(None)
    if rare is None:
        raise Rejected("too many kinds of steps")
    side, found = rare.sides(eps, log_delta)[0], []
    levels = np.append(side.levels, side.levels[-1] * 2.0 ** np.arange(1, more + 1))
    for (_, times), rate, shift, step in zip(steps, rates, shifts, side.steps, strict=True):
        windows = at_losses(float(rate), 1 / float(shift), levels)
        centre, width = windows.centre * shift, windows.width * shift
        top = max(step.top * shift, float(centre[-1] + (_REACH + 1) * width[-1]), 2 * float(shift))
        found.append(Kind(bool(hits[0][1] == 0), float(rate), float(shift), times, centre, width, top))
    return found


def _is_hit(triples: Sequence[Triple]) -> bool:
    """(1-q) N(0) + q N(s) against N(0), or the reverse, mirrored."""
    if len(triples) != 2 or any(x != 0 for x in triples[0][1:]):
        return False
    _, above, below = triples[1]
    return bool(above == 0) != bool(below == 0)


@dataclass(frozen=True, eq=False)
class _Tilts:
    """One side of a class: log T_j at tilts, over delta."""

    backward: bool
    at: float  # eps, or -eps
    level: float  # log delta there
    c: Real  # 0 first
    sizes: Real  # log T_j(c) - c at - log delta
    bounds: Real  # with log kappa
    ends: Real  # the worst of integrands at the ends, over their integrals

    @cached_property
    def height(self) -> Real:
        """What must cancel on a line, in nats."""
        return np.asarray(np.maximum(self.sizes - np.log1p(self.c), 0.0))

    @cached_property
    def places(self) -> list[tuple[float, int, float, int, int]]:
        """(cost, line, period, left, right)."""
        found = []
        fine = np.nonzero(self.ends < -_FEW - 2 * _ROOM)[0]
        for i in fine:
            if i == 0 or self.ends[i] > -_GOAL - self.height[i] - 2 * _ROOM:
                continue
            left, right = fine[fine < i], fine[fine > i]
            if not len(right) or not len(left):
                continue
            need_left = np.maximum(self.bounds[left] + _GOAL, 0.5) / (self.c[i] - self.c[left])
            need_right = np.maximum(self.bounds[right] + _GOAL, 0.5) / (self.c[right] - self.c[i])
            period = max(float(need_left.min()), float(need_right.min()))
            cost = period * (1 + float(self.height[i]) / _GOAL) ** 2
            found.append((cost, int(i), period, int(left[np.argmin(need_left)]), int(right[np.argmin(need_right)])))
        return sorted(found)

    def negligible(self, goal: float) -> float | None:
        """The least tilt whose Chernoff bound is e^-goal of delta."""
        fine = (self.bounds < -goal) & (self.ends < -_FEW - 2 * _ROOM)
        return float(self.c[int(np.argmax(fine))]) if np.any(fine) else None


class _Class:
    """The parameters of one class."""

    def __init__(self, kinds: list[Kind], j: int, eps: float, log_delta: float) -> None:
        self.kinds, self.j, self.eps, self.log_delta = kinds, j, eps, log_delta
        self.parts = [kind.parts(j) for kind in kinds]
        self.last = j == len(kinds[0].centre)

    def made(self, goal: float) -> Use:
        ahead = self.tilts(False)
        c = ahead.negligible(goal)
        if c is not None:
            return {"read": "negligible", "c": c, **self.quads([Ask(ahead.backward, c, 0.0, _FEW)], None)}
        places = [(*place, ahead, False) for place in ahead.places[:1]]
        if self.j:
            other = self.tilts(True)
            c = other.negligible(goal)
            if c is not None:
                asks = [Ask(other.backward, c, 0.0, _FEW), *self.masses(ahead)]
                return {"read": "residues", "c": c, **self.quads(asks, None)}
            places += [(*place, other, True) for place in other.places[:1]]
        if self.last:
            raise _TooLow("the last class falls below eps")
        if not places:
            raise Rejected("no line for a class")
        _, i, period, left, right, side, turned = min(places, key=lambda place: place[0])
        asks = self.masses(ahead) if turned else []
        return {"read": "backward" if turned else "forward", **self.line(side, i, period, left, right, asks)}

    def tilts(self, turned: bool) -> _Tilts:
        """The class as it is, or reversed."""
        c = np.append(0.0, _TILTS / self.eps)
        backward = turned != self.kinds[0].reversed
        if self.last and not backward:
            c = c[:1]
        powers = -c if backward else c + 1
        base, rise, ends = np.zeros_like(c), np.zeros_like(c), np.full_like(c, -np.inf)
        for kind, parts in zip(self.kinds, self.parts, strict=True):
            logs, at_end = zip(*(part.log_totals(powers) for _, part in parts), strict=True)
            base = base + kind.times * logs[0]
            if self.j:
                rise = rise + kind.times * np.logaddexp(0.0, logs[1] - logs[0])
            ends = np.maximum(ends, at_end[0] + math.log(kind.times))
            ends = ends if self.last else np.maximum(ends, at_end[-1])
        total = base if not self.j else base + log_expm1(rise)
        at, level = (-self.eps, self.log_delta - self.eps) if turned else (self.eps, self.log_delta)
        sizes = total - c * at - level
        sizes = np.where(np.isnan(sizes), _NEVER, sizes)
        return _Tilts(backward, at, level, c, sizes, sizes + np.append(0.0, log_kappa(c[1:])), ends)

    def masses(self, ahead: _Tilts) -> list[Ask]:
        """Both residues."""
        nats = _GOAL + max(float(ahead.sizes[0]), 0.0)
        return [Ask(False, 0.0, 0.0, nats), Ask(True, 0.0, 0.0, nats)]

    def line(self, side: _Tilts, i: int, period: float, left: int, right: int, more: list[Ask]) -> Use:
        c, step, back = float(side.c[i]), 2 * math.pi / period, side.backward
        count, bends = self.cut(side, i, step)
        asks = [Ask(back, c, count * step, _GOAL + float(side.height[i]))]
        asks += [Ask(back, float(side.c[k]), 0.0, _FEW) for k in (left, right)]
        use: Use = {"c": c, "L": period, "N": count, "left": float(side.c[left]), "right": float(side.c[right])}
        return {**use, **self.quads(asks + more, bends)}

    def cut(self, side: _Tilts, i: int, step: float) -> tuple[int, list[list[float]]]:
        """How many nodes, and the lifts that show that nothing is missing beyond."""
        c = float(side.c[i])
        ask = Ask(side.backward, c, 0.0, _GOAL + float(side.height[i])).bent()
        views = [[View(part, side.backward, c, part.span(ask)) for _, part in parts] for parts in self.parts]
        t = 6.0 * step
        for _ in range(_TRIES):
            falls = [[view.fallen(t) for view in each] for each in views]
            base = rise = 0.0
            for kind, each, found in zip(self.kinds, views, falls, strict=True):
                logs = [view.log_total + fall for view, (fall, _) in zip(each, found, strict=True)]
                base += kind.times * logs[0]
                rise += kind.times * float(np.logaddexp(0.0, logs[1] - logs[0])) if self.j else 0.0
            total = base if not self.j else base + float(log_expm1(np.array(rise)))
            if total - c * side.at - side.level - math.log(math.pi * t) < -_GOAL:
                return math.ceil(t / step) + 1, [[lift for _, lift in found] for found in falls]
            t *= _HIGHER
        raise Rejected("the line does not fall")

    def quads(self, asks: list[Ask], bends: list[list[float]] | None) -> Use:
        steps = {}
        for i, (kind, parts) in enumerate(zip(self.kinds, self.parts, strict=True)):
            quads = {}
            for k, (name, part) in enumerate(parts):
                more = math.log(kind.times) if name == "below" or not self.j else 3.0
                wanted = [replace(ask, nats=ask.nats + more) for ask in asks]
                quads[name] = part.use(wanted, None if bends is None else bends[i][k])
            steps[str(i)] = quads
        return {"steps": steps}


def log_expm1(x: Real) -> Real:
    return np.asarray(np.where(x > 30.0, x, np.log(np.maximum(np.expm1(np.minimum(x, 30.0)), 1e-320))))
