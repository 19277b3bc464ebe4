"""What a service says when it says no, as the exception that a local ledger would have raised.

A refusal by the ledger is `RefusedError` with the same reason; a broken rule of an argument `InvalidInput`; a token
that does not permit it `NotAllowed`; whatever else `LedgerError`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from privloss.client.connection import Reply
from privloss.errors import InvalidInput
from privloss.ledger.answers import AlreadySpentError, RefusedError
from privloss.ledger.refusals import Refusal, Refused
from privloss.ledger.stores.base import LedgerError

_BAD_INPUT = (400, 413, 415, 422)
_REASONS = {refusal.code: refusal for refusal in Refusal}


class NotAllowed(LedgerError):
    """The token is unknown, has ended, or does not permit this."""


def body_of(reply: Reply) -> Any:
    """The JSON of an answer."""
    try:
        return json.loads(reply.body)
    except ValueError:
        raise LedgerError(f"the service answered {reply.status} with something that is not JSON.") from None


def problem_of(reply: Reply) -> Exception:
    """An answer that is no success, as an exception."""
    said = _said(reply)
    reason, text = str(said.get("reason", "")), str(said.get("text") or said.get("detail") or "")
    if reason in _REASONS:
        refused = Refused(_REASONS[reason], text, said.get("charged"), said.get("shortfall"))
        kind = AlreadySpentError if refused.reason is Refusal.ALREADY_STARTED else RefusedError
        return kind(refused, said.get("remaining"))
    shown = f"{text or 'the service gave no reason'} ({reply.status}{f' {reason}' if reason else ''})."
    if reply.status in (401, 403):
        return NotAllowed(f"token: {shown}")
    if reply.status in _BAD_INPUT:
        return InvalidInput(text if reason == "invalid" and text else shown)
    return LedgerError(f"the service answered: {shown}")


def _said(reply: Reply) -> Mapping[str, Any]:
    if "json" not in reply.headers.get("content-type", ""):
        return {}  # of a proxy, perhaps
    found = body_of(reply)
    return found if isinstance(found, dict) else {}
