"""Writing what commands have changed: rows of accounts, balances and analyses, and the events, linked into chains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from privloss.ledger.state import OPEN, Analysis, Event, chains
from privloss.ledger.stores.loading import Loading
from privloss.ledger.stores.parts import Loaded
from privloss.ledger.stores.rows import GENESIS, account_row, analysis_row, balance_row, canonical, chain

_PAGE = 200  # events in one statement
Change = tuple[str, tuple[Any, ...]]  # a statement and its values
SET_BALANCE = (
    "UPDATE balance SET cap = ?, committed = ?, reserved = ?, total_units = ?, cap_units = ? "
    "WHERE dataset = ? AND owner = ? AND component = ?"
)
SET_RESERVED = "UPDATE balance SET reserved = ?, total_units = ? WHERE dataset = ? AND owner = ? AND component = ?"
SET_END = "UPDATE dataset SET seq = ?, head = ? WHERE name = ?"
_LEASE = "WHERE dataset = ? AND lease = ? AND key = ?"
INSERT_ANALYSIS = "INSERT INTO analysis VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_LEASE = "INSERT INTO open_lease (dataset, lease, key) VALUES (?, ?, ?)"
INSERT_EVENT = "INSERT INTO event (chain, seq, previous, body, hash) VALUES (?, ?, ?, ?, ?)"


class Writing(Loading):
    """What both kinds of stores do to write."""

    def write(self, cursor: Any, held: Loaded, events: Sequence[Event]) -> None:
        """Write what has changed since it was loaded, and the events."""
        changes, (first, *more) = self.linked_changes(held, events)
        self.flush(cursor, [*changes, first])
        for insert in more:
            self.flush(cursor, [insert])

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
        for name in touched:
            yield from self._balance_changes(held, name)
        for key, found in held.state.analyses.items():
            yield from self._analysis_changes(held, found, held.analyses.get(key))

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
        end, known = held.ends.get(name, (0, GENESIS)), name in held.accounts
        account = held.state.accounts.get(name)
        if account is None or (known and not account.changed):
            return SET_END, (*end, name)
        row = account_row(account)
        if not known:
            held.accounts.add(name)
            columns = "name, adjacency, unit, frozen, settings, seq, head"
            return f"INSERT INTO dataset ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, *end)
        return "UPDATE dataset SET frozen = ?, settings = ?, seq = ?, head = ? WHERE name = ?", (*row[3:], *end, name)

    def _balance_changes(self, held: Loaded, name: str) -> Iterator[Change]:
        account = held.state.accounts.get(name)
        if account is None:
            return
        for owner, component in sorted(account.moved):
            place = (name, owner, component)
            balance = account.balances.get((owner, component))
            if balance is None:
                if place in held.balances:
                    held.balances.discard(place)
                    yield "DELETE FROM balance WHERE dataset = ? AND owner = ? AND component = ?", place
            elif place in held.balances:
                yield SET_BALANCE, (*balance.row(component), *place)
            else:
                held.balances.add(place)
                yield "INSERT INTO balance VALUES (?, ?, ?, ?, ?, ?, ?, ?)", balance_row(place, balance)

    def _analysis_changes(self, held: Loaded, found: Analysis, known: tuple[Any, ...] | None) -> Iterator[Change]:
        row = analysis_row(found)
        is_open = found.state in OPEN
        for name in found.charges if is_open else ():
            if name in held.soonest:
                held.soonest[name] = min(found.lease, held.soonest[name])
        if known is None:
            yield INSERT_ANALYSIS, row
            for name in sorted(found.charges) if is_open else ():
                yield INSERT_LEASE, (name, found.lease, found.key)
        elif row != known:
            query = "UPDATE analysis SET state = ?, lease = ?, run = ? WHERE key = ?"
            yield query, (found.state, found.lease, found.run, found.key)
            for name in sorted(found.charges):
                place = name, known[4], found.key
                if is_open:
                    yield f"UPDATE open_lease SET lease = ? {_LEASE}", (found.lease, *place)
                else:
                    yield f"DELETE FROM open_lease {_LEASE}", place
