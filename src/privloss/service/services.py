"""What the routes and pages of one service share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from privloss.ledger.ledger import Ledger
from privloss.service.access import Caller
from privloss.service.settings import Settings
from privloss.service.tokens import Tokens
from privloss.service.verifying import Verifying
from privloss.service.workers import Workers

_MOST_NAMES = 1000  # callers whose ledgers are kept, with what these remember


class Services:
    """A ledger, its tokens, the workers, and the threads that wait for the ledger."""

    def __init__(self, ledger: Ledger, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.ledger, self.settings, self.clock = ledger, settings, clock
        self.tokens = Tokens(ledger.store, clock)
        self.workers = Workers(settings)
        self.verifying = Verifying(ledger, clock)
        self.threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="privloss-request")
        self.ready = False
        self._lock = threading.Lock()
        self._ledgers: dict[str, Ledger] = {}

    def open(self) -> None:
        self.workers.open()
        self.ready = True

    def close(self) -> None:
        self.ready = False
        self.verifying.wait()
        self.workers.close()
        self.threads.shutdown()

    def ledger_of(self, caller: Caller) -> Ledger:
        """The ledger in a caller's name. It is kept: it remembers what the caller asks for often."""
        with self._lock:
            found = self._ledgers.get(caller.actor)
            if found is None:
                if len(self._ledgers) >= _MOST_NAMES:
                    self._ledgers.clear()
                found = self._ledgers[caller.actor] = self.ledger.acting(caller.actor)
            return found

    def has_dataset(self, name: str) -> bool:
        return bool(name) and bool(self.ledger.store.look("SELECT 1 FROM dataset WHERE name = ?", [name]))
