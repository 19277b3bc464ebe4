"""Many questions on lines that were drawn for one of them.

A line, or a set of lines for the classes of the largest loss, may be read at any eps: every reading is sound, and only
its width grows with the distance from the eps it was drawn for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privloss.numerics.floats import Real, raised

_GRID = 48  # points from which roots are interpolated
_STEPS = 4
_RANGE = 3.0  # how far from its own eps a line is read, as a factor


class Readable(Protocol):
    """A line, the classes of the largest loss, or what else may be read at many eps."""

    def log_bounds(self, eps: Real) -> tuple[Real, Real]:
        """log of lower and upper bounds on delta at each eps."""


@dataclass(frozen=True)
class Silent:
    """A direction that says nothing from its largest loss on; before, it is not known here."""

    largest: float

    def log_bounds(self, eps: Real) -> tuple[Real, Real]:
        return np.full(len(eps), -math.inf), np.where(eps >= self.largest, -math.inf, 0.0)


@dataclass(frozen=True)
class Mirrored:
    """Q against P from above, on what was drawn for P against Q without mass at infinity on either side:
    H_a(Q, P) = a H_(1/a)(P, Q) + 1 - a, so delta'(eps) = delta(-eps) - (e^eps - 1) (1 - delta(-eps)).

    Where neighbours have no such pair in common but (P, Q) dominates one order, the identity holds for the neighbours
    themselves and shows that (Q, P) dominates the other. It is precise where delta is not small, at small eps."""

    readable: Readable

    def log_bounds(self, eps: Real) -> tuple[Real, Real]:
        with np.errstate(all="ignore"):
            log = self.readable.log_bounds(-eps)[1]
            most = np.minimum(raised(np.exp(log), 4 + 2 * np.abs(log)), 1.0)  # rises with it, as e^eps > 0
            grown = np.expm1(eps)
            found = raised(most - grown * (1 - most), 8, most + grown)
            upper = raised(np.log(np.maximum(found, 1e-320)), 4, 1 + np.abs(np.log(np.maximum(found, 1e-320))))
        return np.full(len(eps), -math.inf), np.where(np.isnan(upper), 0.0, np.minimum(upper, 0.0))


def epsilons(drawn: Readable, near: float, levels: Real) -> tuple[Real, Real]:
    """(lower, upper) for each delta, given by the logs of an interval (low, high) that holds it, shape (2, n); -inf and
    inf where the line cannot tell. `near` is the eps that it was drawn for."""
    low_level, high_level = levels
    grid = np.geomspace(near / _RANGE, near * _RANGE, _GRID)
    lower_logs, upper_logs = drawn.log_bounds(grid)
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


def _miss(drawn: Readable, eps: Real, target: Real) -> Real:
    low, high = drawn.log_bounds(eps)
    with np.errstate(invalid="ignore"):
        miss = np.where(np.isfinite(low), 0.5 * (low + high), high) - target
    return np.where(np.isfinite(miss), miss, 0.0)


def _slope(drawn: Readable, eps: Real) -> Real:
    """-d log delta / d log eps."""
    rise = 1e-4
    slope = (_miss(drawn, eps, np.zeros_like(eps)) - _miss(drawn, eps * (1 + rise), np.zeros_like(eps))) / rise
    return np.asarray(np.clip(np.where(np.isfinite(slope), slope, 1.0), 1e-3, 1e6))


def _ends(drawn: Readable, eps: Real, low_level: Real, high_level: Real) -> tuple[Real, Real]:
    """Step away from the roots until delta(upper) <= delta <= delta(lower) is proven."""
    low, high = drawn.log_bounds(eps)
    with np.errstate(invalid="ignore"):
        width = np.where(np.isfinite(low), high - low, 1.0) / _slope(drawn, eps) + 4e-16
    up, down = width.copy(), width + np.abs(high_level - low_level)
    for _ in range(6):
        high_met = drawn.log_bounds(eps * (1 + up))[1] <= low_level
        low_met = drawn.log_bounds(eps * (1 - np.minimum(down, 0.5)))[0] >= high_level
        if np.all(high_met & low_met):
            break
        up, down = np.where(high_met, up, 3 * up), np.where(low_met, down, 3 * down)
    lower = np.where(low_met, eps * (1 - np.minimum(down, 0.5)), -math.inf)
    return lower, np.where(high_met, eps * (1 + up), math.inf)
