"""What a store remembers of its last transaction is used only while it is still true."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privloss.ledger.stores.postgres as postgres
from privloss.ledger import maintenance
from privloss.ledger.amounts import show
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.state import Analysis, charges_to_json
from privloss.ledger.stores.rows import analysis_row, canonical
from tests.ledger.postgres import Server


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def made(ledger: Ledger) -> Ledger:
    ledger.add_dataset("d", adjacency="add-remove")
    ledger.set_budget("d", currency="pure", cap="1")
    return ledger


def test_what_another_process_wrote_is_seen(place: str) -> None:
    """Two that do not share connections, in turns."""
    first, second = made(Ledger.create(place)), Ledger(place)
    for number in range(4):
        (first if number % 2 else second).reserve("d", cost="0.2", key=f"k{number}")
    with pytest.raises(RefusedError, match="budget-exceeded"):
        first.reserve("d", cost="0.3", key="too much")
    second.freeze("d")
    with pytest.raises(RefusedError, match="frozen"):
        first.reserve("d", cost="0.1", key="frozen")
    audit = first.verify()
    assert audit.clean, audit.problems
    for each in (first, second):
        each.close()


def test_nothing_is_loaded_again_if_nobody_has_written(place: str) -> None:
    ledger = made(Ledger.create(place))
    ledger.reserve("d", cost="0.1", key="first")
    asked: list[str] = []
    ledger.store.boundary = asked.append  # type: ignore[method-assign]
    ledger.reserve("d", cost="0.1", key="second")
    assert not [text for text in asked if text.startswith("SELECT") and "FROM balance" in text]
    ledger.close()


def test_what_was_written_past_the_rules_is_seen(tmp_path: Path) -> None:
    """A restore or an upgrade on the same connection."""
    ledger = made(Ledger.create(str(tmp_path / "a.db")))
    ledger.reserve("d", cost="0.1", key="first")
    with ledger.store.transaction() as cursor:
        cursor.execute("UPDATE dataset SET frozen = 1 WHERE name = 'd'")
    with pytest.raises(RefusedError, match="frozen"):
        ledger.reserve("d", cost="0.1", key="second")
    ledger.close()


@pytest.mark.parametrize("how", ["reserved", "started"])
def test_a_lease_that_ends_is_not_forgotten(place: str, how: str) -> None:
    clock = Clock()
    ledger = made(Ledger.create(place, clock=clock))
    ledger.reserve("d", cost="0.5", key="long", lease=1000)
    ledger.reserve("d", cost="0.4", key="short", lease=10 if how == "reserved" else 1000)
    if how == "started":
        ledger.start("short", lease=10)
        ledger.reserve("d", cost="0.01", key="between", lease=1000)
    clock.now += 50
    if how == "reserved":
        ledger.reserve("d", cost="0.3", key="next")
    else:
        ledger.reserve("d", cost="0.01", key="next")
    ends = {event["key"]: event["kind"] for event in ledger.history("d") if "key" in event}
    assert ends["short"] == ("voided" if how == "reserved" else "committed")
    ledger.close()


def test_the_same_key_again_when_the_budget_is_full(place: str) -> None:
    ledger = made(Ledger.create(place))
    ledger.reserve("d", cost="0.5", key="a")
    ledger.reserve("d", cost="0.5", key="b")
    assert ledger.reserve("d", cost="0.5", key="b").state == "RESERVED"
    assert [event["kind"] for event in ledger.history("d")][-1] == "reserved"
    ledger.close()


def test_another_history_of_equal_length(server: Server) -> None:
    """A server that was set back, and has gone on otherwise."""
    ledger = made(Ledger.create(server.fresh(f"remembered{os.getpid()}")))
    ledger.reserve("d", cost="0.1", key="first")
    with ledger.store.transaction() as cursor:
        cursor.execute("UPDATE dataset SET head = ? WHERE name = 'd'", ["f" * 64])
    ledger.reserve("d", cost="0.1", key="second")
    with ledger.store.reading() as cursor:
        last = list(ledger.store.entries(cursor))[-1]
    assert last.previous == "f" * 64
    ledger.close()


def test_a_ledger_that_was_restored(server: Server, tmp_path: Path) -> None:
    """Its chains may end where they were remembered to, but it is frozen."""
    import psycopg

    place, backup = server.fresh(f"remembered{os.getpid()}"), str(tmp_path / "backup")
    ledger = made(Ledger.create(place))
    for number in range(2):
        ledger.reserve("d", cost="0.1", key=f"k{number}")
    maintenance.backup(ledger, backup)
    with psycopg.connect(place, autocommit=True) as raw:
        raw.execute("DROP SCHEMA public CASCADE")
        raw.execute("CREATE SCHEMA public")
    maintenance.restore(backup, Ledger.create(place))
    with pytest.raises(RefusedError, match="frozen"):
        ledger.reserve("d", cost="0.1", key="k2")
    assert ledger.verify().clean


def test_a_clock_that_has_jumped(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a reservation is the server's, also where it was not asked."""
    ledger = made(Ledger.create(server.fresh(f"remembered{os.getpid()}")))
    ledger.reserve("d", cost="0.1", key="first")
    later: Any = SimpleNamespace(monotonic=lambda: time.monotonic() + 1800, time=time.time)
    monkeypatch.setattr(postgres, "time", later)
    ledger.reserve("d", cost="0.1", key="second")
    assert abs(ledger.history("d")[-1]["at"] - time.time()) < 600
    ledger.close()


@given(
    st.dictionaries(st.text(), st.dictionaries(st.text(), st.fractions(min_value=0), max_size=3), max_size=3),
    st.dictionaries(st.text(), st.lists(st.text(), max_size=3), max_size=3),
)
def test_rows_are_canonical_json(charges: dict[str, dict[str, Fraction]], on: dict[str, list[str]]) -> None:
    row = analysis_row(Analysis("k", "r", "", "RESERVED", 0.0, charges, on))
    assert row[5:7] == (canonical(charges_to_json(charges)), canonical(on))


def test_keys_that_are_known_in_a_group(tmp_path: Path) -> None:
    """Repeats under new keys and known ones together: the known ones are answered, the others charged once, in every
    order."""
    clock = Clock()
    ledger = made(Ledger.create(str(tmp_path / "a.db"), clock=clock))
    for number in range(3):
        ledger.reserve("d", cost="0.01", key=f"old {number}")
    ledger.reserve("d", cost="0.02", key="other")
    like = next(iter(ledger._asked.values()))
    asked: list[str] = []
    ledger.store.boundary = asked.append  # type: ignore[method-assign]
    for turn, keys in enumerate((["old 0", "a", "b"], ["c", "old 1", "d", "d"], ["e", "other"], ["old 2"])):
        asked.clear()
        outcomes = ledger.store.run_all([like.under(key) for key in keys], clock)
        assert asked[1].startswith("INSERT INTO claim"), turn  # by what was remembered
        codes = [outcome.refused and outcome.refused.reason.code for outcome in outcomes]
        assert codes == ["key-reused" if key == "other" else None for key in keys]
    assert ledger.status("d")["reserved"] == "0.1"  # eight keys of 0.01, one of 0.02
    audit = ledger.verify()
    assert audit.clean, audit.problems
    ledger.close()


def test_a_lease_that_nobody_gives_back(place: str) -> None:
    """One that has ended on another dataset stays there, and hides neither the next one here nor what is remembered."""
    clock = Clock()
    ledger = made(Ledger.create(place, clock=clock))
    ledger.add_dataset("e", adjacency="add-remove")
    ledger.set_budget("e", currency="pure", cap="1")
    ledger.reserve("e", cost="0.5", key="left alone", lease=10)
    ledger.reserve("d", cost="0.5", key="short", lease=20)
    clock.now += 15
    for number in range(3):
        ledger.reserve("d", cost="0.01", key=f"k{number}", lease=1000)
    asked: list[str] = []
    ledger.store.boundary = asked.append  # type: ignore[method-assign]
    ledger.reserve("d", cost="0.01", key="k3", lease=1000)
    assert not [text for text in asked if "FROM open_lease" in text]
    clock.now += 10
    ledger.reserve("d", cost="0.9", key="after", lease=1000)  # there is room again
    assert ledger.status("d")["reserved"] == "0.94"
    assert ledger.status("e")["reserved"] == "0.5"
    ledger.reserve("e", cost="0.6", key="there", lease=1000)
    assert ledger.status("e")["reserved"] == "0.6"
    assert ledger.verify().clean
    ledger.close()


def test_undone_after_a_denominator_has_grown(tmp_path: Path) -> None:
    """A balance is read anew, and has forgotten a denominator that a group with a known key brings back."""
    clock = Clock()
    ledger = made(Ledger.create(str(tmp_path / "a.db"), clock=clock))
    for number in range(3):
        ledger.reserve("d", cost="0.01", key=f"old {number}")
    for key in ("seventh", "another seventh"):
        ledger.reserve("d", cost="1/7", key=key)
        ledger.void(key)
    tenth, seventh = ledger._asked.values()
    ledger.reserve("d", cost="0.01", key="of ann", analyst="ann")  # her balances are not known: all are read
    asked: list[str] = []
    ledger.store.boundary = asked.append  # type: ignore[method-assign]
    outcomes = ledger.store.run_all([tenth.under("a"), seventh.under("b"), tenth.under("old 0")], clock)
    assert [outcome.refused for outcome in outcomes] == [None] * 3
    assert [text.split()[0] for text in asked[1:4]] == ["INSERT", "SELECT", "INSERT"]
    assert ledger.status("d")["reserved"] == show(Fraction(5, 100) + Fraction(1, 7))
    ledger.reserve("d", cost="0.01", key="after")
    assert ledger.status("d")["reserved"] == show(Fraction(6, 100) + Fraction(1, 7))
    assert ledger.verify().clean
    ledger.close()


def test_more_events_than_one_statement_takes(tmp_path: Path) -> None:
    """Repeats on a dataset under two groups: every event in every chain, and the mark counts them all."""
    clock = Clock()
    ledger = Ledger.create(str(tmp_path / "a.db"), clock=clock)
    ledger.add_group("upper", adjacency="add-remove")
    ledger.add_group("lower", adjacency="add-remove", parent="upper")
    ledger.add_dataset("d", adjacency="add-remove", parent="lower")
    for name in ("upper", "lower", "d"):
        ledger.set_budget(name, currency="pure", cap="1")
    for number in range(3):
        ledger.reserve("d", cost="1/1000", key=f"old {number}")
    (like,) = ledger._asked.values()
    asked: list[str] = []
    ledger.store.boundary = asked.append  # type: ignore[method-assign]
    outcomes = ledger.store.run_all([like.under(f"k{number}") for number in range(140)], clock)
    assert sum(text.startswith("INSERT INTO event") for text in asked) > 3
    assert all(outcome.refused is None for outcome in outcomes)
    assert [ledger.status(name)["reserved"] for name in ("upper", "lower", "d")] == ["0.143"] * 3
    audit = ledger.verify()
    assert audit.clean, audit.problems
    assert int((tmp_path / "a.db-mark").read_bytes()) == audit.events
    ledger.close()
