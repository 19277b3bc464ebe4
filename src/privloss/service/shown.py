"""How answers are shown: exact texts, and beside them what they are about, as doubles for display."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from privloss.ledger.answers import Reservation
from privloss.service.access import Caller

_AMOUNTS = ("cap", "committed", "reserved", "remaining")


def approx(value: Any) -> Any:
    """Amounts as doubles; for display only."""
    if isinstance(value, Mapping):
        return {name: approx(each) for name, each in value.items()}
    return float(Fraction(value))


def reservation(held: Reservation, caller: Caller) -> dict[str, Any]:
    """A key as its owner knows it, on the accounts that the caller may see: a group above them may be another's."""
    parts = {"charged": held.charged, "remaining": held.remaining}
    shown = {what: {name: each for name, each in found.items() if caller.sees(name)} for what, found in parts.items()}
    return {"key": caller.own_key(held.key), "state": held.state, **shown, "approx": approx(shown)}


def status(found: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """A dataset's status; to an analyst without what others have and have spent."""
    shown = dict(found)
    if caller.is_analyst:
        own = {who: row for who, row in shown.pop("analysts", {}).items() if who == caller.analyst}
        shown |= {"analysts": own} if own else {}
        if "parent" in shown and not caller.sees(shown["parent"]):
            del shown["parent"]
    return {**shown, "approx": approx({part: shown[part] for part in _AMOUNTS if part in shown})}


def event(found: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    return {**found, "key": caller.own_key(found["key"])} if "key" in found else dict(found)


def problem(more: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """The amounts of a refusal, on the accounts that the caller may see."""
    shown = dict(more)
    for part in ("charged", "remaining"):
        if isinstance(shown.get(part), Mapping):
            shown[part] = {name: each for name, each in shown[part].items() if caller.sees(name)}
    return shown
