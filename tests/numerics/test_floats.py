"""Directed rounding: every operation moves the way its name says, for either sign, and stays where it must."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import privloss
from privloss.numerics import floats
from privloss.numerics.floats import UNIT

SOURCE = Path(privloss.__file__).parent
ROOMS = ("numerics", "losses/closed", "losses/mixture", "losses/density")  # widen bounds through `floats` alone
UP = (floats.raised, floats.padded_up)
DOWN = (floats.lowered, floats.padded_down)


def _values() -> Iterator[float]:
    draw = random.Random(4)
    for _ in range(300):
        yield draw.choice((-1, 1)) * 10 ** draw.uniform(-290, 290)


@pytest.mark.parametrize("units", [2, 3, 16, 1000.5])
def test_raised_and_lowered_cover_their_units_for_either_sign(units: float) -> None:
    for value in _values():
        low, high = floats.widened(value, units)
        # all of the units but for the rounding of the last sum
        room = (Fraction(units) - Fraction(1)) * Fraction(UNIT) * abs(Fraction(value))
        assert Fraction(low) <= Fraction(value) - room
        assert Fraction(high) >= Fraction(value) + room
        assert (low, high) == (floats.lowered(value, units), floats.raised(value, units))


def test_arrays_are_treated_like_their_entries() -> None:
    values = np.array(list(_values()))
    for operation in (*UP, *DOWN):
        assert operation(values, 8).tolist() == [operation(float(v), 8) for v in values]
        assert operation(values, 8, 2.0).tolist() == [operation(float(v), 8, 2.0) for v in values]


@pytest.mark.parametrize("end", [math.inf, -math.inf])
@pytest.mark.parametrize("operation", [*UP, *DOWN, floats.log_raised, floats.log_lowered])
def test_an_infinite_end_stays(operation: object, end: float) -> None:
    assert callable(operation)
    assert operation(end, 4) == end


def test_results_rounded_up_and_down_enclose_them() -> None:
    values = np.abs(np.array(list(_values())))
    assert np.all(floats.rounded_down(values, 2) < values)
    assert np.all(floats.rounded_up(values, 2) > values)
    assert np.all(floats.rounded_up(values, 0) == values)


def test_bounds_are_widened_in_one_place() -> None:
    by_hand = re.compile(r"nextafter|\(1 [-+] [^()]*UNIT")
    for room in ROOMS:
        for path in (SOURCE / room).rglob("*.py"):
            if path.name != "floats.py":
                assert not by_hand.search(path.read_text()), path
