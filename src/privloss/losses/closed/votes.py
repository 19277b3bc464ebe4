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

_MIXED, _ROUNDED, _LEAST = 1e-12, 1e-14, 1e-9  # see `_coins`


def comparisons(mu: float, offsets: Sequence[float]) -> tuple[PrivacyLoss, ...]:
    """The even one, of a loss that is a randomised response, and those with these offsets."""
    even = lowered(_even(mu), 32)
    first = (AtomsLoss.one(even),) if 0 < even < math.inf else ()
    coins = [_coins(t, mu) for t in offsets]
    return (*first, *(TableLoss.one(from_vectors(p, q)) for p, q in filter(None, coins)))


def _even(mu: float) -> float:
    """log Phi(mu/2)/Phi(-mu/2), for small mu as 2 artanh(2 Phi(mu/2) - 1)."""
    if mu < 1:
        return 2 * math.atanh(math.erf(mu / math.sqrt(8)))
    return float(log_ndtr(0.5 * mu) - log_ndtr(-0.5 * mu))


def _coins(t: float, mu: float) -> tuple[list[float], list[float]] | None:
    """Both laws, their outcomes replaced by a fair coin so often that it makes up for rounding: a post-processing that
    turns outcomes with probabilities within 1e-15 / (p - q) of half the share of coins."""
    wins = [float(ndtr(0.5 * mu + t)), float(ndtr(t - 0.5 * mu))]
    apart = wins[0] - wins[1]
    if apart < _LEAST:
        return None
    share = max(_MIXED, _ROUNDED / apart)
    p, q = ([(1 - share) * float(ndtr(y)) + 0.5 * share for y in (x, -x)] for x in (0.5 * mu + t, t - 0.5 * mu))
    return p, q
