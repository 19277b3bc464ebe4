"""Outcomes of a few tables on a grid, where they are too many to be listed."""

from __future__ import annotations

import contextlib

from privloss.losses.composed import ComposedLoss
from privloss.numerics.bound import Bound
from privloss.numerics.contour.transform import TooExpensive

GRID = "sum over all outcomes, on a grid"
_FINEST = 1e-11  # tolerance below which a grid is too coarse
_GOOD = 1e-9  # relative width from which nothing else is asked
_FAIR = 1e-7  # the same for a few uses with hundreds of outcomes, where all else takes a second


def epsilon_on_grid(loss: ComposedLoss, level: tuple[float, float], tolerance: float) -> Bound | None:
    """epsilon of many blocks with few outcomes, or few with many; None where a grid is not the way."""
    if tolerance < _FINEST:
        return None
    on_grid = loss.on_grid or loss.few_on_grid(level[0])
    ends = None
    with contextlib.suppress(TooExpensive):
        ends = None if on_grid is None else on_grid.epsilon(level, tolerance)
    return None if ends is None else Bound(max(ends[0], 0.0), max(ends[1], 0.0), GRID)


def enough(loss: ComposedLoss, found: Bound, tolerance: float) -> bool:
    """Whether it is so narrow that nothing else needs to be asked."""
    return found.relative_width < max(_GOOD if loss.on_grid is not None else _FAIR, tolerance)


def delta_on_grid(loss: ComposedLoss, eps: float, tolerance: float) -> tuple[float, float] | None:
    """log of bounds on delta of finite losses, likewise."""
    if tolerance < _FINEST:
        return None
    on_grid = loss.on_grid or loss.few_on_grid(loss.log_test_lower(eps))
    with contextlib.suppress(TooExpensive):
        return None if on_grid is None else on_grid.delta(eps, tolerance)
    return None
