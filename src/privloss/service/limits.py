"""How often somebody may ask: a bucket that fills at a steady rate and holds a burst."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable

_MOST = 10_000  # names that are remembered


class Buckets:
    """One bucket for each name; one that nobody has asked of for long is full, and forgotten."""

    def __init__(self, rate: float, burst: float, ticks: Callable[[], float]) -> None:
        """`rate` a second, at most `burst` at once; `ticks` is a clock that never goes back."""
        self._rate, self._burst, self._ticks = rate, burst, ticks
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}  # how much, and when

    def take(self, name: str, amount: float = 1.0) -> float:
        """Take from a bucket; 0 if there was enough, else in how many seconds there will be (and nothing is taken)."""
        with self._lock:
            now = self._ticks()
            left = self._now(name, now)
            if left < amount:
                return (amount - left) / self._rate
            self._put(name, left - amount, now)
            return 0.0

    def owe(self, name: str, amount: float) -> None:
        """Take what was used already, whether it was there or not."""
        with self._lock:
            now = self._ticks()
            self._put(name, self._now(name, now) - amount, now)

    def wait(self, name: str) -> float:
        """In how many seconds there will be something; 0 if there is."""
        with self._lock:
            return max(-self._now(name, self._ticks()) / self._rate, 0.0)

    def _now(self, name: str, now: float) -> float:
        left, since = self._left.get(name, (self._burst, now))
        return min(left + (now - since) * self._rate, self._burst)

    def _put(self, name: str, left: float, now: float) -> None:
        if name not in self._left and len(self._left) >= _MOST:
            self._left = {each: kept for each, kept in self._left.items() if self._now(each, now) < self._burst}
            while len(self._left) >= _MOST:  # all in use: the one that was used longest ago
                del self._left[min(self._left, key=lambda each: self._left[each][1])]
        self._left[name] = left, now


def network(address: str) -> str:
    """Whose address it is: of IPv6 the first half, which is what one customer has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else str(found)
