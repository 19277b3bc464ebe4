"""What a service answers, as a local ledger would have said it.

Beside exact texts a service shows doubles (`approx`), for people and charts; here they are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privloss.ledger.answers import Reservation
from privloss.ledger.odometers import Reading
from privloss.ledger.state import charges_from_json
from privloss.ledger.stores.base import LedgerError, Outcome
from privloss.ledger.verify import Audit


def exact(found: Mapping[str, Any]) -> dict[str, Any]:
    """A status, or a row of a quote, without its doubles."""
    return {name: value for name, value in found.items() if name != "approx"}


def outcome(answer: Mapping[str, Any]) -> Outcome:
    """Where a key stands; of other commands (whose answer is a dataset's status) there is nothing to tell."""
    if "key" not in answer:
        return Outcome(None, None, {}, {})
    charged, left = (charges_from_json(answer.get(part) or {}) for part in ("charged", "remaining"))
    return Outcome(None, answer.get("state"), charged, left)


def reservation(key: str, answer: Mapping[str, Any]) -> Reservation:
    return Reservation.of(key, outcome(answer))


def reading(answer: Mapping[str, Any]) -> Reading:
    return Reading(*(answer[name] for name in ("epsilon", "delta", "theorem", "dominated")))


def audit(found: Mapping[str, Any]) -> Audit:
    """The result of a run of `verify` that has ended."""
    problems = tuple(found["problems"])
    if found["clean"] is None:
        raise LedgerError(f"the service could not verify its ledger ({'; '.join(problems)}).")
    ends = {name: (seq, link) for name, (seq, link) in found["ends"].items()}
    return Audit(problems, found["events"], ends, found["attached"], found["refuted"])
