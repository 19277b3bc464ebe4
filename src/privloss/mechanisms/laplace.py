"""Laplace noise.

>>> Laplace(scale=10)
Laplace(scale=10.0)
>>> Laplace(epsilon=0.5)                               # by what it promises: scale 1 at that sensitivity
Laplace(scale=1.0, sensitivity=0.5)
>>> Laplace(noise_multiplier=10)                       # scale / clipping bound: replace-one doubles the sensitivity
Laplace(noise_multiplier=10.0)
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privloss.losses.closed.laplace import LaplaceLoss
from privloss.losses.density.exponentials import Exponentials
from privloss.losses.step import REVEALED_LOSS, Step
from privloss.losses.table.build import REVEALED
from privloss.mechanisms import noise
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.densities import on_samples, within_range
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number
from privloss.numerics import check


@dataclass(frozen=True, repr=False, init=False)
class Laplace(Mechanism):
    """A number (for vectors: in the l1 norm) plus Laplace noise, by `scale` and the `sensitivity` under the plan's
    adjacency, or by `noise_multiplier` = scale / bound on one record's contribution."""

    kind: ClassVar[str] = "laplace"
    scale: float | None = number(default=None)
    sensitivity: float | None = number(above=True, default=None, plain=1.0)
    noise_multiplier: float | None = number(default=None, description="scale / bound on one record's contribution")

    eps: float | None = number(above=True, default=None, public="epsilon", description="sensitivity / scale")

    def __init__(
        self,
        scale: float | None = None,
        sensitivity: float | None = None,
        noise_multiplier: float | None = None,
        *,
        epsilon: float | None = None,
    ) -> None:
        if epsilon is not None:
            noise.alone(("epsilon", epsilon), ("", None), (scale, sensitivity, noise_multiplier))
            scale, sensitivity = 1.0, check.number("epsilon", epsilon, low=0, above=True)
        for name, value in (("scale", scale), ("sensitivity", sensitivity), ("noise_multiplier", noise_multiplier)):
            set_field(self, name, value)
        set_field(self, "eps", None)
        self.__post_init__()

    def __post_init__(self) -> None:
        noise.exactly_one(self.noise_multiplier, "scale", self.scale, self.sensitivity)
        super().__post_init__()
        if self.scale is not None and self.sensitivity is None:
            set_field(self, "sensitivity", 1.0)


def _step(m: Laplace, adjacency: str) -> Step:
    scale = noise.said(m.noise_multiplier, m.scale)
    size = noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency)
    ratio = size / scale if scale > 0 else math.inf
    theorem = "Laplace pair Lap(0) against Lap(sensitivity) (Zhu, Dong, Wang 2022, Prop. 14)"
    text = noise.sensitivity_text(m.noise_multiplier, m.sensitivity, adjacency)
    assumption = f"laplace: {text}, scale {scale:g}{' C' if m.scale is None else ''}; no sampling"
    known = m.noise_multiplier is not None
    if math.isinf(ratio):
        return dataclasses.replace(
            Step.of_table(REVEALED, theorem, assumption, mirrored=True), loss=REVEALED_LOSS, null_adds_nothing=known
        )
    loss = LaplaceLoss(np.array([ratio]), np.ones(1))
    step = Step((theorem,), (assumption,), loss, mirrored=True, null_adds_nothing=known)
    return on_samples(step, lambda: Exponentials.laplace(within_range("Laplace noise on a sample", ratio)))


def _louder(m: Laplace, factor: float) -> Laplace:
    if m.noise_multiplier is not None:
        return Laplace(noise_multiplier=m.noise_multiplier * factor)
    return Laplace((m.scale or 0.0) * factor, m.sensitivity)


def _grouped(m: Laplace, people: int, adjacency: str) -> Laplace:
    if m.noise_multiplier is not None:
        return Laplace(noise_multiplier=m.noise_multiplier / people)
    return Laplace(m.scale, people * (m.sensitivity or 1.0))


add_kind(
    Kind(
        "laplace",
        Laplace,
        _step,
        forms=(("scale", "sensitivity?"), ("noise_multiplier",), ("epsilon",)),
        louder=_louder,
        grouped=_grouped,
        certified="line; residues for few uses",
    )
)
