"""The Poisson-subsampled Gaussian: P = (1-q) N(0, sigma^2) + q N(1, sigma^2) against Q = N(0, sigma^2).

`mixture_grid` proves the quadrature error, `mixture_sums` evaluates M(z) and bounds its rounding, `mixture_tail` proves
the decay of the line; here they become a `PrivacyLoss`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.mixture_grid import Majorant, Rows, majorant, quick_range, quick_step
from privloss.losses.mixture_sums import Nodes, read_lifted, read_real
from privloss.losses.mixture_tail import Decay
from privloss.numerics.small import UNIT, Real
from privloss.numerics.transform import LineValues, TooExpensive

_CHUNK = 2_000_000  # elements of the largest temporary array
_MAX_WORK = 60_000_000  # elements in all: about two seconds
_LIFT_FROM = 60.0  # t * theta beyond which oscillation on the real axis costs more than complex arithmetic


@dataclass(frozen=True, eq=False)
class GaussianMixtureLoss(PrivacyLoss):
    """Bundle over arrays `rate`, `sigma` (noise / sensitivity) and `count`."""

    rate: Real
    sigma: Real
    count: Real
    flipped: bool = False

    def reversed(self) -> GaussianMixtureLoss:
        return GaussianMixtureLoss(self.rate, self.sigma, self.count, not self.flipped)

    @property
    def largest(self) -> float:  # type: ignore[override]
        # Q against P: Z = -log r < -log(1-q)
        return float(-(self.count * np.log1p(-self.rate)).sum()) if self.flipped else np.inf

    def rows(self, c: float) -> Rows:
        return Rows(self.rate, self.sigma, np.full_like(self.rate, c), self.flipped)

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c)

    def moments(self, c: float) -> tuple[float, float, float]:
        rows = self.rows(c)
        low, high = quick_range(rows)
        size = int(np.max((high - low) / quick_step(rows))) + 2
        if size * len(self.rate) > _CHUNK:
            raise TooExpensive(f"{size} quadrature nodes")
        k, k1, k2 = Nodes.at(rows, low, (high - low) / (size - 1), size).moments()
        return float(self.count @ k), float(self.count @ k1), float(self.count @ k2)

    def log_mgf_upper(self, c: Real) -> Real:
        return np.asarray(self.rows_upper(c).sum(axis=1) * (1 + len(self.rate) * UNIT))

    def rows_upper(self, c: Real) -> Real:
        """Upper bounds on count * K, shape (len(c), bundle)."""
        n = len(self.rate)
        times = np.tile(self.count, len(c))
        rows = Rows(np.tile(self.rate, len(c)), np.tile(self.sigma, len(c)), np.repeat(c, n), self.flipped)
        grid = majorant(rows).grid(0.0, np.log(1e-8 / times), False)
        if grid.size * len(times) > _MAX_WORK:
            raise TooExpensive(f"{grid.size} quadrature nodes for each of {len(times)} points")
        k, _, err = read_real(rows, grid, np.zeros(1))
        each = times * (k[:, 0] + err[:, 0]) + 16 * UNIT * times * np.abs(k[:, 0])
        return np.asarray(each.reshape(len(c), n))


@dataclass(frozen=True, eq=False)
class _Vertical:
    """exp K on Re z = c."""

    loss: GaussianMixtureLoss
    c: float

    @cached_property
    def _majorant(self) -> Majorant:
        return majorant(self.loss.rows(self.c))

    @cached_property
    def _decay(self) -> Decay:
        rows = self.loss.rows(self.c)
        decay = Decay.on(rows, *quick_range(rows))
        if np.all(np.isfinite(decay.total_up)):
            return decay
        return decay.with_total(self.loss.rows_upper(np.array([self.c]))[0] / self.loss.count)

    def decay(self, t: float) -> float:
        return float((self.loss.count * self._decay.log_upper(t)).sum())

    def line(self, t: Real, goal: float) -> LineValues:
        loss, c, n = self.loss, self.c, len(self.loss.rate)
        log_goal = np.log(goal / n) - np.log(loss.count)
        lifted = float(t[-1]) * np.pi / 2 > _LIFT_FROM and c > 0
        grid = self._majorant.grid(float(t[-1]), log_goal, lifted)
        if grid.size * n * len(t) > _MAX_WORK:
            raise TooExpensive(f"{grid.size} quadrature nodes at each of {n * len(t)} points")
        read = read_lifted if lifted else read_real
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for rows_at, t_at in _chunks(n, len(t), grid.size):
            rows = Rows(loss.rate[rows_at], loss.sigma[rows_at], np.full(len(loss.rate[rows_at]), c), loss.flipped)
            k_re, k_im, k_err = read(rows, grid.part(rows_at), t[t_at])
            times = loss.count[rows_at][:, None]
            modulus[t_at] += (times * k_re).sum(axis=0)
            phase[t_at] += (times * k_im).sum(axis=0)
            size = times * (np.abs(k_re) + np.abs(k_im))
            error[t_at] += (times * k_err + (8 + n) * UNIT * size).sum(axis=0)
        return LineValues(modulus, phase, error)


def _chunks(rows: int, heights: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of (rows, heights) whose product with the number of nodes stays below _CHUNK."""
    t_each = max(1, min(heights, _CHUNK // size))
    rows_each = max(1, min(rows, _CHUNK // (t_each * size)))
    for i in range(0, rows, rows_each):
        for j in range(0, heights, t_each):
            yield slice(i, i + rows_each), slice(j, j + t_each)
