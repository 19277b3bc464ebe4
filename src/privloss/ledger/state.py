"""The ledger's state, and how an event changes it: a plain fold, without any I/O.

An event is a JSON object with a `kind`. An *account* is a dataset, or a group of datasets above them. Its balances
hold, for every owner and component, what is committed and what is reserved (and not yet committed or voided), as exact
rationals. Owners: EVERYONE (the account's own budget), an analyst, a period (`@2026`), a block of data (`#2026-11-16`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privloss.ledger import calendar
from privloss.ledger.amounts import exact, show, units
from privloss.ledger.filters import Filter, bits_of
from privloss.ledger.names import normal

RESERVED, STARTED, COMMITTED, VOIDED = "RESERVED", "STARTED", "COMMITTED", "VOIDED"
OPEN = (RESERVED, STARTED)
EVERYONE = ""  # the owner of an account's own budget
LEDGER = ""  # the chain of the ledger itself
TOKENS = ("token", "token-revoked")  # events about who may act
OF_THE_LEDGER = ("restored", *TOKENS)  # events that concern no account
_PERIOD, _BLOCK = "@", "#"
_DIGITS = 60  # of a number of units, written so that texts sort like numbers
ZERO = Fraction(0)
Event = dict[str, Any]
Charges = dict[str, dict[str, Fraction]]  # account -> component -> amount


class Balance:
    """One component of one owner's budget; without a cap it only counts.

    All its amounts are whole numbers of 1/`bottom`, a denominator common to all that was ever counted here, so that
    adding and comparing are those of integers. Denominators are bounded (`amounts`), and so is their common multiple.
    """

    __slots__ = ("_cap", "_committed", "_reserved", "_texts", "bottom")

    def __init__(self, cap: Fraction | None, committed: Fraction = ZERO, reserved: Fraction = ZERO) -> None:
        self.bottom = 1
        self._cap: int | None = None
        self._texts: tuple[str | None, str | None] | None = None
        self._committed = self._reserved = 0
        self._committed = self._of(committed)
        self._reserved = self._of(reserved)
        self.cap = cap

    def _of(self, amount: Fraction) -> int:
        return self.of(amount.numerator, amount.denominator)

    def of(self, top: int, bottom: int) -> int:
        """An amount as a whole number of 1/`bottom`, which grows if it must."""
        more, rest = divmod(self.bottom, bottom)
        if rest:
            factor = bottom // math.gcd(self.bottom, bottom)
            self.bottom *= factor
            self._committed *= factor
            self._reserved *= factor
            self._cap = None if self._cap is None else self._cap * factor
            more = self.bottom // bottom
        return top * more

    @property
    def cap(self) -> Fraction | None:
        return None if self._cap is None else Fraction(self._cap, self.bottom)

    @cap.setter
    def cap(self, cap: Fraction | None) -> None:
        self._cap, self._texts = None if cap is None else self._of(cap), None

    @property
    def committed(self) -> Fraction:
        return Fraction(self._committed, self.bottom)

    @property
    def reserved(self) -> Fraction:
        return Fraction(self._reserved, self.bottom)

    @property
    def total(self) -> Fraction:
        return Fraction(self._committed + self._reserved, self.bottom)

    def left(self) -> int | None:
        """What is left of the cap, in whole numbers of 1/`bottom`."""
        return None if self._cap is None else self._cap - self._committed - self._reserved

    def hold(self, size: int) -> None:
        """Reserve an amount, as a whole number of 1/`bottom`."""
        self._reserved += size

    def move(self, amount: Fraction, reserved: int, committed: int) -> None:
        """Count an amount: reserved 1 or -1 times or not at all, committed once or not."""
        size = self._of(amount)
        self._reserved += size * reserved
        self._committed += size * committed

    def row(self, component: str) -> tuple[str | None, str, str, str, str | None]:
        """Cap, committed and reserved as texts, and total and cap as whole units, each rounded up once: what the
        store's CHECK compares."""
        bits = bits_of(component)
        if self._texts is None:  # a component is always the same one
            cap = self.cap
            self._texts = (
                (None, None) if cap is None else (_text(cap.numerator, cap.denominator), _padded(units(cap, bits)))
            )
        shown, cap_units = self._texts
        reserved, total = self.held(bits)
        return shown, _text(self._committed, self.bottom), reserved, total, cap_units

    def held(self, bits: int) -> tuple[str, str]:
        """Of its row what changes when an amount is reserved: that text, and the total's units."""
        total = -((-(self._committed + self._reserved) << bits) // self.bottom)  # `units`
        return _text(self._reserved, self.bottom), _padded(total)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Balance) and self._amounts() == other._amounts()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Balance{self._amounts()}"

    def _amounts(self) -> tuple[Fraction | None, Fraction, Fraction]:
        return self.cap, self.committed, self.reserved


def _text(top: int, bottom: int) -> str:
    """A fraction in lowest terms."""
    common = math.gcd(top, bottom)
    return f"{top // common}/{bottom // common}"


def _padded(size: int) -> str:
    return str(size).zfill(_DIGITS)  # a sign stays in front, and is refused


@dataclass
class Account:
    """A dataset, or a group of them: adjacency, budgets, and balances by (owner, component)."""

    name: str
    adjacency: str
    unit: str
    group: bool = False
    parent: str | None = None
    blocks: str | None = None  # data arrives by day, week, ...: `filter` is then the budget of each block
    frozen: bool = False
    used: bool = False
    filter: Filter | None = None
    quotas: dict[str, Filter] = field(default_factory=dict)
    every: str | None = None  # the period of `recurring`
    recurring: Filter | None = None
    audits: dict[str, Any] = field(
        default_factory=dict
    )  # how many were attached, how many refute, the mark of the last
    balances: dict[tuple[str, str], Balance] = field(default_factory=dict)
    # since it was loaded or written: whether its settings have changed, and which balances
    changed: bool = field(default=False, compare=False)
    moved: set[tuple[str, str]] = field(default_factory=set, compare=False)

    @property
    def priced(self) -> Filter | None:
        """The budget, with every component that an analysis is charged."""
        return self.filter if self.filter is None or self.group else self.filter.also(self.recurring)

    def budget_of(self, owner: str) -> Filter | None:
        """The filter an owner's balances are held to; None if they only count."""
        if owner == EVERYONE or owner.startswith(_BLOCK):
            return self.filter
        return self.recurring if owner.startswith(_PERIOD) else self.quotas.get(owner)

    def owners(self, analyst: str, at: float, blocks: Iterable[str]) -> list[str]:
        """Whose balances a reservation counts against."""
        if analyst == EVERYONE and self.every is None and not self.blocks:
            return [EVERYONE]
        found = [_BLOCK + block for block in blocks] if self.blocks else [EVERYONE]
        if self.every is not None:
            found.append(_PERIOD + calendar.label(self.every, at))
        if analyst != EVERYONE:
            found += [quota for quota in sorted(self.quotas) if normal(quota) == analyst] or [analyst]
        return found

    def totals(self, owner: str) -> dict[str, Fraction]:
        return {part: balance.total for (who, part), balance in self.balances.items() if who == owner}

    def spent(self, owner: str, part: str) -> Fraction:
        """The total of one component."""
        found = self.balances.get((owner, part))
        return ZERO if found is None else found.total

    def remaining(self, owner: str) -> dict[str, Fraction]:
        """What is left of every cap; the whole cap where nothing was spent yet."""
        budget = self.budget_of(owner)
        return {} if budget is None else {part: cap - self.spent(owner, part) for part, cap in budget.caps.items()}

    def left(self, owners: Iterable[str]) -> dict[str, Fraction]:
        """What is left of the account's own budget; where data lies in blocks, of the block that has least."""
        if not self.blocks:
            return self.remaining(EVERYONE)
        each = [self.remaining(owner) for owner in owners if owner.startswith(_BLOCK)]
        return {part: min(found[part] for found in each) for part in each[0]} if each else {}

    def add(self, owner: str, parts: Mapping[str, Fraction], reserved: int, committed: int) -> None:
        for component, amount in parts.items():
            place = (owner, component)
            balance = self.balances.get(place)
            if balance is None:  # where a quota in Renyi DP has no cap it counts all the same: it may get one
                budget = self.budget_of(owner)
                cap = None if budget is None else budget.limit(component)
                balance = self.balances[place] = Balance(cap)
            balance.move(amount, reserved, committed)
            self.moved.add(place)

    def recap(self, owner: str) -> None:
        """Give an owner's balances the caps of its budget."""
        budget = self.budget_of(owner)
        for component in {part for who, part in self.balances if who == owner} | set(budget.caps if budget else ()):
            cap = None if budget is None else budget.limit(component)
            known = self.balances.setdefault((owner, component), Balance(cap))
            known.cap = cap
            self.moved.add((owner, component))


def likely_owners(analyst: str, at: float, every: Iterable[str], blocks: Iterable[str]) -> list[str]:
    """Whose balances a reservation will need, before its accounts are held."""
    periods = [_PERIOD + calendar.label(each, at) for each in every]
    return [*periods, *(_BLOCK + block for block in blocks), *([analyst] if analyst != EVERYONE else [])]


@dataclass
class Analysis:
    """One idempotency key: what was asked, and where it stands."""

    key: str
    request: str  # hash of the request
    analyst: str
    state: str
    lease: float  # until when, in seconds since the epoch
    charges: Charges
    on: dict[str, list[str]]  # account -> owners whose balances hold it
    run: str = ""  # SHA-256 of the token of the run that started it


@dataclass
class State:
    """Everything, or the part of it a command needs."""

    accounts: dict[str, Account] = field(default_factory=dict)
    analyses: dict[str, Analysis] = field(default_factory=dict)

    def above(self, name: str) -> list[str]:
        """The groups above an account, from the nearest on."""
        found: list[str] = []
        while name in self.accounts and (parent := self.accounts[name].parent) is not None:
            found.append(parent)
            name = parent
        return found


def run_hash(token: str) -> str:
    """What a started event says of the run that caused it: a reader of the log cannot repeat the start."""
    return hashlib.sha256(token.encode()).hexdigest() if token else ""


def charges_to_json(charges: Charges) -> dict[str, dict[str, str]]:
    return {name: {part: show(x) for part, x in parts.items()} for name, parts in charges.items()}


def charges_from_json(data: Mapping[str, Mapping[str, str]]) -> Charges:
    return {name: {part: exact(x) for part, x in parts.items()} for name, parts in data.items()}


def chains(event: Event) -> list[str]:
    """The chains an event stands in: those of the accounts it concerns; a new account also in the ledger's own.

    Events of releases before 0.3 ("dataset", and all others with no list of chains) stand in the ledger's chain alone;
    whoever knows that an event is of that kind does not ask.
    """
    kind = event["kind"]
    if kind == "account":
        return [LEDGER, event["dataset"]]
    if kind in OF_THE_LEDGER:
        return [LEDGER]
    if kind in ("reserved", "started", "committed", "voided", "refused", "audited"):
        return sorted(event["accounts"])
    return [event["dataset"]]


def apply(state: State, event: Event) -> None:
    """Change the state as the event says."""
    kind = event["kind"]
    if kind in ("refused", "opened", *TOKENS):
        return
    if kind in ("account", "dataset"):
        name = event["dataset"]
        extra = {key: event[key] for key in ("group", "parent", "blocks") if key in event}
        state.accounts[name] = Account(name, event["adjacency"], event["unit"], **extra)
    elif kind == "budget":
        _budget(state.accounts[event["dataset"]], event)
    elif kind == "frozen":
        state.accounts[event["dataset"]].frozen = event["frozen"]
        state.accounts[event["dataset"]].changed = True
    elif kind == "restored":
        for account in state.accounts.values():
            account.frozen = True
    elif kind == "reserved":
        _reserve(state, event)
    elif kind == "audited":
        _audited(state, event)
    else:
        analysis = state.analyses[event["key"]]
        if kind == "committed":
            _move(state, analysis, reserved=-1, committed=1)
        elif kind == "voided":
            _move(state, analysis, reserved=-1)
        analysis.state = {"started": STARTED, "committed": COMMITTED, "voided": VOIDED}[kind]
        analysis.lease = event.get("lease", analysis.lease)
        # releases before 0.3 wrote the token itself
        analysis.run = event.get("run", run_hash(event.get("token", "")) or analysis.run)


def evidence_mark(event: Event) -> str:
    """Of an audit and what it is about."""
    about = event.get("key") or event["accounts"][0]
    return hashlib.sha256(f"{event['audit']['sha256']} {'key' in event} {about}".encode()).hexdigest()[:16]


def _audited(state: State, event: Event) -> None:
    for name in event["accounts"]:
        account = state.accounts[name]
        attached, refuted = account.audits.get("attached", 0), account.audits.get("refuted", 0)
        refuted += event["audit"]["verdict"] == "refuted"
        account.audits = {"attached": attached + 1, "refuted": refuted, "last": evidence_mark(event)}
        account.changed = True


def _reserve(state: State, event: Event) -> None:
    charges = charges_from_json(event["charges"])
    on = event.get("on") or {name: _old_owners(state.accounts[name], event["analyst"]) for name in charges}
    analysis = Analysis(event["key"], event["request"], event["analyst"], RESERVED, event["lease"], charges, on)
    state.analyses[event["key"]] = analysis
    _move(state, analysis, reserved=1)
    for name in charges:
        if not state.accounts[name].used:
            state.accounts[name].used = state.accounts[name].changed = True


def _old_owners(account: Account, analyst: str) -> list[str]:
    """Releases before 0.3 counted an analyst only under a quota of exactly this name."""
    return [EVERYONE, analyst] if analyst != EVERYONE and analyst in account.quotas else [EVERYONE]


def _budget(account: Account, event: Event) -> None:
    made, owner = Filter.from_dict(event["budget"]), event["analyst"]
    account.changed = True
    if event.get("every") is not None:
        account.every = event["every"]
        account.recurring = made if account.filter is None else made.each_period(account.filter, account.group)
        return
    if owner != EVERYONE:
        if account.filter is not None:
            made = made.beneath(account.filter)
        account.quotas[owner] = made
    else:
        account.filter = made
    if owner == EVERYONE:  # before the first spend: nothing is lost
        stale = [key for key in account.balances if key[0] == owner and key[1] not in made.caps]
        for old in stale:
            del account.balances[old]
            account.moved.add(old)
    if owner != EVERYONE or not account.blocks:
        account.recap(owner)


def _move(state: State, analysis: Analysis, reserved: int = 0, committed: int = 0) -> None:
    for name, parts in analysis.charges.items():
        for owner in analysis.on[name]:
            state.accounts[name].add(owner, parts, reserved, committed)
