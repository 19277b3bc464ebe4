"""Many processes on one ledger, killed at random: ``python -m tests.ledger.hammer --place sqlite|postgresql``.

Every worker writes its intent to its own log before a command and the answer after it, each synced to disk. Workers are
killed with SIGKILL and started again; a new one finishes the keys the old one left. At the end the ledger is compared
with the logs and with the pure model. What a key asks for follows from the key alone, so anybody can ask it again.

When to kill, and when to stop, follows from how far the logs have come, never from the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privloss.ledger.ledger import Ledger, RefusedError, Reservation
from privloss.ledger.state import COMMITTED, STARTED, VOIDED, State, apply
from privloss.ledger.stores.address import VARIABLE
from privloss.ledger.stores.base import LedgerError
from privloss.ledger.verify import differences, exceeded
from tests.ledger.postgres import Server

ROOT = Path(__file__).parents[2]
COSTS = ("1/7", "1/11", "0.013", "1e-6", "3/1000", "1/97")
CAPS = {"tight": "40", "small": "3", "wide": "100000", "vast": "1000000"}  # all pure
CHOICES: tuple[tuple[str, ...], ...] = (
    ("tight",), ("small",), ("wide",), ("vast",), ("both",), ("tight", "wide"), ("vast", "small"), ("wide", "vast"),
)  # fmt: skip
SHARED = 8  # every eighth key of a worker is one that the others use too


# -- what a key asks for -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """A request and how far to take it."""

    datasets: tuple[str, ...]
    cost: str
    cost_delta: str | None
    analyst: str
    lease: float
    moves: tuple[str, ...]


def work(key: str) -> Work:
    """The same for everybody who has the key."""
    rng = random.Random(key)
    datasets = rng.choice(CHOICES)
    moves = rng.choices([("start", "commit"), ("void",), ("start",), ()], [70, 20, 5, 5])[0]
    lease = 3600.0 if moves and moves[-1] != "start" else rng.uniform(1, 4)  # what is left open expires soon
    analyst = rng.choice(["", "", "ann", "bob"])
    return Work(datasets, rng.choice(COSTS), "1e-7" if datasets == ("both",) else None, analyst, lease, moves)


def set_up(ledger: Ledger) -> None:
    for name, cap in CAPS.items():
        ledger.add_dataset(name, adjacency="add-remove")
        ledger.set_budget(name, currency="pure", cap=cap)
    ledger.add_dataset("both", adjacency="add-remove")
    ledger.set_budget("both", currency="approx", cap="30", delta="1e-4")
    ledger.set_budget("wide", currency="pure", cap="20", analyst="ann")


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
    """Reserve a key and move it as far as its work says."""
    asked = work(key)
    for move in ("reserve", *asked.moves):
        log.write(intent=move, key=key)
        try:
            state = _ask(ledger, key, move, asked).state
        except RefusedError as refusal:
            log.write(answer=move, key=key, refused=refusal.refused.reason.code)
            break
        except LedgerError as problem:
            log.write(answer=move, key=key, error=f"{type(problem).__name__}: {problem}")
            break
        log.write(answer=move, key=key, state=state)
    log.write(done=key)


def _ask(ledger: Ledger, key: str, move: str, asked: Work) -> Reservation:
    if move == "start":
        return ledger.start(key, lease=asked.lease)
    if move != "reserve":
        return ledger.commit(key) if move == "commit" else ledger.void(key)
    return ledger.reserve(
        asked.datasets,
        key=key,
        cost=asked.cost,
        cost_delta=asked.cost_delta,
        analyst=asked.analyst,
        lease=asked.lease,
    )


def worker(number: int, home: Path) -> None:
    """Finish what is unfinished, then go on with new keys until told to stop."""
    path, parent = home / f"log{number}", os.getppid()
    asked = {entry["key"]: None for entry in entries(path) if "intent" in entry}
    finished = {entry["done"] for entry in entries(path) if "done" in entry}
    count, log, ledger = len(asked), Log(path), Ledger()
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


def torment(running: list[Running], total: int, kills: int, rng: random.Random) -> int:
    """Kill workers at random, spread over the run; each has written something since it started. Returns how often."""
    killed = 0
    for moment in range(kills):
        victim = rng.choice(running)
        if not until(running, total * moment // kills, victim, victim.lines() + rng.randint(1, 40)):
            return killed
        killed += victim.kill()
        victim.start()
    until(running, total)
    return killed


def hammer(place: str, home: Path, lines: int, processes: int, kills: int, seed: int) -> dict[str, Any]:
    """Run the workers and kill them, until their logs have so many lines; then compare. Returns the summary."""
    rng = random.Random(seed)
    ledger = Ledger.create(place)
    set_up(ledger)
    begun = time.monotonic()
    running = [Running(number, home, place) for number in range(processes)]
    problems: list[str] = []
    try:
        killed = torment(running, lines, kills, rng)
        took = time.monotonic() - begun
        (home / "stop").touch()
        for each in running:
            each.process.wait(1800)
    finally:
        for each in running:
            if each.process.poll() is None:
                each.kill()
    for each in running:
        said = (home / f"errors{each.number}").read_text().strip()
        if each.process.returncode != 0 or said:
            problems.append(f"worker {each.number}: ended with {each.process.returncode} {said[-500:]}")
    logs = [list(entries(home / f"log{number}")) for number in range(processes)]
    found, figures = compare(ledger, [entry for log in logs for entry in log])
    ledger.close()
    if killed < kills:
        problems.append(f"only {killed} of {kills} kills hit a running worker")
    summary = {"place": place.split(":")[0] if "://" in place else "sqlite", "seconds": round(took, 1)}
    rate = round(figures["events"] / took, 1)
    return {
        **summary,
        "processes": processes,
        "kills": killed,
        **figures,
        "events per second": rate,
        "problems": problems + found,
    }


# -- the comparison ----------------------------------------------------------------------------------------------------


def compare(ledger: Ledger, log: list[dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """Problems, and figures, of a ledger against what its users were told."""
    with ledger.store.reading() as cursor:
        bodies = [json.loads(body) for _, _, body, _ in ledger.store.events(cursor)]
        tables = ledger.store.everything(cursor)
    problems = [f"error: {entry['error']}" for entry in log if "error" in entry]
    problems += [f"tables: {text}" for text in exceeded(tables)]
    problems += _promises(tables, log) + _once(bodies) + _entered(log) + _model(bodies, tables)
    problems += [f"verify: {text}" for text in ledger.verify().problems]
    refusals = Counter(entry["refused"] for entry in log if "refused" in entry)
    asked, told = (sum(kind in entry for entry in log) for kind in ("intent", "answer"))
    states = Counter(analysis.state for analysis in tables.analyses.values())
    figures = {
        "commands": asked,
        "interrupted": asked - told,
        "events": len(bodies),
        "commits": states[COMMITTED],
        "states": dict(sorted(states.items())),
        "expired": sum("why" in body for body in bodies),
        "refusals": sum(refusals.values()),
        "reasons": dict(sorted(refusals.items())),
    }
    return problems, figures


def _promises(tables: State, log: list[dict[str, Any]]) -> list[str]:
    """What workers were told, and the ledger does not hold."""
    problems = []
    allowed = {COMMITTED: (COMMITTED,), VOIDED: (VOIDED,), STARTED: (STARTED, COMMITTED)}
    accepted, asked, told = set(), Counter[str](), Counter[str]()
    for entry in log:
        asked[entry.get("key", "")] += entry.get("intent") == "reserve"
        told[entry.get("key", "")] += entry.get("answer") == "reserve"
        if "state" not in entry:
            continue
        key, state = entry["key"], entry["state"]
        accepted.add(key)
        found = tables.analyses.get(key)
        if found is None:
            problems.append(f"key {key!r}: was answered with {state} and is not in the ledger")
        elif found.state not in allowed.get(state, (found.state,)):
            problems.append(f"key {key!r}: was answered with {state} and is {found.state}")
    for key in tables.analyses:
        if key not in accepted and asked[key] <= told[key]:
            problems.append(f"key {key!r}: is in the ledger, but was never asked for, or always refused")
    return problems


def _once(bodies: Iterable[dict[str, Any]]) -> list[str]:
    """Keys that took effect twice."""
    seen = Counter((body["kind"], body["key"]) for body in bodies if "key" in body)
    return [f"key {key!r}: was {kind} {times} times" for (kind, key), times in seen.items() if times > 1]


def _entered(log: Iterable[dict[str, Any]]) -> list[str]:
    """Keys under which more than one caller was told to read the data."""
    told = Counter(entry["key"] for entry in log if entry.get("answer") == "start" and "state" in entry)
    return [f"key {key!r}: let {times} callers in" for key, times in told.items() if times > 1]


def _model(bodies: Iterable[dict[str, Any]], tables: State) -> list[str]:
    """The history, replayed event by event."""
    state = State()
    for number, body in enumerate(bodies, start=1):
        apply(state, body)
        over = exceeded(state)
        if over:
            return [f"replay, event {number}: {over[0]}"]
    return [f"replay: {text}" for text in differences(state, tables)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--url", help="an empty PostgreSQL database; without it a server is started")
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
    server = Server() if given.place == "postgresql" and given.url is None else None
    try:
        address = str(home / "privloss.db") if given.place == "sqlite" else given.url or server.fresh("hammer")  # type: ignore[union-attr]
        summary = hammer(address, home, given.lines, given.processes, given.kills, given.seed)
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(home, ignore_errors=True)
    shown = summary["problems"][:20]
    print(json.dumps({**summary, "problems": len(summary["problems"]), "first problems": shown}, indent=2))
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
