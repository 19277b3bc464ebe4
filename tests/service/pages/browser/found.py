"""Where the tests find a browser: Debian's Chromium, or the one that `playwright install chromium` brings."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

MISSING = (
    "no Chromium: tests/service/pages/browser is left out (apt-get install chromium, or playwright install chromium)"
)
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PLACES = (Path.home() / ".cache" / "ms-playwright", Path.home() / "Library" / "Caches" / "ms-playwright")
_FILES = ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*")


def chromium() -> str | None:
    """Its path; None if there is none, or nothing to drive it with."""
    if find_spec("playwright") is None or find_spec("axe_playwright_python") is None:
        return None
    on_path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    brought = (str(found) for place in _PLACES for file in _FILES for found in sorted(place.glob(file)))
    return on_path or next(brought, None)
