"""Randomised response: tell the truth, or a uniformly random one of k answers.

>>> RandomizedResponse(p=0.5)            # e^eps = (1 - p + p/k) / (p/k) = 3
RandomizedResponse(p=0.5)
>>> RandomizedResponse(epsilon=1.0, answers=4)
RandomizedResponse(epsilon=1.0, answers=4)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.closed.atoms import AtomsLoss
from privloss.losses.step import REVEALED_LOSS, Step
from privloss.losses.table.build import REVEALED, symmetric_response
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, whole

_LARGEST = 700.0  # beyond, e^-eps is nothing


@dataclass(frozen=True, repr=False, init=False)
class RandomizedResponse(Mechanism):
    """Given by `epsilon` (stored as `eps`), or by `p`, the probability to answer uniformly at random; k = `answers`."""

    kind: ClassVar[str] = "randomized-response"
    eps: float | None = number(default=None, public="epsilon")
    p: float | None = number(high=1.0, default=None, description="probability to answer uniformly at random")
    answers: int = whole(low=2, default=2, plain=2)

    def __init__(self, epsilon: float | None = None, p: float | None = None, answers: int = 2) -> None:
        if (epsilon is None) == (p is None):
            raise InvalidInput(f"epsilon = {epsilon!r}, p = {p!r}: give exactly one of them.")
        for name, value in (("eps", epsilon), ("p", p), ("answers", answers)):
            set_field(self, name, value)
        self.__post_init__()

    @property
    def local_epsilon(self) -> float:
        """The eps of one answer, log((1 - p + p/k) / (p/k))."""
        if self.eps is not None:
            return self.eps
        p = self.p or 0.0
        return math.log1p((1 - p) * self.answers / p) if p > 0 else math.inf


def _step(m: RandomizedResponse, adjacency: str) -> Step:
    eps = m.local_epsilon
    table = symmetric_response(eps, m.answers - 2, 0.0) if eps < _LARGEST else REVEALED
    step = Step.of_table(
        table,
        "Randomised response: the two answers that differ (explicit pair)",
        f"randomized-response: neighbours give different answers under {adjacency}; an absent person's report is drawn "
        "as for some fixed answer",
        mirrored=True,
    )
    if math.isinf(eps):
        return replace(step, loss=REVEALED_LOSS)
    return replace(step, loss=AtomsLoss.one(eps, m.answers - 2) if eps > 0 else None)


def _louder(m: RandomizedResponse, factor: float) -> RandomizedResponse:
    return RandomizedResponse(epsilon=min(m.local_epsilon / factor, 1e300), answers=m.answers)


add_kind(
    Kind(
        "randomized-response",
        RandomizedResponse,
        _step,
        forms=(("epsilon", "answers?"), ("p", "answers?")),
        louder=_louder,
        certified="lattice",
    )
)
