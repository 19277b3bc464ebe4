"""How fast the service is beside the ledger it keeps: ``python -m bench.service [--seconds S] [--clients N]
[--directory D] [--store sqlite|postgresql|both]``.

One durable typed-cost reserve for each request. Both sides take turns in short slices of the same run, because neither
disk nor processor is steady; ratios are medians over neighbouring slices. In process: threads that share a ledger with
group commit. Over HTTP: as many connections, from one thread of this process; on PostgreSQL to two
service processes. Then a plan that takes too long is priced again and again, while another client asks for /health.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.ledger.postgres import Server
from tests.service.outside import Process

from bench.hammering import Measured, hammer, request
from privloss.ledger.ledger import Ledger
from privloss.service.tokens import Tokens

COST, SLICES = "1e-6", 8
NUMBERS = itertools.count()  # no key comes twice
# each step another discrete Gaussian: at least a minute of work
HEAVY = [{"mechanism": "discrete-gaussian", "sigma": 30 + n / 7, "sensitivity": 1} for n in range(1000)]


def in_process(ledger: Ledger, threads: int, seconds: float) -> Measured:
    found = Measured()
    begun = time.perf_counter()

    def work() -> None:
        while (since := time.perf_counter()) - begun < seconds:
            ledger.reserve("d", cost=COST, key=f"here/{next(NUMBERS)}")
            found.latencies.append(time.perf_counter() - since)

    running = [threading.Thread(target=work) for _ in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    found.seconds = time.perf_counter() - begun
    return found


def spent(pids: list[int]) -> float:
    """Seconds of a processor that processes have used (Linux tells)."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def reserving(token: str) -> Callable[[int], Iterator[bytes]]:
    body = json.dumps({"datasets": ["d"], "cost": COST}).encode()
    return lambda _: (request("PUT", f"/v1/reservations/k{next(NUMBERS)}", token, body) for _ in itertools.count())


def made(place: str) -> tuple[Ledger, list[str]]:
    ledger = Ledger.create(place, group=True)
    ledger.add_dataset("d", adjacency="add-remove")
    ledger.set_budget("d", currency="pure", cap="100000")
    tokens = Tokens(ledger.store)
    return ledger, [tokens.create("analyst", analyst=f"a{i}", datasets=None)[1] for i in range(2)]


def compared(home: Path, name: str, places: tuple[str, str], processes: int, clients: int, seconds: float) -> None:
    """`places`: one ledger for each side, in the same kind of store."""
    ledger, _ = made(places[0])
    kept, tokens = made(places[1])
    kept.close()
    with ExitStack() as stack:
        running = [
            Process(places[1], home / f"{name}{i}.log", ("--port", "0"), rate="1000000") for i in range(processes)
        ]
        for each in running:
            stack.callback(each.kill)
            each.await_ready()
        ports, pids = [each.port for each in running], [each.process.pid for each in running]
        hammer(ports, clients, 0.5, reserving(tokens[0]))  # what is settled once
        pairs, used = [], [0.0, 0.0]
        for _ in range(SLICES):
            before = time.process_time(), spent(pids)
            here = in_process(ledger, clients, seconds / SLICES)
            used[0] += time.process_time() - before[0]
            pairs.append((here, hammer(ports, clients, seconds / SLICES, reserving(tokens[0]))))
            used[1] += spent(pids) - before[1]
        for each in running:
            assert each.end() == 0, each.log()
    ledger.close()
    bad = [answer for _, far in pairs for answer in far.bad]
    assert not bad, bad[:3]
    ratio = statistics.median(far.rate / here.rate for here, far in pairs)
    rates = [statistics.median(each.rate for each in side) for side in zip(*pairs, strict=True)]
    counts = [sum(len(each.latencies) for each in side) for side in zip(*pairs, strict=True)]
    work = [seconds / count * 1e6 for seconds, count in zip(used, counts, strict=True)]
    times = Measured(latencies=[one for _, far in pairs for one in far.latencies])
    cells = [f"{rates[0]:.0f}", f"{rates[1]:.0f}", f"{ratio:.2f}", f"{work[0]:.0f}", f"{work[1]:.0f}"]
    cells += [f"{times.quantile(part) * 1e3:.1f}" for part in (0.5, 0.99)]
    print(f"| {name}, {clients} clients | {' | '.join(cells)} |", flush=True)


def beside_a_hostile_plan(home: Path, seconds: float) -> None:
    """Two clients have plans priced until their workers are ended, again and again; a third asks for /health."""
    place = str(home / "hostile.db")
    ledger, tokens = made(place)
    ledger.close()
    running = Process(place, home / "hostile.log", ("--price-seconds", "2"), rate="1000000")
    try:
        running.await_ready()
        begun, ended = time.perf_counter(), threading.Event()

        def price(number: int) -> None:
            with running.client(tokens[number]) as client:
                while not ended.is_set():
                    plan = {"steps": HEAVY[number:]}
                    client.post("/v1/price", json={"plan": plan, "currency": "approx", "cap": "1", "delta": "1e-6"})

        pricing = [threading.Thread(target=price, args=(number,)) for number in range(2)]
        for each in pricing:
            each.start()
        asked = request("GET", "/health/live")
        one_after_another = (time.sleep(0.01) or asked for _ in itertools.count())
        found = hammer([running.port], 1, seconds, lambda _: one_after_another)
        ended.set()
        for each in pricing:
            each.join()
        took = time.perf_counter() - begun
    finally:
        running.kill()
    p50, p99, most = (found.quantile(part) * 1e3 for part in (0.5, 0.99, 1.0))
    print(f"/health/live beside hostile plans for {took:.0f} s, ms: p50 {p50:.1f}, p99 {p99:.1f}, most {most:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=16, help="for each side of each comparison")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--directory", help="on the disk to measure; PostgreSQL's is the temporary directory")
    parser.add_argument("--store", choices=("sqlite", "postgresql", "both"), default="both")
    given = parser.parse_args()
    print("| reserves | in process, per second | over HTTP | ratio | processor us | over HTTP | p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="privloss-bench-", dir=given.directory) as name:
        home = Path(name)
        for clients in given.clients if given.store != "postgresql" else ():
            places = str(home / f"here{clients}.db"), str(home / f"far{clients}.db")
            compared(home, "SQLite", places, 1, clients, given.seconds)
        beside_a_hostile_plan(home, given.seconds)
        if given.store != "sqlite":
            server = Server(durable=True)
            try:
                for clients in given.clients:
                    urls = server.fresh(f"here{clients}"), server.fresh(f"far{clients}")
                    compared(home, "PostgreSQL, 2 processes", urls, 2, clients, given.seconds)
            finally:
                server.stop()


if __name__ == "__main__":
    main()
