"""What was left of a budget over time, from the last events of a dataset's history.

What is committed and held now is known exactly; going back from there, event by event, gives what it was before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privloss.service.access import allowed
from privloss.service.pages.parts import Part
from privloss.service.pages.pictures import Drawn, amount, left
from privloss.service.pages.visits import Visit

_LAST = 500  # events


def drawn(visit: Visit, name: str, part: Part | None, status: Mapping[str, Any]) -> Drawn | None:
    """None where there is nothing to draw, or where the visitor sees only part of the history: to an analyst the
    times of others' spending are not told."""
    if part is None or visit.caller.is_analyst or not allowed(visit.caller, "history"):
        return None
    events = visit.ledger.history(name, last=_LAST)
    component = _component(part.name)
    charges = {event["key"]: event["charges"] for event in events if "charges" in event and "key" in event}
    moves = [(event["at"], *_moved(event, _charge(visit, event, name, component, charges))) for event in events]
    if not any(done or held for _, done, held in moves):
        return None
    committed = amount(part.committed) - sum(done for _, done, _ in moves)
    reserved = amount(part.held) - sum(held for _, _, held in moves)
    moments = []
    for at, done, held in moves:
        committed, reserved = committed + done, reserved + held
        moments.append((at, max(committed, 0.0), max(reserved, 0.0)))
    moments.append((visit.services.clock(), amount(part.committed), amount(part.held)))
    freezes = [event["at"] for event in events if event.get("frozen") or event["kind"] == "restored"]
    return left(moments, amount(part.cap), freezes, part.name)


def _component(name: str) -> str:
    return name.replace(" squared", "_squared")


def _moved(event: Mapping[str, Any], size: float) -> tuple[float, float]:
    """By how much an event changes what is committed and what is held."""
    changes = {"reserved": (0.0, size), "committed": (size, -size), "voided": (0.0, -size)}
    return changes.get(event["kind"], (0.0, 0.0))


def _charge(visit: Visit, event: Mapping[str, Any], name: str, part: str, known: dict[str, Any]) -> float:
    """What the event's key was charged: a key's later events do not say it again."""
    if event["kind"] not in ("reserved", "committed", "voided"):
        return 0.0
    key = event["key"]
    if key not in known:
        held = visit.services.ledger.reservation(key)
        known[key] = {} if held is None else held.charged
    found = known[key].get(name, {})
    return amount(next(iter(found.values()))) if len(found) == 1 else amount(found.get(part, "0"))
