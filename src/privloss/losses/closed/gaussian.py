"""The Gaussian privacy loss: Z ~ N(mu^2/2, mu^2), K(z) = z (z+1) mu^2 / 2 (Prop. gauss_privloss).

Gaussian steps compose to one Gaussian with mu^2 = sum of count * mu_j^2, so a bundle is a single number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privloss.losses.base import Concentration, PrivacyLoss
from privloss.numerics.contour.solve import delta_bounds
from privloss.numerics.contour.transform import LineValues, TooExpensive
from privloss.numerics.floats import UNIT, Real, lowered, raised, widened
from privloss.numerics.normal import hockey_sticks, log_hockey_stick, normal_epsilon

# mu_squared carries one rounding per merged step kind; 16 units cover them together with the products below.
_UNITS = 16.0
_GOOD = 1e-12  # relative error of the closed form from which on the contour engine is better
_CLOSE, _TRIED = 8 * UNIT, 4  # relative distance of the first ends that are tried, and how many are, ever wider ones


@dataclass(frozen=True)
class GaussianLoss(PrivacyLoss):
    """`mu_squared` is the sum over steps of (sensitivity / sigma)^2."""

    place = 9  # last: the others may need it for smoothness
    symmetric = True
    mu_squared: float

    def times(self, count: int) -> GaussianLoss:
        return GaussianLoss(count * self.mu_squared)

    @classmethod
    def merged(cls, parts: Sequence[GaussianLoss]) -> Sequence[GaussianLoss]:
        return (cls(math.fsum(p.mu_squared for p in parts)),)

    def reversed(self) -> GaussianLoss:
        return self

    def concentration(self) -> Concentration:
        return Concentration(everywhere=0.5 * self.mu_squared)

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self.mu_squared, c)

    def moments(self, c: float) -> tuple[float, float, float]:
        half = 0.5 * self.mu_squared
        return half * c * (c + 1), half * (2 * c + 1), self.mu_squared

    def log_mgf_upper(self, c: Real) -> Real:
        return np.asarray(raised(0.5 * self.mu_squared * c * (c + 1), _UNITS))

    def log_mgf_bounds(self, c: Real, goal: float) -> tuple[Real, Real]:
        k = 0.5 * self.mu_squared * c * (c + 1)
        return np.asarray(lowered(k, _UNITS)), np.asarray(raised(k, _UNITS))

    def hockey_stick(self, eps: float) -> tuple[float, float]:
        """Closed form; where it would cancel, the contour engine gives the same number with all its digits."""
        low, high, relative = self._bounds(eps)
        if relative < _GOOD:
            return low, high
        try:
            if self.mu_squared < 1e-200:
                raise TooExpensive("hardly any loss at all")
            return delta_bounds(self, eps, 1e-13).logs
        except TooExpensive:  # absurdly far out: kappa(c) e^(K(c) - c eps) at the Gaussian saddle
            c = max(eps / self.mu_squared - 0.5, 1e-3)
            k = float(self.log_mgf_upper(np.array([c]))[0])
            return -math.inf, min(raised(k - c * eps, 8, abs(k) + c * abs(eps)), 0.0)

    def closed_epsilon(self, level: tuple[float, float]) -> tuple[float, float] | None:
        """The closed form, inverted by secants; only its bounds decide where the ends are, and delta falls in eps."""
        eps = normal_epsilon(level[0], math.sqrt(self.mu_squared))
        if not 0 < eps < math.inf:
            return None
        gap = _CLOSE * eps
        for _ in range(_TRIED):
            lower, upper = max(eps - gap, 0.0), eps + gap
            if self._bounds(upper)[1] <= level[0] and self._bounds(lower)[0] >= level[1]:
                return lower, upper
            gap *= 8
        return None

    def _bounds(self, eps: float) -> tuple[float, float, float]:
        """log delta(eps) by the closed form, and how much of it cancels, as the relative error of delta."""
        low, high, relative = log_hockey_stick(eps, math.sqrt(self.mu_squared))
        return lowered(low, _UNITS), raised(high, _UNITS), relative

    def profile(self, eps: Real) -> tuple[Real, Real]:
        mu = math.sqrt(self.mu_squared)  # grows with every delta
        return hockey_sticks(eps, lowered(mu, _UNITS))[0], hockey_sticks(eps, raised(mu, _UNITS))[1]

    def mean_bounds(self) -> tuple[float, float]:
        return widened(0.5 * self.mu_squared, _UNITS)

    def weakest(self) -> GaussianLoss:
        return self

    def rid_of(self, log_mass: float) -> GaussianLoss:
        return self

    def trimmed(self, c: float, log_delta: float) -> GaussianLoss:
        return self

    def blurred(self, mu: float) -> GaussianLoss:
        return GaussianLoss(self.mu_squared + mu * mu)


@dataclass(frozen=True)
class _Vertical:
    mu_squared: float
    c: float

    def line(self, t: Real, goal: float) -> LineValues:
        half, c = 0.5 * self.mu_squared, self.c
        error = _UNITS * UNIT * half * ((c + 1) ** 2 + t * t + t * (2 * c + 1))
        return LineValues(half * (c * (c + 1) - t * t), half * t * (2 * c + 1), error)

    def decay(self, t: float) -> float:
        return raised(-0.5 * self.mu_squared * t * t, _UNITS)

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        return np.asarray(lowered(0.5 * self.mu_squared * (start + width * np.arange(count)) ** 2, 2 * _UNITS))
