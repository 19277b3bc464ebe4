"""Connections for threads and processes: each transaction takes one alone, a forked child makes its own."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


class Pool:
    """Idle connections of this process; `alive` says whether one that has lain idle can still be used."""

    def __init__(self, make: Callable[[], Any], alive: Callable[[Any], bool] = lambda connection: True) -> None:
        self._make, self._alive = make, alive
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._lent: list[list[Any]] = []  # of parents: kept, because closing them would end the parent's sessions
        _POOLS.add(self)

    def taken(self) -> _Taken:
        """A connection nobody else uses; one that failed is thrown away."""
        return _Taken(self)

    def give_back(self, connection: Any) -> None:
        with self._lock:
            self._idle.append(connection)

    def next(self) -> Any:
        while True:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            if found is None:
                return self._make()
            if self._alive(found):
                return found
            found.close()

    def after_fork(self) -> None:
        """In a child the parent's connections are not ours to use or close, and its lock may be held for ever."""
        self._lock = threading.Lock()
        self._lent.append(self._idle)
        self._idle = []

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class _Taken:
    """A connection for the time of a `with`; a class of its own because it is entered for every command."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def __enter__(self) -> Any:
        self._connection = self._pool.next()
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._pool.give_back(self._connection)
        else:
            self._connection.close()


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool.after_fork()


os.register_at_fork(after_in_child=_after_fork)
