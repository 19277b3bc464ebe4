"""Maintenance of a ledger: backups, restoring them, and a check-up.

A backup is the exported history, so it can be restored into any kind of store. A restored ledger may lack spends made
after the backup, so every dataset is frozen until a person has reconciled it.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from privloss.errors import InvalidInput
from privloss.ledger.ledger import Ledger
from privloss.ledger.state import RESERVED, STARTED, State, apply
from privloss.ledger.stores.base import GENESIS, VERSION, Finding, LedgerError, canonical, chain
from privloss.ledger.verify import verify


def backup(ledger: Ledger, path: str | Path) -> int:
    """Write the history to a file, whole or not at all; returns the number of events."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInput(f"file = {str(path)!r}: its directory does not exist.")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    count = 0
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            for line in ledger.export():
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


def read_backup(path: str | Path) -> list[tuple[int, str, str, str]]:
    """The events of a backup, checked link by link."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        found = [(row["seq"], row["previous"], canonical(row["body"]), row["hash"]) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InvalidInput(f"file = {str(path)!r}: is not a readable backup ({problem}).") from None
    previous = GENESIS
    for number, (seq, before, body, link) in enumerate(found, start=1):
        if seq != number or before != previous or chain(before, body) != link:
            raise LedgerError(f"file = {str(path)!r}: event {number} does not follow from the event before.")
        previous = link
    return found


def restore(path: str | Path, ledger: Ledger) -> int:
    """Fill an empty ledger from a backup; every dataset is frozen."""
    rows = read_backup(path)
    store = ledger.store
    with store.transaction() as cursor:
        store.lock_head(cursor)
        if next(iter(store.events(cursor)), None) is not None:
            raise LedgerError("db: the ledger is not empty; restore into a new one.")
        state = State()
        for seq, previous, body, link in rows:
            apply(state, json.loads(body))
            query = "INSERT INTO event (seq, previous, body, hash) VALUES (?, ?, ?, ?)"
            store.execute(cursor, query, [seq, previous, body, link])
        event = {"kind": "restored", "events": len(rows)}
        apply(state, event)
        store.write_all(cursor, state)
        store.append(cursor, [event], ledger.clock())
    return len(rows)


def doctor(ledger: Ledger) -> list[dict[str, Any]]:
    """A check-up: what was looked at, whether it is well, and what to do if not."""
    store = ledger.store
    with store.reading() as cursor:
        version = store.version(cursor)
    checked = verify(store)
    history = "; ".join(checked.problems[:3]) or f"{checked.events} events, chain and balances agree"
    with store.reading() as cursor:
        state = store.everything(cursor)
    frozen = [name for name, dataset in state.datasets.items() if dataset.frozen]
    thaw = f"frozen: {', '.join(frozen)}; privloss ledger unfreeze NAME"
    late = [a.key for a in state.analyses.values() if a.state in (RESERVED, STARTED) and a.lease < ledger.clock()]
    found = [
        Finding("schema", version == VERSION, f"version {version}"),
        *store.own_checks(),
        Finding("history", checked.clean, history),
        Finding("frozen", not frozen, thaw if frozen else "no dataset is frozen"),
        Finding("leases", not late, f"expired: {', '.join(late[:5])}" if late else "no expired leases"),
    ]
    return [asdict(each) for each in found]
