"""What a service counts, for Prometheus. No label names a person, and datasets stand in at most 200 of them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST as MEDIA

__all__ = ["MEDIA", "Metrics"]
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """Counters of one service; others may be registered with `registry`."""

    def __init__(self) -> None:
        self.registry = kept = CollectorRegistry()
        self.requests = Counter("privloss_requests", "Answers.", ["route", "status"], registry=kept)
        self.seconds = Histogram("privloss_request_seconds", "Until the answer.", buckets=_SECONDS, registry=kept)
        self.refusals = Counter("privloss_refusals", "Answers that said no.", ["reason"], registry=kept)
        self.priced = Histogram("privloss_price_seconds", "Waiting for a worker.", buckets=_SECONDS, registry=kept)
        self.pricing = Gauge("privloss_pricing", "Jobs of workers, running and waiting.", registry=kept)
        self.killed = Counter("privloss_price_killed", "Workers that were ended.", registry=kept)
        self.failed_logins = Counter("privloss_auth_failures", "Tokens that were not known.", registry=kept)

    def text(self) -> bytes:
        return generate_latest(self.registry)
