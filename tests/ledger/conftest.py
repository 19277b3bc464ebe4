"""Both stores for every test that asks for `place`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from privloss.ledger.ledger import Ledger
from tests.ledger.postgres import Server

_NUMBER = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every ledger a test has opened."""
    opened: list[Ledger] = []
    make = Ledger.__init__

    def remember(self: Ledger, *arguments: object, **keywords: object) -> None:
        make(self, *arguments, **keywords)  # type: ignore[arg-type]
        opened.append(self)

    monkeypatch.setattr(Ledger, "__init__", remember)
    yield
    for ledger in opened:
        ledger.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new, empty ledger."""
    if request.param == "sqlite":
        return str(tmp_path / "privloss.db")
    running: Server = request.getfixturevalue("server")
    return running.fresh(f"test{os.getpid()}x{next(_NUMBER)}")
