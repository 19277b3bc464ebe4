"""Stands before the application: every request passes here, and every answer.

Pure ASGI, so that nothing is read or answered before it was looked at (`guard`), and nothing goes unseen (`observed`).
"""

from __future__ import annotations

import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privloss.service.callers import note
from privloss.service.guard import checked, every_answer, too_large
from privloss.service.observed import Observed
from privloss.service.problems import problem_of
from privloss.service.services import Services


class Entrance:
    """The application behind it sees only what is let in."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app, self._settings, self._names = app, services.settings, services.settings.names
        self._observed = Observed(services.metrics)
        self._headers = [(name.encode(), text.encode()) for name, text in every_answer(services.settings).items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the server's own start and end; there are no websockets
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        number, began = self._observed.name(), time.perf_counter()
        passing = _Passing(receive, send, self._settings.longest_body, self._headers, number)
        try:
            await self._let_in(scope, passing)
        except Exception as error:
            state["error"] = error
            raise
        finally:
            self._observed.tell(scope, number, passing.status, time.perf_counter() - began)

    async def _let_in(self, scope: Scope, passing: _Passing) -> None:
        try:
            checked(scope, self._settings, self._names)
            await self._app(scope, passing.receive, passing.send)
        except Exception as error:
            if passing.status:
                raise
            problem = problem_of(error)
            note(scope, reason=problem.reason, **({"error": error} if problem.status == 500 else {}))
            await problem.response()(scope, passing.receive, passing.send)


class _Passing:
    """What passes of one request: a body up to a length, whether it was announced or comes in chunks; an answer with
    the headers that every answer has."""

    __slots__ = ("_headers", "_left", "_longest", "_number", "_receive", "_send", "status")

    def __init__(
        self, receive: Receive, send: Send, longest: int, headers: list[tuple[bytes, bytes]], number: str
    ) -> None:
        self._receive, self._send = receive, send
        self._left = self._longest = longest
        self._headers, self._number = headers, number
        self.status = 0  # until an answer has begun

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise too_large(self._longest)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name for name, _ in message["headers"]}
            more = [each for each in self._headers if each[0] not in own]
            message["headers"] = [*message["headers"], *more, (b"x-request-id", self._number.encode())]
        await self._send(message)
