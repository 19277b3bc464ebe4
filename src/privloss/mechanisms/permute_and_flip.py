"""Permute and flip: report noisy max with exponential noise, by another name.

It goes through the candidates in random order and stops at y with probability exp(epsilon (score(y) - best) / 2 D).
That chooses like the largest score with exponential noise of rate epsilon / 2 D (Ding, Kifer, Sayed-Ali, Steinke, Wang,
Xiao, Zhang 2021), so `noisy_max.py` has the pair.

>>> PermuteAndFlip(epsilon=0.5)
PermuteAndFlip(epsilon=0.5)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.noisy_max import EXPONENTIAL, noisy_max_step
from privloss.mechanisms.parameters import number


@dataclass(frozen=True, repr=False, init=False)
class PermuteAndFlip(Mechanism):
    """Stops at a candidate with probability exp(epsilon (score - best) / 2 sensitivity), or without the 2 for scores
    that one record moves in one direction only."""

    kind: ClassVar[str] = "permute-and-flip"
    eps: float = number(public="epsilon")

    def __init__(self, epsilon: float) -> None:
        set_field(self, "eps", epsilon)
        self.__post_init__()


def _step(m: PermuteAndFlip, adjacency: str) -> Step:
    return noisy_max_step(m.eps, EXPONENTIAL, m.kind, adjacency)


add_kind(
    Kind(
        "permute-and-flip",
        PermuteAndFlip,
        _step,
        louder=lambda m, factor: PermuteAndFlip(m.eps / factor),
        certified="line (Laplace pair)",
    )
)
