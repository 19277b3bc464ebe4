"""HTTP/1.1 on a connection, read by a parser in C (llhttp) that refuses what two programs might read differently: two
lengths, folded lines, bare line feeds. What it lets through beyond that, and what it does not limit, is stopped here:
other versions, bodies that it would skip, headers without end, trailers, requests heaped up behind an answer.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from privloss.service.cycle import Cycle

_MOST_BEHIND = 16  # requests that came in before an earlier one was answered
_LENGTHS = (b"content-length", b"transfer-encoding")


class Refused(ValueError):
    """What the parser takes, and we do not; inside its callbacks it makes of it an error of its own."""


class Strictly(HttpToolsProtocol):
    """The server's protocol, with limits of our own."""

    longest_headers, longest_body = 16 * 1024, 2**20  # set by `within`
    _in_head, _fed, _size = True, 0, 0  # of the request that comes in: bytes as they came, and of its headers

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        rest = data
        while rest:
            try:
                self.parser.feed_data(rest)
                break
            except httptools.HttpParserUpgrade as upgrade:  # to something else; we stay with what we speak
                rest = rest[upgrade.args[0] :]
            except httptools.HttpParserError:
                self.send_400_response("")
                return
        self._fed += len(data)
        most = self.longest_headers + (0 if self._in_head else 2 * self.longest_body)
        if self._fed > most and (self._in_head or self.cycle.more_body):
            self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._fed, self._size = True, 0, 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if self._in_head:  # what comes after the body (a trailer) is no header: it was looked at by nobody
            super().on_header(name, value)

    def _count(self, more: int) -> None:
        self._size += more
        if self._size > 2 * self.longest_headers:  # between the two, `guard` says so at length
            raise Refused("headers")

    def on_headers_complete(self) -> None:
        version, method = self.parser.get_http_version(), self.parser.get_method()
        self._in_head, upgrade = False, self.parser.should_upgrade()
        skipped = upgrade or version == "1.0"  # it would not read a body, or not to its end
        if version not in ("1.1", "1.0") or method == b"CONNECT" or len(self.pipeline) >= _MOST_BEHIND:
            raise Refused("request")
        if skipped and any(name in _LENGTHS[not upgrade :] for name, _ in self.headers):
            raise Refused("body")
        raw, _, query = self.url.partition(b"?")
        path = raw.decode("ascii")
        scope = cast(dict[str, Any], self.scope)
        scope.update(
            method=method.decode("ascii"), http_version=version, raw_path=raw, query_string=query,
            path=unquote(path) if "%" in path else path,
        )  # fmt: skip
        before, self.cycle = self.cycle, self._cycle(version != "1.0" and self.parser.should_keep_alive())
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _cycle(self, keep_alive: bool) -> Cycle:
        return Cycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.tasks.add(self.loop.create_task(self._run(cycle, app), context=contextvars.Context()))

    async def _run(self, cycle: RequestResponseCycle, app: Any) -> None:
        try:
            await cycle.run_asgi(app)
        finally:  # it is the last that it does: for the server's end it has ended
            self.tasks.discard(cast(Any, asyncio.current_task()))
