"""A service in a thread of this process, on a real socket: for what only a connection can do."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

from privloss.service.serve import config
from privloss.service.settings import Settings
from tests.service.inside import Service

DATA = Path(__file__).parent / "data"
TLS: dict[str, Any] = {"tls_cert": DATA / "cert.pem", "tls_key": DATA / "key.pem"}
PATIENCE = 300.0  # seconds for what must happen: without it a test that fails would hang


class Wire:
    """The application of a service behind the server that `privloss serve` runs."""

    def __init__(self, service: Service, **settings: Any) -> None:
        import uvicorn

        self.service = service
        made = config(Settings(port=0, **settings), service.app)
        made.lifespan = "off"  # the application is open already
        self._listening = made.bind_socket()
        self._listening.listen(2048)
        self.port = int(self._listening.getsockname()[1])
        self.server = uvicorn.Server(made)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self._listening]}, daemon=True)
        self._thread.start()

    def connect(self, tls: bool = False, receive_buffer: int | None = None) -> socket.socket:
        made = socket.socket()
        if receive_buffer is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.settimeout(PATIENCE)
        made.connect(("127.0.0.1", self.port))
        if not tls:
            return made
        trusting = ssl.create_default_context(cafile=str(DATA / "cert.pem"))
        return trusting.wrap_socket(made, server_hostname="localhost")

    def ask(self, text: bytes, tls: bool = False) -> bytes:
        """Everything that is answered, until the connection is closed."""
        with self.connect(tls) as made:
            made.sendall(text)
            return rest(made)

    def close(self) -> None:
        self.server.should_exit = True
        self._thread.join()
        self._listening.close()


def rest(made: socket.socket) -> bytes:
    """What comes until the other side closes, however it does."""
    found = b""
    try:
        while more := made.recv(65536):
            found += more
    except (ConnectionError, ssl.SSLError):
        pass
    return found


def request(service: Service, path: str = "/health/live", *lines: str, method: str = "GET", body: bytes = b"") -> bytes:
    """One request that closes its connection; `lines` of more headers."""
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body
