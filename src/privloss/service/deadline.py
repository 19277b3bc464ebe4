"""Connections with a deadline for receiving a request, and a limit on their number. The server has no deadline of its
own: half a header was still open after 45 seconds.

The clock starts with a connection, or with the first byte of the next request on it, and is never set again by more
bytes, so that one byte a second gains nothing. It stops when the whole request is there. When there are too many
connections, the one whose request has been awaited longest goes: so hundreds of half requests keep nobody out. Another
clock runs while an answer waits for a client to read on.

With a certificate the handshake is part of the first request: it has the same clock, and counts among the connections.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_WHOLE = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)


def _at_once(transport: asyncio.BaseTransport) -> None:
    """Send what is there, and do not wait for the client to confirm what came before: an answer is two writes, and the
    wait would be 40 ms. (The event loop does this only for sockets that it has opened itself.)"""
    found = transport.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Deadline(H11Protocol):
    """HTTP/1.1 on a connection that is aborted when a request takes too long to come in."""

    seconds, answer_seconds, most = 10.0, 30.0, 200  # set by `within`
    not_http: bytes  # the whole answer to what is none
    awaited: dict[Deadline, None]  # those whose request is not there yet, in the order in which they came
    _alarm: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _at_once(transport)
        self._counted()

    def _counted(self) -> None:
        """One more connection, from which a request is awaited."""
        self._arm()
        self.awaited.setdefault(self)
        if len(self.connections) > self.most:
            next(iter(self.awaited))._abort()

    def data_received(self, data: bytes) -> None:
        self._arm()
        super().data_received(data)
        if self._received():
            self._disarm()
            if self.conn.their_state is h11.IDLE:
                self.awaited.setdefault(self)
            else:
                self.awaited.pop(self, None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.awaited.setdefault(self)  # for the next request
        if not self._received():  # which may have come in part already, behind the last one
            self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self.awaited.pop(self, None)
        super().connection_lost(exc)
        self._read_on()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.answer_seconds, self._abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read_on()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so like everything else."""
        self.transport.write(self.not_http)
        self.transport.close()

    def _read_on(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _arm(self) -> None:
        if self._alarm is None:
            self._alarm = self.loop.call_later(self.seconds, self._abort)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _received(self) -> bool:
        """Whether nothing more is awaited of a request: it is whole, or the next has not begun."""
        state = self.conn.their_state
        return state in _WHOLE or (state is h11.IDLE and not self.conn.trailing_data[0])

    def _abort(self) -> None:
        self._disarm()
        self.awaited.pop(self, None)
        cast(Any, self.transport).abort()


class Encrypted(Deadline):
    """The same behind a handshake, which the server would do before it tells anybody of the connection."""

    secret: ssl.SSLContext
    _held: bytes | None = b""  # what has come before we know that the handshake is done; None afterwards

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.pause_reading()  # until somebody is there to shake hands
        self.transport = transport
        self.connections.add(self)
        self._counted()
        self._greeting = self.loop.create_task(self._shake(transport))

    async def _shake(self, transport: asyncio.Transport) -> None:
        try:
            inner = await self.loop.start_tls(
                transport, self, self.secret, server_side=True, ssl_handshake_timeout=self.seconds
            )
            if inner is None:
                raise ConnectionError
        except (OSError, asyncio.CancelledError):
            self.connections.discard(self)
            self._abort()
            return
        super().connection_made(inner)
        held, self._held = self._held, None
        if held:
            self.data_received(held)

    def data_received(self, data: bytes) -> None:
        if self._held is None:
            super().data_received(data)
        else:
            self._held += data

    def connection_lost(self, exc: Exception | None) -> None:
        if self._held is None:
            super().connection_lost(exc)


def within(
    seconds: float, answer_seconds: float, most: int, not_http: bytes, secret: Callable[[], ssl.SSLContext] | None
) -> type[Deadline]:
    """The protocol with its deadlines, for at most so many connections."""
    shared: dict[str, Any] = {"seconds": seconds, "answer_seconds": answer_seconds, "most": most, "awaited": {}}
    shared["not_http"] = not_http
    if secret is None:
        return type("DeadlineWithin", (Deadline,), shared)
    return type("EncryptedWithin", (Encrypted,), {**shared, "secret": secret()})
