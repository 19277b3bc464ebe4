"""People of every role at a service on SQLite. Where there is no browser, the tests that need one are not collected."""

from __future__ import annotations

import pytest

from tests.service.inside import Service
from tests.service.pages.browser.found import chromium
from tests.service.pages.person import Person

collect_ignore = [] if chromium() else ["browser"]


@pytest.fixture
def alice(sqlite: Service) -> Person:
    """An analyst who sees census and taxes."""
    return Person.of(sqlite, sqlite.alice)


@pytest.fixture
def bob(sqlite: Service) -> Person:
    """An analyst who sees census."""
    return Person.of(sqlite, sqlite.bob)


@pytest.fixture
def steward(sqlite: Service) -> Person:
    return Person.of(sqlite, sqlite.steward)


@pytest.fixture
def auditor(sqlite: Service) -> Person:
    return Person.of(sqlite, sqlite.auditor)


@pytest.fixture
def visitor(sqlite: Service) -> Person:
    """Somebody without a token."""
    return Person(sqlite)
