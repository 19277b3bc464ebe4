"""Numbers that no double says, rounded to the side that is asked for."""

from __future__ import annotations

from fractions import Fraction

from privloss.numerics.floats import next_down, next_up


def inverse(a: float, *, up: bool) -> float:
    return rounded(1 / a, Fraction(1) / Fraction(a), up)


def product(a: float, b: float, *, up: bool) -> float:
    return rounded(a * b, Fraction(a) * Fraction(b), up)


def rounded(found: float, exact: Fraction, up: bool) -> float:
    """The exact number, or a neighbour of it on the side asked for: `found` is within one rounding of it."""
    if Fraction(found) == exact:
        return found
    return next_up(found) if up else max(next_down(found), 0.0)
