"""Errors as RFC 9457 problem documents: one `reason` for programs, one sentence for people, and never the input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from privloss.errors import InvalidInput, PrivlossError
from privloss.ledger.answers import RefusedError
from privloss.ledger.refusals import Refusal
from privloss.ledger.stores.base import LedgerError, LostReply

TYPE = "application/problem+json"
_TITLES = {
    400: "Bad request", 401: "Who are you?", 403: "Not allowed", 404: "Not found", 405: "Method not allowed",
    408: "Too slow", 409: "Refused", 413: "Too large", 415: "Not JSON", 421: "Not this host", 422: "No answer",
    429: "Too often", 431: "Headers too large", 500: "Failed", 502: "Not known", 503: "Busy",
}  # fmt: skip
_MISSING = (Refusal.UNKNOWN_DATASET, Refusal.UNKNOWN_KEY)


class Problem(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, reason: str, text: str, headers: Mapping[str, str] | None = None, **more: Any):
        super().__init__(text)
        self.status, self.reason, self.text = status, reason, text
        self.headers, self.more = dict(headers or {}), more

    @property
    def body(self) -> dict[str, Any]:
        start = {"type": "about:blank", "title": _TITLES.get(self.status, "Error"), "status": self.status}
        return {**start, "reason": self.reason, "text": self.text, "detail": self.text, **self.more}

    def response(self) -> Response:
        return Response(json.dumps(self.body), self.status, self.headers, media_type=TYPE)


def bad(text: str) -> Problem:
    return Problem(400, "invalid", text)


def unknown_dataset(name: str) -> Problem:
    """The same words for a dataset that is not there and one that the caller may not see."""
    return Problem(404, "unknown-dataset", f"dataset {name!r} is not in this ledger")


def problem_of(error: Exception) -> Problem:
    """What a failure is told as. What nobody foresaw is told without its text, which may hold anything."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RefusedError):
        refused = error.refused
        facts: dict[str, Any] = {
            "charged": refused.charged,
            "remaining": error.remaining,
            "shortfall": refused.shortfall,
        }
        status = 404 if refused.reason in _MISSING else 409
        return Problem(status, refused.reason.code, refused.text, **{k: v for k, v in facts.items() if v})
    if isinstance(error, LostReply):
        text = "it is not known whether it took effect; the same request again gives the answer"
        return Problem(502, "lost-reply", text)
    if isinstance(error, LedgerError):  # its text may name the place of the database
        return Problem(503, "busy", "the ledger does not answer; ask again", {"Retry-After": "1"})
    if isinstance(error, InvalidInput):
        return bad(_short(str(error)))
    if isinstance(error, PrivlossError):
        return Problem(422, "unsupported", _short(str(error)))
    return Problem(500, "failed", "the service failed; its log says more under this request's id")


def _short(text: str) -> str:
    """Messages repeat what was given; a long one is cut."""
    return text if len(text) <= 500 else text[:300] + " ... " + text[-190:]
