"""A loss with a single finite value: K(z) = log_mass + z * value, the rest of the mass at infinity.

This is what remains without noise. Revealing a Poisson sample: with q the record is seen (infinite loss), otherwise
Z = log(1-q), so log_mass = value = log(1-q); against that, Q against P, Z = -log(1-q) always. A (0, delta)-DP box:
mass 1 - delta at 0. Revealing everything: log_mass = -inf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.table.lattice import Steps
from privloss.numerics.contour.transform import LineValues
from privloss.numerics.floats import UNIT, Real, lowered, raised, widened


@dataclass(frozen=True)
class PointLoss(PrivacyLoss):
    """Sums over steps of the log of the finite mass and of the value of the loss."""

    place = 0
    log_mass: float
    value: float
    seen: float | None = None  # 1 - mass, if known exactly (a single step)

    def times(self, count: int) -> PointLoss:
        if count == 1 or math.isinf(self.log_mass):
            return self
        return PointLoss(count * self.log_mass, count * self.value)

    @classmethod
    def merged(cls, parts: Sequence[PointLoss]) -> Sequence[PointLoss]:
        if len(parts) == 1:
            return parts
        return (cls(math.fsum(p.log_mass for p in parts), math.fsum(p.value for p in parts)),)

    def reversed(self) -> PointLoss:
        """K(-1 - z) = (log_mass - value) - z value."""
        if math.isinf(self.log_mass):
            return self
        if self.log_mass == self.value:  # nothing is ever seen for certain from this side
            return PointLoss(0.0, -self.value, 0.0)
        return PointLoss(min(self.log_mass - self.value, 0.0), -self.value, self.seen if self.value == 0 else None)

    @property
    def symmetric(self) -> bool:
        return self.value == 0 or math.isinf(self.log_mass)

    @property
    def delta_inf(self) -> float:
        return -math.expm1(self.log_mass) if self.seen is None else self.seen

    @property
    def delta_inf_exact(self) -> bool:
        return self.seen is not None or math.isinf(self.log_mass)

    @property
    def solved_by_closed_form(self) -> bool:
        return True

    @property
    def largest(self) -> float:
        return raised(self.value, 16)

    @property
    def largest_lower(self) -> float:
        return lowered(self.value, 16)

    def lattice_steps(self) -> list[Steps]:
        """The value, once."""
        return [Steps(np.array([self.value]), 1)]

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self.log_mass + c * self.value, self.value)

    def moments(self, c: float) -> tuple[float, float, float]:
        return self.log_mass + c * self.value, self.value, 0.0

    def log_mgf_upper(self, c: Real) -> Real:
        return np.asarray(raised(self.log_mass + c * self.value, 8, abs(self.log_mass) + np.abs(c * self.value)))

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """delta(eps) = mass (1 - e^(eps - value)), without the mass at infinity."""
        if math.isinf(self.log_mass):
            return -math.inf, -math.inf
        # the value itself is rounded, and delta rises with it
        low, high = (self._at(value, eps) for value in widened(self.value, 16))
        size = 1 + abs(self.log_mass)
        return lowered(lowered(low, 16, size), 4, abs(low)), raised(high, 16, size)

    def _at(self, value: float, eps: float) -> float:
        return self.log_mass + math.log(-math.expm1(eps - value)) if eps < value else -math.inf

    def mean_bounds(self) -> tuple[float, float]:
        return widened(self.value, 16)

    def weakest(self) -> PointLoss:
        return self


@dataclass(frozen=True)
class _Vertical:
    log_modulus: float
    value: float

    def line(self, t: Real, goal: float) -> LineValues:
        error = 8 * UNIT * (abs(self.log_modulus) + abs(self.value) * t)
        return LineValues(np.full_like(t, self.log_modulus), self.value * t, error)

    def decay(self, t: float) -> float:
        return 0.0

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        return np.zeros(count)
