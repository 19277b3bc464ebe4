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
_STEPS, _CLOSE, _APART = 6, 1e-10, 1e-9  # of a search; a last step follows
_STEEP = (1e-3, 1e6)  # slopes that are believed
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
    order = np.argsort(middle[good])
    logs, places = middle[good][order], np.log(grid[good][order])
    asked = (low_level > logs[0]) & (low_level < logs[-1])
    if not np.any(asked):
        return lower, upper
    root = _root(drawn, low_level[asked], logs, places)
    lower[asked], upper[asked] = _ends(drawn, root, low_level[asked], high_level[asked])
    return lower, upper


@dataclass(frozen=True)
class _Found:
    """Where the middle of the bounds meets its target, about; -d log delta / d log eps and the width there."""

    eps: Real
    slope: Real
    width: Real


def _root(drawn: Readable, target: Real, logs: Real, places: Real) -> _Found:
    """By secants in log eps, from points between which it is known; logs rise."""
    slopes = np.clip(-np.interp(target, logs, np.gradient(logs, places)), *_STEEP)
    x = np.interp(target, logs, places)
    miss, width = _miss(drawn, np.exp(x), target)
    for _ in range(_STEPS):
        step = np.clip(miss / slopes, -0.2, 0.2)
        x, before = x + step, miss
        miss, width = _miss(drawn, np.exp(x), target)
        with np.errstate(divide="ignore", invalid="ignore"):
            fresh = (before - miss) / step
        slopes = np.where((np.abs(step) > _APART) & (fresh > _STEEP[0]), np.minimum(fresh, _STEEP[1]), slopes)
        if np.all(np.abs(miss) <= _CLOSE * slopes):
            break
    return _Found(np.exp(x + miss / slopes), slopes, width)


def _miss(drawn: Readable, eps: Real, target: Real) -> tuple[Real, Real]:
    """How far the logs are above their target, and the width of their bounds."""
    low, high = drawn.log_bounds(eps)
    with np.errstate(invalid="ignore"):
        miss = np.where(np.isfinite(low), 0.5 * (low + high), high) - target
        width = np.where(np.isfinite(low), high - low, 1.0)
    return np.where(np.isfinite(miss), miss, 0.0), width


def _ends(drawn: Readable, found: _Found, low_level: Real, high_level: Real) -> tuple[Real, Real]:
    """Step away from the roots until delta(upper) <= delta <= delta(lower) is proven."""
    eps, width = found.eps, found.width / found.slope + 4e-16
    up, down = width.copy(), width + np.abs(high_level - low_level)
    for _ in range(6):
        high_met = drawn.log_bounds(eps * (1 + up))[1] <= low_level
        low_met = drawn.log_bounds(eps * (1 - np.minimum(down, 0.5)))[0] >= high_level
        if np.all(high_met & low_met):
            break
        up, down = np.where(high_met, up, 3 * up), np.where(low_met, down, 3 * down)
    lower = np.where(low_met, eps * (1 - np.minimum(down, 0.5)), -math.inf)
    return lower, np.where(high_met, eps * (1 + up), math.inf)
