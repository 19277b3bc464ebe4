"""A quantile through the exponential mechanism: y with density proportional to exp(-epsilon |#{x < y} - q n| / 2)
(Smith 2011).

What a record does to the score u(y) = -|c(y)|, c(y) = #{x < y} - q n, depends on the adjacency.

*A record replaced*: n stays, c moves by at most 1, up or down, between the two values: u changes by at most 1 either
way, and by +1 and -1 at once where c changes its sign in between. The loss has a range of epsilon/2 times 2.

*A record more*: c moves by 1 - q above the record and by -q from it on down. So u changes by at most max(q, 1-q) either
way, and by both at once where c changes its sign on the longer side; otherwise by -(1-q) and +q, whose distance 1 is no
larger. The range is epsilon/2 times 2 max(q, 1-q): half of epsilon for a median.

*A null record* may count like any other value, so zero-out is answered like replace-one.

>>> import privloss as pl
>>> pl.Quantile(1.0, q=0.5).epsilon(0.0).upper, pl.Quantile(1.0, q=0.5).epsilon(0.0, adjacency="replace-one").upper
(0.5000000000..., 1.0000000000...)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privloss.adjacency import ADD_REMOVE
from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.exponential import bounded_range_step
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number
from privloss.numerics.floats import next_up


@dataclass(frozen=True, repr=False, init=False)
class Quantile(Mechanism):
    """The q-quantile of numbers on a public interval, chosen with density proportional to exp(-epsilon |rank - q n| /
    2)."""

    kind: ClassVar[str] = "quantile"
    eps: float = number(public="epsilon")
    q: float = number(high=1.0)

    def __init__(self, epsilon: float, q: float = 0.5) -> None:
        set_field(self, "eps", epsilon)
        set_field(self, "q", q)
        self.__post_init__()


def _step(m: Quantile, adjacency: str) -> Step:
    moved = max(Fraction(m.q), 1 - Fraction(m.q)) if adjacency == ADD_REMOVE else Fraction(1)
    span = float(moved * Fraction(m.eps))
    if Fraction(span) < moved * Fraction(m.eps):
        span = next_up(span)
    return bounded_range_step(span, m.kind, adjacency).saying(
        "Quantile by the exponential mechanism: bounded range, of ranks that one record moves (docs/mechanisms.md)",
        f"quantile: density exp(-epsilon |rank - {m.q:g} n| / 2) on a public interval; {adjacency} moves the score "
        f"by up to {float(moved):g} either way",
    )


add_kind(Kind("quantile", Quantile, _step, louder=lambda m, factor: Quantile(m.eps / factor, m.q)))
