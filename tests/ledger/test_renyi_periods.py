"""Periods of budgets in Renyi DP, whose own best orders are not those of the budget above them."""

from __future__ import annotations

import pytest

import privloss as pl
from privloss.ledger.filters import Filter

YEAR = 365.25 * 86400
STEP = pl.Gaussian(noise_multiplier=12)


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0  # January 2027

    def __call__(self) -> float:
        return self.now


def made(place: str, clock: Clock, rule: str | None = None) -> pl.Ledger:
    ledger = pl.Ledger.create(place, clock=clock)
    ledger.add_dataset("d", adjacency="add-remove")
    ledger.set_budget("d", currency="rdp", cap="3", delta="1e-6", filter=rule)
    ledger.set_budget("d", currency="rdp", cap="1", delta="1e-6", filter=rule, every="year")
    return ledger


def spend(ledger: pl.Ledger, key: str) -> int:
    """How often a step is let through, before a cap would be exceeded."""
    count, why = 0, ""
    while not why:
        try:
            with ledger.spend("d", STEP, key=f"{key} {count}"):
                count += 1
        except pl.RefusedError as no:
            why = no.refused.reason.code
    assert why in ("period-exceeded", "budget-exceeded", "parent-exceeded")
    return count


def test_periods_in_renyi_dp_are_held_each_year(place: str) -> None:
    """By the exact loss of what was let through: each year within (1, 1e-6), all years within (3, 1e-6)."""
    clock = Clock()
    ledger = made(place, clock)
    years = []
    while (count := spend(ledger, f"{clock.now}")) > 0:
        years.append(count)
        clock.now += YEAR
    assert len(years) >= 3
    for count in years:
        assert (STEP * count).epsilon(1e-6).upper <= 1
    assert (STEP * years[0]).epsilon(1e-6).upper > 0.7  # not for nothing
    assert (STEP * sum(years)).epsilon(1e-6).upper <= 3
    assert ledger.verify().clean
    assert ledger.status("d")["period"]["every"] == "year"


def test_a_period_of_some_order_has_shares_of_delta(place: str) -> None:
    ledger = made(place, Clock(), "some")
    held = Filter.of("rdp", "1", "1e-6", "some")
    assert held.each_period(Filter.of("rdp", "3", "1e-6", "some"), group=True) == held
    count = spend(ledger, "first")
    assert 0.6 < (STEP * count).epsilon(1e-6).upper <= 1
    assert ledger.verify().clean


def test_a_period_of_a_group_is_held_too(place: str) -> None:
    """A group is charged at its own orders: a period's cap is what these leave of it."""
    ledger = pl.Ledger.create(place, clock=Clock())
    ledger.add_group("all", adjacency="add-remove")
    ledger.add_dataset("d", adjacency="add-remove", parent="all")
    for name in ("all", "d"):
        ledger.set_budget(name, currency="rdp", cap="3", delta="1e-6")
        ledger.set_budget(name, currency="rdp", cap="1.5", delta="1e-6", every="year")
    count = spend(ledger, "first")
    assert 0.7 < (STEP * count).epsilon(1e-6).upper <= 1.5
    assert ledger.verify().clean
    ledger.add_group("none", adjacency="add-remove")
    ledger.set_budget("none", currency="rdp", cap="3", delta="1e-6")
    with pytest.raises(pl.RefusedError, match="so small a cap has no room"):
        ledger.set_budget("none", currency="rdp", cap="0.3", delta="1e-6", every="year")


def test_a_period_above_the_budget_is_refused(place: str) -> None:
    ledger = made(place, Clock())
    with pytest.raises(pl.RefusedError, match="quota-above-cap"):
        ledger.set_budget("d", currency="rdp", cap="4", delta="1e-6", every="year")


def test_a_renyi_quota_that_grows_has_counted_at_every_order(place: str) -> None:
    """A small quota holds at few orders; what was spent under it counts at those that a larger one has as well."""
    ledger = pl.Ledger.create(place)
    ledger.add_dataset("d", adjacency="add-remove")
    ledger.set_budget("d", currency="rdp", cap="3", delta="1e-6")
    ledger.set_budget("d", currency="rdp", cap="1", delta="1e-6", analyst="ann")
    with ledger.spend("d", STEP, key="k", analyst="ann"):
        pass
    small = ledger.status("d")["analysts"]["ann"]
    assert any("cap" not in part for part in small.values())
    ledger.set_budget("d", currency="rdp", cap="3", delta="1e-6", analyst="ann")
    large = ledger.status("d")["analysts"]["ann"]
    assert all("cap" in part and part["spent"] != "0" for part in large.values())
    assert ledger.verify().clean
