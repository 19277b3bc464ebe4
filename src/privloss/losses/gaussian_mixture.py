"""The Poisson-subsampled Gaussian: P = (1-q) N(0, sigma^2) + q N(1, sigma^2) against Q = N(0, sigma^2).

`mixture_grid` proves the quadrature error, `mixture_sums` evaluates M(z) and bounds its rounding, `mixture_tail` proves
the decay of the line; here they become a `PrivacyLoss`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.gaussian import GaussianLoss
from privloss.losses.mixture_grid import Majorant, Rows, majorant, quick_range, quick_step
from privloss.losses.mixture_sums import Nodes, read
from privloss.losses.mixture_tail import Decay
from privloss.numerics.small import UNIT, Real
from privloss.numerics.transform import LineValues, TooExpensive

_CHUNK = 1_000_000  # elements of the largest temporary array
_MAX_WORK = 400_000_000  # multiplications in all: about a second
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
        k, k1, k2 = Nodes.at(rows, low, (high - low) / (size - 1), size).moments(rows.c)
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
        k, _, err = read(rows, grid, np.zeros(1))
        each = times * (k[:, 0] + err[:, 0]) + 16 * UNIT * times * np.abs(k[:, 0])
        return np.asarray(each.reshape(len(c), n))

    def log_mgf_simple_upper(self, c: Real) -> Real:
        """E_Q[r^w] <= 1 - q + q E_Q[e^(ws)] for w >= 1 or w <= 0 (convexity), in both directions."""
        q, sigma = self.rate[:, None], self.sigma[:, None]
        each = np.logaddexp(np.log1p(-q), np.log(q) + 0.5 * c * (c + 1) / sigma**2)
        return np.asarray(self.count @ each * (1 + 16 * UNIT) + 16 * UNIT * self.count.sum())

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """One step, reduced to the plain Gaussian.

        P against Q: delta_q(eps) = q delta(eps'), e^eps' = 1 + (e^eps - 1)/q. Q against P: with
        b = 1 - e^eps (1-q) > 0, delta_q(eps) = b delta(eps'), e^eps' = q e^eps / b, and 0 if b <= 0.
        """
        if self.count.sum() != 1:
            return None
        q, plain = float(self.rate[0]), GaussianLoss(float(self.sigma[0]) ** -2)
        if self.flipped:
            share = -math.expm1(eps + math.log1p(-q))
            if share <= 0:
                return -math.inf, -math.inf
            shifted = math.log(q) + eps - math.log(share)
            wobble = 8 * UNIT * (1 + (1 + abs(eps) + abs(math.log(q))) / share)
        else:
            if eps <= math.log1p(-q):  # every outcome has r > e^eps
                share = -math.expm1(eps)
                return math.log(share) - 4 * UNIT, math.log(share) + 4 * UNIT
            share = q
            rise = math.expm1(min(eps, 700.0)) / q
            shifted = math.log1p(rise) if eps <= 700 else eps - math.log(q)
            wobble = 8 * UNIT * (1 + abs(shifted) + 2 * min(abs(rise) / (1 + rise), 1 / q))
        low, high = plain.hockey_stick(shifted + wobble)[0], plain.hockey_stick(shifted - wobble)[1]
        slack = 8 * UNIT * (1 + abs(math.log(share)) + (1 / share if self.flipped else 0.0))
        return low + math.log(share) - slack, high + math.log(share) + slack

    def mean_bounds(self) -> tuple[float, float]:
        """The quadrature of M(z) errs by at most |z(z+1)|/2 times a constant, so its derivative at 0 by half of it."""
        rows = self.rows(0.0)
        grid = majorant(rows).grid(0.0, np.log(1e-16 / self.count), False)
        nodes = Nodes.at(rows, grid.start, grid.step, grid.size)
        error = 0.5 * (np.exp(grid.log_strip) + np.exp(grid.log_tail)) + nodes.mean_error
        mean, slack = float(self.count @ np.real(nodes.mean)), float(self.count @ error)
        slack += (16 + len(self.rate)) * UNIT * abs(mean)
        return mean - slack, mean + slack

    def weakest(self) -> GaussianMixtureLoss:
        i = [int(np.argmax(self.rate / self.sigma))]
        return GaussianMixtureLoss(self.rate[i], self.sigma[i], np.ones(1), self.flipped)


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
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for at in _chunks(n, len(t), grid.size):
            rows = Rows(loss.rate[at], loss.sigma[at], np.full(len(loss.rate[at]), c), loss.flipped)
            k_re, k_im, k_err = read(rows, grid.part(at), t)
            times = loss.count[at][:, None]
            modulus += (times * k_re).sum(axis=0)
            phase += (times * k_im).sum(axis=0)
            size = times * (np.abs(k_re) + np.abs(k_im))
            error += (times * k_err + (8 + n) * UNIT * size).sum(axis=0)
        return LineValues(modulus, phase, error)


def _chunks(rows: int, heights: int, size: int) -> Iterator[slice]:
    """Blocks of rows whose temporary arrays stay below _CHUNK elements."""
    each = max(1, _CHUNK // (heights + 2 * math.isqrt(heights) * size))
    for i in range(0, rows, each):
        yield slice(i, i + each)
