"""The counters on a port of their own, which only this machine can reach: for a scraper without a token."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from privloss.service.guard import host_name
from privloss.service.metrics import MEDIA, Metrics
from privloss.service.settings import LOCAL_NAMES

_PATIENCE = 10.0  # seconds for one request to come in


@contextmanager
def on_port(metrics: Metrics, port: int | None) -> Iterator[None]:
    """Answer `GET /metrics` there, for the time of a `with`; nothing without a port."""
    if port is None:
        yield
        return

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            known = host_name(self.headers.get("Host", "")) in LOCAL_NAMES  # a page elsewhere may lead a browser here
            text = metrics.text() if known and self.path == "/metrics" else b""
            self.send_response(200 if text else 404)
            self.send_header("Content-Type", MEDIA)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="privloss-metrics", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
