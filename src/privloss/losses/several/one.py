"""One use: the best test is "y > s" forward, "y < s" backward, whatever s; only the width depends on it.

Forward delta = sum p_k Q[s - a_k < y <= s] - (e^eps - 1) Q[y > s]; backward it is (1 - p_0 e^eps) Q[y < s] -
e^eps sum p_k N(a_k)[y < s]. For any s these are lower bounds, and at the s with log r(s) = eps they are delta. Where
log r is off by w instead, s is off by about w sigma^2/h, and what lies between differs by a share w of densities that
are at most 0.4/sigma: together at most 0.4 w^2 sigma/h, doubled below.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from privloss.losses.density.legendre import log_ends
from privloss.losses.several.hits import SeveralHits
from privloss.numerics.floats import UNIT


def one_use(law: SeveralHits, eps: float, back: bool) -> tuple[float, float]:
    """log of lower and upper bounds on delta(eps)."""
    target = -eps if back else eps
    if target <= law.log_least:  # r > e^target everywhere
        return (-math.inf, -math.inf) if back else log_ends(-math.expm1(eps), 8 * UNIT * (1 + math.exp(eps)))
    start = _threshold(law, target)
    sigma, grown = law.sigma, math.exp(min(eps, 700.0))
    if back:
        none = float(ndtr(start / sigma))
        hits = [p * float(ndtr((start - a) / sigma)) for p, a in zip(law.weights, law.shifts, strict=True)]
        value, size = none - grown * (law.missed * none + math.fsum(hits)), none
    else:
        none = float(ndtr(-start / sigma))
        hits = [p * _between(start, a, sigma) for p, a in zip(law.weights, law.shifts, strict=True)]
        value, size = math.fsum(hits) - math.expm1(min(eps, 700.0)) * none, math.fsum(hits)
    at = np.array([start])
    log_r = law.log_ratio(at)
    slope = max(float(law.slope(at, log_r)[0]), 1e-300)
    wobble = UNIT * float(law.drift(at, log_r)[0]) + 4e-15 * (1 + abs(eps) + slope * (2 + abs(start)) / sigma**2)
    error = (64 + law.slack + (start / sigma) ** 2 + 1 / sigma**2) * UNIT * size + wobble * wobble * sigma / slope
    return log_ends(value, error)


def _between(start: float, shift: float, sigma: float) -> float:
    """Q[start - shift < y <= start], a difference of the smaller tails."""
    low, high = (start - shift) / sigma, start / sigma
    if low > 0:
        return float(ndtr(-low) - ndtr(-high))
    return float(ndtr(high) - ndtr(low))


def _threshold(law: SeveralHits, target: float) -> float:
    """Where log r passes the target."""

    def excess(y: float) -> float:
        return float(law.log_ratio(np.array([y]))[0]) - target

    low, high = -60.0 * law.sigma, 2.0 + 60.0 * law.sigma + max(target, 0.0) * law.sigma**2
    if excess(low) >= 0:
        return low
    if excess(high) <= 0:
        return high
    return float(brentq(excess, low, high, xtol=1e-15 * (1 + high), rtol=1e-14))
