"""The SQLite file in hand: tampered with, damaged, full, read-only; the server out of reach; group commit; forks."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import privloss as pl
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.stores.base import LedgerError
from privloss.ledger.stores.grouped import GroupedStore
from privloss.ledger.stores.sqlite import SqliteStore
from tests.ledger.postgres import Server

_BALANCE = "component <> ''"  # rows of the tree that holds the ends of chains, too


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "privloss.db"
    made = Ledger.create(str(path))
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")
    for i in range(4):
        made.reserve("d", cost="0.2", key=f"k{i}")
    made.close()
    return path


@pytest.fixture
def longer(file: Path) -> Path:
    """With so many events that leases of the first keys are noted, and of the last ones not yet."""
    made = Ledger(str(file))
    for i in range(64):
        made.reserve("d", cost="0.001", key=f"small {i}")
    made.close()
    return file


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (f"UPDATE standing SET reserved = '0/1', total_units = '{'0' * 60}' WHERE {_BALANCE}", "balances"),
        (f"UPDATE standing SET cap_units = '9' || substr(cap_units, 2) WHERE {_BALANCE}", "balances"),
        (f"UPDATE standing SET total_units = '0' || substr(cap_units, 2) WHERE {_BALANCE}", "balances"),
        (f"UPDATE standing SET cap = '2/1' WHERE {_BALANCE}", "balances"),
        ('UPDATE account SET settings = replace(settings, \'"cap":"1"\', \'"cap":"2"\')', "'d'"),
        ("UPDATE standing SET seq = seq - 1 WHERE dataset = 'd' AND component = ''", "'d': its chain does not end"),
        ("UPDATE claim SET lease = 1 WHERE key = 'k3'", "'k3'"),
        ("UPDATE claim SET run = 'x' WHERE key = 'k3'", "'k3'"),
        ("UPDATE claim SET number = number - 1 WHERE key = 'k3'", "'k3'"),
        ("UPDATE claim SET number = 0 WHERE key = 'k3'", "'k3'"),
        ("UPDATE claim SET number = 999 WHERE key = 'k3'", "'k3'"),
        ("UPDATE noted_lease SET lease = 1", "open leases"),
        ("DELETE FROM noted_lease WHERE key = 'k3'", "open leases"),
        ("UPDATE leased SET number = number + 8", "open leases"),
        ("UPDATE leased SET number = 0", "open leases"),
        ("DELETE FROM leased", "open leases"),
        ("UPDATE claim SET state = 'VOIDED' WHERE key = 'k1'", "'k1'"),
        ("DELETE FROM claim WHERE key = 'k2'", "'k2'"),
        (
            "DROP TRIGGER event_no_update; UPDATE event SET body = replace(body, '0.2', '0.1') WHERE seq = 4",
            "event 4 of 'd'",
        ),
        ("DROP TRIGGER event_no_delete; DELETE FROM event WHERE seq = 5", "event 5 of 'd'"),
        ("UPDATE account SET frozen = 1", "'d'"),
    ],
)
def test_verify_names_what_was_changed(longer: Path, sql: str, says: str) -> None:
    with sqlite3.connect(longer) as raw:
        raw.executescript(sql)
    audit = Ledger(str(longer)).verify()
    assert not audit.clean
    assert says in audit.problems[0]


def test_an_sqlite_that_is_too_old(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 32, 3))
    with pytest.raises(LedgerError, match=r"needs 3\.33 or later"):
        Ledger(str(file))


def test_events_cannot_be_changed(file: Path) -> None:
    raw = sqlite3.connect(file)
    for sql in ("UPDATE event SET body = ''", "DELETE FROM event"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(sql)


def test_the_check_constraint_holds_the_cap(file: Path) -> None:
    raw = sqlite3.connect(file)
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute("UPDATE standing SET total_units = '9' || substr(cap_units, 2)")


def test_files_that_cannot_be_used(file: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="ledger init"):
        Ledger(str(tmp_path / "none.db"))
    with pytest.raises(LedgerError, match="directory"):
        Ledger.create(str(tmp_path / "no" / "x.db"))
    (tmp_path / "text.db").write_text("this is not a database, it is a text of some length " * 40)
    with pytest.raises(LedgerError, match="damaged or no ledger"):
        Ledger(str(tmp_path / "text.db"))
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)")
    with pytest.raises(LedgerError, match="not a privloss ledger"):
        Ledger(str(tmp_path / "other.db"))
    newer = tmp_path / "newer.db"
    shutil.copy(file, newer)
    with sqlite3.connect(newer) as raw:
        raw.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    with pytest.raises(LedgerError, match="version 99"):
        Ledger(str(newer))
    torn = tmp_path / "torn.db"
    data = bytearray(file.read_bytes())
    data[4096:8192] = os.urandom(4096)
    torn.write_bytes(bytes(data))
    assert _sees_damage(torn)
    for bad in ("mysql://x", "sqlite:x"):
        with pytest.raises(pl.InvalidInput):
            Ledger(bad)


def _sees_damage(path: Path) -> bool:
    """Either the file cannot be used at all, or the audit or SQLite's own check finds the damage."""
    try:
        made = Ledger(str(path))
        return not made.verify().clean or not all(each.ok for each in made.store.own_checks())
    except LedgerError as problem:
        return "damaged" in str(problem)


def _fill(made: Ledger) -> None:
    for i in range(500):
        made.reserve("d", cost="1e-9", key=f"filler {i} " + "x" * 150)


def test_full_disk_and_read_only(file: Path) -> None:
    made = Ledger(str(file))
    store = made.store
    assert isinstance(store, SqliteStore)
    with store.pool.taken() as connection:  # the only connection; it goes back to the pool
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerError, match="disk is full"):
        _fill(made)
    assert made.verify().clean  # with a new connection
    made.reserve("d", cost="1e-9", key="after")
    with store.pool.taken() as connection:
        connection.execute("PRAGMA query_only = 1")
    with pytest.raises(LedgerError, match="nothing was written"):
        made.reserve("d", cost="1e-9", key="never")
    assert made.verify().clean


def test_wrong_password_and_no_server(server: Server) -> None:
    with pytest.raises(LedgerError, match="password") as problem:
        Ledger(server.url(password="wrong"))
    assert "wrong@" not in str(problem.value)
    with pytest.raises(LedgerError, match="cannot be reached"):
        Ledger("postgresql://nobody:x@127.0.0.1:9/none")
    with pytest.raises(LedgerError, match="ledger init"):
        Ledger(server.fresh("empty"))


def test_group_commit(tmp_path: Path) -> None:
    plain = SqliteStore(tmp_path / "g.db", create=True)
    made = Ledger(store=GroupedStore(plain))
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")
    outcomes: list[str] = []

    def ask(i: int) -> None:
        try:
            outcomes.append(made.reserve("d", cost="1/50", key=f"k{i}").state)
        except RefusedError as problem:
            outcomes.append(problem.refused.reason.code)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(80)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("RESERVED"), outcomes.count("budget-exceeded")) == (50, 30)
    assert made.verify().clean
    made.close()
    with pytest.raises(LedgerError, match="closed"):
        made.reserve("d", cost="1/50", key="late")


def test_forked_processes_share_a_ledger(file: Path) -> None:
    code = (
        "import sys\nfrom privloss.ledger.ledger import Ledger\n"
        "made = Ledger(sys.argv[1])\nmade.reserve('d', cost='0.01', key=sys.argv[2])\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(file), f"p{i}"]) for i in range(4)]
    assert [run.wait() for run in runs] == [0, 0, 0, 0]
    assert Ledger(str(file)).status("d")["reserved"] == "0.84"
