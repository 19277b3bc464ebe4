"""The ends of a claim: where a falling function of balls crosses a level, and decimals rounded outwards."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from flint import arb

from privloss.certificates.balls import Rejected, rational
from privloss.certificates.methods.bounds import DeltaBounds

_DIGITS = 24  # of the ends of a claim


def lower_of(bounds: DeltaBounds) -> Callable[[arb], arb]:
    return lambda x: bounds(x)[0]


def upper_of(bounds: DeltaBounds) -> Callable[[arb], arb]:
    return lambda x: bounds(x)[1]


def crossing(function: Callable[[arb], arb], target: arb, start: Fraction, up: bool) -> Fraction:
    """A decimal x, as near to the crossing as the balls allow, at which the falling function is surely <= target
    (`up`), or surely >= target (0 if there is none): a secant on the logarithm, in a bracket."""
    goal = target.log()

    def excess(x: arb) -> float:
        """log of the function over the target, at the end of the ball that matters."""
        value = function(x)
        if not (value > 0 and value.is_finite()):
            return math.inf if up and not value <= 0 else -math.inf
        found = value.log() - goal
        return float(found.upper() if up else found.lower())

    low, high = _bracket(excess, rational(start), up)
    if high[0] == 0:
        return Fraction(0)
    for _ in range(60):
        gap = high[0] - low[0]
        if gap <= high[0] * arb(10) ** (2 - _DIGITS):
            break
        share = low[1] / (low[1] - high[1]) if math.isfinite(low[1] - high[1]) else 0.5
        x = (low[0] + gap * min(max(share, 1e-9), 1 - 1e-9)).mid()
        value = excess(x)
        low, high = ((x, value), high) if value > 0 else (low, (x, value))
        # an end that stays makes the secant slow: step a little beyond the root from the other side
        other = (x + (value * gap / (abs(low[1] - high[1]) + 1e-300)) * 2).mid() if math.isfinite(value) else x
        if low[0] < other < high[0] and abs(value) > 0:
            value = excess(other)
            low, high = ((other, value), high) if value > 0 else (low, (other, value))
    return _settle(function, target, high[0] if up else low[0], up)


def _bracket(excess: Callable[[arb], float], start: arb, up: bool) -> tuple[tuple[arb, float], tuple[arb, float]]:
    """Points with the function above and below the target; both 0 if it is below at 0 already."""
    at, width = excess(start), (start * 1e-9).max(arb(1e-12)).mid()
    low = high = (start, at)
    while not low[1] > 0 and low[0] > 0:
        place = (low[0] - width).max(arb(0)).mid()
        low, width = (place, excess(place)), 8 * width
    if not low[1] > 0:
        return low, (arb(0), low[1])
    width = (start * 1e-9).max(arb(1e-12)).mid()
    while high[1] > 0:
        place = (high[0] + width).mid()
        high, width = (place, excess(place)), 8 * width
        if width > 1e30:
            raise Rejected("the end of the claim could not be bracketed")
    return low, high


def _settle(function: Callable[[arb], arb], target: arb, x: arb, up: bool) -> Fraction:
    """Step outwards until the inequality is certain at a decimal."""
    step = Fraction(1, 10**_DIGITS) * max(end(x, up=True), Fraction(1, 10**6))
    value = end(x, up)
    for _ in range(80):
        at = end(rational(value), up)
        found = function(rational(at))
        if at == 0 and not up:
            return Fraction(0)
        if bool(found <= target) if up else bool(found > target):
            return at
        value, step = max(value + step if up else value - step, Fraction(0)), 2 * step
    raise Rejected("the end of the claim could not be settled")


def end(x: arb, up: bool) -> Fraction:
    """The end of a ball, rounded outwards to `_DIGITS` digits."""
    end = x.upper() if up else x.lower()
    mantissa, exponent = end.man_exp()
    value = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    if value <= 0:
        return Fraction(0)
    rounding = Context(prec=_DIGITS + 1, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return Fraction(rounding.divide(Decimal(value.numerator), Decimal(value.denominator)))


def text(value: Fraction) -> str:
    """The decimal, which is exact: all ends come from `end`."""
    if value == 0:
        return "0"
    decimal = Context(prec=400).divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    return format(decimal, "f" if decimal > Decimal("1e-30") else "e")


def decimal_text(value: float) -> str:
    """A double as people write it; the decimal, not the double, is what is certified."""
    return format(Decimal(repr(value)), "f") if 1e-4 <= value < 1e16 or value == 0 else repr(value)
