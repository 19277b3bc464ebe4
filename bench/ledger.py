"""How fast the ledger is, against what the disk allows: ``python -m bench.ledger [--seconds S] [--directory D]``.

Every reservation is durable before it is answered, so one writer cannot be faster than the disk can sync (4 KiB each).
That speed is measured before and after each row, in the same directory. The second table times `reserve` with a short
and a long history; the two ledgers take turns.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import threading
import time
from fractions import Fraction
from pathlib import Path

from tests.ledger.postgres import Server

from privloss.ledger.commands import Command, Move, Reserve
from privloss.ledger.ledger import Ledger
from privloss.ledger.state import COMMITTED, STARTED

COST = "1e-6"
SHORT, LONG = 10**2, 10**5
_BATCH = 500


def syncs(directory: Path, seconds: float) -> float:
    """Writes of 4 KiB, each synced, per second."""
    block, count = os.urandom(4096), 0
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        begun = time.perf_counter()
        while (took := time.perf_counter() - begun) < seconds:
            file.write(block)
            os.fsync(file.fileno())
            count += 1
    return count / took


def made(place: str, group: bool = False) -> Ledger:
    ledger = Ledger.create(place, group=group)
    ledger.add_dataset("d", adjacency="add-remove")
    ledger.set_budget("d", currency="pure", cap="1000")
    return ledger


def reservations(ledger: Ledger, clients: int, seconds: float) -> float:
    """Reservations per second by some threads, each with a connection of its own."""
    counts, number = [0] * clients, itertools.count()
    begun = time.perf_counter()

    def ask(who: int) -> None:
        while time.perf_counter() - begun < seconds:
            ledger.reserve("d", cost=COST, key=f"key {next(number)}")
            counts[who] += 1

    threads = [threading.Thread(target=ask, args=(who,)) for who in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begun)


def aged(path: Path, events: int) -> Ledger:
    """A ledger with a long history: three events for each committed key, many keys in one transaction."""
    ledger = made(str(path))
    charges = {"d": {"epsilon": Fraction(COST)}}
    names = (f"old {i}" for i in range((events - 3) // 3))
    while keys := list(itertools.islice(names, _BATCH)):
        commands: list[Command] = [Reserve(key, key, charges, None, "", 3600.0) for key in keys]
        for to in (STARTED, COMMITTED):
            commands += [Move(to, key) for key in keys]
        ledger.store.run_all(commands)
    audit = ledger.verify()
    if not audit.clean:
        raise SystemExit(f"the history is not valid: {audit.problems}")
    return ledger


def turns(ledgers: list[Ledger], seconds: float) -> list[list[float]]:
    """Seconds that each `reserve` took, the ledgers taking turns."""
    found: list[list[float]] = [[] for _ in ledgers]
    begun = time.perf_counter()
    for number in itertools.count():
        for ledger, times in zip(ledgers, found, strict=True):
            start = time.perf_counter()
            ledger.reserve("d", cost=COST, key=f"new {number}")
            times.append(time.perf_counter() - start)
        if time.perf_counter() - begun > seconds:
            break
    return found


def measure(directory: Path, server: Server, seconds: float) -> list[tuple[str, float, float]]:
    """Name, reservations per second, and syncs per second just before and after: a shared disk is not steady."""
    settings = [
        ("SQLite, 1 client", 1, str(directory / "one.db"), False),
        ("SQLite, group commit, 64 threads", 64, str(directory / "grouped.db"), True),
    ]
    for clients in (1, 8, 24):
        name = f"PostgreSQL, {clients} client{'s' if clients > 1 else ''}"
        settings.append((name, clients, server.fresh(f"bench{clients}"), False))
    rows, before = [], syncs(directory, seconds / 2)
    for name, clients, place, group in settings:
        ledger = made(place, group)
        rate = reservations(ledger, clients, seconds)
        if Fraction(ledger.status("d")["reserved"]) <= 0:
            raise SystemExit(f"{name}: nothing was reserved")
        ledger.close()
        after = syncs(directory, seconds / 2)
        rows.append((name, rate, (before + after) / 2))
        before = after
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4, help="for each measurement")
    parser.add_argument("--directory", help="on the disk to measure; PostgreSQL's is the temporary directory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="privloss-bench-", dir=given.directory) as name:
        server = Server()
        try:
            rows = measure(Path(name), server, given.seconds)
        finally:
            server.stop()
        print("| | per second | fsync per second then | ratio |\n|---|---|---|---|")
        for what, rate, disk in rows:
            print(f"| {what} | {rate:.0f} | {disk:.0f} | {rate / disk:.2f} |")
        ledgers = [aged(Path(name) / f"{events}.db", events) for events in (SHORT, LONG)]
        found = [statistics.median(times) for times in turns(ledgers, given.seconds)]
        for ledger in ledgers:
            ledger.close()
    print("\n| events of history | reserve, median ms | ratio |\n|---|---|---|")
    for events, median in zip((SHORT, LONG), found, strict=True):
        print(f"| {events} | {median * 1e3:.2f} | {median / found[0]:.2f} |")


if __name__ == "__main__":
    main()
