"""Gaussian noise that is cut off: bounded error, paid for with outputs that give the record away (delta_inf > 0).

>>> TruncatedGaussian(sigma=1.0, bound=6.0)
TruncatedGaussian(sigma=1.0, bound=6.0)
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import Unsupported
from privloss.losses.density.truncated import TruncatedNormal
from privloss.losses.step import Step
from privloss.losses.table.build import REVEALED
from privloss.losses.table.loss import TableLoss
from privloss.mechanisms import noise
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.densities import within_range
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number

_MOST_BOUND = 40.0


@dataclass(frozen=True, repr=False)
class TruncatedGaussian(Mechanism):
    """A number plus Gaussian noise conditioned on |noise| <= bound. With `noise_multiplier` both sigma and the bound
    are in units of the bound on one record's contribution."""

    kind: ClassVar[str] = "truncated-gaussian"
    sigma: float | None = number(above=True, default=None)
    bound: float | None = number(above=True, default=None)
    sensitivity: float | None = number(above=True, default=None, plain=1.0)
    noise_multiplier: float | None = number(
        above=True, default=None, description="sigma / bound on one record's contribution, in whose units `bound` is"
    )

    def __post_init__(self) -> None:
        noise.exactly_one(self.noise_multiplier, "sigma", self.sigma, self.sensitivity)
        noise.needs_bound(self.bound)
        super().__post_init__()
        if self.sigma is not None and self.sensitivity is None:
            set_field(self, "sensitivity", 1.0)


def _step(m: TruncatedGaussian, adjacency: str) -> Step:
    sigma, bound = noise.said(m.noise_multiplier, m.sigma), m.bound or 0.0
    size = noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency)
    theorem = "Truncated Gaussian pair (monotone likelihood ratio, infinite loss where supports differ)"
    assumption = f"truncated-gaussian: sensitivity {size:g} under {adjacency}, sigma {sigma:g}, bound {bound:g}"
    reach = bound / sigma
    if reach > _MOST_BOUND:
        raise Unsupported(
            f"bound / sigma = {reach:g}: truncated Gaussian noise is supported up to {_MOST_BOUND:g}; use gaussian."
        )
    mu = within_range("truncated Gaussian noise", size / sigma)
    known = m.noise_multiplier is not None
    if 2 * reach <= mu:
        nothing = Step.of_table(REVEALED, theorem, assumption, mirrored=True)
        return dataclasses.replace(nothing, null_adds_nothing=known)
    pair = TruncatedNormal(mu, reach)

    def on_poisson(rate: float) -> Step:
        return Step((), (), TableLoss.one(pair.poisson(rate)))

    def on_replaced(rate: float) -> Step:
        raise Unsupported(f"{m!r}: batches of fixed size are not supported for truncated Gaussian noise.")

    return Step(
        (theorem,), (assumption,), TableLoss.one(pair.plain()), mirrored=True, poisson=on_poisson,
        symmetric=on_replaced, null_adds_nothing=known,
    )  # fmt: skip


def _louder(m: TruncatedGaussian, factor: float) -> TruncatedGaussian:
    if m.noise_multiplier is not None:
        return dataclasses.replace(m, noise_multiplier=m.noise_multiplier * factor)
    return dataclasses.replace(m, sigma=(m.sigma or 0.0) * factor)


def _grouped(m: TruncatedGaussian, people: int, adjacency: str) -> TruncatedGaussian:
    size = noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency)
    return TruncatedGaussian(noise.said(m.noise_multiplier, m.sigma), m.bound, people * size)


add_kind(
    Kind(
        "truncated-gaussian",
        TruncatedGaussian,
        _step,
        forms=(("sigma", "bound", "sensitivity?"), ("noise_multiplier", "bound")),
        louder=_louder,
        grouped=_grouped,
        certified="line",
    )
)
