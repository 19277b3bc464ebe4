"""A real service on a port of this machine, in a thread of this process: with the server's own protocol, and with the
clock of the machine."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn

import privloss as pl
from privloss.client.asking import Patience
from privloss.ledger.ledger import Ledger
from privloss.service.app import make
from privloss.service.serve import config
from privloss.service.settings import Settings
from privloss.service.tokens import Tokens
from privloss.service.workers import Workers


class Real:
    """A service on a ledger, which it closes in the end."""

    def __init__(self, ledger: Ledger, workers: Workers, **settings: Any) -> None:
        self.ledger, self.tokens = ledger, Tokens(ledger.store)
        made = config(Settings(port=0, **{"rate": 1e5, **settings}), make(ledger, Settings(rate=1e5), workers=workers))
        self._server = uvicorn.Server(made)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.place = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.run(self._server.serve([self._listening]))

    def token(self, role: str, **more: Any) -> str:
        return self.tokens.create(role, **more)[1]

    def analyst(self, name: str = "alice", *datasets: str) -> str:
        return self.token("analyst", analyst=name, datasets=datasets or None)

    def remote(self, token: str, through: str | None = None) -> pl.Ledger:
        """The ledger as a program elsewhere has it."""
        return pl.Ledger(through or self.place, token=token)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()
        self.ledger.close()


def patient(sleep: Callable[[float], None], seconds: float = 60.0) -> Patience:
    """Patience whose pauses are the test's."""
    return Patience(seconds, sleep=sleep, draw=lambda: 0.0)
