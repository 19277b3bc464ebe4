"""A log rewritten by somebody who has the SQLite file: chained as it should be, so that only its sense is wrong."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from privloss.ledger.state import chains
from privloss.ledger.stores.rows import GENESIS, canonical, chain

Body = dict[str, Any]
Row = tuple[str, int, str, str, str]
TRIGGERS = ("event_no_update", "event_no_delete", "event_no_replace", "event_end", "event_leased", "event_placed")


def appended(path: Path, *events: Body) -> None:
    """Events at the end of their chains, as a faulty program would write them."""
    with sqlite3.connect(path) as raw:
        for event in events:
            body = canonical({"at": 1.0, **event})
            for name in chains(event):
                last = raw.execute("SELECT seq, hash FROM event WHERE chain = ? ORDER BY seq DESC LIMIT 1", [name])
                seq, previous = last.fetchone() or (0, GENESIS)
                _insert(raw, (name, seq + 1, previous, body, chain(previous, body)))


def _insert(raw: sqlite3.Connection, row: Row) -> None:
    raw.execute("INSERT INTO event (chain, seq, previous, body, hash) VALUES (?, ?, ?, ?, ?)", row)


def rewritten(path: Path, change: Callable[[list[tuple[str, Body]]], list[tuple[str, Body]]]) -> None:
    """The whole log, (chain, event) by (chain, event), changed and hashed again; the ends of the chains fit too, and
    the mark is gone."""
    path.with_name(f"{path.name}-mark").unlink(missing_ok=True)
    with sqlite3.connect(path) as raw:
        rows = [(name, json.loads(body)) for name, body in raw.execute("SELECT chain, body FROM event ORDER BY number")]
        for trigger in TRIGGERS:
            raw.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for table in ("event", "place"):
            raw.execute(f"DELETE FROM {table}")
        raw.execute("UPDATE placed SET number = 0")
        ends: dict[str, tuple[int, str]] = {}
        for name, event in change(rows):
            seq, previous = ends.get(name, (0, GENESIS))
            body = canonical(event)
            ends[name] = seq + 1, chain(previous, body)
            _insert(raw, (name, seq + 1, previous, body, ends[name][1]))
        for name, (seq, head) in ends.items():
            raw.execute("UPDATE dataset SET seq = ?, head = ? WHERE name = ?", [seq, head, name])


def edited(key: str, kind: str, edit: Callable[[Body], Body]) -> Callable[[list[tuple[str, Body]]], Any]:
    """One event, in all its chains, as `edit` makes it."""

    def change(rows: list[tuple[str, Body]]) -> list[tuple[str, Body]]:
        assert any(_is(event, key, kind) for _, event in rows)
        return [(name, edit(event) if _is(event, key, kind) else event) for name, event in rows]

    return change


def _is(event: Body, key: str, kind: str) -> bool:
    return event["kind"] == kind and event.get("key", event.get("dataset")) == key
