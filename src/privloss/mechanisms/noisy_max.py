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
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privloss.losses.closed.laplace import LaplaceLoss
from privloss.losses.density.exponentials import Exponentials
from privloss.losses.step import Step
from privloss.losses.table.build import from_vectors
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.table import Table
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.densities import on_samples, within_range
from privloss.mechanisms.exponential import bounded_range_step, nothing_chosen
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, word

GUMBEL, EXPONENTIAL, LAPLACE = "gumbel", "exponential", "laplace"
NOISES = (GUMBEL, EXPONENTIAL, LAPLACE)
_MARGINS = (-0.5, -0.35, -0.2, 0.0, -0.65, -0.8)  # between the two candidates, in units of eps


@dataclass(frozen=True, repr=False, init=False)
class NoisyMax(Mechanism):
    """The index of the largest noisy score, and nothing else. Gumbel noise makes it the exponential mechanism;
    exponential noise makes it permute-and-flip."""

    kind: ClassVar[str] = "noisy-max"
    eps: float = number(public="epsilon")
    noise: str = word(NOISES, GUMBEL)

    def __init__(self, epsilon: float, noise: str = GUMBEL) -> None:
        set_field(self, "eps", epsilon)
        set_field(self, "noise", noise)
        self.__post_init__()


def _step(m: NoisyMax, adjacency: str) -> Step:
    eps = m.eps
    if m.noise == GUMBEL:
        return bounded_range_step(eps, m.kind, adjacency)
    theorem = "Noisy max: dominated by the Laplace pair of ratio eps (hazard rates); below: two candidates"
    assumption = f"{m.kind}: scores have the stated sensitivity under {adjacency}; continuous {m.noise} noise"
    if eps == 0:
        return nothing_chosen(theorem, assumption)
    survival = _laplace_survival if m.noise == EXPONENTIAL else _difference_survival
    below = tuple(two_candidates(survival, eps, margin * eps) for margin in _MARGINS)
    step = Step(
        (theorem,),
        (assumption,),
        LaplaceLoss(np.array([eps]), np.ones(1)),
        mirrored=True,
        attained=tuple(TableLoss.one(t) for t in below),
        attained_pointwise=m.noise == EXPONENTIAL,
    )
    pair = Exponentials.laplace
    return on_samples(step, lambda: pair(within_range("noisy max on a sample", eps)), below=below[:1])


def two_candidates(survival: Callable[[float], float], eps: float, margin: float) -> Table:
    """Which of two candidates wins, at a margin of `margin` against one of `margin + eps`, in units of 1/lam."""
    first, second = survival(margin), survival(margin + eps)
    return from_vectors([first, survival(-margin)], [second, survival(-margin - eps)])


def _laplace_survival(t: float) -> float:
    """P[A - B > t] for two exponential variables of rate 1."""
    return 0.5 * math.exp(-t) if t > 0 else 1 - 0.5 * math.exp(t)


def _difference_survival(t: float) -> float:
    """P[A - B > t] for two Laplace variables of rate 1: (2 + |t|) e^-|t| / 4 beyond |t|."""
    tail = 0.25 * (2 + abs(t)) * math.exp(-abs(t))
    return tail if t > 0 else 1 - tail


add_kind(
    Kind(
        "noisy-max",
        NoisyMax,
        _step,
        louder=lambda m, factor: NoisyMax(m.eps / factor, m.noise),
        certified="line (Gumbel: bounded range; others: Laplace pair)",
    )
)
