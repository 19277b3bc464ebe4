"""From a plan and an adjacency to the worst neighbours: every mechanism's own step, composed.

>>> import privloss as pl
>>> found = worst_neighbours(pl.Laplace(2.0) * 3 + pl.Gaussian(1.0), "replace-one")
>>> len(found.loss.parts), found.theorems[0]
(2, 'Laplace pair Lap(0) against Lap(sensitivity) (Zhu, Dong, Wang 2022, Prop. 14)')
"""

from __future__ import annotations

from dataclasses import dataclass

from privloss.adjacency import ADJACENCIES, REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.composition import WorstNeighbours, compose
from privloss.mechanisms.base import Plan
from privloss.numerics import check


@dataclass(frozen=True)
class Support:
    """Whether a plan can be answered under an adjacency, and if not, why; true and false like a bool."""

    answered: bool
    reason: str

    def __bool__(self) -> bool:
        return self.answered


def worst_neighbours(plan: Plan, adjacency: str | None = None) -> WorstNeighbours:
    """The losses of every step of the plan, composed, under the adjacency asked for or the plan's own."""
    chosen = plan.adjacency if adjacency is None else check.choice("adjacency", adjacency, ADJACENCIES)
    # A replaced record has no "with" and "without": which neighbour is named first may change from step to step.
    return compose([(m.step(chosen), n) for m, n in plan.steps], chosen, roles_swap=chosen == REPLACE_ONE)


def supported(plan: Plan, adjacency: str | None = None) -> Support:
    """Whether every step has a proven pair; nothing is computed from them."""
    try:
        worst_neighbours(plan, adjacency)
    except Unsupported as problem:
        return Support(False, str(problem))
    return Support(True, "every step has a proven pair")
