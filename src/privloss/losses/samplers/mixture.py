"""A record that moves Gaussian noise by a random distance: sum p_i N(c_i) against N(0), all c_i >= 0.

The likelihood ratio rises with y, so the worst events are half-lines, whose probability grows with every c_i: the pair
dominates all smaller distances, and (Kahane's inequality) vectors of norm at most c_i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.closed.point import PointLoss
from privloss.losses.density.normal import FURTHEST, NormalPair, normal_table
from privloss.losses.samplers.poisson import gaussian_hit
from privloss.losses.step import REVEALED_LOSS, Step
from privloss.losses.table.hits import Hits
from privloss.losses.table.loss import TableLoss
from privloss.numerics.floats import lowered, raised

_NEAREST = 1e-150
_RAREST = 1e-300  # weights
_SHOWN = 1e-6  # a miss rarer than this is lost among roundings


def normal_mixture(hits: Sequence[tuple[float, float]], missed: float, theorem: str, about: str) -> Step:
    """Probabilities and distances, in units of the noise, and the probability that nothing moves."""
    merged: dict[float, float] = {}
    for weight, distance in hits:
        merged[distance] = merged.get(distance, 0.0) + weight
    kept: Hits = tuple((w, d) for d, w in sorted(merged.items()) if w > 0)  # by distance
    said = Step((theorem,), (about,), null_adds_nothing=True)
    if not kept:
        return Step((theorem,), (about,), mirrored=True, null_adds_nothing=True)
    if kept[0][1] < _NEAREST:
        raise Unsupported(f"{about}: distances below {_NEAREST:g} of the noise are not supported.")
    if kept[-1][1] == math.inf:
        return _revealed(said, kept, missed)
    if len(kept) == 1 and missed > 0:
        return _with(said, gaussian_hit(kept[0][0], 1 / kept[0][1]).loss)
    if len(kept) == 1:
        return _with(said, GaussianLoss(kept[0][1] ** 2), mirrored=True)
    if kept[-1][1] > FURTHEST or missed < _SHOWN or min(w for w, _ in kept) < _RAREST:
        return _unseen(said, kept)
    pair = NormalPair(kept, missed=missed)
    return _with(said, TableLoss.one(normal_table([(1.0, pair)], slack=16.0 * len(hits))))


def _with(said: Step, loss: PrivacyLoss | None, mirrored: bool = False, below: tuple[PrivacyLoss, ...] = ()) -> Step:
    return Step(said.theorems, said.assumptions, loss, mirrored, below, null_adds_nothing=True)


def _revealed(said: Step, hits: Hits, missed: float) -> Step:
    """No noise: the record is seen whenever anything moves."""
    if missed == 0:
        return _with(said, REVEALED_LOSS, mirrored=True)
    return _with(said, PointLoss(math.log(missed), math.log(missed), math.fsum(w for w, _ in hits)))


def _unseen(said: Step, hits: Hits) -> Step:
    """Too steep to draw, hardly ever missed, or too rare: all at the largest distance above, the smallest below."""
    nearest, share = hits[0][1], min(lowered(math.fsum(w for w, _ in hits), 4), 1.0)
    below = gaussian_hit(share, raised(1 / nearest, 2)).loss
    return _with(said, GaussianLoss(raised(hits[-1][1] ** 2, 2)), True, () if below is None else (below,))
