"""Maintenance of a ledger: backups, restoring them, and a check-up.

A backup is the exported history, so it can be restored into any kind of store. A restored ledger may lack spends made
after the backup, so every dataset is frozen until a person has reconciled it. Neither needs memory for the whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from privloss.errors import InvalidInput
from privloss.ledger.commands import Note
from privloss.ledger.ledger import Ledger
from privloss.ledger.replay import Replay
from privloss.ledger.state import LEDGER, Analysis, State
from privloss.ledger.stores.base import Entry, Finding, LedgerError, Loaded
from privloss.ledger.stores.rows import GENESIS, analysis_row, canonical
from privloss.ledger.stores.schema import VERSION, open_chains
from privloss.ledger.stores.writing import INSERT_ANALYSIS, INSERT_EVENT
from privloss.ledger.verify import Step, astray, length, verify, watched

_BATCH = 1000
_LATE = "SELECT DISTINCT key FROM open_lease WHERE lease < ? ORDER BY key LIMIT 6"


def backup(ledger: Ledger, path: str | Path, step: Step | None = None) -> int:
    """Write the history to a file, whole or not at all; returns the number of events."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInput(f"file = {str(path)!r}: its directory does not exist.")
    with ledger.store.reading() as cursor:
        of = length(ledger.store, cursor)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    count = 0
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            for line in watched(ledger.export(), of, step):
                file.write(line + "\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return count


def read_backup(path: str | Path) -> Iterator[Entry]:
    """The events of a backup, in order."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                row = json.loads(line)
                body = canonical(row["body"])
                yield Entry(number, row.get("chain", LEDGER), row["seq"], row["previous"], body, row["hash"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InvalidInput(f"file = {str(path)!r}: is not a readable backup ({problem}).") from None


def check_backup(path: str | Path, step: Step | None = None) -> int:
    """How many events a backup has; refused if one of them does not follow from those before."""
    replay = Replay().run(watched(read_backup(path), 0, step))
    if replay.problem:
        raise LedgerError(f"file = {str(path)!r}: {replay.problem}.")
    return replay.events


def restore(path: str | Path, ledger: Ledger, step: Step | None = None) -> int:
    """Fill an empty ledger from a backup; every dataset is frozen."""
    of = check_backup(path, step)
    store = ledger.store
    with store.transaction() as cursor:
        if store.accounts(cursor) or store.ends(cursor):
            raise LedgerError("db: the ledger is not empty; restore into a new one.")
        closed: list[Analysis] = []
        replay, entries = Replay(closed.append), watched(read_backup(path), of, step)
        while batch := list(islice(entries, _BATCH)):
            replay.run(batch, last=False)
            rows = [(entry.chain, entry.seq, entry.previous, entry.body, entry.hash) for entry in batch]
            cursor.executemany(INSERT_EVENT, rows)
            cursor.executemany(INSERT_ANALYSIS, [analysis_row(each) for each in closed])
            closed.clear()
        now = ledger.now()
        _settle(ledger, cursor, replay, now)
        if problems := astray(store, cursor, replay):
            raise LedgerError(f"file = {str(path)!r}: {problems[0]}.")
        note = Note(ledger.actor, f"restored from a backup of {replay.events} events")
        held = Loaded(now, State(), {LEDGER: store.ends(cursor).get(LEDGER, (0, GENESIS))})
        store.write(cursor, held, [{"kind": "restored", "events": replay.events, "at": now, **note.said}])
    return replay.events


def _settle(ledger: Ledger, cursor: Any, replay: Replay, now: float) -> None:
    """Write the tables that the events have led to."""
    store = ledger.store
    for account in replay.state.accounts.values():
        account.frozen = True
    old = set(replay.ends) <= {LEDGER}  # a backup of a release before 0.3
    held = Loaded(now, State() if old else replay.state, dict(replay.ends))
    store.flush(cursor, list(store.changes(held, [LEDGER, *sorted(held.state.accounts)])))
    if old:
        open_chains(store, cursor, replay.state, now)


def doctor(ledger: Ledger) -> list[dict[str, Any]]:
    """A check-up: what was looked at, whether it is well, and what to do if not."""
    store = ledger.store
    checked = verify(store)
    history = "; ".join(checked.problems[:3]) or f"{checked.events} events, chains, decisions and balances agree"
    with store.reading() as cursor:
        version = store.version(cursor)
        query = "SELECT name FROM dataset WHERE frozen <> 0 ORDER BY name"
        frozen = [row[0] for row in store.execute(cursor, query).fetchall()]
        late = store.execute(cursor, _LATE, [ledger.now()]).fetchall()
    thaw = f"frozen: {', '.join(frozen)}; privloss ledger unfreeze NAME"
    found = [
        Finding("schema", version == VERSION, f"version {version}"),
        *store.own_checks(),
        Finding("history", checked.clean, history),
        Finding("frozen", not frozen, thaw if frozen else "no dataset is frozen"),
        Finding("leases", not late, f"expired: {', '.join(r[0] for r in late[:5])}" if late else "no expired leases"),
    ]
    return [asdict(each) for each in found]
