"""Gaussian noise.

Two ways to say how much, because they are often confused (`noise.py`): ``noise_multiplier``, noise / clipping norm of a
*sum*, from which the sensitivity follows; or ``sigma`` with ``sensitivity``, where nothing is doubled. For vectors the
l2 norm is all that matters (Cor. gauss_adp_exact_multi).

>>> Gaussian(1.1)
Gaussian(noise_multiplier=1.1)
>>> Gaussian(sigma=3.0, sensitivity=2.0)
Gaussian(sigma=3.0, sensitivity=2.0)
>>> Gaussian(mu=0.5), Gaussian(rho=0.125)                         # by what it promises
(Gaussian(sigma=1.0, sensitivity=0.5), Gaussian(sigma=1.0, sensitivity=0.5000000000000002))
>>> (Gaussian(1.0) + Gaussian(1.0) * 3).poisson(0.1)              # four releases on one sample: 1/sigma^2 adds
Plan(Gaussian(noise_multiplier=0.49999999999999...).poisson(0.1))
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privloss.errors import Unsupported
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.samplers.poisson import gaussian_hit
from privloss.losses.step import REVEALED_LOSS, Step
from privloss.losses.table.build import REVEALED
from privloss.mechanisms import noise
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number
from privloss.numerics import check
from privloss.numerics.floats import lowered, raised

_MOST_NOISE = 1e150  # its square is a double, and so is the inverse


@dataclass(frozen=True, repr=False)
class Gaussian(Mechanism):
    """A query plus N(0, sigma^2) noise (per coordinate). `mu` (sensitivity / sigma, its Gaussian DP) or `rho` (mu^2/2,
    its zCDP) stand for noise 1 at that sensitivity."""

    kind: ClassVar[str] = "gaussian"
    noise_multiplier: float | None = number(default=None, description="noise / bound on one record's contribution")
    sigma: float | None = number(default=None)
    sensitivity: float | None = number(
        above=True, default=None, description="l2 sensitivity under the plan's adjacency"
    )
    mu: float | None = number(above=True, default=None, description="sensitivity / sigma")
    rho: float | None = number(above=True, default=None, description="(sensitivity / sigma)^2 / 2")

    def __post_init__(self) -> None:
        others = (self.noise_multiplier, self.sigma, self.sensitivity)
        if self.mu is not None or self.rho is not None:
            noise.alone(("mu", self.mu), ("rho", self.rho), others)
            mu = check.number("mu", self.mu, low=0, above=True) if self.rho is None else _mu_of(self.rho)
            for name, value in (("sigma", 1.0), ("sensitivity", mu), ("mu", None), ("rho", None)):
                set_field(self, name, value)
        noise.exactly_one(self.noise_multiplier, "sigma", self.sigma, self.sensitivity)
        super().__post_init__()


def _mu_of(rho: float) -> float:
    """The least mu with mu^2/2 >= rho, within a few units."""
    return raised(math.sqrt(2 * check.number("rho", rho, low=0, above=True)), 4)


def _step(m: Gaussian, adjacency: str) -> Step:
    sigma = noise.said(m.noise_multiplier, m.sigma) / noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency)
    text = noise.sensitivity_text(m.noise_multiplier, m.sensitivity, adjacency)
    text = text if m.noise_multiplier is not None else f"{text}, sigma = {m.sigma:g} given"
    if sigma > _MOST_NOISE:
        raise Unsupported(f"{m!r}: noise / sensitivity is supported up to {_MOST_NOISE:g}.")
    squared = sigma * sigma
    mu_squared = 1 / squared if squared > 0 else math.inf

    def on_poisson(rate: float) -> Step:
        theorem = (
            "Poisson-sampled Gaussian: (1-q) N(0) + q N(1) against N(0), both directions "
            "(Zhu, Dong, Wang 2022, Thm. 11)"
        )
        return gaussian_hit(rate, sigma).saying(theorem, f"gaussian: {text}")

    return Step(
        ("Gaussian pair N(0) against N(sensitivity) (Cor. gauss_adp_exact_multi)",),
        (f"gaussian: {text}; no sampling",),
        GaussianLoss(mu_squared) if mu_squared < math.inf else REVEALED_LOSS,
        mirrored=True,
        poisson=on_poisson,
        distances=noise.distances(m.noise_multiplier, m.sigma, m.sensitivity, adjacency),
        normal=raised(1 / sigma, 4) if mu_squared < math.inf else None,
        finite=None if mu_squared < math.inf else (lambda most: (REVEALED, REVEALED)),
        contributions_known=m.noise_multiplier is not None,
        null_adds_nothing=m.noise_multiplier is not None,
    )


def _louder(m: Gaussian, factor: float) -> Gaussian:
    if m.noise_multiplier is not None:
        return Gaussian(m.noise_multiplier * factor)
    return dataclasses.replace(m, sigma=(m.sigma or 0.0) * factor)


def _grouped(m: Gaussian, people: int, adjacency: str) -> Gaussian:
    if m.noise_multiplier is not None:
        return Gaussian(noise_multiplier=m.noise_multiplier / people)
    return Gaussian(sigma=m.sigma, sensitivity=people * (m.sensitivity or 1.0))


def _together(steps: Sequence[tuple[Gaussian, int]]) -> Gaussian | None:
    """A vector of Gaussian releases is one Gaussian release with mu^2 = the sum of theirs; rounded to less noise. None
    where one is given by its noise multiplier and another is not."""
    multipliers = [m.noise_multiplier for m, _ in steps]
    if any(noise.said(m.noise_multiplier, m.sigma) == 0 for m, _ in steps):
        return next(m for m, _ in steps if noise.said(m.noise_multiplier, m.sigma) == 0)
    if None not in multipliers:
        total = math.hypot(*(math.sqrt(n) / z for z, (_, n) in zip(multipliers, steps, strict=True) if z is not None))
        return Gaussian(noise_multiplier=lowered(1 / total, 8))  # root, quotients and hypot: at most 4 roundings
    if any(z is not None for z in multipliers):
        return None
    mu = math.hypot(*(math.sqrt(n) * ((m.sensitivity or 1.0) / (m.sigma or math.inf)) for m, n in steps))
    return Gaussian(sigma=1.0, sensitivity=raised(mu, 8))


def _mu_squared(m: Gaussian, adjacency: str) -> Fraction:
    size = Fraction(noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency))
    given = noise.said(m.noise_multiplier, m.sigma)
    if not given:
        raise Unsupported("plan: a step without noise has no price in GDP.")
    return (size / Fraction(given)) ** 2


add_kind(
    Kind(
        "gaussian",
        Gaussian,
        _step,
        forms=(("noise_multiplier",), ("sigma", "sensitivity?"), ("mu",), ("rho",)),
        louder=_louder,
        grouped=_grouped,
        together=_together,
        mu_squared=_mu_squared,
        certified="line",
    )
)
