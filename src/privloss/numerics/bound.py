"""An interval that contains the truth, and where it comes from.

>>> b = Bound(1.25, 1.5, method="example")
>>> float(b)                # what may be quoted
1.5
>>> 1.3 in b, b.width
(True, 0.25)
>>> b <= 2.0, b <= 1.0      # certain answers
(True, False)
>>> bool(b <= 1.4)
Traceback (most recent call last):
...
privloss.errors.InvalidInput: 1.4 lies inside [1.25, 1.5], so the comparison is not decided; compare .lower or .upper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, overload

import numpy as np

from privloss.errors import InvalidInput
from privloss.numerics.floats import next_down, next_up


@dataclass(frozen=True, slots=True)
class Bound:
    """``lower <= truth <= upper``. ``float(bound)`` is the upper end, the one that may be quoted.

    Adding two bounds adds the ends and scaling by a non-negative number scales them, each rounded outwards. Ordering
    answers only when the answer is certain; nothing else is defined, because nothing else would be meaningful.
    """

    lower: float
    upper: float
    method: str = field(default="", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:  # also catches NaN: a bound that says nothing must never leave the library
            raise InvalidInput(f"lower = {self.lower!r}, upper = {self.upper!r}: a bound needs lower <= upper.")

    @property
    def width(self) -> float:
        """upper - lower (0 for a point, also at infinity)."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def relative_width(self) -> float:
        """width / upper (0 for a point)."""
        return 0.0 if self.lower == self.upper else self.width / self.upper if self.upper < math.inf else math.inf

    def __float__(self) -> float:
        return self.upper

    def __iter__(self) -> Iterator[float]:
        yield self.lower
        yield self.upper

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def _compare(self, other: Any) -> tuple[bool, bool]:
        """(surely below or equal, surely above or equal) for self against other; undecided raises."""
        low, high = (other.lower, other.upper) if isinstance(other, Bound) else (float(other), float(other))
        below, above = self.upper <= low, self.lower >= high
        if not (below or above):
            raise InvalidInput(
                f"{other!r} lies inside [{self.lower!r}, {self.upper!r}], so the comparison is not decided; "
                "compare .lower or .upper."
            )
        return below, above

    def __le__(self, other: Any) -> bool:
        return self._compare(other)[0]

    def __ge__(self, other: Any) -> bool:
        return self._compare(other)[1]

    def __lt__(self, other: Any) -> bool:
        return not self._compare(other)[1]

    def __gt__(self, other: Any) -> bool:
        return not self._compare(other)[0]

    def __add__(self, other: Bound) -> Bound:
        if not isinstance(other, Bound):
            return NotImplemented
        return Bound(
            next_down(self.lower + other.lower),
            next_up(self.upper + other.upper),
            method=" + ".join(dict.fromkeys((self.method, other.method))),
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
        )

    def __mul__(self, factor: float) -> Bound:
        if isinstance(factor, (bool, Bound)) or not isinstance(factor, (int, float)):
            return NotImplemented
        if not 0 <= factor < math.inf:
            raise InvalidInput(f"factor = {factor!r}: a bound is scaled only by a finite number >= 0.")
        if factor == 0:
            return Bound(0.0, 0.0, self.method, self.notes)
        return Bound(next_down(self.lower * factor), next_up(self.upper * factor), self.method, self.notes)

    __rmul__ = __mul__

    def __str__(self) -> str:
        """Ends rounded outwards to the digits that matter.

        >>> str(Bound(5.806935026561, 5.806935026569)), str(Bound(0.0, 0.0))
        ('[5.8069350265609, 5.8069350265690]', '0')
        """
        if self.lower == self.upper:
            return f"{self.lower:.12g}"
        digits = 17
        if self.lower > 0 and self.upper < math.inf:
            digits = min(17, max(3, 2 - math.floor(math.log10(self.width / self.upper))))
        return f"[{shortened(self.lower, digits, ROUND_FLOOR)}, {shortened(self.upper, digits, ROUND_CEILING)}]"

    def __repr__(self) -> str:
        return f"Bound({self.lower!r}, {self.upper!r})"


def shortened(value: float, digits: int, rounding: str) -> str:
    """So many significant digits, rounded as `decimal` names it."""
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    text = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    exponent = text.adjusted()
    return format(text, "f") if -5 <= exponent < 17 else format(text.normalize(), "e")


def exactly(value: float, method: str = "", notes: tuple[str, ...] = ()) -> Bound:
    """The interval [value, value]."""
    return Bound(value, value, method, notes)


def largest(bounds: list[Bound]) -> Bound:
    """An interval for the maximum of several quantities: the maximum of each end.

    >>> largest([Bound(1, 3), Bound(2, 2.5)])
    Bound(2, 3)
    """
    method = " / ".join(dict.fromkeys(b.method for b in bounds if b.method))
    notes = tuple(dict.fromkeys(note for b in bounds for note in b.notes))
    return Bound(max(b.lower for b in bounds), max(b.upper for b in bounds), method, notes)


class Bounds(Sequence[Bound]):
    """Several bounds; `.lower` and `.upper` are lists, iterating gives `Bound`s, NumPy sees the upper ends."""

    def __init__(self, items: Sequence[Bound]) -> None:
        self._items = tuple(items)

    @property
    def lower(self) -> list[float]:
        return [b.lower for b in self._items]

    @property
    def upper(self) -> list[float]:
        return [b.upper for b in self._items]

    @overload
    def __getitem__(self, index: int) -> Bound: ...
    @overload
    def __getitem__(self, index: slice) -> Bounds: ...
    def __getitem__(self, index: int | slice) -> Bound | Bounds:
        return Bounds(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bounds) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.upper, dtype=dtype)

    def __repr__(self) -> str:
        return f"Bounds([{', '.join(map(repr, self._items))}])"


def intersection(first: Bound, second: Bound) -> Bound:
    """Both are sound, so the truth lies in both (an empty intersection would be a bug, and raises)."""
    lower, upper = max(first.lower, second.lower), min(first.upper, second.upper)
    narrow = first if upper == first.upper and lower == first.lower else second
    method = first.method if narrow is first else f"{first.method}; {second.method}"
    return Bound(lower, upper, method, tuple(dict.fromkeys(first.notes + second.notes)))
