"""A tracing attack that runs: who was in the data, judged from nothing but a noisy mean?

Data: n people, k bits each, every bit's frequency P_j uniform on [0, 1]. Released: the mean plus N(0, sigma^2) in each
coordinate. The attacker knows P, looks at one person's bits x and says "in" if <release - P, x - P> is large (the
statistic of Thm. lowerbound's proof). Replacing one person moves the mean by at most sqrt(k)/n, so the release is
mu-GDP with mu = sqrt(k)/(n sigma), and no attack has a true positive rate above 1 - f(false positive rate), f the
trade-off curve of that Gaussian (Cor. gauss_adp_exact_multi and the Neyman-Pearson lemma).

>>> attack(people=50, dimensions=2000, sigma=0.0, trials=400, seed=1).power > 0.95      # the exact mean
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from privloss.numerics import check
from privloss.numerics.floats import Real

_CONFIDENCE = 1e-3  # of missing on either side, for each of the two intervals
_MOST_DIMENSIONS = 10**7
_BLOCK = 2_000_000  # random numbers held at once


@dataclass(frozen=True)
class Attack:
    """What the attack achieved, and what privacy allows."""

    people: int
    dimensions: int
    sigma: float
    trials: int
    error: float  # measured root-mean-square error of the release per coordinate
    false_positives: float
    power: float  # measured true positive rate
    power_interval: tuple[float, float]  # Clopper-Pearson
    mu: float  # of Gaussian DP; inf for the exact mean
    allowed: float  # largest true positive rate that mu-GDP allows at the upper end of the false positive rate

    @property
    def within_bound(self) -> bool:
        """Whether the measurement is compatible with the guarantee."""
        return self.power_interval[0] <= self.allowed


def attack(
    people: int,
    dimensions: int,
    sigma: float,
    trials: int = 10_000,
    fpr: float = 0.05,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Attack:
    """Attack `trials` releases, each with one member and one outsider; `progress(done)` is called now and then."""
    n, k = check.count("people", people), check.count("dimensions", dimensions)
    check.number("dimensions", dimensions, low=1, high=_MOST_DIMENSIONS)
    check.number("seed", seed, low=0, high=2**63)
    noise, runs = check.number("sigma", sigma, low=0), check.count("trials", trials)
    rate = check.number("fpr", fpr, low=0, high=1, above=True)
    random = np.random.default_rng(seed)
    insiders, outsiders, squares, done = [], [], 0.0, 0
    while done < runs:
        size = min(max(_BLOCK // k, 1), runs - done)
        inside, outside, square = _scores(random, size, n, k, noise)
        insiders.append(inside)
        outsiders.append(outside)
        squares, done = squares + square, done + size
        if progress is not None:
            progress(done)
    member, other = np.concatenate(insiders), np.concatenate(outsiders)
    # the threshold comes from the first half of the outsiders, the rates from the second halves: no peeking
    half = runs // 2
    threshold = float(np.quantile(other[:half], 1 - rate)) if half else 0.0
    hits, alarms, tried = int((member[half:] > threshold).sum()), int((other[half:] > threshold).sum()), runs - half
    mu = math.sqrt(k) / (n * noise) if noise > 0 else math.inf
    return Attack(
        people=n,
        dimensions=k,
        sigma=noise,
        trials=runs,
        error=math.sqrt(squares / (runs * k)),
        false_positives=alarms / tried,
        power=hits / tried,
        power_interval=_interval(hits, tried),
        mu=mu,
        allowed=largest_power(mu, _interval(alarms, tried)[1]),
    )


def largest_power(mu: float, fpr: float) -> float:
    """1 - f(fpr) for mu-GDP: no test has a larger true positive rate."""
    rate = check.number("fpr", fpr, low=0, high=1)
    distance = math.inf if mu == math.inf else check.number("mu", mu, low=0)
    if rate in (0.0, 1.0) or distance == math.inf:
        return 1.0 if rate == 1 or distance == math.inf else 0.0
    return float(ndtr(ndtri(rate) + distance))


def _scores(random: np.random.Generator, size: int, n: int, k: int, sigma: float) -> tuple[Real, Real, float]:
    """Scores of `size` members and outsiders, each against its own release, and the squared error of the releases."""
    p = random.random((size, k))
    member = random.random((size, k)) < p
    outsider = random.random((size, k)) < p
    mean = (member + random.binomial(n - 1, p)) / n
    noise = sigma * random.standard_normal((size, k)) if sigma > 0 else np.zeros_like(mean)
    shift = mean + noise - p
    return (shift * (member - p)).sum(axis=1), (shift * (outsider - p)).sum(axis=1), float((noise**2).sum())


def _interval(hits: int, tried: int) -> tuple[float, float]:
    """Clopper-Pearson."""
    low = float(betaincinv(hits, tried - hits + 1, _CONFIDENCE)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, tried - hits, 1 - _CONFIDENCE)) if hits < tried else 1.0
    return low, high
