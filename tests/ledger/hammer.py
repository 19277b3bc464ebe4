"""Many processes on one ledger, killed at random: ``python -m tests.ledger.hammer --place sqlite|postgresql``.

Every worker writes its intent to its own log before a command and the answer after it, each synced to disk. Workers are
killed with SIGKILL and started again; a new one finishes the keys the old one left. PostgreSQL itself is troubled too:
backends are ended and killed, the server is restarted, connections are cut before and after a COMMIT is sent. At the
end the ledger is compared with the logs and with the pure model (`hammer_check.py`). What a key asks for follows from
the key alone, so anybody can ask it again.

When to kill, and when to stop, follows from how far the logs have come, never from the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from privloss.ledger.ledger import Ledger, RefusedError, Reservation
from privloss.ledger.stores.address import VARIABLE
from privloss.ledger.stores.base import LedgerError, LostReply, NoAnswer
from tests.ledger.hammer_check import compare
from tests.ledger.postgres import Server
from tests.ledger.proxy import Proxy

ROOT = Path(__file__).parents[2]
COSTS = ("1/7", "1/11", "0.013", "1e-6", "3/1000", "1/97", "1/1009")
CAPS = {"tight": "40", "small": "3", "wide": "100000", "vast": "1000000"}  # all pure
CHOICES: tuple[tuple[str, ...], ...] = (
    ("tight",), ("small",), ("wide",), ("vast",), ("both",), ("tight", "wide"), ("vast", "small"), ("wide", "vast"),
    ("north",), ("south",), ("north", "south"), ("south", "vast"), ("yearly",), ("stream",), ("stream", "yearly"),
)  # fmt: skip
SHARED = 8  # every eighth key of a worker is one that the others use too
CUTS = 0.03  # chance of a connection to be cut at a commit


# -- what a key asks for -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """A request and how far to take it."""

    datasets: tuple[str, ...]
    cost: str
    cost_delta: str | None
    analyst: str
    blocks: str | None
    lease: float
    moves: tuple[str, ...]


def work(key: str) -> Work:
    """The same for everybody who has the key."""
    rng = random.Random(key)
    datasets = rng.choice(CHOICES)
    moves = rng.choices([("start", "commit"), ("void",), ("start",), ()], [70, 20, 5, 5])[0]
    lease = 3600.0 if moves and moves[-1] != "start" else rng.uniform(1, 4)  # what is left open expires soon
    analyst = rng.choice(["", "ann", "bob", "Ann", " ANN ", "carl"])  # wide has quotas
    first = rng.randint(1, 28)
    days = f"2026-11-{first:02d}..2026-11-{rng.randint(first, 28):02d}" if "stream" in datasets else None
    delta = "1e-7" if datasets == ("both",) else None
    return Work(datasets, rng.choice(COSTS), delta, analyst, days, lease, moves)


def set_up(ledger: Ledger) -> None:
    for name, cap in CAPS.items():
        ledger.add_dataset(name, adjacency="add-remove")
        ledger.set_budget(name, currency="pure", cap=cap)
    ledger.add_dataset("both", adjacency="add-remove")
    ledger.set_budget("both", currency="approx", cap="30", delta="1e-4")
    ledger.set_budget("wide", currency="pure", cap="20", analyst="ann")
    ledger.set_budget("wide", currency="pure", cap="50000", analyst="bob")
    ledger.add_group("land", adjacency="add-remove")
    ledger.set_budget("land", currency="pure", cap="4")
    for name in ("north", "south"):
        ledger.add_dataset(name, adjacency="add-remove", parent="land")
        ledger.set_budget(name, currency="pure", cap="3")
    ledger.add_dataset("yearly", adjacency="add-remove")
    ledger.set_budget("yearly", currency="pure", cap="1000")
    ledger.set_budget("yearly", currency="pure", cap="3", every="year")
    ledger.add_dataset("stream", adjacency="add-remove", blocks="day")
    ledger.set_budget("stream", currency="pure", cap="2")


# -- the worker --------------------------------------------------------------------------------------------------------


class Log:
    """One JSON object a line; each is on disk before the next step."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.write(self._file, b"\n")  # the last worker was killed while it wrote

    def write(self, **entry: Any) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")
        os.fsync(self._file)


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a log."""
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def carry_out(ledger: Ledger, key: str, log: Log) -> None:
    """Reserve a key and move it as far as its work says. Between start and commit the data is read: that is logged."""
    asked = work(key)
    for move in ("reserve", *asked.moves):
        token = secrets.token_hex(16)  # of this run: not known to one that is started after a kill
        try:
            state = _told(ledger, key, move, asked, token, log)
        except RefusedError as refusal:
            log.write(answer=move, key=key, refused=refusal.refused.reason.code)
            break
        except LedgerError as problem:
            log.write(answer=move, key=key, error=f"{type(problem).__name__}: {problem}")
            break
        log.write(answer=move, key=key, state=state)
        if move == "start":
            log.write(entered=key)
        elif move == "commit":
            log.write(released=key)
    log.write(done=key)


def _told(ledger: Ledger, key: str, move: str, asked: Work, token: str, log: Log) -> str:
    """The answer, asked for until there is one: with its token a run may ask again."""
    while True:
        log.write(intent=move, key=key)
        try:
            return _ask(ledger, key, move, asked, token).state
        except (NoAnswer, LostReply):
            log.write(unknown=move, key=key)
            time.sleep(LOOK)


def _ask(ledger: Ledger, key: str, move: str, asked: Work, token: str) -> Reservation:
    if move == "start":
        return ledger.start(key, lease=asked.lease, token=token)
    if move != "reserve":
        return ledger.commit(key) if move == "commit" else ledger.void(key)
    return ledger.reserve(
        asked.datasets if len(asked.datasets) > 1 else asked.datasets[0],
        key=key,
        cost=asked.cost,
        cost_delta=asked.cost_delta,
        analyst=asked.analyst,
        blocks=asked.blocks,
        lease=asked.lease,
    )


def _opened() -> Ledger:
    while True:
        try:
            return Ledger()
        except NoAnswer:  # the server is away
            time.sleep(LOOK)


def worker(number: int, home: Path) -> None:
    """Finish what is unfinished, then go on with new keys until told to stop."""
    path, parent = home / f"log{number}", os.getppid()
    asked = {entry["key"]: None for entry in entries(path) if "intent" in entry}
    finished = {entry["done"] for entry in entries(path) if "done" in entry}
    count, log, ledger = len(asked), Log(path), _opened()
    for key in [key for key in asked if key not in finished]:
        carry_out(ledger, key, log)
    while not (home / "stop").exists() and os.getppid() == parent:
        shared = count % SHARED == 0
        carry_out(ledger, f"shared {count}" if shared else f"worker {number} {count}", log)
        count += 1
    ledger.close()


# -- the parent --------------------------------------------------------------------------------------------------------


LOOK = 0.005  # seconds between two looks at the logs


@dataclass
class Running:
    """A worker process, and how many lines its log has."""

    number: int
    home: Path
    place: str
    process: subprocess.Popen[bytes] = field(init=False)
    _lines: int = 0
    _read: int = 0

    def __post_init__(self) -> None:
        self.start()

    def lines(self) -> int:
        path = self.home / f"log{self.number}"
        if path.exists():
            with path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
            self._lines, self._read = self._lines + new.count(b"\n"), self._read + len(new)
        return self._lines

    def start(self) -> None:
        call = [sys.executable, "-m", "tests.ledger.hammer", "--worker", str(self.number), "--home", str(self.home)]
        with (self.home / f"errors{self.number}").open("ab") as said:
            self.process = subprocess.Popen(call, cwd=ROOT, env={**os.environ, VARIABLE: self.place}, stderr=said)

    def kill(self) -> bool:
        """Whether it was still there to be killed."""
        there = self.process.poll() is None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return there and self.process.returncode == -signal.SIGKILL


def until(running: list[Running], total: int, victim: Running | None = None, own: int = 0) -> bool:
    """Wait until all logs together, and that of one worker, are so long; False if a worker has ended by itself."""
    while sum(each.lines() for each in running) < total or (victim is not None and victim.lines() < own):
        if any(each.process.poll() is not None for each in running):
            return False
        time.sleep(LOOK)
    return True


class Troubles:
    """What befalls PostgreSQL; nothing befalls SQLite but its processes."""

    def __init__(self, server: Server, place: str, rng: random.Random) -> None:
        self._server, self._place, self._rng = server, place, rng
        self._next = 0

    def strike(self) -> None:
        """Each kind in turn."""
        kinds = (self._ended, self._killed, self._restarted)
        kinds[self._next % len(kinds)]()
        self._next += 1

    def _backends(self) -> list[int]:
        query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        with psycopg.connect(self._place, autocommit=True) as connection:
            return [row[0] for row in connection.execute(query).fetchall()]

    def _ended(self) -> None:
        found = self._backends()
        with psycopg.connect(self._place, autocommit=True) as connection:
            for pid in self._rng.sample(found, min(2, len(found))):
                connection.execute("SELECT pg_terminate_backend(%s)", [pid])

    def _killed(self) -> None:
        """The server ends all others too, and recovers from its log."""
        found = self._backends()
        if found:
            os.kill(self._rng.choice(found), signal.SIGKILL)
            self._server.await_recovery()

    def _restarted(self) -> None:
        self._server.restart(self._rng.choice([signal.SIGINT, signal.SIGQUIT]))


def torment(running: list[Running], total: int, kills: int, troubles: Troubles | None, rng: random.Random) -> int:
    """Kill workers at random, spread over the run; each has written something since it started. Returns how often.
    After every second kill something befalls the server."""
    killed = 0
    for moment in range(kills):
        victim = rng.choice(running)
        if not until(running, total * moment // kills, victim, victim.lines() + rng.randint(1, 40)):
            return killed
        killed += victim.kill()
        victim.start()
        if troubles is not None and moment % 2:
            troubles.strike()
    until(running, total)
    return killed


@dataclass(frozen=True)
class Size:
    """How much of it."""

    lines: int
    processes: int
    kills: int
    seed: int


def hammer(place: str, through: str, home: Path, size: Size, troubles: Troubles | None) -> dict[str, Any]:
    """Run the workers and kill them, until their logs have so many lines; then compare. Returns the summary."""
    ledger = Ledger.create(place)
    set_up(ledger)
    begun = time.monotonic()
    running = [Running(number, home, through) for number in range(size.processes)]
    try:
        killed = torment(running, size.lines, size.kills, troubles, random.Random(size.seed))
        took = time.monotonic() - begun
        (home / "stop").touch()
        for each in running:
            each.process.wait(1800)
    finally:
        for each in running:
            if each.process.poll() is None:
                each.kill()
    problems = [problem for each in running for problem in _ended_badly(each)]
    logs = [list(entries(home / f"log{each.number}")) for each in running]
    found, figures = compare(ledger, [entry for log in logs for entry in log])
    ledger.close()
    if killed < size.kills:
        problems.append(f"only {killed} of {size.kills} kills hit a running worker")
    return {
        "place": "sqlite" if troubles is None else "postgresql",
        "seconds": round(took, 1),
        "processes": size.processes,
        "kills": killed,
        **figures,
        "events per second": round(figures["events"] / took, 1),
        "problems": problems + found,
    }


def _ended_badly(worker: Running) -> list[str]:
    said = (worker.home / f"errors{worker.number}").read_text().strip()
    said = "\n".join(line for line in said.splitlines() if "error ignored" not in line)
    if worker.process.returncode == 0 and not said:
        return []
    return [f"worker {worker.number}: ended with {worker.process.returncode} {said[-500:]}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--lines", type=int, default=150_000, help="of all logs, before the workers are stopped")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        worker(given.worker, given.home)
        return 0
    home = Path(tempfile.mkdtemp(prefix="privloss-hammer-"))
    size = Size(given.lines, given.processes, given.kills, given.seed)
    try:
        if given.place == "sqlite":
            place = str(home / "privloss.db")
            summary = hammer(place, place, home, size, None)
        else:
            summary = _troubled(home, size)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    shown = summary["problems"][:20]
    print(json.dumps({**summary, "problems": len(summary["problems"]), "first problems": shown}, indent=2))
    return 1 if shown else 0


def _troubled(home: Path, size: Size) -> dict[str, Any]:
    server = Server()
    try:
        with Proxy(server.port, CUTS, size.seed) as proxy:
            place = server.fresh("hammer")
            troubles = Troubles(server, place, random.Random(size.seed))
            found = hammer(place, proxy.through(place), home, size, troubles)
            return {**found, "cut": proxy.cuts}
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
