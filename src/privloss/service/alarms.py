"""Clocks of many connections, by one timer of the event loop. All clocks of one kind run equally long, so they end in
the order in which they were set: setting and stopping one is a matter of a dictionary."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Who = TypeVar("_Who", bound=Hashable)


class Alarms(Generic[_Who]):
    """Calls `ring` for whoever has set a clock and has not stopped it for so many seconds."""

    def __init__(self, seconds: float, ring: Callable[[_Who], None]) -> None:
        self._seconds, self._ring = seconds, ring
        self._ends: dict[_Who, float] = {}
        self._running = False  # the timer

    def set(self, who: _Who) -> None:
        """A clock that runs already goes on as it was."""
        if who in self._ends:
            return
        loop = asyncio.get_running_loop()
        self._ends[who] = end = loop.time() + self._seconds
        if not self._running:
            self._running = True
            loop.call_at(end, self._look)

    def stop(self, who: _Who) -> None:
        self._ends.pop(who, None)

    def _look(self) -> None:
        loop, self._running = asyncio.get_running_loop(), False
        while self._ends:
            who, end = next(iter(self._ends.items()))
            if end > loop.time():
                self._running = True
                loop.call_at(end, self._look)
                return
            del self._ends[who]
            self._ring(who)
