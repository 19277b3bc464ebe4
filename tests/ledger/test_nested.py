"""Groups, periods and blocks as people use them, on both stores."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import privloss as pl
from privloss.ledger.ledger import Ledger, RefusedError

DECEMBER, JANUARY = (
    datetime(year, month, day, tzinfo=UTC).timestamp() for year, month, day in ((2026, 12, 31), (2027, 1, 1))
)


class Time:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = DECEMBER

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def ledger(place: str, time: Time) -> Ledger:
    return Ledger.create(place, clock=time)


def _pure(ledger: Ledger, name: str, cap: str, **options: Any) -> None:
    ledger.add_dataset(name, adjacency="add-remove", **options)
    ledger.set_budget(name, currency="pure", cap=cap)


def _answer(ledger: Ledger, *names: str, cost: str, key: str, **options: Any) -> str:
    try:
        return ledger.reserve(names, cost=cost, key=key, **options).state
    except RefusedError as refused:
        return refused.refused.reason.code


def _left(ledger: Ledger, name: str) -> Any:
    return ledger.status(name)["remaining"]


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def house(ledger: Ledger) -> Ledger:
    """house (1.5) over lab (1) over a and b (0.8 each); and c (1) beside the lab."""
    for name, cap, parent in (("house", "1.5", None), ("lab", "1", "house")):
        ledger.add_group(name, adjacency="add-remove", parent=parent)
        ledger.set_budget(name, currency="pure", cap=cap)
    for name, cap, parent in (("a", "0.8", "lab"), ("b", "0.8", "lab"), ("c", "1", "house")):
        _pure(ledger, name, cap, parent=parent)
    return ledger


def test_a_group_holds_the_sum_of_its_datasets(house: Ledger) -> None:
    assert _answer(house, "a", cost="0.6", key="a") == "RESERVED"
    assert _answer(house, "b", cost="0.6", key="b") == "parent-exceeded"  # 1.2 in the lab
    assert _answer(house, "b", cost="0.4", key="b") == "RESERVED"
    assert _answer(house, "c", cost="0.6", key="c") == "parent-exceeded"  # 1.6 in the house
    assert _answer(house, "c", cost="0.5", key="c") == "RESERVED"
    assert [_left(house, name) for name in ("house", "lab", "a", "b", "c")] == ["0", "0", "0.2", "0.4", "0.5"]
    house.void("a")
    assert [_left(house, name) for name in ("house", "lab", "a")] == ["0.6", "0.6", "0.8"]
    assert house.verify().clean


def test_two_datasets_of_one_group_in_one_request_count_twice(house: Ledger) -> None:
    assert _answer(house, "a", "b", cost="0.6", key="both") == "parent-exceeded"
    held = house.reserve(["a", "b"], cost="0.5", key="both")
    assert {name: parts["epsilon"] for name, parts in held.charged.items()} == {
        "a": "0.5", "b": "0.5", "lab": "1", "house": "1",
    }  # fmt: skip
    assert _left(house, "lab") == "0"
    house.start("both")
    house.commit("both")
    assert house.status("house")["committed"] == "1"
    assert house.verify().clean


def test_what_a_group_refuses_is_charged_nowhere(house: Ledger) -> None:
    assert _answer(house, "a", "c", cost="0.8", key="k") == "parent-exceeded"
    assert [_left(house, name) for name in ("house", "lab", "a", "c")] == ["1.5", "1", "0.8", "1"]
    assert _answer(house, "a", "c", cost="0.7", key="k") == "RESERVED"  # a key refused is free


def test_groups_are_no_datasets(house: Ledger) -> None:
    assert _answer(house, "lab", cost="0.1", key="k") == "group"
    assert _answer(house, "a", "lab", cost="0.1", key="k") == "group"
    for options, reason in (
        ({"adjacency": "replace-one", "parent": "lab"}, "adjacency"),
        ({"adjacency": "add-remove", "unit": "household", "parent": "lab"}, "adjacency"),
        ({"adjacency": "add-remove", "parent": "a"}, "group"),
        ({"adjacency": "add-remove", "parent": "nowhere"}, "unknown-dataset"),
    ):
        with pytest.raises(RefusedError) as refused:
            house.add_dataset("new", **options)  # type: ignore[arg-type]
        assert refused.value.refused.reason.code == reason


def test_a_frozen_group_lets_nothing_in(house: Ledger) -> None:
    house.reserve("a", cost="0.1", key="before")
    house.freeze("house")
    assert _answer(house, "a", cost="0.1", key="k") == "frozen"
    with pytest.raises(RefusedError, match="'house' is frozen"):
        house.start("before")


def test_a_group_without_a_budget_lets_nothing_in(ledger: Ledger) -> None:
    ledger.add_group("top", adjacency="add-remove")
    ledger.add_group("g", adjacency="add-remove", parent="top")
    _pure(ledger, "a", "1", parent="g")
    assert _answer(ledger, "a", cost="0.1", key="k") == "no-budget"
    ledger.set_budget("a", currency="pure", cap="0.5")  # two levels below a group without one
    for group in ("g", "top"):
        ledger.set_budget(group, currency="pure", cap="0.2")
    assert _answer(ledger, "a", cost="0.2", key="k") == "RESERVED"
    assert _answer(ledger, "a", cost="0.1", key="k2") == "parent-exceeded"


def test_a_group_in_another_currency_lets_nothing_in(ledger: Ledger) -> None:
    ledger.add_group("g", adjacency="add-remove")
    _pure(ledger, "a", "1", parent="g")
    ledger.set_budget("g", currency="zcdp", cap="0.5", delta="1e-6")
    assert _answer(ledger, "a", cost="0.1", key="k") == "currency"
    with pytest.raises(RefusedError, match="currency"):
        _pure(ledger, "b", "1", parent="g")
    ledger.add_dataset("c", adjacency="add-remove", parent="g")
    ledger.set_budget("c", currency="zcdp", cap="1", delta="1e-6")
    assert ledger.reserve("c", pl.Gaussian(10.0), key="c").state == "RESERVED"


def test_quotas_of_a_group(house: Ledger) -> None:
    house.set_budget("lab", currency="pure", cap="0.5", analyst="ann")
    assert _answer(house, "a", cost="0.1", key="k") == "analyst"
    assert _answer(house, "a", cost="0.3", key="k", analyst="Ann") == "RESERVED"
    assert _answer(house, "b", cost="0.3", key="k2", analyst="ann") == "parent-exceeded"
    assert _answer(house, "c", cost="0.3", key="k3") == "RESERVED"  # not under the lab
    assert house.verify().clean


# -- periods -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def yearly(ledger: Ledger) -> Ledger:
    _pure(ledger, "d", "1")
    ledger.set_budget("d", currency="pure", cap="0.4", every="year")
    return ledger


def test_a_year_has_its_own_budget(yearly: Ledger, time: Time) -> None:
    assert _answer(yearly, "d", cost="0.3", key="december") == "RESERVED"
    assert _answer(yearly, "d", cost="0.2", key="more") == "period-exceeded"
    time.now = JANUARY
    assert _answer(yearly, "d", cost="0.4", key="january", lease=1e9) == "RESERVED"
    assert _answer(yearly, "d", cost="0.1", key="more") == "period-exceeded"
    time.now = JANUARY + 366 * 86400
    assert _answer(yearly, "d", cost="0.4", key="later", lease=1e9) == "RESERVED"  # december's lease has ended
    spent = yearly.status("d")["period"]["spent"]
    assert {year: amounts["reserved"] for year, amounts in spent.items()} == {"2026": "0", "2027": "0.4", "2028": "0.4"}
    time.now = JANUARY + 2 * 366 * 86400
    assert _answer(yearly, "d", cost="0.3", key="last") == "budget-exceeded"  # 1 in all years
    assert yearly.verify().clean


def test_a_reservation_counts_in_the_year_it_was_made(yearly: Ledger, time: Time) -> None:
    """Reserved in December, started and committed in January."""
    yearly.reserve("d", cost="0.3", key="k", lease=1e6)
    yearly.reserve("d", cost="0.1", key="back", lease=1e6)
    time.now = JANUARY
    yearly.start("k")
    yearly.commit("k")
    yearly.void("back")
    spent = yearly.status("d")["period"]["spent"]
    assert {year: amounts["committed"] for year, amounts in spent.items()} == {"2026": "0.3"}
    assert spent["2026"]["remaining"] == "0.1"
    assert _answer(yearly, "d", cost="0.4", key="january") == "RESERVED"
    assert yearly.verify().clean


def test_a_period_is_fixed_before_the_first_spend(yearly: Ledger) -> None:
    yearly.set_budget("d", currency="pure", cap="0.5", every="quarter")  # nothing was spent yet
    yearly.reserve("d", cost="0.1", key="k")
    for options in ({"cap": "0.6", "every": "quarter"}, {"cap": "0.5", "every": "month"}, {"cap": "2"}):
        with pytest.raises(RefusedError, match="budget-fixed"):
            yearly.set_budget("d", currency="pure", **options)
    with pytest.raises(pl.InvalidInput, match="has no periods"):
        yearly.set_budget("d", currency="pure", cap="0.1", every="year", analyst="ann")


def test_the_period_of_a_group(house: Ledger, time: Time) -> None:
    house.set_budget("lab", currency="pure", cap="0.5", every="year")
    assert _answer(house, "a", "b", cost="0.3", key="both") == "parent-exceeded"
    assert _answer(house, "a", "b", cost="0.25", key="both", lease=1e9) == "RESERVED"
    time.now = JANUARY
    assert _answer(house, "a", "b", cost="0.25", key="again") == "RESERVED"


# -- blocks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def daily(ledger: Ledger) -> Ledger:
    _pure(ledger, "stream", "1", blocks="day")
    return ledger


def test_each_block_has_its_own_cap(daily: Ledger) -> None:
    assert _answer(daily, "stream", cost="0.6", key="k1", blocks="2026-11-01..2026-11-03") == "RESERVED"
    assert _answer(daily, "stream", cost="0.6", key="k2", blocks="2026-11-03..2026-11-05") == "budget-exceeded"
    assert "2026-11-04" not in daily.status("stream")["spent"]  # all or nothing
    assert _answer(daily, "stream", cost="0.6", key="k2", blocks="2026-11-04..2026-11-05") == "RESERVED"
    assert _answer(daily, "stream", cost="0.4", key="k3", blocks=["2026-11-01", "2026-11-04"]) == "RESERVED"
    left = {day: amounts["remaining"] for day, amounts in daily.status("stream")["spent"].items()}
    assert left == {"2026-11-01": "0", "2026-11-02": "0.4", "2026-11-03": "0.4", "2026-11-04": "0", "2026-11-05": "0.4"}
    with pytest.raises(RefusedError, match="block 2026-11-01, would be exceeded"):
        daily.reserve("stream", cost="1e-9", key="k4", blocks="2026-11-01")
    daily.void("k1")
    assert _answer(daily, "stream", cost="0.6", key="k5", blocks="2026-11-01") == "RESERVED"
    assert daily.verify().clean


def test_blocks_are_said_where_there_are_some(daily: Ledger) -> None:
    _pure(daily, "plain", "1")
    assert _answer(daily, "stream", cost="0.1", key="k") == "blocks"
    assert _answer(daily, "plain", cost="0.1", key="k", blocks="2026-11-01") == "blocks"
    assert _answer(daily, "plain", "stream", cost="0.1", key="k", blocks="2026-11-01") == "RESERVED"
    for bad in (
        "2026-11",
        "2026-13-01",
        "2026-11-02..2026-11-01",
        "2020-01-01..2035-01-01",
        "",
        [],
        5,
        ["2026-11-01", 5],
    ):
        with pytest.raises(pl.InvalidInput, match="blocks"):
            daily.reserve("stream", cost="0.1", key="bad", blocks=bad)
    with pytest.raises(RefusedError, match="has no periods"):
        daily.set_budget("stream", currency="pure", cap="0.1", every="year")
    with pytest.raises(pl.InvalidInput, match="one by one"):
        daily.odometer("stream")


def test_the_same_blocks_are_the_same_request(daily: Ledger) -> None:
    first = daily.reserve("stream", cost="0.1", key="k", blocks="2026-11-01")
    assert daily.reserve("stream", cost="0.1", key="k", blocks="2026-11-01") == first
    assert _answer(daily, "stream", cost="0.1", key="k", blocks="2026-11-02") == "key-reused"
    assert _answer(daily, "stream", cost="0.1", key="k") == "key-reused"


def test_blocks_under_a_group_with_quotas(house: Ledger) -> None:
    """All at once: every block, the group, and the quota; what one refuses is charged nowhere."""
    _pure(house, "s", "1", parent="lab", blocks="week")
    house.set_budget("s", currency="pure", cap="0.7", analyst="ann")
    ask = {"analyst": "ann", "blocks": "2026-W45..2026-W46"}
    assert _answer(house, "s", cost="0.5", key="k", **ask) == "RESERVED"
    assert _answer(house, "s", cost="0.3", key="k2", **ask) == "quota-exceeded"
    assert _answer(house, "s", cost="0.6", key="k2", analyst="ann", blocks="2026-W47") == "parent-exceeded"
    assert _answer(house, "s", cost="0.1", key="k2", blocks="2026-W47") == "analyst"
    assert set(house.status("s")["spent"]) == {"2026-W45", "2026-W46"}
    assert _left(house, "lab") == "0.5"
    quoted = house.quote("s", cost="0.3", **ask)
    assert (quoted["s"]["refused"], quoted["s"]["remaining"]) == ("quota-exceeded", {"epsilon": "-0.1"})
    assert house.verify().clean
