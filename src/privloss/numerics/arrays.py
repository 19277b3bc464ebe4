"""Arguments that may be one number or an array of numbers.

>>> numbers("delta", [0.1, 0.5], low=0, high=1)
array([0.1, 0.5])
>>> numbers("delta", [0.1, 2.0], low=0, high=1)
Traceback (most recent call last):
...
privloss.errors.InvalidInput: delta[1] = 2.0: must be a number between 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.floats import Real


def numbers(name: str, value: Any, *, low: float = -math.inf, high: float = math.inf, above: bool = False) -> Real:
    """A float array (zero-dimensional for a single number), every entry checked by `check.number`."""
    return _checked(name, value, lambda label, v: check.number(label, v, low=low, high=high, above=above))


def counts(name: str, value: Any) -> Real:
    """Whole numbers from 1 to 10^12, as floats (exact)."""
    return _checked(name, value, lambda label, v: float(check.count(label, v)))


def _checked(name: str, value: Any, one: Callable[[str, Any], float]) -> Real:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return np.asarray(one(name, value))
    entries = list(value)
    if not entries:
        raise InvalidInput(f"{name} = {value!r}: must not be empty.")
    return np.array([one(f"{name}[{i}]", v) for i, v in enumerate(entries)])


def plain(values: Any) -> Any:
    """A float for a zero-dimensional array, otherwise the array."""
    array = np.asarray(values, dtype=float)
    return float(array) if array.ndim == 0 else array


def together(**arrays: Real) -> tuple[Real, ...]:
    """Arrays of one common shape; single numbers go with anything."""
    shapes = {name: a.shape for name, a in arrays.items() if a.ndim}
    if len(set(shapes.values())) > 1:
        told = ", ".join(f"{name} has {shape[0]}" for name, shape in shapes.items())
        raise InvalidInput(f"{told} entries: must be equally many, or single numbers.")
    return tuple(np.broadcast_arrays(*arrays.values()))
