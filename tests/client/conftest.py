"""Every ledger a test has opened at a service is closed; and services for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from privloss.client.connection import Connections
from privloss.ledger.ledger import Ledger
from privloss.service.workers import Workers
from tests.client.real import Real
from tests.service.conftest import place as place
from tests.service.conftest import process as process
from tests.service.conftest import server as server
from tests.service.conftest import sqlite_place as sqlite_place
from tests.service.conftest import workers as workers


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened: list[Connections] = []
    make = Connections.__init__

    def remember(self: Connections, *arguments: object, **keywords: object) -> None:
        make(self, *arguments, **keywords)  # type: ignore[arg-type]
        opened.append(self)

    monkeypatch.setattr(Connections, "__init__", remember)
    yield
    for connections in opened:
        connections.close()


@pytest.fixture
def real(workers: Workers) -> Iterator[Callable[..., Real]]:
    """Make services that are asked over the network: `real(place)`."""
    made: list[Real] = []

    def make(place: str, **settings: Any) -> Real:
        made.append(Real(Ledger.create(place, group=True), workers, **settings))
        return made[-1]

    yield make
    for each in reversed(made):
        each.close()
