"""A service for every test that asks for one: in this process (`service`), or in one of its own (`process`)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from privloss.ledger.ledger import Ledger
from privloss.service.settings import Settings
from privloss.service.workers import Workers
from tests.ledger.postgres import Server
from tests.service.inside import Service, Time
from tests.service.outside import Process

_NUMBER = itertools.count()
os.environ |= dict.fromkeys(("PRIVLOSS_PLANTED", "PGPLANTED"), "what workers must not find")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new, empty ledger."""
    return _fresh(request, tmp_path, request.param)


@pytest.fixture
def sqlite_place(tmp_path: Path) -> str:
    return str(tmp_path / "privloss.db")


def _fresh(request: pytest.FixtureRequest, home: Path, kind: str) -> str:
    if kind == "sqlite":
        return str(home / "privloss.db")
    running: Server = request.getfixturevalue("server")
    return running.fresh(f"service{os.getpid()}x{next(_NUMBER)}")


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    """Real ones, for all tests of a session."""
    made = Workers(Settings())
    made.open()
    yield made
    made.close()


@pytest.fixture
def serving(workers: Workers) -> Iterator[Callable[..., Service]]:
    """Make services: `serving(place, rate=5)`. They share the session's workers, unless `workers=None`."""
    made: list[Service] = []

    def make(place: str, *, workers: Workers | None = workers, create: bool = True, **settings: Any) -> Service:
        clock = Time()
        ledger = (Ledger.create if create else Ledger)(place, clock=clock, group=True)
        made.append(Service(ledger, Settings(**{"rate": 1e5, **settings}), clock, workers))
        return made[-1]

    yield make
    for each in reversed(made):
        each.close()


@pytest.fixture
def service(serving: Callable[..., Service], place: str) -> Service:
    """On SQLite and on PostgreSQL."""
    return serving(place)


@pytest.fixture
def sqlite(serving: Callable[..., Service], sqlite_place: str) -> Service:
    """On SQLite only: for what does not depend on the store."""
    return serving(sqlite_place)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Make services that are processes: `process(place, "--rate", "5")`."""
    made: list[Process] = []

    def make(place: str, *options: str, **more: Any) -> Process:
        made.append(Process(place, tmp_path / f"log{len(made)}", options, **more))
        return made[-1]

    yield make
    for each in made:
        each.kill()
