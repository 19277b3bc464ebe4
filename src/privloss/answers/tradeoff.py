"""f-DP: the trade-off curve, from the same K.

With delta(eps) the larger of both directions, (eps, delta(eps))-DP for all eps >= 0 is the same as f-DP with

    f(a) = sup over eps >= 0 of max{ 0, 1 - delta(eps) - e^eps a, e^-eps (1 - delta(eps) - a) }   (Dong, Roth, Su 2022).

Every eps gives a lower bound on f. Both branches are concave, in e^eps and in e^-eps, so three neighbouring points
around the best one also bound the supremum from above.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from privloss.answers import exact
from privloss.losses.composition import WorstNeighbours
from privloss.mechanisms.base import Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics import check
from privloss.numerics.bound import Bound, exactly
from privloss.numerics.floats import next_down, next_up, raised

METHOD = "trade-off from the exact privacy profile"
_GOLDEN = 0.5 * (math.sqrt(5) - 1)
_NARROW = (1e-13, 1e-11, 1e-9)
_SAME = 1e-12  # rates that differ by less are not worth telling apart

Branch = Callable[[float], tuple[float, float]]


def total_variation(plan: Plan, *, adjacency: str | None = None) -> Bound:
    """delta(0)."""
    return exact.one_delta(plan, 0.0, adjacency=adjacency)


def tradeoff(plan: Plan, fpr: Any, *, adjacency: str | None = None) -> Bound:
    """The least false negative rate at false positive rate `fpr`."""
    rate = check.number("fpr", fpr, low=0, high=1)
    worst = worst_neighbours(plan, adjacency)
    if rate == 1:
        return exactly(0.0, METHOD)
    if rate == 0 and worst.curve.empty:
        low, high = (worst.loss.reversed() if worst.loss.parts else worst.loss).delta_inf_bounds
        mine = worst.loss.delta_inf_bounds
        attained = max(low, mine[0])
        if worst.attained:
            attained = max(d.delta_inf_bounds[0] for loss in worst.attained for d in (loss, loss.reversed()))
        lost = max(high, mine[1])
        return Bound(next_down(1 - lost) if lost > 0 else 1.0, min(next_up(1 - attained), 1.0), METHOD)
    seen: dict[float, Bound] = {}

    def delta(eps: float) -> Bound:
        if eps not in seen:
            seen[eps] = exact.one_delta(plan, eps, adjacency=adjacency)
        return seen[eps]

    def steep(x: float) -> tuple[float, float]:  # x = e^eps >= 1
        d = delta(math.log(x))
        return _outward(1 - d.upper - x * rate, 1 - d.lower - x * rate)

    def flat(y: float) -> tuple[float, float]:  # y = e^-eps <= 1
        d = delta(-math.log(y))
        return _outward(y * (1 - d.upper - rate), y * (1 - d.lower - rate))

    limit = raised(-math.log(rate), 4) if rate > 0 else math.inf  # beyond, 1 - e^eps a < 0
    end = _end(worst)
    found = [
        _at_the_end(branch, end, room, sign) or _supremum(branch, delta, rate, min(room, end), sign)
        for branch, room, sign in ((steep, limit, +1), (flat, 700.0, -1))
    ]
    return Bound(max(0.0, *(f[0] for f in found)), min(max(0.0, *(f[1] for f in found)), 1.0), METHOD)


def _outward(low: float, high: float) -> tuple[float, float]:
    return low - 4e-16, high + 4e-16


def _end(worst: WorstNeighbours) -> float:
    """At least the largest loss of both directions: from there on delta(eps) stays, and both branches fall."""
    if not worst.curve.empty or not worst.loss.parts:
        return math.inf
    return raised(max(worst.loss.largest, worst.loss.reversed().largest, 0.0), 16)


def _at_the_end(branch: Branch, end: float, room: float, sign: int) -> tuple[float, float] | None:
    """(lower, upper) for the supremum of a concave branch that rises until it falls from eps = end on, as it does at a
    largest loss with mass; None if it does not.

    If f(x) >= f(x - h), f rises up to x - h, and between x - h and x it stays below the chord through x - 2h and x - h.
    """
    if not 0 < end < room:
        return None
    x = math.exp(sign * end)
    low, high = branch(x)
    for width in _NARROW:
        one, two = (branch(x - sign * k * width * x) for k in (1, 2))
        if low >= one[1]:
            return low, max(high, one[1] + max(one[1] - two[0], 0.0))
    return None


def _cells_upper(delta: Callable[[float], Bound], rate: float, limit: float, sign: int) -> float:
    """A coarse upper bound on a branch: on [a, b] delta(eps) >= delta(b), the other factors are worst at a. What lies
    beyond the last edge is one more cell, without end where there is no limit."""
    edges = [0.0, *(min(limit, 700.0) * (k / 48) ** 2 for k in range(1, 49))]
    best = 0.0
    for a, b in itertools.pairwise(edges):
        kept = 1 - delta(b).lower
        value = kept - math.exp(a) * rate if sign > 0 else math.exp(-a) * (kept - rate)
        best = max(best, value)
    last = edges[-1]
    if sign < 0:
        beyond = math.exp(-last)
    elif limit > last:  # rates below e^-700
        beyond = 1 - (delta(limit).lower if limit < math.inf else 0.0) - math.exp(last) * rate
    else:
        beyond = 0.0
    return max(best, beyond) + 1e-15


def _supremum(
    branch: Branch, delta: Callable[[float], Bound], rate: float, limit: float, sign: int
) -> tuple[float, float]:
    """(lower, upper) for the supremum of a concave branch over the points e^(sign eps), 0 <= eps <= limit."""

    def middle(eps: float) -> float:
        return branch(math.exp(sign * eps))[0]

    at_edge = branch(1.0)
    if branch(1.0 + sign * 1e-3)[1] <= at_edge[0]:  # concave, and falling from the edge on
        return at_edge[0], _concave_upper(branch, 1.0, sign)
    a, b = 0.0, min(limit, 700.0)
    best_eps, best = 0.0, middle(0.0)
    c, d = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    fc, fd = middle(c), middle(d)
    for _ in range(80):
        if fc >= fd:
            b, d, fd = d, c, fc
            c = b - _GOLDEN * (b - a)
            fc = middle(c)
        else:
            a, c, fc = c, d, fd
            d = a + _GOLDEN * (b - a)
            fd = middle(d)
        for eps, value in ((c, fc), (d, fd)):
            if value > best:
                best_eps, best = eps, value
        # at a smooth top the values then agree to all digits; at a kink they do not, and the search goes on
        if b - a < (1e-7 if abs(fc - fd) < _SAME else 1e-14) * (1e-3 + a):
            break
    upper = _concave_upper(branch, math.exp(sign * best_eps), sign)
    return best, upper if upper < 1.0 else _cells_upper(delta, rate, limit, sign)


def _concave_upper(branch: Branch, x: float, sign: int) -> float:
    """Upper bound on the supremum of a concave f from values around its best point x; f lives on x >= 1 (sign +1) or
    0 < x <= 1 (sign -1).

    If f(x) surely exceeds f(x - h) and f(x + h), the supremum lies between. On [x, x+h] a concave function stays below
    the chord through x - h and x extended, so below f(x) + (f(x) - f(x-h)); likewise on the other side. At the end of
    the domain the chord through x + h and x + 2h (inwards) is extended instead.
    """
    low, high = branch(x)
    for width in (*_NARROW, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3):
        h = width * x
        inner = branch(x + sign * h)  # away from the edge at 1
        has_outer = sign * (x - sign * h - 1) >= 0
        outer = branch(x - sign * h) if has_outer else None
        if inner[1] > low or (outer is not None and outer[1] > low):
            continue
        if outer is not None:
            return high + max(high - outer[0], high - inner[0], 0.0)
        # between x and x + h: the chord through x + h and x + 2h, extended; between the edge and x, less than h away,
        # the chord through x and x + h
        second = branch(x + 2 * sign * h)
        inward = inner[1] + max(inner[1] - second[0], 0.0)
        return max(high, inward) if x == 1.0 else max(high + max(high - inner[0], 0.0), inward)
    return 1.0
