"""Amounts of privacy: exact rationals, rounded only in the safe direction.

>>> cost("cost", "1/11"), cost("cost", "0.1")
(Fraction(1, 11), Fraction(1, 10))
>>> cost("cost", "1e-320") == Fraction(1, 2**40)          # never lost: one unit
True
>>> show(Fraction(1, 8)), show(Fraction(1, 11))
('0.125', '1/11')
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privloss.errors import InvalidInput

BITS, DELTA_BITS = 40, 62  # a unit is 2^-40, for delta 2^-62
MOST = 10**6
_MOST_DENOMINATOR = 10**40
_DECIMAL = re.compile(r"[0-9]{1,30}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?|\.[0-9]{1,400}([eE][+-]?[0-9]{1,4})?")
_FRACTION = re.compile(r"[0-9]{1,440}/[0-9]{1,440}")  # all that `show` writes


def read(name: str, value: Any) -> Fraction:
    """A number >= 0, given as text (decimal or p/q), a whole number, a double or a Fraction, exactly."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Fraction, Decimal)):
        raise InvalidInput(f"{name} = {value!r}: must be a number, a decimal or a fraction like '1/11'.")
    text = repr(value) if isinstance(value, float) else str(value).strip()
    if _FRACTION.fullmatch(text):
        top, bottom = text.split("/")
        if int(bottom) == 0:
            raise InvalidInput(f"{name} = {value!r}: has the denominator 0.")
        found = Fraction(int(top), int(bottom))
    elif _DECIMAL.fullmatch(text):
        exponent = re.search(r"[eE]([+-]?[0-9]+)$", text)
        if exponent is not None and abs(int(exponent[1])) > 400:
            raise InvalidInput(f"{name} = {value!r}: its exponent must lie between -400 and 400.")
        found = Fraction(text)
    else:
        raise InvalidInput(f"{name} = {value!r}: must be a number >= 0, a decimal or a fraction like '1/11'.")
    if found > MOST:
        raise InvalidInput(f"{name} = {value!r}: must be at most {MOST}.")
    return found


def cost(name: str, value: Any, bits: int = BITS) -> Fraction:
    """What a request is charged: as typed, but at least one unit, and rounded up where the denominator is too large."""
    found = read(name, value)
    if found == 0:
        raise InvalidInput(f"{name} = {value!r}: must be positive.")
    return round_up(found, bits) if found.denominator > _MOST_DENOMINATOR else max(found, Fraction(1, 2**bits))


def cap(name: str, value: Any, bits: int = BITS) -> Fraction:
    """A budget: as typed, rounded down where the denominator is too large."""
    found = read(name, value)
    if found.denominator > _MOST_DENOMINATOR:
        found = round_down(found, bits)
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
    bottom, twos, fives = value.denominator, 0, 0
    while bottom % 2 == 0:
        bottom, twos = bottom // 2, twos + 1
    while bottom % 5 == 0:
        bottom, fives = bottom // 5, fives + 1
    places = max(twos, fives)
    if bottom != 1 or places > 70:
        return f"{value.numerator}/{value.denominator}"
    digits = str(value.numerator * 10**places // value.denominator).rjust(places + 1, "0")
    return digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"
