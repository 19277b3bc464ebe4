"""Arguments of audits, checked before any work."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.floats import Real


def whole(name: str, value: Any, low: int, high: int, rule: str = "") -> int:
    """A whole number in a range; neither a bool nor 2.5."""
    said = rule or f"must be a whole number from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not low <= int(value) <= high:
        raise InvalidInput(f"{name} = {value!r}: {said}.")
    return int(value)


def level(alpha: Any) -> float:
    """The false alarm rate."""
    return _below("alpha", check.number("alpha", alpha, low=0, high=0.5, above=True), 0.5)


def lost(delta: Any) -> float:
    """The delta of an audit, fixed before looking."""
    return _below("delta", check.number("delta", delta, low=0, high=1), 1.0)


def _below(name: str, value: float, end: float) -> float:
    if value == end:
        raise InvalidInput(f"{name} = {value!r}: must be below {end:g}.")
    return value


def numbers_of(name: str, values: Any) -> Real:
    """A list of finite numbers."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name} = {values!r}: must be a list of numbers.")
    try:
        found = np.array([float(v) for v in values], dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name}: must hold numbers only.") from None
    except OverflowError:
        raise InvalidInput(f"{name}: holds a whole number beyond all doubles.") from None
    if not len(found):
        raise InvalidInput(f"{name} = []: must not be empty.")
    if not np.all(np.isfinite(found)):
        raise InvalidInput(f"{name}: holds a number that is not finite.")
    return found


def said(name: str, value: Any, options: dict[str, str]) -> str:
    """A hypothesis that must be named, since no test can notice that it fails."""
    if not isinstance(value, str) or value not in options:
        listed = "; ".join(f'"{word}": {meaning}' for word, meaning in options.items())
        raise InvalidInput(f"{name} = {value!r}: must be said: {listed}.")
    return str(value)
