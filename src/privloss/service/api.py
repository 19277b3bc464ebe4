"""The programs' side of the service: one ASGI application for everything below /v1.

A request is one hop: the event loop reads its body, a thread authenticates, authorises, reads it strictly, asks the
ledger and writes the answer. What needs a worker leaves the thread, waits in the loop, and is handled again with what
the worker has found; so no thread ever waits for a plan to be priced. (Handling twice is harmless: prices come before
commands, and every command takes effect once.)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from privloss.ledger.stores.base import NoAnswer
from privloss.service import shown, strict
from privloss.service.access import ANYBODY, NOBODY, Caller, demand
from privloss.service.callers import caller_of, note
from privloss.service.calls import Answer, Call, Needs
from privloss.service.problems import Problem, bad, problem_of
from privloss.service.routes import Route, Router
from privloss.service.services import Services
from privloss.service.working import worked

_MOST_ROUNDS = 40  # of workers for one request: 16 datasets, each in its own currency, and periods beneath
_PIECE = 2**16


class Api:
    """Serves the routes of the table."""

    def __init__(self, services: Services) -> None:
        self._services, self._router = services, Router()
        self._running = 0  # in threads, or waiting for one

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(self._services, scope)
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

    async def _answered(self, exchange: _Exchange) -> Response:
        for _ in range(_MOST_ROUNDS):
            found = await self._in_thread(exchange)
            if isinstance(found, Response):
                return found
            done = await worked(self._services, exchange.scope, found.job, found.arguments, exchange.caller)
            exchange.call.found[self._services.workers.name_of(found.job, found.arguments)] = done
        raise Problem(503, "busy", "the settings of the datasets go on changing; ask again", {"Retry-After": "1"})

    async def _in_thread(self, exchange: _Exchange) -> Response | Needs:
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


class _Exchange:
    """One request and what is known of it so far."""

    def __init__(self, services: Services, scope: Scope) -> None:
        self.services, self.scope, self.body = services, scope, b""
        self.caller: Caller = ANYBODY
        self.headers = dict(scope["headers"])
        self.route: Route
        self.path: dict[str, str] = {}
        self.call: Call
        self._begun = False
        self._file: IO[bytes] | None = None  # that is answered

    def matched(self, route: Route, path: dict[str, str]) -> None:
        self.route, self.path = route, path
        note(self.scope, route=route.template)

    def handle(self) -> Response | Needs:
        """In a thread."""
        if not self._begun:
            self.call = self._begin()
            self._begun = True
        try:
            answer = self.route.handler(self.call)
            if hasattr(answer.body, "close"):
                self._file = answer.body
            return _response(answer)
        except Needs as needs:
            return needs

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _begin(self) -> Call:
        self.caller = caller_of(self.services, self.scope, self.route.action)
        demand(self.caller, self.route.action)
        query = _query(self.scope["query_string"], self.route)
        return Call(self.services, self.caller, self.path, query, self._shaped())

    def _shaped(self) -> Any:
        shape = self.route.shape
        if shape is None:
            if self.body:
                raise bad("this route takes no body")
            return None
        kind = self.headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if self.body and kind != b"application/json":
            raise Problem(415, "not-json", "the body must be application/json")
        try:
            return shape.model_validate(strict.loads(self.body) if self.body else {})
        except ValidationError as problem:
            raise bad(_where(problem)) from None

    def failed(self, error: Exception) -> Response:
        problem = problem_of(error)
        note(self.scope, reason=problem.reason)
        if problem.status == 500 or isinstance(error, NoAnswer):
            note(self.scope, error=error)
        if self.caller.role != NOBODY:
            shown.problem(problem, self.caller)
        if self.caller.is_analyst and "key" in self.path:
            key = self.path["key"]
            problem.text = problem.text.replace(repr(self.caller.stored_key(key)), repr(key))
        return problem.response()


def _query(raw: bytes, route: Route) -> dict[str, str]:
    """The query, with no name twice and none that the route does not know."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=20
        )
    except ValueError:
        raise bad("the query cannot be read") from None
    found = dict(pairs)
    unknown = sorted(set(found) - set(route.query))
    if len(found) < len(pairs) or unknown:
        raise bad(f"the query may have {', '.join(route.query) or 'no names'}, each once")
    if not all(value.isprintable() and len(value) <= 200 for value in found.values()):
        raise bad("the query holds a value that is too long, or cannot be printed")
    return found


def _where(problem: ValidationError) -> str:
    """What is wrong with the first field that is, without what was given."""
    first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part)[:40] for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _response(answer: Answer) -> Response:
    if hasattr(answer.body, "read"):
        return StreamingResponse(
            iterate_in_threadpool(_pieces(answer.body)), answer.status, dict(answer.headers), answer.media
        )
    text = json.dumps(answer.body, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Response(text, answer.status, dict(answer.headers), answer.media)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
