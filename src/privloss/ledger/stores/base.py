"""What SQLite and PostgreSQL share: one transaction per command, decided by the pure rules.

A transaction locks, loads the part of the state a command needs, decides, writes balances, analyses and events (each
chained to the last by its hash), and commits. Nothing is answered before the commit is durable.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import Any

from privloss.errors import PrivlossError
from privloss.ledger.commands import Command
from privloss.ledger.decide import Refused, step
from privloss.ledger.filters import Filter
from privloss.ledger.state import (
    EVERYONE,
    RESERVED,
    STARTED,
    Analysis,
    Balance,
    Dataset,
    Event,
    State,
    charges_from_json,
    charges_to_json,
)

VERSION = 2
GENESIS = "0" * 64
_MOST_LATE = 1000  # leases given back by one command


class LedgerError(PrivlossError):
    """The ledger cannot be used as asked; nothing was changed."""


@dataclass(frozen=True)
class Outcome:
    """What a command did: the state it needed, afterwards, and a refusal if there was one."""

    state: State
    refused: Refused | None


@dataclass(frozen=True)
class Finding:
    """One line of a check-up."""

    check: str
    ok: bool
    text: str


def canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def chain(previous: str, body: str) -> str:
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


class Store(ABC):
    """A place for the ledger. `boundary` is called before every statement (tests crash there)."""

    boundary: Callable[[str], None] = staticmethod(lambda statement: None)

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]:
        """A cursor inside a write transaction, committed durably at the end."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Any]:
        """A cursor that sees one consistent snapshot."""

    @abstractmethod
    def lock(self, cursor: Any, names: Sequence[str]) -> list[str]:
        """Hold the datasets, in the order of their names, until the transaction ends; those that are there."""

    @abstractmethod
    def lock_head(self, cursor: Any) -> None:
        """Hold the end of the chain until the transaction ends."""

    @abstractmethod
    def close(self) -> None: ...

    def own_checks(self) -> list[Finding]:
        """What a check-up should know about this kind of store."""
        return []

    def execute(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        self.boundary(statement)
        return cursor.execute(statement, tuple(values))

    # -- commands --

    def run(self, command: Command, now: float) -> Outcome:
        with self.transaction() as cursor:
            return self.run_in(cursor, command, now)

    def run_in(self, cursor: Any, command: Command, now: float) -> Outcome:
        """Decide one command inside a transaction."""
        state = self._load(cursor, command)
        before = set(state.analyses)
        events, refused = step(state, command)
        if events:
            self._write(cursor, state, events, before, now)
        return Outcome(state, refused)

    def _load(self, cursor: Any, command: Command) -> State:
        """What a command needs. Only datasets whose rows are held are loaded: they are what may be written."""
        if command.makes_dataset:
            self.lock_head(cursor)
            return self._state(cursor, sorted(command.datasets))
        touched = {*command.moves, *self._late(cursor, command)}
        names = {*command.datasets, *(name for found in self._analyses(cursor, touched) for name in found.charges)}
        state = self._state(cursor, self.lock(cursor, sorted(names)))
        for found in self._analyses(cursor, touched | set(command.claims)):  # again: now nobody else can change them
            held = set(found.charges) <= set(state.datasets)
            if held or found.key in command.claims:
                state.analyses[found.key] = found
        return state

    def _state(self, cursor: Any, names: Sequence[str]) -> State:
        return State({name: found for name in names if (found := self.dataset(cursor, name)) is not None})

    def _late(self, cursor: Any, command: Command) -> list[str]:
        """Keys whose lease on one of the datasets has run out."""
        if command.expires_before is None:
            return []
        query = f"SELECT key FROM open_lease WHERE dataset = ? AND lease < ? ORDER BY lease LIMIT {_MOST_LATE}"
        values = [[name, command.expires_before] for name in sorted(command.datasets)]
        return [row[0] for each in values for row in self.execute(cursor, query, each).fetchall()]

    def _analyses(self, cursor: Any, keys: set[str]) -> list[Analysis]:
        found = [self.execute(cursor, f"{_ANALYSIS} WHERE key = ?", [key]).fetchall() for key in sorted(keys)]
        return [_analysis(row) for rows in found for row in rows]

    def dataset(self, cursor: Any, name: str) -> Dataset | None:
        query = "SELECT adjacency, unit, frozen, budgets FROM dataset WHERE name = ?"
        rows = self.execute(cursor, query, [name]).fetchall()
        if not rows:
            return None
        adjacency, unit, frozen, budgets = rows[0]
        found = Dataset(name, adjacency, unit, bool(frozen))
        for owner, data in json.loads(budgets).items():
            if owner == EVERYONE:
                found.filter = Filter.from_dict(data)
            else:
                found.quotas[owner] = Filter.from_dict(data)
        query = "SELECT owner, component, cap, committed, reserved FROM balance WHERE dataset = ?"
        for owner, component, *amounts in self.execute(cursor, query, [name]).fetchall():
            found.balances[(owner, component)] = Balance(*(Fraction(x) for x in amounts))
        return found

    def _write(self, cursor: Any, state: State, events: list[Event], before: set[str], now: float) -> None:
        kinds = {event["kind"] for event in events}
        for name in sorted(state.datasets):
            self._write_dataset(cursor, state.datasets[name], whole=bool(kinds & {"dataset", "budget", "frozen"}))
        for key in sorted({event["key"] for event in events if "key" in event}):
            self._write_analysis(cursor, state.analyses[key], key in before)
        self.append(cursor, events, now)

    def write_all(self, cursor: Any, state: State) -> None:
        """Fill empty tables with a whole state."""
        for name in sorted(state.datasets):
            self._write_dataset(cursor, state.datasets[name], whole=True)
        for key in sorted(state.analyses):
            self._write_analysis(cursor, state.analyses[key], known=False)

    def _write_dataset(self, cursor: Any, dataset: Dataset, whole: bool) -> None:
        if whole:
            budgets = {owner: quota.to_dict() for owner, quota in dataset.quotas.items()}
            if dataset.filter is not None:
                budgets[EVERYONE] = dataset.filter.to_dict()
            self.execute(
                cursor,
                "INSERT INTO dataset (name, adjacency, unit, frozen, budgets) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET frozen = excluded.frozen, budgets = excluded.budgets",
                [dataset.name, dataset.adjacency, dataset.unit, int(dataset.frozen), canonical(budgets)],
            )
            self.execute(cursor, "DELETE FROM balance WHERE dataset = ?", [dataset.name])
        for (owner, component), balance in dataset.balances.items():
            amounts = [_text(x) for x in (balance.cap, balance.committed, balance.reserved)]
            total, cap = balance.units(component)
            self.execute(
                cursor,
                "INSERT INTO balance (dataset, owner, component, cap, committed, reserved, total_units, cap_units) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (dataset, owner, component) DO UPDATE SET "
                "committed = excluded.committed, reserved = excluded.reserved, total_units = excluded.total_units",
                [dataset.name, owner, component, *amounts, total, cap],
            )

    def _write_analysis(self, cursor: Any, found: Analysis, known: bool) -> None:
        if known:
            self.execute(cursor, "DELETE FROM open_lease WHERE key = ?", [found.key])
        if found.state in (RESERVED, STARTED):
            for name in sorted(found.charges):
                query = "INSERT INTO open_lease (dataset, key, lease) VALUES (?, ?, ?)"
                self.execute(cursor, query, [name, found.key, found.lease])
        if known:
            query = "UPDATE analysis SET state = ?, lease = ?, token = ? WHERE key = ?"
            self.execute(cursor, query, [found.state, found.lease, found.token, found.key])
            return
        self.execute(
            cursor,
            "INSERT INTO analysis (key, request, analyst, state, lease, charges, token) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                found.key,
                found.request,
                found.analyst,
                found.state,
                found.lease,
                canonical(charges_to_json(found.charges)),
                found.token,
            ],
        )

    def append(self, cursor: Any, events: list[Event], now: float) -> None:
        """Add events to the chain."""
        self.lock_head(cursor)
        rows = self.execute(cursor, "SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1").fetchall()
        seq, previous = rows[0] if rows else (0, GENESIS)
        for event in events:
            body = canonical({**event, "at": now})
            seq, link = seq + 1, chain(previous, body)
            query = "INSERT INTO event (seq, previous, body, hash) VALUES (?, ?, ?, ?)"
            self.execute(cursor, query, [seq, previous, body, link])
            previous = link

    # -- reading --

    def events(self, cursor: Any) -> Iterator[tuple[int, str, str, str]]:
        for row in self.execute(cursor, "SELECT seq, previous, body, hash FROM event ORDER BY seq"):
            yield row[0], row[1], row[2], row[3]

    def everything(self, cursor: Any) -> State:
        """The whole state as the tables have it."""
        names = [row[0] for row in self.execute(cursor, "SELECT name FROM dataset ORDER BY name").fetchall()]
        state = self._state(cursor, names)
        for row in self.execute(cursor, _ANALYSIS).fetchall():
            state.analyses[row[0]] = _analysis(row)
        return state

    def open_leases(self, cursor: Any) -> list[tuple[str, str, float]]:
        """(dataset, key, lease) of everything reserved or started, as the tables have it."""
        rows = self.execute(cursor, "SELECT dataset, key, lease FROM open_lease").fetchall()
        return sorted((row[0], row[1], float(row[2])) for row in rows)

    # -- schema --

    def migrate(self, cursor: Any, dialect: str) -> None:
        """Bring an empty or older database to this version, by numbered scripts."""
        found = self.version(cursor)
        if found > VERSION:
            raise LedgerError(f"the ledger has schema version {found}, this release knows {VERSION}: upgrade privloss.")
        for number in range(found + 1, VERSION + 1):
            path = resources.files("privloss.ledger.stores").joinpath("migrations", dialect, f"{number:04d}.sql")
            for statement in statements(path.read_text(encoding="utf-8")):
                self.execute(cursor, statement)
            self.execute(cursor, "DELETE FROM meta WHERE name = 'version'")
            self.execute(cursor, "INSERT INTO meta (name, value) VALUES ('version', ?)", [str(number)])

    @abstractmethod
    def version(self, cursor: Any) -> int:
        """The schema's version, 0 for an empty database."""


_ANALYSIS = "SELECT key, request, analyst, state, lease, charges, token FROM analysis"


def _analysis(row: Sequence[Any]) -> Analysis:
    key, request, analyst, state, lease, charges, token = row
    return Analysis(key, request, analyst, state, float(lease), charges_from_json(json.loads(charges)), token)


def _text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def statements(script: str) -> list[str]:
    """The statements of a migration; bodies of triggers and functions hold semicolons of their own."""
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    found, held = [], ""
    for line in lines:
        held += line + "\n"
        if line.rstrip().endswith(";") and held.count("$$") % 2 == 0:
            found.append(held.strip().rstrip(";") if "TRIGGER" not in held or "BEGIN" not in held else held.strip())
            held = ""
    return found
