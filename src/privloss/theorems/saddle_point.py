"""The saddle-point approximation of delta and epsilon: a fast estimate, never a bound (Alghamdi et al. 2022).

delta(eps) is an integral of e^(F(z)) over a vertical line, F(z) = K(z) - eps z - log z - log(1+z). At the real t > 0
where F'(t) = 0 the first term of the method of steepest descent is e^(F(t)) / sqrt(2 pi F''(t)).

>>> import privloss as pl
>>> plan = pl.Gaussian(noise_multiplier=1.1).poisson(0.01) * 10_000
>>> round(epsilon(plan, 1e-6), 3), round(plan.epsilon(1e-6).upper, 3)
(5.806, 5.807)

`plan.epsilon` reads the whole integral, in milliseconds and with proven ends; this is here to compare with.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from privloss.errors import Unsupported
from privloss.losses.composed import ComposedLoss
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics import check

_LEAST, _MOST = 1e-8, 1e8  # the t that are looked at
_FURTHEST = 1e4  # the largest epsilon that is looked for


def delta(plan: Plan | Mechanism, epsilon: float) -> float:
    """An estimate of delta(epsilon): the larger of both directions."""
    eps = check.number("epsilon", epsilon, low=0)
    return min(max(_delta(loss, eps) for loss in _directions(plan)), 1.0)


def epsilon(plan: Plan | Mechanism, delta: float) -> float:
    """An estimate of epsilon(delta)."""
    target = check.number("delta", delta, low=0, high=1, above=True)
    both = _directions(plan)

    def excess(eps: float) -> float:
        return math.log(max(max(_delta(loss, eps) for loss in both), 1e-300)) - math.log(target)

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
        if high > _FURTHEST:
            raise Unsupported(f"delta = {delta!r}: an infinite loss is more likely, or epsilon is above 10^4.")
    return float(brentq(excess, 0.0, high, xtol=1e-10, rtol=1e-10))


def _directions(plan: Plan | Mechanism) -> list[ComposedLoss]:
    worst = worst_neighbours(plan.as_plan())
    if not worst.curve.empty:
        raise Unsupported("a box of which only a Renyi curve is known has no loss to approximate.")
    return [worst.loss] if worst.loss.symmetric else [worst.loss, worst.loss.reversed()]


def _delta(loss: ComposedLoss, eps: float) -> float:
    if not loss.parts:
        return 0.0
    lost = loss.delta_inf
    if eps >= loss.largest:
        return lost

    def slope(log_t: float) -> float:
        t = math.exp(log_t)
        return loss.moments(t)[1] - eps - 1 / t - 1 / (1 + t)

    low, high = math.log(_LEAST), 0.0
    top = math.log(min(_MOST, loss.tilt_limit))
    while slope(high) < 0 and high < top:
        high = min(high + 1.0, top)
    if slope(high) < 0:
        return lost
    t = math.exp(float(brentq(slope, low, high, xtol=1e-10)))
    k, _, curvature = loss.moments(t)
    exponent = k - eps * t - math.log(t) - math.log1p(t)
    return lost + math.exp(min(exponent, 0.0)) / math.sqrt(2 * math.pi * (curvature + t**-2 + (1 + t) ** -2))
