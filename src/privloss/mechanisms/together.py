"""Several releases on one and the same sample.

>>> import privloss as pl
>>> pl.together(pl.Gaussian(1.5), pl.Laplace(2.0) * 3).poisson(0.1)
together(Gaussian(noise_multiplier=1.5), 3 * Laplace(scale=2.0)).poisson(0.1)
>>> pl.together(pl.Gaussian(1.5), pl.Laplace(2.0)) * 2            # without a sample: simply both of them
Plan(2 * Gaussian(noise_multiplier=1.5) + 2 * Laplace(scale=2.0))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.product import product
from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism, Plan, Sampled, set_field, shown
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import steps


@dataclass(frozen=True, repr=False)
class Together(Mechanism):
    """Releases that all see the same sample; later ones may look at the outputs of earlier ones."""

    kind: ClassVar[str] = "together"
    releases: tuple[tuple[Mechanism, int], ...] = steps()

    def __post_init__(self) -> None:
        found = Plan(tuple(self.releases)).steps
        for mechanism, _ in found:
            if isinstance(mechanism, Sampled):
                raise InvalidInput(f"releases: {mechanism!r} has a sample of its own; what shares one comes without.")
        set_field(self, "releases", found)

    def __repr__(self) -> str:
        return f"together({', '.join(shown(self.releases))})"


def together(*releases: Plan | Mechanism | tuple[Mechanism, int]) -> Together:
    """Mechanisms (or plans, for several uses) that run on one sample, to be given a sampler."""
    return Together(Plan.of(*releases).steps)


def _step(m: Together, adjacency: str) -> Step:
    return product([(release.step(adjacency), n) for release, n in m.releases])


add_kind(
    Kind(
        "together",
        Together,
        _step,
        louder=lambda m, factor: Together(tuple((release.louder(factor), n) for release, n in m.releases)),
        grouped=lambda m, people, adjacency: Together(
            tuple((release.grouped(people, adjacency), n) for release, n in m.releases)
        ),
        parts=lambda m: m.releases,
        certified="as its parts; not on a sample",
    )
)
