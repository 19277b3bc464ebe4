"""A log rewritten and hashed again must still be what the rules would have decided; an older file is noticed."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privloss.ledger import maintenance
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.stores.base import LedgerError
from privloss.ledger.verify import check_head, signed_head
from tests.ledger.forging import TRIGGERS, Body, appended, edited, rewritten

PURE = {"currency": "pure", "filter": "basic", "delta": None}
Rows = list[tuple[str, Body]]
Change = Callable[[Rows], Rows]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """d and e under g; d with ann's quota, e with a year's budget; s by the day. Keys a and b open, c committed."""
    path = tmp_path / "privloss.db"
    made = Ledger.create(str(path))
    made.add_group("g", adjacency="add-remove")
    made.set_budget("g", currency="pure", cap="1.5")
    for name in ("d", "e"):
        made.add_dataset(name, adjacency="add-remove", parent="g")
        made.set_budget(name, currency="pure", cap="1")
    made.add_dataset("s", adjacency="add-remove", blocks="day")
    made.set_budget("s", currency="pure", cap="1")
    made.set_budget("d", currency="pure", cap="0.8", analyst="ann")
    made.set_budget("e", currency="pure", cap="0.6", every="year")
    made.reserve("d", cost="0.5", key="a", analyst="ann")
    made.reserve(["d", "e"], cost="0.2", key="b", analyst="ann")
    made.reserve("s", cost="0.5", key="c", blocks="2026-11-01..2026-11-02")
    for key in ("b", "c"):
        made.start(key)
    made.commit("c")
    assert made.verify().clean
    made.close()
    return path


def _problem(path: Path) -> str:
    made = Ledger(str(path))
    audit = made.verify()
    history = next(row for row in maintenance.doctor(made) if row["check"] == "history")
    assert history["ok"] == audit.clean
    return audit.problems[0] if audit.problems else ""


def _with(**parts: Any) -> Callable[[Body], Body]:
    return lambda event: {**event, **parts}


def _charged(amount: str) -> Callable[[Body], Body]:
    def edit(event: Body) -> Body:
        return {**event, "charges": {name: dict.fromkeys(parts, amount) for name, parts in event["charges"].items()}}

    return edit


def test_rewriting_alone_changes_nothing(file: Path) -> None:
    rewritten(file, lambda rows: rows)
    assert _problem(file) == ""


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"kind": "voided", "key": "b", "accounts": ["d", "e", "g"]}, "key 'b' is voided, but it was STARTED"),
        (
            {"kind": "voided", "key": "b", "accounts": ["d", "e", "g"], "why": "lease expired"},
            "key 'b' is voided, but it was STARTED",
        ),
        ({"kind": "voided", "key": "c", "accounts": ["s"]}, "key 'c' is voided, but it was closed"),
        ({"kind": "voided", "key": "a", "accounts": ["d"]}, "is not what the rules decide"),  # not in the group
        (
            {"kind": "voided", "key": "a", "accounts": ["d", "g"], "why": "lease expired", "at": 1.0},
            "is not what the rules decide",  # it had not
        ),
        ({"kind": "started", "key": "a", "accounts": ["d", "g"], "at": 1e12}, "the lease of key 'a' has expired"),
        (
            {"kind": "budget", "dataset": "d", "analyst": "", "at": 1.0,
             "budget": {**PURE, "cap": "9"}},
            "budget though it should have been refused: dataset 'd' has spends",
        ),
        (
            {"kind": "budget", "dataset": "d", "analyst": "ann",
             "budget": {**PURE, "cap": "0.6"}},
            "'ann' has spent more than that already",
        ),
        (
            {"kind": "budget", "dataset": "e", "analyst": "", "every": "month",
             "budget": {**PURE, "cap": "0.6"}},
            "budget though it should have been refused",
        ),
        ({"kind": "account", "dataset": "d", "adjacency": "add-remove", "unit": "record"}, "account"),
        ({"kind": "invented", "dataset": "d"}, "cannot be applied"),
        ({"kind": "frozen", "dataset": "d", "frozen": False}, "is not what the rules decide"),
    ],
)  # fmt: skip
def test_an_event_the_rules_would_not_have_made(file: Path, event: Body, says: str) -> None:
    appended(file, event)
    assert says in _problem(file)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (edited("a", "reserved", _charged("0.9")), "refused: ann's quota on 'd' would be exceeded"),
        (edited("c", "reserved", _charged("1.1")), "block 2026-11-01, would be exceeded"),
        (edited("b", "reserved", _charged("0.7")), "reserved"),
        (
            edited("a", "reserved", _with(on={"d": [""], "g": [""]})),
            "reserved is not what the rules decide",
        ),  # no quota
        (edited("a", "reserved", _with(analyst="")), "has quotas, and say who spends"),
        (edited("a", "reserved", _with(analyst="bob")), "has quotas, and 'bob' has none"),
        (edited("b", "reserved", _with(datasets=["d"])), "reserved"),
        (edited("c", "reserved", _with(on={"s": []})), "say which are read"),
        (edited("c", "reserved", _with(on={"s": ["#2026-11-01"]})), "'s'"),  # less than the table has
        (edited("b", "reserved", _with(at=4e9)), "reserved is not what the rules decide"),  # another year
        (edited("e", "account", _with(parent=None)), "account"),
        (edited("b", "started", _with(run="0" * 64)), "key 'b'"),
        (edited("b", "started", _with(lease=4e9)), "key 'b'"),
        (edited("c", "committed", _with(kind="voided")), "key 'c' is voided, but it was STARTED"),
        (
            edited("d", "budget", _with(budget={"currency": "pure", "filter": "basic", "cap": "9", "delta": None})),
            "'d'",
        ),
    ],
)
def test_an_event_that_was_changed(file: Path, change: Change, says: str) -> None:
    rewritten(file, change)
    assert says in _problem(file)


def _without(chain: str, key: str, kind: str) -> Change:
    return lambda rows: [
        (name, event) for name, event in rows if (name, event.get("key"), event["kind"]) != (chain, key, kind)
    ]


def _swapped(rows: Rows) -> Rows:
    """Events of d in the chain of s, and the other way round."""
    other = {"d": "s", "s": "d"}
    return [(other.get(name, name) if "key" in event else name, event) for name, event in rows]


def _late_in_one(rows: Rows) -> Rows:
    """The reservation of b comes first in the chain of d, and only after its start in that of e."""
    held = [row for row in rows if row[0] == "e" and row[1]["kind"] == "reserved"]
    rest = [row for row in rows if row not in held]
    return rest + held


def _twice(rows: Rows) -> Rows:
    """A closed key is reserved again: its blocks have room for it."""
    return [*rows, next(row for row in rows if row[1].get("key") == "c")]


def _again_in_one(rows: Rows) -> Rows:
    return [*rows, next(row for row in rows if row[0] == "e" and row[1]["kind"] == "reserved")]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_without("e", "b", "started"), "stands in some of its chains only (not in 'e')"),
        (_without("g", "b", "reserved"), ""),
        (_swapped, "which it does not concern"),
        (_late_in_one, "stands before an event that began earlier"),
        (_again_in_one, ""),
        (_twice, "key 'c' is reserved, but it was known"),
        (lambda rows: [row for row in rows if row[0] != "e"], "(not in 'e')"),
        (lambda rows: [row for row in rows if row[0] != "s"], "(not in 's')"),
        (lambda rows: [row for row in rows if row[0] != ""], "dataset 'g' is not in this ledger"),
        (lambda rows: [row for row in rows if row[1].get("key") != "c"], "'s'"),  # a key that never was
        (lambda rows: rows[:-1], "'s'"),
        (
            lambda rows: [*rows, ("", {"kind": "frozen", "dataset": "d", "frozen": True, "at": 1.0})],
            "an older release's",
        ),
    ],
)
def test_chains_that_do_not_fit_each_other(file: Path, change: Change, says: str) -> None:
    rewritten(file, change)
    found = _problem(file)
    assert found
    assert says in found


def test_a_whole_dataset_dropped(file: Path) -> None:
    """Its chain, its rows and its keys: the ledger's own chain knows that it was there."""
    rewritten(file, lambda rows: [row for row in rows if row[0] != "s"])
    with sqlite3.connect(file) as raw:
        for table, column in (("standing", "dataset"), ("noted_lease", "dataset"), ("account", "name")):
            raw.execute(f"DELETE FROM {table} WHERE {column} = 's'")
        raw.execute("DELETE FROM claim WHERE key = 'c'")
    assert "(not in 's')" in _problem(file)


REPLACE = "INSERT OR REPLACE INTO event SELECT {number}, chain, seq, previous, ?, hash FROM event {last}"
LAST = "ORDER BY number DESC LIMIT 1"


def test_the_last_event_cannot_be_replaced(file: Path) -> None:
    """Also not by INSERT OR REPLACE, for which SQLite asks no trigger before a DELETE."""
    raw = sqlite3.connect(file)
    last = raw.execute(f"SELECT body FROM event {LAST}").fetchone()[0]
    body = last.replace("committed", "voided")
    for number in ("number", "NULL"):  # its number, or its place in the chain
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(REPLACE.format(number=number, last=LAST), [body])
    raw.execute("UPDATE dataset SET seq = 0")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(REPLACE.format(number="number", last=LAST), [body])
    raw.execute("DROP TRIGGER event_no_replace")
    raw.execute(REPLACE.format(number="number", last=LAST), [body])
    raw.commit()
    raw.close()
    assert "event 5 of 's': its hash does not follow" in _problem(file)


def test_an_event_must_follow(file: Path) -> None:
    """On the end of its chain, in number and by hash; then it is the end."""
    raw = sqlite3.connect(file)
    insert = "INSERT INTO event (chain, seq, previous, body, hash) VALUES ('s', ?, ?, '{}', 'new')"
    (seq, head), end = raw.execute("SELECT seq, head FROM dataset WHERE name = 's'").fetchone(), "0" * 64
    for values in ((seq, head), (seq + 2, head), (seq + 1, end), (1, end)):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(insert, values)
    replace = "INSERT OR REPLACE INTO event VALUES (1, 's', ?, ?, '{}', 'new')"  # follows, in the place of another
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(replace, (seq + 1, head))
    raw.execute(insert, (seq + 1, head))
    assert raw.execute("SELECT seq, head FROM dataset WHERE name = 's'").fetchone() == (seq + 1, "new")
    raw.close()


def test_a_signed_head_sees_a_history_that_was_rewritten_lawfully(file: Path) -> None:
    """What the rules would have allowed, an audit cannot see; a head that was kept elsewhere does."""
    made = Ledger(str(file))
    head = signed_head(made.verify(), b"secret")
    made.close()
    rewritten(file, edited("s", "budget", _with(at=1.0)))
    made = Ledger(str(file))
    assert made.verify().clean
    assert check_head(made.store, head, b"secret") == ["event 5 of 's', which the head has seen, is another one"]


def test_a_signed_head_whose_ends_were_edited(file: Path) -> None:
    """The signature is over their hash: ends moved to where a rewritten history has them are not those."""
    made = Ledger(str(file))
    head = signed_head(made.verify(), b"secret")
    assert check_head(made.store, head, b"secret") == []
    name, (seq, link) = next(iter(head["ends"].items()))
    for end in ([seq - 1, link], [0, link], [seq, "0" * 64]):
        edited_head = {**head, "ends": {**head["ends"], name: end}}
        assert check_head(made.store, edited_head, b"secret") == ["the ends of the head are not those that were signed"]


def test_forged_backups_are_not_restored(file: Path, tmp_path: Path) -> None:
    appended(file, {"kind": "voided", "key": "b", "accounts": ["d", "e", "g"]})
    maintenance.backup(Ledger(str(file)), tmp_path / "backup")
    empty = Ledger.create(str(tmp_path / "empty.db"))
    with pytest.raises(LedgerError, match="key 'b' is voided, but it was STARTED"):
        maintenance.restore(tmp_path / "backup", empty)
    lines = (tmp_path / "backup").read_text().splitlines()
    chain = [line for line in lines if json.loads(line).get("chain") != "e"]
    (tmp_path / "backup").write_text("\n".join(chain) + "\n")
    with pytest.raises(LedgerError, match="'e'"):
        maintenance.restore(tmp_path / "backup", empty)
    assert empty.datasets() == []


# -- an older copy of the file -----------------------------------------------------------------------------------------


def _copy(path: Path, to: Path, log: bool = True) -> None:
    """The file as it lies there, with its log or without; not the mark."""
    for suffix in ("", "-wal"):
        Path(f"{to}{suffix}").unlink(missing_ok=True)
        if Path(f"{path}{suffix}").exists() and (log or not suffix):
            shutil.copy(f"{path}{suffix}", f"{to}{suffix}")
    Path(f"{to}-shm").unlink(missing_ok=True)


def _frozen(made: Ledger) -> bool:
    with pytest.raises(RefusedError) as refused:
        made.reserve("d", cost="0.001", key="after", analyst="ann")
    return refused.value.refused.reason.code == "frozen"


@pytest.mark.parametrize("whole", [True, False])
def test_an_older_copy_is_frozen_when_it_is_opened(file: Path, tmp_path: Path, whole: bool) -> None:
    """A copy made before a spend and put back; or the file without its write-ahead log."""
    made = Ledger(str(file))
    _copy(file, tmp_path / "copy")
    made.reserve("d", cost="0.1", key="spent", analyst="ann")
    if not whole:
        _copy(file, tmp_path / "copy", log=False)
    made.close()
    _copy(tmp_path / "copy", file)
    again = Ledger(str(file))
    assert _frozen(again)
    for name in ("d", "e", "s", "g"):
        last = [event for event in again.history(name) if event["kind"] == "frozen"][-1]
        assert (last["frozen"], last["actor"]) == (True, "privloss")
        assert "an older copy, or without its log" in last["reason"]
    assert again.verify().clean
    for name in ("g", "d"):  # a person has looked at it
        again.freeze(name, False, reason="the lost spend was entered again")
    again.reserve("d", cost="0.05", key="after", analyst="ann")
    again.close()
    assert Ledger(str(file)).reserve("d", cost="0.01", key="more", analyst="ann").state == "RESERVED"


def test_a_mark_that_lags_is_fine(file: Path) -> None:
    """It is written after each commit, and not synced: after a crash it may say less."""
    mark = Path(f"{file}-mark")
    number = int(mark.read_bytes())
    for text in (str(number - 3).zfill(20), "", "not a number"):
        mark.write_text(text)
        made = Ledger(str(file))
        assert not made.status("d")["frozen"]
        assert all(row["ok"] for row in maintenance.doctor(made) if row["check"] == "mark")
        made.close()
    mark.unlink()
    made = Ledger(str(file))
    made.reserve("d", cost="0.01", key="k", analyst="ann")
    assert int(mark.read_bytes()) > number


def test_doctor_sees_an_older_copy_that_is_open(file: Path) -> None:
    made = Ledger(str(file))
    Path(f"{file}-mark").write_text("9".zfill(20).replace("0", "9", 1))
    (found,) = [row for row in maintenance.doctor(made) if row["check"] == "mark"]
    assert not found["ok"]
    assert "events are missing" in found["text"]


def test_the_triggers_are_those_that_forgers_must_drop(file: Path) -> None:
    with sqlite3.connect(file) as raw:
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'event'"
        found = {row[0] for row in raw.execute(query)}
    assert found == set(TRIGGERS)
