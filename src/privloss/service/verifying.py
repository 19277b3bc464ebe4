"""Verifying a ledger beside the requests: one at a time, its last result kept.

A run that began before somebody asked has not seen what this one may have written: an answer to `start` says whether
its run was there already (`joined`). Runs are numbered in each process of a service, which has a name for this.
"""

from __future__ import annotations

import secrets
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
        self._began, self._run, self._process = "", 0, secrets.token_hex(8)
        self._last: dict[str, Any] | None = None
        self._ending = False

    def start(self) -> dict[str, Any]:
        """Begin, unless one is running."""
        with self._lock:
            joined = self._thread is not None and self._thread.is_alive()
            if not joined:
                self._began, self._run = self._now(), self._run + 1
                self._thread = threading.Thread(target=self._work, name="privloss-verify", daemon=True)
                self._thread.start()
            run = {"process": self._process, "run": self._run}
            return {"running": True, "began": self._began, "joined": joined, **run}

    def last(self) -> dict[str, Any] | None:
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if self._last is None and not running:
                return None
            return {"running": running, "process": self._process, "last": self._last}

    def wait(self) -> None:
        """Until the one that runs has ended."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def end(self) -> None:
        """Stop the one that runs: the ledger is about to be closed, and nobody waits for its result any more."""
        self._ending = True
        self.wait()

    def _go_on(self, done: int, of: int) -> None:
        if self._ending:
            raise InterruptedError

    def _work(self) -> None:
        began, run = self._clock(), self._run
        try:
            audit = self._ledger.verify(self._go_on)
        except Exception as problem:  # told as a result: the thread has nobody else to tell
            found: dict[str, Any] = {"clean": None, "problems": [f"not finished: {type(problem).__name__}"]}
        else:
            found = {"clean": audit.clean, "problems": list(audit.problems[:100]), "events": audit.events}
            found |= {"head": audit.head, "attached": audit.attached, "refuted": audit.refuted}
            found["ends"] = {name: list(end) for name, end in audit.ends.items()}
        found |= {"run": run, "at": self._now(), "seconds": self._clock() - began, "kind": "full"}
        with self._lock:
            self._last = found

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
