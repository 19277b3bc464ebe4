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
_AT = "WHERE dataset = ? AND owner = ? AND component = ?"
SET_BALANCE = f"UPDATE {{balances}} SET cap = ?, committed = ?, reserved = ?, total_units = ?, cap_units = ? {_AT}"
SET_RESERVED = f"UPDATE balance SET reserved = ?, total_units = ? {_AT}"
SET_END = "UPDATE dataset SET seq = ?, head = ? WHERE name = ?"
_LEASE = "WHERE dataset = ? AND lease = ? AND key = ?"
INSERT_ANALYSIS = "INSERT INTO analysis VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_LEASE = "INSERT INTO {leases} (dataset, lease, key) VALUES (?, ?, ?)"
INSERT_EVENT = "INSERT INTO event (chain, seq, previous, body, hash) VALUES (?, ?, ?, ?, ?)"


class Writing(Loading):
    """What both kinds of stores do to write."""

    keys, balances, leases = "analysis", "balance", "open_lease"  # the tables in which they are changed

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
                    yield f"DELETE FROM {self.balances} {_AT}", place
            elif place in held.balances:
                yield SET_BALANCE.format(balances=self.balances), (*balance.row(component), *place)
            else:
                held.balances.add(place)
                columns = "dataset, owner, component, cap, committed, reserved, total_units, cap_units"
                query = f"INSERT INTO {self.balances} ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                yield query, balance_row(place, balance)

    def _analysis_changes(self, held: Loaded, found: Analysis, known: tuple[Any, ...] | None) -> Iterator[Change]:
        row = analysis_row(found)
        is_open = found.state in OPEN
        for name in found.charges if is_open else ():
            if name in held.soonest:
                held.soonest[name] = min(found.lease, held.soonest[name])
        if known is None:
            yield INSERT_ANALYSIS, row
            for name in sorted(found.charges) if is_open else ():
                yield INSERT_LEASE.format(leases=self.leases), (name, found.lease, found.key)
        elif row != known:
            query = f"UPDATE {self.keys} SET state = ?, lease = ?, run = ? WHERE key = ?"
            yield query, (found.state, found.lease, found.run, found.key)
            for name in sorted(found.charges):
                place = name, known[4], found.key
                if is_open:
                    yield f"UPDATE {self.leases} SET lease = ? {_LEASE}", (found.lease, *place)
                else:
                    yield f"DELETE FROM {self.leases} {_LEASE}", place
