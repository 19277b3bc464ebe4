"""Amounts of privacy: exact rationals with bounded denominators, rounded only in the safe direction.

Exact are decimals of at most 12 places (delta: 30) and p/q with q <= 1000: all totals of such amounts have one common
denominator of less than 1500 digits, however many there are. Other amounts are rounded to a multiple of 2^-40 (delta:
2^-62), costs up and caps down.

>>> cost("cost", "1/11"), cost("cost", "0.1")
(Fraction(1, 11), Fraction(1, 10))
>>> cost("cost", "1e-320") == Fraction(1, 2**40)          # never lost: one unit
True
>>> show(Fraction(1, 8)), show(Fraction(1, 11))
('0.125', '1/11')
"""

from __future__ import annotations

import functools
import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

from privloss.errors import InvalidInput

BITS, DELTA_BITS = 40, 62  # a unit is 2^-40, for delta 2^-62
MOST = 10**6
_LONGEST = 60  # characters of an amount as typed
_PLACES, _DELTA_PLACES, _MOST_DENOMINATOR = 12, 30, 1000  # that are kept exactly
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?|\.[0-9]+([eE][+-]?[0-9]{1,4})?")
_FRACTION = re.compile(r"[0-9]+/[0-9]+")


def read(name: str, value: Any, longest: int = _LONGEST) -> Fraction:
    """A number >= 0, given as text (decimal or p/q), a whole number, a double or a Fraction, exactly."""
    if isinstance(value, bool) or not isinstance(value, (str, float, Rational, Decimal)):
        raise InvalidInput(f"{name} = {value!r}: must be a number, a decimal or a fraction like '1/11'.")
    text = repr(float(value)) if isinstance(value, float) else str(value).strip()
    if len(text) > longest:
        raise InvalidInput(f"{name} = {text[:20] + '...'!r}: must be written in at most {longest} characters.")
    try:
        return _parsed(text)
    except ValueError as problem:
        raise InvalidInput(f"{name} = {value!r}: {problem}") from None


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> Fraction:
    if _FRACTION.fullmatch(text):
        top, bottom = text.split("/")
        if int(bottom) == 0:
            raise ValueError("has the denominator 0.")
        found = Fraction(int(top), int(bottom))
    elif _DECIMAL.fullmatch(text):
        exponent = re.search(r"[eE]([+-]?[0-9]+)$", text)
        if exponent is not None and abs(int(exponent[1])) > 400:
            raise ValueError("its exponent must lie between -400 and 400.")
        found = Fraction(text)
    else:
        raise ValueError("must be a number >= 0, a decimal or a fraction like '1/11'.")
    if found > MOST:
        raise ValueError(f"must be at most {MOST}.")
    return found


@functools.lru_cache(maxsize=4096)
def exact(text: str) -> Fraction:
    """An amount as a ledger has written it."""
    return Fraction(text)


def kept(value: Fraction, bits: int) -> bool:
    """Whether an amount is kept exactly: a short decimal, or a fraction with a small denominator."""
    places = _DELTA_PLACES if bits == DELTA_BITS else _PLACES
    return value.denominator <= _MOST_DENOMINATOR or 10**places % value.denominator == 0


def cost(name: str, value: Any, bits: int = BITS) -> Fraction:
    """What a request is charged: as typed, or rounded up; at least one unit."""
    found = read(name, value)
    if found == 0:
        raise InvalidInput(f"{name} = {value!r}: must be positive.")
    return max(found, Fraction(1, 2**bits)) if kept(found, bits) else round_up(found, bits)


def cap(name: str, value: Any, bits: int = BITS) -> Fraction:
    """A budget: as typed, or rounded down."""
    found = read(name, value)
    found = found if kept(found, bits) else round_down(found, bits)
    if found == 0:
        raise InvalidInput(f"{name} = {value!r}: must be positive.")
    return found


def units(total: Fraction, bits: int) -> int:
    """ceil(total * 2^bits)."""
    return -((-total.numerator << bits) // total.denominator)


def round_up(value: Fraction, bits: int) -> Fraction:
    return Fraction(units(value, bits), 2**bits)


def round_down(value: Fraction, bits: int) -> Fraction:
    return Fraction((value.numerator << bits) // value.denominator, 2**bits)


def up(value: Fraction) -> float:
    """The least double that is not smaller."""
    found = float(value)
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def down(value: Fraction) -> float:
    """The largest double that is not larger."""
    found = float(value)
    return found if Fraction(found) <= value else math.nextafter(found, 0.0)


def show(value: Fraction) -> str:
    """The exact decimal if it is short, else p/q."""
    return _shown(value.numerator, value.denominator)


@functools.lru_cache(maxsize=4096)
def _shown(top: int, whole: int) -> str:
    bottom, twos, fives = whole, 0, 0
    while bottom % 2 == 0:
        bottom, twos = bottom // 2, twos + 1
    while bottom % 5 == 0:
        bottom, fives = bottom // 5, fives + 1
    places = max(twos, fives)
    if bottom != 1 or places > 70:
        return f"{top}/{whole}"
    digits = str(top * 10**places // whole).rjust(places + 1, "0")
    return digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"
