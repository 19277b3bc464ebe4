"""The k best candidates by noisy scores; scores are not shown.

*Peeling*: k choices one after the other, each among those that are left: k uses. *One-shot Gumbel noise*, the k largest
in order, is the same as k uses of the exponential mechanism (Durfee and Rogers 2019). *One-shot exponential or Laplace
noise* of rate lam: a shift of the noise of the k winners by 2 D each keeps the output, at e^(2 lam D) for each of them
(hazard rates), so it is k epsilon-DP with epsilon = 2 lam D; that is reached, and it is not k Laplace pairs.

>>> import privloss as pl
>>> pl.TopK(epsilon=0.5, k=3) * 2
Plan(6 * NoisyMax(epsilon=0.5))
>>> pl.TopK(epsilon=0.5, k=3, noise="laplace", rounds="one-shot") + pl.TopK(epsilon=0.5, k=3, noise="laplace")
Plan(PureDP(epsilon=1.5) + 3 * NoisyMax(epsilon=0.5, noise='laplace'))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.product import product
from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism, Steps, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.noisy_max import GUMBEL, NOISES, NoisyMax
from privloss.mechanisms.parameters import number, whole, word
from privloss.mechanisms.pure_dp import PureDP
from privloss.numerics.floats import next_up

PEELING, ONE_SHOT = "peeling", "one-shot"


@dataclass(frozen=True, repr=False, init=False)
class TopK(Mechanism):
    """The k largest noisy scores, in order; `epsilon` is that of one choice, as in `NoisyMax`."""

    kind: ClassVar[str] = "top-k"
    eps: float = number(public="epsilon")
    k: int = whole()
    noise: str = word(NOISES, GUMBEL)
    rounds: str = word((PEELING, ONE_SHOT), PEELING)

    def __init__(self, epsilon: float, k: int, noise: str = GUMBEL, rounds: str = PEELING) -> None:
        for name, value in (("eps", epsilon), ("k", k), ("noise", noise), ("rounds", rounds)):
            set_field(self, name, value)
        self.__post_init__()
        if self.k * self.eps == math.inf:
            raise InvalidInput(f"epsilon = {epsilon!r}, k = {k!r}: k epsilon is beyond the range of doubles.")


def _parts(m: TopK) -> Steps:
    if m.rounds == PEELING or m.noise == GUMBEL:
        return ((NoisyMax(m.eps, m.noise), m.k),)
    exact, found = m.k * Fraction(m.eps), m.k * m.eps
    return ((PureDP(found if Fraction(found) >= exact else next_up(found)), 1),)


def _step(m: TopK, adjacency: str) -> Step:
    return product([(part.step(adjacency), n) for part, n in _parts(m)])


add_kind(
    Kind(
        "top-k",
        TopK,
        _step,
        louder=lambda m, factor: TopK(m.eps / factor, m.k, m.noise, m.rounds),
        parts=_parts,
        certified="as its parts",
    )
)
