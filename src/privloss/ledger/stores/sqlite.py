"""The ledger in one SQLite file: write-ahead log, full synchronisation, one writer at a time (BEGIN IMMEDIATE)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from privloss.ledger.commands import Command, Freeze, Note
from privloss.ledger.state import Event
from privloss.ledger.stores.base import Change, Clock, Finding, LedgerError, Loaded, Outcome, Store
from privloss.ledger.stores.claims import INSERT_CLAIM, LEASES, claim, numbered, settled
from privloss.ledger.stores.mark import Mark
from privloss.ledger.stores.pool import Pool
from privloss.ledger.stores.repeats import Repeats
from privloss.ledger.stores.rows import marks
from privloss.ledger.stores.schema import VERSION, foreign, migrate
from privloss.ledger.stores.writing import INSERT_ANALYSIS, INSERT_EVENT

_OLDEST = (3, 33)  # knows UPDATE FROM
_WAIT = 60.0  # seconds for another writer
_BEGIN = "BEGIN IMMEDIATE"
_ROOM = 100 * 2**20  # bytes that should be free
_STATEMENTS = 512  # kept prepared
_MOST_KNOWN = 20_000  # balances that a connection remembers
_KEYS = "SELECT key FROM claim WHERE key IN"
_LOG = 4000  # pages of the log before it is copied into the file: what is written often is copied once
_TOGETHER = 128  # repeats that are written together
_SOONEST = (  # on any account: leases lie in the order in which they end
    "SELECT min(lease) FROM "
    "(SELECT min(lease) AS lease FROM noted_lease{0} UNION ALL SELECT lease FROM recent_lease{0})"
)
# every event up to the last that is placed has its place, and no place is of another
_PLACED = "SELECT count(*) FROM event WHERE number <= (SELECT number FROM placed)"
_FOUND = (
    "SELECT count(*) FROM place AS p CROSS JOIN event AS e "
    "WHERE e.number = p.number AND e.chain = p.chain AND e.seq = p.seq"
)
_PLACES = "SELECT count(*) FROM place"
_LAST = "SELECT coalesce(max(number), 0) FROM event"


@lru_cache(maxsize=512)
def _several(statement: str, rows: int) -> str:
    """An INSERT of one row, or `SET_RESERVED`, for so many."""
    if statement.startswith("INSERT"):
        _, row = statement.split("VALUES ")
        return statement + f", {row}" * (rows - 1)
    if rows == 1:
        return statement.replace("balance", "standing")
    values = ", ".join(["(?, ?, ?, ?, ?)"] * rows)
    return (
        f"UPDATE standing SET reserved = v.column1, total_units = v.column2 FROM (VALUES {values}) AS v "
        "WHERE dataset = v.column3 AND owner = v.column4 AND component = v.column5"
    )


class _Connection(sqlite3.Connection):
    """A connection, and what it knows of the ledger while no other has written."""

    known: Loaded | None = None
    lent: Loaded | None = None
    last = 0  # the number of the event that a transaction has written last, if it is known
    written = -1  # by others: SQLite's count, when `known` was true


class SqliteStore(Store):
    """A file; connections are pooled. All writers are on this machine: its clock is theirs."""

    soonest, chained = _SOONEST.format(""), "chained"
    keys, balances, leases = "claim", "standing", LEASES

    def __init__(self, path: str | Path, create: bool = False) -> None:
        self.path = Path(path)
        if sqlite3.sqlite_version_info < _OLDEST:
            raise LedgerError(
                f"SQLite {sqlite3.sqlite_version}: a ledger needs {'.'.join(map(str, _OLDEST))} or later."
            )
        if not create and not self.path.exists():
            raise LedgerError(f"db = {str(path)!r}: there is no ledger; create one with: privloss ledger init")
        if create and not self.path.parent.is_dir():
            raise LedgerError(f"db = {str(path)!r}: its directory does not exist.")
        if create and not self.path.exists():  # nobody but its owner may read a ledger
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))
        self.pool, self.mark = Pool(self._connect), Mark(self.path)
        try:
            self._open(create)
        except BaseException:
            self.close()
            raise

    def _open(self, create: bool) -> None:
        with self.reading() as cursor:  # looking at a ledger needs no writer's lock
            found = self.version(cursor)
        if found == 0 and not create:
            raise LedgerError(f"db = {str(self.path)!r}: is not a privloss ledger.")
        if found != VERSION:
            with self.transaction() as cursor:
                migrate(self, cursor, "sqlite", self.version(cursor), time.time())
        self._frozen_if_older()

    def _connect(self) -> sqlite3.Connection:
        options: Any = {"timeout": _WAIT, "isolation_level": None, "check_same_thread": False}
        found = sqlite3.connect(self.path, factory=_Connection, cached_statements=_STATEMENTS, **options)
        try:
            found.execute("PRAGMA journal_mode = WAL")
            found.execute("PRAGMA synchronous = FULL")
            found.execute("PRAGMA foreign_keys = ON")
            found.execute(f"PRAGMA wal_autocheckpoint = {_LOG}")
        except BaseException:
            found.close()
            raise
        return found

    def missing(self) -> int:
        """How many events the mark beside the file knows, and the file does not."""
        with self.reading() as cursor:
            return max(self.mark.read() - int(cursor.execute(_LAST).fetchone()[0]), 0)

    def _frozen_if_older(self) -> None:
        """A file with fewer events than its mark is an older copy: what was spent since is not in it."""
        missing = self.missing()
        if missing:
            reason = f"the file lacks {missing} events that its mark has seen: an older copy, or without its log"
            with self.reading() as cursor:
                names = self.accounts(cursor)
            self.run_all([Freeze(name, True, Note("privloss", reason)) for name in names])

    def run_all(self, commands: Sequence[Command], clock: Clock | None = None) -> list[Outcome]:
        return super().run_all(commands, clock or time.time)

    def none_late(self, cursor: _Connection, held: Loaded, names: Sequence[str]) -> None:
        """Of leases that have not ended none ends before the next of all."""
        query = _SOONEST.format(" WHERE lease >= ?")
        (following,) = self.execute(cursor, query, [held.now, held.now]).fetchone()
        held.soonest.update(dict.fromkeys(names, float("inf") if following is None else float(following)))

    def remembered(self, cursor: _Connection) -> Loaded:
        """SQLite counts the commits of other connections. Those of this one that were not decided here (a restore, an
        upgrade) give nothing back."""
        others, known = cursor.execute("PRAGMA data_version").fetchone()[0], cursor.lent
        same, cursor.lent, cursor.written = cursor.written == others, None, others
        return known if known is not None and same and len(known.balances) < _MOST_KNOWN else Loaded(0.0)

    def repeated(
        self, cursor: _Connection, held: Loaded, asked: dict[int, Command], clock: Clock | None
    ) -> dict[int, Outcome]:
        """The transaction holds the only writer's lock, and `held` is what the file has: `remembered` says why."""
        if not held.patterns or clock is None:
            return {}
        found = [(n, command, p) for n, command in asked.items() if (p := held.patterns.get(id(command.like)))]
        if not found:
            return {}
        found = found[:_TOGETHER]  # the others are left to the rules
        held.now = float(clock())
        repeats = Repeats(held)
        self._take(repeats, found, set())
        try:
            self._write_many(cursor, INSERT_CLAIM, repeats.claims())
        except sqlite3.IntegrityError:  # some keys are known; SQLite has undone that statement, which was the first
            repeats.undo()
            repeats = Repeats(held)
            keys = [key for _, command, _ in found for key in command.claims]
            known = {row[0] for row in self.execute(cursor, f"{_KEYS} ({marks(keys)})", keys)}
            self._take(repeats, found, known)
            self._write_many(cursor, INSERT_CLAIM, repeats.claims())
        for statement, rows in repeats.rows():  # events move the ends of their chains
            self._write_many(cursor, statement, rows)
        if repeats.outcomes:
            self._check_last(cursor, repeats.last)
            held.last = repeats.last
        return repeats.outcomes

    @staticmethod
    def _take(repeats: Repeats, found: Sequence[tuple[int, Command, Any]], known: set[str]) -> None:
        """Those with new keys."""
        for number, command, pattern in found:
            (key,) = command.claims
            if key not in known:
                known.add(key)
                repeats.take(number, key, pattern)

    def _write_many(self, cursor: _Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """All rows by one statement, or a few if there are more than `_TOGETHER`."""
        for first in range(0, len(rows), _TOGETHER):
            part = rows[first : first + _TOGETHER]
            self.boundary(statement)
            values = part[0] if len(part) == 1 else list(chain.from_iterable(part))
            done = cursor.execute(_several(statement, len(part)), values)
            if statement is INSERT_EVENT:
                cursor.last = done.lastrowid or 0

    def remember(self, cursor: _Connection, held: Loaded) -> None:
        held.settle()
        cursor.known = held

    def transaction(self) -> _Transaction:
        return _Transaction(self)

    def write(self, cursor: Any, held: Loaded, events: Sequence[Event]) -> None:
        """Keys that are reserved name their events, which are numbered one after the other. They are there when events
        are written, because then leases may be noted; all else comes after it: events move the ends of their chains,
        and must follow on them."""
        changes, inserts = self.linked_changes(held, events)
        last = held.last or int(self.execute(cursor, _LAST).fetchone()[0])
        numbers, held.last = numbered(events, last)
        self.flush(
            cursor, [claim(row, numbers) for text, row in changes if text is INSERT_ANALYSIS and row[0] in numbers]
        )
        for insert in inserts:
            self.flush(cursor, [insert])
        if inserts:
            self._check_last(cursor, held.last)
        self.flush(cursor, [change for change in changes if not settled(*change, numbers)])

    def _check_last(self, cursor: _Connection, last: int) -> None:
        if cursor.last != last:
            raise LedgerError(f"db = {str(self.path)!r}: event {cursor.last} should have number {last}.")

    def flush(self, cursor: Any, changes: Sequence[Change]) -> None:
        """Rows of one statement together."""
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for statement, values in changes:
            self.boundary(statement)
            rows.setdefault(statement, []).append(values)
        for statement, each in rows.items():
            self._write_rows(cursor, statement, each)

    @staticmethod
    def _write_rows(cursor: _Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if len(rows) > 1:
            cursor.executemany(statement, rows[:-1])
        done = cursor.execute(statement, rows[-1])
        if statement.startswith(INSERT_EVENT):
            cursor.last = done.lastrowid or 0

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with _Said(self.path), self.pool.taken() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def look(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with _Said(self.path), self.pool.taken() as connection:
            return list(connection.execute(statement, tuple(values)).fetchall())

    def stream(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        for row in self.execute(cursor, statement, values):  # noqa: UP028 - whoever leaves early has closed it already
            yield row

    def version(self, cursor: Any) -> int:
        tables = {row[0] for row in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
        if not tables:
            return 0
        problem = foreign(tables)
        if problem or "meta" not in tables:
            text = problem or "is a database, but not a privloss ledger"
            raise LedgerError(f"db = {str(self.path)!r}: {text}.")
        return int(cursor.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()[0])

    def own_checks(self) -> list[Finding]:
        bad, room = self.check_pages(), shutil.disk_usage(self.path.resolve().parent).free
        enough, missing = room > _ROOM, self.missing()
        return [
            Finding("pages", not bad, "; ".join(bad[:3]) or "SQLite finds no damage"),
            Finding("disk", enough, f"{room // 2**20} MB free" + ("" if enough else "; free some space")),
            Finding(
                "mark", not missing, f"{missing} events are missing" if missing else "the file is not an older copy"
            ),
        ]

    def misplaced(self, cursor: Any) -> list[str]:
        counts = {self.execute(cursor, query).fetchone()[0] for query in (_PLACED, _FOUND, _PLACES)}
        return ["the places of events are not where the events are"] if len(counts) > 1 else []

    def check_pages(self) -> list[str]:
        """SQLite's own integrity check."""
        with self.reading() as cursor:
            found = [row[0] for row in cursor.execute("PRAGMA integrity_check").fetchall()]
        return [text for text in found if text != "ok"]

    def close(self) -> None:
        self.pool.close()
        self.mark.close()


class _Transaction:
    """The one writer's, committed at the end; a class of its own because it is entered for every command."""

    __slots__ = ("_before", "_connection", "_store")

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __enter__(self) -> _Connection:
        store = self._store
        with _Said(store.path):
            connection: _Connection = store.pool.next()
            try:
                store.boundary("BEGIN")
                connection.execute(_BEGIN)
            except BaseException:
                connection.close()
                raise
        connection.lent, connection.known, connection.last = connection.known, None, 0
        self._connection, self._before = connection, connection.total_changes
        return connection

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        store, connection = self._store, self._connection
        with _Said(store.path):
            try:
                if problem is not None:
                    raise problem
                self._commit()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                connection.close()
                raise
        store.pool.give_back(connection)

    def _commit(self) -> None:
        store, connection = self._store, self._connection
        changed = connection.total_changes != self._before
        last = connection.last or (connection.execute(_LAST).fetchone()[0] if changed else 0)
        store.boundary("COMMIT")
        connection.execute("COMMIT")
        if changed:
            store.mark.write(last)
        store.boundary("done")


class _Said:
    """SQLite's errors in one sentence; a class of its own because it is entered for every command."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        text = _sentence(problem) if isinstance(problem, sqlite3.DatabaseError) else ""
        if text:
            raise LedgerError(f"db = {str(self._path)!r}: {text}.") from None


def _sentence(problem: sqlite3.DatabaseError) -> str:
    if isinstance(problem, sqlite3.IntegrityError):
        return f"the database refused the change ({problem}); nothing was written"
    if not isinstance(problem, sqlite3.OperationalError):
        return f"the file is damaged or no ledger ({problem}); restore a backup"
    text = str(problem)
    advice = {
        "readonly": "the file cannot be written; check its permissions",
        "disk is full": "the disk is full; free space and try again",
        "locked": "another process holds the ledger; try again",
        "unable to open": "the file cannot be opened; check path and permissions",
    }
    said = next((say for part, say in advice.items() if part in text), "SQLite reports a problem")
    return f"{said} ({text}); nothing was written"
