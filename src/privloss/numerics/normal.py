"""delta(eps) of two normal distributions at distance mu, in closed form (Cor. gauss_adp_exact):

    delta = Phi(-a) - e^eps Phi(-b) = phi(a) (R(a) - R(b)),    a = eps/mu - mu/2,  b = eps/mu + mu/2,

with R the Mills ratio. The difference cancels when mu is small; the error is bounded and, where it is too large to be
useful, the caller asks the contour engine, which does not suffer from it.
"""

from __future__ import annotations

import math

from scipy.special import erfcx, log_ndtr

from privloss.numerics.floats import UNIT

_ROOT_HALF = math.sqrt(0.5)
_ROOT_HALF_PI = math.sqrt(0.5 * math.pi)
_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


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
        gap = _mills(a) - _mills(b)
        relative = math.inf
        log_value = -math.inf
        if gap > 0:
            log_value = -0.5 * a * a - _LOG_ROOT_2PI + math.log(gap)
            # erfcx and the products: 16 units of R(a); R' = xR - 1 rises, is -4.48 at -1 and, by R >= x/(x^2+1), at
            # least -1/(1+x^2) for x > 0; where a `shift` might double that, the first term is too large to be of use
            slope = 4.5 if a < 0 else 2 / (1 + a * a)
            relative = (abs(a) + 1) * shift + (2 * slope * shift + 16 * UNIT * _mills(a)) / gap
            relative += 4 * UNIT * abs(log_value)
    if not relative < 0.5:
        return -math.inf, 0.0, math.inf
    return log_value - 2 * relative, min(log_value + 2 * relative, 0.0), relative


def _mills(x: float) -> float:
    return _ROOT_HALF_PI * float(erfcx(_ROOT_HALF * x))
