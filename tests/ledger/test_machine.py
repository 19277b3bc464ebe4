"""A state machine: random commands on the pure model, on SQLite and on PostgreSQL; all must agree, step by step.

``LEDGER_STEPS=50000 python -m pytest tests/ledger/test_machine.py`` is the long run.
"""

from __future__ import annotations

import copy
import itertools
import os
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from privloss.ledger.commands import AddDataset, Command, Freeze, Move, Reserve, SetBudget
from privloss.ledger.decide import step
from privloss.ledger.filters import Filter
from privloss.ledger.state import COMMITTED, STARTED, VOIDED, State
from privloss.ledger.stores.address import open_store
from privloss.ledger.stores.base import Store
from privloss.ledger.verify import differences, exceeded, sums, verify
from tests.ledger.postgres import Server

STEPS = int(os.environ.get("LEDGER_STEPS", "400"))
AMOUNTS = st.sampled_from(
    [Fraction(1, 11), Fraction(1, 7), Fraction(1, 3), Fraction(1), Fraction(1, 2**40), Fraction(13, 1000)]
)
KEYS = st.integers(0, 12).map(lambda i: f"k{i}")
NAMES = st.sampled_from([("d",), ("e",), ("d", "e")])
ANALYSTS = st.sampled_from(["", "ann", "bob"])
COUNT = {"steps": 0}


class Machine(RuleBasedStateMachine):
    """Commands run on a model (the pure rules on a whole state) and, if there is one, on a store."""

    make: ClassVar[Callable[[], Store] | None] = None

    @initialize()
    def begin(self) -> None:
        self.now, self.model = 0.0, State()
        self.store = type(self).make() if type(self).make is not None else None  # type: ignore[misc]
        self.committed: dict[tuple[str, str, str], Fraction] = {}
        self.effects: dict[str, int] = {}
        self.entered: dict[str, set[str]] = {}
        for name in ("d", "e"):
            self.run(AddDataset(name, "add-remove", "record"))
            self.run(SetBudget(name, Filter.of("pure", "1")))
        self.run(SetBudget("d", Filter.of("pure", "1/2"), "ann"))

    def run(self, command: Command) -> None:
        COUNT["steps"] += 1
        before = copy.deepcopy(self.model) if isinstance(command, Reserve) else None
        events, refused = step(self.model, command)
        for event in events:
            if event["kind"] == "reserved":
                self.effects[event["key"]] = self.effects.get(event["key"], 0) + 1
        if refused is None and isinstance(command, Move) and command.to == STARTED:
            self.entered.setdefault(command.key, set()).add(command.token)
            assert not any(self.model.datasets[name].frozen for name in self.model.analyses[command.key].charges)
        if refused is not None and before is not None and not events:
            assert self.model == before  # a refusal leaves no trace (invariant 6: all or nothing)
        if self.store is not None:
            outcome = self.store.run(command, self.now)
            assert (outcome.refused is None) == (refused is None), (command, outcome.refused, refused)
            if refused is not None and outcome.refused is not None:
                assert outcome.refused.reason is refused.reason

    @rule(key=KEYS, amount=AMOUNTS, names=NAMES, analyst=ANALYSTS, lease=st.sampled_from([1.0, 5.0, 1000.0]))
    def reserve(self, key: str, amount: Fraction, names: tuple[str, ...], analyst: str, lease: float) -> None:
        request = f"{amount} {names} {analyst}"
        charges = {name: {"epsilon": amount} for name in names}
        self.run(Reserve(key, request, charges, None, analyst, lease, self.now))

    @rule(key=KEYS, to=st.sampled_from([COMMITTED, VOIDED]))
    def move(self, key: str, to: str) -> None:
        self.run(Move(to, key, self.now))

    @rule(key=KEYS, caller=st.sampled_from(["one", "two"]))
    def start(self, key: str, caller: str) -> None:
        self.run(Move(STARTED, key, self.now, 5.0, caller))

    @rule(name=st.sampled_from(["d", "e", "x"]), frozen=st.booleans())
    def freeze(self, name: str, frozen: bool) -> None:
        self.run(Freeze(name, frozen))

    @rule(cap=st.sampled_from(["1", "2"]), analyst=st.sampled_from(["", "ann"]))
    def set_budget(self, cap: str, analyst: str) -> None:
        self.run(SetBudget("d", Filter.of("pure", cap), analyst))

    @rule(seconds=st.sampled_from([0.5, 3.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "model"):
            return
        assert exceeded(self.model) == []  # 1: never above a cap
        assert sums(self.model) == []  # 2: balances are the sums of their analyses
        for name, dataset in self.model.datasets.items():
            for (owner, part), balance in dataset.balances.items():
                assert balance.committed >= self.committed.get((name, owner, part), 0)  # 4: committed never falls
                self.committed[(name, owner, part)] = balance.committed
        assert all(count == 1 for count in self.effects.values())  # 5: a key takes effect once
        assert all(len(callers) == 1 for callers in self.entered.values())  # and lets one caller in
        if self.store is not None:
            with self.store.reading() as cursor:
                assert differences(self.model, self.store.everything(cursor)) == []  # 2, 3: durable and equal

    def teardown(self) -> None:
        if getattr(self, "store", None) is not None:
            assert self.store is not None
            assert verify(self.store).problems == ()
            self.store.close()


def _run(make: Callable[[], Store] | None, steps: int) -> None:
    class Bound(Machine):
        pass

    Bound.make = staticmethod(make) if make is not None else None
    start, per_run = COUNT["steps"], 50
    options: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    run_state_machine_as_test(
        Bound, settings=settings(max_examples=max(steps // 40, 6), stateful_step_count=per_run, **options)
    )
    assert COUNT["steps"] - start >= steps // 4
    print(f"steps: {COUNT['steps'] - start}")


def test_model() -> None:
    _run(None, 4 * STEPS)


def test_sqlite(tmp_path: Path) -> None:
    numbers = itertools.count()
    home = tempfile.mkdtemp(dir=tmp_path)
    _run(lambda: open_store(f"{home}/{next(numbers)}.db", create=True), STEPS)


def test_postgresql(server: Server) -> None:
    numbers = itertools.count()
    _run(lambda: open_store(server.fresh(f"machine{os.getpid()}x{next(numbers) % 4}"), create=True), STEPS // 4)


def test_the_machine_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the comparison with the cap the invariants break."""
    monkeypatch.setattr("privloss.ledger.decide._exceeded", lambda *_: None)
    with pytest.raises(AssertionError):
        _run(None, 4000)
