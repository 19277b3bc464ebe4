"""Group commit: commands of many threads decided one after the other, made durable together."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from privloss.ledger.commands import Command
from privloss.ledger.stores.base import Clock, Finding, LedgerError, Outcome, Store

MOST = 128


class _Answer:
    """What a thread waits for; a lock is all it takes."""

    def __init__(self) -> None:
        self._outcome: Outcome | None = None
        self._problem: BaseException | None = None
        self._ready = threading.Lock()
        self._ready.acquire()

    def give(self, outcome: Outcome | None, problem: BaseException | None = None) -> None:
        self._outcome, self._problem = outcome, problem
        self._ready.release()

    def wait(self) -> Outcome:
        self._ready.acquire()
        if self._outcome is None:
            raise self._problem or LedgerError("the ledger was closed.")
        return self._outcome


_Item = tuple[Command, Clock | None, _Answer]


class GroupedStore(Store):
    """A store whose commands go through one writer; an answer is given only after the commit that holds it."""

    def __init__(self, inner: Store) -> None:
        self._inner, self._closed, self._door = inner, False, threading.Lock()
        self._process = os.getpid()
        self._waiting: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._work, name="privloss-ledger", daemon=True)
        self._writer.start()

    def run(self, command: Command, clock: Clock | None = None) -> Outcome:
        if self._process != os.getpid():
            raise LedgerError("the ledger was opened before a fork; with group commit each process opens its own.")
        answer = _Answer()
        with self._door:  # so that nothing is queued behind the end
            if self._closed:
                raise LedgerError("the ledger was closed.")
            self._waiting.put((command, clock, answer))
        return answer.wait()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            group = [first]
            while len(group) < MOST and not self._waiting.empty():
                more = self._waiting.get()
                if more is None:
                    self._waiting.put(None)
                    break
                group.append(more)
            self._commit(group)

    def _commit(self, group: list[_Item]) -> None:
        try:
            outcomes = self._inner.run_all([command for command, _, _ in group], group[0][1])
        except BaseException as problem:
            if len(group) == 1:
                group[0][2].give(None, problem)
                return
            for item in group:  # one bad command must not fail the others
                self._commit([item])
            return
        for (_, _, answer), outcome in zip(group, outcomes, strict=True):
            answer.give(outcome)

    def transaction(self) -> AbstractContextManager[Any]:
        return self._inner.transaction()

    def reading(self) -> AbstractContextManager[Any]:
        return self._inner.reading()

    def look(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._inner.look(statement, values)

    def stream(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        return self._inner.stream(cursor, statement, values)

    def version(self, cursor: Any) -> int:
        return self._inner.version(cursor)

    def own_checks(self) -> list[Finding]:
        return self._inner.own_checks()

    def close(self) -> None:
        with self._door:
            self._closed = True
            self._waiting.put(None)
        self._writer.join()
        self._inner.close()
