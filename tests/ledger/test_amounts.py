"""Amounts: exact where it stays short, else rounded up; no sequence of spends makes a ledger unusable."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privloss as pl
from privloss.ledger.amounts import BITS, DELTA_BITS, cap, cost, kept
from privloss.ledger.commands import Move, Reserve
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.state import COMMITTED, STARTED

UNIT, DELTA_UNIT = Fraction(1, 2**BITS), Fraction(1, 2**DELTA_BITS)


@pytest.mark.parametrize(
    "text", ["0.1", "0.123456789012", "1e-12", "1/7", "1/1000", "999/1000", "123456.789", "1/11", "1000000", "3e2"]
)
def test_what_is_kept_exactly(text: str) -> None:
    assert cost("cost", text) == cap("cap", text) == Fraction(text)


@pytest.mark.parametrize("text", ["1e-18", "0.123456789012345678901234567890", "1/7", "1e-5"])
def test_deltas_kept_exactly(text: str) -> None:
    assert cost("delta", text, DELTA_BITS) == Fraction(text)


@pytest.mark.parametrize(
    "text", ["0.1234567890123", "1/1001", "1/1000000007", "7/10007", f"1/{10**40 + 121}", "0.1e-13"]
)
def test_everything_else_is_rounded_in_the_safe_direction(text: str) -> None:
    exact = Fraction(text)
    assert 0 <= cost("cost", text) - exact < UNIT
    assert (cost("cost", text) / UNIT).denominator == 1
    assert 0 <= cost("delta", text, DELTA_BITS) - exact < DELTA_UNIT or kept(exact, DELTA_BITS)
    if exact > UNIT:
        assert 0 <= exact - cap("cap", text) < UNIT


def test_eleven_times_an_eleventh() -> None:
    assert 11 * cost("cost", "1/11") == 1 == cap("cap", "1")


@pytest.mark.parametrize("text", ["0." + "1" * 59, "1/" + "3" * 59, "1" * 61, " 0.1" + " " * 60 + "2"])
def test_longer_texts_are_refused(text: str) -> None:
    with pytest.raises(pl.InvalidInput):
        cost("cost", text)
    assert cost("cost", "0." + "1" * 58) > 0


@pytest.mark.parametrize("value", [np.float64(0.1), 0.1, np.int64(1), 1, Fraction(1, 3), np.float32(0.5)])
def test_numbers_of_other_libraries(value: Any, place: str) -> None:
    made = _made(place)
    if isinstance(value, np.float32):  # no float, no Rational: refused in one sentence
        with pytest.raises(pl.InvalidInput, match="must be a number"):
            made.reserve("d", cost=value, key="k")
        return
    held = made.reserve("d", cost=value, key="k")
    assert Fraction(held.charged["d"]["epsilon"]) == Fraction(str(value))
    assert made.reserve("d", cost=value, key="k") == held


def _made(place: str, cap: str = "1000") -> Ledger:
    made = Ledger.create(place)
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap=cap)
    return made


def _primes(below: int) -> list[int]:
    sieve = bytearray([1]) * below
    sieve[:2] = b"\0\0"
    for i in range(2, int(below**0.5) + 1):
        sieve[i * i :: i] = bytes(len(range(i * i, below, i)))
    return [i for i in range(below) if sieve[i]]


def _spends(made: Ledger, texts: list[str]) -> None:
    """Each reserved, then each started and committed, many in one transaction."""
    charges = [{"d": {"epsilon": cost("cost", text)}} for text in texts]
    held = [Reserve(text, text, amounts, None, "", 3600.0) for text, amounts in zip(texts, charges, strict=True)]
    for commands in (held, [Move(STARTED, text) for text in texts], [Move(COMMITTED, text) for text in texts]):
        assert [outcome.refused for outcome in made.store.run_all(commands)] == [None] * len(texts)


@pytest.mark.parametrize(
    "texts",
    [[f"1/{p}" for p in _primes(10**4)], [f"1/{10**39 + 2 * i + 1}" for i in range(115)]],
    ids=["successive primes", "forty digits"],
)
def test_every_key_can_still_be_committed(place: str, texts: list[str]) -> None:
    """Exact sums of such amounts have denominators of thousands of digits, which no database takes."""
    made = _made(place)
    assert len(texts) in (1229, 115)
    _spends(made, texts[:-1])
    with made.spend("d", cost=texts[-1], key="last"):
        pass
    status = made.status("d")
    spent, exact = Fraction(status["committed"]), sum(Fraction(text) for text in texts)
    assert exact <= spent < exact + len(texts) * UNIT
    assert Fraction(status["remaining"]) == 1000 - spent
    assert len(status["committed"]) < 3000
    assert made.verify().clean


@pytest.mark.parametrize(("currency", "delta"), [("gdp", "1e-6"), ("zcdp", "1e-6"), ("pure", None)])
def test_large_caps(place: str, currency: str, delta: str | None) -> None:
    """In GDP the cap is squared: 5000^2 units of 2^-40 are more than 63 bits hold."""
    made = Ledger.create(place)
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency=currency, cap="5000", delta=delta)
    made.reserve("d", cost="4000", key="k")
    with made.spend("d", cost="900", key="k2"):
        pass
    with pytest.raises(RefusedError, match="budget-exceeded"):
        made.reserve("d", cost="3000", key="k3")
    assert made.verify().clean
    made.add_dataset("most", adjacency="add-remove")
    made.set_budget("most", currency=currency, cap="1000000", delta=delta)
    made.reserve("most", cost="1000000", key="all")
    assert Fraction(made.status("most")["remaining"]) == 0


def test_a_positive_delta_is_at_least_one_unit() -> None:
    """A delta keeps thirty places, of which the last lie below a unit."""
    assert cost("cost-delta", "1e-25", DELTA_BITS) == Fraction(1, 2**62)
    assert cost("cost-delta", "1e-18", DELTA_BITS) == Fraction(1, 10**18)
