"""Reservations that repeat one decided before, but for the key: decided by sums, and written many rows at a time.

What decides a reservation are the settings of its accounts, the time, its key and the balances. A *pattern* is kept of
one that the rules have let in. While the settings stand (`Loaded.patterns` is emptied when they change, and goes with
everything else that is remembered when somebody else may have written), no lease on its accounts has ended, the periods
it counts in last and the key is new, the rules would let the next one in if and only if the sums fit: so they are all
that is looked at. Everything else, refusals too, is left to the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from privloss.ledger import calendar
from privloss.ledger.commands import Command, Reserve
from privloss.ledger.filters import SOME, bits_of
from privloss.ledger.state import EVERYONE, RESERVED, Account, Balance, Charges, Event
from privloss.ledger.stores.parts import Loaded, Outcome
from privloss.ledger.stores.rows import QUOTED, analysis_row, canonical, chain
from privloss.ledger.stores.writing import INSERT_EVENT, SET_END, SET_RESERVED

_MOST = 1000  # patterns that are kept
_MARGIN = 2.0  # seconds around the ends of a period that are left to the rules
_LONG_AGO = float("-inf")
_VARY = ("at", "key", "lease")  # of an event, in the order of its text


class _Part(NamedTuple):
    """What one balance is charged: top/bottom."""

    account: str
    place: tuple[str, str]
    whole: tuple[str, str, str]  # account and place
    top: int
    bottom: int
    own: bool  # of the account's own budget (or that of a block): what is left of it is told


@dataclass(frozen=True, slots=True)
class Pattern:
    """A reservation that was let in."""

    like: Command  # all that the commands have in common; kept, so that its identity stays its own
    lease: float  # seconds
    since: float
    until: float
    accounts: tuple[str, ...]
    parts: tuple[_Part, ...]
    own: tuple[_Part, ...]
    charges: Charges
    texts: tuple[str, str, str, str]  # of the event, around its time, key and lease
    row: tuple[Any, ...]  # of the analysis, without key

    def body(self, at: str, key: str, lease: str) -> str:
        first, second, third, last = self.texts
        return f"{first}{at}{second}{QUOTED(key)}{third}{lease}{last}"


class _Left(Mapping[str, Mapping[str, Fraction]]):
    """What was left of each account's own budget (of the block that has least), worked out if somebody asks."""

    __slots__ = ("_accounts", "_found", "_parts")

    def __init__(self, accounts: Sequence[str], parts: Sequence[_Part], found: Sequence[tuple[int, int]]) -> None:
        self._accounts, self._parts, self._found = accounts, parts, found

    def __getitem__(self, name: str) -> dict[str, Fraction]:
        if name not in self._accounts:
            raise KeyError(name)
        left: dict[str, Fraction] = {}
        for part, (size, bottom) in zip(self._parts, self._found, strict=True):
            if part.account == name:
                component, amount = part.place[1], Fraction(size, bottom)
                left[component] = min(amount, left.get(component, amount))
        return left

    def __iter__(self) -> Iterator[str]:
        return iter(self._accounts)

    def __len__(self) -> int:
        return len(self._accounts)


class Repeats:
    """Those of a group of commands that repeat others: what they lead to, and the rows to write."""

    __slots__ = (
        "_at", "_balances", "_before", "_entries", "_keys", "_taken", "_until", "held", "outcomes",
    )  # fmt: skip

    def __init__(self, held: Loaded) -> None:
        self.held = held
        self.outcomes: dict[int, Outcome] = {}
        self._at = repr(held.now)
        self._until: dict[float, tuple[float, str]] = {}  # of a lease's length, and as text: few are different
        self._taken: list[Pattern] = []
        self._balances: dict[tuple[str, str, str], Balance] = {}  # that have changed
        self._before: dict[str, tuple[int, str]] = {}  # ends of chains that have grown
        self._keys: list[tuple[str, float, int]] = []  # with the end of its lease, and which of the entries reserves it
        self._entries: list[tuple[Any, ...]] = []

    def take(self, number: int, key: str, pattern: Pattern) -> None:
        """Decide one whose key is new; leave it, if it is not plainly let in."""
        held, now = self.held, self.held.now
        if not pattern.since <= now < pattern.until:
            return
        for name in pattern.accounts:  # a lease that may have ended is given back first
            if not held.soonest.get(name, _LONG_AGO) >= now:
                return
        accounts, sizes, told = held.state.accounts, [], []
        for account, place, whole, top, bottom, own in pattern.parts:
            balance = accounts[account].balances[place]
            size = top if balance.bottom == bottom else balance.of(top, bottom)
            left = balance.left()
            if left is not None:
                if left < size:
                    return
                if own:
                    told.append((left - size, balance.bottom))
            sizes.append((whole, balance, size))
        for whole, balance, size in sizes:
            balance.hold(size)
            self._balances[whole] = balance
        self._taken.append(pattern)
        self._note(key, pattern)
        rest = _Left(pattern.accounts, pattern.own, told)
        self.outcomes[number] = Outcome(None, RESERVED, pattern.charges, rest)

    def undo(self) -> None:
        """What is held is again as if none had been taken. (That a lease may end earlier than any does is no harm.)"""
        for pattern in self._taken:
            for _, _, whole, top, bottom, _ in pattern.parts:
                balance = self._balances[whole]
                balance.hold(-balance.of(top, bottom))  # its denominator may have grown since
        self.held.ends.update(self._before)

    def keys(self) -> list[tuple[Any, ...]]:
        """The rows of the keys."""
        each = zip(self._keys, self._taken, strict=True)
        return [(key, *pattern.row[:3], lease, *pattern.row[3:]) for (key, lease, _), pattern in each]

    def claims(self) -> list[tuple[Any, ...]]:
        """The same rows where they only name the event that reserves the key."""
        last = self.held.last
        return [(key, last + place, lease, None, None) for key, lease, place in self._keys]

    @property
    def last(self) -> int:
        """The number of the last event, when they are written."""
        return self.held.last + len(self._entries)

    def leases(self) -> list[tuple[Any, ...]]:
        """The rows of their leases."""
        each = zip(self._keys, self._taken, strict=True)
        return [(name, lease, key) for (key, lease, _), pattern in each for name in pattern.accounts]

    def ends(self) -> tuple[str, list[tuple[Any, ...]]]:
        """The statement that moves the ends of chains, and its rows."""
        return SET_END, [(*self.held.ends[name], name) for name in self._before]

    def rows(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """The statements for balances, which have their rows already, and events; and the rows of each."""
        if self.outcomes:
            yield SET_RESERVED, [(*each.held(bits_of(place[2])), *place) for place, each in self._balances.items()]
            yield INSERT_EVENT, self._entries

    def _note(self, key: str, pattern: Pattern) -> None:
        held, now = self.held, self.held.now
        until = self._until.get(pattern.lease)
        if until is None:
            until = self._until[pattern.lease] = now + pattern.lease, repr(now + pattern.lease)
        lease, written = until
        body = pattern.body(self._at, key, written)
        self._keys.append((key, lease, len(self._entries) + 1))
        for name in pattern.accounts:
            end = seq, previous = held.ends[name]
            self._before.setdefault(name, end)
            link = chain(previous, body)
            held.ends[name] = (seq + 1, link)
            self._entries.append((name, seq + 1, previous, body, link))
            if lease < held.soonest[name]:
                held.soonest[name] = lease


def learn(held: Loaded, commands: Sequence[Command], made: Sequence[Sequence[Event]]) -> None:
    """Keep patterns of the reservations among commands that were let in, each by the event that it has caused itself:
    another may have asked for the same key."""
    for command, events in zip(commands, made, strict=True):
        if (
            command.like is None
            or not isinstance(command, Reserve)
            or [each["kind"] for each in events] != ["reserved"]
        ):
            continue
        found = _pattern(command, events[0], held)
        if found is not None:
            if len(held.patterns) >= _MOST:
                held.patterns.clear()
            held.patterns[id(command.like)] = found


def _pattern(command: Reserve, event: Event, held: Loaded) -> Pattern | None:
    """None where more than sums decides: an account where some order is enough."""
    assert command.like is not None
    accounts = [held.state.accounts[name] for name in event["accounts"]]
    parts = tuple(part for account in accounts for part in _parts(account, event["on"][account.name], command))
    if any(not _sums_decide(account, event["on"][account.name]) for account in accounts):
        return None
    ends = [calendar.around(account.every, held.now) for account in accounts if account.every is not None]
    since, until = max((e[0] for e in ends), default=_LONG_AGO), min((e[1] for e in ends), default=float("inf"))
    row = analysis_row(replace(held.state.analyses[command.key], state=RESERVED, run=""))  # it may be started already
    found = Pattern(
        command.like, command.lease, since + _MARGIN, until - _MARGIN, tuple(event["accounts"]),
        parts, tuple(part for part in parts if part.own), command.charges, _cut(event), (*row[1:4], *row[5:]),
    )  # fmt: skip
    return found if found.body(repr(event["at"]), command.key, repr(event["lease"])) == canonical(event) else None


def _parts(account: Account, owners: Sequence[str], command: Reserve) -> list[_Part]:
    name, found = account.name, []
    for owner in owners:
        own = owner == EVERYONE or owner[0] == "#"
        for part, amount in command.charges[name].items():
            counted = own and account.filter is not None and part in account.filter.caps
            size = amount.numerator, amount.denominator
            found.append(_Part(name, (owner, part), (name, owner, part), *size, counted))
    return found


def _sums_decide(account: Account, owners: Sequence[str]) -> bool:
    """Whether the caps of its balances are all that these owners' budgets ask."""
    budgets = [account.budget_of(owner) for owner in owners]
    return all(budget is None or budget.rule != SOME for budget in budgets)


def _cut(event: Event) -> tuple[str, str, str, str]:
    """The canonical text of an event around what varies."""
    texts, between = ["{"], ""
    for name in sorted(event):
        texts[-1] += f"{between}{QUOTED(name)}:"
        between = ","
        if name in _VARY:
            texts.append("")
        else:
            texts[-1] += canonical(event[name])
    first, second, third, last = texts
    return first, second, third, last + "}"
