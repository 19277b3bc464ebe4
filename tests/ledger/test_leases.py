"""Open leases of an SQLite ledger: noted in the order in which they end after some events, and found without that
before; keys that name their events."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privloss.ledger import maintenance
from privloss.ledger.ledger import Ledger
from privloss.ledger.stores.base import LedgerError

NOTED = 64  # events after which leases are noted
OPEN = "SELECT dataset, lease, key FROM open_lease ORDER BY lease, key, dataset"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def _made(path: Path, clock: Clock) -> Ledger:
    ledger = Ledger.create(str(path), clock=clock)
    ledger.add_group("g", adjacency="add-remove")
    ledger.set_budget("g", currency="pure", cap="1000")
    for name in "de":
        ledger.add_dataset(name, adjacency="add-remove", parent="g")
        ledger.set_budget(name, currency="pure", cap="1000")
    return ledger


def _asked(path: Path, query: str) -> list[Any]:
    with sqlite3.connect(path) as raw:
        return raw.execute(query).fetchall()


def _grown(ledger: Ledger, path: Path, until: Callable[[int, int], bool]) -> None:
    """Reservations, until the last event and the last that was noted are as they should be."""
    query = "SELECT (SELECT max(number) FROM event), number FROM leased"
    while not until(*_asked(path, query)[0]):
        ledger.reserve("d", cost="0.01", key=f"more {_asked(path, query)[0][0]}")


def test_leases_that_are_noted_or_not(tmp_path: Path) -> None:
    """Keys in every state, at once and one by one, by two clients in turns: open leases are those of the events, those
    of closed keys are not noted, and what is not noted is short. A restored ledger has the same."""
    path, clock, draw = tmp_path / "a.db", Clock(), random.Random(7)
    clients = _made(path, clock), Ledger(str(path), clock=clock)
    held: list[str] = []
    for number in range(300):
        ledger = clients[number // 7 % 2]
        clock.now += 1
        chosen = draw.choice(["d", "e", ["d", "e"]])
        ledger.reserve(chosen, cost="0.01", key=f"k{number}", lease=draw.choice([2, 50, 1000]))
        held.append(f"k{number}")
        for move in draw.choice([(), (), ("start",), ("start", "commit"), ("void",)]):
            key = draw.choice(held) if move == "start" else held[-1]
            stands = ledger.reservation(key)
            if stands is not None and stands.state == ("STARTED" if move == "commit" else "RESERVED"):
                getattr(ledger, move)(key)
        if number % 30 == 29:
            audit = ledger.verify()
            assert audit.clean, audit.problems
            closed = "SELECT 1 FROM noted_lease JOIN analysis USING (key) WHERE state IN ('COMMITTED', 'VOIDED')"
            assert not _asked(path, closed)
            assert 0 <= _asked(path, "SELECT max(e.number) - l.number FROM event AS e, leased AS l")[0][0] < NOTED
    states = {row[0] for row in _asked(path, "SELECT DISTINCT state FROM analysis")}
    assert states == {"RESERVED", "STARTED", "COMMITTED", "VOIDED"}
    assert _asked(path, "SELECT count(*) FROM recent_lease")[0][0] > 0
    _same_after_restore(clients[0], path, tmp_path, clock)


def _same_after_restore(ledger: Ledger, path: Path, tmp_path: Path, clock: Clock) -> None:
    maintenance.backup(ledger, tmp_path / "backup")
    again = Ledger.create(str(tmp_path / "b.db"), clock=clock)
    maintenance.restore(tmp_path / "backup", again)
    assert again.verify().clean
    assert _asked(tmp_path / "b.db", OPEN) == _asked(path, OPEN)
    for name in "gde":
        again.freeze(name, frozen=False)
    _grown(again, tmp_path / "b.db", lambda last, noted: last > 2 * NOTED and last - noted < 4)
    assert again.verify().clean


@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize("started", [False, True])
def test_leases_that_are_noted_or_not_end(tmp_path: Path, noted: bool, started: bool) -> None:
    """Whoever comes next, and knows nothing, gives back what has ended."""
    path, clock = tmp_path / "a.db", Clock()
    ledger = _made(path, clock)
    _grown(ledger, path, lambda last, done: last - done < 4)
    ledger.reserve("d", cost="999", key="short", lease=1000)
    if started:
        ledger.start("short", lease=1000)
    ((number,),) = _asked(path, "SELECT number FROM claim WHERE key = 'short'")
    if noted:
        _grown(ledger, path, lambda last, done: done > number)
    assert bool(_asked(path, "SELECT 1 FROM noted_lease WHERE key = 'short'")) == noted
    clock.now += 1001
    fresh = Ledger(str(path), clock=clock)
    fresh.reserve("d", cost="0.01", key="next")
    stands = fresh.reservation("short")
    assert stands is not None
    assert stands.state == ("COMMITTED" if started else "VOIDED")
    assert not _asked(path, "SELECT 1 FROM open_lease WHERE key = 'short'")
    assert fresh.verify().clean


def test_keys_name_their_events(tmp_path: Path) -> None:
    """Whatever stands in a key; what it repeats of its event is not written twice."""
    path, clock = tmp_path / "a.db", Clock()
    ledger = _made(path, clock)
    keys = ["plain", "k\u00e9y", "\U0001f600", 'a "quoted" \\ key', "%s"]
    for key in keys:
        ledger.reserve("d", cost="0.01", key=key, analyst="J\u00f6rg \U0001f600")
    ledger.start(keys[1])
    query = (
        "SELECT a.key, a.request, a.analyst, a.charges FROM analysis AS a JOIN claim AS c USING (key) WHERE number > 0"
    )
    found = {row[0]: row[1:] for row in _asked(path, query)}
    assert set(found) == set(keys)
    assert len({row[0] for row in found.values()}) == 1
    assert {row[1] for row in found.values()} == {"j\u00f6rg \U0001f600"}
    assert _asked(path, "SELECT count(*) FROM whole_claim") == [(0,)]
    assert ledger.verify().clean
    assert ledger.commit(keys[1]).charged == {"d": {"epsilon": "0.01"}, "g": {"epsilon": "0.01"}}


def test_an_event_with_another_number(tmp_path: Path) -> None:
    """What a connection remembers is wrong: nothing is written."""
    ledger = _made(tmp_path / "a.db", Clock())
    for key in ("a", "b"):
        ledger.reserve("d", cost="0.01", key=key)
    for ask in (lambda: ledger.reserve("d", cost="0.01", key="c"), lambda: ledger.start("a")):
        (connection,) = ledger.store.pool._idle  # type: ignore[attr-defined]
        connection.known.last += 1
        with pytest.raises(LedgerError, match="should have number"):
            ask()
        ledger.reserve("d", cost="0.01", key="b")
    assert ledger.status("d")["reserved"] == "0.02"
    assert ledger.verify().clean
