"""Laplace noise.

>>> Laplace(scale=10)
Laplace(scale=10.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check


@dataclass(frozen=True, repr=False)
class Laplace(Mechanism):
    """A number plus Laplace noise of the given scale; `sensitivity` is meant under the plan's adjacency."""

    kind: ClassVar[str] = "laplace"
    scale: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        set_field(self, "scale", check.number("scale", self.scale, low=0))
        set_field(self, "sensitivity", check.number("sensitivity", self.sensitivity, low=0, above=True))
