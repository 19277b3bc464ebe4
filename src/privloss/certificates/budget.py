"""The checker's limit of work: whatever a certificate asks for, checking it ends.

Work is counted in evaluations, never in seconds, so that a verdict does not depend on how busy the machine is. The unit
is an exponential of a ball of up to 128 bits, about a microsecond; at more bits an evaluation counts for more. Every
loop of `pairs` and `methods` whose length a certificate may choose is charged before it runs. Where the limit is
reached nothing is decided, and the verdict says so.

>>> with limited(10):
...     charge(8)
...     charge(8)
Traceback (most recent call last):
...
privloss.certificates.budget.Undecided: the limit of work is reached
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from flint import acb, arb, ctx

_FEW_BITS = 1024  # up to which nodes of a quadrature cost little
DEFAULT_WORK = 15_000_000  # evaluations: ten to fifteen seconds of one core
_left: ContextVar[float] = ContextVar("left", default=float("inf"))


class Undecided(Exception):
    """The limit of work was reached: nothing is proven, and nothing refuted."""


@contextmanager
def limited(work: float) -> Iterator[None]:
    """At most so many evaluations inside."""
    token = _left.set(work)
    try:
        yield
    finally:
        _left.reset(token)


def charge(evaluations: float, exact: bool = False) -> None:
    """Count them before they are made, at the precision in use (exact: fractions, which have none)."""
    left = _left.get() - evaluations * (1.0 if exact else _weight(int(ctx.prec)))
    _left.set(left)
    if left < 0:
        raise Undecided("the limit of work is reached")


@cache
def _weight(bits: int) -> float:
    """An exponential at so many bits, in units of one at 128 (measured)."""
    return max(1.0, 0.5 + float((bits / 256) ** 1.4))


def integral(integrand: Callable[[acb, bool], acb], low: arb, high: arb, cost: float) -> acb:
    """FLINT's rigorous quadrature; every value of the integrand is charged `cost` evaluations."""
    over: list[Undecided] = []

    def charged(x: acb, analytic: bool) -> acb:
        try:
            charge(cost)
        except Undecided as problem:  # it must not pass through FLINT
            over.append(problem)
            return acb("nan")
        return integrand(x, analytic)

    bits = int(ctx.prec)
    charge(0.1 * max(bits - _FEW_BITS, 0) ** 2, exact=True)  # for the nodes themselves
    affordable = min(_left.get() / (cost * _weight(bits)), 1000 * bits + bits**2)  # the latter is FLINT's own limit
    found = acb.integral(charged, low, high, eval_limit=int(affordable) + 2)
    if over:
        raise over[0]
    return found


def numbers(data: Any) -> int:
    """How many numbers and names there are in a piece of JSON."""
    found, open_parts = 0, [data]
    while open_parts:
        one = open_parts.pop()
        found += 1
        if isinstance(one, dict):
            open_parts.extend(one.values())
        elif isinstance(one, list):
            open_parts.extend(one)
    return found
