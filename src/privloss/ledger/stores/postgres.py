"""The ledger in PostgreSQL, for many hosts: READ COMMITTED, rows held FOR UPDATE in the order of their names.

Each transaction asks three times: to hold, to load, to write (all changes in one statement). Time is the server's. A
client that stops in the middle is cut off after a while, and holds up only those who want the same dataset.
"""

from __future__ import annotations

import functools
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from privloss.errors import MissingExtra
from privloss.ledger.commands import Command
from privloss.ledger.state import LEDGER
from privloss.ledger.stores.base import Change, Clock, LedgerError, Loaded, LostReply, NoAnswer, Outcome, Store
from privloss.ledger.stores.pool import Pool
from privloss.ledger.stores.repeats import Repeats, learn
from privloss.ledger.stores.schema import VERSION, foreign, migrate
from privloss.ledger.stores.writing import INSERT_ANALYSIS, INSERT_LEASE

_HOLD = " FOR UPDATE"
_TRIES, _TOGETHER = 3, 40
_INSERT_LEASE = INSERT_LEASE.format(leases="open_lease")
_MOST_SEEN, _MOST_KNOWN = 1000, 2000  # datasets, and balances of one, that are remembered
_NEAR = 1.0  # seconds by which the server's clock may differ from what it was thought to be
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
    """Statements with ? for parameters, like SQLite's."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self.connection.execute(_percent(statement) if values else statement, values or None)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self.connection.cursor().executemany(_percent(statement), rows)


@functools.lru_cache(maxsize=512)
def _guarded(statements: tuple[str, ...], timed: bool) -> str:
    first, *others = statements
    near = f" AND abs({_NOW} - ?) < {_NEAR}" if timed else ""
    parts = [f"held AS ({first} AND seq = ? AND head = ? AND frozen = ?{near} RETURNING 1)"]
    parts += [f"w{i} AS ({statement})" for i, statement in enumerate(others)]
    return _percent(f"WITH {', '.join(parts)} SELECT 1 / count(*) FROM held")


def _alone(commands: Sequence[Command]) -> str | None:
    """The one dataset that all of these commands concern, if they move no key."""
    names = {name for command in commands for name in command.accounts}
    one = len(names) == 1 and LEDGER not in names and not any(command.moves for command in commands)
    return next(iter(names)) if one else None


@functools.lru_cache(maxsize=512)
def _percent(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


class PostgresStore(Store):
    """A database; connections are pooled."""

    hold, sql_now = _HOLD, _NOW

    def __init__(self, address: str, create: bool = False) -> None:
        self._driver = _psycopg()
        self.address, self.shown = address, shown_address(address)
        self.pool = Pool(self._connect, _usable)
        # of datasets: what was known when this process last wrote, and by how much the server's clock was ahead
        self._seen: dict[str, tuple[Loaded, float]] = {}
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
        with suppress(Conflict):
            done = self._at_once(commands, clock)
            if done is not None:
                return done
        for attempt in range(_TRIES):
            with suppress(Conflict):
                done = self._free(commands, clock, Loaded(0.0)) if attempt == 0 else None
                return done if done is not None else super().run_all(commands, clock)
        return super().run_all(commands, clock)

    def _at_once(self, commands: Sequence[Command], clock: Clock | None) -> list[Outcome] | None:
        """New reservations on one dataset by what is known of it since this process has last written: one statement in
        all. It takes effect only if the chain still ends there, if the server's clock goes as it went, and if the keys
        are new; whatever else a command leads to (a refusal, an older key) is decided again by what the server has."""
        names = {name for command in commands for name in command.accounts}
        seen = self._seen.pop(next(iter(names)), None) if len(names) == 1 else None
        if seen is None or any(command.moves or not command.claims for command in commands):
            return None
        known, ahead = seen
        now = clock or (lambda: time.monotonic() + ahead)
        pattern = known.patterns.get(id(commands[0].like)) if len(commands) == 1 else None
        if pattern is not None:
            known.now = float(now())
            repeats = Repeats(known)
            (name,), (key,) = names, commands[0].claims
            before = self._before(known, name)
            repeats.take(0, key, pattern)  # changes nothing where it is not let in
            if repeats.outcomes:
                self._repeat(name, repeats, before, known.now if clock is None else None)
                self._remember(name, known, ahead)
                return [repeats.outcomes[0]]
        return self._free(commands, now, known, new_keys=True, guessed=clock is None)

    def _repeat(self, name: str, repeats: Repeats, before: tuple[int, str, int], now: float | None) -> None:
        keys, leases = (INSERT_ANALYSIS, repeats.keys()), (_INSERT_LEASE, repeats.leases())
        made = repeats.ends(), *repeats.rows(), keys, leases
        changes = [(statement, row) for statement, rows in made for row in rows]
        with self._committing() as sent, self._said(), self.pool.taken() as connection:
            self.boundary("BEGIN")
            done = self._written(connection, changes, before, now, sent)
            self.boundary("done")
        if not done:
            raise Conflict(f"db = {self.shown!r}: another client has changed {name!r} first.")

    @staticmethod
    def _before(held: Loaded, name: str) -> tuple[int, str, int]:
        """What must still be so when it is written: the end of its chain, and whether it is frozen."""
        return *held.ends[name], int(held.state.accounts[name].frozen)

    def _free(
        self,
        commands: Sequence[Command],
        clock: Clock | None,
        known: Loaded,
        new_keys: bool = False,
        guessed: bool = False,
    ) -> list[Outcome] | None:
        """Commands on one dataset without holding it: read, decide, and write in one statement that takes effect only
        if the dataset's chain still ends where it did (and it is as frozen: a restored one may have the same chain, and
        lets nothing in). None where that is not the way: leases have ended, or several
        datasets are concerned. Whatever was read at different moments, the chain has grown in between."""
        name = _alone(commands)
        if name is None:
            return None
        with self._committing() as sent, self._said(), self.pool.taken() as connection:
            self.boundary("BEGIN")
            held = self.load(_Cursor(connection), commands, clock, known, free=True, new_keys=new_keys)
            ahead = held.now - time.monotonic()
            if held.late or not held.accounts:
                return None
            before = self._before(held, name)
            outcomes, made = self.decided(held, commands)
            events = [event for each in made for event in each]
            if new_keys and not all_taken(commands, events, outcomes):
                return None
            done = self._sent(connection, held, events, before, held.now if guessed else None, sent)
            if done is None:
                return None
            self.boundary("done")
        if not done:
            raise Conflict(f"db = {self.shown!r}: another client has changed {name!r} first.")
        learn(held, commands, made)
        held.settle()
        self._remember(name, held, ahead)
        return outcomes

    def _remember(self, name: str, held: Loaded, ahead: float) -> None:
        if len(held.balances) < _MOST_KNOWN:
            self._seen = self._seen if len(self._seen) < _MOST_SEEN else {}
            self._seen[name] = held, ahead

    def _sent(
        self,
        connection: Any,
        held: Loaded,
        events: Sequence[Any],
        before: tuple[int, str, int],
        now: float | None,
        sent: list[bool],
    ) -> bool | None:
        """Write what was decided; whether it took effect, None where it needs several chains."""
        if not events:
            return True
        changes, inserts = self.linked_changes(held, events)
        if len(inserts) > 1:
            return None
        return self._written(connection, [*changes, *inserts], before, now, sent)

    def _written(
        self,
        connection: Any,
        changes: Sequence[Change],
        before: tuple[int, str, int],
        now: float | None,
        sent: list[bool],
    ) -> bool:
        """All changes in one statement, which fails (and so changes nothing) unless the dataset is as it was `before`,
        the keys are new, and the server's time is about `now`."""
        for statement, _ in changes:
            self.boundary(statement)
        self.boundary("COMMIT")
        sent.append(True)
        moment = () if now is None else (now,)
        query = _guarded(tuple(statement for statement, _ in changes), now is not None)
        first, *others = (values for _, values in changes)
        try:
            connection.execute(query, [*first, *before, *moment, *(value for each in others for value in each)])
        except (self._driver.errors.DivisionByZero, self._driver.errors.UniqueViolation):
            return False
        return True

    @contextmanager
    def _committing(self) -> Iterator[list[bool]]:
        """Tells a lost reply to a commit from a database that did not answer before."""
        sent: list[bool] = []
        try:
            yield sent
        except NoAnswer as problem:
            if sent:
                text = "the reply to a commit was lost; ask again under the same key (and with the same token)"
                raise LostReply(f"db = {self.shown!r}: {text}.") from problem
            raise

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with self._committing() as sent, self._said(), self.pool.taken() as connection:
            self.boundary("BEGIN")
            with connection.transaction():
                yield _Cursor(connection)
                self.boundary("COMMIT")
                sent.append(True)
            self.boundary("done")

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with self._said(), self.pool.taken() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # holds up nobody
            yield _Cursor(connection)

    def look(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._said(), self.pool.taken() as connection:
            return list(_Cursor(connection).execute(statement, values).fetchall())

    def text(self, number: str) -> str:
        return f"({number})::float8::text"

    def flush(self, cursor: Any, changes: Sequence[Change]) -> None:
        """Many statements sent as one."""
        for first in range(0, len(changes), _TOGETHER):
            part = changes[first : first + _TOGETHER]
            for statement, _ in part:
                self.boundary(statement)
            if len(part) == 1:
                cursor.execute(*part[0])
                continue
            parts = ", ".join(f"w{i} AS ({statement})" for i, (statement, _) in enumerate(part[:-1]))
            cursor.execute(f"WITH {parts} {part[-1][0]}", [value for _, values in part for value in values])

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
        except (errors.DeadlockDetected, errors.SerializationFailure) as problem:
            raise Conflict(f"db = {self.shown!r}: two clients waited for each other ({_first(problem)}).") from None
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


def _usable(connection: Any) -> bool:
    """Whether an idle connection is still one: a server that has gone has closed its end, which can be read at once."""
    if connection.closed or connection.broken:
        return False
    ready, _, _ = select.select([connection.fileno()], [], [], 0)
    return not ready


def _first(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)


def all_taken(commands: Sequence[Command], events: Sequence[Any], outcomes: Sequence[Outcome]) -> bool:
    """Whether every command led to an event of its own, and none was refused."""
    return len(events) >= len(commands) and not any(outcome.refused for outcome in outcomes)
