"""The ledger in one SQLite file: write-ahead log, full synchronisation, one writer at a time (BEGIN IMMEDIATE)."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privloss.ledger.stores.base import Finding, LedgerError, Store
from privloss.ledger.stores.pool import Pool

_WAIT = 60.0  # seconds for another writer
_BEGIN = "BEGIN IMMEDIATE"
_ROOM = 100 * 2**20  # bytes that should be free


class SqliteStore(Store):
    """A file; connections are pooled."""

    def __init__(self, path: str | Path, create: bool = False) -> None:
        self.path = Path(path)
        if not create and not self.path.exists():
            raise LedgerError(f"db = {str(path)!r}: there is no ledger; create one with: privloss ledger init")
        if create and not self.path.parent.is_dir():
            raise LedgerError(f"db = {str(path)!r}: its directory does not exist.")
        self.pool = Pool(self._connect)
        with self.transaction() as cursor:
            if self.version(cursor) == 0 and not create:
                raise LedgerError(f"db = {str(path)!r}: is not a privloss ledger.")
            self.migrate(cursor, "sqlite")

    def _connect(self) -> sqlite3.Connection:
        found = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        try:
            found.execute("PRAGMA journal_mode = WAL")
            found.execute("PRAGMA synchronous = FULL")
            found.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            found.close()
            raise
        return found

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with _said(self.path), self.pool.taken() as connection:
            cursor = connection.cursor()
            self.boundary("BEGIN")
            cursor.execute(_BEGIN)
            try:
                yield cursor
                self.boundary("COMMIT")
                cursor.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise
            self.boundary("done")

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with _said(self.path), self.pool.taken() as connection:
            cursor = connection.cursor()
            cursor.execute("BEGIN")
            try:
                yield cursor
            finally:
                if connection.in_transaction:
                    cursor.execute("ROLLBACK")

    def lock(self, cursor: Any, names: Sequence[str]) -> list[str]:
        """The transaction already excludes every other writer."""
        return list(names)

    def lock_head(self, cursor: Any) -> None:
        """The same."""

    def version(self, cursor: Any) -> int:
        tables = cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if not tables:
            return 0
        if ("meta",) not in tables:
            raise LedgerError(f"db = {str(self.path)!r}: is a database, but not a privloss ledger.")
        return int(cursor.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()[0])

    def own_checks(self) -> list[Finding]:
        bad, room = self.check_pages(), shutil.disk_usage(self.path.resolve().parent).free
        enough = room > _ROOM
        return [
            Finding("pages", not bad, "; ".join(bad[:3]) or "SQLite finds no damage"),
            Finding("disk", enough, f"{room // 2**20} MB free" + ("" if enough else "; free some space")),
        ]

    def check_pages(self) -> list[str]:
        """SQLite's own integrity check."""
        with self.reading() as cursor:
            found = [row[0] for row in cursor.execute("PRAGMA integrity_check").fetchall()]
        return [text for text in found if text != "ok"]

    def close(self) -> None:
        self.pool.close()


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """SQLite's errors in one sentence."""
    try:
        yield
    except sqlite3.IntegrityError as problem:
        raise LedgerError(
            f"db = {str(path)!r}: the database refused the change ({problem}); nothing was written."
        ) from None
    except sqlite3.OperationalError as problem:
        text = str(problem)
        advice = {
            "readonly": "the file cannot be written; check its permissions",
            "disk is full": "the disk is full; free space and try again",
            "locked": "another process holds the ledger; try again",
            "unable to open": "the file cannot be opened; check path and permissions",
        }
        said = next((say for part, say in advice.items() if part in text), "SQLite reports a problem")
        raise LedgerError(f"db = {str(path)!r}: {said} ({text}); nothing was written.") from None
    except sqlite3.DatabaseError as problem:
        raise LedgerError(
            f"db = {str(path)!r}: the file is damaged or no ledger ({problem}); restore a backup."
        ) from None
