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
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from privloss.ledger.commands import AddAccount, Command, Expire, Freeze, Move, Reserve, SetBudget
from privloss.ledger.decide import step, with_groups
from privloss.ledger.filters import Filter
from privloss.ledger.replay import exceeded
from privloss.ledger.state import COMMITTED, OPEN, STARTED, VOIDED, Analysis, Charges, State
from privloss.ledger.stores.address import open_store
from privloss.ledger.stores.base import Store
from privloss.ledger.verify import differences, verify
from tests.ledger.postgres import Server

STEPS = int(os.environ.get("LEDGER_STEPS", "400"))
AMOUNTS = st.sampled_from(
    [Fraction(1, 11), Fraction(1, 7), Fraction(1, 3), Fraction(1), Fraction(1, 2**40), Fraction(13, 1000)]
)
KEYS = st.integers(0, 12).map(lambda i: f"k{i}")
NAMES = st.sampled_from([("d",), ("e",), ("d", "e"), ("c",), ("s",), ("c", "d"), ("d", "s")])
BLOCKS = st.sampled_from([(), ("2026-01-01",), ("2026-01-02",), ("2026-01-01", "2026-01-02")])
ANALYSTS = st.sampled_from(["", "ann", "bob"])
COUNT = {"steps": 0}


class Machine(RuleBasedStateMachine):
    """Commands run on a model (the pure rules on a whole state) and, if there is one, on a store.

    d, c and s lie under the group g; d has quotas, that change; c has a budget for each day beneath its own; the data
    of s comes in blocks.
    """

    make: ClassVar[Callable[[], Store] | None] = None

    @initialize()
    def begin(self) -> None:
        self.now, self.model = 0.0, State()
        self.store = type(self).make() if type(self).make is not None else None  # type: ignore[misc]
        self.committed: dict[tuple[str, str, str], Fraction] = {}
        self.effects: dict[str, int] = {}
        self.entered: dict[str, set[str]] = {}
        self.run(AddAccount("g", "add-remove", "record", group=True))
        for name in "dcse":
            parent, blocks = (None if name == "e" else "g"), ("day" if name == "s" else None)
            self.run(AddAccount(name, "add-remove", "record", parent=parent, blocks=blocks))
            self.set_budget(name, "1", ("", None))
        self.run(SetBudget("g", Filter.of("pure", "2")))
        self.set_budget("d", "1/2", ("ann", None))
        self.set_budget("c", "1/2", ("", "day"))

    def run(self, command: Command) -> None:
        COUNT["steps"] += 1
        if isinstance(command, Reserve):
            self.expire(command)
        before = copy.deepcopy(self.model)
        events, refused = step(self.model, command, self.now)
        for event in events:
            if event["kind"] == "reserved":
                self.effects[event["key"]] = self.effects.get(event["key"], 0) + 1
        if refused is None and isinstance(command, Move) and command.to == STARTED:
            self.entered.setdefault(command.key, set()).add(command.run)
            assert not any(self.model.accounts[name].frozen for name in self.model.analyses[command.key].charges)
        if refused is not None:
            assert self.model == before  # a refusal leaves no trace (invariant 6: all or nothing)
        if self.store is not None:
            outcome = self.store.run(command, lambda: self.now)
            assert (outcome.refused is None) == (refused is None), (command, outcome.refused, refused)
            if refused is not None and outcome.refused is not None:
                assert outcome.refused.reason is refused.reason

    def expire(self, command: Reserve) -> None:
        """What a store does before a reservation: leases on its accounts that have ended are given back."""
        late = [
            key
            for key, found in self.model.analyses.items()
            if found.state in OPEN and found.lease < self.now and set(found.charges) & set(command.charges)
        ]
        step(self.model, Expire(tuple(late)), self.now)

    @rule(
        key=KEYS,
        amount=AMOUNTS,
        names=NAMES,
        analyst=ANALYSTS,
        blocks=BLOCKS,
        lease=st.sampled_from([1.0, 5.0, 1000.0]),
    )
    def reserve(
        self, key: str, amount: Fraction, names: tuple[str, ...], analyst: str, blocks: tuple[str, ...], lease: float
    ) -> None:
        request = f"{amount} {names} {analyst} {blocks}"
        charges: Charges = {name: {"epsilon": amount} for name in names}
        read = {name: blocks for name in names if name == "s" and blocks}
        self.run(Reserve(key, request, with_groups(charges, self.model), None, analyst, lease, names, read))

    @rule(key=KEYS, to=st.sampled_from([COMMITTED, VOIDED]))
    def move(self, key: str, to: str) -> None:
        self.run(Move(to, key))

    @rule(key=KEYS, caller=st.sampled_from(["one", "two"]))
    def start(self, key: str, caller: str) -> None:
        self.run(Move(STARTED, key, 5.0, caller))

    @rule(name=st.sampled_from(["d", "e", "g", "x"]), frozen=st.booleans())
    def freeze(self, name: str, frozen: bool) -> None:
        self.run(Freeze(name, frozen))

    @rule(
        name=st.sampled_from(["d", "c", "g"]),
        cap=st.sampled_from(["1", "2", "1/10", "3/4"]),
        whose=st.sampled_from([("", None), ("ann", None), ("bob", None), ("", "day"), ("", "week")]),
    )
    def set_budget(self, name: str, cap: str, whose: tuple[str, str | None]) -> None:
        self.run(SetBudget(name, Filter.of("pure", cap), *whose, tuple(self.model.above(name))))

    @rule(seconds=st.sampled_from([0.5, 3.0, 100.0, 86400.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "model"):
            return
        assert exceeded(self.model) == []  # 1: never above a cap, quota, period or block
        assert _sums(self.model) == []  # 2: balances are the sums of their analyses
        below = sum((self.spent(name) for name in "dcs"), Fraction(0))
        assert self.spent("g") == below <= 2  # a group holds what its datasets hold
        for name, account in self.model.accounts.items():
            for (owner, part), balance in account.balances.items():
                assert balance.committed >= self.committed.get((name, owner, part), 0)  # 4: committed never falls
                self.committed[(name, owner, part)] = balance.committed
        assert all(count == 1 for count in self.effects.values())  # 5: a key takes effect once
        assert all(len(callers) == 1 for callers in self.entered.values())  # and lets one caller in
        if self.store is not None:
            with self.store.reading() as cursor:
                assert differences(self.model, self.store.everything(cursor)) == []  # 2, 3: durable and equal

    def spent(self, name: str) -> Fraction:
        """By the analyses, not by the balances."""
        charged = [a.charges[name]["epsilon"] for a in self.model.analyses.values() if name in a.charges and _counts(a)]
        return sum(charged, Fraction(0))

    def teardown(self) -> None:
        if getattr(self, "store", None) is not None:
            assert self.store is not None
            assert verify(self.store).problems == ()
            self.store.close()


def _counts(analysis: Analysis) -> bool:
    return analysis.state != VOIDED


def _sums(state: State) -> list[str]:
    """Balances that are not the sums of the analyses they hold."""
    found: dict[tuple[str, str, str], list[Fraction]] = {}
    for analysis in state.analyses.values():
        for name, owners in analysis.on.items() if _counts(analysis) else ():
            for owner in owners:
                for part, amount in analysis.charges[name].items():
                    sums = found.setdefault((name, owner, part), [Fraction(0), Fraction(0)])
                    sums[analysis.state == COMMITTED] += amount
    wrong = []
    for name, account in state.accounts.items():
        for (owner, part), balance in account.balances.items():
            if [balance.reserved, balance.committed] != found.pop((name, owner, part), [0, 0]):
                wrong.append(f"{name} {owner} {part}")
    return wrong + [" ".join(place) for place in found]


def _run(make: Callable[[], Store] | None, steps: int, **more: Any) -> None:
    class Bound(Machine):
        pass

    Bound.make = staticmethod(make) if make is not None else None
    start, per_run = COUNT["steps"], 50
    options: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck), **more}
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
    monkeypatch.setattr("privloss.ledger.decide.exceeded", lambda *_: [])
    with pytest.raises(AssertionError):
        _run(None, 4000, phases=[Phase.generate])
