"""Attacks by how much is asked: hostile plans, floods, races. Clocks are the test's own; what must not wait is seen to
come before what is slow. (The numbers are those of docs/security.md.)"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from httpx import Response

from privloss.service.limits import Buckets, network
from privloss.service.settings import Settings
from privloss.service.workers import Done, Workers
from tests.service.inside import GAUSSIAN, Client, Service, Time

# many discrete Gaussians, each another: at least a minute of work
HOSTILE = {"steps": [{"mechanism": "discrete-gaussian", "sigma": 30 + n / 7, "sensitivity": 1} for n in range(1000)]}
BUDGET = {"currency": "approx", "cap": "1", "delta": "1e-6"}


def _question(number: int) -> dict[str, Any]:
    """One of which no two are the same."""
    return {"plan": {"steps": [{"mechanism": "gaussian", "noise_multiplier": 10 + number / 8}]}, "delta": 1e-6}


# -- 7: a hostile plan -------------------------------------------------------------------------------------------------


@pytest.fixture
def hurried() -> Iterator[Workers]:
    """Workers with a short deadline."""
    made = Workers(Settings(price_seconds=4.0, price_workers=2))
    made.open()
    made._first.result()
    yield made
    made.close()


def test_7_a_plan_that_takes_a_minute(serving: Callable[..., Service], sqlite_place: str, hurried: Workers) -> None:
    """It ends alone: while it is being priced, others are answered; its worker is replaced; it is paid for."""
    service = serving(sqlite_place, workers=hurried, price_cpu=6.0)
    begun, asked = threading.Event(), hurried._asked

    async def seen(job: Any, arguments: Any) -> Done:
        begun.set()
        return await asked(job, arguments)

    hurried._asked = seen  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(service.alice.post, "/v1/price", {"plan": HOSTILE, **BUDGET})
        assert begun.wait()
        assert service.nobody.get("/health/live").status_code == 200
        assert service.nobody.get("/health/ready").status_code == 200
        assert service.bob.reserve("k").status_code == 201
        assert service.bob.post("/v1/answer", _question(0)).status_code == 200  # by the other worker
        assert not slow.done()
        answer = slow.result()
    assert (answer.status_code, answer.json()["reason"]) == (422, "price-timeout")
    assert service.services.metrics.killed._value.get() == 1
    assert [service.bob.post("/v1/answer", _question(n)).status_code for n in (1, 2, 3)] == [200] * 3
    assert service.alice.post("/v1/answer", _question(5)).status_code == 200  # 2 of 6 seconds are left
    service.services.pricing.owe(service.alice.token.split("_")[1], 2.0)  # type: ignore[union-attr]
    late = service.alice.post("/v1/answer", _question(4))
    assert (late.status_code, late.json()["reason"]) == (429, "rate")
    service.clock.now += 60
    assert service.alice.post("/v1/answer", _question(4)).status_code == 200


def test_7_a_worker_has_little_memory_and_no_secrets(workers: Workers) -> None:
    assert {"PRIVLOSS_PLANTED", "PGPLANTED"} <= set(os.environ)
    found = asyncio.run(workers.done(_looked, ())).result
    assert found == {"memory": 2**30, "core": 0, "nice": True, "threads": "1", "secrets": []}
    large = asyncio.run(workers.done(_greedy, ()))
    assert (large.killed, large.problem.reason) == (True, "price-memory")  # type: ignore[union-attr]
    ended = asyncio.run(workers.done(_ends, ()))
    assert (ended.killed, ended.problem.reason) == (True, "price-memory")  # type: ignore[union-attr]
    assert asyncio.run(workers.done(_looked, (1,))).result["core"] == 0


def _looked(*_: int) -> dict[str, Any]:
    import resource

    secrets = [name for name in os.environ if name.startswith(("PRIVLOSS_", "PG"))]
    return {
        "memory": resource.getrlimit(resource.RLIMIT_AS)[0], "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "nice": os.nice(0) >= 5, "threads": os.environ["OMP_NUM_THREADS"], "secrets": secrets,
    }  # fmt: skip


def _greedy() -> int:
    return len(bytearray(3 * 2**30))


def _ends() -> None:
    os._exit(1)


# -- 23: floods --------------------------------------------------------------------------------------------------------


def _times(ask: Callable[[], Response], times: int) -> list[int]:
    return [ask().status_code for _ in range(times)]


def test_23_requests_of_one_token(serving: Callable[..., Service], sqlite_place: str) -> None:
    """Twenty a second and forty at once; another token does not notice."""
    service = serving(sqlite_place, rate=20)
    flood = _times(lambda: service.bob.get("/v1/datasets"), 200)
    assert flood == [200] * 40 + [429] * 160
    answer = service.bob.get("/v1/datasets")
    assert (answer.json()["reason"], answer.headers["retry-after"]) == ("rate", "1")
    assert _times(lambda: service.alice.get("/v1/datasets"), 40) == [200] * 40
    service.clock.now += 0.5
    assert _times(lambda: service.bob.get("/v1/datasets"), 11) == [200] * 10 + [429]
    assert _times(lambda: service.nobody.get("/health/live"), 200) == [200] * 200


def test_23_failed_logins_of_one_address(sqlite: Service) -> None:
    """Who knows a token is let in all the same: addresses are shared."""
    guess = {"authorization": f"Bearer pl_aaaaaaaa_{'A' * 43}"}
    found = _times(lambda: sqlite.nobody.get("/v1/datasets", headers=guess), 20)
    assert found == [401] * 10 + [429] * 10
    assert sqlite.alice.get("/v1/datasets").status_code == 200
    sqlite.clock.now += 6
    assert _times(lambda: sqlite.nobody.get("/v1/datasets", headers=guess), 2) == [401, 429]


def test_23_strangers_at_the_calculator_are_one(serving: Callable[..., Service], sqlite_place: str) -> None:
    service = serving(sqlite_place, rate=5)
    body = {"plan": GAUSSIAN, "delta": 1e-6}
    assert _times(lambda: service.nobody.post("/v1/answer", body), 12) == [200] * 10 + [429] * 2
    assert service.alice.post("/v1/answer", body).status_code == 200


class Slow(Workers):
    """Workers whose every job waits until the test lets it go; no processes."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.waiting = threading.Semaphore(0)
        self.gate: Future[None] = Future()

    warm = True  # type: ignore[assignment]

    async def _asked(self, job: Any, arguments: Any) -> Done:
        self.waiting.release()
        await asyncio.shield(asyncio.wrap_future(self.gate))
        return Done({"asked": arguments[0]}, seconds=1.0)


def _answers(pool: ThreadPoolExecutor, client: Client, numbers: range) -> list[Future[Response]]:
    return [pool.submit(client.post, "/v1/answer", _question(number)) for number in numbers]


def test_23_pricing(serving: Callable[..., Service], sqlite_place: str) -> None:
    """Two jobs of one token at once, eighteen of all; the others are told to ask again, and what needs no worker is
    answered. Five hundred questions of one token use up its minute, not that of others."""
    settings = Settings(price_workers=2, price_each=2, price_waiting=2)
    slow = Slow(settings)
    service = serving(sqlite_place, workers=slow)
    with ThreadPoolExecutor(8) as pool:
        first = _answers(pool, service.bob, range(2))
        for _ in first:
            slow.waiting.acquire()
        busy = service.bob.post("/v1/answer", _question(2))
        assert (busy.status_code, busy.json()["reason"], busy.headers["retry-after"]) == (503, "busy", "1")
        more = _answers(pool, service.alice, range(3, 5))
        for _ in more:
            slow.waiting.acquire()
        full = service.steward.post("/v1/answer", _question(5))
        assert (full.status_code, full.json()["reason"]) == (503, "busy")
        assert service.alice.reserve("k").status_code == 201
        assert not any(each.done() for each in (*first, *more))
        slow.gate.set_result(None)
        assert [each.result().status_code for each in (*first, *more)] == [200] * 4
    flood = [service.bob.post("/v1/answer", _question(n)).status_code for n in range(10, 510)]
    assert flood == [200] * 19 + [429] * 481  # two seconds were used before, and what is begun is finished
    assert service.alice.post("/v1/answer", _question(1000)).status_code == 200
    assert service.bob.post("/v1/answer", _question(10)).status_code == 200  # remembered: it costs nothing


def test_23_more_than_can_wait(
    serving: Callable[..., Service], sqlite_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads, two that wait: the fifth is told to ask again, and health does not wait behind them."""
    service = serving(sqlite_place, threads=2, waiting=2)
    gate, entered, status = threading.Event(), threading.Semaphore(0), service.ledger.__class__.status

    def held(self: Any, name: str) -> Any:
        entered.release()
        gate.wait()
        return status(self, name)

    monkeypatch.setattr(service.ledger.__class__, "status", held)
    api: Any = service.app.api  # type: ignore[attr-defined]
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(service.alice.get, "/v1/datasets/census") for _ in range(4)]
        entered.acquire()
        entered.acquire()
        while api._running < 4:  # the two behind them are on their way
            service.nobody.get("/health/live")
        full = service.bob.get("/v1/datasets/census")
        assert (full.status_code, full.json()["reason"]) == (503, "busy")
        assert service.nobody.get("/health/ready").status_code == 200
        assert not any(each.done() for each in waiting)
        gate.set()
        assert [each.result().status_code for each in waiting] == [200] * 4


def test_23_buckets() -> None:
    clock = Time()
    buckets = Buckets(2.0, 4.0, clock)
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    clock.now += 1
    assert [buckets.take("a"), buckets.take("a"), buckets.take("a")] == [0, 0, 0.5]
    clock.now += 1000
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    buckets.owe("b", 10.0)
    assert (buckets.wait("a"), buckets.wait("b"), buckets.take("c")) == (0.0, 3.0, 0.0)


def test_23_buckets_remember_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of names forgets full buckets first, then those that were used longest ago."""
    monkeypatch.setattr("privloss.service.limits._MOST", 10)
    clock = Time()
    buckets = Buckets(1.0, 2.0, clock)
    for number in range(50):
        clock.now += 0.001
        buckets.take(f"n{number}", 2.0)
        buckets.take("me", 0.0)
    assert len(buckets._left) <= 10
    assert buckets.take("n49", 2.0) > 0


@pytest.mark.parametrize(
    ("address", "found"),
    [("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"), ("testclient", "testclient"), ("", "")],
)
def test_23_whose_address_it_is(address: str, found: str) -> None:
    assert network(address) == found


# -- 24: races ---------------------------------------------------------------------------------------------------------


def test_24_fifty_clients_and_one_cap(service: Service) -> None:
    """Eleven of 1/11 fit; who asks under one key is charged once, and one run enters. (The server is killed in the
    middle by `tests/service/hammer.py`.)"""
    with ThreadPoolExecutor(50) as pool:
        same = list(pool.map(lambda n: service.bob.reserve("same"), range(25)))
        runs = list(pool.map(lambda n: service.bob.start("same", run=f"run {n:020}"), range(25)))
        keys = list(pool.map(lambda n: service.alice.reserve(f"k{n}"), range(25)))
    assert {each.status_code for each in same} <= {200, 201}
    assert sorted(each.status_code for each in runs) == [200] + [409] * 24
    assert sorted(each.status_code for each in keys) == [201] * 10 + [409] * 15
    events = [line for line in service.events() if '"kind":"reserved"' in line]
    assert len(events) == 11
    found = service.ledger.status("census")
    assert (found["remaining"], found["reserved"]) == ("0", "1")
    assert service.ledger.verify().clean
