"""The exponential mechanism, and choosing the largest of noisy scores.

>>> Exponential(epsilon=0.5)
Exponential(epsilon=0.5)
>>> NoisyMax(epsilon=0.5, noise="laplace")
NoisyMax(epsilon=0.5, noise='laplace')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check

NOISES = ("gumbel", "exponential", "laplace")


@dataclass(frozen=True, repr=False, init=False)
class Exponential(Mechanism):
    """Chooses y with probability proportional to exp(epsilon score(y) / 2 sensitivity), or without the 2 for scores
    that one record moves in one direction only. Its loss has a range of epsilon, not 2 epsilon (bounded range)."""

    kind: ClassVar[str] = "exponential"
    renamed: ClassVar[dict[str, str]] = {"eps": "epsilon"}
    eps: float

    def __init__(self, epsilon: float) -> None:
        set_field(self, "eps", check.number("epsilon", epsilon, low=0))


@dataclass(frozen=True, repr=False, init=False)
class NoisyMax(Mechanism):
    """The index of the largest noisy score. Gumbel noise makes it the exponential mechanism; exponential noise makes it
    permute-and-flip, which like Laplace noise is accounted for as any epsilon-DP mechanism."""

    kind: ClassVar[str] = "noisy-max"
    renamed: ClassVar[dict[str, str]] = {"eps": "epsilon"}
    eps: float
    noise: str = "gumbel"

    def __init__(self, epsilon: float, noise: str = "gumbel") -> None:
        set_field(self, "eps", check.number("epsilon", epsilon, low=0))
        set_field(self, "noise", check.choice("noise", noise, NOISES))
