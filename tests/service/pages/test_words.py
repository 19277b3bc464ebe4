"""Numbers in words: rounded to the safe side, and no claim beyond the definition."""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction

import pytest

from privloss.adjacency import ADJACENCIES
from privloss.service.pages import words

_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def value(text: str) -> Fraction:
    """What a person reads."""
    plain = text.replace("\N{NARROW NO-BREAK SPACE}", "").replace("%", "")
    found = re.fullmatch(r"(?:([\d.]+) × )?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", plain)
    if found:
        return Fraction(found[1] or 1) * Fraction(10) ** int(found[2].translate(_DIGITS))
    return Fraction(plain)


def test_rounded_up_and_down_and_never_the_other_way() -> None:
    draw = random.Random(7)
    for _ in range(3000):
        number = math.ldexp(draw.random() + 0.5, draw.randint(-200, 200))
        digits = draw.randint(2, 9)
        low, high = value(words.down(number, digits)), value(words.up(number, digits))
        assert low <= Fraction(number) <= high
        assert high - low <= Fraction(number) * Fraction(10) ** (1 - digits)


@pytest.mark.parametrize("number", [0.0, 1.0, 0.5, 10_000.0, 1e6, 5e-324, 1.7e308])
def test_what_is_exact_stays_so(number: float) -> None:
    assert value(words.up(number, 17)) >= Fraction(number) >= value(words.down(number, 17))
    if 0.001 < number < 1e7:
        assert value(words.up(number)) == value(words.down(number)) == Fraction(number)


def test_infinity_is_said() -> None:
    assert words.up(math.inf) == words.up("Infinity") == "infinite"
    assert "No finite epsilon" in words.promise(math.inf, 1e-6, "person", "add-remove")


def test_the_ends_of_an_interval_are_told_apart() -> None:
    assert words.interval(5.806935026564938, 5.806935026565951) == ("5.806935026", "5.806935027")
    low, high = words.interval("5.806935026565262665669166", "5.80693502656548495392671")
    assert value(low) <= Fraction("5.806935026565262665669166") < Fraction("5.80693502656548495392671") <= value(high)


def test_factors_and_chances_are_never_too_small() -> None:
    draw = random.Random(8)
    for _ in range(500):
        epsilon = draw.uniform(0, 30)
        assert float(value(words.factor(epsilon))) >= math.exp(epsilon)
    assert value(words.factor(1000.0)) >= Fraction(10) ** 434
    for _ in range(500):
        delta = 10 ** draw.uniform(-8.9, -2.01)
        said = words.chance(delta).removeprefix("one in ").replace("\N{NARROW NO-BREAK SPACE}", "")
        many = float(said.removesuffix(" million")) * (1e6 if said.endswith("million") else 1.0)
        assert delta <= 1 / many <= 1.011 * delta


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.2])
def test_the_promise_is_the_definition(adjacency: str, delta: float) -> None:
    said = words.promise(1.0, delta, "household", adjacency)
    assert "any conclusion is at most 2.72 times as likely" in said
    assert "household" in said
    assert ("plus" in said) == (delta > 0)
    for claim in ("exceed", "fails", "fail", "broken", "probability that"):  # delta is no chance that epsilon fails
        assert claim not in said


def test_an_attack_is_described_for_each_kind_of_neighbours() -> None:
    one, two = words.attack(0.01, 0.883, "add-remove"), words.attack(0.01, 0.883, "replace-one")
    assert "1\N{NARROW NO-BREAK SPACE}%" in one
    assert "11.7\N{NARROW NO-BREAK SPACE}%" in one
    assert "11.7" in two
    assert "not in the data" in one
    assert "not in the data" not in two
