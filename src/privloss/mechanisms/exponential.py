"""The exponential mechanism.

>>> Exponential(epsilon=0.5)
Exponential(epsilon=0.5)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privloss.losses.closed.bounded_range import BoundedRangeLoss, two_point
from privloss.losses.density.exponentials import Exponentials
from privloss.losses.step import Step
from privloss.losses.table.loss import TableLoss
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.densities import on_samples, within_range
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number
from privloss.numerics.floats import raised

_SHARES = (0.0, 0.05, 0.15, 0.3, 0.6, 0.9)  # places in the range that a lower end tries


@dataclass(frozen=True, repr=False, init=False)
class Exponential(Mechanism):
    """Chooses y with probability proportional to exp(epsilon score(y) / 2 sensitivity), or without the 2 for scores
    that one record moves in one direction only. Its loss has a range of epsilon, not 2 epsilon (bounded range)."""

    kind: ClassVar[str] = "exponential"
    eps: float = number(public="epsilon")

    def __init__(self, epsilon: float) -> None:
        set_field(self, "eps", epsilon)
        self.__post_init__()


def bounded_range_step(eps: float, kind: str, adjacency: str) -> Step:
    """Any choice whose loss has a range of eps."""
    theorem = (
        "Bounded range: dominated by the density e^(z/2) on [-eps, eps]; below: two-point mechanisms "
        "(Dong, Durfee, Rogers 2020)"
    )
    assumption = f"{kind}: scores have the stated sensitivity under {adjacency}"
    if eps == 0:
        return nothing_chosen(theorem, assumption)
    step = Step(
        (theorem,),
        (assumption,),
        BoundedRangeLoss(np.array([eps]), np.ones(1)),
        mirrored=True,
        attained=tuple(TableLoss.one(two_point(eps, 0.5 * eps * (1 + share))) for share in _SHARES),
        attained_pointwise=True,
        span=eps,
        rho=raised(0.125 * eps * eps, 4),  # divergences of a loss of this range: Lem. rdp_properties, part 5
    )
    return on_samples(
        step,
        lambda: Exponentials.bounded_range(within_range("a bounded range on a sample", eps)),
        below=(two_point(eps, 0.5 * eps),),
    )


def nothing_chosen(theorem: str, assumption: str) -> Step:
    """A choice that does not look at the data."""

    def still_nothing(rate: float) -> Step:
        return Step((), (), mirrored=True)

    return Step((theorem,), (assumption,), mirrored=True, poisson=still_nothing, symmetric=still_nothing)


add_kind(
    Kind(
        "exponential",
        Exponential,
        lambda m, adjacency: bounded_range_step(m.eps, m.kind, adjacency),
        louder=lambda m, factor: Exponential(m.eps / factor),
        certified="line",
    )
)
