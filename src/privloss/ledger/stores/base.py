"""What SQLite and PostgreSQL share: one transaction per command (or per group of them), decided by the pure rules.

A transaction locks, loads the part of the state its commands need, decides, writes balances, analyses and events (each
chained, in every account it concerns, to the last by its hash), and commits. Nothing is answered before the commit is
durable. Statements that do not wait for each other are sent before the first is read, so that a store far away is asked
twice in all: once to load, once to write.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privloss.errors import PrivlossError
from privloss.ledger.commands import Command, Expire
from privloss.ledger.decide import Refused, step
from privloss.ledger.state import EVERYONE, LEDGER, OPEN, Account, Analysis, Charges, Event, State, chains
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

_MOST_LATE, _MOST_ROUNDS = 500, 100  # leases given back by one transaction, and such transactions before a command
Clock = Callable[[], float]
INSERT_EVENT = "INSERT INTO event (chain, seq, previous, body, hash) VALUES (?, ?, ?, ?, ?)"


class LedgerError(PrivlossError):
    """The ledger cannot be used as asked; nothing was changed."""


class LostReply(LedgerError):
    """It is not known whether the command took effect: asking again under the same key gives the answer."""


@dataclass(frozen=True)
class Outcome:
    """What a command did: a refusal if there was one, where its key stands, and what is left on its accounts."""

    refused: Refused | None
    state: str | None = None
    charges: Charges = field(default_factory=dict)
    remaining: dict[str, dict[str, Fraction]] = field(default_factory=dict)

    @classmethod
    def of(cls, command: Command, refused: Refused | None, state: State, now: float) -> Outcome:
        keys = [key for key in (*command.moves, *command.claims) if key in state.analyses]
        found = state.analyses[keys[0]] if keys else None
        names = command.accounts if found is None or refused is not None else found.charges
        moved = found.on if found is not None and command.moves else {}
        known = [state.accounts[name] for name in sorted(names) if name in state.accounts]
        left = {each.name: each.left(moved.get(each.name) or command.owners(each, now)) for each in known}
        return cls(refused, None if found is None else found.state, {} if found is None else found.charges, left)


@dataclass(frozen=True)
class Finding:
    """One line of a check-up."""

    check: str
    ok: bool
    text: str


@dataclass
class Loaded:
    """The part of a ledger that is held: its state, the end of every chain, and how all that was when it was loaded."""

    now: float
    state: State = field(default_factory=State)
    ends: dict[str, tuple[int, str]] = field(default_factory=dict)
    before: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # the row of each account
    balances: dict[tuple[str, str, str], tuple[Any, ...]] = field(default_factory=dict)
    analyses: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    late: tuple[str, ...] = ()  # keys whose lease on one of the accounts has ended


@dataclass(frozen=True, slots=True)
class Entry:
    """An event as it stands in one chain."""

    number: int  # grows along every chain, and from each event to the next in any of them
    chain: str
    seq: int
    previous: str
    body: str
    hash: str


class Store(ABC):
    """A place for the ledger. `boundary` is called before every statement (tests crash there)."""

    boundary: Callable[[str], None] = staticmethod(lambda statement: None)
    hold = ""  # what is added to a SELECT to hold its rows until the transaction ends

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """A cursor inside a write transaction, committed durably at the end."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Any]:
        """A cursor that sees one consistent snapshot, and holds up nobody."""

    @abstractmethod
    def clock(self, cursor: Any) -> Clock:
        """The time of the place where the ledger is kept: asks at once, answers when called."""

    def moment(self, now: Clock) -> tuple[str, list[Any]]:
        """The time in a statement, and its values."""
        return "?", [now()]

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
        outcomes, events = [], []
        for command in commands:
            made, refused = step(held.state, command, held.now)
            events += made
            outcomes.append(Outcome.of(command, refused, held.state, held.now))
        if events:
            self.write(cursor, held, events)
        return outcomes

    # -- loading --

    def _load(self, cursor: Any, commands: Sequence[Command], clock: Clock | None) -> Loaded:
        """What commands need. Only accounts whose rows are held are loaded: they are what may be written."""
        moved = sorted({key for command in commands for key in command.moves})
        claimed = {key for command in commands for key in command.claims}
        first = [analysis_from(row) for row in self._analyses(cursor, moved).fetchall()] if moved else []
        names = {name for command in commands for name in command.accounts}
        names |= {name for found in first for name in found.charges}
        expiring = sorted({name for command in commands if command.expires for name in command.accounts})
        query = f"{ACCOUNT} WHERE name IN ({marks(names)}) ORDER BY name{self.hold}"
        accounts = self.execute(cursor, query, sorted(names)) if names else None
        # held: nobody else can change what is read from here on
        keys = self._analyses(cursor, sorted({*moved, *claimed})) if moved or claimed else None
        now = self.clock(cursor) if clock is None else clock
        guess = (clock or time.time)()
        owners = {owner for command in commands for owner in command.probably(guess)} | {EVERYONE}
        owners |= {owner for found in first for on in found.on.values() for owner in on}
        balances = self._balances(cursor, names, owners) if names else None
        late = self._late(cursor, expiring, now) if expiring else None
        held = Loaded(0.0)
        for row in accounts.fetchall() if accounts is not None else ():
            held.before[row[0]], held.ends[row[0]] = tuple(row[:5]), (row[5], row[6])
            if row[0] != LEDGER:
                held.state.accounts[row[0]] = account_from(row)
        for row in keys.fetchall() if keys is not None else ():
            found = analysis_from(row)
            if set(found.charges) <= set(held.state.accounts) or found.key in claimed:
                held.state.analyses[found.key], held.analyses[found.key] = found, tuple(row)
        self._take(held, balances)
        held.late = tuple(dict.fromkeys(row[0] for row in late.fetchall())) if late is not None else ()
        held.now = now()
        self._the_rest(cursor, held, commands, owners)
        return held

    def _analyses(self, cursor: Any, keys: Sequence[str]) -> Any:
        return self.execute(cursor, f"{ANALYSIS} WHERE key IN ({marks(keys)})", keys)

    def _balances(self, cursor: Any, names: Collection[str], owners: Collection[str]) -> Any:
        query = f"{BALANCE} WHERE dataset IN ({marks(names)}) AND owner IN ({marks(owners)})"
        return self.execute(cursor, query, [*sorted(names), *sorted(owners)])

    def _take(self, held: Loaded, balances: Any) -> None:
        for row in balances.fetchall() if balances is not None else ():
            place = name, owner, component = row[0], row[1], row[2]
            if name in held.state.accounts:
                held.state.accounts[name].balances[(owner, component)] = balance_from(row)
                held.balances[place] = tuple(row)

    def _the_rest(self, cursor: Any, held: Loaded, commands: Sequence[Command], loaded: set[str]) -> None:
        """Balances of owners that were not foreseen: a quota of another spelling, a period just begun."""
        more = {
            owner
            for command in commands
            for name in command.accounts
            if name in held.state.accounts
            for owner in command.owners(held.state.accounts[name], held.now)
        }
        if more - loaded:
            self._take(held, self._balances(cursor, held.state.accounts.keys(), more - loaded))

    def _late(self, cursor: Any, names: Sequence[str], now: Clock) -> Any:
        """Keys whose lease on one of the accounts has ended."""
        time_, values = self.moment(now)
        query = f"SELECT key FROM open_lease WHERE dataset IN ({marks(names)}) AND lease < {time_}"
        return self.execute(cursor, f"{query} ORDER BY lease LIMIT {_MOST_LATE}", [*names, *values])

    # -- writing --

    def write(self, cursor: Any, held: Loaded, events: Sequence[Event]) -> None:
        """Write what has changed since it was loaded, and the events."""
        entries = list(self._linked(held, events))
        self.write_tables(cursor, held, sorted({row[0] for row in entries}))
        self.many(cursor, INSERT_EVENT, entries)

    def write_tables(self, cursor: Any, held: Loaded, touched: Sequence[str]) -> None:
        """Accounts whose chains have grown, and every balance and analysis that has changed."""
        for name in touched:
            self._write_account(cursor, held, name)
        self._write_balances(cursor, held)
        for key, found in held.state.analyses.items():
            self._write_analysis(cursor, found, held.analyses.get(key))

    def many(self, cursor: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self.boundary(statement)
        if len(rows) == 1:
            cursor.execute(statement, tuple(rows[0]))
        elif rows:
            cursor.executemany(statement, rows)

    def _linked(self, held: Loaded, events: Sequence[Event]) -> Iterator[tuple[str, int, str, str, str]]:
        for event in events:
            body = canonical(event)
            for name in chains(event):
                seq, previous = held.ends.get(name, (0, GENESIS))
                link = chain(previous, body)
                held.ends[name] = (seq + 1, link)
                yield name, seq + 1, previous, body, link

    def _write_account(self, cursor: Any, held: Loaded, name: str) -> None:
        end = held.ends.get(name, (0, GENESIS))
        if name == LEDGER:
            self.execute(cursor, "UPDATE dataset SET seq = ?, head = ? WHERE name = ?", [*end, LEDGER])
            return
        row = account_row(held.state.accounts[name])
        known = held.before.get(name)
        if known is None:
            columns = "name, adjacency, unit, frozen, settings, seq, head"
            self.execute(cursor, f"INSERT INTO dataset ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", [*row, *end])
        elif row == known:
            self.execute(cursor, "UPDATE dataset SET seq = ?, head = ? WHERE name = ?", [*end, name])
        else:
            query = "UPDATE dataset SET frozen = ?, settings = ?, seq = ?, head = ? WHERE name = ?"
            self.execute(cursor, query, [row[3], row[4], *end, name])

    def _write_balances(self, cursor: Any, held: Loaded) -> None:
        new, changed, gone = [], [], set(held.balances)
        for name, account in held.state.accounts.items():
            for (owner, component), balance in account.balances.items():
                place = (name, owner, component)
                row, known = balance_row(place, balance), held.balances.get(place)
                gone.discard(place)
                if known is None:
                    new.append(row)
                elif row != known:
                    changed.append((*row[3:], *place))
        if changed:
            parts = ", ".join(f"{part} = ?" for part in ("cap", "committed", "reserved", "total_units", "cap_units"))
            self.many(cursor, f"UPDATE balance SET {parts} WHERE dataset = ? AND owner = ? AND component = ?", changed)
        if new:
            self.many(cursor, f"INSERT INTO balance VALUES ({', '.join('?' * 8)})", new)
        for place in sorted(gone):
            self.execute(cursor, "DELETE FROM balance WHERE dataset = ? AND owner = ? AND component = ?", place)

    def _write_analysis(self, cursor: Any, found: Analysis, known: tuple[Any, ...] | None) -> None:
        row = analysis_row(found)
        if row == known:
            return
        if known is not None:
            self.execute(cursor, "DELETE FROM open_lease WHERE key = ?", [found.key])
            query = "UPDATE analysis SET state = ?, lease = ?, run = ? WHERE key = ?"
            self.execute(cursor, query, [found.state, found.lease, found.run, found.key])
        else:
            self.execute(cursor, f"INSERT INTO analysis VALUES ({', '.join('?' * len(row))})", row)
        if found.state in OPEN:
            query = "INSERT INTO open_lease (dataset, key, lease) VALUES (?, ?, ?)"
            self.many(cursor, query, [(name, found.key, found.lease) for name in sorted(found.charges)])

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
