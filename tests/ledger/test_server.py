"""PostgreSQL behaves badly: clients that stop, servers that restart, replies that get lost, clocks that are wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from privloss.cli.main import main
from privloss.ledger.ledger import AlreadySpentError, Ledger, RefusedError
from privloss.ledger.stores import postgres
from privloss.ledger.stores.base import LedgerError, LostReply
from tests.ledger.postgres import PASSWORD, USER, Server
from tests.ledger.proxy import Proxy


def _fill(made: Ledger) -> Ledger:
    for name in ("one", "two", "beside"):
        made.add_dataset(name, adjacency="add-remove")
        made.set_budget(name, currency="pure", cap="1")
    return made


@pytest.fixture
def place(server: Server) -> str:
    return server.fresh(f"badly{os.getpid()}")


@pytest.fixture
def ledger(place: str) -> Ledger:
    return _fill(Ledger.create(place))


# -- a client that stops -----------------------------------------------------------------------------------------------

STOPS = """
import os, signal, sys
from privloss.ledger.ledger import Ledger
from privloss.ledger.stores import postgres
postgres.IDLE_WAIT = int(sys.argv[2])
made = Ledger(sys.argv[1])
def boundary(statement):
    if statement.startswith('UPDATE balance'):  # it holds the dataset, and has written nothing
        made.store.boundary = lambda statement: None
        os.kill(os.getpid(), signal.SIGSTOP)
made.store.boundary = boundary
try:
    made.reserve(['one', 'beside'], cost='0.6', key='stopped')  # several datasets are held
    print('reserved')
except Exception as problem:
    print(type(problem).__name__)
"""


def _stopped(place: str, wait: int) -> subprocess.Popen[str]:
    """A client that has stopped inside a transaction."""
    client = subprocess.Popen([sys.executable, "-c", STOPS, place, str(wait)], stdout=subprocess.PIPE, text=True)
    _, status = os.waitpid(client.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    return client


def _idle(place: str) -> int:
    """Clients inside a transaction that say nothing."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
    with psycopg.connect(place, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])


def test_a_stopped_client_holds_up_nobody_on_other_datasets(ledger: Ledger, place: str) -> None:
    client = _stopped(place, 3_600_000)
    try:
        assert _idle(place) == 1
        with ledger.spend("two", cost="0.6", key="k"):
            pass
        assert ledger.status("one")["reserved"] == "0"  # looking is always possible
        assert _idle(place) == 1  # and it is still there
        assert ledger.verify().clean
    finally:
        client.kill()
        client.communicate()
    assert ledger.reserve("one", cost="0.6", key="mine").state == "RESERVED"


def test_a_stopped_client_is_cut_off(ledger: Ledger, place: str) -> None:
    """Who wants the same dataset waits no longer than IDLE_WAIT; what the stopped one was about to do is not done."""
    client = _stopped(place, 200)
    assert ledger.reserve("one", cost="0.6", key="mine").state == "RESERVED"
    assert _idle(place) == 0
    client.send_signal(signal.SIGCONT)
    said, _ = client.communicate()
    assert said.strip() == "LedgerError"  # it learns that it was cut off
    assert ledger.status("one")["reserved"] == "0.6"
    assert ledger.verify().clean


def test_who_waits_too_long_is_told(ledger: Ledger, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = _stopped(place, 3_600_000)
    monkeypatch.setattr(postgres, "LOCK_WAIT", 100)
    try:
        with pytest.raises(LedgerError, match="another client holds the dataset; nothing was written, try again"):
            Ledger(place).reserve("one", cost="0.6", key="mine")
    finally:
        client.kill()
        client.communicate()


def test_how_long_a_client_may_stop(ledger: Ledger) -> None:
    settings = ("idle_in_transaction_session_timeout", "lock_timeout")
    with ledger.store.transaction() as cursor:
        found = [cursor.execute(f"SHOW {name}").fetchone()[0] for name in settings]
    assert found == ["20s", "30s"]
    assert postgres.IDLE_WAIT < postgres.LOCK_WAIT  # who waits is served before it gives up


# -- a server that restarts, a reply that gets lost --------------------------------------------------------------------


@pytest.fixture
def own() -> Iterator[Server]:
    """A server that may be killed."""
    running = Server()
    yield running
    running.stop()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_an_idle_connection_after_a_restart_works_at_once(own: Server, how: signal.Signals) -> None:
    made = _fill(Ledger.create(own.fresh("restarted")))
    made.reserve("one", cost="0.1", key="before")
    own.restart(how)
    assert made.start("before").state == "STARTED"  # no error, no second attempt
    own.restart(how)
    assert made.status("one")["reserved"] == "0.1"
    assert made.verify().clean
    made.close()


def test_a_terminated_backend_is_noticed_before_it_is_used(ledger: Ledger, place: str) -> None:
    ledger.reserve("one", cost="0.1", key="a")
    ours = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ours = f"SELECT pg_terminate_backend(pid) {ours}"
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(ours)
        while connection.execute(ours).fetchall():
            pass
    assert ledger.reserve("one", cost="0.1", key="b").state == "RESERVED"


def test_a_reply_lost_after_the_commit(server: Server, place: str, ledger: Ledger) -> None:
    """The connection is cut just after COMMIT was sent: asked once more, the run is let in; nobody else is."""
    with Proxy(server.port) as proxy:
        through = Ledger(proxy.through(place))
        through.reserve("one", cost="0.1", key="k")
        proxy.swallow = True  # from the next commit on nothing comes back
        entered = []
        with through.spend("one", cost="0.1", key="k"):
            entered.append(1)
        assert proxy.cuts == 1
        through.close()
    assert entered == [1]
    assert [event["kind"] for event in ledger.history("one")][-3:] == ["reserved", "started", "committed"]
    with pytest.raises(AlreadySpentError), ledger.spend("one", cost="0.1", key="k"):
        pass


def test_a_connection_cut_before_the_commit(server: Server, place: str, ledger: Ledger) -> None:
    """Nothing was done; the caller is told, or it is done by the second attempt: never both."""
    with Proxy(server.port) as proxy:
        through = Ledger(proxy.through(place))
        through.reserve("one", cost="0.1", key="k")
        proxy.drop = True  # the next commit does not arrive
        assert through.start("k", token="0123456789abcdef").state == "STARTED"
        assert proxy.cuts == 1
        through.close()
    assert [event["kind"] for event in ledger.history("one")][-2:] == ["reserved", "started"]


def test_a_reply_lost_twice_is_said(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(command: Any, clock: Any = None) -> Any:
        raise LostReply("gone.")

    ledger.reserve("one", cost="0.1", key="k")
    monkeypatch.setattr(ledger.store, "run", lose)
    with pytest.raises(LostReply), ledger.spend("one", cost="0.1", key="k"):
        pytest.fail("must not be entered")


# -- whose clock -------------------------------------------------------------------------------------------------------


def test_a_client_with_a_fast_clock_voids_nothing(ledger: Ledger, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.reserve("one", cost="0.6", key="mine", lease=600)
    begun = time.time()
    with monkeypatch.context() as fast:
        fast.setattr(time, "time", lambda: begun + 1e6)
        other = Ledger(place)
        assert other.quote("one", cost="0.1")["one"]["fits"]
        other.reserve("one", cost="0.1", key="theirs", lease=600)
        other.start("theirs")
    leases = {event["key"]: event for event in ledger.history("one") if "lease" in event}
    assert leases["theirs"]["lease"] < begun + 1e5  # by the server's clock
    assert ledger.start("mine").state == "STARTED"
    assert [event["kind"] for event in ledger.history("one") if event["kind"] == "voided"] == []


def test_a_client_with_a_fast_clock_spends_in_the_servers_year(
    place: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.set_budget("two", currency="pure", cap="0.4", every="year")
    ledger.reserve("two", cost="0.3", key="k")
    begun = time.time()
    with monkeypatch.context() as fast:
        fast.setattr(time, "time", lambda: begun + 2 * 366 * 86400)
        other = Ledger(place)
        with pytest.raises(RefusedError, match="period-exceeded"):
            other.reserve("two", cost="0.2", key="k2")
        other.reserve("two", cost="0.1", key="k2")
    assert len(ledger.status("two")["period"]["spent"]) == 1
    assert ledger.verify().clean


# -- what is said ------------------------------------------------------------------------------------------------------


def _other_ways(server: Server, place: str) -> list[str]:
    name = place.rsplit("/", 1)[1]
    words = f"host=127.0.0.1 port={server.port} dbname={name} user={USER}"
    return [
        place,
        place.replace("postgresql:", "postgres:"),
        f"{words} password={PASSWORD}",
        f"password={PASSWORD} {words}",
    ]


def test_every_way_to_write_an_address(server: Server, place: str, ledger: Ledger) -> None:
    for address in _other_ways(server, place):
        made = Ledger(address)
        assert isinstance(made.store, postgres.PostgresStore)
        assert made.status("one")["remaining"] == "1"


def test_no_password_is_ever_printed(server: Server, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    for address in _other_ways(server, place):
        for arguments in (["init"], ["init", "--json"], ["status", "nothing"], ["verify", "--json"]):
            with pytest.raises(SystemExit):
                main(["ledger", *arguments, "--db", address])
        out, err = capsys.readouterr()
        assert PASSWORD not in out + err
        assert "127.0.0.1" in out  # but where it is
        for wrong in (address.replace(PASSWORD, "wr0ng"), address.replace(str(server.port), "9"), f"{address}&= x y="):
            with pytest.raises(LedgerError) as problem:
                Ledger(wrong.replace(PASSWORD, "wr0ng"))
            assert "wr0ng" not in str(problem.value)
            assert problem.value.__cause__ is None


def test_tables_of_another_program(server: Server) -> None:
    for number, table in enumerate(("event (id int)", "dataset (id int)", "meta (id int)")):
        place = server.fresh(f"foreign{number}")
        with psycopg.connect(place, autocommit=True) as raw:
            raw.execute(f"CREATE TABLE {table}")
        for make in (Ledger, Ledger.create):
            with pytest.raises(LedgerError, match="another program") as problem:
                make(place)
            assert "\n" not in str(problem.value)


def test_threads_share_a_ledger_while_the_server_restarts(own: Server) -> None:
    """Every answer is one of: done, or said to be unknown; what was answered is there."""
    made = _fill(Ledger.create(own.fresh("threads")))
    answers: dict[str, str] = {}
    enough = threading.Event()

    def ask(who: int) -> None:
        number = 0
        while not enough.is_set():
            key = f"{who} {number}"
            try:
                answers[key] = made.reserve("one", cost="1e-6", key=key).state
            except LedgerError as problem:
                answers[key] = type(problem).__name__
            number += 1

    threads = [threading.Thread(target=ask, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        before = len(answers)
        while len(answers) < before + 15:
            enough.wait(0.01)
        own.restart(signal.SIGQUIT)
    before = len(answers)
    while len(answers) < before + 15:
        enough.wait(0.01)
    enough.set()
    for thread in threads:
        thread.join()
    with made.store.reading() as cursor:
        there = set(made.store.everything(cursor).analyses)
    assert {key for key, said in answers.items() if said == "RESERVED"} <= there
    assert set(answers.values()) <= {"RESERVED", "NoAnswer", "LostReply"}
    assert made.verify().clean
    made.close()
