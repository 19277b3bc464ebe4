"""Many questions on lines that were drawn for one of them.

A line, or a set of lines for the classes of the largest loss, may be read at any eps: every reading is sound, and only
its width grows with the distance from the eps it was drawn for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.numerics.contour.line import Line
from privloss.numerics.contour.reading import SplitReading
from privloss.numerics.floats import Real

_GRID = 48  # points from which roots are interpolated
_STEPS = 4
_RANGE = 3.0  # how far from its own eps a line is read, as a factor


@dataclass(frozen=True)
class Silent:
    """A direction that says nothing from its largest loss on; before, it is not known here."""

    largest: float

    def log_lower(self, eps: Real) -> Real:
        return np.full(len(eps), -math.inf)

    def log_upper(self, eps: Real) -> Real:
        return np.where(eps >= self.largest, -math.inf, 0.0)


def log_bounds(drawn: Line | SplitReading | Silent, eps: Real) -> tuple[Real, Real]:
    """log of lower and upper bounds on delta at each eps."""
    if isinstance(drawn, Line):
        reading = drawn.read(eps)
        return reading.log_lower(), reading.log_upper()
    if isinstance(drawn, SplitReading):
        return drawn.log_bounds(eps)
    return drawn.log_lower(eps), drawn.log_upper(eps)


def epsilons(drawn: Line | SplitReading | Silent, near: float, levels: Real) -> tuple[Real, Real]:
    """(lower, upper) for each delta, given by the logs of an interval (low, high) that holds it, shape (2, n); -inf and
    inf where the line cannot tell. `near` is the eps that it was drawn for."""
    low_level, high_level = levels
    grid = np.geomspace(near / _RANGE, near * _RANGE, _GRID)
    lower_logs, upper_logs = log_bounds(drawn, grid)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = 0.5 * (lower_logs + upper_logs)
        good = np.isfinite(middle) & (upper_logs - lower_logs < 0.1)
    lower, upper = np.full(len(low_level), -math.inf), np.full(len(low_level), math.inf)
    if good.sum() < 4:
        return lower, upper
    logs, places = middle[good], grid[good]
    order = np.argsort(logs)
    asked = (low_level > logs.min()) & (low_level < logs.max())
    if not np.any(asked):
        return lower, upper
    target = low_level[asked]
    eps = np.exp(np.interp(target, logs[order], np.log(places)[order]))
    for _ in range(_STEPS):
        eps = eps * (1 + np.clip(_miss(drawn, eps, target) / _slope(drawn, eps), -0.2, 0.2))
    low_end, high_end = _ends(drawn, eps, target, high_level[asked])
    lower[asked], upper[asked] = low_end, high_end
    return lower, upper


def _miss(drawn: Line | SplitReading | Silent, eps: Real, target: Real) -> Real:
    low, high = log_bounds(drawn, eps)
    with np.errstate(invalid="ignore"):
        miss = np.where(np.isfinite(low), 0.5 * (low + high), high) - target
    return np.where(np.isfinite(miss), miss, 0.0)


def _slope(drawn: Line | SplitReading | Silent, eps: Real) -> Real:
    """-d log delta / d log eps."""
    rise = 1e-4
    slope = (_miss(drawn, eps, np.zeros_like(eps)) - _miss(drawn, eps * (1 + rise), np.zeros_like(eps))) / rise
    return np.asarray(np.clip(np.where(np.isfinite(slope), slope, 1.0), 1e-3, 1e6))


def _ends(drawn: Line | SplitReading | Silent, eps: Real, low_level: Real, high_level: Real) -> tuple[Real, Real]:
    """Step away from the roots until delta(upper) <= delta <= delta(lower) is proven."""
    low, high = log_bounds(drawn, eps)
    with np.errstate(invalid="ignore"):
        width = np.where(np.isfinite(low), high - low, 1.0) / _slope(drawn, eps) + 4e-16
    up, down = width.copy(), width + np.abs(high_level - low_level)
    for _ in range(6):
        high_met = log_bounds(drawn, eps * (1 + up))[1] <= low_level
        low_met = log_bounds(drawn, eps * (1 - np.minimum(down, 0.5)))[0] >= high_level
        if np.all(high_met & low_met):
            break
        up, down = np.where(high_met, up, 3 * up), np.where(low_met, down, 3 * down)
    lower = np.where(low_met, eps * (1 - np.minimum(down, 0.5)), -math.inf)
    return lower, np.where(high_met, eps * (1 + up), math.inf)
