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
from typing import Any, cast

from privloss.service.alarms import Alarms
from privloss.service.settings import Settings
from privloss.service.strictly import Strictly


def _at_once(transport: asyncio.BaseTransport) -> None:
    """Send what is there, and do not wait for the client to confirm what came before: a long answer is several writes,
    and the wait would be 40 ms. (The event loop does this only for sockets that it has opened itself.)"""
    found = transport.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Deadline(Strictly):
    """HTTP/1.1 on a connection that is aborted when a request takes too long to come in."""

    seconds, most = 10.0, 200  # set by `within`
    not_http: bytes  # the whole answer to what is none
    awaited: dict[Deadline, None]  # those whose request is not there yet, in the order in which they came
    late: Alarms[Deadline]  # a request has begun, and is not whole yet
    idle: Alarms[Deadline]  # nothing was sent since the last answer
    unread: Alarms[Deadline]  # an answer waits for its client
    _inside = True  # a request that is not whole yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _at_once(transport)
        self._counted()

    def _counted(self) -> None:
        """One more connection, from which a request is awaited."""
        self.late.set(self)
        self.awaited.setdefault(self)
        if len(self.connections) > self.most:
            next(iter(self.awaited))._abort()

    def data_received(self, data: bytes) -> None:
        self._inside = True  # until the parser says that a request is whole
        self._look()
        super().data_received(data)
        self._look()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._inside = True

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._inside = False

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            else:
                self.idle.set(self)
        self._look()

    def _unset_keepalive_if_required(self) -> None:
        self.idle.stop(self)

    def _look(self) -> None:
        """Whether more is awaited of the client now, and whether it is something that has begun."""
        cycle = self.cycle
        answering = cycle is not None and not cycle.response_complete and not cycle.more_body
        if answering or self.pipeline:
            self.late.stop(self)
            self.awaited.pop(self, None)
            return
        self.awaited.setdefault(self)
        if self._inside:  # also the next, of which a part may have come behind the last one
            self.late.set(self)
        else:
            self.late.stop(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forgotten()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread.set(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.unread.stop(self)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so like everything else; behind a request that is being answered it is not told, or
        it would be taken for its answer."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body and not self.pipeline:
            cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if not self.pipeline and not (cycle is not None and cycle.more_body and cycle.response_started):
            self.transport.write(self.not_http)
        self.transport.close()

    def _forgotten(self) -> None:
        """No clock runs for it any more."""
        for each in (self.late, self.idle, self.unread):
            each.stop(self)
        self.awaited.pop(self, None)

    def _abort(self) -> None:
        self._forgotten()
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


def within(settings: Settings, not_http: bytes) -> type[Deadline]:
    """The protocol with its deadlines and limits; `not_http` is the whole answer to what is none."""
    shared: dict[str, Any] = {
        "seconds": settings.receive_seconds, "most": settings.connections,
        "longest_headers": settings.longest_headers, "longest_body": settings.longest_body,
        "not_http": not_http, "awaited": {},
        "late": Alarms(settings.receive_seconds, Deadline._abort),
        "idle": Alarms(settings.keep_alive_seconds, Deadline.timeout_keep_alive_handler),
        "unread": Alarms(settings.answer_seconds, Deadline._abort),
    }  # fmt: skip
    if not settings.tls:
        return type("DeadlineWithin", (Deadline,), shared)
    return type("EncryptedWithin", (Encrypted,), {**shared, "secret": settings.context()})
