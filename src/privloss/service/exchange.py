"""One request of a program and its answer: it is read strictly, asked in a caller's name, and told what came of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import IO, Any
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from privloss.ledger.stores.base import NoAnswer
from privloss.service import shown, strict
from privloss.service.access import ANYBODY, NOBODY, Caller, demand
from privloss.service.callers import caller_of, note
from privloss.service.calls import Answer, Call, Needs
from privloss.service.problems import Problem, bad, problem_of
from privloss.service.routes import Route
from privloss.service.services import Services
from privloss.service.shapes import Shape

_PIECE = 2**16
_JSON = "application/json"
_SMALL, _KNOWN = 1024, 256  # bytes of a body that is remembered as it was read; so many of them
_TEXT = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode


class Exchange:
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
            self.call = self.begun(caller_of(self.services, self.scope, self.route.action))
            self._begun = True
        try:
            answer = self.route.handler(self.call)
            if hasattr(answer.body, "close"):
                self._file = answer.body
            return response(answer)
        except Needs as needs:
            return needs

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def begun(self, caller: Caller) -> Call:
        """What the handler will see, in the name of a caller that is known."""
        self.caller = caller
        demand(caller, self.route.action)
        query = _query(self.scope["query_string"], self.route)
        return Call(self.services, caller, self.path, query, self._shaped())

    def _shaped(self) -> Any:
        shape = self.route.shape
        if shape is None:
            if self.body:
                raise bad("this route takes no body")
            return None
        kind = self.headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if self.body and kind != _JSON.encode():
            raise Problem(415, "not-json", "the body must be application/json")
        try:
            if self.route.command is not None and len(self.body) <= _SMALL:
                return _known(shape, self.body)
            return _read(shape, self.body)
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


def _read(shape: type[Shape], body: bytes) -> Shape:
    return shape.model_validate(strict.loads(body) if body else {})


# programs that spend send the same again and again, for another key
_known = functools.lru_cache(maxsize=_KNOWN)(_read)


def _where(problem: ValidationError) -> str:
    """What is wrong with the first field that is, without what was given."""
    first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part)[:40] for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def response(answer: Answer) -> Response:
    if hasattr(answer.body, "read"):
        return StreamingResponse(
            iterate_in_threadpool(_pieces(answer.body)), answer.status, dict(answer.headers), answer.media
        )
    text = answer.body if isinstance(answer.body, bytes) else _TEXT(answer.body)
    if answer.media == _JSON and not answer.headers:
        return _Json(text, answer.status)
    return Response(text, answer.status, dict(answer.headers), answer.media)


class _Json(Response):
    """The answer that is given most often; its headers need no looking at."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        self.raw_headers = [(b"content-length", b"%d" % len(self.body)), (b"content-type", _JSON.encode())]


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
