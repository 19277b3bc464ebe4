"""The ledger in PostgreSQL, for many hosts: READ COMMITTED, rows held FOR UPDATE in the order of their names.

Each transaction is sent in two messages: one that holds and loads, one that writes and commits. Time is the server's. A
client that stops in the middle is cut off after a while, and holds up only those who want the same dataset.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from privloss.errors import MissingExtra
from privloss.ledger.commands import Command
from privloss.ledger.stores.base import Clock, LedgerError, LostReply, Outcome, Store
from privloss.ledger.stores.pool import Pool
from privloss.ledger.stores.schema import VERSION, foreign, migrate

_HOLD = " FOR UPDATE"
_TRIES = 3
_LONGEST = 2**20  # characters of a message, about
_NOW = "extract(epoch FROM clock_timestamp())::float8"
# milliseconds: for a lock; between two statements of a writer that has stopped
LOCK_WAIT, IDLE_WAIT = 30_000, 20_000
_SETTINGS = "SET synchronous_commit = on; SET lock_timeout = {lock}; SET idle_in_transaction_session_timeout = {idle}"
_ALIVE = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("PostgreSQL needs psycopg: pip install 'privloss[postgres]'") from None
    return psycopg


class _Cursor:
    """Questions with ? for parameters, like SQLite's; each has an answer of its own."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self.connection.execute(_percent(statement) if values else statement, values or None)


class _Answer:
    """What a statement is answered; to look at it sends the statement, and all before it."""

    def __init__(self, batch: _Batch) -> None:
        self._batch, self.rows = batch, list[Any]()

    def fetchall(self) -> list[Any]:
        self._batch.send()
        return self.rows

    def fetchone(self) -> Any:
        return next(iter(self.fetchall()), None)


class _Batch:
    """Statements that wait for each other, and go out in one message.

    Not in a pipeline, which would need less quoting: a server that is in the middle of one does not know its client to
    be idle, and would let a client that has stopped hold its datasets for ever.
    """

    def __init__(self, connection: Any, quoting: Any) -> None:
        self._connection, self._quoting = connection, quoting
        self._waiting: list[tuple[str, _Answer]] = []
        self._size = 0

    def execute(self, statement: str, values: Sequence[Any] = ()) -> _Answer:
        text = self._quoting.mogrify(_percent(statement), values) if values else statement
        if self._size > _LONGEST:
            self.send()
        answer = _Answer(self)
        self._waiting.append((text, answer))
        self._size += len(text)
        return answer

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            self.execute(statement, row)

    def send(self) -> None:
        """Nothing waits any more."""
        if not self._waiting:
            return
        batch, self._waiting, self._size = self._waiting, [], 0
        found = self._connection.execute(";\n".join(text for text, _ in batch), prepare=False)
        for _, answer in batch:
            answer.rows = found.fetchall() if found.description is not None else []
            found.nextset()


def _percent(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


class _ServerTime:
    """The server's clock, asked once."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self._found: float | None = None

    def __call__(self) -> float:
        if self._found is None:
            self._found = float(self._answer.fetchone()[0])
        return self._found


class PostgresStore(Store):
    """A database; connections are pooled."""

    hold = _HOLD

    def __init__(self, address: str, create: bool = False) -> None:
        self._driver = _psycopg()
        self.address, self.shown = address, shown_address(address)
        self.pool = Pool(self._connect, _usable)
        try:
            self._open(create)
        except BaseException:
            self.close()
            raise

    def _open(self, create: bool) -> None:
        with self.reading() as cursor:  # an auditor may read, and nothing else
            found = self.version(cursor)
        if found == 0 and not create:
            raise LedgerError(f"db = {self.shown!r}: there is no ledger; create one with: privloss ledger init")
        if found != VERSION:
            with self.transaction() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(7236871)")  # one migration at a time
                migrate(self, cursor, "postgres", self.version(cursor), time.time())

    def _connect(self) -> Any:
        found = self._driver.connect(self.address, autocommit=True, **_ALIVE)
        try:
            found.execute(_SETTINGS.format(lock=LOCK_WAIT, idle=IDLE_WAIT))
        except BaseException:
            found.close()
            raise
        return found

    def run_all(self, commands: Sequence[Command], clock: Clock | None = None) -> list[Outcome]:
        """Two clients that use one key at once: the second asks again, and finds what the first did."""
        for _ in range(_TRIES):
            with suppress(Conflict):
                return super().run_all(commands, clock)
        return super().run_all(commands, clock)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        sent = False
        try:
            with self._said(), self.pool.taken() as connection:
                self.boundary("BEGIN")
                batch = _Batch(connection, self._driver.ClientCursor(connection))
                batch.execute("BEGIN")
                yield batch  # whatever fails, the connection is closed, and nothing was done
                self.boundary("COMMIT")
                sent = True
                batch.execute("COMMIT")
                batch.send()
                self.boundary("done")
        except NoAnswer as problem:
            if sent:
                text = "the reply to a commit was lost; ask again under the same key (and with the same token)"
                raise LostReply(f"db = {self.shown!r}: {text}.") from problem
            raise

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with self._said(), self.pool.taken() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # holds up nobody
            yield _Cursor(connection)

    def clock(self, cursor: Any) -> Clock:
        return _ServerTime(cursor.execute(f"SELECT {_NOW}"))

    def moment(self, now: Clock) -> tuple[str, list[Any]]:
        return (_NOW, []) if isinstance(now, _ServerTime) else ("?", [now()])

    def stream(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        with cursor.connection.cursor(name="long") as found:
            found.execute(_percent(statement) if values else statement, tuple(values) or None)
            yield from found

    def version(self, cursor: Any) -> int:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"
        tables = {row[0] for row in cursor.execute(query).fetchall()}
        problem = foreign(tables)
        if problem:
            raise LedgerError(f"db = {self.shown!r}: {problem}.")
        if "meta" not in tables:
            return 0
        try:
            row = cursor.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        except self._driver.errors.UndefinedColumn:
            raise LedgerError(f"db = {self.shown!r}: its table meta is of another program.") from None
        return int(row[0]) if row else 0

    def close(self) -> None:
        self.pool.close()

    @contextmanager
    def _said(self) -> Iterator[None]:
        """PostgreSQL's errors in one sentence."""
        errors = self._driver.errors
        try:
            yield
        except errors.UniqueViolation as problem:
            raise Conflict(f"db = {self.shown!r}: another client was first ({_first(problem)}).") from None
        except errors.IntegrityError as problem:
            text = f"the database refused the change ({_first(problem)}); nothing was written"
            raise LedgerError(f"db = {self.shown!r}: {text}.") from None
        except errors.LockNotAvailable:
            text = "another client holds the dataset; nothing was written, try again"
            raise LedgerError(f"db = {self.shown!r}: {text}.") from None
        except self._driver.OperationalError as problem:
            text = _first(problem)
            said = "wrong user or password" if "password" in text or "authentication" in text else "cannot be reached"
            raise NoAnswer(f"db = {self.shown!r}: {said} ({text}).") from None
        except self._driver.Error as problem:
            raise LedgerError(f"db = {self.shown!r}: {_first(problem)}; nothing was written.") from None


def shown_address(address: str) -> str:
    """An address without user and password."""
    driver = _psycopg()
    try:
        parts = driver.conninfo.conninfo_to_dict(address)
    except driver.Error:  # its text holds the address
        raise LedgerError("db: is no address of a PostgreSQL database (postgresql://user:password@host/db).") from None
    host, port = parts.get("host", ""), parts.get("port")
    return f"postgresql://{host}{f':{port}' if port else ''}/{parts.get('dbname', '')}"


class Conflict(LedgerError):
    """Two clients used one key at once; asking again gives the answer."""


class NoAnswer(LedgerError):
    """The database does not answer."""


def _usable(connection: Any) -> bool:
    """Whether an idle connection is still one: a server that has gone has closed its end, which can be read at once."""
    if connection.closed or connection.broken:
        return False
    ready, _, _ = select.select([connection.fileno()], [], [], 0)
    return not ready


def _first(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)
