"""The least that a ledger can write for a reservation: for `bench.ledger`.

One row a reservation, an event in its chain, and one index, of the keys, so that none counts twice. Nothing else is
written: sums, ends of chains and leases are remembered, and would have to be read out of the events again by whoever
comes next. So no ledger that answers `status` from its tables can be as fast.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from privloss.ledger.stores.rows import GENESIS, QUOTED

_TABLE = (
    "CREATE TABLE event (number INTEGER PRIMARY KEY, chain TEXT NOT NULL, seq INTEGER NOT NULL, "
    "previous TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL, key TEXT UNIQUE)"
)
_INSERT = "INSERT INTO event (chain, seq, previous, body, hash, key) VALUES "


class Least:
    """A log of events with keys, for so many datasets. Takes groups like a store."""

    balances = chained = keys = leases = sql_now = ""  # what the ledger's own stores have

    def __init__(self, raw: sqlite3.Connection, datasets: int, length: int) -> None:
        self.raw = raw
        raw.execute(_TABLE)
        self.left = [10**12] * datasets
        self.ends = [(0, GENESIS)] * datasets
        self.rest = "x" * (length - 2 * len(GENESIS) - 60)  # of an event: what is the same in all

    def run_all(self, commands: Sequence[tuple[int, int]], clock: object) -> Sequence[tuple[int, int]]:
        self.raw.execute("BEGIN IMMEDIATE")
        at = repr(time.time())
        values: list[str | int] = []
        for who, number in commands:
            if self.left[who] < 1:
                raise AssertionError(f"dataset {who} has no room")
            self.left[who] -= 1
            seq, previous = self.ends[who]
            key = f"key {number}"
            body = f'{{"at":{at},"key":{QUOTED(key)},"rest":"{self.rest}"}}'
            link = hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()
            self.ends[who] = seq + 1, link
            values += (f"d{who}", seq + 1, previous, body, link, key)
        self.raw.execute(_INSERT + ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(commands)), values)
        self.raw.execute("COMMIT")
        return commands


def opened(path: Path) -> sqlite3.Connection:
    """As durable as a ledger, with the settings it has."""
    raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for setting in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000"):
        raw.execute(f"PRAGMA {setting}")
    return raw
