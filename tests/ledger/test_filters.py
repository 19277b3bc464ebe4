"""Filters and odometers: their theorems against the engine, and why exact curves are no filter."""

from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privloss as pl
from privloss.ledger import amounts
from privloss.ledger.filters import CURRENCIES, THEOREMS, Filter
from privloss.ledger.odometers import odometer
from privloss.ledger.pricing import price


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
        (("zcdp", "1", None, "advanced"), "other currencies have no choice"),
        (("rdp", "3", "1e-6", "advanced"), "every or some for rdp"),
        (("approx", "3", "1e-6", "some"), "basic or advanced for approx"),
        (("rdp", "0.001", "1e-9"), "leaves room"),
        (("gdp", "2000000"), "at most"),
        (("approx", "1", "1e-400", "advanced"), "must be 0 or at least 1e-300"),
        (("approx", "1", "1e-301"), "must be 0 or at least 1e-300"),
        (("rdp", "1", "1e-400"), "must be 0 or at least 1e-300"),
        (("zcdp", "1", "1e-400"), "must be 0 or at least 1e-300"),
        (("gdp", "1", "1e-400"), "must be 0 or at least 1e-300"),
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
    assert zcdp < 5.2215345
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


@pytest.mark.parametrize("delta", ["0.5", "0.01", "1e-6", "1e-75", "1e-300"])
@pytest.mark.parametrize("cap", [f"1/{2**40}", "1e-6", "0.001", "1/3", "3", "1000"])
def test_guarantees_are_those_of_the_engine(cap: str, delta: str) -> None:
    """Computed without it: never below, and hardly above."""
    size, chance = float(Fraction(cap)), float(delta)
    zcdp = float(Filter.of("zcdp", cap, delta).guarantee()["epsilon"] or 0)
    assert 0 <= zcdp - pl.conversion.zcdp_to_epsilon(size, delta=chance) <= 1e-8 * zcdp + 2e-12
    gdp = float(Filter.of("gdp", cap, delta).guarantee()["epsilon"] or 0)
    exact = pl.GDP(size).epsilon(chance)
    assert exact.lower <= gdp <= exact.upper * 1.01 + 2e-12


@pytest.mark.parametrize("delta", ["1e-300", "1e-299", "1e-290", "1e-200", "1e-5", "0.3"])
@pytest.mark.parametrize("cap", ["1e-12", "1e-6", "0.0009", "0.0011", "1", "1.35", "1.45", "1.5", "2", "10", "100"])
def test_what_gdp_guarantees_where_tails_leave_the_doubles(cap: str, delta: str) -> None:
    """delta(epsilon) of Gaussian noise in sixty digits: at most delta, and more just before."""
    found = Filter.of("gdp", cap, delta).guarantee()["epsilon"] or ""
    with mp.workdps(60):
        mu = mp.mpf(cap)

        def at(eps: Any) -> Any:
            return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)

        eps = mp.mpf(found)
        assert at(eps) <= mp.mpf(delta)
        before = eps * (1 - mp.mpf("1e-6")) - mp.mpf("1.1e-12")
        assert before <= 0 or at(before) > mp.mpf(delta)


@pytest.mark.parametrize("delta", ["1e-300", "1e-100", "0.1"])
@pytest.mark.parametrize("cap", ["0.001", "1", "100", "10000"])
def test_what_advanced_guarantees_at_tiny_deltas(cap: str, delta: str) -> None:
    room = Filter.of("approx", cap, delta, "advanced").caps["epsilon_squared"]
    with mp.workdps(60):
        total = mp.mpf(room.numerator) / room.denominator
        eps = mp.sqrt(2 * mp.log(2 / mp.mpf(delta)) * total) + total / 2
        assert mp.mpf(cap) * (1 - mp.mpf("0.01")) <= eps <= mp.mpf(cap)


@pytest.mark.parametrize("delta", ["1e-6", "1e-75", "1e-300", "1/3", f"1/{7**50}", f"{10**15 + 1}/{10**40}"])
@pytest.mark.parametrize("cap", ["1/3", "900", f"1/{2**40}"])
def test_small_and_odd_deltas(cap: str, delta: str) -> None:
    """What is written can be read again, and has a guarantee or a clear refusal."""
    for currency, rule in (("approx", "basic"), ("approx", "advanced"), ("zcdp", None), ("rdp", None), ("gdp", None)):
        if currency == "rdp" and cap != "900":
            with contextlib.suppress(pl.InvalidInput):  # "no order leaves room"
                Filter.of(currency, cap, delta)
            continue
        made = Filter.of(currency, cap, delta, rule)
        assert made.delta == Fraction(delta)
        assert Filter.from_dict(made.to_dict()) == made
        found = made.guarantee()
        assert 0 <= float(Fraction(found["epsilon"] or -1)) < math.inf


@given(st.fractions(min_value=0, max_value=1000))
def test_amounts_round_in_the_safe_direction(value: Fraction) -> None:
    assert amounts.round_down(value, 40) <= value <= amounts.round_up(value, 40)
    assert amounts.units(value, 40) == math.ceil(value * 2**40)
    assert amounts.read("x", amounts.show(value)) == value
    if value > 0:
        assert amounts.cost("x", value) >= value


def test_huge_denominators() -> None:
    odd = Fraction(1, 10**25 + 1) + Fraction(1, 2)
    assert amounts.cost("x", odd) >= odd
    assert amounts.cost("x", odd).denominator <= 2**40
    assert amounts.cap("x", odd) <= odd


@given(st.integers(1, 10**6))
def test_a_plan_is_priced_at_no_more_than_the_delta_charged(n: int) -> None:
    chance = Fraction(n, 10**13 + 1)
    assert Fraction(amounts.down(chance)) <= chance < Fraction(math.nextafter(amounts.down(chance), 1.0))


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


def test_what_an_odometer_says_is_true() -> None:
    """Randomised response of epsilon 1 is (0.9, delta)-DP with a small delta, but its loss is often 1: the reading says
    nothing about that loss, only about answers it can be computed from."""
    delta = pl.PureDP(1.0).delta(0.9).upper
    often = math.e / (1 + math.e)
    assert delta < 0.07 < often
    basic = odometer("approx", {"epsilon": Fraction(9, 10), "delta": Fraction(delta)})
    assert basic.dominated
    assert basic.text.startswith(f"what was released so far is (0.9, {basic.delta!r})-DP, if the rule for ")
    advanced = odometer("approx", {"epsilon_squared": Fraction(1, 10), "delta": Fraction(1, 10**6)}, 1e-6)
    assert advanced.dominated
    assert advanced.text.startswith(f"what was released so far is ({advanced.epsilon!r}, {advanced.delta!r})-DP, if ")
    for reading in (basic, advanced):  # no claim that the loss is at most epsilon except with probability delta
        assert "at most" not in reading.text
        assert "except with probability" not in reading.text
    for currency, spent in (
        ("zcdp", {"rho": Fraction(1, 10)}),
        ("approx", {"epsilon_squared": Fraction(1, 10), "delta": Fraction(0)}),
    ):
        found = odometer(currency, spent, 1e-6)
        assert not found.dominated
        assert found.text == f"the privacy loss so far is at most {found.epsilon!r}, except with probability 1e-06"
    assert odometer("approx", {"epsilon": Fraction(1, 4), "delta": Fraction(0)}).text.endswith("0.25, surely")
    # the pair from which every (epsilon, delta)-DP answer can be computed: it fails with delta, else loses epsilon
    assert pl.ApproxDP(0.9, delta).delta(0.9).upper == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 8.0])
def test_readings_of_gaussian_noise_claim_no_more_than_is_true(sigma: float) -> None:
    """Its loss is N(mu^2/2, mu^2): where a text bounds the loss except with probability delta, that is so; what is
    charged as (epsilon, delta) exceeds epsilon more often (5.3 times as often for sigma = 1), and no text says it does
    not."""
    mu, chance, plan = 1 / sigma, 1e-5, pl.Gaussian(sigma).as_plan()

    def exceeded(eps: float) -> float:
        return 0.5 * math.erfc((eps - mu * mu / 2) / mu / math.sqrt(2))

    budgets = {
        "zcdp": Filter.of("zcdp", "100"), "gdp": Filter.of("gdp", "100"), "rdp": Filter.of("rdp", "400", "1e-5"),
        "some": Filter.of("rdp", "400", "1e-5", "some"), "basic": Filter.of("approx", "400", "1e-4"),
        "advanced": Filter.of("approx", "400", "1e-4", "advanced"),
    }  # fmt: skip
    for name, budget in budgets.items():
        found = odometer(budget.currency, price(plan, budget, chance if budget.currency == "approx" else None), chance)
        bounds_the_loss = found.text == (
            f"the privacy loss so far is at most {found.epsilon!r}, except with probability {found.delta!r}"
        )
        assert bounds_the_loss == (budget.currency != "approx")
        if bounds_the_loss:
            assert exceeded(found.epsilon) <= found.delta
        else:
            assert found.text.startswith("what was released so far is (")
            assert plan.delta(found.epsilon).upper <= found.delta
        if name == "basic":
            assert exceeded(found.epsilon) > found.delta
    assert sigma != 1 or exceeded(plan.epsilon(chance).upper) == pytest.approx(5.28e-5, rel=1e-3)
