"""Several people at once: a group on a Poisson sample."""

from __future__ import annotations

import math
from fractions import Fraction

from privloss.adjacency import REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.samplers.poisson import poisson
from privloss.losses.samplers.setting import Setting, distance_text
from privloss.losses.several.hits import SeveralHits
from privloss.losses.several.loss import SeveralHitsLoss
from privloss.losses.step import Step

_MOST_PEOPLE = 900
_FURTHEST = 40.0  # the largest distance of all of them, in units of the noise


def poisson_group(step: Step, rate: float, people: int, at: Setting) -> Step:
    """K ~ Bin(people, q) of the group are sampled: sum P[K = k] N(k s) against N(0). For any contributions an event of
    probability p without the group has at most the probability that a half-space gets from contributions all alike."""
    distances = at.distances(step)
    if at.adjacency == REPLACE_ONE or distances.add is None:
        raise Unsupported(
            f"{at.sampled} under {at.adjacency}: groups on a sample are supported under add-remove and zero-out."
        )
    add = distances.add
    if rate == 0:
        return poisson(step, rate, at)
    theorem = (
        "group on a Poisson sample: sum P[K = k] N(k s) against N(0), K binomial, both directions (Neyman-Pearson; "
        "docs/samplers.md)"
    )
    about = (
        f"gaussian: {distance_text(add)} for each of {people} people; sampler: Poisson, every record independently "
        f"with probability {rate!r} at every step"
    )
    plain = GaussianLoss((people * add) ** 2)
    if rate == 1:
        return Step((theorem,), (about,), plain, mirrored=True)
    # a miss so rare that rounding hides it, or too many to draw: without sampling
    if people * math.log1p(-rate) < math.log(1e-6) or people > _MOST_PEOPLE or people * add > _FURTHEST:
        hit = -math.expm1(people * math.log1p(-rate))
        found = Step((theorem,), (about,), plain, mirrored=True, attained=(GaussianMixtureLoss.one(hit, 1 / add),))
        return at.with_null(step, found)
    q = Fraction(rate)
    hits = ((float(math.comb(people, k) * q**k * (1 - q) ** (people - k)), k * add) for k in range(1, people + 1))
    law = SeveralHits.of(tuple((w, d) for w, d in hits if w > 1e-300), float((1 - q) ** people))
    return at.with_null(step, Step((theorem,), (about,), SeveralHitsLoss.one(law)))
