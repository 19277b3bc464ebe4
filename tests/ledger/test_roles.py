"""``privloss ledger roles``: on a real server each role can do what it needs, and nothing more."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from privloss.cli.main import main
from privloss.errors import InvalidInput
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.stores.base import LedgerError
from privloss.ledger.stores.roles import TABLES, script
from tests.ledger.postgres import PASSWORD, Server

ROLES = {"owner": 'led\'ger "owner"', "writer": "led-writer", "auditor": "led-auditor"}


@pytest.fixture
def places(server: Server, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The address of one ledger for each role, after the script has run (twice: it may)."""
    whole = server.fresh(f"roles{os.getpid()}")
    ledger = Ledger.create(whole)
    ledger.add_dataset("d", adjacency="add-remove")
    ledger.set_budget("d", currency="pure", cap="1")
    with pytest.raises(SystemExit):
        main(["ledger", "roles", *(word for role, name in ROLES.items() for word in (f"--{role}", name))])
    sql = capsys.readouterr().out
    found = {"all": whole}
    with psycopg.connect(whole, autocommit=True) as connection:
        connection.execute(sql)
        connection.execute(sql)
        for role, name in ROLES.items():
            quoted = psycopg.sql.Identifier(name).as_string(connection)
            connection.execute(f"ALTER ROLE {quoted} PASSWORD '{PASSWORD}'")
            found[role] = psycopg.conninfo.make_conninfo(whole, user=name)
    return found


def test_a_writer_spends_and_cannot_rewrite(places: dict[str, str]) -> None:
    ledger = Ledger(places["writer"])
    with ledger.spend("d", cost="0.5", key="a"):
        pass
    ledger.reserve("d", cost="0.1", key="b", lease=0.001)
    ledger.reserve("d", cost="0.1", key="c")  # gives b back
    ledger.void("c")
    with pytest.raises(RefusedError, match="budget-exceeded"):
        ledger.reserve("d", cost="0.9", key="e")
    ledger.add_group("g", adjacency="add-remove")
    ledger.add_dataset("e", adjacency="add-remove", parent="g", blocks="month")
    ledger.set_budget("g", currency="zcdp", cap="1", delta="1e-6")
    ledger.set_budget("g", currency="pure", cap="1")  # balances of the old currency go
    ledger.set_budget("e", currency="pure", cap="1")
    ledger.set_budget("d", currency="pure", cap="0.6", analyst="ann")
    ledger.reserve("e", cost="0.1", key="blocks", blocks="2026-01")
    ledger.freeze("d")
    assert ledger.verify().clean
    for statement in (
        "UPDATE event SET body = '{}'",
        "DELETE FROM event",
        "TRUNCATE event",
        "ALTER TABLE event DISABLE TRIGGER event_no_change",
        "DROP TABLE event",
        "UPDATE meta SET value = '9'",
        "INSERT INTO meta VALUES ('x', 'y')",
        "DELETE FROM dataset",
        "UPDATE dataset SET adjacency = 'replace-one'",
        "UPDATE dataset SET name = 'x'",
        "DELETE FROM analysis",
        "UPDATE analysis SET charges = '{}'",
        "UPDATE analysis SET key = 'x'",
        "UPDATE balance SET owner = 'x'",
        "UPDATE open_lease SET lease = 0",
        "CREATE TABLE mine (x int)",
        "CREATE FUNCTION event_append_only2() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ):
        _denied(places["writer"], statement)


def test_an_auditor_looks_and_verifies(places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    Ledger(places["writer"]).reserve("d", cost="0.5", key="a")
    ledger = Ledger(places["auditor"])
    assert ledger.verify().clean
    assert ledger.status("d")["reserved"] == "0.5"
    assert ledger.quote("d", cost="0.1")["d"]["fits"]
    assert len(ledger.history("d")) == 3
    for command in (["verify"], ["status", "d"], ["list"], ["history", "d"], ["doctor"], ["export"]):
        with pytest.raises(SystemExit) as stop:
            main(["ledger", *command, "--db", places["auditor"]])
        assert stop.value.code == 0, capsys.readouterr()
    writing: list[Callable[[], Any]] = [
        lambda: ledger.reserve("d", cost="0.1", key="b"),
        lambda: ledger.start("a"),
        lambda: ledger.freeze("d"),
        lambda: ledger.add_dataset("x", adjacency="add-remove"),
    ]
    for write in writing:
        with pytest.raises(LedgerError, match=r"permission denied.*nothing was written"):
            write()
    for table in TABLES:
        _denied(places["auditor"], f"DELETE FROM {table}")
        _denied(places["auditor"], f"INSERT INTO {table} DEFAULT VALUES")
    assert len(Ledger(places["all"]).history("d")) == 3


def test_the_owner_owns(places: dict[str, str]) -> None:
    with psycopg.connect(places["all"]) as connection:
        rows = connection.execute("SELECT tablename, tableowner FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert dict(rows) == dict.fromkeys(TABLES, ROLES["owner"])
    assert Ledger(places["owner"]).verify().clean


def test_names_that_are_none() -> None:
    for names in (("a", "a", "b"), ("", "b", "c"), ("a" * 64, "b", "c"), ("$privloss$", "b", "c")):
        with pytest.raises(InvalidInput):
            script(*names)
    (made,) = [line for line in script("x'; DROP TABLE event; --", "b", "c").splitlines() if "CREATE ROLE" in line][:1]
    assert made.count("'x''; DROP TABLE event; --'") == made.count('"x\'; DROP TABLE event; --"') == 1


def _denied(place: str, statement: str) -> None:
    with (
        psycopg.connect(place) as connection,
        pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException), match=r"permission|owner"),
    ):
        connection.execute(statement)
