"""Privacy for groups: the same steps, seen by k people who join together.

>>> import privloss as pl
>>> pl.group.plan(pl.Gaussian(2.0) * 3 + pl.Laplace(10.0), people=4)
Plan(3 * Gaussian(noise_multiplier=0.5) + Laplace(scale=10.0, sensitivity=4.0))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.mechanisms.base import set_field
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.sampling import Sampled
from privloss.numerics import check


@dataclass(frozen=True, repr=False)
class PoissonGroup(Sampled):
    """Gaussian noise on a Poisson sample, for a group of `people` who are each sampled with probability `rate`."""

    kind: ClassVar[str] = "poisson-group"
    method: ClassVar[str] = "poisson_group"
    rate: float
    people: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.mechanism, Gaussian):
            raise InvalidInput(f"mechanism = {self.mechanism!r}: a sampled group needs Gaussian noise.")
        set_field(self, "rate", check.number("rate", self.rate, low=0, high=1))
        set_field(self, "people", check.count("people", self.people))
