"""The commands a ledger takes. Each declares what it needs of the state, so that a store holds and loads just that."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from privloss.ledger.filters import Filter
from privloss.ledger.state import (
    COMMITTED,
    EVERYONE,
    LEDGER,
    STARTED,
    VOIDED,
    Account,
    Charges,
    charges_to_json,
    likely_owners,
)


@dataclass(frozen=True)
class Note:
    """What a person says with a command: it stands in the event, and decides nothing."""

    actor: str = ""
    reason: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    @functools.cached_property
    def said(self) -> dict[str, Any]:
        parts = {"actor": self.actor, "reason": self.reason, "labels": self.labels}
        return {name: value for name, value in parts.items() if value}


_NOTHING = Note()


@dataclass(frozen=True)
class Command:
    """What every command declares; by default it needs nothing."""

    expires: ClassVar[bool] = False  # leases on its accounts that have ended are given back first
    like: ClassVar[Command | None] = None  # of which it is a copy, but for its key

    @property
    def said(self) -> dict[str, Any]:
        """What its events say of who asked, and why."""
        note: Note = getattr(self, "note", _NOTHING)
        return note.said

    @property
    def asked(self) -> dict[str, Any]:
        """What a recorded refusal says of it; nothing if its refusals are not worth recording."""
        return {}

    @property
    def accounts(self) -> Collection[str]:
        """Accounts it names."""
        return ()

    @property
    def moves(self) -> Collection[str]:
        """Keys it moves: the accounts they are charged to are needed too."""
        return ()

    @property
    def claims(self) -> Collection[str]:
        """Keys it would make: needed if they are there, whatever they are charged to."""
        return ()

    def owners(self, account: Account, at: float) -> Collection[str]:
        """Whose balances it needs of an account, besides EVERYONE's and those of the keys it moves."""
        return ()

    def probably(self, at: float) -> Collection[str]:
        """The same before the account is known."""
        return ()


@dataclass(frozen=True)
class AddAccount(Command):
    """A dataset, or a group of datasets; `parent` is the group above it."""

    name: str
    adjacency: str
    unit: str
    group: bool = False
    parent: str | None = None
    blocks: str | None = None
    note: Note = Note()

    @property
    def accounts(self) -> Collection[str]:
        return (LEDGER, self.name, *([self.parent] if self.parent is not None else []))


@dataclass(frozen=True)
class SetBudget(Command):
    """An account's budget; with `every` its budget for each period beneath that; with `analyst` a quota."""

    account: str
    budget: Filter
    analyst: str = EVERYONE
    every: str | None = None
    above: tuple[str, ...] = ()  # groups whose currency it must fit
    note: Note = Note()

    @property
    def asked(self) -> dict[str, Any]:
        return {"asked": "budget", "budget": self.budget.to_dict(), "analyst": self.analyst}

    @property
    def accounts(self) -> Collection[str]:
        return (self.account, *self.above)

    def owners(self, account: Account, at: float) -> Collection[str]:
        return (self.analyst,)

    def probably(self, at: float) -> Collection[str]:
        return (self.analyst,)


@dataclass(frozen=True)
class Freeze(Command):
    account: str
    frozen: bool
    note: Note = Note()

    @property
    def accounts(self) -> Collection[str]:
        return (self.account,)


@dataclass(frozen=True)
class Reserve(Command):
    """Hold charges on datasets, and on the groups above them (`charges` has both)."""

    expires: ClassVar[bool] = True
    key: str
    request: str
    charges: Charges
    adjacency: str | None  # of the plan; None for a typed cost
    analyst: str
    lease: float  # seconds
    datasets: tuple[str, ...] = ()  # those that were named; () for all
    blocks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    every: tuple[str, ...] = ()  # periods its accounts were seen to have
    plan: dict[str, Any] | None = None
    label: str = ""
    note: Note = Note()

    def under(self, key: str) -> Reserve:
        """The same under another key. Such copies know each other by what they are `like`."""
        made = object.__new__(Reserve)
        parts = made.__dict__
        parts.update(self.__dict__)
        parts["key"], parts["like"] = key, self
        return made

    @property
    def asked(self) -> dict[str, Any]:
        asked = {"asked": "reserve", "key": self.key, "analyst": self.analyst}
        return {**asked, "charges": self.shown, "label": self.label}

    @functools.cached_property
    def shown(self) -> dict[str, dict[str, str]]:
        """The charges as an event has them."""
        return charges_to_json(self.charges)

    @property
    def accounts(self) -> Collection[str]:
        return self.charges.keys()

    @property
    def claims(self) -> Collection[str]:
        return (self.key,)

    def owners(self, account: Account, at: float) -> Collection[str]:
        return account.owners(self.analyst, at, self.blocks.get(account.name, ()))

    def probably(self, at: float) -> Collection[str]:
        return likely_owners(self.analyst, at, self.every, [block for each in self.blocks.values() for block in each])


@dataclass(frozen=True)
class Move(Command):
    """Start, commit or void a key. `run` is the hash of a token of the run that starts: with it one may ask again."""

    to: str
    key: str
    lease: float | None = None
    run: str = ""
    note: Note = Note()

    @property
    def asked(self) -> dict[str, Any]:
        return {"asked": {STARTED: "start", COMMITTED: "commit", VOIDED: "void"}[self.to], "key": self.key}

    @property
    def moves(self) -> Collection[str]:
        return (self.key,)


@dataclass(frozen=True)
class Attach(Command):
    """What an audit has found: about a key, and so all that it is charged to, or else about an account."""

    audit: dict[str, Any]  # its facts: `audit/record.py`
    account: str = ""
    key: str = ""
    note: Note = Note()

    @property
    def accounts(self) -> Collection[str]:
        return () if self.key else (self.account,)

    @property
    def moves(self) -> Collection[str]:
        return (self.key,) if self.key else ()


@dataclass(frozen=True)
class Token(Command):
    """A token of a service was made or revoked: who may act is history too. `facts` never hold its secret."""

    revoked: bool
    facts: dict[str, Any]
    note: Note = Note()

    @property
    def accounts(self) -> Collection[str]:
        return (LEDGER,)


@dataclass(frozen=True)
class Expire(Command):
    """Keys whose lease has ended: a reservation is given back, a started analysis counts as spent."""

    keys: tuple[str, ...]
    note: Note = Note()

    @property
    def moves(self) -> Collection[str]:
        return self.keys
