"""Turning untrusted arguments into numbers, or one clear sentence.

>>> number("delta", 1e-6, low=0, high=1)
1e-06
>>> number("delta", 2, low=0, high=1)
Traceback (most recent call last):
...
privloss.errors.InvalidInput: delta = 2: must be a number between 0 and 1.
>>> count("steps", 2.5)
Traceback (most recent call last):
...
privloss.errors.InvalidInput: steps = 2.5: must be a whole number from 1 to 1000000000000.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

from privloss.errors import InvalidInput

MAX_COUNT = 10**12


def number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: bool = False,
    error: type[InvalidInput] = InvalidInput,
) -> float:
    """A finite float with low <= value <= high (low < value if `above`)."""
    rule = _rule(low, high, above)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise error(f"{name} = {value!r}: {rule}.")
    try:
        result = float(value)
    except (OverflowError, ValueError):
        raise error(f"{name} = {value!r}: {rule}.") from None
    inside = (low < result if above else low <= result) and result <= high
    if not (math.isfinite(result) and inside):  # `inside` is False for NaN
        raise error(f"{name} = {value!r}: {rule}.")
    return result


def _rule(low: float, high: float, above: bool) -> str:
    if math.isfinite(low) and math.isfinite(high):
        return f"must be a number {'above' if above else 'between'} {low:g} and {'at most ' if above else ''}{high:g}"
    if math.isfinite(low):
        return f"must be a finite number {'above' if above else 'at least'} {low:g}"
    return "must be a finite number"


def count(name: str, value: Any, *, error: type[InvalidInput] = InvalidInput) -> int:
    """A whole number from 1 to 10^12; 3.0 is accepted, 2.5, True and "3" are not."""
    rule = f"must be a whole number from 1 to {MAX_COUNT}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise error(f"{name} = {value!r}: {rule}.")
    exact = int(value) if isinstance(value, numbers.Integral) else float(value)
    if not 1 <= exact <= MAX_COUNT or exact != int(exact):
        raise error(f"{name} = {value!r}: {rule}.")
    return int(exact)


def choice(name: str, value: Any, options: tuple[str, ...], *, error: type[InvalidInput] = InvalidInput) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in options:
        raise error(f"{name} = {value!r}: must be one of {', '.join(options)}.")
    return value
