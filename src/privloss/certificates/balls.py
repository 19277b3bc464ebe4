"""Small helpers of the checker: reading numbers, refusing, and balls of python-flint."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from flint import acb, arb, arb_mat, fmpq

from privloss.certificates.budget import charge

CHUNK = 1024  # terms of sums taken together
MOST_NODES = 200_000  # that a certificate may ask for
Use = dict[str, Any]  # the parameters a certificate gives for one bound
_NUMBER = re.compile(r"[0-9]{1,60}(\.[0-9]{1,80})?([eE][+-]?[0-9]{1,3})?")


class Rejected(Exception):
    """The certificate proves nothing; the text says which inequality failed."""


def need(condition: bool, text: str) -> None:
    """Go on only if the condition is certain."""
    if not condition:
        raise Rejected(text)


def exact(text: Any) -> arb:
    """A decimal number as the smallest ball around it."""
    need(isinstance(text, str) and bool(_NUMBER.fullmatch(text)), f"{text!r} is not a decimal number >= 0")
    return rational(Fraction(text))


def rational(value: Fraction) -> arb:
    """The smallest ball around a fraction."""
    return arb(fmpq(value.numerator, value.denominator))


def given(use: Use, name: str, low: float = 0.0, high: float = 1e300) -> arb:
    """A parameter: a double, so exact."""
    value = use.get(name)
    need(isinstance(value, float) and low < value <= high, f"parameter {name} = {value!r} must be in ({low}, {high}]")
    return arb(value)


def whole(use: Use, name: str, high: int) -> int:
    """A parameter: a whole number, of that very type."""
    value = use.get(name)
    if not (type(value) is int and 0 < value <= high):
        raise Rejected(f"parameter {name} = {value!r} must be a whole number in 1..{high}")
    return value


def most(balls: Iterable[arb]) -> arb:
    """At least the largest of some balls; nan if one is (Python's max would overlook it)."""
    found = arb(0)
    for i, x in enumerate(balls):
        found = x.upper() if i == 0 else found.max(x.upper())
    return found


def tail(x: arb) -> arb:
    """P[N(0,1) > x]."""
    return (x / arb(2).sqrt()).erfc() / 2


def around(value: acb, error: arb) -> acb:
    """All numbers within `error` of the value."""
    ball = arb(0, error.abs_upper())
    return value + acb(ball, ball)


def powers(bases: list[acb], count: int) -> list[list[acb]]:
    """The first powers 0, 1, .. count - 1 of many numbers, each a product of two halves (balls that turn many times in
    succession would grow)."""
    found = [[acb(1)] * len(bases), bases][:count]
    for n in range(2, count):
        found.append([x * y for x, y in zip(found[n // 2], found[n - n // 2], strict=True)])
    return found


def parts(rows: list[list[acb]]) -> arb_mat:
    """Real parts above imaginary parts."""
    return arb_mat([[x.real for x in row] for row in rows] + [[x.imag for x in row] for row in rows])


def turning_sums(weights: list[arb], angles: list[arb], count: int) -> list[acb]:
    """The sums of weight * e^(i n angle), n = 0..count: node n = width * row + column is an entry of a product of two
    matrices, taken in real numbers and for some of the weights at a time."""
    width = math.isqrt(count) + 1
    rows = count // width + 1
    charge(len(weights) * (2 + width + 0.1 * count) + 2 * count + 4)
    table = [arb(0)] * (4 * width * rows)
    for first in range(0, len(weights), CHUNK):
        turns = [acb(0, angle).exp() for angle in angles[first : first + CHUNK]]
        columns = powers(turns, width + 1)
        jumps = powers(columns.pop(), rows)
        some = weights[first : first + CHUNK]
        weighted = [[w * x for w, x in zip(some, jump, strict=True)] for jump in jumps]
        table = [x + y for x, y in zip(table, (parts(weighted) * parts(columns).transpose()).entries(), strict=True)]
    size, values = len(table) // 2, []
    for n in range(count + 1):
        at = n // width * 2 * width + n % width  # Re * Re, Re * Im, then Im * Re, Im * Im
        values.append(acb(table[at] - table[size + at + width], table[at + width] + table[size + at]))
    return values
