"""What the counters say of the ledger itself, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from fractions import Fraction

from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from privloss.ledger.amounts import down
from privloss.ledger.state import EVERYONE, Account
from privloss.ledger.stores.base import Store
from privloss.service.verifying import Verifying

_MOST = 200  # datasets and groups, by name
_OPEN = "SELECT dataset, count(*) FROM open_lease GROUP BY dataset"
_EVENTS = "SELECT coalesce(max(number), 0) FROM event"


class Gauges(Collector):
    """Reads a store, and what verifying it has found."""

    def __init__(self, store: Store, verifying: Verifying) -> None:
        self._store, self._verifying = store, verifying

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: it would have to be read."""
        return ()

    def collect(self) -> Iterator[Metric]:
        with suppress(Exception):  # a broken ledger must not silence the counters that say so
            yield from list(self._of_the_ledger())
        yield from self._verified()

    def _of_the_ledger(self) -> Iterator[Metric]:
        store = self._store
        with store.reading() as cursor:
            names = store.accounts(cursor)[:_MOST]
            accounts = [account for name in names if (account := store.account(cursor, name)) is not None]
            held = dict(map(tuple, store.execute(cursor, _OPEN).fetchall()))
            (events,) = store.execute(cursor, _EVENTS).fetchone()
        yield Gauge("privloss_events", "Entries in all chains.", value=events)
        reserved = Gauge("privloss_open_reservations", "Keys that are held or started.", labels=["dataset"])
        frozen = Gauge("privloss_frozen", "Whether nothing may enter.", labels=["dataset"])
        left = Gauge("privloss_budget_left_ratio", "Of the component that has least.", labels=["dataset"])
        for account in accounts:
            reserved.add_metric([account.name], held.get(account.name, 0))
            frozen.add_metric([account.name], account.frozen)
            ratio = _left(account)
            if ratio is not None:
                left.add_metric([account.name], down(ratio))
        yield from (reserved, frozen, left)

    def _verified(self) -> Iterator[Metric]:
        last = (self._verifying.last() or {}).get("last")
        if last is None:
            return
        clean = Gauge("privloss_verify_clean", "Whether the last verification found nothing wrong.")
        clean.add_metric([], bool(last["clean"]))
        seconds = Gauge("privloss_verify_time_seconds", "How long it took.")
        seconds.add_metric([], last["seconds"])
        yield from (clean, seconds)


def _left(account: Account) -> Fraction | None:
    """None without a budget, and of blocks, each of which has one."""
    if account.filter is None or account.blocks:
        return None
    left, caps = account.remaining(EVERYONE), account.filter.caps
    return max(min((left[part] / cap for part, cap in caps.items()), default=Fraction(0)), Fraction(0))
