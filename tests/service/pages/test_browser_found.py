"""The tests in a browser are not left out unseen."""

from __future__ import annotations

import os

import pytest

from tests import conftest
from tests.service.pages.browser import found


def test_where_ci_runs_there_is_a_browser() -> None:
    assert found.chromium() or os.environ.get("CI") != "true", found.MISSING


def test_where_there_is_none_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    class Terminal:
        write_line = said.append

    monkeypatch.setattr(conftest, "chromium", lambda: None)
    conftest.pytest_terminal_summary(Terminal())
    assert said == [found.MISSING]
    monkeypatch.setattr(conftest, "chromium", lambda: "/usr/bin/chromium")
    conftest.pytest_terminal_summary(Terminal())
    assert len(said) == 1
