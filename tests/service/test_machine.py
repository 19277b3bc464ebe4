"""The state machine of `tests/ledger/test_machine.py`, driven through HTTP against the pure rules, on both stores."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from httpx import Response
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from privloss.ledger.amounts import show
from privloss.ledger.commands import AddAccount, Command, Freeze, Move, Reserve, SetBudget
from privloss.ledger.ledger import Ledger
from privloss.ledger.requests import Request
from privloss.ledger.state import COMMITTED, STARTED, VOIDED, run_hash
from privloss.ledger.stores.base import Outcome
from privloss.service.settings import Settings
from privloss.service.workers import Workers
from tests.ledger.postgres import Server
from tests.ledger.test_machine import Machine
from tests.service.inside import Service, Time

STEPS = int(os.environ.get("SERVICE_STEPS", "300"))
OWNERS = ("ann", "bob", "zoe")  # ann and bob may have a quota on d, zoe never has
MOVES = {COMMITTED: "commit", VOIDED: "void"}


def owner(key: str) -> str:
    """Who asks for a key: over HTTP everybody has keys of their own."""
    return OWNERS[int(key[1:]) % len(OWNERS)]


class Remote:
    """Stands where the machine expects a store: commands go through the service, questions to the store behind it."""

    def __init__(self, service: Service) -> None:
        self.service, self._store = service, service.ledger.store
        self.people = {name: service.analyst(name, days=3660) for name in OWNERS}
        self.steward = service.token("steward", days=3660)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        self.service.close()

    def run(self, command: Command, clock: Callable[[], float]) -> Outcome:
        self.service.clock.now = clock()
        answer = self.ask(command)
        if answer.status_code in (200, 201):
            return Outcome(None, None, {}, {})
        assert answer.status_code in (404, 409), (command, answer.text)
        return Outcome(_Said(answer.json()["reason"]), None, {}, {})  # type: ignore[arg-type]

    def ask(self, command: Command) -> Response:
        """The request that a command is over HTTP."""
        match command:
            case AddAccount(name, adjacency, unit, group, parent, blocks):
                body = {"adjacency": adjacency, "unit": unit, "group": group, "parent": parent, "blocks": blocks}
                return self.steward.put(f"/v1/datasets/{name}", body)
            case SetBudget(account, budget, analyst, every):
                said = {"currency": "pure", "cap": show(budget.cap)}
                if analyst:
                    return self.steward.put(f"/v1/datasets/{account}/quotas/{analyst}", said)
                return self.steward.put(f"/v1/datasets/{account}/budget", {**said, "every": every})
            case Freeze(account, frozen):
                return self.steward.put(f"/v1/datasets/{account}/frozen", {"frozen": frozen, "reason": "a drill"})
            case Reserve(key=key, lease=lease):
                who, _, name = key.partition("/")
                asked = {"datasets": list(command.datasets), "cost": cost(command), "lease": lease}
                return self.people[who].put(f"/v1/reservations/{name}", asked | blocks_of(command))
            case Move(to, key, lease):
                who, _, name = key.partition("/")
                if to == STARTED:
                    return self.people[who].start(name, run=RUNS[command.run], lease=lease)
                return self.people[who].move(name, MOVES[to])
        raise NotImplementedError(command)


class _Said:
    """A refusal as HTTP tells it: compared with the rules' by its code."""

    def __init__(self, code: str) -> None:
        self.code = code

    @property
    def reason(self) -> Any:
        from privloss.ledger.refusals import Refusal

        return next(each for each in Refusal if each.code == self.code)


RUNS = {run_hash(f"the run of {who}".ljust(16)): f"the run of {who}".ljust(16) for who in ("one", "two")}


def cost(command: Reserve) -> str:
    return show(command.charges[command.datasets[0]]["epsilon"])


def blocks_of(command: Reserve) -> dict[str, Any]:
    named = [block for blocks in command.blocks.values() for block in blocks]
    return {"blocks": named} if named else {}


class ThroughHttp(Machine):
    """What the rules are told is what the service makes of a request: keys, digests and runs are as it writes them."""

    serve: ClassVar[Callable[[], Remote]]

    def run(self, command: Command) -> None:
        match command:
            case Reserve(key=key):
                who = owner(key)
                named = replace(command, key=f"{who}/{key}", analyst=who)
                request = Request.of(named.datasets, None, cost(named), None, blocks_of(named).get("blocks"))
                command = replace(named, request=request.digest(who))
            case Move(key=key, run=run):
                whole = run_hash(f"the run of {run}".ljust(16)) if run else ""
                command = replace(command, key=f"{owner(key)}/{key}", run=whole)
        super().run(command)


def _run(serve: Callable[[], Remote], steps: int, **more: Any) -> None:
    class Bound(ThroughHttp):
        make = staticmethod(serve)  # type: ignore[assignment]

    options: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck), **more}
    chosen = settings(max_examples=max(steps // 50, 1), stateful_step_count=50, **options)
    run_state_machine_as_test(Bound, settings=chosen)


def _serving(places: Callable[[], str], workers: Workers) -> Callable[[], Remote]:
    def serve() -> Remote:
        clock = Time()
        clock.now = 0.0
        ledger = Ledger.create(places(), clock=clock, group=True)
        return Remote(Service(ledger, Settings(rate=1e5), clock, workers, bare=True))

    return serve


def test_sqlite(tmp_path: Path, workers: Workers) -> None:
    numbers = itertools.count()
    _run(_serving(lambda: str(tmp_path / f"{next(numbers)}.db"), workers), STEPS)


def test_postgresql(server: Server, workers: Workers) -> None:
    numbers = itertools.count()
    _run(_serving(lambda: server.fresh(f"walk{os.getpid()}x{next(numbers) % 4}"), workers), STEPS // 3)


def test_the_machine_can_fail(tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that charges one dataset less than it was asked for is found out."""
    numbers, charge = itertools.count(), Request.charges

    def lowered(self: Request, state: Any) -> Any:
        found = charge(self, state)
        return {name: {part: x / 2 for part, x in parts.items()} for name, parts in found.items()}

    monkeypatch.setattr(Request, "charges", lowered)
    with pytest.raises(AssertionError):
        _run(_serving(lambda: str(tmp_path / f"{next(numbers)}.db"), workers), 2000, phases=[Phase.generate])
