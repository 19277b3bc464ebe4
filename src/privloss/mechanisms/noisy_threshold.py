"""Whether a number plus Gaussian noise is above a threshold that ignores the data, and nothing else: the screening of
Confident-GNMax, one question of a dashboard.

A post-processing of the Gaussian release. At one use the best test of a Gaussian pair is such a comparison, so delta is
attained at every epsilon, each by another number; many uses are bounded below by numbers half-way.

>>> NoisyThreshold(sigma=5.0, sensitivity=2.0)
NoisyThreshold(sigma=5.0, sensitivity=2.0)
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privloss.errors import Unsupported
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.closed.votes import comparisons
from privloss.losses.samplers.poisson import gaussian_hit
from privloss.losses.step import REVEALED_LOSS, Step
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number
from privloss.numerics.floats import lowered, raised

_LEAST = 1e-150


@dataclass(frozen=True, repr=False)
class NoisyThreshold(Mechanism):
    """Above or below, after N(0, sigma^2) noise; `sensitivity` under the plan's adjacency."""

    kind: ClassVar[str] = "noisy-threshold"
    sigma: float = number()
    sensitivity: float = number(above=True, default=1.0, plain=1.0)


def _step(m: NoisyThreshold, adjacency: str) -> Step:
    theorem = "one comparison with Gaussian noise: a post-processing of the Gaussian pair, its best test at one epsilon"
    about = f"noisy-threshold: sensitivity {m.sensitivity:g} under {adjacency}, sigma = {m.sigma:g}; a fixed threshold"
    mu = m.sensitivity / m.sigma if m.sigma > 0 else math.inf
    if 0 < mu < _LEAST:
        raise Unsupported(f"{m!r}: noise / sensitivity is supported up to {1 / _LEAST:g}.")
    if math.isinf(mu * mu):
        return Step((theorem,), (about,), REVEALED_LOSS, mirrored=True)
    return Step(
        (theorem,),
        (about,),
        GaussianLoss(mu * mu),
        mirrored=True,
        attained=comparisons(lowered(mu, 4), ()) or (None,),
        attained_pointwise=True,
        poisson=lambda rate: dataclasses.replace(gaussian_hit(rate, lowered(1 / mu, 4)), attained=(None,)),
    )


def _mu_squared(m: NoisyThreshold, adjacency: str) -> Fraction:
    if m.sigma == 0:
        raise Unsupported("plan: a step without noise has no price in GDP.")
    return (Fraction(m.sensitivity) / Fraction(m.sigma)) ** 2


add_kind(
    Kind(
        "noisy-threshold",
        NoisyThreshold,
        _step,
        louder=lambda m, factor: dataclasses.replace(m, sigma=m.sigma * factor),
        grouped=lambda m, people, adjacency: dataclasses.replace(m, sensitivity=raised(people * m.sensitivity, 2)),
        mu_squared=_mu_squared,
    )
)
