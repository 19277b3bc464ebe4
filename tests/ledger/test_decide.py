"""The rules, refusal by refusal, in the order of `Refusal`."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privloss.ledger.commands import AddDataset, Command, Freeze, Move, Reserve, SetBudget
from privloss.ledger.decide import Refusal, Refused, decide, step
from privloss.ledger.filters import Filter
from privloss.ledger.state import COMMITTED, STARTED, VOIDED, State

PURE = Filter.of("pure", "1")


def _reserve(key: str = "new", amount: str = "0.1", now: float = 10.0, **changes: object) -> Reserve:
    values: dict[str, object] = {
        "key": key, "request": f"request {amount}", "charges": {"d": {"epsilon": Fraction(amount)}}, "adjacency": None,
        "analyst": "", "lease": 100.0, "now": now,
    }  # fmt: skip
    return Reserve(**{**values, **changes})  # type: ignore[arg-type]


def _state() -> State:
    """d: cap 1, ann's quota 1/2, keys a RESERVED, b STARTED, c COMMITTED, v VOIDED; f frozen; n without a budget."""
    state = State()
    commands: list[Command] = [
        AddDataset("d", "add-remove", "record"),
        SetBudget("d", PURE),
        SetBudget("d", Filter.of("pure", "1/2"), "ann"),
        AddDataset("f", "add-remove", "record"),
        SetBudget("f", PURE),
        AddDataset("n", "add-remove", "record"),
        AddDataset("u", "add-remove", "record"),
        SetBudget("u", PURE),
        *(_reserve(key, now=0.0) for key in "abcv"),
        AddDataset("o", "add-remove", "record"),
        SetBudget("o", PURE),
        _reserve("old", now=0.0, charges={"o": {"epsilon": Fraction(1, 10)}}),
        Move(STARTED, "old", 1.0),  # as releases before tokens did
        Move(STARTED, "b", 1.0, token="t"),
        Move(STARTED, "c", 1.0, token="t"),
        Move(COMMITTED, "c", 1.0),
        Move(VOIDED, "v", 1.0),
        _reserve("frozen", now=0.0, charges={"f": {"epsilon": Fraction(1, 10)}}),
        _reserve("started in f", now=0.0, charges={"f": {"epsilon": Fraction(1, 10)}}),
        Move(STARTED, "started in f", 1.0, token="t"),
        Freeze("f", True),
    ]
    for command in commands:
        _, refused = step(state, command)
        assert refused is None, (command, refused)
    return state


ROWS: list[tuple[Command, Refusal]] = [
    (SetBudget("x", PURE), Refusal.UNKNOWN_DATASET),
    (Freeze("x", True), Refusal.UNKNOWN_DATASET),
    (_reserve(charges={"d": {"epsilon": Fraction(1, 10)}, "x": {"epsilon": Fraction(1, 10)}}), Refusal.UNKNOWN_DATASET),
    (AddDataset("d", "replace-one", "record"), Refusal.DATASET_EXISTS),
    (AddDataset("d", "add-remove", "user"), Refusal.DATASET_EXISTS),
    (Move(STARTED, "x", 1.0), Refusal.UNKNOWN_KEY),
    (_reserve("a", "0.2"), Refusal.KEY_REUSED),
    (_reserve("v", "0.2"), Refusal.KEY_REUSED),  # keys never expire
    (_reserve(charges={"f": {"epsilon": Fraction(1, 10)}}), Refusal.FROZEN),
    (Move(STARTED, "frozen", 1.0), Refusal.FROZEN),
    (_reserve(adjacency="replace-one"), Refusal.ADJACENCY),
    (_reserve(charges={"n": {"epsilon": Fraction(1, 10)}}), Refusal.NO_BUDGET),
    (SetBudget("n", PURE, "ann"), Refusal.NO_BUDGET),
    (_reserve(charges={"d": {"rho": Fraction(1, 10)}}), Refusal.CURRENCY),
    (SetBudget("d", Filter.of("zcdp", "1"), "bob"), Refusal.CURRENCY),
    (SetBudget("d", Filter.of("pure", "2")), Refusal.BUDGET_FIXED),
    (SetBudget("d", Filter.of("pure", "1/4"), "bob"), Refusal.BUDGET_FIXED),
    (SetBudget("u", Filter.of("pure", "2"), "bob"), Refusal.QUOTA_ABOVE_CAP),
    (_reserve("frozen", charges={"f": {"epsilon": Fraction(1, 10)}}), Refusal.FROZEN),  # known, but no way in
    (Move(STARTED, "started in f", 1.0, token="t"), Refusal.FROZEN),
    (Move(STARTED, "b", 1.0), Refusal.ALREADY_STARTED),
    (Move(STARTED, "b", 1.0, token="other"), Refusal.ALREADY_STARTED),
    (Move(STARTED, "b", 1000.0), Refusal.ALREADY_STARTED),
    (Move(STARTED, "old", 1.0), Refusal.ALREADY_STARTED),
    (Move(STARTED, "c", 1.0, token="t"), Refusal.ALREADY_STARTED),
    (Move(COMMITTED, "a", 1.0), Refusal.WRONG_STATE),
    (Move(VOIDED, "b", 1.0), Refusal.WRONG_STATE),
    (Move(VOIDED, "c", 1.0), Refusal.WRONG_STATE),
    (Move(STARTED, "v", 1.0), Refusal.WRONG_STATE),
    (Move(STARTED, "a", 1000.0), Refusal.LEASE_EXPIRED),
    (_reserve(amount="0.71"), Refusal.BUDGET_EXCEEDED),
    (_reserve(amount="0.51", analyst="ann"), Refusal.QUOTA_EXCEEDED),
    # of several reasons the first counts
    (_reserve("a", "5", charges={"x": {}}), Refusal.UNKNOWN_DATASET),
    (_reserve(charges={"f": {"rho": Fraction(9)}}, adjacency="replace-one"), Refusal.FROZEN),
    (_reserve(charges={"n": {"rho": Fraction(9)}}, adjacency="replace-one"), Refusal.ADJACENCY),
    (_reserve(amount="0.9", analyst="ann"), Refusal.BUDGET_EXCEEDED),
]


@pytest.mark.parametrize(("command", "reason"), ROWS, ids=lambda x: x.code if isinstance(x, Refusal) else "")
def test_refusals(command: Command, reason: Refusal) -> None:
    state = _state()
    found = decide(state, command)
    assert isinstance(found, Refused)
    assert found.reason is reason
    assert found.text
    assert state == _state()  # deciding changes nothing


def test_every_refusal_is_tested() -> None:
    assert {reason for _, reason in ROWS} == set(Refusal)


@pytest.mark.parametrize(
    "command",
    [
        AddDataset("d", "add-remove", "record"),
        SetBudget("d", PURE),
        Freeze("f", True),
        _reserve("a"),
        Move(STARTED, "b", 1.0, token="t"),
        Move(COMMITTED, "c", 1.0),
        Move(VOIDED, "v", 1.0),
    ],
)
def test_the_same_command_again_does_nothing(command: Command) -> None:
    assert decide(_state(), command) == []


def test_shortfall_is_exact() -> None:
    found = decide(_state(), _reserve(amount="0.8"))
    assert isinstance(found, Refused)
    assert found.shortfall == {"epsilon": "0.1"}


def test_expired_leases_make_room_or_count_as_spent() -> None:
    state = _state()
    events, refused = step(state, _reserve(amount="0.7", now=500.0))
    assert refused is None
    assert [(e["kind"], e["key"]) for e in events] == [
        ("voided", "a"), ("committed", "b"), ("reserved", "new"),
    ]  # fmt: skip
    assert state.datasets["d"].balances[("", "epsilon")].remaining == Fraction(1, 10)


def test_expired_leases_of_only_these_datasets() -> None:
    state = _state()
    events, _ = step(state, _reserve(amount="0.1", now=500.0, charges={"u": {"epsilon": Fraction(1, 10)}}))
    assert [e["kind"] for e in events] == ["reserved"]
