"""Many clients on one service, which is killed at random: ``python -m tests.service.hammer --store sqlite|postgresql``.

The clients are threads of this process; the service is a process of its own, killed with SIGKILL in the middle of their
requests and started again on the same port. Each client writes its intent to its own log before a request and the
answer after it; where no answer came it asks the same again, a start with the token of its run. What a key asks for
follows from the key alone, and every eighth key is one that the other clients use too. At the end the ledger is
compared with the logs and with the pure rules, as in `tests/ledger/hammer.py`, whose work this is.

When to kill, and when to stop, follows from how many answers have come, never from the clock.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privloss.ledger.answers import RefusedError, Reservation
from privloss.ledger.ledger import Ledger
from privloss.ledger.refusals import Refusal, Refused
from privloss.ledger.stores.base import LedgerError, LostReply, NoAnswer, Outcome
from privloss.service.tokens import Tokens
from tests.ledger.hammer import SHARED, Log, carry_out, entries, set_up
from tests.ledger.hammer_check import compare
from tests.ledger.postgres import Server
from tests.service.outside import Process

ANALYSTS = ("ann", "bob", "carl", "zoe")
CODES = {reason.code: reason for reason in Refusal}
PATIENCE = 120.0  # seconds for one reply: a service that hangs must not hang its clients for ever


class Counted(Log):
    """A log that says how many answers it holds."""

    def __init__(self, path: Path, field: Field) -> None:
        super().__init__(path)
        self._field = field

    def write(self, **entry: Any) -> None:
        super().write(**entry)
        if "answer" in entry:
            self._field.answered()


class Field:
    """What the clients and their tormentor tell each other."""

    def __init__(self) -> None:
        self._answers, self._news = 0, threading.Condition()
        self.up, self.stop = threading.Event(), threading.Event()
        self.broken: list[str] = []

    def answered(self) -> None:
        with self._news:
            self._answers += 1
            self._news.notify_all()

    def give_up(self, why: str) -> None:
        with self._news:
            self.broken.append(why)
            self._news.notify_all()

    def wait_for(self, more: int) -> bool:
        """Until so many more answers have come; False if a client has broken."""
        with self._news:
            wanted = self._answers + more
            self._news.wait_for(lambda: self._answers >= wanted or bool(self.broken))
            return not self.broken


class Asking:
    """A ledger that is reached over HTTP, in the name of whoever stands before the "/" of a key."""

    def __init__(self, port: int, tokens: Mapping[str, str], field: Field) -> None:
        self._port, self._tokens, self._field = port, tokens, field
        self._connection = self._connected()

    def reserve(self, datasets: Any, *, key: str, analyst: str, **asked: Any) -> Reservation:
        names = [datasets] if isinstance(datasets, str) else list(datasets)
        return self._asked("PUT", key, "", {"datasets": names, **{k: v for k, v in asked.items() if v is not None}})

    def start(self, key: str, lease: float, token: str) -> Reservation:
        return self._asked("POST", key, "/start", {"run": token, "lease": lease})

    def commit(self, key: str) -> Reservation:
        return self._asked("POST", key, "/commit", {})

    def void(self, key: str) -> Reservation:
        return self._asked("POST", key, "/void", {})

    def close(self) -> None:
        self._connection.close()

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)

    def _asked(self, method: str, key: str, step: str, body: Mapping[str, Any]) -> Reservation:
        owner, name = key.split("/")
        headers = {"authorization": f"Bearer {self._tokens[owner]}", "content-type": "application/json"}
        try:
            self._connection.request(method, f"/v1/reservations/{name}{step}", json.dumps(body), headers)
            reply = self._connection.getresponse()
            status, found = reply.status, json.loads(reply.read())
        except (OSError, http.client.HTTPException) as problem:
            self._connection.close()
            self._connection = self._connected()
            self._field.up.wait()
            raise LostReply(f"no reply: {type(problem).__name__}") from None
        if status in (200, 201):
            return Reservation(key, found["state"], Outcome(None, found["state"], {}, {}))
        if status in (502, 503):
            raise NoAnswer(found["text"])
        if found.get("reason") in CODES:
            raise RefusedError(Refused(CODES[found["reason"]], found["text"]))
        raise LedgerError(f"status {status}: {found}")


def client(number: int, home: Path, port: int, tokens: Mapping[str, str], field: Field) -> None:
    """One key after the other until it is told to stop."""
    log, asking, count = Counted(home / f"log{number}", field), Asking(port, tokens, field), 0
    try:
        while not field.stop.is_set():
            name = f"shared-{count}" if count % SHARED == 0 else f"client-{number}-{count}"
            carry_out(asking, f"{random.Random(name).choice(ANALYSTS)}/{name}", log)  # type: ignore[arg-type]
            count += 1
    except BaseException as problem:
        field.give_up(f"client {number}: {type(problem).__name__}: {problem}")
        raise
    finally:
        asking.close()


@dataclass(frozen=True)
class Size:
    """How much of it."""

    kills: int
    clients: int
    most: int  # answers between two kills
    seed: int


def torment(running: Process, field: Field, size: Size) -> int:
    """Kill the service again and again; between two kills it has answered something. Returns how often."""
    rng, killed = random.Random(size.seed), 0
    while killed < size.kills and field.wait_for(rng.randint(1, size.most)):
        field.up.clear()
        running.kill()
        killed += 1
        running.start()
        field.up.set()
    field.wait_for(10 * size.clients)
    return killed


def hammer(place: str, home: Path, size: Size) -> dict[str, Any]:
    """Run clients and kill their service, then compare. Returns the summary."""
    ledger = Ledger.create(place)
    set_up(ledger)
    made = Tokens(ledger.store)
    tokens = {name: made.create("analyst", analyst=name, datasets=None)[1] for name in ANALYSTS}
    begun, field = time.monotonic(), Field()
    running = Process(place, home / "service.log", ("--price-workers", "1"))
    field.up.set()
    arguments = home, running.port, tokens, field
    clients = [threading.Thread(target=client, args=(number, *arguments)) for number in range(size.clients)]
    try:
        for each in clients:
            each.start()
        killed = torment(running, field, size)
        took = time.monotonic() - begun
        field.stop.set()
        for each in clients:
            each.join()
        running.await_ready()  # ended while its workers begin, it would say so at length
        code = running.end()
    finally:
        field.stop.set()
        field.up.set()
        running.kill()
    logs = [entry for number in range(size.clients) for entry in entries(home / f"log{number}")]
    found, figures = compare(ledger, logs)
    ledger.close()
    problems = field.broken + found + ([] if code == 0 else [f"the service ended with {code}"])
    problems += ["the service's log has a traceback"] * ("Traceback" in running.log())
    problems += [] if killed == size.kills else [f"only {killed} of {size.kills} kills"]
    more = {"seconds": round(took, 1), "clients": size.clients, "kills": killed}
    return {**more, **figures, "problems": problems}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--most", type=int, default=120, help="answers between two kills")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="privloss-service-hammer-"))
    size = Size(given.kills, given.clients, given.most, given.seed)
    server = Server() if given.store == "postgresql" else None
    try:
        place = str(home / "privloss.db") if server is None else server.fresh("hammer")
        summary = {"store": given.store, **hammer(place, home, size)}
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(home, ignore_errors=True)
    shown = summary["problems"][:20]
    print(json.dumps({**summary, "problems": len(summary["problems"]), "first problems": shown}, indent=2))
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
