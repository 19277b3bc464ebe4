"""Connections that are cut, a service that is killed: every call takes effect once, and a key is started by one run."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import privloss as pl
from privloss.client.asking import Patience
from privloss.client.ledger import RemoteLedger
from privloss.ledger.answers import AlreadySpentError
from privloss.ledger.ledger import Ledger
from privloss.ledger.stores.base import LostReply
from tests.client.cutting import AFTER, BEFORE, PASS, Cutting
from tests.client.real import Real
from tests.service.outside import Process, prepared

AT_ONCE = Patience(1e6, sleep=lambda _: None)


def at(place: str, token: str) -> RemoteLedger:
    return RemoteLedger(place, token=token, patience=AT_ONCE)


def kinds(ledger: pl.Ledger) -> Counter[str]:
    return Counter(event["kind"] for event in ledger.history("census"))


def _set_up(service: Real) -> None:
    service.ledger.add_dataset("census", adjacency="add-remove")
    service.ledger.set_budget("census", currency="pure", cap="100")


@pytest.mark.parametrize("cut", [BEFORE, AFTER])
def test_each_call_cut_once_takes_effect_once(cut: str, place: str, real: Callable[..., Real]) -> None:
    """Every request is cut the first time it is made."""
    service = real(place)
    _set_up(service)
    fates = Counter[str]()

    def first(line: str) -> str:
        fates[line] += 1
        return cut if fates[line] == 1 else PASS

    with Cutting(service.port, first) as way:
        alice, steward = at(way.place, service.analyst()), at(way.place, service.token("steward"))
        with alice.spend("census", cost="1/11", key="k1") as run:
            assert run.state == "STARTED"
        alice.reserve("census", cost="1/11", key="k2")
        alice.void("k2")
        steward.freeze("census", reason="once")
        assert alice.status("census")["committed"] == "1/11"
        with_run = [fate for line, fate in way.seen if "/k1/start" in line]
    assert with_run == [cut, PASS]
    found = kinds(service.ledger)
    assert found == {
        "account": 1, "budget": 1, "reserved": 2, "started": 1, "committed": 1, "voided": 1, "frozen": 1
    }  # fmt: skip
    assert service.ledger.verify().clean


def test_what_would_happen_twice_is_not_asked_again(sqlite_place: str, real: Callable[..., Real]) -> None:
    """The dataset is there; the client says that it does not know."""
    service = real(sqlite_place)
    with Cutting(service.port, lambda line: AFTER) as way, pytest.raises(LostReply, match="not known whether"):
        at(way.place, service.token("steward")).add_dataset("census", adjacency="add-remove")
    assert [each["dataset"] for each in service.ledger.datasets()] == ["census"]


def test_of_many_runs_one_starts_a_key_though_answers_are_lost(place: str, real: Callable[..., Real]) -> None:
    """Eight runs, one key, every second answer lost: a run that asks again with its own word is not another run."""
    service = real(place)
    _set_up(service)
    turns = itertools.count()
    with Cutting(service.port, lambda line: AFTER if next(turns) % 2 else PASS) as way:
        token = service.analyst()
        for round_ in range(3):
            key, together = f"k{round_}", threading.Barrier(8)

            def run(number: int, key: str = key, together: threading.Barrier = together) -> bool:
                with closing(at(way.place, token)) as ledger:
                    together.wait(60)
                    try:
                        with ledger.spend("census", cost="1/11", key=key):
                            return True
                    except AlreadySpentError:
                        return False

            with ThreadPoolExecutor(8) as pool:
                assert sum(pool.map(run, range(8))) == 1
    assert kinds(service.ledger)["started"] == 3
    assert service.ledger.status("census")["committed"] == "3/11"


def test_a_service_killed_between_reserve_and_start_and_commit(place: str, process: Callable[..., Process]) -> None:
    """After each step the service is killed and started again; the client goes on where it was, over a new
    connection, and the block is entered once."""
    tokens = prepared(place)
    running = process(place)
    alice = at(running.place, tokens["alice"])
    alice.reserve("census", cost="1/11", key="k")
    running.kill()
    running.start()
    word = "w" * 16
    assert alice.start("k", token=word).state == "STARTED"
    running.kill()
    starting = threading.Thread(target=running.start)
    starting.start()  # meanwhile the client asks, and finds nobody
    assert alice.start("k", token=word).state == "STARTED"
    starting.join()
    with pytest.raises(AlreadySpentError):
        alice.start("k")
    running.kill()
    running.start()
    assert alice.commit("k").state == "COMMITTED"
    assert running.end() == 0
    with closing(Ledger(place)) as ledger:
        found = kinds(ledger)
        assert found == {"account": 1, "budget": 1, "reserved": 1, "started": 1, "refused": 1, "committed": 1}
        assert ledger.verify().clean
