"""PATE's GNMax: the class with the most votes after Gaussian noise on every count.

One record changes one teacher's vote: two counts by one each, so all noisy counts are a Gaussian release with mu =
sqrt 2 / sigma, and the winner is a post-processing of it. With two classes the winner is a comparison of noise sqrt 2
sigma at a whole number of votes: it attains the profile where eps is a whole multiple of 1 / sigma^2, and nowhere else.

>>> GNMax(sigma=40.0) * 1000
Plan(1000 * GNMax(sigma=40.0))
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
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.noisy_threshold import NoisyThreshold
from privloss.mechanisms.parameters import number
from privloss.numerics import check
from privloss.numerics.floats import lowered

_MARGINS = 6  # whole votes on either side of an even count that are tried


@dataclass(frozen=True, repr=False)
class GNMax(Mechanism):
    """The winner among noisy counts of votes; `sigma` is the noise of one count, in votes."""

    kind: ClassVar[str] = "gnmax"
    sigma: float = number(high=1e150)


def _step(m: GNMax, adjacency: str) -> Step:
    theorem = "GNMax: a teacher's vote moves two counts by one, mu = sqrt 2 / sigma (Papernot et al. 2018)"
    about = (
        f"gnmax: one record under {adjacency} changes the vote of one teacher (records are given to teachers by a rule "
        "that ignores all others); below: two classes"
    )
    squared = 2 / m.sigma**2 if m.sigma > 1e-150 else math.inf
    if math.isinf(squared):
        return Step((theorem,), (about,), REVEALED_LOSS, mirrored=True)
    mu = lowered(math.sqrt(squared), 8)
    offsets = [] if mu > 8 else [0.5 * j * mu for j in range(1, _MARGINS + 1)]  # mu is two votes
    return Step(
        (theorem,),
        (about,),
        GaussianLoss(squared),
        mirrored=True,
        attained=comparisons(mu, [x for t in offsets for x in (t, -t)]) or (None,),
        poisson=lambda rate: dataclasses.replace(
            gaussian_hit(rate, lowered(m.sigma / math.sqrt(2), 8)), attained=(None,)
        ),
    )


def _mu_squared(m: GNMax, adjacency: str) -> Fraction:
    if m.sigma == 0:
        raise Unsupported("plan: a step without noise has no price in GDP.")
    return 2 / Fraction(m.sigma) ** 2


def confident_gnmax(*, queries: int, answered: int, screening_sigma: float, sigma: float) -> Plan:
    """Confident-GNMax: every query is screened, is the largest count plus noise above the threshold?, and those that
    pass are answered by GNMax. The number answered is part of the release; all screened queries are paid for.

    >>> confident_gnmax(queries=2000, answered=300, screening_sigma=150.0, sigma=40.0)
    Plan(2000 * NoisyThreshold(sigma=150.0) + 300 * GNMax(sigma=40.0))
    """
    asked, passed = check.count("queries", queries), check.count("answered", answered)
    if passed > asked:
        raise Unsupported(f"answered = {answered!r}: at most queries = {asked} can be answered.")
    return NoisyThreshold(screening_sigma) * asked + GNMax(sigma) * passed


add_kind(
    Kind(
        "gnmax",
        GNMax,
        _step,
        louder=lambda m, factor: GNMax(m.sigma * factor),
        grouped=lambda m, people, adjacency: GNMax(lowered(m.sigma / people, 2)),
        mu_squared=_mu_squared,
    )
)
