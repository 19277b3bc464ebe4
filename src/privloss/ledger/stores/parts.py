"""What stores hand over: outcomes, findings, entries of the log, and the part of a ledger that a transaction holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from privloss.errors import PrivlossError
from privloss.ledger.commands import Command
from privloss.ledger.refusals import Refused
from privloss.ledger.state import Charges, State


class LedgerError(PrivlossError):
    """The ledger cannot be used as asked; nothing was changed."""


class NoAnswer(LedgerError):
    """What keeps the ledger does not answer: a database, a service."""


class LostReply(LedgerError):
    """It is not known whether the command took effect: asking again under the same key gives the answer."""


class Outcome(NamedTuple):
    """What a command did: a refusal if there was one, where its key stands, what is left on its accounts; and whether
    it took effect now, and had not before (which is no difference: a request that is repeated has the same outcome)."""

    refused: Refused | None
    state: str | None
    charges: Charges
    remaining: Mapping[str, Mapping[str, Fraction]]
    made: bool = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and self[:4] == other[:4]

    @classmethod
    def of(cls, command: Command, refused: Refused | None, state: State, now: float, made: bool = True) -> Outcome:
        keys = [key for key in (*command.moves, *command.claims) if key in state.analyses]
        found = state.analyses[keys[0]] if keys else None
        names = command.accounts if found is None or refused is not None else found.charges
        moved = found.on if found is not None and command.moves else {}
        known = [state.accounts[name] for name in sorted(names) if name in state.accounts]
        left = {
            each.name: each.left((moved.get(each.name) or command.owners(each, now)) if each.blocks else ())
            for each in known
        }
        return cls(refused, None if found is None else found.state, {} if found is None else found.charges, left, made)


@dataclass(frozen=True)
class Finding:
    """One line of a check-up."""

    check: str
    ok: bool
    text: str


@dataclass
class Loaded:
    """The part of a ledger that is known: its state, the end of every chain, and which rows the tables have of it."""

    now: float
    state: State = field(default_factory=State)
    ends: dict[str, tuple[int, str]] = field(default_factory=dict)
    accounts: set[str] = field(default_factory=set)  # that have a row
    owners: set[tuple[str, str]] = field(default_factory=set)  # of an account, all of whose balances are known
    balances: set[tuple[str, str, str]] = field(default_factory=set)  # that have a row
    analyses: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # their rows
    soonest: dict[str, float] = field(default_factory=dict)  # of an account: no open lease ends before
    late: tuple[str, ...] = ()  # keys whose lease on one of the accounts has ended
    last: int = 0  # the number of the last event, where that is kept
    patterns: dict[int, Any] = field(default_factory=dict)  # what `repeats` has learned, while settings are the same

    settled: bool = False  # nothing has changed since `settle`

    def settle(self) -> None:
        """All that has changed is written; what goes on to be known is the accounts."""
        if self.settled:
            return
        self.settled = True
        for account in self.state.accounts.values():
            if account.changed:
                self.patterns.clear()
                account.changed = False
            account.moved.clear()
        self.state.analyses, self.analyses, self.late = {}, {}, ()


@dataclass(frozen=True, slots=True)
class Entry:
    """An event as it stands in one chain."""

    number: int  # grows along every chain, and from each event to the next in any of them
    chain: str
    seq: int
    previous: str
    body: str
    hash: str
