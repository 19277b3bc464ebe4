"""A box of which only Gaussian DP is known.

>>> GDP(1.0)
GDP(mu=1.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.samplers.fixed_size import gaussian_fixed_size
from privloss.losses.samplers.poisson import gaussian_hit
from privloss.losses.step import Step
from privloss.mechanisms import noise
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number
from privloss.numerics.floats import rounded_up


@dataclass(frozen=True, repr=False)
class GDP(Mechanism):
    """Any mu-Gaussian-DP mechanism."""

    kind: ClassVar[str] = "gdp"
    mu: float = number()


def _step(m: GDP, adjacency: str) -> Step:
    theorem = "mu-GDP is dominated by N(0,1) against N(mu,1) (Dong, Roth, Su 2022)"
    assumption = f"gdp: the guarantee of the box holds under {adjacency}"
    if m.mu == 0:
        return Step(
            (theorem,), (assumption,), mirrored=True, poisson=lambda rate: Step((), (), mirrored=True),
            fixed_size=lambda rate, text: Step((theorem,), (f"{assumption}; {text}",), mirrored=True),
        )  # fmt: skip
    distances = noise.distances(None, 1 / m.mu, 1.0, adjacency)
    return Step(
        (theorem,),
        (assumption,),
        GaussianLoss(m.mu**2),
        mirrored=True,
        poisson=lambda rate: gaussian_hit(rate, 1 / m.mu),
        fixed_size=lambda rate, text: gaussian_fixed_size(distances, rate, text, adjacency),
        normal=m.mu,
    )


add_kind(
    Kind(
        "gdp",
        GDP,
        _step,
        louder=lambda m, factor: GDP(m.mu / factor),
        grouped=lambda m, people, adjacency: GDP(float(rounded_up(people * m.mu, 1))),
        mu_squared=lambda m, adjacency: Fraction(m.mu) ** 2,
        certified="line",
    )
)
