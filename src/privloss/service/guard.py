"""What every request passes, pages included: the host it asks for, the size of what it sends, the headers it gets.

Pure ASGI, so that nothing is read or answered before it was looked at.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privloss.service.callers import note
from privloss.service.problems import Problem, problem_of
from privloss.service.services import Services
from privloss.service.settings import Settings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_YEAR = "max-age=31536000; includeSubDomains"


def every_answer(settings: Settings) -> dict[str, str]:
    """The headers of all answers."""
    secure = {"strict-transport-security": _YEAR} if settings.tls or settings.behind_proxy else {}
    return {**_HEADERS, "cache-control": "no-store", **secure}


def not_http(settings: Settings) -> bytes:
    """The whole answer to what is no HTTP request: nobody else is there yet to write it."""
    problem = Problem(400, "invalid", "this is not an HTTP request", {"Connection": "close"}).response()
    lines = {**every_answer(settings), **dict(problem.headers)}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 400 Bad Request\r\n{head}\r\n".encode("ascii") + bytes(problem.body)


class Guard:
    """Stands before the application."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app, self._settings, self._names = app, services.settings, services.settings.names
        self._headers = [(name.encode(), text.encode()) for name, text in every_answer(services.settings).items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the server's own start and end; there are no websockets
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        counted = _Counted(receive, self._settings.longest_body)
        sent = _Sent(send, self._headers)
        try:
            _check(scope, self._settings, self._names)
            await self._app(scope, counted, sent)
        except Exception as error:
            if sent.begun:
                raise
            problem = problem_of(error)
            note(scope, reason=problem.reason, **({"error": error} if problem.status == 500 else {}))
            await problem.response()(scope, receive, sent)


class _Counted:
    """Receives a body up to a length, whether it was announced or comes in chunks."""

    def __init__(self, receive: Receive, longest: int) -> None:
        self._receive, self._left, self._longest = receive, longest, longest

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise too_large(self._longest)
        return message


class _Sent:
    """Sends an answer with the headers that every answer has."""

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self._send, self._headers, self.begun = send, headers, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            own = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(each for each in self._headers if each[0] not in own)]
        await self._send(message)


def too_large(longest: int) -> Problem:
    return Problem(413, "too-large", f"a body has at most {longest} bytes", {"Connection": "close"})


def _check(scope: Scope, settings: Settings, names: frozenset[str]) -> None:
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    if sum(len(name) + len(value) for name, value in headers) > settings.longest_headers:
        text = f"the headers have at most {settings.longest_headers} bytes in all"
        raise Problem(431, "too-large", text, {"Connection": "close"})
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1 or host_name(hosts[0].decode("latin-1")) not in names:
        raise Problem(421, "host", "this service does not answer for that host; see --host-name")
    lengths = [name for name, _ in headers if name in (b"content-length", b"transfer-encoding")]
    if len(lengths) > 1:  # a proxy before us might have read the other one
        raise Problem(400, "invalid", "the length of the body is said in two ways", {"Connection": "close"})
    for name, value in headers:
        if name == b"content-length" and (not value.isdigit() or int(value[:20]) > settings.longest_body):
            raise too_large(settings.longest_body)
        if name == b"content-encoding":
            raise Problem(415, "not-json", "a body is taken as it is, without content-encoding")


def host_name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[: host.find("]") + 1].lower()
    return host.split(":")[0].lower()
