"""Discrete Laplace (two-sided geometric) noise on whole numbers.

>>> DiscreteLaplace(scale=10), DiscreteLaplace(noise_multiplier=10)
(DiscreteLaplace(scale=10.0), DiscreteLaplace(noise_multiplier=10.0))
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from privloss.losses.step import Step
from privloss.losses.table.build import REVEALED, discrete_laplace
from privloss.mechanisms import noise
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, whole
from privloss.numerics import check
from privloss.numerics.floats import lowered


@dataclass(frozen=True, repr=False, init=False)
class DiscreteLaplace(Mechanism):
    """A whole number plus noise with P[k] proportional to exp(-|k| / scale); `sensitivity` is whole as well. Given by
    `noise_multiplier` instead, every record contributes at most 1."""

    kind: ClassVar[str] = "discrete-laplace"
    scale: float | None = number(default=None)
    sensitivity: int | None = whole(default=None, plain=1)
    noise_multiplier: float | None = number(default=None, description="scale, where a record contributes at most 1")

    eps: float | None = number(above=True, default=None, public="epsilon", description="sensitivity / scale")

    def __init__(
        self,
        scale: float | None = None,
        sensitivity: int | None = None,
        noise_multiplier: float | None = None,
        *,
        epsilon: float | None = None,
    ) -> None:
        if epsilon is not None:
            noise.alone(("epsilon", epsilon), ("", None), (scale, sensitivity, noise_multiplier))
            size = check.number("epsilon", epsilon, low=0, above=True)
            scale, sensitivity = lowered(1 / size, 2), 1  # rounded to less noise
        for name, value in (("scale", scale), ("sensitivity", sensitivity), ("noise_multiplier", noise_multiplier)):
            set_field(self, name, value)
        set_field(self, "eps", None)
        self.__post_init__()

    def __post_init__(self) -> None:
        noise.exactly_one(self.noise_multiplier, "scale", self.scale, self.sensitivity)
        super().__post_init__()
        if self.scale is not None and self.sensitivity is None:
            set_field(self, "sensitivity", 1)


Geometric = DiscreteLaplace  # its other name


def _step(m: DiscreteLaplace, adjacency: str) -> Step:
    scale = noise.said(m.noise_multiplier, m.scale)
    size = int(noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency))
    step = Step.of_table(
        discrete_laplace(scale, size) if scale > 0 else REVEALED,
        "Discrete Laplace pair, shifted by the sensitivity (monotone likelihood ratio)",
        f"discrete-laplace: whole-number query of sensitivity {size} under {adjacency}, scale {scale:g}",
        mirrored=True,  # k -> D - k
    )
    return dataclasses.replace(step, null_adds_nothing=m.noise_multiplier is not None)


def _louder(m: DiscreteLaplace, factor: float) -> DiscreteLaplace:
    if m.noise_multiplier is not None:
        return DiscreteLaplace(noise_multiplier=m.noise_multiplier * factor)
    return DiscreteLaplace((m.scale or 0.0) * factor, m.sensitivity)


def _grouped(m: DiscreteLaplace, people: int, adjacency: str) -> DiscreteLaplace:
    size = noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency)
    return DiscreteLaplace(noise.said(m.noise_multiplier, m.scale), people * int(size))


add_kind(
    Kind(
        "discrete-laplace",
        DiscreteLaplace,
        _step,
        forms=(("scale", "sensitivity?"), ("noise_multiplier",), ("epsilon",)),
        aliases=("geometric",),
        louder=_louder,
        grouped=_grouped,
        certified="lattice",
    )
)
