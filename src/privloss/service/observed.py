"""What is known of every request afterwards: one line of JSON in the log, and the counters.

A line holds the time, the request's id (also in the answer, as X-Request-Id), the route's template, the status, the
time it took, the token's id and the reason of a refusal.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import time
import traceback
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privloss.service.services import Services

LOG = logging.getLogger("privloss.service")
_OTHER = "other"  # paths that are no route: their number is not for strangers to choose


class Observed:
    """Stands before everything."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app, self._services = app, services
        self._counters: dict[tuple[str, int], Any] = {}
        self._process, self._numbers = secrets.token_hex(4), itertools.count(1)  # what requests are called

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        number, status, began = f"{self._process}-{next(self._numbers)}", 0, time.perf_counter()

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", number.encode())]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            state["error"] = error
            raise
        finally:
            self._count(state, status, time.perf_counter() - began)
            _write(state, number, scope["method"], status, time.perf_counter() - began)

    def _count(self, state: dict[str, Any], status: int, seconds: float) -> None:
        metrics = self._services.metrics
        where = state.get("route", _OTHER), status
        counter = self._counters.get(where)
        if counter is None:  # as many as there are routes and statuses
            counter = self._counters[where] = metrics.requests.labels(where[0], str(status))
        counter.inc()
        metrics.seconds.observe(seconds)
        if "reason" in state:
            metrics.refusals.labels(state["reason"]).inc()


def _write(state: dict[str, Any], number: str, method: str, status: int, seconds: float) -> None:
    if not LOG.isEnabledFor(logging.INFO):
        return
    line: dict[str, Any] = {"request": number, "method": method, "route": state.get("route", _OTHER), "status": status}
    line["ms"] = round(seconds * 1e3, 2)
    line |= {name: state[name] for name in ("token", "reason") if state.get(name)}
    error = state.get("error")
    level = logging.INFO if error is None else logging.ERROR
    line |= {} if error is None else {"error": type(error).__name__, "where": _where(error)}
    # not through LOG.info, which walks the stack for a place that nobody asks for
    LOG.handle(logging.LogRecord(LOG.name, level, "", 0, line, None, None))


def _where(error: BaseException) -> list[str]:
    """The places of a failure, without the values: those may be anybody's."""
    return [
        f"{frame.filename.rpartition('privloss/')[2]}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
