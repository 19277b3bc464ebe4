"""How a connection's clocks run, and how answers are written on it."""

from __future__ import annotations

import asyncio
import heapq
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from starlette.responses import Response

from privloss.service import alarms, cycle, health
from privloss.service.alarms import Alarms
from privloss.service.serve import config
from privloss.service.settings import Settings
from tests.service.inside import Service
from tests.service.wire import PATIENCE, Wire, request, rest

OPEN = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Loop:
    """An event loop whose time goes on when it is told to."""

    def __init__(self) -> None:
        self.now, self.timers = 0.0, list[tuple[float, Any]]()

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Callable[[], None]) -> None:
        heapq.heappush(self.timers, (at, call))

    def until(self, end: float) -> None:
        while self.timers and self.timers[0][0] <= end:
            self.now, call = heapq.heappop(self.timers)
            call()
        self.now = end


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    made = Loop()
    monkeypatch.setattr(alarms.asyncio, "get_running_loop", lambda: made)  # type: ignore[attr-defined]
    return made


def test_clocks_of_many_by_one_timer(loop: Loop) -> None:
    rung: list[tuple[float, str]] = []
    clocks = Alarms[str](10.0, lambda who: rung.append((loop.now, who)))
    for at, who in enumerate("abcd"):
        loop.until(float(at))
        clocks.set(who)
    assert len(loop.timers) == 1
    loop.until(5.0)
    clocks.set("b")  # it runs already: nothing is gained by asking again
    clocks.stop("a")
    clocks.stop("c")
    clocks.stop("nobody")
    clocks.set("c")  # anew
    loop.until(30.0)
    assert rung == [(11.0, "b"), (13.0, "d"), (15.0, "c")]
    assert not loop.timers
    clocks.set("a")
    loop.until(40.0)
    assert rung[3:] == [(40.0, "a")]


def test_who_rings_may_set_and_stop_others(loop: Loop) -> None:
    rung: list[str] = []

    def ring(who: str) -> None:
        rung.append(who)
        clocks.stop("b")
        if len(rung) < 3:
            clocks.set("a")

    clocks = Alarms[str](1.0, ring)
    clocks.set("a")
    clocks.set("b")
    loop.until(10.0)
    assert rung == ["a"] * 3


# -- on a real connection ----------------------------------------------------------------------------------------------


@pytest.fixture
def wired(sqlite: Service) -> Iterator[Callable[..., Wire]]:
    made: list[Wire] = []

    def make(**settings: Any) -> Wire:
        made.append(Wire(sqlite, **{"receive_seconds": PATIENCE, **settings}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_connection_that_says_nothing_more_is_closed(wired: Callable[..., Wire]) -> None:
    with wired(keep_alive_seconds=0.1).connect() as kept:
        kept.sendall(OPEN)
        assert rest(kept).count(b"HTTP/1.1 200") == 1  # ends when the server closes


def test_the_event_loop_does_not_depend_on_what_else_is_installed(
    sqlite: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", ModuleType("uvloop"))  # the server would take it
    assert config(Settings(port=0), sqlite.app).get_loop_factory() is asyncio.SelectorEventLoop


def test_no_header_ends_its_line(wired: Callable[..., Wire], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes an answer with one is told nothing: the connection ends."""
    wire = wired()
    for headers in ({"x": "a\r\nset-cookie: b=c"}, {"x": "a\n\nb"}, {"x\r\nset-cookie": "b"}, {"x": "a\x00"}):
        monkeypatch.setattr(health, "_answer", lambda *_, given=headers, **__: Response("{}", headers=given))
        assert wire.ask(request(wire.service)) == b""
        with wire.connect() as kept:
            kept.sendall(OPEN)
            assert rest(kept) == b""


@pytest.mark.parametrize("pair", [(b"x", b"a\r\nb"), (b"x", b"a\x00"), (b"x:", b"a"), (b"X", b"a"), (b"x y", b"a")])
def test_a_line_that_cannot_be_sent(pair: tuple[bytes, bytes]) -> None:
    with pytest.raises(RuntimeError, match="cannot be sent"):
        cycle._line(*pair)


def test_an_answer_of_unknown_length_comes_in_chunks(wired: Callable[..., Wire]) -> None:
    wire = wired()
    token = f"Authorization: Bearer {wire.service.auditor.token}"
    head, _, body = wire.ask(request(wire.service, "/v1/export", token)).partition(b"\r\n\r\n")
    assert b"\r\ntransfer-encoding: chunked" in head
    assert b"content-length" not in head
    whole = "".join(f"{line}\n" for line in wire.service.events()).encode()
    assert body == b"%x\r\n%b\r\n0\r\n\r\n" % (len(whole), whole)


def test_answers_on_a_connection_that_stays_and_on_one_that_ends(wired: Callable[..., Wire]) -> None:
    """They are the same but for their end: an ordinary one is written by a way of its own."""
    wire = wired()
    with wire.connect() as kept:
        kept.sendall(OPEN * 2 + request(wire.service))
        first, second, last = rest(kept).split(b"HTTP/1.1 ")[1:]

    def lines(answer: bytes) -> set[bytes]:
        return {each for each in answer.split(b"\r\n") if not each.startswith((b"x-request-id", b"date"))}

    assert lines(first) == lines(second) == lines(last) - {b"connection: close"}
    assert b"\r\nconnection: close\r\n" in last


def test_an_answer_without_a_body_is_sent_too(wired: Callable[..., Wire]) -> None:
    """Its head does not wait for one."""
    wire = wired()
    for path, status in (("/health/live", b"200"), ("/v1/datasets", b"405"), ("/ui/login", b"200"), ("/no", b"404")):
        with wire.connect() as kept:
            kept.sendall(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            found = b""
            while b"\r\n\r\n" not in found:
                found += kept.recv(65536)
            assert found.startswith(b"HTTP/1.1 " + status), found
            kept.sendall(request(wire.service))
            assert rest(kept).startswith(b"HTTP/1.1 200")
