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

from privloss.certificates.balls import Rejected, Use
from privloss.certificates.pairs.base import Steps, Triple
from privloss.certificates.views import REACH, ROOM, Ask, Kind, View
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.mixture.windows import at_losses
from privloss.numerics.contour.transform import log_kappa
from privloss.numerics.floats import Real

_TILTS = np.geomspace(0.1, 150.0, 44)  # of c eps
_GOAL = 30.0  # nats by which every error stays below delta
_LAST = 24.0  # the same for the last class, which has no line, if there is no other way
_FEW = 8.0  # nats of what is only bounded
_HIGHER, _TRIES = 1.1, 80  # of a cut that is too low
_MOST_PRODUCTS = 60_000_000
_NEVER = 1e300
_MORE = 3  # windows


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
    if not eps > 0 or not all(is_hit(pair.triples) for pair, _ in steps):
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
        top = max(step.top * shift, float(centre[-1] + (REACH + 1) * width[-1]), 2 * float(shift))
        found.append(Kind(bool(hits[0][1] == 0), float(rate), float(shift), times, centre, width, top))
    return found


def is_hit(triples: Sequence[Triple]) -> bool:
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
        fine = np.nonzero(self.ends < -_FEW - 2 * ROOM)[0]
        for i in fine:
            if i == 0 or self.ends[i] > -_GOAL - self.height[i] - 2 * ROOM:
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
        fine = (self.bounds < -goal) & (self.ends < -_FEW - 2 * ROOM)
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
