"""A service in a process of its own, that can be killed and started again on the same port."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx

from privloss.ledger.ledger import Ledger
from privloss.ledger.stores.address import VARIABLE
from privloss.service.tokens import Tokens

_PLACE = re.compile(r"privloss: serving at (\S+)")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Process:
    """`privloss serve` on a ledger that is there; the constructor returns when it listens."""

    def __init__(self, place: str, log: Path, options: Sequence[str] = (), port: int = 0, rate: str = "100000") -> None:
        self._call = [sys.executable, "-m", "privloss", "serve", "--rate", rate, *options]
        self._environ = {**os.environ, VARIABLE: place}  # a password on a command line is seen by everybody
        self._log, self.port = log, port
        self.start()

    def start(self) -> None:
        call = [*self._call, "--port", str(self.port)]
        with self._log.open("ab") as said:
            self.process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=said, text=True, env=self._environ)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = _PLACE.match(line)
        if found is None:
            self.process.kill()
            raise RuntimeError(f"the service did not start: {line!r} {self.log()[-2000:]}")
        self.place = found[1]
        self.port = int(self.place.rpartition(":")[2])

    def log(self) -> str:
        return self._log.read_text()

    def kill(self) -> None:
        """At once."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self._ended()

    def end(self) -> int:
        """In order; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def client(self, token: str | None = None, **more: object) -> httpx.Client:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.place, headers=headers, timeout=60.0, **more)  # type: ignore[arg-type]

    def await_ready(self) -> None:
        """Until its workers are warm."""
        with self.client() as client:
            while client.get("/health/ready").status_code != 200:
                if self.process.poll() is not None:
                    raise RuntimeError(f"the service ended: {self.log()[-2000:]}")


def prepared(place: str) -> dict[str, str]:
    """A ledger with the datasets of `inside.Service`, and a token for each role."""
    ledger = Ledger.create(place)
    for name, currency, cap in (("census", "pure", "1"), ("taxes", "zcdp", "0.5")):
        ledger.add_dataset(name, adjacency="add-remove", unit="person")
        ledger.set_budget(name, currency=currency, cap=cap)
    tokens = Tokens(ledger.store)
    found = {role: tokens.create(role)[1] for role in ("steward", "auditor")}
    found |= {name: tokens.create("analyst", analyst=name, datasets=None)[1] for name in ("alice", "bob")}
    ledger.close()
    return found
