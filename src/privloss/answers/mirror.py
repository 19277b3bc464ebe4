"""One direction read from what was drawn for the other: an upper end of delta."""

from __future__ import annotations

import numpy as np

from privloss.losses.composed import ComposedLoss
from privloss.numerics.contour.found import DeltaRead, Solved
from privloss.numerics.contour.many import Mirrored
from privloss.numerics.floats import exp_up


def mirrored(loss: ComposedLoss, other: DeltaRead | Solved | None) -> Mirrored | None:
    """delta of `loss` from above, from what was drawn for the other direction."""
    readable = None if other is None else other.readable
    if readable is None or loss.delta_inf_bounds[1] > 0 or loss.reversed().delta_inf_bounds[1] > 0:
        return None
    return Mirrored(readable)


def mirrored_upper(loss: ComposedLoss, other: DeltaRead | Solved | None, eps: float) -> float:
    """The same at one eps; 1 where it is not known."""
    turned = mirrored(loss, other)
    return 1.0 if turned is None else exp_up(float(turned.log_bounds(np.array([eps]))[1][0]))
