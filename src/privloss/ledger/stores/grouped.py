"""Group commit: commands of many threads decided one after the other, made durable together."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any

from privloss.ledger.commands import Command
from privloss.ledger.stores.base import Finding, LedgerError, Outcome, Store

MOST = 128
_Item = tuple[Command, float, "Future[Outcome]"]


class GroupedStore(Store):
    """A store whose commands go through one writer; an answer is given only after the commit that holds it."""

    def __init__(self, inner: Store) -> None:
        self._inner, self._closed, self._door = inner, False, threading.Lock()
        self._process = os.getpid()
        self._waiting: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._work, name="privloss-ledger", daemon=True)
        self._writer.start()

    def run(self, command: Command, now: float) -> Outcome:
        if self._process != os.getpid():
            raise LedgerError("the ledger was opened before a fork; with group commit each process opens its own.")
        answer: Future[Outcome] = Future()
        with self._door:  # so that nothing is queued behind the end
            if self._closed:
                raise LedgerError("the ledger was closed.")
            self._waiting.put((command, now, answer))
        return answer.result()

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
        outcomes: list[Outcome] = []
        try:
            with self._inner.transaction() as cursor:
                outcomes = [self._inner.run_in(cursor, command, now) for command, now, _ in group]
        except BaseException as problem:
            if len(group) == 1:
                group[0][2].set_exception(problem)
                return
            for item in group:  # one bad command must not fail the others
                self._commit([item])
            return
        for (_, _, answer), outcome in zip(group, outcomes, strict=True):
            answer.set_result(outcome)

    def transaction(self) -> AbstractContextManager[Any]:
        return self._inner.transaction()

    def reading(self) -> AbstractContextManager[Any]:
        return self._inner.reading()

    def lock(self, cursor: Any, names: Sequence[str]) -> list[str]:
        return self._inner.lock(cursor, names)

    def lock_head(self, cursor: Any) -> None:
        self._inner.lock_head(cursor)

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
