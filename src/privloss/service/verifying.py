"""Verifying a ledger beside the requests: one at a time, its last result kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from privloss.ledger.ledger import Ledger


class Verifying:
    """The job and its last result."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger, self._clock = ledger, clock
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._began = ""
        self._last: dict[str, Any] | None = None

    def start(self) -> dict[str, Any]:
        """Begin, unless one is running."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._began = self._now()
                self._thread = threading.Thread(target=self._work, name="privloss-verify", daemon=True)
                self._thread.start()
            return {"running": True, "began": self._began}

    def last(self) -> dict[str, Any] | None:
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if self._last is None and not running:
                return None
            return {"running": running, "last": self._last}

    def wait(self) -> None:
        """Until the one that runs has ended."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        began = self._clock()
        try:
            audit = self._ledger.verify()
        except Exception as problem:  # told as a result: the thread has nobody else to tell
            found: dict[str, Any] = {"clean": None, "problems": [f"not finished: {type(problem).__name__}"]}
        else:
            found = {"clean": audit.clean, "problems": list(audit.problems[:100]), "events": audit.events}
            found |= {"head": audit.head, "attached": audit.attached, "refuted": audit.refuted}
        found |= {"at": self._now(), "seconds": self._clock() - began, "kind": "full"}
        with self._lock:
            self._last = found

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
