"""Publishing without noise what a Poisson sample contains: with probability q the record is seen.

P against Q: Z = log(1-q) with probability 1-q, infinite with probability q. Q against P: Z = -log(1-q) always.
So K(z) = (z+1) L, respectively -z L, with L = sum of count * log(1-q); q = 1 leaves no finite part at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.numerics.small import UNIT, Real
from privloss.numerics.transform import LineValues


@dataclass(frozen=True)
class RevealLoss(PrivacyLoss):
    """`log_unseen` = L <= 0, the log of the probability never to be sampled."""

    log_unseen: float
    flipped: bool = False

    def reversed(self) -> RevealLoss:
        return RevealLoss(self.log_unseen, not self.flipped)

    @property
    def delta_inf(self) -> float:  # type: ignore[override]
        if math.isinf(self.log_unseen):
            return 1.0
        return 0.0 if self.flipped else -math.expm1(self.log_unseen)

    @property
    def largest(self) -> float:  # type: ignore[override]
        return -self.log_unseen if self.flipped else self.log_unseen

    def _k(self, z: float) -> float:
        return -z * self.log_unseen if self.flipped else (z + 1) * self.log_unseen

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self._k(c), self.largest)

    def moments(self, c: float) -> tuple[float, float, float]:
        return self._k(c), self.largest, 0.0

    def log_mgf_upper(self, c: Real) -> Real:
        k = -c * self.log_unseen if self.flipped else (c + 1) * self.log_unseen
        return np.asarray(k + 8 * UNIT * np.abs(k))

    def log_mgf_simple_upper(self, c: Real) -> Real:
        return self.log_mgf_upper(c)

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """delta(eps) = e^K(0) (1 - e^(eps - largest)), without the mass at infinity."""
        if eps >= self.largest:
            return -math.inf, -math.inf
        value = self._k(0.0) + math.log(-math.expm1(eps - self.largest))
        slack = 16 * UNIT * (1 + abs(self.log_unseen) + (abs(eps) + abs(self.largest)) / (self.largest - eps))
        return value - slack, value + slack

    def weakest(self) -> RevealLoss:
        return self


@dataclass(frozen=True)
class _Vertical:
    k: float
    slope: float

    def line(self, t: Real, goal: float) -> LineValues:
        return LineValues(np.full_like(t, self.k), self.slope * t, 8 * UNIT * (abs(self.k) + abs(self.slope) * t))

    def decay(self, t: float) -> float:
        return 0.0
