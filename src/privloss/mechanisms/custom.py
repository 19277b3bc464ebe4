"""A mechanism of one's own: two probability vectors.

>>> Custom(p=[0.75, 0.25], q=[0.25, 0.75])
Custom(p=[0.75, 0.25], q=[0.25, 0.75])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import numbers

_SUM = 1e-9  # how far probabilities may be from summing to one


@dataclass(frozen=True, repr=False)
class Custom(Mechanism):
    """P and Q over the same outcomes: the mechanism's output with and without the record, worst case, both ways round.

    The vectors must sum to one up to 1e-9 and are made to sum to one.
    """

    kind: ClassVar[str] = "custom"
    p: Sequence[float] = numbers(high=1.0)
    q: Sequence[float] = numbers(high=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_vectors("p", self.p, "q", self.q)


def check_vectors(name_p: str, p: Sequence[float], name_q: str, q: Sequence[float]) -> None:
    """Two probability vectors over the same outcomes."""
    for name, vector in ((name_p, p), (name_q, q)):
        total = math.fsum(vector)
        if abs(total - 1) > _SUM:
            raise InvalidInput(f"{name}: probabilities must sum to 1, not {total:.12g}.")
    if len(p) != len(q):
        raise InvalidInput(f"{name_p} has {len(p)} entries, {name_q} {len(q)}: must be equally many.")


def _step(m: Custom, adjacency: str) -> Step:
    return Step.from_vectors(
        m.p,
        m.q,
        theorem="The pair as given",
        assumption=f"custom: the two vectors are the worst neighbours under {adjacency}, in both directions; they are "
        "made to sum to one",
    )


add_kind(Kind("custom", Custom, _step, certified="all outcomes; one use of an uneven pair under replace-one"))
