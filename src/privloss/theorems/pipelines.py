"""Noisy SGD by two routes of the chapter, side by side: T steps of Gaussian noise on Poisson samples.

>>> steps = dict(noise_multiplier=1.1, rate=0.01, steps=10_000, delta=1e-6)
>>> round(through_approximate_dp(**steps), 3), round(through_renyi_dp(**steps), 3)
(5922.223, 6.23)

The exact answer there is 5.8069: `plan.epsilon(delta)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privloss.numerics import check
from privloss.numerics.floats import raised
from privloss.theorems import composition, conversion, group, subsampling
from privloss.theorems.gaussian_dp import gaussian_epsilon

ORDERS = (*range(2, 65), *range(72, 257, 8), 320, 384, 512, 768, 1024)


def through_approximate_dp(noise_multiplier: float, rate: float, steps: int, delta: float) -> float:
    """Section subsamp_composition: Cor. gauss_adp_exact_multi, then Thm. subsampling_adp, then advanced composition.

    delta = delta_2 + T p delta_0; the split is searched, every split is valid. Where eps_0 is small this costs one
    factor sqrt(log(T/delta)) too many. Where it is large, as with sigma = 1.1 above (eps_0 = 6 and more), the price is
    paid elsewhere: log(1 + p (e^eps_0 - 1)) is about log p + eps_0, not O(p eps_0).
    """
    sigma = check.number("noise_multiplier", noise_multiplier, low=0, above=True)
    p, count = check.number("rate", rate, low=0, high=1, above=True), check.count("steps", steps)
    target = check.number("delta", delta, low=0, high=1, above=True)

    def total(share: float) -> float:
        each = min(share * target / (count * p), 1.0)
        first = gaussian_epsilon(each, sensitivity=1.0, sigma=sigma).upper
        eps, slack = subsampling.approx(first, each, p)
        return float(composition.advanced_approx(eps, slack, delta=target, count=count))

    return min(total(share) for share in (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99))


def through_renyi_dp(
    noise_multiplier: float, rate: float, steps: int, delta: float, orders: Sequence[int] = ORDERS
) -> float:
    """Section use_subsampling: Lem. gauss_cdp, Thm. rdp_subsampling, Lem. rdp_composition, best conversion."""
    sigma = check.number("noise_multiplier", noise_multiplier, low=0, above=True)
    p, count = check.number("rate", rate, low=0, high=1), check.count("steps", steps)
    rho = conversion.gaussian_zcdp(1.0, sigma)
    curve = [raised(count * subsampling.renyi_poisson(a, p, lambda k: rho * k), 10) for a in orders]
    return conversion.renyi_to_epsilon(list(orders), curve, delta=delta)


def renyi_replacement(alpha: float, rate: float, rho: float) -> float:
    """Fixed-size samples, or replacement of a record, through group privacy (end of section use_subsampling).

    D_alpha(pP + (1-p)Q || pP' + (1-p)Q) by way of Q, where P and P' are each rho-close to Q (in both directions).
    """
    r = check.number("rho", rho, low=0)
    seen: dict[int, float] = {}

    def sampled(order: float) -> float:
        whole = math.ceil(order)
        if whole > 2_000:
            return math.inf
        if whole not in seen:
            seen[whole] = subsampling.renyi_poisson(whole, rate, lambda k: r * k)
        return seen[whole]

    bound = group.renyi_triangle(alpha, sampled, sampled)
    # sampling never hurts (quasi-convexity), and P and P' themselves are two steps apart
    return min(bound, float(np.asarray(alpha) * group.zcdp(r, people=2)))
