"""A way to a service that cuts connections: before a request has got through, or after it was answered and before its
answer comes back. It understands just enough HTTP to know where a request and an answer end."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

BEFORE, AFTER, PASS = "before", "after", "pass"
Fate = Callable[[str], str]  # of a request line


class Cutting:
    """Listens on a port of its own; `fate` is asked at every request."""

    def __init__(self, port: int, fate: Fate) -> None:
        self._to, self._fate = port, fate
        self.seen: list[tuple[str, str]] = []  # request lines, and their fates
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.place = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self._to)) as service:
            while whole := _message(client):
                line = whole.split(b"\r\n")[0].decode()
                fate = self._fate(line)
                self.seen.append((line, fate))
                if fate == BEFORE:
                    return
                service.sendall(whole)
                answer = _message(service)
                if fate == AFTER:
                    return
                client.sendall(answer)

    def __enter__(self) -> Cutting:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()


def _message(end: socket.socket) -> bytes:
    """A whole request or answer, with a body of an announced length; nothing if the other end has hung up."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = end.recv(65536)
        if not piece:
            return b""
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < int(lengths[0] if lengths else 0):
        piece = end.recv(65536)
        if not piece:
            return b""
        body, found = body + piece, found + piece
    return found
