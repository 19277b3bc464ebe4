"""What the chapter says in passing, as functions.

>>> largest_loss_probability(1.0)
0.731058578630...
>>> noise_scales(1.0, count=1000, delta=1e-6)
NoiseScales(basic=1000.0..., advanced=169.1...)
>>> one_at_a_time(1.0, people=10_000, delta=1e-6)
0.09046...
"""

from __future__ import annotations

import math
from typing import NamedTuple

from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.floats import raised, rounded_up
from privloss.theorems import composition, conversion, subsampling
from privloss.theorems.pairs.discrete import DiscretePair


def largest_loss_probability(epsilon: float) -> float:
    """P[Z = epsilon] <= 1/(1 + e^-epsilon) for every epsilon-DP pair ("Basic Composition, Revisited"), epsilon > 0;
    at 0 the loss is surely 0.

    With S = {Z = epsilon}: P(S) = e^eps Q(S) and 1 - Q(S) <= e^eps (1 - P(S)), so
    1 - e^-eps P(S) <= e^eps - e^eps P(S). Randomised response attains it.
    """
    eps = check.number("epsilon", epsilon, low=0)
    return min(float(rounded_up(1 / (1 + math.exp(-eps)), 4)), 1.0) if eps > 0 else 1.0


class NoiseScales(NamedTuple):
    """Scales of Laplace noise for each of k queries of sensitivity 1."""

    basic: float  # k / epsilon, which is epsilon-DP
    advanced: float  # sqrt(k / 2 rho), which is (epsilon, delta)-DP


def noise_scales(epsilon: float, count: int, delta: float) -> NoiseScales:
    """k/epsilon by basic composition against sqrt(k / 2 rho) by advanced composition, rho from Rem. rho."""
    eps, k = check.number("epsilon", epsilon, low=0, above=True), check.count("count", count)
    rho = conversion.sufficient_rho(eps, delta).rho
    if rho == 0:
        raise InvalidInput(f"epsilon = {epsilon!r}: too small, its square is no positive double.")
    return NoiseScales(float(rounded_up(k / eps, 1)), float(rounded_up(math.sqrt(k / (2 * rho)), 4)))


def all_or_nothing(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """The sample that is everything with probability p and nothing otherwise: (epsilon, p delta).

    Thm. subsampling_adp does not cover it, and epsilon is not amplified: `all_or_nothing_attained` has loss epsilon.
    P(S) <= p (e^eps B(S) + delta) + (1-p) C(S) <= e^eps Q(S) + p delta.
    """
    eps, slack = check.number("epsilon", epsilon, low=0), check.number("delta", delta, low=0, high=1)
    return eps, float(rounded_up(check.number("rate", rate, low=0, high=1) * slack, 1))


def all_or_nothing_attained(epsilon: float, rate: float) -> DiscretePair:
    """Randomised response that says so if it got no data: its largest loss is epsilon at every rate p > 0."""
    eps, p = check.number("epsilon", epsilon, low=0), check.number("rate", rate, low=0, high=1)
    likely, rare = 1 / (1 + math.exp(-eps)), math.exp(-eps) / (1 + math.exp(-eps))
    return DiscretePair([p * likely, p * rare, 1 - p], [p * rare, p * likely, 1 - p])


def published_sample(people: int, sample: int) -> tuple[float, float]:
    """Publishing the data of m people out of n, chosen at random: (0, m/n)-DP under replacement of one, so n delta
    people for (0, delta); and no less, since whoever is in the sample is seen."""
    n, m = check.count("people", people), check.count("sample", sample)
    if m > n:
        raise InvalidInput(f"sample = {sample!r}: must be at most people = {people!r}.")
    return 0.0, 1.0 if m == n else min(float(rounded_up(m / n, 1)), 1.0)


def one_at_a_time(epsilon: float, people: int, delta: float) -> float:
    """The chapter's analogy to shuffling: n times an epsilon-DP computation on one of n people chosen at random.

    log(1 + (e^eps - 1)/n) each (Thm. subsampling_adp), composed n times (Thm. advancedcomposition_approx): about
    eps sqrt(2 log(1/delta)/n).
    """
    n = check.count("people", people)
    each = subsampling.approx(check.number("epsilon", epsilon, low=0), 0.0, 1 / n)[0]
    return float(composition.advanced_approx(each, delta=delta, count=n))


def noisy_sgd_renyi(alpha: float, noise_multiplier: float, rate: float, steps: int) -> float:
    """(alpha, 5 alpha T p^2 / noise_multiplier^2)-RDP of noisy SGD: Thm. rdp_subsampling_asymptotic, composed; refused
    where its conditions fail."""
    sigma = check.number("noise_multiplier", noise_multiplier, low=0, above=True)
    count = check.count("steps", steps)
    return float(rounded_up(count * subsampling.zcdp_poisson(alpha, rate, conversion.gaussian_zcdp(1.0, sigma)), 2))


class Asymptotic(NamedTuple):
    """epsilon, and the order that gives it."""

    epsilon: float
    order: float


def noisy_sgd_asymptotic(noise_multiplier: float, rate: float, steps: int, delta: float) -> Asymptotic:
    """Section use_subsampling: R + 2 sqrt(R log(1/delta)) with R = 5 T p^2 / noise_multiplier^2, in the range where it
    holds.

    The order it needs, 1 + sqrt(log(1/delta)/R), must lie below omega of Thm. rdp_subsampling_asymptotic: beyond, no
    order does, and epsilon is at least about log(1/delta)/(omega - 1).
    """
    sigma = check.number("noise_multiplier", noise_multiplier, low=0, above=True)
    p, count = check.number("rate", rate, low=0, high=1, above=True), check.count("steps", steps)
    log = -math.log(check.number("delta", delta, low=0, high=1, above=True))
    slope = 5 * count * (p / sigma) ** 2
    order = 1 + max(math.sqrt(log / slope) if slope > 0 else math.inf, 1e-9)
    total = noisy_sgd_renyi(order, sigma, p, count)  # refuses where it does not hold
    return Asymptotic(raised(total + log / (order - 1), 8), order)
