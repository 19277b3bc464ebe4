"""What the routes and pages of one service share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from privloss.ledger.ledger import Ledger
from privloss.ledger.stores.base import LedgerError
from privloss.service.access import Caller
from privloss.service.gauges import Gauges
from privloss.service.limits import Buckets
from privloss.service.metrics import Metrics
from privloss.service.settings import Settings
from privloss.service.tokens import Tokens
from privloss.service.verifying import Verifying
from privloss.service.workers import Workers

_MOST_NAMES = 1000  # callers whose ledgers are kept, with what these remember
_LOOKS = 2  # threads for questions about the service itself, which must not wait behind others
_MINUTE = 60.0


class Services:
    """A ledger, its tokens, the workers, and the threads that wait for the ledger."""

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        workers: Workers | None = None,
    ) -> None:
        self.ledger, self.settings, self.clock = ledger, settings, clock
        self.metrics = Metrics()
        self.tokens = Tokens(ledger.store, clock)
        self.rates = Buckets(settings.rate, 2 * settings.rate, ticks)  # requests of a token
        self.logins = Buckets(settings.failed_logins / _MINUTE, settings.failed_logins, ticks)  # failed, of an address
        self.pricing = Buckets(settings.price_cpu / _MINUTE, settings.price_cpu, ticks)  # seconds of work for a token
        self._lent = workers is not None
        self.workers = workers if workers is not None else Workers(settings)
        self.verifying = Verifying(ledger, clock)
        self.metrics.registry.register(Gauges(ledger.store, self.verifying))
        self.threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="privloss-request")
        self.looks = ThreadPoolExecutor(_LOOKS, thread_name_prefix="privloss-look")
        self._open = False
        self._lock = threading.Lock()
        self._ledgers: dict[str, Ledger] = {}

    def open(self) -> None:
        if not self._lent:
            self.workers.open()
        self._open = True

    def end(self) -> None:
        """From now on it says that it is not ready; what runs goes on."""
        self._open = False

    def close(self) -> None:
        self.end()
        self.threads.shutdown()
        self.looks.shutdown()
        self.verifying.end()
        if not self._lent:
            self.workers.close()

    @property
    def ready(self) -> bool:
        return self._open and self.workers.warm

    def answers(self) -> bool:
        """Whether the store does."""
        try:
            return bool(self.ledger.store.look("SELECT value FROM meta WHERE name = 'version'"))
        except LedgerError:
            return False

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
