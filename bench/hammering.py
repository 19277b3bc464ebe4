"""Clients that cost little: one thread, a few connections, each with one request under way. What is measured beside
them is the service, as far as that is possible on one machine."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_END = b"\r\n\r\n"
_LENGTH = b"content-length: "


@dataclass
class Measured:
    """What some clients were answered."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    bad: list[bytes] = field(default_factory=list)  # answers that were no success

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def quantile(self, part: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def request(method: str, path: str, token: str = "", body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return head.encode() + b"\r\n" + body


class _Client:
    def __init__(self, port: int) -> None:
        self.end = socket.create_connection(("127.0.0.1", port))
        self.end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.since, self.answer = 0.0, b""

    def ask(self, whole: bytes) -> None:
        self.since, self.answer = time.perf_counter(), b""
        self.end.sendall(whole)

    def heard(self) -> bool:
        """Whether the answer is whole."""
        piece = self.end.recv(65536)
        if not piece:
            raise ConnectionError(f"hung up after {self.answer!r}")
        self.answer += piece
        head, _, body = self.answer.partition(_END)
        if not _ or head.find(_LENGTH) < 0:
            return False
        start = head.find(_LENGTH) + len(_LENGTH)
        stop = head.find(b"\r", start)
        return len(body) >= int(head[start : stop if stop >= 0 else None])


def hammer(ports: list[int], clients: int, seconds: float, asked: Callable[[int], Iterator[bytes]]) -> Measured:
    """So many clients, spread over ports; `asked(i)` gives the requests of one, which ends when they do."""
    found, watch = Measured(), selectors.DefaultSelector()
    begun = time.perf_counter()
    for number in range(clients):
        client, requests = _Client(ports[number % len(ports)]), asked(number)
        client.ask(next(requests))
        watch.register(client.end, selectors.EVENT_READ, (client, requests))
    while watch.get_map():
        for event, _ in watch.select():
            client, requests = event.data
            if not client.heard():
                continue
            now = time.perf_counter()
            found.latencies.append(now - client.since)
            if not client.answer.startswith(b"HTTP/1.1 20"):
                found.bad.append(client.answer)
            following = next(requests, None) if now - begun < seconds else None
            if following is None:
                watch.unregister(client.end)
                client.end.close()
            else:
                client.ask(following)
    found.seconds = time.perf_counter() - begun
    return found
