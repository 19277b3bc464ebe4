"""One question, one answer, over connections that are kept open.

There are as many connections as threads that ask at one time; each goes to whoever asks next. What matters to the
caller of a ledger is whether a question can have taken effect: `NotSent` says that it cannot, `Broken` that nobody
knows.
"""

from __future__ import annotations

import http.client
import os
import selectors
import ssl
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from privloss.client.address import Address
from privloss.ledger.stores.base import LedgerError

_PIECE = 2**16


class NotSent(Exception):
    """No connection: the question has had no effect."""


class Broken(Exception):
    """The connection ended before the answer had arrived whole."""


@dataclass(frozen=True)
class Reply:
    """What was answered."""

    status: int
    headers: Mapping[str, str]  # names in small letters
    body: bytes


class Connections:
    """Connections to one service."""

    def __init__(self, address: Address, seconds: float, context: ssl.SSLContext | None = None) -> None:
        self._address, self._seconds = address, seconds
        self._context = context
        if address.secure and context is None:  # checks the certificate and the host's name; TLS 1.2 or newer
            self._context = ssl.create_default_context()
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._process = os.getpid()

    def ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, fresh: bool) -> Reply:
        """The whole answer. With `fresh` over a new connection: the service may have closed an idle one, and then it
        is not known whether it has read the question."""
        with self._asked(method, path, body, headers, fresh) as (connection, response):
            whole = b"".join(_pieces(response))
            reply = Reply(response.status, {name.lower(): text for name, text in response.getheaders()}, whole)
            if response.will_close:
                connection.close()
            else:
                self._idle.append(connection)
        return reply

    @contextmanager
    def lines(
        self, path: str, headers: Mapping[str, str]
    ) -> Iterator[tuple[http.client.HTTPResponse, Iterator[bytes]]]:
        """A long answer as it comes, by lines. The connection ends with it."""
        with self._asked("GET", path, None, headers, True) as (connection, response):
            try:
                yield response, _lines(response)
            finally:
                connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _asked(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], fresh: bool
    ) -> Iterator[tuple[http.client.HTTPConnection, http.client.HTTPResponse]]:
        connection = self._open() if fresh else self._any()
        try:
            try:
                connection.request(method, self._address.path + path, body, dict(headers))
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as problem:
                raise Broken(_said(problem)) from problem
            yield connection, response
        except BaseException:  # whatever it was, what else comes over this connection belongs to nobody
            connection.close()
            raise

    def _any(self) -> http.client.HTTPConnection:
        if self._process != os.getpid():  # a forked child must not write into its parent's connections
            self._process = os.getpid()
            self.close()  # its own ends of them; the parent's stay open
        while self._idle:
            try:
                found = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if _usable(found):
                return found
            found.close()
        return self._open()

    def _open(self) -> http.client.HTTPConnection:
        address = self._address
        found: http.client.HTTPConnection
        if address.secure:
            found = http.client.HTTPSConnection(
                address.host, address.port, timeout=self._seconds, context=self._context
            )
        else:
            found = http.client.HTTPConnection(address.host, address.port, timeout=self._seconds)
        try:
            found.connect()
        except ssl.SSLCertVerificationError as problem:
            raise LedgerError(
                f"db = {address.shown!r}: its certificate is not trusted ({problem.verify_message}); SSL_CERT_FILE may "
                "name the authority that signed it."
            ) from None
        except OSError as problem:
            found.close()
            raise NotSent(_said(problem)) from problem
        return found


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """An answer as it comes. `HTTPResponse` takes one that was cut off for a whole one in `readline`, and in `read` of
    so many bytes where the length was announced."""
    if response.length is None and not response.chunked:
        raise Broken("an answer of unknown length")
    try:
        while piece := response.read(_PIECE):
            yield piece
    except (OSError, http.client.HTTPException) as problem:
        raise Broken(_said(problem)) from problem
    if response.length:
        raise Broken(f"{response.length} bytes are missing")


def _lines(response: http.client.HTTPResponse) -> Iterator[bytes]:
    rest = b""
    for piece in _pieces(response):
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _usable(connection: http.client.HTTPConnection) -> bool:
    """Whether an idle connection is still one: a service that has closed its end has said so, which can be read."""
    if connection.sock is None:
        return False
    with selectors.DefaultSelector() as watch:
        watch.register(connection.sock, selectors.EVENT_READ)
        return not watch.select(0)


def _said(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
