"""What SQLite and PostgreSQL share: one transaction per command (or per group of them), decided by the pure rules.

A transaction locks, loads the part of the state its commands need, decides, writes balances, analyses and events (each
chained, in every account it concerns, to the last by its hash), and commits. Nothing is answered before the commit is
durable. A store far away is asked three times in all: to hold, to load, to write.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from privloss.ledger.commands import Command, Expire
from privloss.ledger.decide import step
from privloss.ledger.state import EVERYONE, LEDGER, OPEN, Account, Analysis, Event, State, chains
from privloss.ledger.stores.parts import Entry as Entry
from privloss.ledger.stores.parts import Finding as Finding
from privloss.ledger.stores.parts import LedgerError as LedgerError
from privloss.ledger.stores.parts import Loaded as Loaded
from privloss.ledger.stores.parts import LostReply as LostReply
from privloss.ledger.stores.parts import Outcome as Outcome
from privloss.ledger.stores.rows import (
    ACCOUNT,
    ANALYSIS,
    BALANCE,
    GENESIS,
    account_from,
    account_row,
    analysis_from,
    analysis_row,
    balance_from,
    balance_row,
    canonical,
    chain,
    marks,
)

_PAGE = 200  # events in one statement
_MOST_LATE, _MOST_ROUNDS = 500, 100  # leases given back by one transaction, and such transactions before a command
Clock = Callable[[], float]
Change = tuple[str, tuple[Any, ...]]  # a statement and its values
_SET_BALANCE = (
    "UPDATE balance SET cap = ?, committed = ?, reserved = ?, total_units = ?, cap_units = ? "
    "WHERE dataset = ? AND owner = ? AND component = ?"
)
_ACCOUNTS = "SELECT 'account', name, adjacency, unit, {frozen}, settings, {seq}, head, '' FROM dataset"
_KEYS = "SELECT 'key', key, request, analyst, state, {lease}, charges, held_on, run FROM analysis"
_BALANCES = "SELECT 'balance', dataset, owner, component, cap, committed, reserved, total_units, cap_units FROM balance"
INSERT_EVENT = "INSERT INTO event (chain, seq, previous, body, hash) VALUES (?, ?, ?, ?, ?)"


class Store(ABC):
    """A place for the ledger. `boundary` is called before every statement (tests crash there)."""

    boundary: Callable[[str], None] = staticmethod(lambda statement: None)
    hold = ""  # what is added to a SELECT to hold its rows until the transaction ends
    sql_now = ""  # the time of the place where the ledger is kept, in a statement

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """A cursor inside a write transaction, committed durably at the end."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Any]:
        """A cursor that sees one consistent snapshot, and holds up nobody."""

    @abstractmethod
    def stream(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """The rows of a long answer, a few at a time."""

    @abstractmethod
    def version(self, cursor: Any) -> int:
        """The schema's version, 0 for an empty database."""

    @abstractmethod
    def close(self) -> None: ...

    def own_checks(self) -> list[Finding]:
        """What a check-up should know about this kind of store."""
        return []

    def text(self, number: str) -> str:
        """A number in a column of texts."""
        return number

    def execute(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        self.boundary(statement)
        return cursor.execute(statement, tuple(values))

    # -- commands --

    def run(self, command: Command, clock: Clock | None = None) -> Outcome:
        return self.run_all([command], clock)[0]

    def run_all(self, commands: Sequence[Command], clock: Clock | None = None) -> list[Outcome]:
        """Decide commands in one transaction; leases that have ended are given back in others before it."""
        for left in range(_MOST_ROUNDS, -1, -1):  # in the end without them: what they hold stays held
            with self.transaction() as cursor:
                held = self._load(cursor, commands, clock)
                if not held.late or left == 0:
                    return self._decided(cursor, held, commands)
            self.run_all([Expire(held.late)], clock)
        raise AssertionError("the last round decides")

    def _decided(self, cursor: Any, held: Loaded, commands: Sequence[Command]) -> list[Outcome]:
        outcomes, events = self.decided(held, commands)
        if events:
            self.write(cursor, held, events)
        return outcomes

    def decided(self, held: Loaded, commands: Sequence[Command]) -> tuple[list[Outcome], list[Event]]:
        """What commands lead to, one after the other."""
        outcomes: list[Outcome] = []
        events: list[Event] = []
        for command in commands:
            made, refused = step(held.state, command, held.now)
            events += made
            outcomes.append(Outcome.of(command, refused, held.state, held.now))
        return outcomes, events

    # -- loading --

    def _load(self, cursor: Any, commands: Sequence[Command], clock: Clock | None, unheld: bool = False) -> Loaded:
        """What commands need. Only accounts whose rows are held are loaded: they are what may be written."""
        moved = sorted({key for command in commands for key in command.moves})
        claimed = {key for command in commands for key in command.claims}
        first = [analysis_from(row) for row in self._analyses(cursor, moved).fetchall()] if moved else []
        names = sorted(
            {name for command in commands for name in command.accounts} | {n for f in first for n in f.charges}
        )
        held = Loaded(0.0)
        if names and not unheld:
            query = f"{ACCOUNT} WHERE name IN ({marks(names)}) ORDER BY name{self.hold}"
            self._fill(held, [("account", *row) for row in self.execute(cursor, query, names).fetchall()], ())
        # held: nobody else can change what is read from here on
        owners = {owner for command in commands for owner in command.probably((clock or time.time)())} | {EVERYONE}
        owners |= {owner for found in first for on in found.on.values() for owner in on}
        expiring = sorted({name for command in commands if command.expires for name in command.accounts})
        keys, accounts = sorted({*moved, *claimed}), names if unheld else ()
        self._fill(held, self._details(cursor, accounts, keys, names, owners, expiring, clock), claimed)
        self._the_rest(cursor, held, commands, owners, clock)
        return held

    def _analyses(self, cursor: Any, keys: Sequence[str]) -> Any:
        return self.execute(cursor, f"{ANALYSIS} WHERE key IN ({marks(keys)})", keys)

    def _details(
        self,
        cursor: Any,
        accounts: Sequence[str],
        keys: Sequence[str],
        names: Sequence[str],
        owners: Collection[str],
        expiring: Sequence[str],
        clock: Clock | None,
    ) -> list[Any]:
        """Accounts, keys, balances, leases that have ended and the time, in one question: rows that say what they are,
        accounts first."""
        moment, time_values = (self.sql_now, []) if clock is None else ("?", [clock()])
        values: list[Any] = list(time_values)
        parts = [f"SELECT 'now', {self.text(moment)}, '', '', '', '', '', '', ''"]
        if accounts:
            number, frozen = self.text("seq"), self.text("frozen")
            parts.insert(0, f"{_ACCOUNTS.format(frozen=frozen, seq=number)} WHERE name IN ({marks(accounts)})")
            values = [*accounts, *values]
        if keys:
            parts.append(f"{_KEYS.format(lease=self.text('lease'))} WHERE key IN ({marks(keys)})")
            values += keys
        if names:
            parts.append(f"{_BALANCES} WHERE dataset IN ({marks(names)}) AND owner IN ({marks(owners)})")
            values += [*names, *sorted(owners)]
        if expiring:
            late = f"SELECT key FROM open_lease WHERE dataset IN ({marks(expiring)}) AND lease < {moment}"
            late = f"{late} ORDER BY lease LIMIT {_MOST_LATE}"
            parts.append(f"SELECT 'late', key, '', '', '', '', '', '', '' FROM ({late}) AS late")
            values += [*expiring, *time_values]
        found: list[Any] = self.execute(cursor, " UNION ALL ".join(parts), values).fetchall()
        return found

    def _fill(self, held: Loaded, details: Sequence[Any], claimed: Collection[str]) -> None:
        late: dict[str, None] = {}
        for kind, *row in details:
            if kind == "balance":
                name, owner, component = row[:3]
                if name in held.state.accounts:
                    held.state.accounts[name].balances[(owner, component)] = balance_from(row)
                    held.balances[(name, owner, component)] = tuple(row)
            elif kind == "key":
                row[4] = float(row[4])
                found = analysis_from(row)
                if found.key in claimed or found.charges.keys() <= held.state.accounts.keys():
                    held.state.analyses[found.key], held.analyses[found.key] = found, tuple(row)
            elif kind == "account":
                name, row[3], row[5] = row[0], int(float(row[3])), int(float(row[5]))
                held.before[name], held.ends[name] = tuple(row[:5]), (row[5], row[6])
                if name != LEDGER:
                    held.state.accounts[name] = account_from(row)
            elif kind == "now":
                held.now = float(row[0])
            else:
                late[row[0]] = None
        held.late += tuple(late)

    def _the_rest(
        self, cursor: Any, held: Loaded, commands: Sequence[Command], loaded: set[str], clock: Clock | None
    ) -> None:
        """Balances of owners that were not foreseen: a quota of another spelling, a period just begun."""
        more = {
            owner
            for command in commands
            for name in command.accounts
            if name in held.state.accounts
            for owner in command.owners(held.state.accounts[name], held.now)
        } - loaded
        if more:
            now = held.now
            self._fill(held, self._details(cursor, (), (), sorted(held.state.accounts), more, (), clock), ())
            held.now = now

    # -- writing --

    def write(self, cursor: Any, held: Loaded, events: Sequence[Event]) -> None:
        """Write what has changed since it was loaded, and the events."""
        changes, (first, *more) = self.linked_changes(held, events)
        self.flush(cursor, [*changes, first])
        for insert in more:
            self.execute(cursor, *insert)

    def linked_changes(self, held: Loaded, events: Sequence[Event]) -> tuple[list[Change], list[Change]]:
        """All that has changed (accounts first), and the events, each linked into its chains. They are numbered as they
        are inserted, so those of one statement stand in one list of values, and statements follow each other."""
        entries = list(self._linked(held, events))
        changes = list(self.changes(held, sorted({row[0] for row in entries})))
        pages = [entries[first : first + _PAGE] for first in range(0, len(entries), _PAGE)]
        more = ", (?, ?, ?, ?, ?)"
        return changes, [
            (INSERT_EVENT + more * (len(page) - 1), tuple(value for row in page for value in row)) for page in pages
        ]

    def changes(self, held: Loaded, touched: Sequence[str]) -> Iterator[Change]:
        """Accounts whose chains have grown, and every balance and analysis that has changed."""
        for name in touched:
            yield self._account_change(held, name)
        yield from self._balance_changes(held)
        for key, found in held.state.analyses.items():
            yield from self._analysis_changes(found, held.analyses.get(key))

    def flush(self, cursor: Any, changes: Sequence[Change]) -> None:
        """Statements that do not depend on each other, in any order, the last one last."""
        for statement, values in changes:
            self.execute(cursor, statement, values)

    def _linked(self, held: Loaded, events: Sequence[Event]) -> Iterator[tuple[str, int, str, str, str]]:
        for event in events:
            body = canonical(event)
            for name in chains(event):
                seq, previous = held.ends.get(name, (0, GENESIS))
                link = chain(previous, body)
                held.ends[name] = (seq + 1, link)
                yield name, seq + 1, previous, body, link

    def _account_change(self, held: Loaded, name: str) -> Change:
        end, known = held.ends.get(name, (0, GENESIS)), held.before.get(name)
        account = held.state.accounts.get(name)
        if account is None or (known is not None and not account.changed):
            return "UPDATE dataset SET seq = ?, head = ? WHERE name = ?", (*end, name)
        row = account_row(account)
        if known is None:
            columns = "name, adjacency, unit, frozen, settings, seq, head"
            return f"INSERT INTO dataset ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, *end)
        return "UPDATE dataset SET frozen = ?, settings = ?, seq = ?, head = ? WHERE name = ?", (*row[3:], *end, name)

    def _balance_changes(self, held: Loaded) -> Iterator[Change]:
        gone = set(held.balances)
        for name, account in held.state.accounts.items():
            for (owner, component), balance in account.balances.items():
                place = (name, owner, component)
                row, known = balance_row(place, balance), held.balances.get(place)
                gone.discard(place)
                if known is None:
                    yield "INSERT INTO balance VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
                elif row != known:
                    yield _SET_BALANCE, (*row[3:], *place)
        for place in sorted(gone):
            yield "DELETE FROM balance WHERE dataset = ? AND owner = ? AND component = ?", place

    def _analysis_changes(self, found: Analysis, known: tuple[Any, ...] | None) -> Iterator[Change]:
        row = analysis_row(found)
        if known is None:
            yield "INSERT INTO analysis VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
            for name in sorted(found.charges) if found.state in OPEN else ():
                yield "INSERT INTO open_lease (dataset, key, lease) VALUES (?, ?, ?)", (name, found.key, found.lease)
        elif row != known:
            query = "UPDATE analysis SET state = ?, lease = ?, run = ? WHERE key = ?"
            yield query, (found.state, found.lease, found.run, found.key)
            if found.state in OPEN:
                yield "UPDATE open_lease SET lease = ? WHERE key = ?", (found.lease, found.key)
            else:
                yield "DELETE FROM open_lease WHERE key = ?", (found.key,)

    # -- reading --

    def entries(self, cursor: Any, after: int = 0) -> Iterator[Entry]:
        """All events in the order in which they came to be, in each chain they stand in."""
        query = "SELECT number, chain, seq, previous, body, hash FROM event WHERE number > ? ORDER BY number"
        for row in self.stream(cursor, query, [after]):
            yield Entry(*row)

    def account(self, cursor: Any, name: str) -> Account | None:
        """An account with all its balances."""
        found = self.settings(cursor, name)
        if found is None:
            return None
        for row in self.execute(cursor, f"{BALANCE} WHERE dataset = ?", [name]).fetchall():
            found.balances[(row[1], row[2])] = balance_from(row)
        return found

    def settings(self, cursor: Any, name: str) -> Account | None:
        """An account without balances."""
        rows = self.execute(cursor, f"{ACCOUNT} WHERE name = ?", [name]).fetchall() if name != LEDGER else []
        return account_from(rows[0]) if rows else None

    def accounts(self, cursor: Any) -> list[str]:
        query = "SELECT name FROM dataset WHERE name <> '' ORDER BY name"
        return [row[0] for row in self.execute(cursor, query).fetchall()]

    def analysis(self, cursor: Any, key: str) -> Analysis | None:
        rows = self._analyses(cursor, [key]).fetchall()
        return analysis_from(rows[0]) if rows else None

    def everything(self, cursor: Any) -> State:
        """The whole state as the tables have it."""
        found = {name: self.account(cursor, name) for name in self.accounts(cursor)}
        state = State({name: account for name, account in found.items() if account is not None})
        for row in self.stream(cursor, ANALYSIS):
            state.analyses[row[0]] = analysis_from(row)
        return state

    def ends(self, cursor: Any) -> dict[str, tuple[int, str]]:
        """The end of every chain, as the tables have it."""
        rows = self.execute(cursor, "SELECT name, seq, head FROM dataset").fetchall()
        return {row[0]: (row[1], row[2]) for row in rows if row[1] > 0}
