"""Many uses of choices whose loss has a range of eps, each made when the ones before are known: both ends of the truth.

Let D_k(a) be the largest H_a over all adaptive sequences of k such choices, D_0(a) = (1 - a)_+. Given what is still to
come, the first choice with likelihood ratios 1/y, y in [u, E u], E = e^eps, makes E_P[D_(k-1)(a y)] of it, E_P[y] = 1.
D_(k-1) is convex, so the ends of the interval are the worst y (they are the two-point mechanisms of Dong, Durfee and
Rogers 2020, with losses t and t - eps), and

    D_k(a) = max over u in [a/E, a] of the chord of D_(k-1) over [u, E u], at a.

D_k is convex and falls, as a largest value of such functions (each is a hockey-stick divergence).

*On a grid* a_j = a_0 e^(jh), h = eps/m. From below: u on the grid, some of them; a real adversary. From above: D_(k-1)
lies below its chords between grid points. With D(a w) = A + B w and D(a E w) = C + F w on a cell w_0 <= w <= w_1, the
chord at a, times E - 1, is a constant + (E B - F) w - (A - C)/w. If A > C it is concave, and between its ends exceeds
the larger of them by at most (w_1 - w_0)^2 (A - C) / (4 w_0^3); otherwise it is convex and does not. Beyond the last
point D is at most what it is there; before the first one it lies below the chord from D(0) = 1, and above 1 - a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privloss.numerics.floats import UNIT, Real, lowered, raised

_WORK = 1.5e8  # cells that are looked at
_FINEST, _COARSEST = 256, 6  # grid cells in a range
_WIDEST = 300.0  # ranges beyond it are no privacy, and e^eps is no double
_ABOVE, _BELOW = 5.0, 5.0  # standard deviations of the whole loss beyond eps, and below 0
_TRIED = (0.4, 0.46, 0.5, 0.53, 0.56, 0.6, 0.66, 0.75, 0.85, 0.95)  # t / eps of the lower end
_EACH = 64.0  # roundings of one use


@dataclass(frozen=True)
class AdaptiveRange:
    """`count` uses of range `eps`."""

    eps: float
    count: int

    def delta(self, x: float) -> tuple[float, float] | None:
        """Bounds on delta(x), x >= 0, or None where the grid would be too coarse."""
        grid = self.grid(x)
        if grid is None or x >= self.eps * self.count:
            return None
        return float(grid.below()[grid.zero]), min(float(grid.above()[grid.zero]), 1.0)

    def epsilon(self, delta: float, guess: float) -> tuple[float, float] | None:
        """Bounds on the x with delta(x) = delta, 0 or the range itself where none are found."""
        grid = self.grid(guess)
        if grid is None or not delta > 0:
            return None
        x, low, high = grid.points(), grid.below(), grid.above()
        upper = self._upper(x, high, delta)
        reached = np.flatnonzero(low >= delta)
        lower = float(x[reached[-1]]) if len(reached) else 0.0
        if len(reached) and reached[-1] + 1 < len(x) and low[reached[-1] + 1] > 0:
            here, there = math.log(low[reached[-1]]), math.log(low[reached[-1] + 1])
            share = (here - math.log(delta)) / (here - there)
            finer = lower + (share * (1 - 1e-4) - 1e-6) * (float(x[1]) - float(x[0]))
            closer = self.grid(finer)
            if finer > lower and closer is not None and closer.below()[closer.zero] >= delta:
                lower = finer
        return max(float(lowered(lower, 16)), 0.0), upper

    def _upper(self, x: Real, high: Real, delta: float) -> float:
        most = raised(self.eps * self.count, 4)
        small = np.flatnonzero((high <= delta) & (x >= 0))
        if not len(small):
            return most
        j = int(small[0])
        if j == 0 or x[j - 1] < 0:
            return max(min(float(x[j]), most), 0.0)
        # the chord, as a function of e^x
        share = (float(high[j - 1]) - delta) / (float(high[j - 1]) - float(high[j]))
        found = float(x[j - 1]) + math.log1p(min(share * (1 + 1e-12) + 1e-15, 1.0) * math.expm1(float(x[j] - x[j - 1])))
        return min(raised(found, 64), float(raised(float(x[j]), 4)), most)

    def grid(self, x: float, above: float = _ABOVE) -> Grid | None:
        """A grid with a point at x, and so many standard deviations beyond it; None if it would be too coarse."""
        deviation = 0.5 * self.eps * math.sqrt(self.count)
        top = min(x + above * deviation, self.eps * self.count + self.eps)
        bottom = -min(_BELOW * deviation + self.eps, self.eps * self.count + self.eps)
        cells = math.sqrt(_WORK * self.eps / (self.count * (top - bottom)))
        m = 2 * int(min(cells, _FINEST) / 2)
        if m < _COARSEST or self.count < 2 or self.eps > _WIDEST:
            return None
        h = self.eps / m
        zero = math.ceil((x - bottom) / h)
        return Grid(self.eps, self.count, m, x, zero, zero + math.ceil((top - x) / h) + 1)


@dataclass(frozen=True)
class Grid:
    eps: float
    count: int
    m: int
    x: float
    zero: int  # the index of x
    size: int

    def points(self) -> Real:
        return self.x + (np.arange(self.size) - self.zero) * (self.eps / self.m)

    def _shares(self) -> tuple[Real, Real]:
        """P-masses of the losses t = i eps/m and t - eps."""
        i = np.arange(self.m + 1)
        t, rest = i * self.eps / self.m, (self.m - i) * self.eps / self.m
        whole = -math.expm1(-self.eps)
        return -np.expm1(-rest) / whole, np.exp(-rest) * -np.expm1(-t) / whole

    def _first(self, sign: float) -> Real:
        """D_0 at the points, each known to a few roundings of the largest."""
        x = self.points()
        return np.asarray(np.maximum(-np.expm1(np.minimum(x - sign * 8 * UNIT * float(np.abs(x).max()), 1.0)), 0.0))

    def below(self) -> Real:
        """Lower bounds on D_k at all points."""
        return _below(self)

    def above(self) -> Real:
        """Upper bounds on D_k at all points."""
        return _above(self)


@lru_cache(maxsize=32)
def _below(grid: Grid) -> Real:
    m, (up, down) = grid.m, grid._shares()
    lead = grid.points()[0] - np.arange(m, 0, -1) * (grid.eps / m)
    before, beyond = -np.expm1(lead + 1e-12), np.zeros(m)
    few = {round(share * m) for share in _TRIED}
    tried = range(1, m) if grid.count * m * grid.size < _WORK else sorted(few)
    found = grid._first(-1.0)
    for _ in range(grid.count):
        whole = np.concatenate([before, found, beyond])  # index j + m
        best = found
        for i in tried:
            start = m - i
            chord = up[i] * whole[start : start + grid.size] + down[i] * whole[start + m : start + m + grid.size]
            best = np.maximum(best, chord)
        found = best
    return np.asarray(lowered(found, grid.count * _EACH))


@lru_cache(maxsize=32)
def _above(grid: Grid) -> Real:
    m, (up, down) = grid.m, grid._shares()
    grown, h = math.expm1(grid.eps / m), grid.eps / m
    shrunk = np.exp(-h * np.arange(m, 0, -1)) * (1 - 1e-12)
    bend = grown * grown * np.exp(h * np.arange(1, m + 1)) / (4 * math.expm1(grid.eps)) * (1 + 1e-9)
    found, n = grid._first(1.0), grid.size
    for _ in range(grid.count):
        whole = np.concatenate([1 - (1 - found[0]) * shrunk, found, np.full(m + 1, found[-1])])  # index j + m
        gap = whole[: n + m] - whole[m : n + 2 * m]  # A - B at j - m, ..., j
        curved = gap[:-1] - np.diff(gap) / grown  # A - C of the cell after each point
        curved = np.maximum(curved, 0.0) + 32 * UNIT * (1 + 1 / grown) * whole[: n + m - 1]
        best, chord = found, found  # t = 0
        for i in range(m):
            start = m - i - 1
            after = up[i + 1] * whole[start : start + n] + down[i + 1] * whole[start + m : start + m + n]
            best = np.maximum(best, np.maximum(chord, after) + bend[i] * curved[start : start + n])
            chord = after
        found = np.minimum(best, 1.0)
    return np.asarray(raised(found, grid.count * _EACH) + 1e-300)
