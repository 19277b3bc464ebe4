"""A service that answers what it is told to, in order, and remembers what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler"], None]


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int  # the client's port


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Scripted

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(size)) if size else None
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.server.asked.append(Asked(self.command, self.path, headers, body, self.client_address[1]))
        self.server.answers.pop(0)(self)

    do_GET = do_PUT = do_POST = answer  # noqa: N815

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


class Scripted(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *answers: Answer, port: int = 0, context: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.answers = list(answers)
        super().__init__(("127.0.0.1", port), Handler)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def place(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the script."""


def says(status: int, body: Any, **headers: str) -> Answer:
    """A whole answer."""

    def answer(handler: Handler) -> None:
        text = json.dumps(body).encode()
        handler.send_response(status)
        kind = "application/json" if status < 400 else "application/problem+json"
        sent = {"Content-Type": kind, "Content-Length": str(len(text))}
        for name, value in {**sent, **{name.replace("_", "-"): value for name, value in headers.items()}}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(text)

    return answer


def refuses(status: int, reason: str, text: str = "no", headers: dict[str, str] | None = None, **more: Any) -> Answer:
    return says(status, {"status": status, "reason": reason, "text": text, **more}, **(headers or {}))


def raw(whole: bytes) -> Answer:
    """These bytes, and the end of the connection; none: hung up without an answer."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(whole)
        handler.close_connection = True

    return answer


HANGS_UP = raw(b"")
CUT_OFF = raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n{}")
