"""Connections for threads and processes: each transaction takes one alone, a forked child makes its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Pool:
    """Idle connections of this process."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._process = os.getpid()

    @contextmanager
    def taken(self) -> Iterator[Any]:
        """A connection nobody else uses; one that failed is thrown away."""
        with self._lock:
            if self._process != os.getpid():  # after a fork the parent's connections are not ours to use or close
                self._idle, self._process = [], os.getpid()
            found = self._idle.pop() if self._idle else None
        found = self._make() if found is None else found
        try:
            yield found
        except BaseException:
            found.close()
            raise
        with self._lock:
            self._idle.append(found)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        if self._process == os.getpid():
            for connection in idle:
                connection.close()
