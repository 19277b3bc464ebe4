"""Discrete Gaussian noise on whole numbers (Canonne, Kamath, Steinke 2020).

>>> DiscreteGaussian(sigma=5, sensitivity=2), DiscreteGaussian(noise_multiplier=5)
(DiscreteGaussian(sigma=5.0, sensitivity=2), DiscreteGaussian(noise_multiplier=5.0))
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.discrete_gaussian import LEAST_SIGMA, DiscreteGaussianLoss
from privloss.losses.step import REVEALED_LOSS, NoPair, Step
from privloss.losses.table.build import REVEALED, discrete_gaussian, poisson
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.table import Table
from privloss.mechanisms import noise
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, whole

_MOST_NOISE = 1e50


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(Mechanism):
    """A whole number plus noise with P[k] proportional to exp(-k^2 / 2 sigma^2); `sensitivity` is whole as well. Given
    by `noise_multiplier` instead, every record contributes at most 1."""

    kind: ClassVar[str] = "discrete-gaussian"
    sigma: float | None = number(default=None)
    sensitivity: int | None = whole(default=None, plain=1)
    noise_multiplier: float | None = number(default=None, description="sigma, where a record contributes at most 1")

    def __post_init__(self) -> None:
        noise.exactly_one(self.noise_multiplier, "sigma", self.sigma, self.sensitivity)
        super().__post_init__()
        if self.sigma is not None and self.sensitivity is None:
            set_field(self, "sensitivity", 1)


def _step(m: DiscreteGaussian, adjacency: str) -> Step:
    sigma = noise.said(m.noise_multiplier, m.sigma)
    size = int(noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency))
    if sigma > _MOST_NOISE * size:
        raise Unsupported(f"{m!r}: sigma / sensitivity is supported up to {_MOST_NOISE:g}.")

    def table() -> Table:
        return discrete_gaussian(sigma, size) if sigma > 0 else REVEALED

    def on_poisson(rate: float) -> Step:
        return Step((), (), TableLoss.one(poisson(table(), rate)))

    def on_replaced(rate: float) -> Step:
        if sigma > 0:  # the tails that were left out have no place in a folded table
            table()
            raise NoPair
        even = Step.of_table(REVEALED, "", "", mirrored=True).symmetric
        if even is None:
            raise NoPair
        return even(rate)

    loss: PrivacyLoss
    if sigma >= LEAST_SIGMA:
        loss = DiscreteGaussianLoss(np.array([sigma]), np.array([float(size)]), np.ones(1))
    else:
        loss = TableLoss.one(table()) if sigma > 0 else REVEALED_LOSS
    return Step(
        ("Discrete Gaussian pair, shifted by the sensitivity (monotone likelihood ratio)",),
        (f"discrete-gaussian: whole-number query of sensitivity {size} under {adjacency}, sigma {sigma:g}",),
        loss,
        mirrored=True,  # k -> D - k
        poisson=on_poisson,
        symmetric=on_replaced,
        null_adds_nothing=m.noise_multiplier is not None,
    )


def _louder(m: DiscreteGaussian, factor: float) -> DiscreteGaussian:
    if m.noise_multiplier is not None:
        return DiscreteGaussian(noise_multiplier=m.noise_multiplier * factor)
    return dataclasses.replace(m, sigma=(m.sigma or 0.0) * factor)


def _grouped(m: DiscreteGaussian, people: int, adjacency: str) -> DiscreteGaussian:
    size = noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency)
    return DiscreteGaussian(noise.said(m.noise_multiplier, m.sigma), people * int(size))


add_kind(
    Kind(
        "discrete-gaussian",
        DiscreteGaussian,
        _step,
        forms=(("sigma", "sensitivity?"), ("noise_multiplier",)),
        louder=_louder,
        grouped=_grouped,
        certified="lattice (theta function)",
    )
)
