"""The ways to spend around a piece of code: a block, an asynchronous block, a decorator.

They need only `reserve`, `start` and `commit`, so that a ledger reached over a network has them too.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from privloss.ledger.answers import Reservation
    from privloss.mechanisms.questions import Questions

_Result = TypeVar("_Result")


class Spending:
    """Whatever can hold, start and commit."""

    reserve: Callable[..., Reservation]
    start: Callable[..., Reservation]
    commit: Callable[..., Reservation]

    @contextmanager
    def spend(
        self, datasets: str | Sequence[str], plan: Questions | None = None, *, key: str, **options: Any
    ) -> Iterator[Reservation]:
        """Reserve and start before the block, commit after it. A block that fails has touched the data: it is committed
        too, because failures are outputs. Of all callers with one key one enters the block, once; the others, and any
        after a crash, are refused with `AlreadySpentError`."""
        self.reserve(datasets, plan, key=key, **options)
        started = self.start(key)
        try:
            yield started
        finally:
            self.commit(key)

    @asynccontextmanager
    async def aspend(
        self, datasets: str | Sequence[str], plan: Questions | None = None, *, key: str, **options: Any
    ) -> AsyncIterator[Reservation]:
        """`spend` for asyncio: the ledger's work runs in a thread."""
        await asyncio.to_thread(self.reserve, datasets, plan, key=key, **options)
        started = await asyncio.to_thread(self.start, key)
        try:
            yield started
        finally:
            await asyncio.shield(asyncio.to_thread(self.commit, key))

    def spending(
        self, datasets: str | Sequence[str], plan: Questions | None = None, **options: Any
    ) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
        """A decorator: every call spends, under the key given as the keyword argument `key`. A key runs the function
        once, whatever its arguments; a second call under it is refused."""

        def wrap(function: Callable[..., _Result]) -> Callable[..., _Result]:
            @functools.wraps(function)
            def spent(*arguments: Any, key: str, **keywords: Any) -> _Result:
                with self.spend(datasets, plan, key=key, **options):
                    return function(*arguments, **keywords)

            return spent

        return wrap
