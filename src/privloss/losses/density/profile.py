"""One use of a mechanism on a Poisson sample, reduced to the mechanism itself.

P against Q: delta_q(eps) = q delta(eps'), e^eps' = 1 + (e^eps - 1)/q. Q against P: with b = 1 - e^eps (1-q) > 0,
delta_q(eps) = b delta(eps'), e^eps' = q e^eps / b, and 0 if b <= 0 (pairs with the same profile in both directions).

Only finite losses are counted. Outputs that one side alone produces, `revealed` of its mass, stay infinite in the first
direction (q of them); in the second the sample may lack the record, so they have the finite loss -log(1-q).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privloss.numerics.floats import UNIT, lowered, raised, widened

LogBounds = tuple[float, float]


def sampled_hockey_stick(
    q: float, plain: Callable[[float], LogBounds], eps: float, flipped: bool, revealed: float = 0.0
) -> LogBounds:
    """log of lower and upper bounds on delta_q(eps), from those on delta."""
    if flipped:
        exponent = eps + math.log1p(-q)
        wobble = 16 * UNIT * (1 + abs(eps) + abs(math.log1p(-q)))
        if exponent > wobble:
            return -math.inf, -math.inf
        share = -math.expm1(exponent)
        if share < 1e6 * wobble:  # nothing certain but delta <= share
            return -math.inf, math.log(max(share, 0.0) + 2 * wobble)
        shifted = math.log(q) + eps - math.log(share)
        wobble = 16 * UNIT * (1 + (1 + abs(eps) + abs(math.log(q))) / share)
    else:
        if eps <= math.log1p(-q):  # every outcome has r > e^eps
            share = -math.expm1(eps) - q * revealed  # all of the finite losses
            return widened(math.log(share), 4, 1.0)
        share = q
        # e^eps' = 1 + rise; a relative error of rise moves eps' by rise / (1 + rise)
        rise = math.expm1(min(eps, 600.0)) / q
        shifted = math.log1p(rise) if eps <= 600 else eps - math.log(q)
        wobble = 8 * UNIT * (1 + abs(shifted) + abs(eps) + abs(rise) / (1 + rise))
    low, high = plain(shifted + wobble)[0], plain(shifted - wobble)[1]
    if flipped and revealed > 0:
        seen = math.log(revealed)
        low = lowered(float(np.logaddexp(low, seen)), 64, 2 + abs(seen))
        high = raised(float(np.logaddexp(high, seen)), 64, 2 + abs(seen))
    size = 1 + abs(math.log(share)) + ((2 + abs(eps)) / share if flipped else 0.0)
    return lowered(low + math.log(share), 8, size), raised(high + math.log(share), 8, size)
