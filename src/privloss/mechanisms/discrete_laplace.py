"""Discrete Laplace (two-sided geometric) noise on whole numbers.

>>> DiscreteLaplace(scale=10)
DiscreteLaplace(scale=10.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(Mechanism):
    """A whole number plus noise with P[k] proportional to exp(-|k| / scale); `sensitivity` is whole as well."""

    kind: ClassVar[str] = "discrete-laplace"
    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        set_field(self, "scale", check.number("scale", self.scale, low=0))
        set_field(self, "sensitivity", check.count("sensitivity", self.sensitivity))
