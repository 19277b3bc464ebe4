"""What one use of sampled noise looks like to quadrature: the likelihood ratio r = dP/dQ of an outcome y.

Q = N(0, sigma^2), and P is a mixture of normal laws around shifts between 0 and 1 (the largest is 1). Off the axis, at
y + iv with theta = v/sigma^2 <= pi/2, all terms of r lie in a sector of opening theta. Therefore |r| rises with y and
falls with v, arg r rises with both, and 0 <= arg r <= odds * theta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import log_ndtr

from privloss.losses.mixture.sums import complex_log_ratio
from privloss.numerics.floats import Complex, Real
from privloss.numerics.stable import log_sampled

if TYPE_CHECKING:
    pass


class Law(Protocol):
    """One kind of step."""

    @property
    def sigma(self) -> float: ...

    @property
    def log_least(self) -> float:
        """log of the infimum of r."""

    def log_ratio(self, y: Real) -> Real:
        """log r."""

    def drift(self, y: Real, log_r: Real) -> Real:
        """Absolute roundings of log r: its own, and those of y."""

    def turned(self, y: Real, theta: Real) -> Complex:
        """log r at y + i sigma^2 theta."""

    def odds(self, y: Real) -> Real:
        """An upper bound, at most 1, on arg r / theta."""

    def log_beyond(self, top: float, power: float) -> float:
        """log of a bound on E_Q[r^power; y > top] for power <= 1 and top >= 1."""


@dataclass(frozen=True)
class OneHit:
    """P = (1-q) N(0, sigma^2) + q N(1, sigma^2)."""

    rate: float
    sigma: float

    @property
    def log_least(self) -> float:
        return math.log1p(-self.rate)

    def log_ratio(self, y: Real) -> Real:
        return log_sampled(self.rate, (y - 0.5) / self.sigma**2)

    def drift(self, y: Real, log_r: Real) -> Real:
        hit = -np.expm1(-log_r) + self.rate * np.exp(-log_r)  # p = 1 - (1-q)/r
        return np.asarray(4 * np.abs(hit) * (np.abs(y) + 1.0) / self.sigma**2 + 4 * np.abs(log_r))

    def turned(self, y: Real, theta: Real) -> Complex:
        return complex_log_ratio(np.array([[[self.rate]]]), (y - 0.5) / self.sigma**2, theta)

    def odds(self, y: Real) -> Real:
        s = (y - 0.5) / self.sigma**2
        return np.asarray(np.exp(np.minimum(s + math.log(self.rate) - math.log1p(-self.rate), 0.0)))

    def log_beyond(self, top: float, power: float) -> float:
        # r >= 1 there, so r^power <= r or 1
        none, one = float(log_ndtr(-top / self.sigma)), float(log_ndtr((1 - top) / self.sigma))
        return (float(np.logaddexp(none, math.log(self.rate) + one)) if power > 0 else none) + 1e-9
