"""One comparison with Gaussian noise: which of two outcomes the noisy difference takes, a post-processing of the
Gaussian pair and hence a lower end for whatever releases it.

P wins with probability Phi(mu/2 + t) and Q with Phi(t - mu/2), at an offset t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import log_ndtr, ndtr

from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.atoms import AtomsLoss
from privloss.losses.table.build import from_vectors
from privloss.losses.table.loss import TableLoss
from privloss.numerics.floats import lowered

_MIXED = 1e-12  # both outcomes by a coin so often: a post-processing, far above rounding


def comparisons(mu: float, offsets: Sequence[float]) -> tuple[PrivacyLoss, ...]:
    """The even one, of a loss that is a randomised response, and those with these offsets."""
    even = lowered(float(log_ndtr(0.5 * mu) - log_ndtr(-0.5 * mu)), 32)
    first = (AtomsLoss.one(even),) if 0 < even < math.inf else ()
    return (*first, *(TableLoss.one(from_vectors(_coin(0.5 * mu + t), _coin(t - 0.5 * mu))) for t in offsets))


def _coin(x: float) -> list[float]:
    return [(1 - _MIXED) * float(ndtr(y)) + 0.5 * _MIXED for y in (x, -x)]
