"""Doubles, and operations whose name says which way they round.

A computed number that carries n relative roundings lies within n units of the truth. What leaves a function as an upper
end is `raised`, as a lower end `lowered`, by that many units of its size, or of the size of the terms that it was
computed from; `widened` gives both ends. Where counting roundings is not worth it, ends are `padded_up` or
`padded_down` by a share that is far more than all of them. Negative values move in the named direction too; numbers and
arrays are both accepted.

>>> raised(1.0, 4) > 1.0 > lowered(1.0, 4), raised(-1.0, 4) > -1.0
(True, True)
>>> next_up(0.0), next_down(1.0)
(5e-324, 0.9999999999999999)
"""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.floating[Any]]
Complex = NDArray[np.complexfloating[Any, Any]]

UNIT = 2.0**-53  # unit roundoff of a double
SMALLEST = 5e-324  # the smallest positive double


@overload
def raised(value: float, units: float, size: float | None = None) -> float: ...
@overload
def raised(value: Real | float, units: Any, size: Any = None) -> Real: ...
def raised(value: Any, units: Any, size: Any = None) -> Any:
    """value + units * UNIT * size; `size`, if not |value|, is that of the terms it was computed from. An infinite
    number stays (arrays: unless it is a -inf raised by its own size).

    >>> raised(np.array([1.0, -1.0]), 2, 4.0) - np.array([1.0, -1.0]) == 8 * UNIT
    array([ True,  True])
    >>> raised(-math.inf, 4)
    -inf
    """
    if isinstance(value, float) and math.isinf(value):
        return value
    return value + units * UNIT * (abs(value) if size is None else size)


@overload
def lowered(value: float, units: float, size: float | None = None) -> float: ...
@overload
def lowered(value: Real | float, units: Any, size: Any = None) -> Real: ...
def lowered(value: Any, units: Any, size: Any = None) -> Any:
    """value - units * UNIT * size; an infinite number stays (arrays: unless it is inf lowered by its own size).

    >>> lowered(-1.0, 4) < -1.0, lowered(math.inf, 4)
    (True, inf)
    """
    if isinstance(value, float) and math.isinf(value):
        return value
    return value - units * UNIT * (abs(value) if size is None else size)


def widened(value: float, units: float, size: float | None = None) -> tuple[float, float]:
    """Both ends, (lowered, raised).

    >>> low, high = widened(-3.0, 2)
    >>> low < -3.0 < high
    True
    """
    return lowered(value, units, size), raised(value, units, size)


@overload
def padded_up(value: float, share: float, size: float | None = None) -> float: ...
@overload
def padded_up(value: Real | float, share: Any, size: Any = None) -> Real: ...
def padded_up(value: Any, share: Any, size: Any = None) -> Any:
    """value + share * size (|value| unless given): a share far above the roundings of a whole sum.

    >>> padded_up(2.0, 0.25), padded_up(-2.0, 0.25), padded_up(-2.0, 0.25, 1.0)
    (2.5, -1.5, -1.75)
    """
    if isinstance(value, float) and math.isinf(value):
        return value
    return value + share * (abs(value) if size is None else size)


@overload
def padded_down(value: float, share: float, size: float | None = None) -> float: ...
@overload
def padded_down(value: Real | float, share: Any, size: Any = None) -> Real: ...
def padded_down(value: Any, share: Any, size: Any = None) -> Any:
    """value - share * size likewise.

    >>> padded_down(2.0, 0.25), padded_down(-2.0, 0.25)
    (1.5, -2.5)
    """
    if isinstance(value, float) and math.isinf(value):
        return value
    return value - share * (abs(value) if size is None else size)


def next_up(value: float) -> float:
    """The next double above: makes up for one rounding of a sum or a product."""
    return math.nextafter(value, math.inf)


def next_down(value: float) -> float:
    """The next double below."""
    return math.nextafter(value, -math.inf)


def rounded_up(values: Any, roundings: Any) -> Any:
    """An upper bound on results >= 0 that were computed with so many roundings, each counted twice; 0 roundings and
    results of 0 leave it as it is. The last step moves numbers so small that a relative one would not.

    >>> rounded_up([1.0, 5e-324, 0.0], 3) > [1.0, 5e-324, 0.0]
    array([ True,  True, False])
    """
    grown = np.asarray(values) * (1 + 2 * np.asarray(roundings) * UNIT)
    return np.where((np.asarray(roundings) > 0) & (grown > 0), np.nextafter(grown, np.inf), grown)


def rounded_down(values: Any, roundings: Any) -> Any:
    """A lower bound likewise.

    >>> bool(rounded_down(1.0, 3) < 1.0)
    True
    """
    return np.asarray(values) * (1 - 2 * roundings * UNIT)


def log_raised(value: float, units: float) -> float:
    """An upper bound on a logarithm that carries `units` of its size and of 1; -inf stays.

    >>> log_raised(0.0, 4) == 4 * UNIT, log_raised(-math.inf, 4)
    (True, -inf)
    """
    return raised(value, units, 1 + abs(value))


def log_lowered(value: float, units: float) -> float:
    """A lower bound likewise.

    >>> log_lowered(0.0, 4) == -4 * UNIT, log_lowered(-math.inf, 4)
    (True, -inf)
    """
    return lowered(value, units, 1 + abs(value))


def exp_down(log: float) -> float:
    """A lower bound on e^log, for log <= 0 known to a rounding of itself; 0 below the range of doubles.

    >>> 0.36787 < exp_down(-1.0) < 0.36788, exp_down(-1000.0)
    (True, 0.0)
    """
    return math.exp(log) * lowered(1.0, 2 * (abs(log) + 2)) if log > -700 else 0.0


def exp_up(log: float) -> float:
    """An upper bound on e^log; below the range of doubles, the smallest one.

    >>> 0.36787 < exp_up(-1.0) < 0.36788, exp_up(-1000.0), exp_up(-math.inf)
    (True, 5e-324, 0.0)
    """
    if log == -math.inf:
        return 0.0
    grown = math.exp(log)
    return max(grown * raised(1.0, 2 * (abs(log) + 2)), SMALLEST) if log > -700 else grown + SMALLEST
