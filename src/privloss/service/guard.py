"""What holds of every request and answer, pages included: the host that is asked for, the size of what is sent, the
headers that are given."""

from __future__ import annotations

from starlette.types import Scope

from privloss.service.problems import Problem
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
_LENGTHS = (b"content-length", b"transfer-encoding")
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


def too_large(longest: int) -> Problem:
    return Problem(413, "too-large", f"a body has at most {longest} bytes", {"Connection": "close"})


def checked(scope: Scope, settings: Settings, names: frozenset[str]) -> None:
    """What can be said of a request by its headers."""
    size, hosts, lengths, encoded = 0, [], [], False
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        if name == b"host":
            hosts.append(value)
        elif name in _LENGTHS:
            lengths.append((name, value))
        elif name == b"content-encoding":
            encoded = True
    if size > settings.longest_headers:
        text = f"the headers have at most {settings.longest_headers} bytes in all"
        raise Problem(431, "too-large", text, {"Connection": "close"})
    if len(hosts) != 1 or host_name(hosts[0].decode("latin-1")) not in names:
        raise Problem(421, "host", "this service does not answer for that host; see --host-name")
    if len(lengths) > 1:  # a proxy before us might have read the other one
        raise Problem(400, "invalid", "the length of the body is said in two ways", {"Connection": "close"})
    for name, value in lengths:
        if name == b"content-length" and (not value.isdigit() or int(value[:20]) > settings.longest_body):
            raise too_large(settings.longest_body)
    if encoded:
        raise Problem(415, "not-json", "a body is taken as it is, without content-encoding")


def host_name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[: host.find("]") + 1].lower()
    return host.split(":")[0].lower()
