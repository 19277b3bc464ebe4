"""Hypothesis draws the same examples every time, unless HYPOTHESIS_PROFILE=explore asks for new ones. Where there is no
browser, a line at the end says that its tests were left out."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

from tests.service.pages.browser.found import MISSING, chromium

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if chromium() is None:
        terminalreporter.write_line(MISSING)
