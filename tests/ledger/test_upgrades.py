"""Files of older schemas: brought to the present one whole or not at all, and what stands in them stays."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import privloss.ledger.stores.schema as schema
import privloss.ledger.stores.sqlite as sqlite
from privloss.ledger.ledger import AlreadySpentError, Ledger
from privloss.ledger.state import VOIDED
from privloss.ledger.stores.base import LedgerError
from privloss.ledger.stores.rows import marks

DATA = Path(__file__).parents[1] / "data"


class Crash(BaseException):
    """The process is gone."""


def _tables(path: Path) -> list[Any]:
    queries = (
        "SELECT number, chain, seq, previous, body, hash FROM event ORDER BY number",
        "SELECT dataset, lease, key FROM open_lease ORDER BY dataset, lease, key",
        "SELECT * FROM analysis ORDER BY key",
        "SELECT * FROM balance ORDER BY dataset, owner, component",
        "SELECT * FROM dataset ORDER BY name",
    )
    with sqlite3.connect(path) as raw:
        return [raw.execute(query).fetchall() for query in queries]


def _version(path: Path) -> int:
    with sqlite3.connect(path) as raw:
        return int(raw.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()[0])


@pytest.fixture(params=[4, 5, 6, 7])
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A ledger of an older schema with keys in every state, on two datasets under a group: rows that the release with
    schema 7 has written, in tables of which those since 4 have the same columns."""
    path, scripts = tmp_path / "old.db", resources.files("privloss.ledger.stores").joinpath("migrations", "sqlite")
    rows = json.loads((DATA / "ledger-schema-7.json").read_text())
    with sqlite3.connect(path) as raw:
        for number in range(1, request.param + 1):
            raw.executescript(scripts.joinpath(f"{number:04d}.sql").read_text())
        raw.execute("DELETE FROM dataset")
        for table in ("event", "dataset", "balance", "analysis", "open_lease"):
            raw.executemany(f"INSERT INTO {table} VALUES ({marks(rows[table][0])})", rows[table])
        raw.execute("INSERT INTO meta VALUES ('version', ?)", [str(request.param)])
    assert _version(path) == request.param
    return path


def test_an_upgrade_that_is_cut_off(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before every statement of it: nothing of it is there, and the next opening does it."""
    before, statements = _tables(old), []
    copy = old.with_name("copy.db")
    shutil.copy(old, copy)
    with monkeypatch.context() as watched:
        watched.setattr(sqlite.SqliteStore, "boundary", staticmethod(statements.append))
        Ledger(str(copy)).close()
    assert _tables(copy) == before
    assert len(statements) > 10
    version = _version(old)
    for crash_at in range(len(statements)):
        count: Iterator[int] = iter(range(len(statements)))

        def boundary(statement: str, count: Iterator[int] = count, crash_at: int = crash_at) -> None:
            if next(count) == crash_at:
                raise Crash

        with monkeypatch.context() as crashing:
            crashing.setattr(sqlite.SqliteStore, "boundary", staticmethod(boundary))
            with pytest.raises(Crash):
                Ledger(str(old))
        assert _tables(old) == before
        if statements[crash_at] != "done":
            assert _version(old) == version
    ledger = Ledger(str(old))
    assert (_version(old), _tables(old)) == (schema.VERSION, before)
    assert ledger.verify().clean
    with ledger.store.transaction() as cursor, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        cursor.execute("REPLACE INTO event (chain, seq, previous, body, hash) VALUES ('d', 3, '', '', '')")
    _goes_on(ledger)


def _goes_on(ledger: Ledger) -> None:
    """What was started stays spent, what was held can be started, and new keys are charged."""
    with pytest.raises(AlreadySpentError):
        ledger.start("k1")
    assert ledger.start("k0").state == "STARTED"
    assert ledger.void("k4").state == VOIDED
    for number in range(4):
        ledger.reserve("d", cost="1/40", key=f"new {number}")
    audit = ledger.verify()
    assert audit.clean, audit.problems
    ledger.close()


@pytest.mark.parametrize("column", ["request", "analyst", "charges", "held_on"])
def test_keys_of_older_releases_are_compared(old: Path, column: str) -> None:
    """They have everything themselves, and it must be what the events say."""
    Ledger(str(old)).close()
    with sqlite3.connect(old) as raw:
        raw.execute(f"UPDATE whole_claim SET {column} = 'x' WHERE key = 'k5'")
    assert Ledger(str(old)).verify().problems == ("key 'k5': is not as the events have it",)


def test_two_open_an_older_file_at_once(old: Path) -> None:
    """The second waits for the first, and finds the work done; a connection from before sees the new tables."""
    early = sqlite3.connect(old)
    assert early.execute("SELECT count(*) FROM open_lease").fetchone()[0] > 0
    first, second = Ledger(str(old)), Ledger(str(old))
    assert early.execute("SELECT count(*) FROM event").fetchone()[0] > 12
    early.close()
    second.reserve("e", cost="1/40", key="of the second")
    first.close()
    _goes_on(second)


def test_a_file_of_a_later_release_is_left_alone(old: Path) -> None:
    with sqlite3.connect(old) as raw:
        raw.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    before = _tables(old)
    with pytest.raises(LedgerError, match="schema version 99"):
        Ledger(str(old))
    assert _tables(old) == before


def test_a_ledger_of_0_2(tmp_path: Path) -> None:
    """As 0.2 would have left one of 0.1.0: schema 2, which only adds a column."""
    path = tmp_path / "ledger.db"
    shutil.copy(DATA / "ledger-0.1.0.sqlite", path)
    script = resources.files("privloss.ledger.stores").joinpath("migrations", "sqlite", "0002.sql")
    with sqlite3.connect(path) as raw:
        raw.executescript(script.read_text())
        raw.execute("UPDATE meta SET value = '2' WHERE name = 'version'")
        raw.execute("UPDATE analysis SET token = '' WHERE state = 'STARTED'")
        events = raw.execute("SELECT seq, previous, body, hash FROM event ORDER BY seq").fetchall()
    ledger = Ledger(str(path))
    assert ledger.verify().clean
    with ledger.store.reading() as cursor:
        kept = [(e.seq, e.previous, e.body, e.hash) for e in ledger.store.entries(cursor) if e.chain == ""]
    assert kept == events
    with pytest.raises(AlreadySpentError):
        ledger.start("rho")
    ledger.close()
