"""What a real server does with connections, as its clients see it."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable
from typing import Any

import pytest

from privloss.client.asking import Patience
from privloss.client.ledger import RemoteLedger
from privloss.ledger.stores.base import LostReply
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


def test_a_service_that_says_nothing_is_not_waited_for_for_ever() -> None:
    """It listens, and that is all; whether it took effect is not known."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        ledger = RemoteLedger(place, token="pl_x", seconds=0.05, patience=Patience(0.0))
        with pytest.raises(LostReply, match="timed out; it is not known"):
            ledger.commit("k")
