"""The ledger in PostgreSQL, for many hosts: READ COMMITTED, rows held FOR UPDATE in the order of their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from privloss.errors import MissingExtra
from privloss.ledger.commands import Command
from privloss.ledger.stores.base import LedgerError, Outcome, Store
from privloss.ledger.stores.pool import Pool

_HOLD = " FOR UPDATE"
_TRIES = 3


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("PostgreSQL needs psycopg: pip install 'privloss[postgres]'") from None
    return psycopg


class _Cursor:
    """A cursor that takes ? for parameters, like SQLite's."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        self._inner.execute(statement.replace("%", "%%").replace("?", "%s") if values else statement, values or None)
        return self._inner


class PostgresStore(Store):
    """A database; connections are pooled."""

    def __init__(self, url: str, create: bool = False) -> None:
        self.url = url
        self._driver = _psycopg()
        self.pool = Pool(self._connect)
        with self.transaction() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(7236871)")  # one migration at a time
            if self.version(cursor) == 0 and not create:
                raise LedgerError(f"db = {self.shown!r}: there is no ledger; create one with: privloss ledger init")
            self.migrate(cursor, "postgres")
            cursor.execute("INSERT INTO meta (name, value) VALUES ('head', '') ON CONFLICT (name) DO NOTHING")

    @property
    def shown(self) -> str:
        """The address without its password."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"

    def _connect(self) -> Any:
        found = self._driver.connect(self.url, autocommit=True, connect_timeout=10)
        found.execute("SET synchronous_commit = on")
        return found

    def run(self, command: Command, now: float) -> Outcome:
        """Two clients that use one key at once: the second asks again, and finds what the first did."""
        for _ in range(_TRIES):
            with suppress(Conflict):
                return super().run(command, now)
        return super().run(command, now)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with self._said(), self.pool.taken() as connection:
            self.boundary("BEGIN")
            with connection.transaction():
                yield _Cursor(connection.cursor())
                self.boundary("COMMIT")
            self.boundary("done")

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with self._said(), self.pool.taken() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _Cursor(connection.cursor())

    def lock(self, cursor: Any, names: Sequence[str]) -> list[str]:
        query = f"SELECT name FROM dataset WHERE name = ?{_HOLD}"
        return [name for name in sorted(names) if self.execute(cursor, query, [name]).fetchall()]

    def lock_head(self, cursor: Any) -> None:
        self.execute(cursor, f"SELECT value FROM meta WHERE name = 'head'{_HOLD}")

    def version(self, cursor: Any) -> int:
        if cursor.execute("SELECT to_regclass('meta')").fetchone()[0] is None:
            return 0
        row = cursor.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        self.pool.close()

    @contextmanager
    def _said(self) -> Iterator[None]:
        """PostgreSQL's errors in one sentence."""
        try:
            yield
        except self._driver.errors.UniqueViolation as problem:
            raise Conflict(f"db = {self.shown!r}: another client was first ({_first(problem)}).") from None
        except self._driver.errors.IntegrityError as problem:
            text = f"the database refused the change ({_first(problem)}); nothing was written"
            raise LedgerError(f"db = {self.shown!r}: {text}.") from None
        except self._driver.OperationalError as problem:
            text = _first(problem)
            said = "wrong user or password" if "password" in text or "authentication" in text else "cannot be reached"
            raise LedgerError(f"db = {self.shown!r}: {said} ({text}).") from None
        except self._driver.Error as problem:
            raise LedgerError(f"db = {self.shown!r}: {_first(problem)}; nothing was written.") from None


class Conflict(LedgerError):
    """Two clients used one key at once; asking again gives the answer."""


def _first(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)
