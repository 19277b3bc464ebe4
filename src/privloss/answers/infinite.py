"""What infinite losses add to delta, and what is left of a delta for finite ones."""

from __future__ import annotations

import math

from privloss.losses.composed import ComposedLoss
from privloss.numerics.floats import exp_down, exp_up, lowered, raised


def finite_level(loss: ComposedLoss, delta: float) -> tuple[float, float] | None:
    """Logs of bounds on delta - delta_inf (-inf for "perhaps nothing left"); None if that is surely negative."""
    low_inf, high_inf = loss.delta_inf_bounds
    if delta < low_inf or low_inf == 1:
        return None
    # a difference of two doubles is rounded once, and its sign is exact
    low, high = lowered(delta - high_inf, 2), raised(delta - low_inf, 2)
    log_low = math.log(low) if low > 0 else -math.inf
    log_high = math.log(high) if high > 0 else -math.inf
    return lowered(log_low, 2), raised(log_high, 2)


def with_infinite(loss: ComposedLoss, logs: tuple[float, float]) -> tuple[float, float]:
    """Bounds on delta from the logs of bounds on delta - delta_inf."""
    low_inf, high_inf = loss.delta_inf_bounds
    lower, upper = exp_down(logs[0]), exp_up(logs[1])
    lower = lowered(lower + low_inf, 2) if lower > 0 and low_inf > 0 else max(lower, low_inf)
    upper = raised(upper + high_inf, 2) if upper > 0 and high_inf > 0 else max(upper, high_inf)
    return min(lower, 1.0), min(upper, 1.0)
