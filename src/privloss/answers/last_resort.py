"""The last resort: the moments bound on losses trimmed by a share of delta above, a single event below. Always cheap,
never wrong, wide."""

from __future__ import annotations

import contextlib
import math

import numpy as np

from privloss.answers import moments
from privloss.losses.composed import ComposedLoss
from privloss.numerics.bound import Bound
from privloss.numerics.contour.solve import epsilon_bounds, moments_epsilon, moments_upper
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.solve import last_at_least

WIDE = "moments bound above, one step below"


def wide_epsilon(loss: ComposedLoss, level: tuple[float, float]) -> Bound:
    """The moments bound, on losses trimmed by a share of delta, and a single event."""
    upper = moments.epsilon_upper(loss.log_mgf_simple_upper, None, level[0])
    with contextlib.suppress(TooExpensive, OverflowError, ValueError):
        upper = min(upper, moments_epsilon(loss, level[0]))
    for share in (0.5, 0.02):
        trimmed = loss.rid_of(level[0] + math.log(share))
        if trimmed is not loss and trimmed.log_lost < level[0]:
            left = level[0] + math.log1p(-math.exp(trimmed.log_lost - level[0]))
            upper = min(upper, moments.epsilon_upper(trimmed.log_mgf_simple_upper, None, left))
    plain = loss.unsampled()
    if plain is not loss:
        with contextlib.suppress(TooExpensive):
            upper = min(upper, epsilon_bounds(plain, level, 1e-10).upper)
    upper = min(max(upper, 0.0), max(loss.largest, 0.0))
    lower = last_at_least(loss.log_test_lower, level[1], min(max(upper, 1e-300), 1e300))
    return Bound(min(lower, upper), upper, WIDE, ("the plan is beyond the exact engine",))


def wide_delta(loss: ComposedLoss, eps: float) -> tuple[float, float]:
    lower = loss.log_test_lower(eps)
    upper = min(moments.log_delta_upper(loss.log_mgf_simple_upper, None, eps), 0.0)
    for share in (0.5, 0.02):
        trimmed = loss.rid_of(max(lower, -700.0) + math.log(share))
        bound = moments.log_delta_upper(trimmed.log_mgf_simple_upper, None, eps)
        upper = min(upper, float(np.logaddexp(bound, trimmed.log_lost)))
    with contextlib.suppress(TooExpensive, OverflowError, ValueError):
        upper = min(upper, moments_upper(loss, eps))
    return min(lower, upper), upper
