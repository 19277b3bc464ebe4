"""The point where a decreasing function passes a level, returned on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable

LogBounds = Callable[[float], tuple[float, float]]


def decreasing_root(bounds: LogBounds, level: tuple[float, float], start: float) -> tuple[float, float]:
    """(lower, upper) around the x >= 0 where a decreasing function meets a level, both known as intervals of logs.

    `bounds(x)` = (log lower, log upper) of the function at x; `level` the same for the level. Returns upper with
    f(upper) <= level for certain, and lower with f(lower) >= level for certain, or 0.

    >>> decreasing_root(lambda x: (-x, -x), (-3.0, -3.0), 1.0)
    (3.0, 3.0)
    """
    low_level, high_level = level
    below = _first(lambda x: bounds(x)[1] <= low_level, start)
    if below == 0.0:
        return 0.0, 0.0
    beyond = _first(lambda x: not bounds(x)[0] >= high_level, start)
    return (math.nextafter(beyond, -math.inf) if beyond > 0 else 0.0), below


def last_at_least(log_lower: Callable[[float], float], level: float, start: float) -> float:
    """A large x >= 0 where a decreasing function is surely at least the level (0 if none is found).

    Any such x is a valid answer; `log_lower` need not be monotone itself, so we walk down from `start` and then bisect.
    """
    high = start
    for _ in range(120):
        low = 0.7 * high
        if log_lower(low) >= level:
            break
        high = low
    else:
        return 0.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if log_lower(middle) >= level else (low, middle)
    return low


def _first(true_from: Callable[[float], bool], start: float) -> float:
    """The first double x >= 0 from which a predicate holds (inf if none)."""
    if true_from(0.0):
        return 0.0
    high = max(start, 1e-300)
    while not true_from(high):
        high *= 4
        if math.isinf(high):
            return math.inf
    low = 0.0
    while True:
        # bisect on the exponent first, then on the value: never more than ~1100 + 60 halvings, usually 60
        middle = (
            math.sqrt(low) * math.sqrt(high) if 0 < low < high / 4 else high / 16 if low == 0 else 0.5 * (low + high)
        )
        if not low < middle < high or middle == 0.0:
            return high
        if true_from(middle):
            high = middle
        else:
            low = middle
