"""Noise that is cut off: bounded error, paid for with outputs that give the record away (delta_inf > 0).

>>> TruncatedLaplace(scale=1.0, bound=20.0), TruncatedGaussian(sigma=1.0, bound=6.0)
(TruncatedLaplace(scale=1.0, bound=20.0), TruncatedGaussian(sigma=1.0, bound=6.0))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check


@dataclass(frozen=True, repr=False)
class TruncatedLaplace(Mechanism):
    """A number plus Laplace noise conditioned on |noise| <= bound."""

    kind: ClassVar[str] = "truncated-laplace"
    scale: float
    bound: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        set_field(self, "scale", check.number("scale", self.scale, low=0, above=True))
        set_field(self, "bound", check.number("bound", self.bound, low=0, above=True))
        set_field(self, "sensitivity", check.number("sensitivity", self.sensitivity, low=0, above=True))


@dataclass(frozen=True, repr=False)
class TruncatedGaussian(Mechanism):
    """A number plus Gaussian noise conditioned on |noise| <= bound."""

    kind: ClassVar[str] = "truncated-gaussian"
    sigma: float
    bound: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        set_field(self, "sigma", check.number("sigma", self.sigma, low=0, above=True))
        set_field(self, "bound", check.number("bound", self.bound, low=0, above=True))
        set_field(self, "sensitivity", check.number("sensitivity", self.sensitivity, low=0, above=True))
