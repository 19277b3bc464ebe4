"""The index of the largest noisy score.

*Gumbel noise* makes it the exponential mechanism. *Exponential or Laplace noise* of rate lam: with eps = 2 lam D for
scores of sensitivity D (lam D if all scores move in one direction) it is dominated by the Laplace pair of ratio eps.
For a set S of outputs let A be the largest noisy score in S, B the largest of the rest; the neighbour lowers A - B by
at most 2 D. The hazard rate of a maximum of independent variables with hazard rates at most lam is at most lam, hence
the survival function s(t) = P[A - B > t] has -s' <= lam min(s, 1 - s), with equality for the Laplace law; so s(2 D) is
at least what the Laplace law makes of s(0). docs/mechanisms.md has the proof. With two candidates and exponential noise
A - B is Laplace itself: every point of the profile is attained, at a margin of its own.

>>> NoisyMax(epsilon=0.5, noise="laplace")
NoisyMax(epsilon=0.5, noise='laplace')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privloss.errors import InvalidInput
from privloss.losses.closed.atoms import AtomsLoss
from privloss.losses.closed.laplace import LaplaceLoss
from privloss.losses.density.exponentials import Exponentials
from privloss.losses.step import Step
from privloss.losses.table.build import symmetric_response
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.densities import on_samples, within_range
from privloss.mechanisms.exponential import bounded_range_step, nothing_chosen
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, word
from privloss.numerics.floats import lowered

GUMBEL, EXPONENTIAL, LAPLACE = "gumbel", "exponential", "laplace"
_NORMAL = ("gaussian", "normal")
NOISES = (GUMBEL, EXPONENTIAL, LAPLACE)


@dataclass(frozen=True, repr=False, init=False)
class NoisyMax(Mechanism):
    """The index of the largest noisy score, and nothing else. Gumbel noise makes it the exponential mechanism;
    exponential noise makes it permute-and-flip."""

    kind: ClassVar[str] = "noisy-max"
    eps: float = number(public="epsilon")
    noise: str = word(NOISES, GUMBEL)

    def __init__(self, epsilon: float, noise: str = GUMBEL) -> None:
        if noise in _NORMAL:
            raise InvalidInput(
                f"noise = {noise!r}: the hazard rate of normal noise has no bound, so that what the index gives away "
                "grows with the number of candidates; use gumbel, exponential or laplace, or account for all noisy "
                "scores as one Gaussian release, of which the index is a post-processing."
            )
        set_field(self, "eps", epsilon)
        set_field(self, "noise", noise)
        self.__post_init__()


def noisy_max_step(eps: float, noise: str, kind: str, adjacency: str) -> Step:
    """The largest of scores with this noise."""
    if noise == GUMBEL:
        return bounded_range_step(eps, kind, adjacency)
    theorem = "Noisy max: dominated by the Laplace pair of ratio eps (hazard rates); below: two candidates"
    assumption = f"{kind}: scores have the stated sensitivity under {adjacency}; continuous {noise} noise"
    if eps == 0:
        return nothing_chosen(theorem, assumption)
    # two candidates half of eps apart, one way and then the other: which of them wins is a randomised response
    won = lowered(two_candidates(eps, noise), 16)
    step = Step(
        (theorem,),
        (assumption,),
        LaplaceLoss(np.array([eps]), np.ones(1)),
        mirrored=True,
        attained=(AtomsLoss.one(won),),
        attained_pointwise=noise == EXPONENTIAL,
    )
    pair = Exponentials.laplace
    below = (symmetric_response(won, 0, 0.0),)
    return on_samples(step, lambda: pair(within_range("noisy max on a sample", eps)), below=below)


def two_candidates(eps: float, noise: str) -> float:
    """log (1 - b)/b for b the probability that the candidate behind by eps/2, in units of 1/lam, wins: that the
    difference of two exponential variables exceeds it, e^(-eps/2)/2, or of two Laplace ones, (2 + eps/2) e^(-eps/2)/4.
    For small eps, with b = (1 - x)/2, this is 2 artanh(x)."""
    half = 0.5 * eps
    if half < 1:
        x = -math.expm1(-half) - (0.0 if noise == EXPONENTIAL else 0.5 * half * math.exp(-half))
        return 2 * math.atanh(x)
    log_b = -half - math.log(2) if noise == EXPONENTIAL else math.log(2 + half) - math.log(4) - half
    return math.log1p(-math.exp(log_b)) - log_b


add_kind(
    Kind(
        "noisy-max",
        NoisyMax,
        lambda m, adjacency: noisy_max_step(m.eps, m.noise, m.kind, adjacency),
        louder=lambda m, factor: NoisyMax(m.eps / factor, m.noise),
        certified="line (Gumbel: bounded range; others: Laplace pair)",
    )
)
