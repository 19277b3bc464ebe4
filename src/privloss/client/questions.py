"""What a ledger is asked, as requests to a service (docs/service.md has the routes)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from privloss.client.asking import Question
from privloss.errors import InvalidInput
from privloss.ledger.amounts import read
from privloss.ledger.commands import AddAccount, Attach, Command, Freeze, Move, Note
from privloss.ledger.names import name
from privloss.ledger.requests import Request
from privloss.ledger.state import COMMITTED, EVERYONE

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:-]{0,119}")


def given(**parts: Any) -> dict[str, Any]:
    """The members of a JSON object that say something."""
    return {name: value for name, value in parts.items() if value not in (None, "", {})}


def told(note: Note) -> dict[str, Any]:
    """Why; who acts is known from the token."""
    return given(reason=note.reason, labels=note.labels)


def dataset(name: str, *more: str) -> str:
    """The route of a dataset or group."""
    return "/".join(["/v1/datasets", *(quote(part, safe="") for part in (name, *more))])


def odometer(name: str, delta: float | None) -> Question:
    """A delta that is no number is the service's to refuse, in the ledger's words."""
    query = "" if delta is None else f"?{urlencode({'delta': repr(delta)})}"
    return Question("GET", dataset(name, "odometer") + query)


def new_key(value: Any) -> str:
    """A key as a service takes it from an analyst, whose name it puts before it."""
    if not _KEY.fullmatch(name("key", value)):
        raise InvalidInput(
            f"key = {value!r}: a service takes 1 to 120 letters, digits and . _ ~ : -, of which the first is a letter "
            "or digit."
        )
    return str(value)


def reservation(key: str, *move: str) -> str:
    """The route of a key: an analyst's own, or as a history shows it (analyst/key), for whoever sees it there."""
    return "/".join(["/v1/reservations", quote(name("key", key), safe=""), *move])


def amount(name: str, value: Any) -> str | None:
    """An amount as it was typed: the ledger's own rounding comes once, at the service."""
    if value is None:
        return None
    read(name, value)
    return repr(float(value)) if isinstance(value, float) else str(value).strip()


def whose(analyst: str) -> None:
    """A service knows who asks."""
    if analyst != EVERYONE:
        raise InvalidInput(f"analyst = {analyst!r}: at a service the token says who asks; leave it out.")


def asked(request: Request) -> dict[str, Any]:
    """What is to be spent on, and what for."""
    blocks = list(request.blocks) if isinstance(request.blocks, tuple) else request.blocks
    return given(
        datasets=list(request.datasets),
        plan=request.body,
        cost=amount("cost", request.cost),
        cost_delta=amount("cost-delta", request.cost_delta),
        blocks=blocks,
    )


def question(command: Command) -> Question:
    """The request for a command that needs no price and no token of a run."""
    if isinstance(command, AddAccount):
        facts = given(
            adjacency=command.adjacency,
            unit=command.unit,
            parent=command.parent,
            blocks=command.blocks,
            group=command.group or None,
        )
        # asked twice, the second answer would be that it exists
        return Question("PUT", dataset(command.name), {**facts, **told(command.note)}, repeatable=False)
    if isinstance(command, Freeze):
        return Question("PUT", dataset(command.account, "frozen"), {"frozen": command.frozen, **told(command.note)})
    if isinstance(command, Move):
        move = "commit" if command.to == COMMITTED else "void"
        return Question("POST", reservation(command.key, move), told(command.note))
    raise AssertionError(f"{command} is asked in another way")


def attached(command: Attach, audit: Mapping[str, Any]) -> Question:
    place = reservation(command.key, "audits") if command.key else dataset(command.account, "audits")
    return Question("POST", place, {"audit": audit, "date": command.audit["date"], **told(command.note)}, False)
