"""Group commit: commands of many threads decided one after the other, made durable together."""

from __future__ import annotations

import functools
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from privloss.ledger.commands import Command
from privloss.ledger.stores.base import Clock, Finding, LedgerError, Outcome, Store

MOST = 128
_NAMES = ("balances", "chained", "keys", "leases", "sql_now")  # of tables and views, and of the time
Found = Outcome | BaseException  # what became of a command, or why nothing did


class Work(Protocol):
    """Commands for the writer, as somebody hands them over who need not wait."""

    clock: Clock | None

    def commands(self) -> Sequence[Command]:
        """Those to be decided, found out by the writer when it is their turn; raises nothing."""

    def done(self, found: Sequence[Found]) -> None:
        """Told what became of each, after the commit."""


class _Waiting:
    """A command, and a thread that waits for its answer; a lock is all it takes."""

    def __init__(self, command: Command, clock: Clock | None) -> None:
        self.clock, self._command = clock, command
        self._found: Found = LedgerError("the ledger was closed.")
        self._ready = threading.Lock()
        self._ready.acquire()

    def commands(self) -> Sequence[Command]:
        return (self._command,)

    def done(self, found: Sequence[Found]) -> None:
        self._found = found[0]
        self._ready.release()

    def wait(self) -> Outcome:
        self._ready.acquire()
        if isinstance(self._found, BaseException):
            raise self._found
        return self._found


class GroupedStore(Store):
    """A store whose commands go through one writer; an answer is given only after the commit that holds it."""

    def __init__(self, inner: Store) -> None:
        self._inner, self._closed, self._door = inner, False, threading.Lock()
        self._process = os.getpid()
        self._waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        for name in _NAMES:
            setattr(self, name, getattr(inner, name))
        self._writer = threading.Thread(target=self._work, name="privloss-ledger", daemon=True)
        self._writer.start()

    def run(self, command: Command, clock: Clock | None = None) -> Outcome:
        waiting = _Waiting(command, clock)
        self.hand_over(waiting)
        return waiting.wait()

    def hand_over(self, work: Work) -> None:
        """Have it done, together with what else waits."""
        if self._process != os.getpid():
            raise LedgerError("the ledger was opened before a fork; with group commit each process opens its own.")
        with self._door:  # so that nothing is queued behind the end
            if self._closed:
                raise LedgerError("the ledger was closed.")
            self._waiting.put(work)

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

    def _commit(self, group: Sequence[Work]) -> None:
        asked = [work.commands() for work in group]
        commands = [command for each in asked for command in each]
        found = iter(self._decided(commands, group[0].clock))
        for work, each in zip(group, asked, strict=True):
            work.done([next(found) for _ in each])

    def _decided(self, commands: Sequence[Command], clock: Clock | None) -> Sequence[Found]:
        if not commands:
            return ()
        try:
            return self._inner.run_all(commands, clock)
        except BaseException as problem:
            if len(commands) == 1:
                return [problem]
            return [self._decided([command], clock)[0] for command in commands]  # one bad one must not fail the others

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


def _handed_on(name: str) -> Callable[..., Any]:
    def method(self: GroupedStore, *values: Any, **named: Any) -> Any:
        return getattr(self._inner, name)(*values, **named)

    return functools.wraps(getattr(Store, name))(method)


# whatever a store does in its own way, the one around it must do in that way, too (a test compares)
_OWN_WAYS = ("flush", "hold", "misplaced", "none_late", "remember", "remembered", "repeated", "run_all", "soonest")
for _name in (*_OWN_WAYS, "text", "write"):
    setattr(GroupedStore, _name, _handed_on(_name))
