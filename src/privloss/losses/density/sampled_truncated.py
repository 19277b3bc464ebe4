"""Gaussian noise that is cut off, on a Poisson sample: (1-q)Q + qP against Q, r = 1 - q + q e^(mu y - mu^2/2), and
r = 1 - q where only Q can be.

Off the axis, at height h with mu h < pi/2: |r| <= its value on the axis, >= cos(mu h) times that, and its argument is
at most p tan(mu h), p <= 1 the share of e^z in r (as in `sampled_exponentials.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.density.legendre import NODES, FineRule, LogBound, error, panels
from privloss.losses.density.profile import sampled_hockey_stick
from privloss.losses.table.table import Closed, Density, Profile, Table
from privloss.numerics.floats import SMALLEST, Complex, Real, padded_up
from privloss.numerics.stable import exp_or_inf, log_sampled

_ROOT = math.sqrt(2 * math.pi)
_GRID = 2_000


@dataclass(frozen=True)
class SampledTruncatedNormal:
    """N(0, 1), cut off at +-bound, shifted by mu against not shifted, on a sample of the given rate; `share` is 1 over
    the part of the noise that is left, `revealed` what one side alone can produce, `profile` that of the finite losses
    without a sample."""

    mu: float
    bound: float
    share: float
    revealed: float
    profile: Profile
    rate: float

    def table(self) -> Table:
        """The sampled pair."""
        y, weights, half = panels(self.mu - self.bound, self.bound, 0.5 / max(self.mu, 1.0))
        values = np.append(self._loss(y), math.log1p(-self.rate))
        under_q = np.append(self.share * weights * np.exp(-0.5 * y * y) / _ROOT, self.revealed)
        count = len(y) // NODES
        density = Density(
            nodes=len(y),
            error=(error(half, count, self._bound(_forth)), error(half, count, self._bound(_back))),
            variation=(self._variation, self._variation_back),
            profile=(self._profile, self._profile_back),
            top=(float(log_sampled(self.rate, self.mu * self.bound - 0.5 * self.mu**2)), -math.log1p(-self.rate)),
            closed=(self._closed(_forth, +1), self._closed(_back, -1)),
        )
        slack, wobble = 64 + 4 * self.bound**2, 24.0 + 8 * self.bound
        masses = np.exp(np.log(np.maximum(under_q, 1e-320)) + values)
        lost = max(self.rate * self.revealed, SMALLEST)
        return Table(values, masses, lost, slack=slack, wobble=wobble, density=density)

    def _loss(self, y: Real) -> Real:
        return log_sampled(self.rate, self.mu * y - 0.5 * self.mu * self.mu)

    # -- one use -------------------------------------------------------------------------------------------------------

    def _profile(self, eps: float) -> tuple[float, float]:
        return sampled_hockey_stick(self.rate, self.profile, eps, False, self.revealed)

    def _profile_back(self, eps: float) -> tuple[float, float]:
        return sampled_hockey_stick(self.rate, self.profile, eps, True, self.revealed)

    # -- how large phi r^power can be ----------------------------------------------------------------------------------

    @cached_property
    def _grid(self) -> tuple[Real, Real]:
        """Points of the interval, and log r there."""
        grid = np.linspace(self.mu - self.bound, self.bound, _GRID)
        return grid, self._loss(grid)

    def _peak(self, power: float, tilt: float, overhang: float) -> float:
        """An upper bound on -y^2/2 + tilt y + power log r over the interval and `overhang` beyond either end.

        The slope changes by at most 1 + |power| mu^2/4 per unit, which bounds the maximum between grid points; and
        beyond the ends the slope there bounds the growth.
        """
        (grid, log_r), mu = self._grid, self.mu
        gap = float(grid[1] - grid[0])
        logs = -0.5 * grid * grid + tilt * grid + power * log_r
        bend = 1 + abs(power) * mu * mu / 4
        slope = self.bound + mu + abs(tilt) + abs(power) * mu
        top = float(logs.max()) + gap * gap / 8 * bend + overhang * (slope + 0.5 * bend * overhang)
        return padded_up(top, 1e-9, 1.0)

    def _bound(self, power_at: Callable[[float], float]) -> LogBound:
        """log of a bound on share phi r^power off the axis."""

        def size(c: float, t: Real, height: float, overhang: float) -> Real:
            power, turned = power_at(c), self.mu * height
            if turned > 1.2:
                return np.full_like(t, np.inf)
            inward = -min(power, 0.0) * math.log(1 / math.cos(turned))
            fixed = math.log(self.share) + self._peak(power, 0.0, overhang) + 0.5 * height**2 + inward
            return fixed + t * math.tan(turned)

        return size

    # -- at heights where the nodes cannot follow ----------------------------------------------------------------------

    def _variation(self, c: float) -> float:
        return self._faded(c + 2)

    def _variation_back(self, c: float) -> float:
        return self._faded(1 - c)

    def _faded(self, power: float) -> float:
        # by parts in v = log r: F = phi r^power e^-z / (mu q). The slope of log F, -y - mu + power mu p(y), has at
        # most three zeros (a line meets a logistic curve), so F at most three peaks with the ends: 6 max F
        top = self._peak(power, -self.mu, 0.0) + 0.5 * self.mu * self.mu
        return 6 * self.share / _ROOT / (self.mu * self.rate) * exp_or_inf(top)

    def _closed(self, power_at: Callable[[float], float], sign: int) -> Closed:
        """Narrower panels, or 0 up to V/t."""

        def log_f(c: float, y: Real) -> Real:
            return np.asarray(math.log(self.share / _ROOT) - 0.5 * y * y + power_at(c) * self._loss(y))

        units, width = 64 + 8 * self.bound**2, 0.04 / max(self.mu, 1.0)
        fade = self._variation if sign > 0 else self._variation_back
        low, bound_on = self.mu - self.bound, self._bound(power_at)
        fine = FineRule(low, self.bound, log_f, self._loss, sign, bound_on, units, width)

        def found(c: float, t: Real) -> tuple[Complex, Real]:
            return fine.refine(c, t, np.zeros(len(t), dtype=complex), fade(c) / np.maximum(t, 1e-9))

        return found


def _forth(c: float) -> float:
    """The power of r in P r^c."""
    return c + 1


def _back(c: float) -> float:
    """The power of r in Q r^-c."""
    return -c
