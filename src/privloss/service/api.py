"""The programs' side of the service: one ASGI application for everything below /v1.

A request is one hop: the event loop reads its body, a thread authenticates, authorises, reads it strictly, asks the
ledger and writes the answer; commands that repeat others are handled `together`. What needs a worker leaves the thread,
waits in the loop, and is handled again with what the worker has found; so no thread ever waits for a plan to be priced.
(Handling twice is harmless: prices come before commands, and every command takes effect once.)
"""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from privloss.service.calls import Needs
from privloss.service.exchange import Exchange
from privloss.service.problems import Problem
from privloss.service.routes import Router
from privloss.service.services import Services
from privloss.service.together import Together
from privloss.service.working import worked

_MOST_ROUNDS = 40  # of workers for one request: 16 datasets, each in its own currency, and periods beneath


class Api:
    """Serves the routes of the table."""

    def __init__(self, services: Services) -> None:
        self._services, self._router, self._together = services, Router(), Together(services)
        self._running = 0  # in threads, or waiting for one

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(self._services, scope)
        try:
            route, path = self._router.find(scope["method"], scope["raw_path"])
            exchange.matched(route, path)
            exchange.body = await _read(receive)
            response = await self._answered(exchange)
        except Exception as error:
            response = exchange.failed(error)
        try:
            await response(scope, receive, send)
        finally:  # also of a client that has gone before the end
            exchange.close()

    async def _answered(self, exchange: Exchange) -> Response:
        if self._together.takes(exchange):
            answer = await self._together.answered(exchange)
            if answer is not None:
                return answer
        for _ in range(_MOST_ROUNDS):
            found = await self._in_thread(exchange)
            if isinstance(found, Response):
                return found
            done = await worked(self._services, exchange.scope, found.job, found.arguments, exchange.caller)
            exchange.call.found[self._services.workers.name_of(found.job, found.arguments)] = done
        raise Problem(503, "busy", "the settings of the datasets go on changing; ask again", {"Retry-After": "1"})

    async def _in_thread(self, exchange: Exchange) -> Response | Needs:
        settings, loop = self._services.settings, asyncio.get_running_loop()
        if self._running >= settings.threads + settings.waiting:
            raise Problem(503, "busy", "too many requests are waiting; ask again", {"Retry-After": "1"})
        self._running += 1  # only the event loop counts
        try:
            return await loop.run_in_executor(self._services.threads, exchange.handle)
        finally:
            self._running -= 1


async def _read(receive: Receive) -> bytes:
    """The body; how long it may be is checked where it comes in (`guard`)."""
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "invalid", "the request ended before its body")
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)
