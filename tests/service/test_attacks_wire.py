"""Attacks on connections: slow and silent ones, smuggled requests, other hosts, forged headers. Deadlines are short
here, and what is waited for is that the other side closes. (The numbers are those of docs/security.md.)"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from privloss.service.deadline import Deadline
from tests.service.inside import Service
from tests.service.wire import PATIENCE, TLS, Wire, request, rest

SHORT = 1.0  # seconds: what is no attack comes in sooner, also on a busy machine
OPEN = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
LIVE = b'{"live": true}'


@pytest.fixture
def wired(sqlite: Service) -> Iterator[Callable[..., Wire]]:
    made: list[Wire] = []

    def make(**settings: Any) -> Wire:
        made.append(Wire(sqlite, **{"receive_seconds": SHORT, **settings}))
        return made[-1]

    yield make
    for each in made:
        each.close()


# -- 12: slow and silent -----------------------------------------------------------------------------------------------

BEGUN = {
    "silent": b"",
    "half a header": OPEN,
    "half a line": b"GET /hea",
    "half a body": b"POST /v1/answer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    "half a chunk": b"POST /v1/answer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{",
}


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_12_what_does_not_go_on_is_closed(wired: Callable[..., Wire], tls: bool) -> None:
    wire = wired(**(TLS if tls else {}))
    slow = {begun: wire.connect(tls) for begun in BEGUN}
    for begun, each in slow.items():
        each.sendall(BEGUN[begun])
    assert LIVE in wire.ask(request(wire.service), tls)  # others are served meanwhile
    for begun, each in slow.items():
        assert b"200 OK" not in rest(each), begun  # ends when the server closes
        each.close()


@pytest.mark.parametrize("begun", [each for each in BEGUN if each != "silent"])
def test_12_half_a_request_behind_a_whole_one(wired: Callable[..., Wire], begun: str) -> None:
    """Both in one packet: the second has a clock too, though nothing more of it ever comes."""
    wire = wired(keep_alive_seconds=PATIENCE)
    with wire.connect() as slow:
        slow.sendall(OPEN + b"\r\n" + BEGUN[begun])
        assert rest(slow).count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("begun", [OPEN, BEGUN["half a body"]], ids=["header", "body"])
def test_12_one_byte_after_the_other_gains_nothing(wired: Callable[..., Wire], begun: bytes) -> None:
    """Bytes are sent until the server has closed, each long before a clock that began anew would have run out."""
    wire = wired()
    with wire.connect() as slow:
        slow.sendall(begun)
        slow.settimeout(SHORT / 10)
        while True:
            try:
                slow.sendall(b"x")
                if not slow.recv(1):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break


def test_12_a_second_request_has_a_clock_of_its_own(wired: Callable[..., Wire]) -> None:
    wire = wired(keep_alive_seconds=PATIENCE)
    with wire.connect() as kept:
        for _ in range(3):
            kept.sendall(OPEN + b"\r\n")
            found = b""
            while LIVE not in found:
                found += kept.recv(65536)
            assert found.startswith(b"HTTP/1.1 200")
        kept.sendall(OPEN)
        assert rest(kept) == b""


def test_12_hundreds_of_half_headers_keep_nobody_out(wired: Callable[..., Wire]) -> None:
    """Among the connections the one that has been awaited longest goes."""
    wire = wired(receive_seconds=PATIENCE, connections=20)
    slow = [wire.connect() for _ in range(300)]
    for each in slow:
        each.sendall(OPEN)
    assert LIVE in wire.ask(request(wire.service))
    assert rest(slow[0]) == b""
    assert len(wire.server.server_state.connections) <= 20
    for each in slow:
        each.close()


def test_12_over_tls_without_a_hello(wired: Callable[..., Wire]) -> None:
    """A handshake has the deadline of a request, and counts among the connections."""
    wire = wired(receive_seconds=PATIENCE, connections=20, **TLS)
    silent = [wire.connect() for _ in range(60)]
    assert LIVE in wire.ask(request(wire.service), tls=True)
    assert rest(silent[0]) == b""
    assert len(wire.server.server_state.connections) <= 20
    for each in silent:
        each.close()
    short = wired(**TLS)
    with short.connect() as one, short.connect() as other, short.connect() as third:
        other.sendall(b"\x16\x03\x01")
        third.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert [b"HTTP" in rest(each) for each in (one, other, third)] == [False] * 3


def test_12_an_answer_that_nobody_reads(wired: Callable[..., Wire], monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for its reader, and no longer."""
    given_up, abort = threading.Event(), Deadline._abort

    def aborted(self: Deadline) -> None:
        abort(self)
        given_up.set()

    monkeypatch.setattr(Deadline, "_abort", aborted)
    wire = wired(answer_seconds=0.2, receive_seconds=PATIENCE)
    monkeypatch.setattr(wire.service.ledger.__class__, "export", lambda self: iter(["x" * 2**20] * 32))
    with wire.connect(receive_buffer=4096) as lazy:
        lazy.sendall(request(wire.service, "/v1/export", f"Authorization: Bearer {wire.service.auditor.token}"))
        assert lazy.recv(8) == b"HTTP/1.1"
        assert given_up.wait(PATIENCE)


# -- 26: smuggling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 2", "Content-Length: 3"),
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 2"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("Content-Length: +2",),
        ("Content-Length: 2, 3",),
        ("Content-Length: -1",),
        ("Content-Length : 2",),
    ],
)
def test_26_a_body_with_two_ends(wired: Callable[..., Wire], lines: tuple[str, ...]) -> None:
    """One answer, an error, and the connection ends: what came behind is no request."""
    wire = wired(receive_seconds=PATIENCE)
    head = ["POST /v1/answer HTTP/1.1", "Host: localhost", "Content-Type: application/json", *lines]
    text = "\r\n".join([*head, "", ""]).encode() + b"0\r\n\r\n" + request(wire.service)
    found = wire.ask(text)
    assert found[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 501"), found[:200]
    assert LIVE not in found
    assert found.count(b"HTTP/1.1 ") == 1


NO_HTTP = (
    b"\x00\x01\x02\r\n\r\n", b"GET /\r\n\r\n", b"hello\r\n\r\n", b"GET / HTTP/x\r\n\r\n",
    b"GET /health/live HTTP/2.0\r\nHost: localhost\r\n\r\n", b"GET /health/live HTTP/0.9\r\nHost: localhost\r\n\r\n",
    b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", OPEN + b" folded: 1\r\n\r\n",
    OPEN.replace(b"\r\n", b"\n") + b"\n", OPEN + b"X: a\rb\r\n\r\n", OPEN.replace(b"live", b"l\xefve") + b"\r\n",
)  # fmt: skip


@pytest.mark.parametrize("text", NO_HTTP)
def test_26_what_is_no_http(wired: Callable[..., Wire], text: bytes) -> None:
    """It is told so with the headers of every answer."""
    found = wired(receive_seconds=PATIENCE).ask(text)
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"content-security-policy: default-src 'none'" in head
    assert b"nosniff" in head
    assert f"content-length: {len(body)}".encode() in head


@pytest.mark.parametrize(
    "lines",
    [
        ("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 2"),
        ("Connection: Upgrade", "Upgrade: websocket", "Transfer-Encoding: chunked"),
    ],
)
def test_26_a_body_that_the_parser_would_leave_for_another_protocol(
    wired: Callable[..., Wire], lines: tuple[str, ...]
) -> None:
    head = ["POST /v1/answer HTTP/1.1", "Host: localhost", "Content-Type: application/json", *lines]
    text = "\r\n".join([*head, "", ""]).encode() + request(wired(receive_seconds=PATIENCE).service)
    found = wired(receive_seconds=PATIENCE).ask(text)
    assert found.startswith(b"HTTP/1.1 400")
    assert found.count(b"HTTP/1.1 ") == 1


def test_26_chunks_in_an_older_http(wired: Callable[..., Wire]) -> None:
    """It has none, so the parser would end the body where it begins."""
    head = b"POST /v1/answer HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert wired(receive_seconds=PATIENCE).ask(head + b"0\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_26_an_upgrade_is_not_taken(wired: Callable[..., Wire]) -> None:
    """We stay with what we speak: the request is answered, and so is the next."""
    wire = wired(receive_seconds=PATIENCE)
    first = OPEN + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n"
    assert wire.ask(first + request(wire.service)).count(LIVE) == 2
    with wire.connect() as kept:
        kept.sendall(first)
        while LIVE not in kept.recv(65536):
            pass
        kept.sendall(request(wire.service))
        assert rest(kept).count(LIVE) == 1


def test_26_trailers_are_no_headers(wired: Callable[..., Wire]) -> None:
    """A token behind the body is none: a proxy that looks after headers has not seen it."""
    wire = wired(receive_seconds=PATIENCE)
    token = f"Authorization: Bearer {wire.service.auditor.token}\r\n".encode()
    head = b"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n"
    assert wire.ask(head + chunked + token + b"\r\n0\r\n\r\n").startswith(b"HTTP/1.1 202")
    assert wire.ask(head + chunked + b"\r\n0\r\n" + token + b"\r\n").startswith(b"HTTP/1.1 401")


def test_26_garbage_behind_a_request_is_not_its_answer(wired: Callable[..., Wire]) -> None:
    wire = wired(receive_seconds=PATIENCE)
    found = wire.ask(OPEN + b"\r\n" + b"\x00\x01\x02\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 200")
    assert found.endswith(LIVE)


def test_8_requests_heaped_up_behind_an_answer(wired: Callable[..., Wire]) -> None:
    """Some are answered, in order; thousands are not kept."""
    few, many = OPEN + b"\r\n", request(wired(receive_seconds=PATIENCE).service)
    wire = wired(receive_seconds=PATIENCE)
    assert wire.ask(few * 9 + many).count(LIVE) == 10
    assert wire.ask(few * 2000 + many).count(LIVE) < 20


@pytest.mark.parametrize("part", ["header", "address", "trailer", "extension"])
def test_8_what_never_ends(wired: Callable[..., Wire], part: str) -> None:
    """Long before a deadline the connection is closed: what has come is kept until the part is whole."""
    wire = wired(receive_seconds=PATIENCE)
    body = b"POST /v1/answer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    begun = {"header": OPEN + b"X: ", "address": b"GET /", "trailer": body + b"0\r\nX: ", "extension": body + b"1;"}
    with wire.connect() as long:
        long.sendall(begun[part])
        with suppress(ConnectionError):
            while True:
                long.sendall(b"x" * 65536)


def test_26_headers_that_are_too_long(wired: Callable[..., Wire]) -> None:
    wire = wired(receive_seconds=PATIENCE)
    for lines in ([f"X-{n}: {'x' * 100}" for n in range(500)], ["X: " + "x" * 60_000]):
        found = wire.ask(request(wire.service, "/health/live", *lines))
        assert found[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431")
        assert LIVE not in found


# -- 20: hosts and proxies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost@x"]
)
def test_20_another_host(sqlite: Service, host: str) -> None:
    """Also that of a page whose name leads here today (DNS rebinding)."""
    for path in ("/v1/datasets", "/health/live", "/metrics", "/"):
        answer = sqlite.steward.get(path, headers={"host": host})
        assert (answer.status_code, answer.json()["reason"]) == (421, "host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]", "[::1]:8080"])
def test_20_a_local_host(sqlite: Service, host: str) -> None:
    headers = {"host": host, "x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
    assert sqlite.steward.get("/v1/datasets", headers=headers).status_code == 200


def _failures(wire: Wire, forwarded: Callable[[int], str]) -> list[bytes]:
    """The states of failed logins, each in the name of another address."""
    asked = (
        request(wire.service, "/v1/datasets", "Authorization: Bearer x", f"X-Forwarded-For: {forwarded(number)}")
        for number in range(12)
    )
    return [wire.ask(each)[9:12] for each in asked]


def test_20_forwarded_addresses(wired: Callable[..., Wire]) -> None:
    """Those of a stranger change nothing; those of a proxy that is named are believed, but only its own word."""
    strange = wired(receive_seconds=PATIENCE)
    assert _failures(strange, lambda n: f"10.0.0.{n}") == [b"401"] * 10 + [b"429"] * 2
    proxied = wired(receive_seconds=PATIENCE, behind_proxy=("127.0.0.1",))
    assert _failures(proxied, lambda n: f"10.0.1.{n}") == [b"401"] * 12
    assert _failures(proxied, lambda n: f"10.0.2.{n}, 10.9.9.9") == [b"401"] * 10 + [b"429"] * 2
    other = wired(receive_seconds=PATIENCE, behind_proxy=("192.0.2.1",))
    assert _failures(other, lambda n: f"10.0.3.{n}") == [b"429"] * 12


def test_tls_of_today_only(wired: Callable[..., Wire]) -> None:
    wire = wired(receive_seconds=PATIENCE, **TLS)
    found = wire.ask(request(wire.service), tls=True)
    assert LIVE in found
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with old.wrap_socket(socket.create_connection(("127.0.0.1", wire.port))) as made:
        assert made.version() == "TLSv1.2"
    assert wire.server.config.app.state.services  # type: ignore[union-attr]
