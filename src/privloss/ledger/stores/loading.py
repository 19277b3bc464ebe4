"""Loading the part of a ledger that commands need, beyond what is known of it already."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from privloss.ledger.commands import Command
from privloss.ledger.state import EVERYONE, LEDGER, Analysis
from privloss.ledger.stores.parts import Loaded
from privloss.ledger.stores.rows import ACCOUNT, ANALYSIS, account_from, analysis_from, balance_from, marks

_MOST_LATE = 500  # leases given back by one transaction
Clock = Callable[[], float]
_ACCOUNTS = "SELECT 'account', name, adjacency, unit, {frozen}, settings, {seq}, head, '' FROM dataset"
_KEYS = "SELECT 'key', key, request, analyst, state, {lease}, charges, held_on, run FROM analysis"
_BALANCES = "SELECT 'balance', dataset, owner, component, cap, committed, reserved, '', '' FROM balance"
_SOONEST = (
    "SELECT 'soonest', name, {lease}, '', '', '', '', '', '' FROM (SELECT name, ({soonest}) AS lease FROM dataset "
    "WHERE name IN ({names})) AS soonest WHERE lease IS NOT NULL"
)
_LATE = (
    "SELECT DISTINCT key, lease FROM open_lease WHERE dataset IN ({names}) AND lease < ? ORDER BY lease LIMIT {most}"
)
_LONG_AGO = float("-inf")


class Loading:
    """What both kinds of stores do to load. `boundary` is called before every statement (tests crash there)."""

    boundary: Callable[[str], None] = staticmethod(lambda statement: None)
    chained = "event"  # what shows events by chain and seq
    hold = ""  # what is added to a SELECT to hold its rows until the transaction ends
    sql_now = ""  # the time of the place where the ledger is kept, in a statement
    soonest = "SELECT min(lease) FROM open_lease WHERE dataset = name"  # before which no lease on an account ends

    def text(self, number: str) -> str:
        """A number in a column of texts."""
        return number

    def execute(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        self.boundary(statement)
        return cursor.execute(statement, values)

    def load(
        self,
        cursor: Any,
        commands: Sequence[Command],
        clock: Clock | None,
        held: Loaded,
        free: bool = False,
        new_keys: bool = False,
    ) -> Loaded:
        """Add what commands need to what is `held`. Rows of accounts are held for the rest of the transaction (unless
        `free`): only of these more is loaded, because only these may be written. `new_keys`: do not look whether the
        keys they claim are known."""
        held.settled = False
        moved, claimed = each(commands, "moves"), each(commands, "claims")
        first = [analysis_from(row) for row in self.analyses(cursor, sorted(moved)).fetchall()] if moved else []
        names = sorted(each(commands, "accounts").union(*(found.charges for found in first)))
        new = self._hold(cursor, held, names, free)
        # held: nobody else can change what is read from here on
        if clock is not None:
            held.now = clock()
        owners = self._owners(held, commands, first)
        expiring = self._expiring(held, commands)
        unknown = any((name, owner) not in held.owners for name in names for owner in owners)
        keys = sorted(moved) if new_keys else sorted(moved | claimed)
        if unknown or expiring or clock is None:
            asked = names if unknown else (), owners
            self._fill(held, self._details(cursor, new, keys, *asked, sorted(expiring), clock), claimed)
            self._know(held, names, owners, expiring)
        elif keys:
            self._fill(held, [("key", *row) for row in self.analyses(cursor, keys).fetchall()], claimed)
        self._the_rest(cursor, held, commands)
        self._late(cursor, held, expiring)
        return held

    def _hold(self, cursor: Any, held: Loaded, names: Sequence[str], free: bool) -> list[str]:
        """Hold the rows of accounts that are not known yet; those that are still to be loaded."""
        new = [name for name in names if name not in held.accounts]
        if not new or not self.hold or free:
            return new
        query = f"{ACCOUNT} WHERE name IN ({marks(new)}) ORDER BY name{self.hold}"
        self._fill(held, [("account", *row) for row in self.execute(cursor, query, new).fetchall()], ())
        return []

    @staticmethod
    def _owners(held: Loaded, commands: Sequence[Command], moved: Sequence[Analysis]) -> set[str]:
        """Whose balances will probably be asked: everyone's, those of the commands, those of analyses that move."""
        probable = {EVERYONE}.union(*(command.probably(held.now) for command in commands))
        return probable.union(*(on for found in moved for on in found.on.values()))

    @staticmethod
    def _expiring(held: Loaded, commands: Sequence[Command]) -> set[str]:
        """Accounts where a lease may have ended; when the next one ends is forgotten, and asked again."""
        asked = each([command for command in commands if command.expires], "accounts")
        found = {name for name in asked if held.soonest.get(name, _LONG_AGO) < held.now}
        for name in found:
            held.soonest.pop(name, None)
        return found

    def _late(self, cursor: Any, held: Loaded, expiring: Collection[str]) -> None:
        """Keys whose leases have ended."""
        late = [name for name in sorted(expiring) if held.soonest.get(name, held.now) < held.now]
        if late:
            query = _LATE.format(names=marks(late), most=_MOST_LATE)
            rows = self.execute(cursor, query, [*late, held.now]).fetchall()
            held.late = tuple(dict.fromkeys(row[0] for row in rows))
            if not rows:
                self.none_late(cursor, held, late)

    def none_late(self, cursor: Any, held: Loaded, names: Sequence[str]) -> None:
        """A lease has ended, but not on these accounts."""

    def _know(self, held: Loaded, names: Collection[str], owners: Collection[str], expiring: Collection[str]) -> None:
        known = [name for name in names if name in held.accounts]
        held.owners.update((name, owner) for name in known for owner in owners)
        for name in expiring:  # no open lease
            held.soonest.setdefault(name, float("inf"))

    def analyses(self, cursor: Any, keys: Sequence[str]) -> Any:
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
        """Accounts, keys, balances, when the next lease ends, and the time, in one question: rows that say what they
        are, accounts first."""
        parts: list[str] = []
        values: list[Any] = []
        if accounts:
            number, frozen = self.text("seq"), self.text("frozen")
            parts.append(f"{_ACCOUNTS.format(frozen=frozen, seq=number)} WHERE name IN ({marks(accounts)})")
            values += accounts
        if clock is None:
            parts.append(f"SELECT 'now', {self.text(self.sql_now)}, '', '', '', '', '', '', ''")
        if keys:
            parts.append(f"{_KEYS.format(lease=self.text('lease'))} WHERE key IN ({marks(keys)})")
            values += keys
        if names:
            parts.append(f"{_BALANCES} WHERE dataset IN ({marks(names)}) AND owner IN ({marks(owners)})")
            values += [*names, *sorted(owners)]
        if expiring:
            lease, names_of = self.text("lease"), marks(expiring)
            parts.append(_SOONEST.format(lease=lease, soonest=self.soonest, names=names_of))
            values += expiring
        found: list[Any] = self.execute(cursor, " UNION ALL ".join(parts), values).fetchall()
        return found

    def _fill(self, held: Loaded, details: Sequence[Any], claimed: Collection[str]) -> None:
        state = held.state
        for kind, *row in details:
            if kind == "balance":
                name, owner, component = row[:3]
                if name in state.accounts:
                    state.accounts[name].balances[(owner, component)] = balance_from(row)
                    held.balances.add((name, owner, component))
            elif kind == "key":
                row[4] = float(row[4])
                found = analysis_from(row)
                if found.key in claimed or found.charges.keys() <= state.accounts.keys():
                    state.analyses[found.key], held.analyses[found.key] = found, tuple(row)
            elif kind == "account":
                name, row[3], row[5] = row[0], int(float(row[3])), int(float(row[5]))
                held.accounts.add(name)
                held.ends[name] = (row[5], row[6])
                if name != LEDGER:
                    state.accounts[name] = account_from(row)
            elif kind == "now":
                held.now = float(row[0])
            else:
                held.soonest[row[0]] = float(row[1])

    def _the_rest(self, cursor: Any, held: Loaded, commands: Sequence[Command]) -> None:
        """Balances of owners that were not foreseen: a quota of another spelling, a period just begun."""
        more = {
            (name, owner)
            for command in commands
            for name in command.accounts
            if name in held.state.accounts
            for owner in command.owners(held.state.accounts[name], held.now)
        } - held.owners
        if more:
            names, owners = sorted({name for name, _ in more}), {owner for _, owner in more}
            self._fill(held, self._details(cursor, (), (), names, owners, (), lambda: held.now), ())
            self._know(held, names, owners, ())


def each(commands: Sequence[Command], part: str) -> set[str]:
    """What commands name, all together."""
    return {name for command in commands for name in getattr(command, part)}
