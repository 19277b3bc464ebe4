"""Many questions about choices of one range, read off one grid: the profile is convex in a = e^x.

Between points of the grid the chord of upper bounds lies above the profile, and chords that are continued into the
cell, from a bound above at the next point but one to a bound below, lie below it. So do the bounds beyond the cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from privloss.losses.closed.adaptive_range import AdaptiveRange
from privloss.numerics.floats import UNIT, Real, lowered, raised

_REACH = 8.0  # standard deviations of the whole loss that the grid covers


@dataclass(frozen=True, eq=False)
class RangeCurve:
    """Points from 0 on and bounds on the profile there, both falling; from `largest` on it is 0."""

    x: Real
    low: Real
    high: Real
    largest: float

    def deltas(self, eps: Real) -> tuple[Real, Real]:
        """Bounds on delta at each eps."""
        j = np.clip(np.searchsorted(self.x, eps, side="right") - 1, 0, len(self.x) - 3)
        cell, slack = self._cell, self._slack
        part = np.expm1(np.minimum(eps - self.x[j], 1.0))
        high = self.high[j] + np.clip(part / cell - slack, 0.0, 1.0) * (self.high[j + 1] - self.high[j])
        before, after = self._falls
        left = self.low[j] + before[j] * (part + slack * cell)
        right = self.low[j + 1] + after[j] * np.maximum(cell - part - slack * cell, 0.0)
        low = lowered(np.maximum(np.maximum(left, right), self.low[j + 1]), 8)
        inside = eps < self.x[-3]
        low, high = np.where(inside, low, 0.0), np.where(inside, raised(high, 8), self.high[-3])
        high = np.where(eps >= self.largest, 0.0, high)
        return np.minimum(low, high), high

    def epsilons(self, delta: Real) -> tuple[Real, Real]:
        """Bounds on the least eps with at most this delta; 0 and infinity where the grid does not tell."""
        enough = np.count_nonzero(self.high[:, None] > delta, axis=0)  # the first point that surely is
        short = np.count_nonzero(self.low[:, None] >= delta, axis=0) - 1  # the last one that surely is not beyond
        cell, slack, (before, after) = self._cell, self._slack, self._falls
        j, i = np.clip(enough, 1, len(self.x) - 1), np.clip(short, 0, len(self.x) - 3)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (self.high[j - 1] - delta) / (self.high[j - 1] - self.high[j]) + slack
            left = (self.low[i] - delta) / -before[i]
            right = cell - (delta - self.low[i + 1]) / after[i]
        upper = raised(self.x[j - 1] + np.log1p(np.fmin(np.fmax(share, 0.0), 1.0) * cell), 8)
        reached = np.fmax(np.fmax(left, right), 0.0) - slack * cell
        lower = lowered(self.x[i] + np.log1p(np.clip(reached, 0.0, cell)), 8)
        upper = np.where(enough == 0, 0.0, np.minimum(upper, self.largest))
        upper = np.where(enough == len(self.x), math.inf, upper)
        lower = np.where((short < 0) | (short > i), 0.0, lower)
        return np.minimum(lower, upper), upper

    @cached_property
    def widest(self) -> float:
        """The largest distance of the bounds."""
        return float((self.high - self.low).max())

    @cached_property
    def _cell(self) -> float:
        """e^h - 1."""
        return math.expm1(float(self.x[1] - self.x[0]))

    @cached_property
    def _slack(self) -> float:
        """How far cells may differ, and more than places in them are rounded, as a share of a cell."""
        return 1e-14 + 16 * UNIT * float(self.x[-1]) / self._cell

    @cached_property
    def _falls(self) -> tuple[Real, Real]:
        """Of each cell: the slope of the line that comes from the left, and how the one from the right rises to the
        left, in units of a at the left end. No profile falls faster than 1 - a."""
        cell = self._cell * (1 - self._slack)
        before = np.append(-1.0, (self.low[1:-2] - self.high[:-3]) * (1 + cell) / cell)
        rises = np.maximum(self.low[1:-1] - self.high[2:], 0.0) * (1 - 4 * self._slack) / (cell * (1 + cell))
        return np.maximum(before, -np.exp(self.x[:-2])), rises


@lru_cache(maxsize=8)
def range_curve(uses: AdaptiveRange) -> RangeCurve | None:
    """None where the grid would be too coarse."""
    grid = uses.grid(0.0, _REACH + 0.25 * uses.eps * math.sqrt(uses.count))
    if grid is None:
        return None
    x = grid.points()[grid.zero :]
    off = 4 * UNIT * x  # a profile changes by at most as much as x
    low, high = np.maximum(grid.below()[grid.zero :] - off, 0.0), np.minimum(grid.above()[grid.zero :] + off, 1.0)
    low, high = np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)
    return RangeCurve(x, low, high, float(raised(uses.eps * uses.count, 8)))
