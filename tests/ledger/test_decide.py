"""The rules, refusal by refusal, in the order of `Refusal`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from privloss.ledger.commands import AddAccount, Command, Expire, Freeze, Move, Reserve, SetBudget
from privloss.ledger.decide import Refusal, Refused, decide, step
from privloss.ledger.filters import Filter
from privloss.ledger.state import COMMITTED, EVERYONE, STARTED, VOIDED, State

PURE = Filter.of("pure", "1")
TENTH = {"epsilon": Fraction(1, 10)}
NOW = 1_700_000_000.0  # in 2023


def _reserve(key: str = "new", amount: str = "0.1", *names: str, **changes: Any) -> Reserve:
    values: dict[str, Any] = {
        "key": key, "request": f"request {amount}",
        "charges": {name: {"epsilon": Fraction(amount)} for name in names or ("d",)}, "adjacency": None,
        "analyst": "", "lease": 100.0,
    }  # fmt: skip
    return Reserve(**{**values, **changes})


def _dataset(name: str, budget: Filter | None = PURE, **options: Any) -> list[Command]:
    made: list[Command] = [AddAccount(name, "add-remove", "record", **options)]
    return made if budget is None else [*made, SetBudget(name, budget)]


def _state() -> State:
    """d: cap 1, keys a RESERVED, b STARTED, c COMMITTED, v VOIDED; f frozen; n without a budget; q with ann's quota; g
    a group of g1 and g2; y with 1/2 a year; b by the day."""
    state = State()
    commands: list[Command] = [
        *_dataset("d"), *_dataset("f"), *_dataset("n", None), *_dataset("u"),
        *_dataset("q"), SetBudget("q", Filter.of("pure", "1/2"), "ann"),
        *_dataset("g", group=True), *_dataset("g1", parent="g"), *_dataset("g2", parent="g"),
        *_dataset("y"), SetBudget("y", Filter.of("pure", "1/2"), every="year"),
        *_dataset("b", blocks="day"),
        *(_reserve(key) for key in "abcv"),
        *_dataset("o"), _reserve("old", "0.1", "o"),
        Move(STARTED, "old"),  # as releases before runs had tokens
        Move(STARTED, "b", run="t"), Move(STARTED, "c", run="t"), Move(COMMITTED, "c"), Move(VOIDED, "v"),
        _reserve("frozen", "0.1", "f"), _reserve("started in f", "0.1", "f"), Move(STARTED, "started in f", run="t"),
        Freeze("f", True),
        _reserve("mine", "0.3", "q", analyst="ann"),
    ]  # fmt: skip
    for command in commands:
        _, refused = step(state, command, NOW)
        assert refused is None, (command, refused)
    return state


LATE = NOW + 1000
FROM_B = {"b": ("2026-11-16",)}
ROWS: list[tuple[Command, Refusal, float]] = [
    (_reserve(charges={"g1": TENTH}), Refusal.STALE, NOW),  # without the group above it
    (_reserve(charges={"g1": TENTH, "g": {"epsilon": Fraction(1, 20)}}, datasets=("g1",)), Refusal.STALE, NOW),
    (SetBudget("x", PURE), Refusal.UNKNOWN_DATASET, NOW),
    (Freeze("x", True), Refusal.UNKNOWN_DATASET, NOW),
    (AddAccount("new", "add-remove", "record", parent="x"), Refusal.UNKNOWN_DATASET, NOW),
    (_reserve("new", "0.1", "d", "x"), Refusal.UNKNOWN_DATASET, NOW),
    (AddAccount("d", "replace-one", "record"), Refusal.DATASET_EXISTS, NOW),
    (AddAccount("d", "add-remove", "user"), Refusal.DATASET_EXISTS, NOW),
    (AddAccount("d", "add-remove", "record", group=True), Refusal.DATASET_EXISTS, NOW),
    (AddAccount("d", "add-remove", "record", parent="g"), Refusal.DATASET_EXISTS, NOW),
    (AddAccount("d", "add-remove", "record", blocks="day"), Refusal.DATASET_EXISTS, NOW),
    (Move(STARTED, "x"), Refusal.UNKNOWN_KEY, NOW),
    (_reserve("a", "0.2"), Refusal.KEY_REUSED, NOW),
    (_reserve("v", "0.2"), Refusal.KEY_REUSED, NOW),  # keys never expire
    (_reserve("new", "0.1", "f"), Refusal.FROZEN, NOW),
    (Move(STARTED, "frozen"), Refusal.FROZEN, NOW),
    (_reserve("frozen", "0.1", "f"), Refusal.FROZEN, NOW),  # known, but no way in
    (Move(STARTED, "started in f", run="t"), Refusal.FROZEN, NOW),
    (_reserve(adjacency="replace-one"), Refusal.ADJACENCY, NOW),
    (AddAccount("new", "replace-one", "record", parent="g"), Refusal.ADJACENCY, NOW),
    (AddAccount("new", "add-remove", "household", parent="g"), Refusal.ADJACENCY, NOW),
    (AddAccount("new", "add-remove", "record", parent="d"), Refusal.GROUP, NOW),
    (_reserve("new", "0.1", "g"), Refusal.GROUP, NOW),
    (_reserve("new", "0.1", "b"), Refusal.BLOCKS, NOW),
    (_reserve(blocks={"d": ("2026-11-16",)}), Refusal.BLOCKS, NOW),
    (SetBudget("b", Filter.of("pure", "1/2"), every="year"), Refusal.BLOCKS, NOW),
    (_reserve("new", "0.1", "q"), Refusal.ANALYST, NOW),
    (_reserve("new", "0.1", "q", analyst="bob"), Refusal.ANALYST, NOW),
    (_reserve("new", "0.1", "n"), Refusal.NO_BUDGET, NOW),
    (SetBudget("n", PURE, "ann"), Refusal.NO_BUDGET, NOW),
    (SetBudget("n", PURE, every="year"), Refusal.NO_BUDGET, NOW),
    (_reserve(charges={"d": {"rho": Fraction(1, 10)}}), Refusal.CURRENCY, NOW),
    (SetBudget("d", Filter.of("zcdp", "1"), "bob"), Refusal.CURRENCY, NOW),
    (SetBudget("u", Filter.of("zcdp", "1"), every="year"), Refusal.CURRENCY, NOW),
    (SetBudget("g1", Filter.of("zcdp", "1")), Refusal.CURRENCY, NOW),  # its group is budgeted in pure
    (SetBudget("d", Filter.of("pure", "2")), Refusal.BUDGET_FIXED, NOW),
    (SetBudget("d", Filter.of("pure", "1/2"), every="year"), Refusal.BUDGET_FIXED, NOW),
    (SetBudget("y", Filter.of("pure", "1/4")), Refusal.BUDGET_FIXED, NOW),
    (SetBudget("q", Filter.of("pure", "1/4"), "ann"), Refusal.BUDGET_FIXED, NOW),  # has spent 0.3
    (SetBudget("u", Filter.of("pure", "2"), "bob"), Refusal.QUOTA_ABOVE_CAP, NOW),
    (SetBudget("u", Filter.of("pure", "2"), every="year"), Refusal.QUOTA_ABOVE_CAP, NOW),
    (Move(STARTED, "b"), Refusal.ALREADY_STARTED, NOW),
    (Move(STARTED, "b", run="other"), Refusal.ALREADY_STARTED, NOW),
    (Move(STARTED, "b"), Refusal.ALREADY_STARTED, LATE),
    (Move(STARTED, "old"), Refusal.ALREADY_STARTED, NOW),
    (Move(STARTED, "c", run="t"), Refusal.ALREADY_STARTED, NOW),
    (Move(COMMITTED, "a"), Refusal.WRONG_STATE, NOW),
    (Move(VOIDED, "b"), Refusal.WRONG_STATE, NOW),
    (Move(VOIDED, "c"), Refusal.WRONG_STATE, NOW),
    (Move(STARTED, "v"), Refusal.WRONG_STATE, NOW),
    (_reserve("v"), Refusal.WRONG_STATE, NOW),  # given back: the same key again is no way in
    (Move(STARTED, "a"), Refusal.LEASE_EXPIRED, LATE),
    (_reserve(amount="0.71"), Refusal.BUDGET_EXCEEDED, NOW),
    (_reserve("new", "1.1", "b", blocks=FROM_B), Refusal.BUDGET_EXCEEDED, NOW),
    (_reserve("new", "0.6", "y"), Refusal.PERIOD_EXCEEDED, NOW),
    (
        _reserve(charges={"g1": {"epsilon": Fraction(6, 10)}, "g2": {"epsilon": Fraction(6, 10)},
                          "g": {"epsilon": Fraction(12, 10)}}, datasets=("g1", "g2")),
        Refusal.PARENT_EXCEEDED, NOW,
    ),
    (_reserve("new", "0.21", "q", analyst="ann"), Refusal.QUOTA_EXCEEDED, NOW),
    # of several reasons the first counts
    (_reserve("a", "5", charges={"x": {}}), Refusal.UNKNOWN_DATASET, NOW),
    (_reserve(charges={"f": {"rho": Fraction(9)}}, adjacency="replace-one"), Refusal.FROZEN, NOW),
    (_reserve(charges={"n": {"rho": Fraction(9)}}, adjacency="replace-one"), Refusal.ADJACENCY, NOW),
    (_reserve("new", "0.9", "q", analyst="ann"), Refusal.BUDGET_EXCEEDED, NOW),
    (_reserve("new", "1.1", "y"), Refusal.BUDGET_EXCEEDED, NOW),
]  # fmt: skip


@pytest.mark.parametrize(("command", "reason", "now"), ROWS, ids=lambda x: x.code if isinstance(x, Refusal) else "")
def test_refusals(command: Command, reason: Refusal, now: float) -> None:
    state = _state()
    found = decide(state, command, now)
    assert isinstance(found, Refused)
    assert found.reason is reason
    assert found.text
    assert state == _state()  # deciding changes nothing


def test_every_refusal_is_tested() -> None:
    assert {reason for _, reason, _ in ROWS} == set(Refusal)


@pytest.mark.parametrize(
    "command",
    [
        AddAccount("d", "add-remove", "record"),
        AddAccount("g1", "add-remove", "record", parent="g"),
        SetBudget("d", PURE),
        SetBudget("q", Filter.of("pure", "1/2"), "ann"),
        SetBudget("y", Filter.of("pure", "1/2"), every="year"),
        Freeze("f", True),
        _reserve("a"),
        Move(STARTED, "b", run="t"),
        Move(COMMITTED, "c"),
        Move(VOIDED, "v"),
        Expire(("a", "b", "c", "v", "x")),  # none has ended
    ],
)
def test_the_same_command_again_does_nothing(command: Command) -> None:
    assert decide(_state(), command, NOW) == []


def test_shortfall_is_exact() -> None:
    found = decide(_state(), _reserve(amount="0.8"), NOW)
    assert isinstance(found, Refused)
    assert found.shortfall == {"epsilon": "0.1"}


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        (_reserve(amount="0.8"), {"asked": "reserve", "key": "new", "short": {"epsilon": "0.1"}}),
        (Move(STARTED, "b"), {"asked": "start", "key": "b"}),
        (SetBudget("d", Filter.of("pure", "2")), {"asked": "budget"}),
    ],
)
def test_a_refusal_is_an_event_that_changes_nothing(command: Command, asked: dict[str, Any]) -> None:
    state = _state()
    (event,), refused = step(state, command, NOW)
    assert refused is not None
    assert (event["kind"], event["why"], event["accounts"]) == ("refused", refused.reason.code, ["d"])
    assert asked.items() <= event.items()
    assert state == _state()


@pytest.mark.parametrize("command", [_reserve("new", "0.1", "x"), Move(STARTED, "x"), _reserve(charges={"g1": TENTH})])
def test_a_refusal_that_concerns_no_dataset_is_none(command: Command) -> None:
    events, refused = step(_state(), command, NOW)
    assert refused is not None
    assert events == []


def test_expired_leases_make_room_or_count_as_spent() -> None:
    state = _state()
    assert decide(state, Expire(("a", "b")), NOW + 100) == []  # the last moment of the lease
    events, refused = step(state, Expire(("a", "b", "c", "v", "x")), LATE)
    assert refused is None
    assert [(e["kind"], e["key"]) for e in events] == [("voided", "a"), ("committed", "b")]
    assert state.accounts["d"].remaining(EVERYONE) == {"epsilon": Fraction(8, 10)}
    assert step(state, _reserve(amount="0.8"), LATE)[1] is None


def test_a_period_has_a_budget_of_its_own_each_time() -> None:
    state = _state()
    assert step(state, _reserve("one", "0.4", "y"), NOW)[1] is None
    assert step(state, _reserve("two", "0.2", "y"), NOW)[1] is not None
    events, refused = step(state, _reserve("two", "0.2", "y"), NOW + 366 * 86400)
    assert refused is None
    assert events[0]["on"] == {"y": [EVERYONE, "@2024"]}
    assert step(state, _reserve("three", "0.5", "y"), NOW + 2 * 366 * 86400)[1] is not None  # 1 in all


def test_both_datasets_of_a_group_count_in_it() -> None:
    state = _state()
    charges = {"g1": TENTH, "g2": TENTH, "g": {"epsilon": Fraction(2, 10)}}
    assert step(state, _reserve(charges=charges, datasets=("g1", "g2")), NOW)[1] is None
    assert state.accounts["g"].remaining(EVERYONE) == {"epsilon": Fraction(8, 10)}
    assert state.accounts["g1"].remaining(EVERYONE) == {"epsilon": Fraction(9, 10)}


def test_a_budget_whose_groups_were_not_loaded_is_asked_again() -> None:
    """A store loads what a command names: a group made known meanwhile is not in it."""
    part = State({"g1": _state().accounts["g1"]})
    found = decide(part, SetBudget("g1", Filter.of("pure", "1/2")), NOW)
    assert isinstance(found, Refused)
    assert found.reason is Refusal.STALE
