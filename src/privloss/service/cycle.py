"""An answer on a connection: its head is written by what is known of lines that come again and again, and sent together
with the beginning of its body."""

from __future__ import annotations

import asyncio
import functools
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

_CONTINUE = b"HTTP/1.1 100 "
_OF_THE_BODY = frozenset((b"content-length", b"transfer-encoding", b"connection"))


class _Joined:
    """Sends the head of an answer together with the beginning of its body: one packet, one call of the system."""

    __slots__ = ("_head", "_sent", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._head, self._sent = transport, b"", False
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._sent:
            self._transport.write(data)
        elif self._head:
            self._transport.write(self._head + data)
            self._sent = True
        elif data.startswith(_CONTINUE):
            self._transport.write(data)
        else:
            self._head = data

    def close(self) -> None:
        if self._head and not self._sent:
            self._transport.write(self._head)
        self._transport.close()


class Cycle(RequestResponseCycle):
    """The server's, but for how an ordinary answer begins: one whose length is known, on a connection that stays."""

    def __init__(self, *, scope: Any, transport: asyncio.Transport, **options: Any) -> None:
        joined = transport if scope["method"] == "HEAD" else _Joined(transport)  # there no body is written
        super().__init__(scope=scope, transport=cast(asyncio.Transport, joined), **options)

    async def send(self, message: Any) -> None:
        if self.response_started or self.disconnected or self.flow.write_paused:
            await super().send(message)
            return
        headers: list[tuple[bytes, bytes]] = message.get("headers", [])
        telling = [each for each in headers if each[0] in _OF_THE_BODY]
        if len(telling) != 1 or telling[0][0] != b"content-length" or not self.keep_alive:
            await super().send(message)
            return
        self.response_started, self.waiting_for_100_continue, self.chunked_encoding = True, False, False
        self.expected_content_length = int(telling[0][1])
        lines = [_line(name, value) for name, value in self.default_headers + headers]
        self.transport.write(b"".join((STATUS_LINE[message["status"]], *lines, b"\r\n")))


@functools.lru_cache(maxsize=512)
def _line(name: bytes, value: bytes) -> bytes:
    """A header as it is sent; nothing that would end its line."""
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value) or name != name.lower():
        raise RuntimeError("a header cannot be sent")
    return b"%b: %b\r\n" % (name, value)
