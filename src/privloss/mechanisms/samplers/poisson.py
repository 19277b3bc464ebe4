"""Poisson sampling.

>>> from privloss.mechanisms.gaussian import Gaussian
>>> Gaussian(noise_multiplier=1.1).poisson(0.01)
Gaussian(noise_multiplier=1.1).poisson(0.01)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.adjacency import REPLACE_ONE
from privloss.errors import InvalidInput
from privloss.losses.samplers.group import poisson_group
from privloss.losses.samplers.poisson import poisson
from privloss.mechanisms.base import Mechanism, Sampled
from privloss.mechanisms.kinds import Scheme, Training, add_scheme
from privloss.mechanisms.parameters import number, whole


@dataclass(frozen=True, repr=False)
class PoissonSampled(Sampled):
    """Each record enters independently with probability `rate`."""

    kind: ClassVar[str] = "poisson"
    method: ClassVar[str] = "poisson"
    rate: float = number(high=1.0)

    def __repr__(self) -> str:
        return f"{self.mechanism!r}.poisson({self.rate!r})"


@dataclass(frozen=True, repr=False)
class PoissonGroup(Sampled):
    """Gaussian noise on a Poisson sample, for a group of `people` who are each sampled with probability `rate`."""

    kind: ClassVar[str] = "poisson-group"
    method: ClassVar[str] = "poisson_group"
    rate: float = number(high=1.0)
    people: int = whole()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mechanism.step("add-remove").distances is None:
            raise InvalidInput(f"mechanism = {self.mechanism!r}: a sampled group needs Gaussian noise.")


def rate_text(run: Training) -> str:
    return f"rate {run.batch}/{run.records} = {run.rate:g}"


def _grouped(m: PoissonSampled, people: int, adjacency: str) -> Mechanism | None:
    """Any number of the group may be in the sample."""
    if adjacency == REPLACE_ONE or m.mechanism.step(adjacency).distances is None:
        return None
    return PoissonGroup(m.mechanism, m.rate, people)


add_scheme(
    Scheme(
        "poisson",
        PoissonSampled,
        lambda step, m, at: poisson(step, m.rate, at),
        "every record independently with probability rate",
        training=lambda run: ({"rate": run.rate}, f"poisson, {rate_text(run)} at every step"),
        amplification=lambda m: m.rate,
        grouped=_grouped,
        certified="all adjacencies",
    )
)
add_scheme(
    Scheme(
        "poisson-group",
        PoissonGroup,
        lambda step, m, at: poisson_group(step, m.rate, m.people, at),
        "a group of people, each independently with probability rate",
        in_runs=False,
    )
)
