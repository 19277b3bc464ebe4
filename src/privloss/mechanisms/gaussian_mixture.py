"""Gaussian noise on a sum that a record moves by a random distance: sum p_i N(c_i) against N(0).

For a user who has several records, of which the sampler takes a random number, or whose records weigh differently.

>>> GaussianMixture(sensitivities=[1, 2], probabilities=[0.1, 0.01], sigma=2.0)       # nothing with probability 0.89
GaussianMixture(sensitivities=[1.0, 2.0], probabilities=[0.1, 0.01], sigma=2.0)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from privloss.adjacency import REPLACE_ONE
from privloss.errors import InvalidInput, Unsupported
from privloss.losses.samplers.mixture import normal_mixture
from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, numbers

_MOST = 1000  # distances
_SUM = Fraction(1, 2**48)  # how far probabilities may be from summing to one


@dataclass(frozen=True, repr=False)
class GaussianMixture(Mechanism):
    """N(0, sigma^2) noise; with probability `probabilities[i]` the record moves the sum by `sensitivities[i]`, with
    what is left not at all."""

    kind: ClassVar[str] = "gaussian-mixture"
    sensitivities: Sequence[float] = numbers(description="distances in the units of sigma, vectors by their l2 norm")
    probabilities: Sequence[float] = numbers(high=1.0)
    sigma: float = number()

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes, weights = self.sensitivities, self.probabilities
        if len(sizes) != len(weights) or len(sizes) > _MOST:
            raise InvalidInput(
                f"sensitivities has {len(sizes)} entries, probabilities {len(weights)}: must be equally many, at most "
                f"{_MOST}."
            )
        if sum(map(Fraction, weights), -Fraction(1)) > _SUM:
            raise InvalidInput(f"probabilities = {list(weights)!r}: must sum to 1 at most.")


def _moves(m: GaussianMixture, rate: float) -> tuple[list[tuple[float, float]], float]:
    """Probabilities and distances on a sample of this rate, and the probability that nothing moves. What is left of 1
    within a rounding of 1 is none."""
    pairs = list(zip(m.sensitivities, m.probabilities, strict=True))
    rest = 1 - sum((Fraction(p) for _, p in pairs), Fraction(0))
    still = sum((Fraction(p) for c, p in pairs if c == 0), rest if rest > _SUM else Fraction(0))
    moves = [(rate * p, c / m.sigma if m.sigma > 0 else math.inf) for c, p in pairs if c > 0]
    return moves, float(1 - Fraction(rate) + Fraction(rate) * still)


def _step(m: GaussianMixture, adjacency: str) -> Step:
    if adjacency == REPLACE_ONE:
        raise Unsupported(
            f"{m!r} under {adjacency}: describes a record that is there or not; ask under add-remove or zero-out."
        )
    theorem = (
        "mixture of Gaussians: sum p_i N(c_i) against N(0), both directions; half-lines are the worst events, and "
        "larger distances are worse (Neyman-Pearson; for vectors Kahane's inequality)"
    )
    about = (
        f"gaussian-mixture: distances and their probabilities as given under {adjacency}, whatever the other records"
    )
    whole = normal_mixture(*_moves(m, 1.0), theorem, about)
    return dataclasses.replace(whole, poisson=lambda rate: normal_mixture(*_moves(m, rate), theorem, about))


add_kind(
    Kind(
        "gaussian-mixture",
        GaussianMixture,
        _step,
        louder=lambda m, factor: dataclasses.replace(m, sigma=m.sigma * factor),
    )
)
