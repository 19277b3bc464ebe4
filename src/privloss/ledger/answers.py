"""What a ledger answers: a reservation, a quote, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privloss.errors import PrivlossError
from privloss.ledger import views
from privloss.ledger.commands import Reserve
from privloss.ledger.decide import Refusal, Refused
from privloss.ledger.state import Account, charges_to_json
from privloss.ledger.stores.base import LedgerError, Outcome


class RefusedError(PrivlossError):
    """The ledger says no; nothing was charged."""

    def __init__(self, refused: Refused, remaining: Mapping[str, Mapping[str, str]] | None = None) -> None:
        super().__init__(f"refused: {refused.text} ({refused.reason.code}).")
        self.refused, self.remaining = refused, remaining


class AlreadySpentError(RefusedError, LedgerError):
    """The key was started before: by another caller, or by one that has ended. What it was charged stays charged."""


@dataclass(frozen=True)
class Reservation:
    """A key and where it stands."""

    key: str
    state: str
    outcome: Outcome = field(repr=False)

    @classmethod
    def of(cls, key: str, outcome: Outcome) -> Reservation:
        made = object.__new__(cls)  # as its __init__ would, in a third of the time
        made.__dict__.update(key=key, state=outcome.state or "", outcome=outcome)
        return made

    @property
    def charged(self) -> dict[str, dict[str, str]]:
        """What each account was charged, by component."""
        return charges_to_json(self.outcome.charges)

    @property
    def remaining(self) -> dict[str, dict[str, str]]:
        """What is left of each account's budget."""
        return _shown(self.outcome.remaining)


def accepted(outcome: Outcome) -> Outcome:
    if outcome.refused is None:
        return outcome
    again = outcome.refused.reason is Refusal.ALREADY_STARTED
    raise (AlreadySpentError if again else RefusedError)(outcome.refused, _shown(outcome.remaining))


def quoted(account: Account, command: Reserve, refused: Refused | None, now: float) -> dict[str, Any]:
    """What would be left to the owner that has least."""
    parts = command.charges[account.name]
    owners = [owner for owner in command.owners(account, now) if account.budget_of(owner) is not None]
    left: dict[str, Fraction] = {}  # empty without an owner: no budget, or no blocks named
    for part, amount in ((part, amount) for owner in owners for part, amount in account.remaining(owner).items()):
        left[part] = min(amount, left.get(part, amount))
    shown = views.shown({part: left[part] - amount for part, amount in parts.items() if part in left})
    found = {"charged": views.shown(parts), "remaining": shown, "fits": refused is None}
    return found if refused is None else {**found, "refused": refused.reason.code, "text": refused.text}


def _shown(left: Mapping[str, Mapping[str, Fraction]]) -> dict[str, dict[str, str]]:
    return {name: views.shown(parts) for name, parts in left.items()}
