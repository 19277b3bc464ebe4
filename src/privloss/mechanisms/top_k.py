"""The k best candidates by noisy scores; scores are not shown.

*Peeling*: k choices one after the other, each among those that are left: k uses. *One-shot Gumbel noise*, the k largest
in order, is the same as k uses of the exponential mechanism (Durfee and Rogers 2019). *One-shot exponential or Laplace
noise* of rate lam: a shift of the noise of the k winners by 2 D each keeps the output, at e^(2 lam D) for each of them
(hazard rates), so it is k epsilon-DP with epsilon = 2 lam D; that is reached, and it is not k Laplace pairs.

>>> import privloss as pl
>>> pl.TopK(epsilon=0.5, k=3) * 2
Plan(6 * NoisyMax(epsilon=0.5))
>>> pl.TopK(epsilon=0.5, k=3, noise="laplace", rounds="one-shot") + pl.TopK(epsilon=0.5, k=3, noise="laplace")
Plan(TopK(epsilon=0.5, k=3, noise='laplace', rounds='one-shot') + 3 * NoisyMax(epsilon=0.5, noise='laplace'))
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from privloss.errors import InvalidInput, Unsupported
from privloss.losses.closed.atoms import AtomsLoss
from privloss.losses.product import product
from privloss.losses.step import Step
from privloss.losses.table.build import symmetric_response
from privloss.mechanisms.base import Mechanism, Steps, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.noisy_max import GUMBEL, NOISES, NoisyMax, two_candidates
from privloss.mechanisms.parameters import number, whole, word
from privloss.mechanisms.pure_dp import PureDP
from privloss.numerics.floats import lowered, next_up

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
    if m.rounds == PEELING or m.noise == GUMBEL or m.k == 1:
        return ((NoisyMax(m.eps, m.noise), m.k),)
    return ((m, 1),)


def _step(m: TopK, adjacency: str) -> Step:
    if m.eps > 0 and _parts(m) == ((m, 1),):
        return _one_shot(m, adjacency)
    return product([(NoisyMax(m.eps, m.noise).step(adjacency), m.k)])


def _one_shot(m: TopK, adjacency: str) -> Step:
    """Above the box of k epsilon; below the first of the winners alone, among two candidates: the box is more than is
    attained, but for its pure epsilon."""
    exact, found = m.k * Fraction(m.eps), m.k * m.eps
    box = PureDP(found if Fraction(found) >= exact else next_up(found)).step(adjacency)
    rows = None if box.finite is None else box.finite(1)
    if rows is None:
        raise Unsupported(f"{m!r}: has no finite row.")
    won = lowered(two_candidates(m.eps, m.noise), 16)
    theorem = "one-shot top-k: k epsilon-DP, each winner shifted (docs/mechanisms.md); below: the first winner"
    about = f"top-k: scores have the stated sensitivity under {adjacency}; continuous {m.noise} noise"
    step = Step.of_table(rows[0], theorem, about, mirrored=True, below=symmetric_response(won, 0, 0.0))
    return replace(step, loss=box.loss, attained=(AtomsLoss.one(won),))


add_kind(
    Kind(
        "top-k",
        TopK,
        _step,
        louder=lambda m, factor: TopK(m.eps / factor, m.k, m.noise, m.rounds),
        parts=_parts,
        certified="as its parts (peeling); the box (one-shot)",
    )
)
