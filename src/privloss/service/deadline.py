"""Connections with a deadline for receiving a request, and a limit on their number. The server has no deadline of its
own: half a header was still open after 45 seconds.

The clock starts with a connection, or with the first byte of the next request on it, and is never set again by more
bytes, so that one byte a second gains nothing. It stops when the whole request is there. When there are too many
connections, the one whose request has been awaited longest goes: so hundreds of half requests keep nobody out.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_WHOLE = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)


class Deadline(H11Protocol):
    """HTTP/1.1 on a connection that is aborted when a request takes too long to come in."""

    seconds, most = 10.0, 200  # set by `within`
    awaited: dict[Deadline, None]  # those whose request is not there yet, in the order in which they came
    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()
        self.awaited[self] = None
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

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self.awaited.pop(self, None)
        super().connection_lost(exc)

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


def within(seconds: float, most: int) -> type[Deadline]:
    """The protocol with a deadline, for at most so many connections."""
    return type("DeadlineWithin", (Deadline,), {"seconds": seconds, "most": most, "awaited": {}})
