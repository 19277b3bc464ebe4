"""How fast the ledger is, against a bare writer: ``python -m bench.ledger [--seconds S] [--directory D] [--events N]``.

The bare writer does the least that could be called accounting: `UPDATE ... SET left = left - x WHERE left >= x` and one
INSERT of a text as long as the event that the ledger writes, durable before it is answered (one commit each, or for
each group, with the same settings), through the same driver and as many connections; where the ledger groups its
commits, the bare writer does so in the same way, and inserts a group's rows together, as the ledger does. On PostgreSQL
it sends a transaction of two statements, or both in one, as the ledger does where it can. One row compares the bare
writer with the least that a ledger could write (`bench/least.py`).

Both take turns in short slices of the same run, because neither a shared disk nor a shared processor is steady: ratios
are medians over neighbouring slices, of rates and of this process's own processor time for an answer (that of a server
is not in it). The second table times what must not depend on the length of the history.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from tests.ledger.postgres import Server

from bench.least import Least, opened
from privloss.ledger import maintenance
from privloss.ledger.commands import Command, Move, Reserve
from privloss.ledger.ledger import Ledger
from privloss.ledger.state import COMMITTED, STARTED
from privloss.ledger.stores.grouped import GroupedStore

COST = "1e-6"
SLICES, BATCH = 8, 400
NUMBERS = itertools.count()  # no key comes twice
Ask = Callable[[int, int], object]  # of a client, a number
Pair = tuple[float, float]  # answers per second, and microseconds of processor time for each


def rate(ask: Ask, clients: int, seconds: float) -> Pair:
    """What some threads are answered."""
    counts = [0] * clients
    begun, spent = time.perf_counter(), time.process_time()

    def work(who: int) -> None:
        while time.perf_counter() - begun < seconds:
            ask(who, next(NUMBERS))
            counts[who] += 1

    threads = [threading.Thread(target=work, args=(who,)) for who in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begun), (time.process_time() - spent) / max(sum(counts), 1) * 1e6


def compared(ours: Ask, bare: Ask, clients: int, seconds: float) -> list[float]:
    """Both rates and their ratio, both times and theirs: medians over slices that follow each other."""
    for who in range(clients):  # what is settled once: files that grow, statements that are prepared
        for ask in (ours, bare):
            ask(who, next(NUMBERS))
    found = []
    for turn in range(SLICES):
        sides = (ours, bare) if turn % 2 == 0 else (bare, ours)
        pair = [rate(ask, clients, seconds / SLICES) for ask in sides]
        found.append(pair if turn % 2 == 0 else pair[::-1])
    rows: list[float] = []
    for part, over in ((0, lambda pair: pair[0][0] / pair[1][0]), (1, lambda pair: pair[1][1] / pair[0][1])):
        rows += [statistics.median(pair[side][part] for pair in found) for side in (0, 1)]
        rows.append(statistics.median(map(over, found)))
    return rows


def made(place: str, datasets: int, group: bool = False) -> Ledger:
    ledger = Ledger.create(place, group=group)
    for number in range(datasets):
        ledger.add_dataset(f"d{number}", adjacency="add-remove")
        ledger.set_budget(f"d{number}", currency="pure", cap="100000")
    return ledger


def reserving(ledger: Ledger, datasets: int) -> Ask:
    return lambda who, number: ledger.reserve(f"d{who % datasets}", cost=COST, key=f"key {number}")


# -- bare writers ------------------------------------------------------------------------------------------------------

_TABLES = (
    "CREATE TABLE bare (name INTEGER PRIMARY KEY, rest REAL NOT NULL)",
    "CREATE TABLE bare_log (key TEXT PRIMARY KEY, name INTEGER NOT NULL, cost REAL NOT NULL, body TEXT NOT NULL)",
)
_UPDATE = "UPDATE bare SET rest = rest - 1e-6 WHERE name = ? AND rest >= 1e-6"
_INSERT = "INSERT INTO bare_log VALUES (?, ?, 1e-6, ?)"
_BODY = "x" * 415  # the length of an event of `reserving` with its two hashes


def bare_sqlite(path: Path) -> tuple[sqlite3.Connection, Callable[[int, int], None]]:
    raw = opened(path)
    for statement in _TABLES:
        raw.execute(statement)
    raw.executemany("INSERT INTO bare VALUES (?, 1e5)", [(i,) for i in range(24)])

    def write(who: int, number: int) -> None:
        if raw.execute(_UPDATE, (who,)).rowcount == 1:
            raw.execute(_INSERT, (f"key {number}", who, _BODY))

    return raw, write


def bare_single(path: Path) -> Ask:
    raw, write = bare_sqlite(path)

    def ask(who: int, number: int) -> None:
        raw.execute("BEGIN IMMEDIATE")
        write(who, number)
        raw.execute("COMMIT")

    return ask


class _Bare:
    """One commit for all that wait, handed over in the way of `GroupedStore`: for each an UPDATE, and an INSERT if it
    found room; or, `together`, the INSERTs of a group as one call."""

    balances = chained = keys = leases = sql_now = ""  # what the ledger's own stores have

    def __init__(self, path: Path, together: bool = False) -> None:
        self.raw, self.write = bare_sqlite(path)
        self.together = together

    def run_all(self, commands: Sequence[tuple[int, int]], clock: object) -> Sequence[tuple[int, int]]:
        self.raw.execute("BEGIN IMMEDIATE")
        if self.together:
            for who, _ in commands:
                self.raw.execute(_UPDATE, (who,))
            self.raw.executemany(_INSERT, [(f"key {number}", who, _BODY) for who, number in commands])
        else:
            for who, number in commands:
                self.write(who, number)
        self.raw.execute("COMMIT")
        return commands


def bare_grouped(path: Path, together: bool) -> Ask:
    """One writer for all threads: the ledger's own, around a bare store."""
    group: Any = GroupedStore(cast(Any, _Bare(path, together)))
    return lambda who, number: group.run((who, number))


def bare_postgres(url: str, clients: int, together: bool) -> Ask:
    """`together`: in one statement, which needs no transaction around it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as raw:
        for statement in ("DROP TABLE IF EXISTS bare, bare_log", *_TABLES):
            raw.execute(statement.replace("REAL", "DOUBLE PRECISION"))
        for number in range(clients):
            raw.execute("INSERT INTO bare VALUES (%s, 1e5)", (number,))
    connections = [psycopg.connect(url, autocommit=True) for _ in range(clients)]
    update, insert = _UPDATE.replace("?", "%s"), _INSERT.replace("?", "%s")
    selected = insert.replace("VALUES (%s, %s, 1e-6, %s)", "SELECT %s::text, %s::int, 1e-6, %s::text FROM done")
    both = f"WITH done AS ({update} RETURNING 1) {selected}"

    def ask(who: int, number: int) -> None:
        connection = connections[who]
        if together:
            connection.execute(both, (who, f"key {number}", who, _BODY))
            return
        with connection.transaction():
            connection.execute(update, (who,))
            connection.execute(insert, (f"key {number}", who, _BODY))

    return ask


def throughput(home: Path, server: Server, seconds: float) -> list[tuple[str, list[float]]]:
    rows: list[tuple[str, list[float]]] = []
    ledger = made(str(home / "one.db"), 1)
    rows.append(("SQLite, 1 client", compared(reserving(ledger, 1), bare_single(home / "bare1.db"), 1, seconds)))
    ledger.close()
    ledger = made(str(home / "grouped.db"), 24, group=True)
    for together in (False, True):
        bare = bare_grouped(home / f"bare24{together}.db", together)
        what = "SQLite, group commit, 24 threads" + ", bare inserts together" * together
        rows.append((what, compared(reserving(ledger, 24), bare, 24, seconds)))
    ledger.close()
    least: Any = GroupedStore(cast(Any, Least(opened(home / "least.db"), 24, len(_BODY))))
    bare = bare_grouped(home / "bare24least.db", False)
    rows.append(("the same, events and keys alone", compared(lambda *which: least.run(which), bare, 24, seconds)))
    for clients in (1, 24):
        url = server.fresh(f"bench{clients}")
        ledger = made(url, clients)
        for together in (False, True):
            bare = bare_postgres(url, clients, together)
            what = f"PostgreSQL, {clients} client{'s' * (clients > 1)}" + ", bare in one statement" * together
            rows.append((what, compared(reserving(ledger, clients), bare, clients, seconds)))
        ledger.close()
    return rows


# -- long histories ----------------------------------------------------------------------------------------------------


def aged(place: str, events: int) -> None:
    """A ledger with a long history: three events for each committed key, many keys in one transaction."""
    ledger = made(place, 1)
    charges = {"d0": {"epsilon": Fraction(COST)}}
    for first in range(0, (events - 3) // 3, BATCH):
        keys = [f"old {number}" for number in range(first, min(first + BATCH, (events - 3) // 3))]
        commands: list[Command] = [Reserve(key, key, charges, None, "", 3600.0) for key in keys]
        commands += [Move(to, key) for to in (STARTED, COMMITTED) for key in keys]
        ledger.store.run_all(commands)
    ledger.close()


def timed(place: str, what: str) -> tuple[float, float]:
    """Seconds and peak memory (MB) of one command in a process of its own."""
    call = [sys.executable, "-m", "bench.ledger", "--inside", what, place]
    ended = subprocess.run(call, capture_output=True, text=True, check=True)
    seconds, memory = ended.stdout.split()
    return float(seconds), float(memory)


def inside(what: str, path: str) -> None:
    begun = time.perf_counter()
    if what == "restore":
        ledger = Ledger.create(f"{path}.restored")
        maintenance.restore(path, ledger)
    else:
        ledger = Ledger(path)
        if what == "verify":
            audit = ledger.verify()
            if not audit.clean:
                raise SystemExit(str(audit.problems))
        elif what == "backup":
            maintenance.backup(ledger, f"{path}.backup")
        elif what == "history":
            assert len(ledger.history("d0", last=50)) == 50
        elif what == "reserve":
            ledger.reserve("d0", cost=COST, key=f"new {os.getpid()}")
            begun = time.perf_counter()
            ledger.reserve("d0", cost=COST, key=f"new {os.getpid()} again")
        else:
            ledger.status("d0")
    took = time.perf_counter() - begun
    print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def long_histories(home: Path, events: int) -> list[tuple[str, list[tuple[float, float]]]]:
    sizes = [events // 100, events // 10, events]
    rows: list[tuple[str, list[tuple[float, float]]]] = []
    for size in sizes:
        aged(str(home / f"{size}.db"), size)
    for what in ("status", "history", "reserve", "verify", "backup", "restore"):
        suffix = ".backup" if what == "restore" else ""
        rows.append((what, [timed(str(home / f"{size}.db{suffix}"), what) for size in sizes]))
    return rows


def on_a_server(server: Server, events: int) -> list[tuple[str, tuple[float, float]]]:
    """The same on PostgreSQL, where backups are files of the same kind. Memory is the client's."""
    place = server.fresh("aged")
    aged(place, events)
    return [(what, timed(place, what)) for what in ("status", "history", "reserve", "verify")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8, help="for each measurement; 0 leaves them out")
    parser.add_argument("--directory", help="on the disk to measure; PostgreSQL's is the temporary directory")
    parser.add_argument("--events", type=int, default=10**6, help="of the longest history; 0 leaves it out")
    parser.add_argument("--server-events", type=int, default=10**5, help="the same on PostgreSQL")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside is not None:
        inside(*given.inside)
        return
    with tempfile.TemporaryDirectory(prefix="privloss-bench-", dir=given.directory) as name:
        server = Server(durable=True)
        try:
            if given.seconds:
                show_throughput(throughput(Path(name), server, given.seconds))
            if given.server_events:
                print(f"\n| PostgreSQL | {given.server_events} events |\n|---|---|")
                for what, (seconds, memory) in on_a_server(server, given.server_events):
                    print(f"| {what} | {seconds * 1e3:.1f} ms, {memory:.0f} MB |", flush=True)
        finally:
            server.stop()
        if given.events:
            sizes = [given.events // 100, given.events // 10, given.events]
            print("\n| SQLite | " + " | ".join(f"{size} events" for size in sizes) + " |\n|---|---|---|---|")
            for what, found in long_histories(Path(name), given.events):
                cells = [f"{seconds * 1e3:.1f} ms, {memory:.0f} MB" for seconds, memory in found]
                print(f"| {what} | {' | '.join(cells)} |", flush=True)


def show_throughput(rows: Sequence[tuple[str, list[float]]]) -> None:
    print("| | reservations per second | bare writer | ratio | processor, us | bare | ratio |")
    print("|---|---|---|---|---|---|---|")
    for what, (ours, bare, ratio, work, least, share) in rows:
        print(f"| {what} | {ours:.0f} | {bare:.0f} | {ratio:.2f} | {work:.0f} | {least:.0f} | {share:.2f} |")


if __name__ == "__main__":
    main()
