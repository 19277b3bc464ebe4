"""A way to PostgreSQL that cuts connections: before a COMMIT arrives, or after it has arrived and before its answer.

It reads just enough of what clients send to see a COMMIT; databases are asked without encryption on this machine.
"""

from __future__ import annotations

import contextlib
import random
import re
import socket
import threading
from collections.abc import Callable

_COMMIT = re.compile(rb"(?<![A-Za-z'])COMMIT\0")  # the end of a message, no state of a key


class Proxy:
    """Listens on a port of its own. `drop`: the next commit does not arrive; `swallow`: it arrives, its answer does not
    come back; `chance` of either at each commit."""

    def __init__(self, port: int, chance: float = 0.0, seed: int = 1) -> None:
        self._to, self._chance, self._rng = port, chance, random.Random(seed)
        self.drop = self.swallow = False
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._door = threading.Lock()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def through(self, place: str) -> str:
        """The address of a database, through here."""
        return re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{self.port}", place) + "?sslmode=disable&gssencmode=disable"

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                if self._listener.fileno() < 0:
                    return
                with contextlib.suppress(UnboundLocalError):
                    client.close()  # the server is away: so are we
                continue
            with self._door:
                self._open += [client, server]
            for way in (self._there, self._back):
                threading.Thread(target=way, args=(client, server), daemon=True).start()

    def _there(self, client: socket.socket, server: socket.socket) -> None:
        """From client to server; decides at each commit."""

        def passed(data: bytes) -> bool:
            if _COMMIT.search(data):
                drop, swallow = self._fate()
                if drop:
                    return False
                if swallow:
                    client.shutdown(socket.SHUT_RDWR)  # no answer gets through from here on
                    server.sendall(data)
                    return False
            server.sendall(data)
            return True

        _pump(client, passed)
        # what the server has been sent it will do: it sees the end only after that
        _close(client)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        def passed(data: bytes) -> bool:
            client.sendall(data)
            return True

        _pump(server, passed)
        _close(client)
        _close(server)

    def _fate(self) -> tuple[bool, bool]:
        with self._door:
            drop, swallow = self.drop, self.swallow
            if self._rng.random() < self._chance:
                drop = self._rng.random() < 0.5
                swallow = not drop
            self.drop = self.swallow = False
            self.cuts += drop or swallow
            return drop, swallow

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._door:
            for each in self._open:
                _close(each)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pump(source: socket.socket, passed: Callable[[bytes], bool]) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if not passed(data):
                return


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
