"""Filters and odometers: their theorems against the engine, and why exact curves are no filter."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privloss as pl
from privloss.ledger import amounts
from privloss.ledger.filters import CURRENCIES, THEOREMS, Filter
from privloss.ledger.odometers import odometer
from privloss.ledger.pricing import _down


def test_exact_curves_are_no_filter() -> None:
    """Randomised response with 0.2; then, depending on its answer, randomised response with 0.7 or reveal with
    probability 0.0952. Each path composes to about (0.6, 0.0952); choosing by the answer gives more."""
    first, second, reveal = 0.2, 0.7, 0.0952
    for later in (pl.PureDP(second), pl.ApproxDP(0.0, reveal)):
        assert (pl.PureDP(first) + later).delta(0.6).upper <= 0.0953

    def response(eps: float) -> list[tuple[float, float]]:
        up = math.exp(eps) / (1 + math.exp(eps))
        return [(up, 1 - up), (1 - up, up)]

    def adaptive(choice: tuple[int, ...]) -> float:
        """delta(0.6) of the adaptive pair: outcomes are (first answer, second outcome), choice[i] the second step."""
        total = 0.0
        for (p, q), kind in zip(response(first), choice, strict=True):
            steps = response(second) if kind == 0 else [(reveal, 0.0), (0.0, reveal), (1 - reveal, 1 - reveal)]
            total += sum(max(p * a - math.exp(0.6) * q * b, 0.0) for a, b in steps)
        return total

    worst = max(adaptive(choice) for choice in itertools.product((0, 1), repeat=2))
    assert worst == pytest.approx(0.138, abs=1e-3)
    with pytest.raises(pl.Unsupported, match="no filter"):
        Filter.of("exact", "0.6", "0.0952")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("bits", "1"), "currency"),
        (("pure", "0"), "positive"),
        (("pure", "-1"), "cap"),
        (("pure", "1", "1e-6"), "pure budget has none"),
        (("approx", "1"), "needs a delta"),
        (("approx", "1", "0"), "needs a delta"),
        (("approx", "1", "1"), "below 1"),
        (("approx", "1", "1e-6", "magic"), "basic or advanced"),
        (("zcdp", "1", None, "advanced"), "approx only"),
        (("rdp", "0.001", "1e-9"), "leaves room"),
        (("gdp", "2000000"), "at most"),
    ],
)
def test_budgets_that_make_no_sense(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(pl.InvalidInput, match=says):
        Filter.of(*arguments)


def test_every_filter_states_its_theorem() -> None:
    for currency in CURRENCIES:
        made = Filter.of(currency, "4", "1e-6" if currency != "pure" else None)
        assert made.theorem == THEOREMS[made.name]
        assert Filter.from_dict(made.to_dict()) == made


def test_advanced_caps() -> None:
    made = Filter.of("approx", "2", "1e-6", "advanced")
    total, half = float(made.caps["epsilon_squared"]), 0.5e-6
    assert 2 * (1 - 1e-6) <= math.sqrt(2 * math.log(1 / half) * total) + total / 2 <= 2
    assert made.caps["delta"] == Fraction(1, 2 * 10**6)
    assert made.charge("0.1", "1e-9") == {"epsilon_squared": Fraction(1, 100), "delta": Fraction(1, 10**9)}


def test_guarantees_against_the_engine() -> None:
    """What a full budget guarantees is what the engine says about one mechanism that spends all of it."""
    zcdp = float(Filter.of("zcdp", "0.5", "1e-6").guarantee()["epsilon"] or 0)
    assert zcdp >= pl.ZCDP(0.5).epsilon(1e-6).upper * (1 - 1e-9)
    assert zcdp <= pl.ZCDP(0.5).epsilon(1e-6).upper * (1 + 1e-3)
    gdp = float(Filter.of("gdp", "0.8", "1e-6").guarantee()["epsilon"] or 0)
    assert gdp == pytest.approx(pl.GDP(0.8).epsilon(1e-6).upper, rel=1e-8)
    assert gdp >= pl.GDP(0.8).epsilon(1e-6).upper
    rdp = Filter.of("rdp", "3", "1e-6")
    for name, room in rdp.caps.items():
        order = float(name.split()[1])
        found = pl.RDP(orders=[order], epsilons=[float(room)]).epsilon(1e-6).upper
        assert 3 * (1 - 1e-6) <= found <= 3 * (1 + 1e-12)
    assert len(rdp.caps) >= 2
    assert Filter.of("zcdp", "0.5").guarantee() == {"epsilon": None, "delta": None}


@given(st.fractions(min_value=0, max_value=1000))
def test_amounts_round_in_the_safe_direction(value: Fraction) -> None:
    assert amounts.round_down(value, 40) <= value <= amounts.round_up(value, 40)
    assert amounts.units(value, 40) == math.ceil(value * 2**40)
    assert amounts.read("x", amounts.show(value)) == value
    if value > 0:
        assert amounts.cost("x", value) >= value


def test_huge_denominators() -> None:
    odd = Fraction(1, 10**41 + 1) + Fraction(1, 2)
    assert amounts.cost("x", odd) >= odd
    assert amounts.cost("x", odd).denominator <= 2**40
    assert amounts.cap("x", odd) <= odd


@given(st.integers(1, 10**6))
def test_a_plan_is_priced_at_no_more_than_the_delta_charged(n: int) -> None:
    chance = Fraction(n, 10**13 + 1)
    assert Fraction(_down(chance)) <= chance < Fraction(math.nextafter(_down(chance), 1.0))


def test_odometers() -> None:
    assert odometer("pure", {"epsilon": Fraction(3, 10)}).epsilon == pytest.approx(0.3, rel=1e-11)
    basic = odometer("approx", {"epsilon": Fraction(1, 2), "delta": Fraction(1, 10**6)})
    assert basic.epsilon == pytest.approx(0.5)
    assert basic.delta == pytest.approx(1e-6)
    for currency, part in (("zcdp", "rho"), ("gdp", "mu_squared"), ("approx", "epsilon_squared"), ("rdp", "order 8")):
        readings = [odometer(currency, {part: Fraction(x, 100)}, 1e-6).epsilon for x in (0, 1, 10, 100, 1000)]
        assert readings == sorted(readings)
        assert readings[0] == 0
        with pytest.raises(pl.InvalidInput, match="failure probability"):
            odometer(currency, {part: Fraction(1)})
    # never below the bound for a cap known in advance, and not much above it
    known = 0.1 + 2 * math.sqrt(0.1 * math.log(1e6))
    assert known <= odometer("zcdp", {"rho": Fraction(1, 10)}, 1e-6).epsilon <= 2 * known
    with pytest.raises(pl.InvalidInput, match="currency"):
        odometer("bits", {})
