"""Limits on a rate that hold at all thresholds of one sample at once.

FPR(t) <= U_(fp(t)+1), the order statistics of n uniforms (ties only help: couple through a randomised transform). With
c_i = BetaInv(1 - a; i, n - i + 1), the chance that U_(i) <= c_i for all i is exact: U_(i) <= c_i means that N(c_i), the
number of uniforms below c_i, is at least i. As a Poisson process conditioned on n points, N is followed from c_(i-1) to
c_i by a convolution with Poisson(n (c_i - c_(i-1))), and counts below i are dropped. `local_level` is the largest a
(found by bisection, the safe end) for which that chance is at least 1 - alpha. Clopper-Pearson limits at level a then
hold everywhere.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import betainccinv, gammaln

_HALVINGS = 36
_NOTHING = 1e-18  # of the mass of a kernel
MOST = 20_000


def crossing(n: int, local: float) -> float:
    """An upper bound on the chance that some U_(i) exceeds c_i."""
    i = np.arange(1, n + 1, dtype=float)
    ends = betainccinv(i, n - i + 1, local)
    steps = n * np.diff(np.concatenate([[0.0], ends]))
    mass = np.zeros(n + 1)
    mass[0] = 1.0
    scale = 0.0  # log of what mass was divided by
    top = 0  # the largest count that carries mass
    for k, step in enumerate(steps, 1):
        kernel = _poisson(max(float(step), 0.0), n - k + 1)
        low = k - 1
        grown = np.convolve(mass[low : top + 1], kernel)[: n - low + 1]
        top = low + len(grown) - 1
        mass[low : top + 1] = grown
        mass[low] = 0.0  # fewer than k below c_k
        if not k % 64:
            total = float(mass[k : top + 1].sum())
            mass[k : top + 1] /= total
            scale += math.log(total)
    counts = np.arange(n + 1.0)
    left = n * (1 - float(ends[-1]))
    with np.errstate(divide="ignore"):
        last = (
            -left + (n - counts) * math.log(left) - gammaln(n - counts + 1)
            if left > 0
            else np.where(counts == n, 0, -np.inf)
        )
    whole = -n + n * math.log(n) - math.lgamma(n + 1)
    inside = float(np.sum(mass * np.exp(last + scale - whole)))
    return min(max(1 - inside * (1 - 1e-9), 0.0), 1.0)  # positive terms, a few roundings each


def _poisson(mean: float, most: int) -> np.ndarray:
    """Its probabilities up to where they no longer matter: leaving some out only lowers the chance inside."""
    count = min(int(mean + 12 * math.sqrt(mean) + 30), most)
    k = np.arange(count + 1.0)
    log = k * math.log(mean) - mean - gammaln(k + 1) if mean > 0 else np.where(k == 0, 0.0, -np.inf)
    found = np.exp(log)
    return found[: max(int(np.count_nonzero(found > _NOTHING)), 1)] if mean < 1 else found


@lru_cache(maxsize=64)
def local_level(n: int, alpha: float) -> float:
    """The level at which Clopper-Pearson limits hold at all thresholds with probability at least 1 - alpha.

    >>> round(local_level(50, 0.025), 6)
    0.001474
    """
    low, high = math.log(alpha / n), math.log(alpha)  # Bonferroni, and a single threshold
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if crossing(n, math.exp(middle)) <= alpha else (low, middle)
        if high - low < 1e-4:
            break
    return math.exp(low)
