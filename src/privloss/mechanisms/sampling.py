"""Mechanisms that see a random sample of the data.

>>> from privloss.mechanisms.gaussian import Gaussian
>>> Gaussian(noise_multiplier=1.1).poisson(0.01)
Gaussian(noise_multiplier=1.1).poisson(0.01)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check

SCHEMES = ("poisson", "fixed-size", "with-replacement", "truncated-poisson", "shuffle", "allocation")


@dataclass(frozen=True, repr=False)
class PoissonSampled(Mechanism):
    """`mechanism` run on a sample that each record enters independently with probability `rate`."""

    kind: ClassVar[str] = "poisson"
    mechanism: Mechanism
    rate: float

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidInput(f"mechanism = {self.mechanism!r}: must be a mechanism.")
        if isinstance(self.mechanism, PoissonSampled):
            raise InvalidInput(
                f"mechanism = {self.mechanism!r}: is sampled already; multiply the rates of nested Poisson samples."
            )
        set_field(self, "rate", check.number("rate", self.rate, low=0, high=1))

    def to_dict(self) -> dict[str, Any]:
        return {**self.mechanism.to_dict(), "sampling": {"scheme": "poisson", "rate": self.rate}}

    def __repr__(self) -> str:
        return f"{self.mechanism!r}.poisson({self.rate!r})"
