"""Laplace noise that is cut off: bounded error, paid for with outputs that give the record away (delta_inf > 0).

>>> TruncatedLaplace(scale=1.0, bound=20.0)
TruncatedLaplace(scale=1.0, bound=20.0)
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from privloss.losses.density.exponentials import Exponentials
from privloss.losses.step import Step
from privloss.losses.table.build import REVEALED
from privloss.losses.table.loss import TableLoss
from privloss.mechanisms import noise
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.densities import on_samples, within_range
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number


@dataclass(frozen=True, repr=False)
class TruncatedLaplace(Mechanism):
    """A number plus Laplace noise conditioned on |noise| <= bound. With `noise_multiplier` both the scale and the bound
    are in units of the bound on one record's contribution."""

    kind: ClassVar[str] = "truncated-laplace"
    scale: float | None = number(above=True, default=None)
    bound: float | None = number(above=True, default=None)
    sensitivity: float | None = number(above=True, default=None, plain=1.0)
    noise_multiplier: float | None = number(
        above=True, default=None, description="scale / bound on one record's contribution, in whose units `bound` is"
    )

    def __post_init__(self) -> None:
        noise.exactly_one(self.noise_multiplier, "scale", self.scale, self.sensitivity)
        noise.needs_bound(self.bound)
        super().__post_init__()
        if self.scale is not None and self.sensitivity is None:
            set_field(self, "sensitivity", 1.0)


def _step(m: TruncatedLaplace, adjacency: str) -> Step:
    scale, bound = noise.said(m.noise_multiplier, m.scale), m.bound or 0.0
    size = noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency)
    theorem = "Truncated Laplace pair (monotone likelihood ratio, infinite loss where supports differ)"
    assumption = f"truncated-laplace: sensitivity {size:g} under {adjacency}, scale {scale:g}, bound {bound:g}"
    pair = Exponentials.truncated_laplace(within_range("truncated Laplace noise", size / scale), bound / scale)
    known = m.noise_multiplier is not None
    if pair is None:
        nothing = Step.of_table(REVEALED, theorem, assumption, mirrored=True)
        return dataclasses.replace(nothing, null_adds_nothing=known)
    made = pair
    plain = Step((theorem,), (assumption,), TableLoss.one(made.plain()), mirrored=True, null_adds_nothing=known)
    return on_samples(plain, lambda: made)


def _louder(m: TruncatedLaplace, factor: float) -> TruncatedLaplace:
    if m.noise_multiplier is not None:
        return dataclasses.replace(m, noise_multiplier=m.noise_multiplier * factor)
    return dataclasses.replace(m, scale=(m.scale or 0.0) * factor)


def _grouped(m: TruncatedLaplace, people: int, adjacency: str) -> TruncatedLaplace:
    size = noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency)
    return TruncatedLaplace(noise.said(m.noise_multiplier, m.scale), m.bound, people * size)


add_kind(
    Kind(
        "truncated-laplace",
        TruncatedLaplace,
        _step,
        forms=(("scale", "bound", "sensitivity?"), ("noise_multiplier", "bound")),
        louder=_louder,
        grouped=_grouped,
        certified="line",
    )
)
