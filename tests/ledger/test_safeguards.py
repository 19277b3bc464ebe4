"""One test for each safeguard of the ledger; `python -m tests.ledger.mutations` shows that each is needed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

from privloss.ledger.amounts import BITS
from privloss.ledger.commands import Move, Reserve
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.state import STARTED, Balance
from privloss.ledger.stores.base import LedgerError
from privloss.ledger.stores.grouped import GroupedStore
from privloss.ledger.stores.rows import ACCOUNT, ANALYSIS, chain
from privloss.ledger.stores.sqlite import SqliteStore
from tests.ledger.postgres import Server

Ask = Callable[[Ledger], object]
LOOK = 0.02  # seconds between two looks


@pytest.fixture
def ledger(place: str) -> Ledger:
    made = Ledger.create(place)
    for name in ("one", "two"):
        made.add_dataset(name, adjacency="add-remove")
        made.set_budget(name, currency="pure", cap="1")
    return made


def _answer(ask: Callable[[], object]) -> str:
    """The state, the reason of a refusal, or the error."""
    try:
        return str(getattr(ask(), "state", "?"))
    except RefusedError as refusal:
        return refusal.refused.reason.code
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"


def _held_back(place: str) -> bool:
    """Whether a writer must wait: in PostgreSQL one does, in SQLite the only lock is taken."""
    if "://" in place:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        with psycopg.connect(place, autocommit=True) as connection:
            row = connection.execute(query).fetchone()
            return row is not None and row[0] > 0
    raw = sqlite3.connect(place, timeout=0, isolation_level=None)
    try:
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return True
    finally:
        raw.close()
    return False


def _overtaken(place: str, at: str, first: Ask, second: Ask) -> tuple[list[str], list[int]]:
    """Two clients at once; the first pauses before a statement until the second is done or waits.

    Returns their answers, and how many transactions each has begun.
    """
    reached, goes_on, asks, done = (threading.Event() for _ in range(4))
    answers, begun, paused = ["", ""], [0, 0], []
    clients = [Ledger(place), Ledger(place)]

    def pause(statement: str) -> None:
        begun[0] += statement == "BEGIN"
        if statement.startswith(at) and not reached.is_set():
            paused.append(statement)
            reached.set()
            goes_on.wait()

    def count(statement: str) -> None:
        begun[1] += statement == "BEGIN"
        asks.set()

    def ask_first() -> None:
        answers[0] = _answer(lambda: first(clients[0]))
        reached.set()  # in any case

    def ask_second() -> None:
        answers[1] = _answer(lambda: second(clients[1]))
        done.set()

    clients[0].store.boundary, clients[1].store.boundary = pause, count
    threads = [threading.Thread(target=ask_first), threading.Thread(target=ask_second)]
    threads[0].start()
    reached.wait()
    threads[1].start()
    asks.wait()
    while not done.is_set() and not _held_back(place):
        done.wait(LOOK)
    goes_on.set()
    for thread in threads:
        thread.join()
    assert paused
    return answers, begun


def _reserves(dataset: str, key: str) -> Ask:
    return lambda client: client.reserve(dataset, cost="0.6", key=key)


def test_the_second_of_two_writers_sees_what_the_first_wrote(ledger: Ledger, place: str) -> None:
    answers, _ = _overtaken(place, f"UPDATE {ledger.store.balances}", _reserves("one", "a"), _reserves("one", "b"))
    first_wins = ["RESERVED", "budget-exceeded"]  # in PostgreSQL nothing is held for one dataset: the faster one wins
    assert answers == (first_wins[::-1] if "://" in place else first_wins)
    assert ledger.status("one")["reserved"] == "0.6"
    assert ledger.verify().clean


def test_two_writers_extend_one_chain(ledger: Ledger, place: str) -> None:
    ask = [lambda client, key=key: client.reserve("one", cost="0.1", key=key) for key in "ab"]
    answers, begun = _overtaken(place, "INSERT INTO event", ask[0], ask[1])
    assert answers == ["RESERVED", "RESERVED"]
    assert begun == ([2, 1] if "://" in place else [1, 1])  # who was overtaken asks again, once
    assert ledger.verify().clean


def test_writers_on_two_datasets_do_not_wait_for_each_other(server: Server) -> None:
    """The first is held up inside its transaction until the second is done."""
    place = server.fresh("apart")
    made = Ledger.create(place)
    for name in ("one", "two"):
        made.add_dataset(name, adjacency="add-remove")
        made.set_budget(name, currency="pure", cap="1")
    reached, done = threading.Event(), threading.Event()

    def pause(statement: str) -> None:
        if statement.startswith("INSERT INTO event"):
            reached.set()
            done.wait()

    other = Ledger(place)
    other.store.boundary = pause
    thread = threading.Thread(target=other.reserve, args=("one",), kwargs={"cost": "0.1", "key": "a"})
    thread.start()
    reached.wait()
    try:
        assert made.reserve("two", cost="0.1", key="b").state == "RESERVED"
    finally:
        done.set()
        thread.join()
    assert made.status("one")["reserved"] == "0.1"
    assert made.verify().clean  # numbers along each chain, not along the order of the commits


def test_a_group_is_held_by_all_its_datasets(place: str) -> None:
    made = Ledger.create(place)
    made.add_group("all", adjacency="add-remove")
    made.set_budget("all", currency="pure", cap="1")
    for name in ("one", "two"):
        made.add_dataset(name, adjacency="add-remove", parent="all")
        made.set_budget(name, currency="pure", cap="1")
    answers, _ = _overtaken(place, f"UPDATE {made.store.balances}", _reserves("one", "a"), _reserves("two", "b"))
    assert answers == ["RESERVED", "parent-exceeded"]
    assert made.status("all")["reserved"] == "0.6"
    assert made.verify().clean


def test_a_dataset_added_twice_keeps_its_spends(ledger: Ledger, place: str) -> None:
    def add(client: Ledger) -> None:
        client.add_dataset("new", adjacency="add-remove")

    def add_and_spend(client: Ledger) -> object:
        add(client)
        client.set_budget("new", currency="pure", cap="1")
        return client.reserve("new", cost="0.6", key="k")

    answers, _ = _overtaken(place, "INSERT INTO dataset", add, add_and_spend)
    assert answers[1] == "RESERVED"
    assert ledger.status("new")["reserved"] == "0.6"
    assert ledger.verify().clean


def test_the_database_itself_holds_the_cap(ledger: Ledger) -> None:
    table = ledger.store.balances
    negative = Balance(Fraction(1), reserved=Fraction(-1)).row("epsilon")[3]
    for units in ("'9' || substr(cap_units, 2)", "'-1'", f"'{negative}'", "'0' || cap_units"):
        with pytest.raises(LedgerError, match="refused the change"), ledger.store.transaction() as cursor:
            cursor.execute(f"UPDATE {table} SET total_units = {units}")
    with pytest.raises(LedgerError, match="refused the change"), ledger.store.transaction() as cursor:
        cursor.execute(f"UPDATE {table} SET cap_units = '9'")
    assert ledger.verify().clean


def test_units_sort_like_numbers() -> None:
    sizes = [-2, Fraction(-1, 3), 0, Fraction(1, 2**40), Fraction(1, 3), 2, 10**24]
    texts = [Balance(None, reserved=Fraction(size)).row("epsilon")[3] for size in sizes]
    assert {len(text) for text in texts} == {60}
    assert texts[2:] == sorted(texts[2:])
    assert all(text < "0" for text in texts[:2])  # what the CHECK refuses


def test_the_database_itself_keeps_events(ledger: Ledger, place: str) -> None:
    changes = ["UPDATE event SET body = '{}' WHERE seq = 1", "DELETE FROM event WHERE seq = 2"]
    replaces = "INSERT OR REPLACE INTO event (chain, seq, previous, body, hash) VALUES ('one', 2, '', '{}', '')"
    for change in [*changes, "TRUNCATE event" if "://" in place else replaces]:
        with pytest.raises(LedgerError, match="append-only"), ledger.store.transaction() as cursor:
            cursor.execute(change)
    assert ledger.verify().clean


def test_commits_of_sqlite_are_synced(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "privloss.db", create=True)
    with store.pool.taken() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_commits_of_postgresql_are_synced(server: Server) -> None:
    place = server.fresh("careless")
    with psycopg.connect(place, autocommit=True) as raw:
        raw.execute("ALTER DATABASE careless SET synchronous_commit = off")
    with Ledger.create(place).store.transaction() as cursor:
        assert cursor.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_a_group_is_answered_after_its_commit(tmp_path: Path) -> None:
    plain = SqliteStore(tmp_path / "privloss.db", create=True)
    made = Ledger(store=GroupedStore(plain))
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")

    def fail(statement: str) -> None:
        if statement == "COMMIT":
            raise LedgerError("the disk is full.")

    plain.boundary = fail
    assert _answer(lambda: made.reserve("d", cost="0.5", key="k")) == "LedgerError: the disk is full."
    del plain.boundary
    assert made.status("d")["reserved"] == "0"


FORK = """
import os, sys, threading
from privloss.ledger.ledger import Ledger
made = Ledger(sys.argv[1])
made.reserve('one', cost='0.1', key='parent')
taken, goes_on = threading.Event(), threading.Event()
def hold():
    with made.store.pool._lock:
        taken.set()
        goes_on.wait()
threading.Thread(target=hold, daemon=True).start()
taken.wait()
ours = list(made.store.pool._idle)
child = os.fork()
if child == 0:
    made.reserve('one', cost='0.1', key='child')
    os._exit(0 if not set(map(id, ours)) & set(map(id, made.store.pool._idle)) else 5)
_, status = os.waitpid(child, 0)
goes_on.set()
made.reserve('one', cost='0.1', key='parent again')  # its connection is as it was
made.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_makes_its_own_connections(ledger: Ledger, place: str) -> None:
    """Also if another thread of the parent holds the pool's lock: in the child nobody would let it go."""
    run = subprocess.run([sys.executable, "-c", FORK, place], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert ledger.status("one")["reserved"] == "0.3"


def test_expired_leases_over_several_datasets_are_collected(place: str) -> None:
    now = [1000.0]
    made = Ledger.create(place, clock=lambda: now[0])
    for name in ("one", "two"):
        made.add_dataset(name, adjacency="add-remove")
        made.set_budget(name, currency="pure", cap="1")
    made.reserve(["one", "two"], cost="0.5", key="late", lease=1)
    now[0] += 10
    assert _answer(lambda: made.reserve("two", cost="0.5", key="late")) == "key-reused"
    assert _answer(lambda: made.reserve("one", cost="0.6", key="k1")) == "RESERVED"
    assert made.status("two")["reserved"] == "0"
    tiny = {"one": {"epsilon": Fraction(1, 10**6)}}
    many = [Reserve(f"many{i}", f"many{i}", tiny, None, "", 1.0) for i in range(1203)]
    made.store.run_all([*many, Move(STARTED, "many7", 1.0)], lambda: now[0])
    made.reserve("two", cost="0.9", key="hidden", lease=2)  # many on one dataset do not hide those on another
    now[0] += 10
    assert _answer(lambda: made.reserve("two", cost="0.9", key="k2")) == "RESERVED"
    assert made.status("one")["reserved"] == "0.601203"
    assert _answer(lambda: made.reserve("one", cost="0.399999", key="k3")) == "RESERVED"  # more than a thousand at once
    assert made.status("one")["committed"] == "0.000001"  # the one that had started
    assert made.verify().clean


# -- an auditor sees what the database could not refuse ----------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Events 1 and 2 of d set up, 3 and 4 are reservations."""
    path = tmp_path / "privloss.db"
    made = Ledger.create(str(path))
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")
    for key in ("a", "b"):
        made.reserve("d", cost="0.5", key=key, analyst="ann")
    made.close()
    return path


_RELINK = "UPDATE event SET previous = ?, hash = ? WHERE chain = 'd' AND seq = ?"


def _forge(path: Path, seq: int, old: str, new: str, links: int) -> None:
    """Change an event, and hash it and the next ones again, so that some links fit."""
    with sqlite3.connect(path) as raw:
        raw.execute("DROP TRIGGER event_no_update")
        previous, body = raw.execute("SELECT previous, body FROM event WHERE chain = 'd' AND seq = ?", [seq]).fetchone()
        assert old in body
        raw.execute("UPDATE event SET body = ? WHERE chain = 'd' AND seq = ?", [body.replace(old, new), seq])
        for number in range(seq, seq + links):
            (body,) = raw.execute("SELECT body FROM event WHERE chain = 'd' AND seq = ?", [number]).fetchone()
            link = chain(previous, body)
            raw.execute(_RELINK, [previous, link, number])
            previous = link


@pytest.mark.parametrize(("links", "says"), [(0, "event 3 of 'd': its hash"), (1, "event 4 of 'd': its hash")])
def test_the_chain_shows_a_forged_event(file: Path, links: int, says: str) -> None:
    with sqlite3.connect(file) as raw:
        (body,) = raw.execute("SELECT body FROM event WHERE chain = 'd' AND seq = 3").fetchone()
    at = json.loads(body)["at"]  # nothing else depends on the time
    _forge(file, 3, f'"at":{at!r}', '"at":1.0', links)
    assert says in Ledger(str(file)).verify().problems[0]


def test_an_audit_holds_the_cap_at_every_event(file: Path) -> None:
    _forge(file, 4, '"0.5"', '"0.75"', 1)
    with sqlite3.connect(file) as raw:
        raw.execute("PRAGMA ignore_check_constraints = ON")
        total = str(5 * 2**BITS // 4).zfill(60)
        raw.execute("UPDATE standing SET reserved = '5/4', total_units = ? WHERE component = 'epsilon'", [total])
    says = "event 4 of 'd': reserved though it should have been refused: dataset 'd' would be exceeded"
    assert Ledger(str(file)).verify().problems == (says,)


def test_an_audit_compares_the_tables(file: Path) -> None:
    with sqlite3.connect(file) as raw:
        raw.execute("UPDATE standing SET committed = reserved, reserved = '0/1' WHERE component = 'epsilon'")
    assert "balances" in Ledger(str(file)).verify().problems[0]


@dataclass(frozen=True)
class _Answer:
    """Rows that have been read already."""

    rows: list[Any]

    def fetchall(self) -> list[Any]:
        return self.rows


def _after(client: Ledger, statement: str, then: Callable[[], object]) -> None:
    """Something that happens once, just after a client has read the answer to a statement."""
    execute, happened = client.store.execute, list[str]()

    def late(cursor: Any, asked: str, values: Sequence[Any] = ()) -> Any:
        answer = execute(cursor, asked, values)
        if happened or not asked.startswith(statement):
            return answer
        happened.append(asked)
        rows = answer.fetchall()
        then()
        return _Answer(rows)

    client.store.execute = late  # type: ignore[method-assign]


def test_a_dataset_made_meanwhile_is_not_written_unheld(server: Server) -> None:
    """One client finds no dataset to hold; another makes it and spends; the first must not write what it never held."""
    place = server.fresh("meanwhile")
    first, second = Ledger.create(place), Ledger(place)

    def make_and_spend() -> None:
        second.add_dataset("d", adjacency="add-remove")
        second.set_budget("d", currency="pure", cap="1")
        second.reserve("d", cost="1", key="all")
        made.append("d")

    made: list[str] = []
    _after(first, f"{ACCOUNT} WHERE name IN", make_and_spend)
    assert _answer(lambda: first.freeze("d")) == "unknown-dataset"
    assert made == ["d"]
    assert second.status("d")["reserved"] == "1"
    assert not second.status("d")["frozen"]
    assert second.verify().clean


def test_a_key_made_meanwhile_is_unknown(server: Server) -> None:
    place = server.fresh("meanwhile2")
    first, second = Ledger.create(place), Ledger(place)
    second.add_dataset("d", adjacency="add-remove")
    second.set_budget("d", currency="pure", cap="1")
    _after(first, ANALYSIS, lambda: second.reserve("d", cost="1/2", key="k"))
    assert _answer(lambda: first.start("k")) == "unknown-key"
    assert second.start("k").state == "STARTED"


def test_closing_a_grouped_store_drops_nothing(tmp_path: Path) -> None:
    made = Ledger(store=GroupedStore(SqliteStore(tmp_path / "g.db", create=True)))
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")
    answers: list[str] = []

    def ask(i: int) -> None:
        try:
            answers.append(made.reserve("d", cost="1/1000", key=f"k{i}").state)
        except LedgerError as problem:
            answers.append(str(problem))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(40)]
    for thread in threads:
        thread.start()
    made.store.close()
    for thread in threads:
        thread.join()
    assert len(answers) == 40
    assert set(answers) <= {"RESERVED", "the ledger was closed."}
