"""Events of an SQLite ledger are found by their place in a chain, whether it is noted already or not."""

from __future__ import annotations

import random
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from privloss.ledger.commands import Command, Reserve
from privloss.ledger.ledger import Ledger
from privloss.ledger.verify import Audit, check_head, signed_head

NAMES, MANY, NOTED = ("d", "e", "f"), 2600, 2048


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three chains of different speed, of which some two thousand places are noted."""
    path, draw = tmp_path_factory.mktemp("places") / "privloss.db", random.Random(5)
    ledger = Ledger.create(str(path))
    ledger.add_group("g", adjacency="add-remove")
    ledger.set_budget("g", currency="pure", cap="1")
    for name in NAMES:
        ledger.add_dataset(name, adjacency="add-remove", parent="g")
        ledger.set_budget(name, currency="pure", cap="1")
    held = {part: Fraction(1, 10**9) for part in ("epsilon",)}
    chosen = draw.choices(NAMES, (80, 19, 1), k=MANY // 2)
    keys = [(f"key {number}", name) for number, name in enumerate(chosen)]
    commands: list[Command] = [
        Reserve(key, key, {name: held, "g": held}, None, "", 1e6, datasets=(name,)) for key, name in keys
    ]
    for first in range(0, len(commands), 100):
        ledger.store.run_all(commands[first : first + 100])
    ledger.close()
    return path


def test_every_event_is_in_its_place(made: Path) -> None:
    with sqlite3.connect(made) as raw:
        ((noted, last),) = raw.execute("SELECT placed.number, (SELECT max(number) FROM event) FROM placed").fetchall()
        assert last - noted < NOTED <= noted
        assert noted % 512 == 0
        assert raw.execute("SELECT count(*) FROM place").fetchone() == (noted,)
        query = "SELECT number, chain, seq, body, hash FROM {} ORDER BY number"
        assert raw.execute(query.format("chained")).fetchall() == raw.execute(query.format("event")).fetchall()


def test_what_is_shown_and_checked(made: Path) -> None:
    """From either end of every chain, and across the end of what is noted."""
    ledger = Ledger(str(made))
    with sqlite3.connect(made) as raw:
        events = {
            name: raw.execute("SELECT seq, hash FROM event WHERE chain = ? ORDER BY number", [name]).fetchall()
            for name in (*NAMES, "g")
        }
    for name, known in events.items():
        seqs = [seq for seq, _ in known]
        assert seqs == list(range(1, len(seqs) + 1))
        assert [event["seq"] for event in ledger.history(name)] == seqs
        assert [event["seq"] for event in ledger.history(name, last=7)] == seqs[-7:]
        found, after = ledger.page(name, after=len(seqs) - 60, limit=50)
        assert [event["seq"] for event in found] == seqs[max(len(seqs) - 60, 0) :][:50]
        assert after == (found[-1]["seq"] if len(found) == 50 else None)
    audit = ledger.verify()
    assert audit.clean, audit.problems
    for step in range(20):
        ends = {name: known[step * len(known) // 20 % len(known)] for name, known in events.items()}
        assert check_head(ledger.store, signed_head(Audit((), 1, ends), b"secret"), b"secret") == []
    ledger.close()


def test_nothing_is_looked_through_to_find_one(made: Path) -> None:
    """Only what is not noted yet, which is bounded."""
    with sqlite3.connect(made) as raw:
        for rest in ("seq = 7", "seq < 900 ORDER BY seq DESC LIMIT 50", "seq > 9 ORDER BY seq LIMIT 50"):
            plan = raw.execute(f"EXPLAIN QUERY PLAN SELECT seq, body FROM chained WHERE chain = 'd' AND {rest}")
            steps = [row[3] for row in plan]
            assert any(step.startswith("SEARCH p USING PRIMARY KEY (chain=? AND seq") for step in steps), steps
            assert not any(step.startswith(("SCAN e", "SCAN p USING")) for step in steps), steps


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM place WHERE chain = 'd' AND seq = 40",
        "UPDATE place SET number = number + 1 WHERE chain = 'd' AND seq = 40",
        "UPDATE placed SET number = number + 1",
        "UPDATE placed SET number = number - 1",
        "INSERT INTO place VALUES ('d', 100000, 4)",
        "DELETE FROM placed",
    ],
)
def test_verify_compares_places(made: Path, tmp_path: Path, sql: str) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(made.read_bytes())
    with sqlite3.connect(copy) as raw:
        raw.execute(sql)
    ledger = Ledger(str(copy))
    assert ledger.verify().problems == ("the places of events are not where the events are",)
    ledger.close()
