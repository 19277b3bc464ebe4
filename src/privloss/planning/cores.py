"""Many small questions on all cores, answered in the order in which they are done.

>>> with answered(lambda n: n * n, range(4), processes=1) as answers:
...     sorted(answers)
[(0, 0), (1, 1), (2, 4), (3, 9)]

Workers are forked, so that questions may be functions of any kind; where a process cannot be forked safely there is one
worker, this process. Short work never leaves it: others are started only if something is left after a quarter of a
second. When the caller stops early, or is interrupted, the workers are ended at once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, TypeVar

from privloss.errors import PrivlossError
from privloss.numerics import check

Answer = TypeVar("Answer")
_ALONE = 0.25  # seconds before others are asked to help
_AHEAD = 8  # questions per worker that wait in the queue
_held: Callable[[int], Any] | None = None  # in a worker: what is asked


def available(processes: int | None = None) -> int:
    """How many workers to use: as many as asked for, or one per core this process may run on."""
    if processes is not None:
        wanted = check.count("processes", processes)
        return wanted if "fork" in multiprocessing.get_all_start_methods() else 1
    if sys.platform != "linux" or multiprocessing.current_process().daemon:
        return 1
    return len(os.sched_getaffinity(0))


def answered(
    ask: Callable[[int], Answer], jobs: Iterable[int], processes: int
) -> AbstractContextManager[Iterator[tuple[int, Answer]]]:
    """Pairs (job, ask(job)), for use in a `with` statement."""
    return closing(_answered(ask, iter(list(jobs)), processes))


def _answered(
    ask: Callable[[int], Answer], jobs: Iterator[int], processes: int
) -> Generator[tuple[int, Answer], None, None]:
    start = time.monotonic()
    for job in jobs:
        yield job, ask(job)
        if processes > 1 and time.monotonic() - start > _ALONE:
            break
    else:
        return
    first = next(jobs, None)
    if first is not None:
        yield from _shared(ask, first, jobs, processes)


def _shared(
    ask: Callable[[int], Answer], first: int, jobs: Iterator[int], processes: int
) -> Generator[tuple[int, Answer], None, None]:
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(ask,))
    finished = False
    try:
        with warnings.catch_warnings(), _undisturbed():  # idle threads of numerical libraries survive a fork
            warnings.simplefilter("ignore", DeprecationWarning)
            asked: dict[Future[Any], int] = {pool.submit(_ask, first): first}
        more = True
        while asked:
            while more and len(asked) < _AHEAD * processes:
                job = next(jobs, None)
                more = job is not None
                if job is not None:
                    asked[pool.submit(_ask, job)] = job
            for future in wait(asked, return_when=FIRST_COMPLETED).done:
                yield asked.pop(future), future.result()
        finished = True
    except BrokenProcessPool:
        raise PrivlossError("a worker process ended by itself (out of memory?); fewer processes need less.") from None
    finally:
        if not finished:
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits until the workers are there: Python prints and forgets an exception between fork and return."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(ask: Callable[[int], Any]) -> None:
    """A worker leaves Ctrl-C to the process that started it."""
    global _held
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _held = ask


def _ask(job: int) -> Any:
    if _held is None:
        raise RuntimeError("a worker was not told what to ask")
    return _held(job)
