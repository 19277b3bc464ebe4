"""f-DP: the trade-off curve, from the same K.

With d(u) the larger of both directions' delta(log u), (eps, delta(eps))-DP for all eps >= 0 is the same as f-DP with

    f(a) = sup over u >= 1 of max{ 0, 1 - d(u) - u a, (1 - d(u) - a)/u }   (Dong, Roth, Su 2022).

d(u) = sup over neighbours and events S of P(S) - u Q(S) is convex in u, with slopes between -1 and 0. So one set of
points u_k with intervals [lo_k, hi_k] for d(u_k) serves every a:

- *Any tangent bounds f from below*: f(a) >= 1 - hi_k - u_k a and f(a) >= (1 - hi_k - a)/u_k.
- *Any chord bounds f from above*: beyond its ends a convex function lies above its chord, so between u_k and u_(k+1)

      d(u) >= lo_k + s (u - u_k),             s = (lo_k - hi_(k-1))/(u_k - u_(k-1)), or -1 at the edge,
      d(u) >= lo_(k+1) - r (u_(k+1) - u),     r = min(0, (hi_(k+2) - lo_(k+1))/(u_(k+2) - u_(k+1))).

  Left of any v in between use the first line, right of it the second. 1 - line - u a and (1 - line - a)/u are monotone
  in u, so they are largest at u_k, v or u_(k+1): the *vertices* (u_k, lo_k) and (v, the smaller line at v) bound f(a).
  Beyond the last point the second line is the mass of infinite loss.

Points are added where the two bounds differ most, all of a round in one call: about the peak of the parabola through
three neighbours, and at the vertex that rules the upper end.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from privloss.answers import exact
from privloss.errors import InvalidInput
from privloss.losses.composition import WorstNeighbours
from privloss.mechanisms.base import Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics import check
from privloss.numerics.bound import Bound, Bounds, exactly
from privloss.numerics.floats import UNIT, Real, next_down, next_up
from privloss.numerics.work import DEFAULT_WORK, limited, spent

METHOD = "trade-off from the exact privacy profile"
REACHED = f"the limit of work ({DEFAULT_WORK:.0e} evaluations) was reached"
DEFAULT_WIDTH = 1e-10
_ALONE = 1e-14  # of one point, unless told otherwise: the last digits cost little
_FIRST, _ROUNDS = 16, 14
_LEAST = 5  # points that every curve has
_SHARE = 1 / 128  # of the width wanted that an interval of d may have
_FARTHEST = 700.0  # epsilon
_CORNER = (0.0, 1e-7, 2e-7, 1e-4, 2e-4, 1e-2)  # how far before the largest loss d is asked
_CLOSEST = 1e-9  # points nearer to one another than this tell nothing new
_TOGETHER = 256  # rates compared with all points at once


def total_variation(plan: Plan, *, adjacency: str | None = None) -> Bound:
    """delta(0)."""
    return exact.one_delta(plan, 0.0, adjacency=adjacency)


def tradeoff(plan: Plan, fpr: Any, *, adjacency: str | None = None, tolerance: float = DEFAULT_WIDTH) -> Bound | Bounds:
    """The f-DP curve at a false positive rate, to a width of `tolerance`: no attack, whichever neighbour it takes for
    the null, has a smaller false negative rate. An array for an array."""
    check.number("tolerance", tolerance, low=1e-14, high=0.1)
    if isinstance(fpr, np.ndarray):
        fpr = fpr.tolist()
    if isinstance(fpr, (str, bytes)) or not isinstance(fpr, Iterable):
        return one_tradeoff(plan, fpr, adjacency=adjacency, tolerance=tolerance)
    rates = [check.number(f"fpr[{i}]", r, low=0, high=1) for i, r in enumerate(fpr)]
    if not rates:
        raise InvalidInput(f"fpr = {fpr!r}: must not be empty.")
    return Bounds(_all(plan, rates, adjacency, tolerance))


def one_tradeoff(plan: Plan, fpr: Any, *, adjacency: str | None = None, tolerance: float = DEFAULT_WIDTH) -> Bound:
    """`tradeoff` at one rate."""
    wanted = tolerance if tolerance != DEFAULT_WIDTH else _ALONE
    return _all(plan, [check.number("fpr", fpr, low=0, high=1)], adjacency, wanted)[0]


def _all(plan: Plan, rates: list[float], adjacency: str | None, wanted: float) -> list[Bound]:
    worst = worst_neighbours(plan, adjacency)
    easy = {1.0: exactly(0.0, METHOD)}
    if 0.0 in rates and worst.curve.empty:
        easy[0.0] = _at_zero(worst)
    rest = _revealed(worst)[0] if worst.curve.empty else 0.0
    hard = sorted({rate for rate in rates if rate not in easy})
    found: dict[float, Bound] = {}
    if hard:
        with limited(DEFAULT_WORK):
            bounds = _Profile(worst, rest, wanted).tradeoff(np.array(hard), wanted)
            notes = (REACHED,) if spent() else ()
        found = {rate: Bound(b.lower, b.upper, b.method, notes) for rate, b in zip(hard, bounds, strict=True)}
    return [easy[rate] if rate in easy else found[rate] for rate in rates]


def _at_zero(worst: WorstNeighbours) -> Bound:
    attained, lost = _revealed(worst)
    return Bound(next_down(1 - lost) if lost > 0 else 1.0, min(next_up(1 - attained), 1.0), METHOD)


def _revealed(worst: WorstNeighbours) -> tuple[float, float]:
    """An interval for the mass of infinite loss, below which no delta falls."""
    low, high = (worst.loss.reversed() if worst.loss.parts else worst.loss).delta_inf_bounds
    mine = worst.loss.delta_inf_bounds
    attained = max(low, mine[0])
    if worst.attained:
        attained = max(d.delta_inf_bounds[0] for loss in worst.attained for d in (loss, loss.reversed()))
    return attained, max(high, mine[1])


class _Profile:
    """Points of the privacy profile, asked as they are needed."""

    def __init__(self, worst: WorstNeighbours, rest: float, wanted: float) -> None:
        self.curve, self.rest = exact.DeltaCurve(worst, enough=_SHARE * wanted), rest
        known = worst.curve.empty and bool(worst.loss.parts)
        self.end = max(worst.loss.largest, worst.loss.reversed().largest) if known else math.inf
        self.seen: dict[float, tuple[float, float]] = {}

    def ask(self, wishes: Iterable[tuple[float, float]]) -> None:
        """delta at further epsilons, all in one call; each is left out if another is nearer than its distance, and all
        are where the limit of work is reached: the points so far say what can be said."""
        if spent() and len(self.seen) >= _LEAST:
            return
        known = sorted(self.seen)
        new: list[float] = []
        for wish, distance in sorted(wishes):
            eps = min(max(wish, 0.0), _FARTHEST)
            at = bisect.bisect_left(known, eps)
            others = [*known[max(at - 1, 0) : at + 1], *new[-1:]]  # both rise, and so do the wishes
            if all(abs(other - eps) > max(distance, _CLOSEST * (1e-3 + eps)) for other in others):
                new.append(eps)
        if new:
            self.seen |= {eps: (d.lower, d.upper) for eps, d in zip(new, self.curve.read(new), strict=True)}

    def points(self) -> tuple[Real, Real, Real]:
        """eps, and lower and upper ends of delta."""
        eps = np.array(sorted(self.seen))
        low, high = np.array([self.seen[e] for e in eps]).T
        # d falls: what is proven on one side holds on the other
        return eps, np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)

    def tradeoff(self, rates: Real, wanted: float) -> list[Bound]:
        least = float(rates[rates > 0].min()) if np.any(rates > 0) else 0.0
        last = min(math.log(1 / least), _FARTHEST) if least > 0 else _FARTHEST  # beyond, 1 - u a < 0
        for some in (range(2), range(2, 5), range(5, _FIRST + 1)):  # small ones first: often all that has any weight
            self.ask((last * (k / _FIRST) ** 2, 0.0) for k in some)
        if 0 < self.end < _FARTHEST:  # at a largest loss with mass d has a corner
            self.ask((self.end * (1 - short), 0.0) for short in _CORNER)
        lower = upper = np.zeros_like(rates)
        for turn in range(_ROUNDS + 1):
            eps, low, high = self.points()
            at, floor = vertices(np.exp(eps), np.maximum(low, self.rest), high, self.rest)
            tangent, lower = _largest(np.exp(eps), high, rates)
            vertex, upper = _largest(at, floor, rates)
            lower, upper = np.maximum(lower - 8 * UNIT, 0.0), np.minimum(np.maximum(upper + 8 * UNIT, 0.0), 1.0)
            blur = np.max((high - low)[np.clip(tangent[:, None] + np.arange(-1, 2), 0, len(eps) - 1)], axis=1)
            wide = np.flatnonzero(upper - lower > np.maximum(wanted, 4 * blur))
            if turn == _ROUNDS or not len(wide):
                break
            before, places = len(self.seen), np.log(at[vertex])
            wishes: list[tuple[float, float]] = []
            for i in wide:
                near = _nearer(eps, high, int(tangent[i]), float(rates[i]), wanted)
                wishes += near if turn < 2 and near else [*near, (float(places[i]), 0.0)]
            self.ask(wishes)
            if len(self.seen) == before:
                break
        return [Bound(float(a), float(b), METHOD) for a, b in zip(lower, upper, strict=True)]


def vertices(u: Real, low: Real, high: Real, rest: float = 0.0) -> tuple[Real, Real]:
    """Places and lower bounds on d that rule the upper end, from points u[0] = 1 < u[1] < ... of d >= rest."""
    width = np.diff(u)
    fall = (low[1:] - high[:-1]) / width  # no more than the slope of a chord
    rise = np.minimum((high[1:] - low[:-1]) / width, 0.0)  # no less
    left = np.append(-1.0, fall)  # of the line that goes right from each point
    right = np.append(rise[1:], 0.0)  # of the line that goes left from each point but the first
    left = np.clip(left, -1.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        meet = (low[1:] - low[:-1] + left[:-1] * u[:-1] - right * u[1:]) / (left[:-1] - right)
        last = u[-1] - (low[-1] - rest) / left[-1] if left[-1] < 0 else u[-1]
    meet = np.where(np.isfinite(meet), np.clip(meet, u[:-1], u[1:]), u[:-1])
    first_line, second_line = low[:-1] + left[:-1] * (meet - u[:-1]), low[1:] - right * (u[1:] - meet)
    # slopes carry the rounding of a difference over the distance of its points
    before, after = np.append(1.0, width)[:-1], np.append(width[1:], 1.0)
    size = (meet - u[:-1]) / before * (low[:-1] + np.append(0.0, high[:-2])) + low[:-1]
    size += (u[1:] - meet) / after * (low[1:] + np.append(high[2:], 0.0)) + low[1:]
    floor = np.maximum(np.minimum(first_line, second_line) - 16 * UNIT * size, low[1:])  # d falls
    beyond = max(u[-1], min(last, 1e300))
    return np.concatenate([u, meet, [beyond]]), np.maximum(np.concatenate([low, floor, [rest]]), 0.0)


def _largest(u: Real, d: Real, rates: Real) -> tuple[Any, Real]:
    """For each rate a the largest of 1 - d - u a and (1 - d - a)/u, and where."""
    where, values = [], []
    for some in np.array_split(rates, -(-len(rates) // _TOGETHER)):
        rate = some[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            both = np.maximum(1 - d - u * rate, (1 - d - rate) / u)
        where.append(np.argmax(both, axis=1))
        values.append(both[np.arange(len(some)), where[-1]])
    return np.concatenate(where), np.concatenate(values)


def _nearer(eps: Real, high: Real, k: int, rate: float, wanted: float) -> list[tuple[float, float]]:
    """Where to look next for one rate, and what distance from other points is near enough: on both sides of the peak
    of the parabola through the best point and its neighbours, as close as its error allows."""
    i = min(max(k, 1), len(eps) - 2)
    x = eps[i - 1 : i + 2]
    u = np.exp(x)
    d = high[i - 1 : i + 2]
    steep, flat = 1 - d - u * rate, (1 - d - rate) / u
    y = steep if steep.max() >= flat.max() else flat
    slopes = np.diff(y) / np.diff(x)
    bend = (slopes[1] - slopes[0]) / (x[2] - x[0])
    peak = float(0.5 * (x[0] + x[1]) - 0.5 * slopes[0] / bend) if bend < 0 else -1.0
    if not x[0] <= peak <= x[2]:
        return []
    wide, close = float(max(x[1] - x[0], x[2] - x[1])), 0.7 * math.sqrt(wanted / max(-2 * bend, 1e-6))
    step = max(0.2 * wide * min(wide, 1.0), close)
    return [(peak - step, 0.8 * close), (peak + step, 0.8 * close)]
