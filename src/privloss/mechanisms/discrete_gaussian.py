"""Discrete Gaussian noise on whole numbers (Canonne, Kamath, Steinke 2020).

>>> DiscreteGaussian(sigma=5, sensitivity=2)
DiscreteGaussian(sigma=5.0, sensitivity=2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(Mechanism):
    """A whole number plus noise with P[k] proportional to exp(-k^2 / 2 sigma^2); `sensitivity` is whole as well."""

    kind: ClassVar[str] = "discrete-gaussian"
    sigma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        set_field(self, "sigma", check.number("sigma", self.sigma, low=0))
        set_field(self, "sensitivity", check.count("sensitivity", self.sensitivity))
