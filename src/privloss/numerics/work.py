"""A stated amount of work: no question may take more evaluations of the losses than it was given.

Work is counted in evaluations of e^(zv), not in seconds, so that answers and prices never depend on how busy the
machine is. Where the limit is reached the engine raises `TooExpensive` inside, and the caller takes the cheapest sound
bounds.

>>> with limited(10):
...     charge(8)
...     charge(8)
Traceback (most recent call last):
...
privloss.numerics.contour.transform.TooExpensive: the limit of work is reached
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from privloss.numerics.contour.transform import TooExpensive

DEFAULT_WORK = 200_000_000  # evaluations: about ten seconds
_left: ContextVar[float] = ContextVar("left", default=float("inf"))


@contextmanager
def limited(evaluations: float) -> Iterator[None]:
    """At most so many evaluations inside, and no more than an outer limit has left."""
    outer = _left.get()
    own = min(evaluations, outer)
    token = _left.set(own)
    try:
        yield
    finally:
        used = own - _left.get()
        _left.reset(token)
        _left.set(outer - used)


def charge(evaluations: float) -> None:
    """Count them before they are made."""
    left = _left.get() - evaluations
    _left.set(left)
    if left < 0:
        raise TooExpensive("the limit of work is reached")


def spent() -> bool:
    """Whether the limit was reached."""
    return _left.get() < 0
