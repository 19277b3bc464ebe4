"""Numbers in words and digits: every number that is quoted is rounded to the safe side, so that what is read is still
proven. The words follow the definition, P[S] <= e^epsilon Q[S] + delta for every event S, and claim no more. In
particular delta is not "the chance that the loss exceeds epsilon": that chance can be larger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE
from privloss.ledger.texts import rough_parts, time_of
from privloss.ledger.views import order

_SPACE = "\N{NARROW NO-BREAK SPACE}"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MOST_DIGITS = 17
_LARGE = 6  # from this power of ten on a number is written with it
_TELLING = 700.0  # beyond, e^epsilon is no double

_WITHOUT = {
    ADD_REMOVE: "as without",
    REPLACE_ONE: "as with another's in their place",
}
_AS_BLANK = "as if they were blank"
_POWERS = {
    1: "ten", 2: "a hundred", 3: "a thousand", 4: "ten thousand", 5: "a hundred thousand", 6: "a million",
    7: "ten million", 8: "a hundred million", 9: "a billion", 12: "a trillion",
}  # fmt: skip


# -- digits ------------------------------------------------------------------------------------------------------------


def up(value: float | str | Fraction, digits: int = 4) -> str:
    """Rounded up."""
    return _written(value, digits, ROUND_CEILING)


def down(value: float | str | Fraction, digits: int = 4) -> str:
    return _written(value, digits, ROUND_FLOOR)


def _written(value: float | str | Fraction, digits: int, rounding: str) -> str:
    """Also of "Infinity", as answers have it, and of fractions, as the ledger has them."""
    if value in ("Infinity", math.inf):
        return "infinite"
    exact = Fraction(value)
    found = Context(prec=digits, rounding=rounding).divide(Decimal(exact.numerator), Decimal(exact.denominator))
    found = found.normalize()
    if not found or -4 <= found.adjusted() < _LARGE:
        text = format(found, "f")
        return grouped(int(found)) + text.partition(".")[1] + text.partition(".")[2] if found >= 10_000 else text
    mantissa = found.scaleb(-found.adjusted())
    return ("" if mantissa == 1 else f"{mantissa:f} × ") + power(found.adjusted())


def power(exponent: int) -> str:
    """Of ten."""
    return {0: "1", 1: "10"}.get(exponent) or f"10{str(exponent).translate(_RAISED)}"


def interval(lower: float | str, upper: float | str) -> tuple[str, str]:
    """Both ends, rounded outwards, with as many digits as tell them apart."""
    for digits in range(10, _MOST_DIGITS + 1):
        found = down(lower, digits), up(upper, digits)
        if found[0] != found[1]:
            break
    return found


def grouped(number: int) -> str:
    """10 000 rather than 10000, with spaces that do not break."""
    return f"{number:,}".replace(",", _SPACE) if number >= 10_000 else str(number)


def percent(share: float | Fraction) -> str:
    """Rounded up."""
    return f"{up(100 * Fraction(share), 3)}{_SPACE}%"


def rate(share: float) -> str:
    """A share that is at least so much, rounded down; or a rate of false alarms: what no attack achieves at one rate
    none achieves at a lower one."""
    return f"{down(100 * Fraction(share), 3)}{_SPACE}%"


# -- what epsilon and delta say ----------------------------------------------------------------------------------------


def factor(epsilon: float) -> str:
    """e^epsilon, rounded up."""
    if epsilon > _TELLING:
        return power(math.ceil(epsilon / math.log(10)))
    return up(math.exp(epsilon) * (1 + 1e-12), 3)


def chance(delta: float) -> str:
    """A probability as one in so many, never fewer than it is.

    >>> chance(1e-6), chance(1e-5), chance(3e-4), chance(0.3)
    ('one in a million', 'one in a hundred thousand', 'one in 3330', '0.3')
    """
    if delta > 0.1:
        return up(delta, 3)
    tens = round(-math.log10(delta))
    if math.isclose(delta, 10.0**-tens, rel_tol=1e-12):
        return f"one in {_POWERS[tens]}" if tens in _POWERS else f"one in {power(tens)}"
    many = Context(prec=3, rounding=ROUND_FLOOR).divide(Decimal(1), Decimal(delta))
    if many >= 10**9:
        return f"one in {down(str(many), 3)}"
    return f"one in {down(str(many / 10**6), 3)} million" if many >= 10**_LARGE else f"one in {grouped(int(many))}"


def promise(epsilon: float, delta: float, unit: str, adjacency: str) -> str:
    """What (epsilon, delta) promises, in one sentence."""
    if math.isinf(epsilon):
        return f"No finite epsilon holds at this delta: the outcome can give away one {unit}'s data for certain."
    other = _WITHOUT.get(adjacency, _AS_BLANK)
    rest = f", plus {chance(delta)}" if delta > 0 else ""
    return (
        f"With one {unit}'s data any conclusion is at most {factor(epsilon)} times as likely {other}{rest}; "
        "and the other way round."
    )


def attack(alarms: float, misses: float, adjacency: str) -> str:
    """The trade-off at one rate of false alarms: the power of any test."""
    found = percent(1 - Fraction(misses))
    if adjacency == ADD_REMOVE:
        return (
            f"An attack that raises a false alarm for {rate(alarms)} of those who are not in the data finds at most "
            f"{found} of those who are."
        )
    return (
        f"An attack that is to tell two such data sets apart, and takes the one for the other in {rate(alarms)} of "
        f"cases, recognises the other in at most {found}."
    )


# -- amounts and times of the ledger -----------------------------------------------------------------------------------


def spent(parts: Any) -> str:
    """An amount, or amounts by component: never below."""
    return rough_parts(parts, True)


def left(parts: Any) -> str:
    """Never above."""
    return rough_parts(parts, False)


def sort_parts(parts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(parts.items(), key=lambda pair: order(pair[0]))


def moment(at: float) -> str:
    return time_of(at).replace("Z", " UTC")


def day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%-d %b %Y")


def ago(seconds: float) -> str:
    """How long ago, in whole units.

    >>> ago(30), ago(61), ago(7300), ago(200_000)
    ('less than a minute ago', '1 minute ago', '2 hours ago', '2 days ago')
    """
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            many = int(seconds // size)
            return f"{many} {name}{'s' * (many > 1)} ago"
    return "less than a minute ago"


def until(seconds: float) -> str:
    """In how long.

    >>> until(7300), until(-5)
    ('in 2 hours', 'ended')
    """
    return "ended" if seconds <= 0 else "in " + ago(seconds).removesuffix(" ago")


# -- guarantees --------------------------------------------------------------------------------------------------------


def guarantee(status: Mapping[str, Any]) -> str:
    """What the cap of a budget promises for everything it ever allows."""
    said = status.get("guarantee")
    if said is None:
        return "no budget yet: nothing may be spent"
    if said["epsilon"] is None:
        return f"{status['currency']} {left(status['cap'])}; no delta was fixed at which to read it as epsilon"
    at = f"at delta {up(said['delta'])}" if Fraction(said["delta"]) else "and delta 0"
    return f"epsilon {up(said['epsilon'])} {at}"
