"""delta(eps) of two normal distributions at distance mu, in closed form (Cor. gauss_adp_exact):

    delta = Phi(-a) - e^eps Phi(-b) = phi(a) (R(a) - R(b)),    a = eps/mu - mu/2,  b = eps/mu + mu/2,

with R the Mills ratio. The difference cancels when mu is small, and a series about the middle takes its place; the
error is bounded and, where it is too large to be useful, the caller asks the contour engine, which does not suffer from
it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from privloss.numerics.floats import UNIT, Real, lowered, raised

_ROOT_HALF = math.sqrt(0.5)
_ROOT_HALF_PI = math.sqrt(0.5 * math.pi)
_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_STEPS, _FINEST, _NOISE = 30, 1e-14, 1e-13  # of a search


def log_hockey_stick(eps: float, mu: float) -> tuple[float, float, float]:
    """log delta(eps) and bounds: (lower, upper, relative error of delta). mu > 0, any real eps."""
    ratio = eps / mu
    a, b = ratio - 0.5 * mu, ratio + 0.5 * mu
    shift = 4 * UNIT * (abs(ratio) + 0.5 * mu)  # rounding of a and b
    if a < -1.0:
        # Phi(-a) is not small; e^eps Phi(-b) = phi(a) R(b) stays below it
        first = math.exp(float(log_ndtr(-a)))
        second = math.exp(-0.5 * a * a - _LOG_ROOT_2PI) * _mills(b)
        value = first - second
        absolute = 32 * UNIT * first + shift * (1 + abs(a))
        log_value = math.log(value) if value > 0 else -math.inf
        relative = absolute / value if value > 0 else math.inf
    else:
        gap, wrong = _gap(a, b, mu, shift)
        relative = math.inf
        log_value = -math.inf
        if gap > 0:
            log_value = -0.5 * a * a - _LOG_ROOT_2PI + math.log(gap)
            relative = (abs(a) + 1) * shift + wrong / gap + 4 * UNIT * abs(log_value)
    if not relative < 0.5:
        return -math.inf, 0.0, math.inf
    return log_value - 2 * relative, min(log_value + 2 * relative, 0.0), relative


def hockey_sticks(eps: Real, mu: float) -> tuple[Real, Real]:
    """Bounds on delta at many real eps at once, without the series: where that cancels, they are far apart.

    Below zero by H_a = a H_(1/a) + 1 - a, as the pair is its own mirror image.
    """
    x = np.abs(eps)
    ratio = x / mu
    a, b = ratio - 0.5 * mu, ratio + 0.5 * mu
    shift = 4 * UNIT * (ratio + 0.5 * mu)
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        height, far = np.exp(-0.5 * a * a - _LOG_ROOT_2PI), _ROOT_HALF_PI * erfcx(_ROOT_HALF * b)
        near = _ROOT_HALF_PI * erfcx(_ROOT_HALF * np.maximum(a, -1.0))
        slope = np.where(a < 0, 4.5, 2 / (1 + a * a))
        tail = height * (near - far)
        doubt = tail * ((np.abs(a) + 1) * shift + 8 * UNIT * (2 + a * a)) + height * (
            2 * slope * shift + 16 * UNIT * near
        )
        first = ndtr(-a)
        value = np.where(a < -1, first - height * far, tail)
        doubt = np.where(a < -1, 32 * UNIT * first + shift * (1 + np.abs(a)), doubt)
        known = (np.abs(a) + 1) * shift < 0.1
        low = np.where(known, np.maximum(value - 2 * doubt, 0.0), 0.0)
        high = np.where(known, np.minimum(value + 2 * doubt + 1e-300, 1.0), 1.0)
        whole, share = -np.expm1(-x), np.exp(-x)
    return (
        np.where(eps < 0, lowered(whole + share * low, 8), low),
        np.where(eps < 0, np.minimum(raised(whole + share * high, 8), 1.0), high),
    )


def normal_epsilon(log_delta: float, mu: float) -> float:
    """About where delta(eps) is e^log_delta, by secants on its logarithm: for searching, no bound. 0 where that is not
    above 0, or not found."""
    here = _log_about(0.0, mu) - log_delta
    if not here > 0:
        return 0.0
    eps, new = 0.0, mu * (0.5 * mu + math.sqrt(max(-2 * log_delta, 1.0)))  # beyond it: Phi(-a) is less than delta
    for _ in range(_STEPS):
        there = _log_about(new, mu) - log_delta
        if there in (here, -math.inf):
            return new if there == here and abs(there) < _NOISE * abs(log_delta) else 0.0
        step = (new - eps) * there / (here - there)
        eps, here, new = new, there, max(new + step, 0.0)
        if abs(step) <= _FINEST * new:
            return new
    return 0.0


def _log_about(eps: float, mu: float) -> float:
    low, high, _ = log_hockey_stick(eps, mu)
    return 0.5 * (low + high)


def _gap(a: float, b: float, mu: float, shift: float) -> tuple[float, float]:
    """R(a) - R(b) for -1 <= a < b = a + mu, and a bound on its error, a and b being off by `shift`."""
    near, far = _mills(a), _mills(b)
    # erfcx and the products: 16 units of R(a); R' = xR - 1 rises, is -4.48 at -1 and, by R >= x/(x^2+1), at least
    # -1/(1+x^2) for x > 0; where a `shift` might double that, the answer is of no use anyway
    slope = 4.5 if a < 0 else 2 / (1 + a * a)
    plain = near - far, 2 * slope * shift + 16 * UNIT * near
    if mu > 0.5 or plain[1] < 1e-14 * plain[0]:
        return plain
    series = _series(0.5 * (a + b), mu, shift, a < 0)
    return series if series[1] < plain[1] else plain


def _series(x: float, mu: float, shift: float, left: bool) -> tuple[float, float]:
    """The same about the middle: -(mu R' + mu^3/24 R''' + mu^5/1920 R^(5)) - ..., where (-1)^n R^(n) is the integral of
    t^n e^(-xt - t^2/2) over t > 0, so that all terms have one sign, the seventh derivative is at most 48 (at -1: 1000)
    on the way, and R''/|R'|, the effect of a `shift`, at most 1.26 (at -1: 1.78)."""
    before, at = _mills(x), x * _mills(x) - 1
    errors, size = [16 * UNIT * before], abs(x)
    errors.append(size * errors[0] + 4 * UNIT * (1 + size * before))
    total, wrong = -mu * at, mu * errors[1]
    for n, factor in ((1, 0.0), (2, mu**3 / 24), (3, 0.0), (4, mu**5 / 1920)):  # R^(n+1) = x R^(n) + n R^(n-1)
        errors.append(size * errors[n] + n * errors[n - 1] + 4 * UNIT * (size * abs(at) + n * abs(before)))
        before, at = at, x * at + n * before
        total, wrong = total - factor * at, wrong + factor * errors[n + 1]
    rest = mu**7 / 322_560 * (1000 if left else 48)
    return total, 1.01 * (wrong + rest) + (2 * shift + 8 * UNIT) * abs(total)


def _mills(x: float) -> float:
    return _ROOT_HALF_PI * float(erfcx(_ROOT_HALF * x))
