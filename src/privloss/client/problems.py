"""What a service says when it says no, as the exception that a local ledger would have raised.

A refusal by the ledger is `RefusedError` with the same reason; a broken rule of an argument `InvalidInput`; a plan for
which there is no bound, or none in the time and memory there is, `Unsupported`; a token that does not permit it
`NotAllowed`; a failure in the middle `LostReply`; whatever else `LedgerError`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from privloss.client.connection import Reply
from privloss.errors import InvalidInput, Unsupported
from privloss.ledger.answers import AlreadySpentError, RefusedError
from privloss.ledger.refusals import Refusal, Refused
from privloss.ledger.stores.base import LedgerError, LostReply

_REASONS = {refusal.code: refusal for refusal in Refusal}


class NotAllowed(LedgerError):
    """The token is unknown, has ended, or does not permit this."""


class NotThere(LedgerError):
    """What was asked for is not there (yet)."""


# by reason first; a proxy in between gives none, and is known by its status
_KINDS: dict[str, type[Exception]] = {
    "token": NotAllowed,
    "role": NotAllowed,
    "invalid": InvalidInput,
    "not-json": InvalidInput,
    "too-large": InvalidInput,
    "too-deep": InvalidInput,
    "unsupported": Unsupported,
    "price-timeout": Unsupported,
    "price-memory": Unsupported,
    "not-verified": NotThere,
    "lost-reply": LostReply,
    "failed": LostReply,
}
_BY_STATUS: dict[int, type[Exception]] = {
    400: InvalidInput, 401: NotAllowed, 403: NotAllowed, 413: InvalidInput, 500: LostReply, 502: LostReply,
    504: LostReply,
}  # fmt: skip


def body_of(reply: Reply) -> Any:
    """The JSON object of an answer."""
    found = _object(reply.body)
    if found is None:
        raise LedgerError(f"the service answered {reply.status} with something that is not JSON.")
    return found


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def problem_of(reply: Reply) -> Exception:
    """An answer that is no success, as an exception."""
    said = _said(reply)
    reason, text = str(said.get("reason", "")), str(said.get("text") or said.get("detail") or "")
    if reason in _REASONS:
        refused = Refused(_REASONS[reason], text, said.get("charged"), said.get("shortfall"))
        kind = AlreadySpentError if refused.reason is Refusal.ALREADY_STARTED else RefusedError
        return kind(refused, said.get("remaining") or {})
    found = _KINDS.get(reason) or _BY_STATUS.get(reply.status, LedgerError)
    if found in (InvalidInput, Unsupported) and text:
        return found(text)  # the sentence that a ledger kept here says
    shown = f"{text or 'the service gave no reason'} ({reply.status}{f' {reason}' if reason else ''})"
    if found is LostReply:
        return LostReply(f"the service answered: {shown}; it is not known whether it took effect.")
    return found(f"token: {shown}." if found is NotAllowed else f"the service answered: {shown}.")


def _said(reply: Reply) -> Mapping[str, Any]:
    if "json" not in reply.headers.get("content-type", ""):
        return {}  # of a proxy, perhaps
    return _object(reply.body) or {}
