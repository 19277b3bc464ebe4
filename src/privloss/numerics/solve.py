"""The point where a decreasing function passes a level, returned on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from scipy.optimize import brentq

LogBounds = Callable[[float], tuple[float, float]]
_NEAR = 1.4  # by which a bracket grows at first
_FAR = 20.0  # logs beyond this only say which side it is


def decreasing_root(
    bounds: LogBounds, level: tuple[float, float], start: float, rough: float = 0.0
) -> tuple[float, float]:
    """(lower, upper) around the x >= 0 where a decreasing function meets a level, both known as intervals of logs.

    `bounds(x)` = (log lower, log upper) of the function at x; `level` the same for the level. Returns upper with
    f(upper) <= level for certain, and lower with f(lower) >= level for certain, or 0.
    `rough` is a relative distance between them that is good enough.

    >>> decreasing_root(lambda x: (-x, -x), (-3.0, -3.0), 1.0)
    (3.0, 3.0)
    """
    low_level, high_level = level
    known = cache(bounds)  # both ends are asked for at the same points
    upper = _first_sure(lambda x: known(x)[1] - low_level, start, rough)
    if upper in (0.0, math.inf):
        return (0.0 if upper == 0 else _last_sure(lambda x: known(x)[0] - high_level, 1e300, rough)), upper
    return _last_sure(lambda x: known(x)[0] - high_level, upper, rough), upper


def _first_sure(excess: Callable[[float], float], start: float, rough: float = 0.0) -> float:
    """An x >= 0 with excess(x) <= 0 for certain, close to the first one (inf if none); excess falls."""
    high, low, factor = max(start, 1e-300), 0.0, _NEAR
    while not excess(high) <= 0:
        low, high, factor = high, high * factor, min(factor * factor, 16.0)
        if math.isinf(high):
            return math.inf
    while low == 0.0 and high > 1e-300:
        if excess(high / factor) > 0:
            low = high / factor
        elif factor == _NEAR and excess(0.0) <= 0:  # worth a look before going further down
            return 0.0
        else:
            high, factor = high / factor, min(factor * factor, 16.0)
    guess = high
    if low > 0:
        # need not converge: it is a guess
        close = max(1e-15, 0.25 * rough)
        guess = brentq(lambda x: min(max(excess(x), -_FAR), _FAR), low, high, xtol=1e-323, rtol=close, disp=False)
    x, step = float(guess), max(2e-16, 0.25 * rough)
    while not excess(x) <= 0:  # it may lie on the wrong side: walk up until it is sure
        x, step = min(float(guess) * (1 + step), high), 2 * step
    return x


def _last_sure(surplus: Callable[[float], float], start: float, rough: float = 0.0) -> float:
    """An x <= start with surplus(x) >= 0 for certain, close to the last one, or 0; surplus falls."""
    x, beyond, step, factor = start, start, max(2e-16, 0.5 * rough), 16.0
    while not surplus(x) >= 0:
        beyond = x
        if step < 1:
            x, step = start * (1 - step), 4 * step
        else:  # far off: ever longer strides
            x, factor = x / factor, min(factor * factor, 1e100)
        if x < 1e-300:
            return 0.0
    for _ in range(2 if rough == 0 else 0):  # the last stride was a long one: take some of it back
        middle = 0.5 * (x + beyond)
        x, beyond = (middle, beyond) if x < middle < beyond and surplus(middle) >= 0 else (x, middle)
    return x


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
