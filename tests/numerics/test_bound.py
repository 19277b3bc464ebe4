"""Bound: ends, quoting, ordering, arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privloss import Bound, Bounds, InvalidInput
from privloss.numerics.bound import largest


def test_float_is_the_upper_end() -> None:
    assert float(Bound(1.0, 2.0)) == 2.0
    assert list(Bound(1.0, 2.0)) == [1.0, 2.0]


@pytest.mark.parametrize(("lower", "upper"), [(2.0, 1.0), (math.nan, 1.0), (0.0, math.nan)])
def test_a_bound_that_says_nothing_is_refused(lower: float, upper: float) -> None:
    with pytest.raises(InvalidInput, match="lower <= upper"):
        Bound(lower, upper)


def test_ordering_only_when_certain() -> None:
    b = Bound(1.0, 2.0)
    assert b <= 2.0
    assert b < 3.0
    assert b >= 1.0
    assert b > 0.5
    assert not b <= 0.5
    assert not b > 2.5
    assert b < Bound(2.5, 3.0)
    with pytest.raises(InvalidInput, match="not decided"):
        _ = b < 1.5
    with pytest.raises(InvalidInput, match="not decided"):
        _ = b <= Bound(1.5, 3.0)


def test_arithmetic_rounds_outwards() -> None:
    total = Bound(0.1, 0.2) + Bound(0.2, 0.3)
    assert total.lower < 0.1 + 0.2 < math.nextafter(total.upper, 0)
    assert 0.3 in total
    assert (Bound(1.0, 2.0) * 3).lower < 3.0 < 6.0 < (3 * Bound(1.0, 2.0)).upper
    for bad in (-1, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="factor"):
            _ = Bound(1.0, 2.0) * bad
    with pytest.raises(TypeError):
        _ = Bound(1.0, 2.0) + 1.0
    with pytest.raises(TypeError):
        _ = Bound(1.0, 2.0) * Bound(1.0, 2.0)


def test_text_rounds_outwards() -> None:
    for b in (
        Bound(5.8069350265649, 5.80693502656588),
        Bound(1.23e-9, 4.5e-9),
        Bound(0.0, 1e-20),
        Bound(3.0, math.inf),
    ):
        low, high = (float(x) for x in str(b).strip("[]").split(", "))
        assert low <= b.lower <= b.upper <= high
    assert repr(Bound(1.0, 2.0)) == "Bound(1.0, 2.0)"
    assert str(Bound(math.inf, math.inf)) == "inf"


def test_width_and_membership() -> None:
    assert Bound(1.0, 1.5).relative_width == pytest.approx(1 / 3)
    assert Bound(math.inf, math.inf).width == 0
    assert 1.2 in Bound(1.0, 1.5)
    assert 1.6 not in Bound(1.0, 1.5)


def test_equality_ignores_provenance_and_hashes() -> None:
    assert Bound(1.0, 2.0, "a") == Bound(1.0, 2.0, "b")
    assert len({Bound(1.0, 2.0, "a"), Bound(1.0, 2.0, "b")}) == 1


def test_largest_and_bounds() -> None:
    assert largest([Bound(0.0, 3.0), Bound(1.0, 2.0)]) == Bound(1.0, 3.0)
    many = Bounds([Bound(0.0, 1.0), Bound(2.0, 3.0)])
    assert many.lower == [0.0, 2.0]
    assert many.upper == [1.0, 3.0]
    assert np.asarray(many).tolist() == [1.0, 3.0]
    assert many[1] == Bound(2.0, 3.0)
    assert len(many[:1]) == 1
