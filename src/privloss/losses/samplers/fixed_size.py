"""Batches of fixed size: m different records out of n, uniform, fresh at every step; n is public."""

from __future__ import annotations

import math
from dataclasses import replace

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.closed.point import PointLoss
from privloss.losses.density.normal import FURTHEST, NormalPair, normal_table
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.samplers.setting import Setting, distance_text
from privloss.losses.step import Distances, NoPair, Step
from privloss.losses.table.hits import binned, shown_hits
from privloss.losses.table.loss import TableLoss

_MOSTLY = 0.9  # records that are in the batch more often: as if always; and so are, where nothing is gained,
_SOMETIMES, _OFTEN = 0.02, 0.2  # those that are in it less often, compared with a null record or with another one
SYMMETRIC = (
    "symmetric pair of (1-q) N(0) + q N(s) against N(0): joint convexity bounds both orders of the neighbours, and one "
    "pair that dominates both composes (Balle, Barthe, Gaboardi 2018; Zhu, Dong, Wang 2022, Thm. 10, 11)"
)


def fixed_size(step: Step, n: int, m: int, at: Setting) -> Step:
    """The symmetric pair; under add-remove a Poisson sample with the distance of a replacement."""
    text = f"sampler: fixed size, {m} of {n} records without replacement, afresh at every step; n public"
    if m == n:
        if at.adjacency == ADD_REMOVE:
            raise Unsupported(f"{at.sampled} under add-remove: a neighbour with n - 1 records has no batch of m = n.")
        return replace(step, theorems=("the whole data: no sampling", *step.theorems)).assuming(text)
    if step.distances is not None:
        return gaussian_fixed_size(step.distances, m / n, text, at.adjacency)
    if step.fixed_size is not None:
        return step.fixed_size(m / n, text)
    if at.adjacency != REPLACE_ONE:
        raise Unsupported(
            f"{at.sampled} under {at.adjacency}: the bound needs the guarantee for replaced records; "
            "ask under replace-one."
        )
    try:
        if step.symmetric is None:
            raise NoPair
        found = step.symmetric(m / n)
    except NoPair:
        raise Unsupported(f"{at.inner}: batches of fixed size are not supported for this mechanism.") from None
    return found.saying(SYMMETRIC, f"{at.inner}: its guarantee holds under replace-one; {text}")


def gaussian_fixed_size(distances: Distances, rate: float, text: str, adjacency: str) -> Step:
    """Gaussian noise, or what it dominates."""
    s = distances.replace
    if math.isinf(s):
        shown = math.log1p(-rate) if adjacency == ADD_REMOVE else 0.0  # what a miss tells
        return Step((SYMMETRIC,), (text,), PointLoss(math.log1p(-rate), shown, rate), mirrored=shown == 0)
    about = f"gaussian: {distance_text(s)}; {text}"
    if adjacency == ADD_REMOVE:
        # with n records: without the record (probability 1 - m/n) the batch is that of the n - 1 others; with it, one
        # of the others is replaced. So the pair is that of a Poisson sample with the distance of a replacement
        theorem = (
            "fixed size under add-remove: (1-q) N(0) + q N(s) against N(0), s for a replacement, q = m/n with n the "
            "larger size, both directions (Zhu, Dong, Wang 2022, Thm. 11)"
        )
        return Step((theorem,), (about,), GaussianMixtureLoss.one(rate, 1 / s))
    zeroed = adjacency != REPLACE_ONE and distances.add is not None
    plain = _shown(rate, distances.add or s, _SOMETIMES) if zeroed else _shown(rate, s, _OFTEN)
    bound: PrivacyLoss = GaussianLoss(s**2)
    if s <= FURTHEST:
        bound = TableLoss.one(normal_table([(1.0, NormalPair(((rate, s),), folded=True))]))
    below: PrivacyLoss = GaussianMixtureLoss.one(rate, 1 / s)
    if adjacency != REPLACE_ONE:
        # the record moves the sum by 2, its null record by 1: it takes the place of another that contributes -1
        below = TableLoss.one(binned(((rate, s),), ((rate, distances.add or s),)))
    theorem = f"fixed size under {adjacency}: {SYMMETRIC}; lower end: all other records alike, the pair itself"
    return Step((theorem,), (about,), bound, mirrored=True, attained=(below,), without_sampler=plain)


def _shown(rate: float, apart: float, least: float) -> Step:
    """A second bound: whether the record is in the batch is revealed, and then it is compared with what is there in its
    place, another record or a null record."""
    told = least < rate <= _MOSTLY and apart <= FURTHEST
    loss: PrivacyLoss = TableLoss.one(shown_hits(((rate, apart),))) if told else GaussianLoss(apart**2)
    return Step((), (), loss, mirrored=True)
