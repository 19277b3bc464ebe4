"""Several people at once: a group on a Poisson sample."""

from __future__ import annotations

import math

from privloss.adjacency import REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.density.normal import FURTHEST, NormalPair, normal_table
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.samplers.poisson import poisson
from privloss.losses.samplers.setting import Setting, distance_text
from privloss.losses.step import Step
from privloss.losses.table.loss import TableLoss

_MOST_PEOPLE = 900


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
    # too steep to draw, or a miss so rare that rounding hides it: without sampling
    if people * add > FURTHEST or people * math.log1p(-rate) < math.log(1e-6) or people > _MOST_PEOPLE:
        hit = -math.expm1(people * math.log1p(-rate))
        found = Step((theorem,), (about,), plain, mirrored=True, attained=(GaussianMixtureLoss.one(hit, 1 / add),))
        return at.with_null(step, found)
    hits = ((math.comb(people, k) * rate**k * (1 - rate) ** (people - k), k * add) for k in range(1, people + 1))
    pair = NormalPair(tuple((w, d) for w, d in hits if w > 1e-300), missed=(1 - rate) ** people)
    table = normal_table([(1.0, pair)], slack=16.0 * people)
    return at.with_null(step, Step((theorem,), (about,), TableLoss.one(table)))
