"""Processes that may be ended: what a stranger's plan costs to price must not be paid by others.

A worker has little memory, a low priority, a deadline, and nothing of the service's secrets. One that hangs is killed
and replaced; the others go on meanwhile.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import json
import multiprocessing
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pebble import ProcessExpired, ProcessPool

from privloss.errors import InvalidInput, PrivlossError, Unreachable, Unsupported
from privloss.service import jobs
from privloss.service.problems import Problem, problem_of
from privloss.service.settings import Settings

Job = Callable[..., Any]
_MEMORY = 2**30  # bytes of one worker
_EXPIRED = 1.0  # seconds that a worker is thought to have used that ended before it could say
_JOBS = 500  # until a worker is renewed
_KEPT, _LARGEST_KEPT = 1024, 16_000  # answers, and characters of the longest arguments, that are remembered
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_KINDS = {kind.__name__: kind for kind in (InvalidInput, Unsupported, Unreachable, PrivlossError)}


@dataclass(frozen=True)
class Done:
    """What a worker found, or why it did not."""

    result: Any = None
    problem: Exception | None = None
    seconds: float = 0.0  # of a processor; 0 if the answer was remembered
    killed: bool = False

    def value(self) -> Any:
        if self.problem is not None:
            raise self.problem
        return self.result


def _begin(memory: int) -> None:
    """In a new worker, before anything else."""
    import resource

    for name in list(os.environ):
        if name.startswith(("PRIVLOSS_", "PG")):
            del os.environ[name]
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _run(job: Job, arguments: tuple[Any, ...]) -> tuple[str, Any, float]:
    """In a worker. A failure travels as words: an exception of another package might not be readable elsewhere."""
    before = time.process_time()
    try:
        found: tuple[str, Any] = ("", job(*arguments))
    except PrivlossError as problem:
        kind = next(name for name, each in _KINDS.items() if isinstance(problem, each))
        found = (kind, str(problem))
    return (*found, time.process_time() - before)


class Workers:
    """A pool of such processes, and the answers they have given."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._first: Any = None  # the first job; when it is done, what prices need is loaded
        self._running: Counter[str] = Counter()
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._pool: ProcessPool | None = None

    def open(self) -> None:
        for name in _THREADS:  # what forks the workers reads them once
            os.environ.setdefault(name, "1")
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["privloss.service.warmed"])  # so that a new worker is warm at once
        self._pool = ProcessPool(
            max_workers=self._settings.price_workers, max_tasks=_JOBS, initializer=_begin, initargs=[_MEMORY],
            context=context,
        )  # fmt: skip
        self._first = self._pool.schedule(_run, args=[jobs.warm, ()])

    @property
    def warm(self) -> bool:
        return self._first is not None and self._first.done()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()
            self._pool = None

    @staticmethod
    def name_of(job: Job, arguments: tuple[Any, ...]) -> str:
        """The same name for the same question."""
        text = json.dumps([job.__module__, job.__qualname__, arguments], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def knows(self, job: Job, arguments: tuple[Any, ...]) -> bool:
        """Whether the answer is remembered, and costs nothing."""
        with self._lock:
            return self.name_of(job, arguments) in self._kept

    async def done(self, job: Job, arguments: tuple[Any, ...], who: str = "") -> Done:
        """What a job finds, or why it does not. `who` may have only so many at once."""
        name = self.name_of(job, arguments)
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return Done(self._kept[name])
        self._enter(who)
        try:
            found = await self._asked(job, arguments)
        finally:
            self._leave(who)
        if found.problem is None and len(json.dumps(arguments)) <= _LARGEST_KEPT:
            with self._lock:
                self._kept[name] = found.result
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return found

    def _enter(self, who: str) -> None:
        with self._lock:
            full = self._running.total() >= self._settings.price_waiting + self._settings.price_workers
            if full or self._running[who] >= self._settings.price_each:
                text = "other plans are being priced" if full else "this token's other plans are being priced"
                raise Problem(503, "busy", f"{text}; ask again", {"Retry-After": "1"})
            self._running[who] += 1

    def _leave(self, who: str) -> None:
        with self._lock:
            self._running[who] -= 1
            if self._running[who] <= 0:
                del self._running[who]

    async def _asked(self, job: Job, arguments: tuple[Any, ...]) -> Done:
        if self._pool is None:
            raise Problem(503, "busy", "the service is starting or ending; ask again", {"Retry-After": "1"})
        future = self._pool.schedule(_run, args=[job, arguments], timeout=self._settings.price_seconds)
        try:
            kind, found, seconds = await asyncio.wrap_future(future)
        except (TimeoutError, concurrent.futures.TimeoutError):
            seconds = self._settings.price_seconds
            slow = Problem(422, "price-timeout", f"the plan was not priced within {seconds:g} seconds")
            return Done(problem=slow, seconds=seconds, killed=True)
        except (ProcessExpired, MemoryError):
            large = Problem(422, "price-memory", "the plan needs more memory to price than it may have")
            return Done(problem=large, seconds=_EXPIRED, killed=True)
        if kind:
            return Done(problem=problem_of(_KINDS[kind](found)), seconds=seconds)
        return Done(found, seconds=seconds)
