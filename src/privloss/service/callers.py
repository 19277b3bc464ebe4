"""Who asks: the holder of the token in the `Authorization` header, and of nothing else (never a query, never a
cookie); and how often this caller may ask."""

from __future__ import annotations

import math
from typing import Any

from starlette.types import Scope

from privloss.service.access import ANYBODY, Caller
from privloss.service.limits import network
from privloss.service.problems import Problem
from privloss.service.services import Services

_BEARER = "bearer "
_ASK = {"WWW-Authenticate": "Bearer"}


def caller_of(services: Services, scope: Scope, action: str) -> Caller:
    """The caller, within its limits. Somebody without a token may use the calculator, where the settings permit it."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if not given and action == "calculate" and services.settings.public_calculator:
        _within(services.rates.take(f"at {address(scope)}"))
        return ANYBODY
    if len(given) != 1:
        raise Problem(401, "token", "a token is needed: Authorization: Bearer pl_...", _ASK)
    token = services.tokens.authenticate(bearer(given[0]))
    if token is None:
        failed(services, scope)
        raise Problem(401, "token", "the token is not known, was revoked or has expired", _ASK)
    note(scope, token=token.id)
    _within(services.rates.take(token.id))
    return token.caller


def bearer(given: bytes) -> str:
    """The token in an `Authorization` header; nothing that is one if it holds none."""
    text = given.decode("latin-1")
    return text[len(_BEARER) :] if text[: len(_BEARER)].lower() == _BEARER else ""


def failed(services: Services, scope: Scope) -> None:
    """Count a failed login against its address. One that knows a token is let in all the same: addresses are shared."""
    services.metrics.failed_logins.inc()
    _within(services.logins.take(address(scope)), "failed logins of this address")


def address(scope: Scope) -> str:
    """Where a request comes from; behind a proxy that is believed, what this says (the server has looked)."""
    client = scope.get("client")
    return network(client[0]) if client else ""


def note(scope: Scope, **facts: Any) -> None:
    """What the log and the metrics say of a request."""
    scope.setdefault("state", {}).update(facts)


def _within(seconds: float, what: str = "requests") -> None:
    if seconds > 0:
        text = f"too many {what}; ask again in {math.ceil(seconds)} s"
        raise Problem(429, "rate", text, {"Retry-After": str(math.ceil(seconds))})
