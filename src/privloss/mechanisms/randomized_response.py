"""Randomised response: tell the truth, or a uniformly random one of k answers.

>>> RandomizedResponse(p=0.5)            # e^eps = (1 - p + p/k) / (p/k) = 3
RandomizedResponse(p=0.5)
>>> RandomizedResponse(epsilon=1.0, answers=4)
RandomizedResponse(epsilon=1.0, answers=4)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check


@dataclass(frozen=True, repr=False, init=False)
class RandomizedResponse(Mechanism):
    """Given by `epsilon` (stored as `eps`), or by `p`, the probability to answer uniformly at random; k = `answers`."""

    kind: ClassVar[str] = "randomized-response"
    renamed: ClassVar[dict[str, str]] = {"eps": "epsilon"}
    eps: float | None = None
    p: float | None = None
    answers: int = 2

    def __init__(self, epsilon: float | None = None, p: float | None = None, answers: int = 2) -> None:
        if (epsilon is None) == (p is None):
            raise InvalidInput(f"epsilon = {epsilon!r}, p = {p!r}: give exactly one of them.")
        set_field(self, "eps", None if epsilon is None else check.number("epsilon", epsilon, low=0))
        set_field(self, "p", None if p is None else check.number("p", p, low=0, high=1))
        set_field(self, "answers", check.count("answers", answers))
        if answers < 2:
            raise InvalidInput(f"answers = {answers!r}: must be at least 2.")

    @property
    def local_epsilon(self) -> float:
        """The eps of one answer, log((1 - p + p/k) / (p/k))."""
        if self.eps is not None:
            return self.eps
        p = self.p or 0.0
        return math.log1p((1 - p) * self.answers / p) if p > 0 else math.inf
