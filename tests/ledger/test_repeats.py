"""Reservations that repeat one decided before do not ask the rules: the answers are those that they would give."""

from __future__ import annotations

import itertools
import math
import os
import random
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privloss as pl
from privloss.errors import InvalidInput
from privloss.ledger.commands import Command, Freeze, Move, Note, Reserve
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.requests import Request
from privloss.ledger.state import STARTED, Balance
from privloss.ledger.stores.grouped import GroupedStore
from privloss.ledger.stores.parts import Outcome
from privloss.ledger.stores.postgres import PostgresStore
from privloss.ledger.stores.sqlite import SqliteStore
from tests.ledger.postgres import Server
from tests.ledger.test_faults import Crash

NEW_YEAR = 1_798_761_600.0  # 2027-01-01, UTC
REQUESTS: list[dict[str, Any]] = [
    {"datasets": "d", "cost": "1/11", "analyst": "ann"},
    {"datasets": "d", "cost": "0.001", "analyst": " ANN", "label": "daily", "lease": 5.0},
    {"datasets": "d", "cost": "1/997", "analyst": "ben"},
    {"datasets": "e", "cost": "0.01", "cost_delta": "1e-9"},
    {"datasets": "e", "cost": "1/7", "cost_delta": "0.3", "lease": 50.0},
    {"datasets": "s", "cost": "0.05", "blocks": "2026-11..2027-01"},
    {"datasets": "s", "cost": "1e-20", "blocks": "2026-12"},
    {"datasets": "z", "cost": "0.0123456789012"},
    {"datasets": "z", "cost": "0.25", "reason": 'a "quoted" reason é'},
    {"datasets": "m", "cost": "0.3"},
]


class Clock:
    def __init__(self, now: float = NEW_YEAR - 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Counted(SqliteStore):
    """Counts what was not asked of the rules."""

    taken = 0

    def repeated(self, *given: Any) -> dict[int, Outcome]:
        found = super().repeated(*given)
        self.taken += len(found)
        return found


class Asking(SqliteStore):
    """Asks the rules every time."""

    def repeated(self, *given: Any) -> dict[int, Outcome]:
        return {}


class AtOnce(PostgresStore):
    """Counts what was written by what was remembered."""

    taken = 0

    def _at_once(self, *given: Any) -> list[Outcome] | None:
        found = super()._at_once(*given)
        self.taken += found is not None
        return found


class Holding(PostgresStore):
    """Holds and reads every time."""

    def _at_once(self, *given: Any) -> list[Outcome] | None:
        return None

    def _free(self, *given: Any, **more: Any) -> list[Outcome] | None:
        return None


def _made(store: SqliteStore, clock: Clock) -> Ledger:
    ledger = Ledger(store=store, clock=clock, actor="tester")
    ledger.add_group("g", adjacency="add-remove")
    for name, extra in {
        "d": {"parent": "g"},
        "e": {},
        "s": {"parent": "g", "blocks": "month"},
        "z": {},
        "m": {},
    }.items():
        ledger.add_dataset(name, adjacency="add-remove", **extra)  # type: ignore[arg-type]
    ledger.set_budget("g", currency="pure", cap="4")
    ledger.set_budget("d", currency="pure", cap="3")
    ledger.set_budget("d", currency="pure", cap="1.5", every="year")
    ledger.set_budget("d", currency="pure", cap="1", analyst="Ann")
    ledger.set_budget("d", currency="pure", cap="1/3", analyst="ben")
    ledger.set_budget("e", currency="approx", cap="1", delta="0.5")
    ledger.set_budget("s", currency="pure", cap="0.7")
    ledger.set_budget("z", currency="zcdp", cap="2", delta="1e-6")
    ledger.set_budget("m", currency="gdp", cap="1", delta="1e-6")
    return ledger


def _said(act: Callable[[], Any]) -> Any:
    try:
        found = act()
    except RefusedError as no:
        return no.refused, no.remaining
    return None if found is None else (found.state, found.charged, found.remaining)


def _steps(seed: int, many: int) -> Iterator[tuple[str, Any]]:
    draw, keys = random.Random(seed), ["none"]
    for number in range(many):
        kind = draw.random()
        if kind < 0.76:
            old = draw.random() < 0.06
            keys.append(draw.choice(keys) if old else f"k{number}" + draw.choice(["", ' "', "\\", "é"]))
            yield "reserve", {**draw.choice(REQUESTS[draw.randrange(3) :]), "key": keys[-1]}
        elif kind < 0.86:
            yield draw.choice(["start", "commit", "void"]), draw.choice(keys[-12:])
        elif kind < 0.89:
            yield "freeze", (draw.choice(["d", "e", "g", "z"]), draw.random() < 0.3)
        elif kind < 0.91:
            yield "quota", (draw.choice(["Ann", "ben"]), draw.choice(["1/3", "0.9", "1"]))
        elif kind < 0.93:
            yield "other", {**draw.choice(REQUESTS), "key": f"other {number}"}
        else:
            yield "clock", draw.choice([0.5, 20.0, -7.0, 90.0, 86400.0 * 40, -86400.0 * 3])


def _do(ledger: Ledger, other: Ledger, clock: Clock, what: str, given: Any) -> Any:
    if what == "clock":
        clock.now += given
        return None
    if what == "start":
        return _said(lambda: ledger.start(given, token=f"the token that starts {given}", lease=30.0))
    if what in ("commit", "void"):
        return _said(lambda: getattr(ledger, what)(given))
    if what == "freeze":
        return _said(lambda: ledger.freeze(*given))
    if what == "quota":
        return _said(lambda: ledger.set_budget("d", currency="pure", analyst=given[0], cap=given[1]))
    return _said(lambda: (other if what == "other" else ledger).reserve(**given))


def _compared(pairs: list[tuple[Any, Any]], seed: int, many: int, at_least: int) -> None:
    """The same random steps in two worlds, by two clients each."""
    worlds: list[tuple[Ledger, Ledger, Clock]] = []
    for first, second in pairs:
        clock = Clock()
        worlds.append((_made(first, clock), Ledger(store=second, clock=clock, actor="tester"), clock))
    for what, said in _steps(seed, many):
        one, two = (_do(*world, what, said) for world in worlds)
        assert one == two, (what, said)
    histories, tables = [], []
    for ledger, _, _ in worlds:
        audit = ledger.verify()
        assert audit.clean, audit.problems
        histories.append(list(ledger.export()))
        with ledger.store.reading() as cursor:
            names = ("dataset", "balance", "analysis", "open_lease")
            tables.append([sorted(map(str, cursor.execute(f"SELECT * FROM {name}").fetchall())) for name in names])
    assert histories[0] == histories[1]
    assert tables[0] == tables[1]
    assert pairs[0][0].taken > at_least


@pytest.mark.parametrize("seed", range(8))
def test_what_is_not_asked_is_what_the_rules_would_say(tmp_path: Path, seed: int) -> None:
    """The same random steps with and without: answers, events, hashes and tables are the same."""
    pairs = [
        (kind(tmp_path / kind.__name__, create=True), kind(tmp_path / kind.__name__)) for kind in (Counted, Asking)
    ]
    _compared(pairs, seed, 260, 30)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_remembered_is_what_the_server_has(server: Server, seed: int) -> None:
    pairs = []
    for kind in (AtOnce, Holding):
        place = server.fresh(f"compared{os.getpid()}{kind.__name__.lower()}")
        pairs.append((kind(place, create=True), kind(place)))
    _compared(pairs, seed, 160, 20)


def _simple(tmp_path: Path, cap: str = "1") -> tuple[Ledger, Counted, Clock]:
    clock, store = Clock(), Counted(tmp_path / "privloss.db", create=True)
    ledger = Ledger(store=store, clock=clock, actor="tester")
    ledger.add_dataset("d", adjacency="add-remove")
    ledger.set_budget("d", currency="pure", cap=cap)
    for number in range(2):  # the first changes the dataset's settings: it was used
        ledger.reserve("d", cost="0.01", key=f"first {number}")
    ledger.reserve("d", cost="0.01", key="learned")
    return ledger, store, clock


def _like(ledger: Ledger) -> Reserve:
    return next(iter(ledger._asked.values()))


def test_a_repeat_is_not_asked(tmp_path: Path) -> None:
    ledger, store, _ = _simple(tmp_path)
    before = store.taken
    asked: list[str] = []
    store.boundary = asked.append  # type: ignore[method-assign]
    ledger.reserve("d", cost="0.01", key="next")
    assert store.taken == before + 1
    assert [text.split()[0] for text in asked] == [
        "BEGIN",
        "INSERT",
        "UPDATE",
        "INSERT",
        "COMMIT",
        "done",
    ]


def test_two_processes_in_turns(tmp_path: Path) -> None:
    """Each sees what the other has spent, down to the last hundredth, and what it has frozen."""
    ledger, store, clock = _simple(tmp_path)
    other = Ledger(str(tmp_path / "privloss.db"), clock=clock, actor="other")
    for number in range(12):
        (ledger if number % 3 else other).reserve("d", cost="0.01", key=f"turn {number}")
    assert store.taken > 0
    other.reserve("d", cost="0.8", key="nearly all")
    for number in range(5):
        ledger.reserve("d", cost="0.01", key=f"last {number}")
    for each in (other, ledger, other):
        with pytest.raises(RefusedError, match="budget-exceeded"):
            each.reserve("d", cost="0.01", key="too much")
    assert ledger.status("d")["remaining"] == "0"
    other.void("last 0")
    other.freeze("d")
    with pytest.raises(RefusedError, match="frozen"):
        ledger.reserve("d", cost="0.01", key="frozen")
    assert ledger.verify().clean


def test_a_key_that_another_process_has_used(tmp_path: Path) -> None:
    ledger, _, clock = _simple(tmp_path)
    other = Ledger(str(tmp_path / "privloss.db"), clock=clock)
    other.reserve("d", cost="0.01", key="same")
    other.reserve("d", cost="0.02", key="different")
    assert ledger.reserve("d", cost="0.01", key="same").state == "RESERVED"
    with pytest.raises(RefusedError, match="key-reused"):
        ledger.reserve("d", cost="0.01", key="different")
    ledger.reserve("d", cost="0.01", key="learned again")
    assert ledger.reserve("d", cost="0.01", key="same").state == "RESERVED"
    assert ledger.status("d")["reserved"] == "0.07"


def test_commits_that_are_lost(tmp_path: Path) -> None:
    """An interruption before every statement: all or nothing, and what is remembered is not what was lost."""
    ledger, store, _ = _simple(tmp_path)
    statements: list[str] = []
    store.boundary = statements.append  # type: ignore[method-assign]
    ledger.reserve("d", cost="0.01", key="counted")
    many, taken = len(statements), store.taken
    for crash_at in range(many):
        for warm in range(2):
            ledger.reserve("d", cost="0.01", key=f"before {crash_at} {warm}")
        count = iter(range(many))

        def boundary(statement: str, count: Iterator[int] = count, crash_at: int = crash_at) -> None:
            if next(count) == crash_at:
                raise Crash

        before = Fraction(ledger.status("d")["reserved"])
        store.boundary = boundary  # type: ignore[method-assign]
        with pytest.raises(Crash):
            ledger.reserve("d", cost="0.01", key=f"lost {crash_at}")
        store.boundary = lambda statement: None  # type: ignore[method-assign]
        done = Fraction(ledger.status("d")["reserved"]) - before
        assert done == (Fraction("0.01") if statements[crash_at] == "done" else 0)
        ledger.reserve("d", cost="0.01", key=f"lost {crash_at}")
        assert Fraction(ledger.status("d")["reserved"]) == before + Fraction("0.01")
    assert store.taken > taken + many  # it is repeats that were lost
    assert ledger.verify().clean


def test_one_key_twice_in_a_group(tmp_path: Path) -> None:
    """It is charged once, for whichever request comes first, and started once."""
    ledger, store, clock = _simple(tmp_path)
    like = _like(ledger)
    ledger.reserve("d", cost="0.02", key="another")
    larger = next(found for found in ledger._asked.values() if found.shown != like.shown)
    group: list[Command] = [like.under("k"), like.under("k"), Move(STARTED, "k", 9.0, "r" * 64), larger.under("k")]
    outcomes = store.run_all([*group, Move(STARTED, "k", 9.0, "s" * 64)], clock)
    assert [outcome.refused and outcome.refused.reason.code for outcome in outcomes] == [
        None, None, None, "key-reused", "already-started",
    ]  # fmt: skip
    assert [outcome.state for outcome in outcomes[:3]] == ["RESERVED", "RESERVED", "STARTED"]
    assert ledger.status("d")["reserved"] == "0.06"
    assert ledger.verify().clean


def test_a_group_at_the_end_of_a_budget(tmp_path: Path) -> None:
    ledger, store, clock = _simple(tmp_path, cap="0.06")
    outcomes = store.run_all([_like(ledger).under(f"end {number}") for number in range(5)], clock)
    assert [outcome.refused is None for outcome in outcomes] == [True] * 3 + [False] * 2
    assert [outcome.remaining["d"]["epsilon"] for outcome in outcomes[:3]] == [
        Fraction("0.02"), Fraction("0.01"), 0,
    ]  # fmt: skip
    assert ledger.status("d")["remaining"] == "0"
    assert [event["kind"] for event in ledger.history("d", last=2)] == ["refused"] * 2
    assert ledger.verify().clean


def test_settings_changed_in_the_same_group(tmp_path: Path) -> None:
    ledger, store, clock = _simple(tmp_path)
    like = _like(ledger)
    first = store.run_all([like.under("a"), Freeze("d", True)], clock)
    assert first[0].refused is None
    second = store.run_all([like.under("b"), Freeze("d", False), like.under("c")], clock)
    assert [outcome.refused is None for outcome in second] == [False, True, True]
    assert ledger.verify().clean


def test_a_repeat_counts_in_the_period_in_which_it_is_made(tmp_path: Path) -> None:
    """After the turn of the year, and before it when the clock goes back."""
    ledger, store, clock = _simple(tmp_path)
    ledger.add_dataset("p", adjacency="add-remove")
    ledger.set_budget("p", currency="pure", cap="1")
    ledger.set_budget("p", currency="pure", cap="0.5", every="year")
    numbers = itertools.count()
    for step in (-1000.0, 1000.0, -500.0):
        clock.now = NEW_YEAR + step
        for _ in range(4):
            ledger.reserve("p", cost="0.01", key=f"p {next(numbers)}", lease=1e6)
    spent = ledger.status("p")["period"]["spent"]
    assert {year: found["reserved"] for year, found in spent.items()} == {"2026": "0.08", "2027": "0.04"}
    assert store.taken >= 6
    assert ledger.verify().clean


def test_what_is_learned_from_a_key_that_was_started_at_once(tmp_path: Path) -> None:
    """Its repeats are reservations, not starts."""
    ledger, store, clock = _simple(tmp_path)
    ledger.freeze("d")  # nothing is known any more
    ledger.freeze("d", False)
    group: list[Command] = [_like(ledger).under("k"), Move(STARTED, "k", 9.0, "r" * 64)]
    store.run_all(group, clock)
    taken = store.taken
    ledger.reserve("d", cost="0.01", key="next")
    assert store.taken == taken + 1
    with pytest.raises(RefusedError, match="wrong-state"):
        ledger.commit("next")
    assert ledger.start("next").state == "STARTED"
    assert ledger.verify().clean


def test_what_is_learned_where_two_asked_for_one_key(tmp_path: Path) -> None:
    """Each learns from its own event: who was told of another's has nothing to learn."""
    ledger, store, clock = _simple(tmp_path)
    ledger.reserve("d", cost="0.02", key="another")
    ledger.reserve("d", cost="0.01", key="labelled", label="another label")
    small, large, labelled = ledger._asked.values()
    for first, second in ((small, large), (small, labelled), (large, small)):
        ledger.freeze("d")  # nothing is known any more
        ledger.freeze("d", False)
        key = f"both {id(first)} {id(second)}"
        store.run_all([first.under(key), second.under(key)], clock)
        for number in range(3):
            store.run(second.under(f"{key} {number}"), clock)
            event = ledger.history("d", last=1)[0]
            assert (event["charges"], event.get("label", "")) == (second.shown, second.label)
    audit = ledger.verify()
    assert audit.clean, audit.problems


def test_the_lease_of_a_repeat_ends(tmp_path: Path) -> None:
    """A short one after long ones is given back when it ends, not when they do."""
    ledger, store, clock = _simple(tmp_path)
    for number in range(2):
        ledger.reserve("d", cost="0.02", key=f"short {number}", lease=5.0)
        ledger.void(f"short {number}")
    clock.now += 10  # what is remembered of the next end is asked again
    ledger.reserve("d", cost="0.01", key="long")
    taken = store.taken
    ledger.reserve("d", cost="0.02", key="short", lease=5.0)
    assert store.taken == taken + 1
    clock.now += 10
    ledger.reserve("d", cost="0.01", key="longer")
    assert ledger.status("d")["reserved"] == "0.05"
    assert [event["key"] for event in ledger.history("d", kind="voided", last=1)] == ["short"]


def test_leases_that_end_beside_repeats(tmp_path: Path) -> None:
    """A group in which one command must wait for leases: those that were done are not done again."""
    ledger, store, clock = _simple(tmp_path)
    ledger.add_dataset("e", adjacency="add-remove")
    ledger.set_budget("e", currency="pure", cap="1")
    ledger.reserve("e", cost="0.9", key="old", lease=5.0)
    clock.now += 10
    ledger.reserve("d", cost="0.01", key="learned again")
    rest = Reserve("new", "r", {"e": {"epsilon": Fraction(1, 2)}}, None, "", 60.0)
    taken = store.taken
    outcomes = store.run_all([_like(ledger).under("beside"), rest], clock)
    assert [outcome.state for outcome in outcomes] == ["RESERVED", "RESERVED"]
    assert store.taken == taken + 1
    assert ledger.status("d")["reserved"] == "0.05"
    assert ledger.status("e")["reserved"] == "0.5"
    assert ledger.verify().clean


def test_budgets_at_some_order_are_asked(tmp_path: Path) -> None:
    """There a cap may be exceeded, as long as another is not."""
    answers = []
    for kind in (Counted, Asking):
        ledger = Ledger(store=kind(tmp_path / kind.__name__, create=True), clock=Clock())
        ledger.add_dataset("r", adjacency="add-remove")
        ledger.set_budget("r", currency="rdp", cap="1", delta="1e-6", filter="some")
        plan = Request.of("r", pl.Gaussian(noise_multiplier=8), None, None, None)
        like = ledger._priced("first", plan, "", 60.0, "", Note())
        outcomes = [ledger.store.run(like.under(f"r {number}"), ledger.clock) for number in range(20)]
        answers.append([outcome.refused is None for outcome in outcomes])
        assert ledger.verify().clean
    assert answers[0] == answers[1]
    assert set(answers[0]) == {True, False}


@pytest.mark.parametrize("group", [True, False])
def test_threads_repeat(tmp_path: Path, group: bool) -> None:
    """Threads that share half of their keys; each key is charged once, and the budget ends where it should."""
    ledger, store, _ = _simple(tmp_path, cap="0.83")
    if group:
        ledger.store = GroupedStore(store)
    refused: list[str] = []

    def work(who: int) -> None:
        for number in range(25):
            key = f"shared {number}" if number % 2 else f"own {who} {number}"
            try:
                ledger.reserve("d", cost="0.01", key=key)
            except RefusedError:
                refused.append(key)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.taken > 20
    assert ledger.status("d")["remaining"] == "0"
    assert refused
    assert ledger.verify().clean


def test_what_is_not_a_repeat(tmp_path: Path) -> None:
    """Words that are equal, but not the same question: True is no lease, a number no text."""
    ledger, _, _ = _simple(tmp_path)
    ledger.reserve("d", cost="0.001", key="second", lease=1.0)
    ledger.reserve("d", cost="0.001", key="third", lease=1.0)
    with pytest.raises(InvalidInput, match="lease"):
        ledger.reserve("d", cost="0.001", key="fourth", lease=True)
    with pytest.raises(InvalidInput, match="datasets"):
        ledger.reserve([], cost="0.001", key="fifth")
    for bad in ("0", "-1", "nan", ""):
        with pytest.raises(InvalidInput, match="cost"):
            ledger.reserve("d", cost=bad, key="sixth")
    with pytest.raises(InvalidInput, match="key"):
        ledger.reserve("d", cost="0.01", key="\n")


# -- sums --------------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.fractions(min_value=0, max_value=5, max_denominator=10**14),
            st.sampled_from([(1, 0), (-1, 0), (-1, 1), (0, 1)]),
        ),
        max_size=30,
    ),
    st.none() | st.fractions(min_value=0, max_value=9, max_denominator=2**40),
)
def test_a_balance_is_the_sum_of_fractions(moves: list[tuple[Fraction, tuple[int, int]]], cap: Fraction | None) -> None:
    balance, committed, reserved = Balance(cap), Fraction(0), Fraction(0)
    for amount, (held, done) in moves:
        size, left = balance.of(amount.numerator, amount.denominator), balance.left()
        assert Fraction(size, balance.bottom) == amount
        assert (left is None) == (cap is None)
        assert left is None or (left < size) == (committed + reserved + amount > cap)
        balance.move(amount, held, done)
        reserved, committed = reserved + held * amount, committed + done * amount
        assert (balance.cap, balance.committed, balance.reserved) == (cap, committed, reserved)
        assert balance == Balance(cap, committed, reserved)
        total = committed + reserved
        assert balance.total == total
        shown = None if cap is None else f"{cap.numerator}/{cap.denominator}"
        texts = [f"{x.numerator}/{x.denominator}" for x in (committed, reserved)]
        units = [None if x is None else str(math.ceil(x * 2**40)).zfill(60) for x in (total, cap)]
        assert balance.row("epsilon") == (shown, *texts, *units)


def test_primes_do_not_add_up_for_ever() -> None:
    """Every denominator that is kept exactly, at once: the common one stays below 1500 digits."""
    balance = Balance(Fraction(1000))
    for bottom in range(1, 1001):
        balance.move(Fraction(1, bottom), 1, 0)
    balance.move(Fraction(1, 10**12), 1, 0)
    balance.move(Fraction(1, 2**40), 1, 0)
    assert balance.total == sum(Fraction(1, bottom) for bottom in range(1, 1001)) + Fraction(1, 10**12) + Fraction(
        1, 2**40
    )
    assert len(str(balance.bottom)) < 1500
