"""Every ledger a test has opened at a service is closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from privloss.client.connection import Connections


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
