"""What a real server does with connections, as its clients see it."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable
from typing import Any

from tests.client.real import Real


def test_an_answer_does_not_wait_for_a_confirmation(sqlite_place: str, real: Callable[..., Real]) -> None:
    """An answer is two writes; without TCP_NODELAY the second waited 40 ms for the client to confirm the first."""
    service = real(sqlite_place)
    client = http.client.HTTPConnection("127.0.0.1", service.port)
    client.request("GET", "/health/live")
    assert client.getresponse().read() == b'{"live": true}'
    (connection,) = service._server.server_state.connections
    accepted: Any = connection.transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    client.close()
