"""Tree aggregation: counts over time, every node of a binary tree over the steps released once with its own noise.

A record in one of n steps is in one node of every finished length 1, 2, 4, ... <= n: at most n.bit_length() of them,
and step 1 is in that many. Where trees restart, or a record has a step in several trees, their levels add. What is made
of the nodes (running counts, Honaker's estimate, momentum) is post-processing.

>>> TreeAggregation(steps=1000, noise_multiplier=10.0)                           # ten levels of Gaussian noise
TreeAggregation(steps=1000, noise_multiplier=10.0)
>>> TreeAggregation(steps=365, noise="laplace", noise_multiplier=20.0).epsilon(0.0)      # nine levels of Laplace noise
Bound(0.44999999999..., 0.45000000000...)
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privloss.adjacency import ADD_REMOVE
from privloss.losses.step import Step
from privloss.mechanisms import noise
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.parameters import number, whole, word

GAUSSIAN, LAPLACE = "gaussian", "laplace"


@dataclass(frozen=True, repr=False, kw_only=True)
class TreeAggregation(Mechanism):
    """A tree over `steps` steps; `noise_multiplier` is the noise of one node (sigma, or the scale of Laplace noise) in
    units of the bound on one record's contribution; `trees` in how many trees a record has one step."""

    kind: ClassVar[str] = "tree-aggregation"
    steps: int = whole(description="leaves of one tree: steps until it restarts")
    trees: int = whole(default=1, plain=1, description="trees in which one record takes part, in one step each")
    noise: str = word((GAUSSIAN, LAPLACE), GAUSSIAN)
    noise_multiplier: float | None = number(
        default=None, description="noise of one node / bound on one record's contribution"
    )
    scale: float | None = number(default=None, description="noise of one node: sigma, or the scale of Laplace noise")
    sensitivity: float | None = number(above=True, default=None, description="of one step, under the plan's adjacency")

    def __post_init__(self) -> None:
        noise.exactly_one(self.noise_multiplier, "scale", self.scale, self.sensitivity)
        super().__post_init__()

    @property
    def nodes(self) -> int:
        """In how many nodes one record can be."""
        return self.trees * self.steps.bit_length()


def _node(m: TreeAggregation) -> Mechanism:
    """The release of one node."""
    if m.noise == LAPLACE:
        return Laplace(noise_multiplier=m.noise_multiplier, scale=m.scale, sensitivity=m.sensitivity)
    return Gaussian(noise_multiplier=m.noise_multiplier, sigma=m.scale, sensitivity=m.sensitivity)


def _step(m: TreeAggregation, adjacency: str) -> Step:
    one = _node(m).step(adjacency)
    about = (
        f"tree-aggregation: {one.assumptions[0]}; trees over {m.steps} steps with {m.steps.bit_length()} levels of "
        f"nodes, a record takes part in one step of {m.trees} of them, by a rule that ignores the data"
    )
    if adjacency == ADD_REMOVE:
        about += "; a record more or less moves no other to another step"
    theorem = "tree: a record is in at most n.bit_length() finished nodes of a tree over n steps, attained by the first"
    found = one.times(m.nodes)
    return dataclasses.replace(found, theorems=(theorem, *one.theorems), assumptions=(about,))


def _louder(m: TreeAggregation, factor: float) -> TreeAggregation:
    if m.noise_multiplier is not None:
        return dataclasses.replace(m, noise_multiplier=m.noise_multiplier * factor)
    return dataclasses.replace(m, scale=(m.scale or 0.0) * factor)


def _grouped(m: TreeAggregation, people: int, adjacency: str) -> TreeAggregation:
    """All of them may be in the same nodes."""
    if m.noise_multiplier is not None:
        return dataclasses.replace(m, noise_multiplier=m.noise_multiplier / people)
    return dataclasses.replace(m, sensitivity=people * (m.sensitivity or 1.0))


def _mu_squared(m: TreeAggregation, adjacency: str) -> Fraction | None:
    each = _node(m).mu_squared(adjacency)
    return None if each is None else m.nodes * each


add_kind(
    Kind(
        "tree-aggregation",
        TreeAggregation,
        _step,
        forms=(
            ("steps", "trees?", "noise?", "noise_multiplier"),
            ("steps", "trees?", "noise?", "scale", "sensitivity?"),
        ),
        louder=_louder,
        grouped=_grouped,
        mu_squared=_mu_squared,
        not_on_a_sample=(
            "which steps a record takes part in is part of a tree; trees on samples have no proven amplification."
        ),
    )
)
