"""Bounds from K on the real axis alone: delta(eps) <= kappa(c) e^(K(c) - c eps) for every c > 0 (Prop. cdp2adp).

This is the way for boxes of which only Renyi divergences are known. Beside an exact part there are two valid routes,
and the better one is taken: (A) add the exact part's own K(c) to the curve and convert once; (B) convert the curve into
an (eps1, delta1) box and compose that exactly with the rest. The lower end is that of a Gaussian which satisfies the
curve, composed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privloss.losses.closed.atoms import AtomsLoss
from privloss.losses.composed import ComposedLoss
from privloss.losses.composition import WorstNeighbours
from privloss.losses.curve import RenyiCurve
from privloss.numerics.bound import Bound
from privloss.numerics.contour.transform import TooExpensive, log_kappa
from privloss.numerics.floats import Real, exp_up, lowered, raised

LogMgf = Callable[[Real], Real]
METHOD = "Renyi moments above, a Gaussian on the curve below"
_SPLITS = (0.5, 0.9, 0.1)


def _best(value: Callable[[Real], Real], points: Real | None) -> float:
    """The least value over the points given, or over all c > 0 (three rounds of a log grid: any c is valid)."""
    if points is not None:
        return float(np.min(value(points))) if len(points) else math.inf
    low, high, best = -12.0, 12.0, math.inf
    for _ in range(6):
        c = np.logspace(low, high, 49)
        values = np.where(np.isnan(v := value(c)), math.inf, v)
        i = int(np.argmin(values))
        best = min(best, float(values[i]))
        step = (high - low) / 48
        centre = low + i * step
        low, high = centre - 1.5 * step, centre + 1.5 * step
    return best


def epsilon_upper(log_mgf: LogMgf, points: Real | None, log_delta: float) -> float:
    """The least eps with kappa(c) e^(K(c) - c eps) <= delta for some c."""
    if math.isinf(log_delta):
        return math.inf

    def value(c: Real) -> Real:
        k = log_mgf(c)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(raised((k + log_kappa(c) - log_delta) / c, 16, (np.abs(k) + abs(log_delta) + 1) / c))

    return _best(value, points)


def log_delta_upper(log_mgf: LogMgf, points: Real | None, eps: float) -> float:
    """log of the least kappa(c) e^(K(c) - c eps)."""

    def value(c: Real) -> Real:
        k = log_mgf(c)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(raised(k + log_kappa(c) - c * eps, 16, np.abs(k) + c * eps + 1))

    return _best(value, points)


def _joined(loss: ComposedLoss, curve: RenyiCurve, flip: bool) -> LogMgf:
    """K of the exact part plus the curve; the exact part without the mass at infinity."""
    part = loss.reversed() if flip else loss

    def log_mgf(c: Real) -> Real:
        if not part.parts:
            return curve.log_mgf_upper(c)
        try:
            own = part.log_mgf_upper(c)
        except TooExpensive:
            own = part.log_mgf_simple_upper(c)
        return np.asarray(own + curve.log_mgf_upper(c))

    return log_mgf


def epsilon(worst: WorstNeighbours, delta: float, solve: Callable[[ComposedLoss], Bound]) -> Bound:
    """epsilon of a plan with curves; `solve` answers for losses with explicit pairs at this delta."""
    lower = solve(worst.stand_in).lower
    uppers = [_all_moments(worst, delta)]
    if worst.loss.parts:
        boxes = [_with_box(worst, split * delta) for split in _SPLITS if delta > 0]
        uppers += [solve(box).upper for box in boxes if box is not None]
    upper = min(uppers)
    return Bound(lower, upper, METHOD)


def _all_moments(worst: WorstNeighbours, delta: float) -> float:
    """Route A, the larger of both directions; each has its own mass of infinite loss."""
    found = [0.0]
    for flip in (False, True):
        left = lowered(delta - _infinite(worst.loss, flip), 4)
        if left <= 0:
            return math.inf
        found.append(epsilon_upper(_joined(worst.loss, worst.curve, flip), worst.curve.points, math.log(left)))
    return max(found)


def _infinite(loss: ComposedLoss, flip: bool) -> float:
    """An upper bound on the mass of infinite loss in one direction."""
    return (loss.reversed() if flip else loss).delta_inf_bounds[1] if loss.parts else 0.0


def _with_box(worst: WorstNeighbours, delta: float) -> ComposedLoss | None:
    """Route B: the curve as an (eps1, delta1) box beside the exact part; None if the curve gives no finite eps1."""
    eps = epsilon_upper(worst.curve.log_mgf_upper, worst.curve.points, math.log(delta)) if delta > 0 else math.inf
    if not eps < math.inf:
        return None
    return ComposedLoss.of([*worst.loss.parts, AtomsLoss.one(max(eps, 1e-300), 0.0, delta)])


def delta(worst: WorstNeighbours, eps: float, solve: Callable[[ComposedLoss], Bound]) -> Bound:
    """delta of a plan with curves."""
    lower = solve(worst.stand_in).lower
    upper = 5e-324
    for flip in (False, True):
        log = min(log_delta_upper(_joined(worst.loss, worst.curve, flip), worst.curve.points, eps), 0.0)
        upper = max(upper, raised(exp_up(log) + _infinite(worst.loss, flip), 16))
    upper = min(upper, 1.0)
    if worst.loss.parts:
        boxes = [_with_box(worst, split * upper) for split in _SPLITS]
        upper = min([upper, *(solve(box).upper for box in boxes if box is not None)])
    return Bound(lower, upper, METHOD)
