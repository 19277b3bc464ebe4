"""Confidence limits on a true and a false positive rate, and what they say of epsilon and of mu.

(eps, delta)-DP means P1[A] <= e^eps P0[A] + delta for every event and both orders; for an event and its complement this
gives eps >= ln((L1 - delta)/U0) and eps >= ln((1 - U0 - delta)/(1 - L1)) wherever TPR >= L1 and FPR <= U0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv, ndtri

from privloss.numerics.floats import Real

_OUT = 1e-12  # what rates are moved outwards by, at once; further where the forward function does not agree
_FURTHER = (0.0, 1e-10, 1e-8, 1e-6)
_CHECKED = 1 + 1e-11  # above the errors of SciPy's incomplete beta function (4e-12 at 10^8 trials, against balls)


def least_rate(hits: Any, trials: int, alpha: float) -> Real:
    """Clopper-Pearson: with probability >= 1 - alpha the rate is at least this."""
    k = np.asarray(hits, dtype=float)
    a, b = np.maximum(k, 1.0), trials - np.maximum(k, 1.0) + 1
    found = betaincinv(a, b, alpha) * (1 - _OUT)
    safe = np.zeros_like(found)  # P[Bin(n, rate) >= k] = I_rate(k, n - k + 1) must not exceed alpha
    for more in reversed(_FURTHER):
        tried = found * (1 - more)
        safe = np.where(betainc(a, b, tried) * _CHECKED <= alpha, tried, safe)
    return np.asarray(np.where(k > 0, safe, 0.0))


def most_rate(hits: Any, trials: int, alpha: float) -> Real:
    """Clopper-Pearson: with probability >= 1 - alpha the rate is at most this.

    By the complement of the beta function: 1 - alpha would lose the digits of a small alpha."""
    k = np.minimum(np.asarray(hits, dtype=float), trials - 1.0)
    found = betainccinv(k + 1, trials - k, alpha) * (1 + _OUT)
    safe = np.ones_like(found)  # P[Bin(n, rate) <= k] = 1 - I_rate(k + 1, n - k) must not exceed alpha
    for more in reversed(_FURTHER):
        tried = np.minimum(found * (1 + more), 1.0)
        safe = np.where(betaincc(k + 1, trials - k, tried) * _CHECKED <= alpha, tried, safe)
    return np.asarray(np.where(np.asarray(hits) < trials, safe, 1.0))


def remaining(delta: Any) -> Any:
    """1 - delta, rounded down. (1 - x - delta would lose its digits where delta is next to 1.)"""
    left = 1.0 - np.asarray(delta, dtype=float)
    return np.where(1.0 - left == delta, left, np.nextafter(left, 0.0))


def epsilon_of(least_true: Any, most_false: Any, delta: float) -> Real:
    """The larger of both inequalities, at least 0, rounded down."""
    low, high = np.asarray(least_true, dtype=float), np.asarray(most_false, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(low > delta, np.log(np.maximum(low - delta, 0.0)) - np.log(high), -np.inf)
        left = remaining(delta) - high
        second = np.where(left > 0, np.log(np.maximum(left, 0.0)) - np.log(1 - low), -np.inf)
    return np.asarray(np.maximum(np.maximum(first, second) * (1 - 1e-13) - 1e-15, 0.0))


def logit_of_power(base: float, power: float) -> float:
    """logit(base^power), at least 0, rounded down; by logarithms, which keep their digits where that is next to 1."""
    log = math.log(base) * power
    return max((log - math.log(-math.expm1(log))) * (1 - 1e-12), 0.0)


def mu_of(least_true: Any, most_false: Any) -> float:
    """mu-GDP gives TPR <= Phi(Phi^-1(FPR) + mu); a negative difference is no evidence. Of several: the largest."""
    low, high = np.asarray(least_true, dtype=float), np.asarray(most_false, dtype=float)
    apart = np.where((low > 0) & (high < 1), ndtri(np.maximum(low, 1e-300)) - ndtri(np.minimum(high, 1 - 1e-16)), 0.0)
    return max(float(apart.max()) * (1 - 1e-12), 0.0)


def gaussian_epsilon(mu: float, delta: float) -> float | None:
    """The epsilon of a Gaussian mechanism with this mu: a lower bound only if the mechanism is known to be one."""
    if mu <= 0 or delta <= 0:
        return None if delta <= 0 else 0.0
    from privloss.mechanisms.gdp import GDP

    found = GDP(mu).epsilon(delta).lower
    return found if math.isfinite(found) else None
