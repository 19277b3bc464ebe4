"""Random groups of commands on SQLite, by what is remembered wherever that goes: the history is as the rules decide, a
key is charged once and lets one caller in, and what is remembered is what the file has."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from privloss.ledger.commands import Command, Freeze, Move, SetBudget
from privloss.ledger.filters import Filter
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.state import COMMITTED, EVERYONE, STARTED, VOIDED, run_hash
from privloss.ledger.stores.repeats import Repeats
from privloss.ledger.stores.sqlite import SqliteStore

DATASETS: tuple[str | tuple[str, ...], ...] = ("d", "e", ("d", "f"), ("d", "e"), "f", "q")
COSTS = ("1/97", "1/1009", "0.013", "1/7")
TURNS, GROUPS = 25, 4


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def _made(path: Path, clock: Clock) -> Ledger:
    ledger = Ledger(store=SqliteStore(path, create=True), clock=clock)
    ledger.add_group("g", adjacency="add-remove")
    ledger.set_budget("g", currency="pure", cap="3")
    for name, parent, cap in (("d", "g", "2"), ("e", "g", "2"), ("f", None, "1"), ("q", None, "1")):
        ledger.add_dataset(name, adjacency="add-remove", parent=parent)
        ledger.set_budget(name, currency="pure", cap=cap)
    ledger.set_budget("f", currency="pure", cap="1/2", every="year")
    ledger.set_budget("q", currency="pure", cap="0.6", analyst="ann")
    return ledger


def _asks(ledger: Ledger, draw: random.Random, key: str) -> None:
    datasets = draw.choice(DATASETS)
    analyst = "ann" if datasets == "q" else EVERYONE
    with suppress(RefusedError):
        ledger.reserve(datasets, cost=draw.choice(COSTS), analyst=analyst, key=key, lease=draw.choice([5.0, 1000.0]))


def _command(ledger: Ledger, draw: random.Random, keys: list[str]) -> Command:
    kind = draw.random()
    if kind < 0.75:
        keys.append(draw.choice(keys) if draw.random() < 0.15 else f"key {len(keys)}")
        return draw.choice(list(ledger._asked.values())).under(keys[-1])
    if kind < 0.85:
        return Move(STARTED, draw.choice(keys[-10:]), 5.0, run_hash(f"run {draw.random()}"))
    if kind < 0.92:
        return Move(draw.choice([COMMITTED, VOIDED]), draw.choice(keys[-10:]))
    if kind < 0.96:
        return Freeze(draw.choice("defg"), draw.random() < 0.3)
    return SetBudget("q", Filter.of("pure", draw.choice(["0.6", "0.8", "1"])), "ann", None, ())


def _as_remembered(ledger: Ledger, other: Ledger) -> None:
    store: Any = ledger.store
    with store.pool.taken() as connection:
        known = connection.known
        others = connection.execute("PRAGMA data_version").fetchone()[0] != connection.written
    if known is None or others:
        return
    with other.store.reading() as cursor:
        ends = other.store.ends(cursor)
        for name, account in known.state.accounts.items():
            found = other.store.account(cursor, name)
            assert found is not None
            assert ends[name] == known.ends[name]
            for place, balance in account.balances.items():
                assert found.balances[place] == balance, (name, place)


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_commands(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, clock, keys = random.Random(seed), Clock(), ["none"]
    undone: list[Repeats] = []
    undo = Repeats.undo
    monkeypatch.setattr(Repeats, "undo", lambda repeats: (undone.append(repeats), undo(repeats)))
    ledger, entered = _made(tmp_path / "a.db", clock), set()
    other = Ledger(str(tmp_path / "a.db"), clock=clock)
    for turn in range(TURNS):
        for number in range(3):
            _asks(ledger if draw.random() < 0.8 else other, draw, f"alone {turn} {number}")
        for _ in range(GROUPS if ledger._asked else 0):
            group = [_command(ledger, draw, keys) for _ in range(draw.randint(1, 9))]
            for command, outcome in zip(group, ledger.store.run_all(group, clock), strict=True):
                if isinstance(command, Move) and command.to == STARTED and outcome.refused is None:
                    assert command.key not in entered  # each start has a run of its own
                    entered.add(command.key)
        if draw.random() < 0.3:
            clock.now += draw.choice([1, 10, -7, 2000, 86400 * 200, -86400 * 150])
        _as_remembered(ledger, other)
    audit = ledger.verify()
    assert audit.clean, audit.problems
    assert entered
    assert undone
