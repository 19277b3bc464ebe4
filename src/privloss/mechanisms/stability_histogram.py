"""Counts of whatever occurs, of a domain that nobody listed: noise on every count above 0, and only noisy counts above
a threshold are shown.

A record is in at most `bins` of the bins, one each. A bin that others are in too is a release of sensitivity one; one
that it is in alone is shown with probability p = P[1 + noise > threshold], and never without it. Neighbours differ in
`bins` bins of one sort or the other: the product of as many pairs of both sorts dominates. The record that is nowhere
alone, beside large counts, attains the first, the one that is everywhere alone the second.

>>> StabilityHistogram(scale=2.0, threshold=40.0).delta(0.5).upper < 2e-9
True
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from privloss.adjacency import REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.closed.laplace import LaplaceLoss
from privloss.losses.closed.point import PointLoss
from privloss.losses.composed import ComposedLoss
from privloss.losses.step import REVEALED_LOSS, Step
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, whole, word
from privloss.numerics.floats import lowered, raised

GAUSSIAN, LAPLACE = "gaussian", "laplace"
_FARTHEST = 1e4  # scales from which on no tail is a double


@dataclass(frozen=True, repr=False)
class StabilityHistogram(Mechanism):
    """`scale` of the noise of one count (sigma for Gaussian noise), in records."""

    kind: ClassVar[str] = "stability-histogram"
    scale: float = number(above=True, high=1e150)
    threshold: float = number(low=1.0)
    bins: int = whole(default=1, plain=1, description="in which one record is counted, at most")
    noise: str = word((LAPLACE, GAUSSIAN), LAPLACE)


def _shown(m: StabilityHistogram) -> float:
    """The probability that a count of one is shown, to a few roundings."""
    beyond = (m.threshold - 1) / m.scale
    return float(ndtr(-beyond)) if m.noise == GAUSSIAN else 0.5 * math.exp(-beyond)


def _step(m: StabilityHistogram, adjacency: str) -> Step:
    if adjacency == REPLACE_ONE:
        raise Unsupported(f"{m!r} under {adjacency}: a replaced record is two; ask under add-remove or zero-out.")
    theorem = "stability histogram: counts with the record, or counts that only it has, product of both pairs"
    about = (
        f"stability-histogram: a record is counted once in each of at most {m.bins} bins, and leaves them as if "
        f"it were absent under {adjacency}; continuous {m.noise} noise"
    )
    ratio = 1 / m.scale
    counts: PrivacyLoss = LaplaceLoss(np.array([raised(ratio, 2)]), np.ones(1)).times(m.bins)
    fewer: PrivacyLoss = LaplaceLoss(np.array([lowered(ratio, 2)]), np.ones(1)).times(m.bins)
    if m.noise == GAUSSIAN:
        counts, fewer = (
            GaussianLoss(raised(m.bins * ratio * ratio, 8)),
            GaussianLoss(lowered(m.bins * ratio * ratio, 8)),
        )
    beyond = min((m.threshold - 1) / m.scale, _FARTHEST)
    units = 64 + 4 * beyond * (1 + beyond)  # of a tail as far out as that
    p, least = (min(max(end(_shown(m), units), 0.0), 0.5) for end in (raised, lowered))
    if p == 0:
        p = 5e-324
    alone = PointLoss(math.log1p(-p), math.log1p(-p), p).times(m.bins)
    seen: tuple[PrivacyLoss, ...] = ()
    if least > 0:
        seen = (PointLoss(math.log1p(-least), math.log1p(-least), least).times(m.bins),)
    whole = ComposedLoss.of([alone, counts]) if math.isfinite(ratio * ratio) else REVEALED_LOSS
    return Step((theorem,), (about,), whole, attained=(fewer, *seen), null_adds_nothing=True)


add_kind(
    Kind(
        "stability-histogram",
        StabilityHistogram,
        _step,
        louder=lambda m, factor: dataclasses.replace(
            m, scale=m.scale * factor, threshold=1 + (m.threshold - 1) * factor
        ),
        not_on_a_sample="the threshold counts records of the sample; no pair is proven for that.",
    )
)
