"""Doubles, and operations whose name says which way they round.

A computed positive number that carries n relative roundings lies within n units of the truth; what leaves the library as
an upper end is `raised`, as a lower end `lowered`, by that many units. Both accept numbers and arrays, and negative
values move in the named direction too.

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
def raised(value: Real, units: Any, size: Any = None) -> Real: ...
def raised(value: Any, units: Any, size: Any = None) -> Any:
    """value + units * UNIT * size; `size`, if not |value|, is that of the terms it was computed from."""
    return value + units * UNIT * (abs(value) if size is None else size)


@overload
def lowered(value: float, units: float, size: float | None = None) -> float: ...
@overload
def lowered(value: Real, units: Any, size: Any = None) -> Real: ...
def lowered(value: Any, units: Any, size: Any = None) -> Any:
    """value - units * UNIT * size; an infinite end stays."""
    if isinstance(value, float) and math.isinf(value):
        return value
    return value - units * UNIT * (abs(value) if size is None else size)


def next_up(value: float) -> float:
    """The next double above: makes up for one rounding of a sum or a product."""
    return math.nextafter(value, math.inf)


def next_down(value: float) -> float:
    """The next double below."""
    return math.nextafter(value, -math.inf)


def log_raised(value: float, units: float) -> float:
    """An upper bound on a logarithm that carries `units` of its size and of 1; -inf stays."""
    return raised(value, units, 1 + abs(value)) if value > -math.inf else value


def log_lowered(value: float, units: float) -> float:
    """A lower bound likewise."""
    return lowered(value, units, 1 + abs(value)) if value > -math.inf else value


def exp_down(log: float) -> float:
    """A lower bound on e^log, for log <= 0 known to a rounding of itself; 0 below the range of doubles."""
    return math.exp(log) * lowered(1.0, 2 * (abs(log) + 2)) if log > -700 else 0.0


def exp_up(log: float) -> float:
    """An upper bound on e^log; below the range of doubles, the smallest one."""
    if log == -math.inf:
        return 0.0
    grown = math.exp(log)
    return max(grown * raised(1.0, 2 * (abs(log) + 2)), SMALLEST) if log > -700 else grown + SMALLEST
