"""What a sample of privacy losses suggests: an estimate with confidence, never a bound.

>>> import random
>>> rng = random.Random(1)
>>> losses = [rng.gauss(0.125, 0.5) for _ in range(20_000)]            # Gaussian noise, rho = 1/8
>>> epsilon_from_losses(losses, delta=0.05)
Estimate(0.5..., 95% confidence [0.4..., 0.5...], 20000 samples; not a bound)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from privloss.errors import InvalidInput
from privloss.numerics import check


@dataclass(frozen=True)
class Estimate:
    """A point estimate and a confidence interval, valid only for the pair of inputs that was sampled."""

    value: float
    low: float
    high: float
    confidence: float
    samples: int

    def __repr__(self) -> str:
        sure = f"{self.confidence:.0%} confidence [{self.low:.6g}, {self.high:.6g}]"
        return f"Estimate({self.value:.6g}, {sure}, {self.samples} samples; not a bound)"


def epsilon_from_losses(losses: Iterable[float], delta: float, confidence: float = 0.95) -> Estimate:
    """The epsilon at delta that independent samples of Z = log P(Y)/Q(Y), Y ~ P, suggest (inf is allowed).

    With probability `confidence` the empirical distribution is within sqrt(log(2/(1-confidence)) / 2n) of the true one
    (Dvoretzky, Kiefer, Wolfowitz; Massart 1990), and delta(eps) moves by no more than that.
    """
    values = np.sort(np.array([_loss(i, v) for i, v in enumerate(losses)]))
    if len(values) < 2:
        raise InvalidInput(f"losses has {len(values)} entries: need at least two.")
    target = check.number("delta", delta, low=0, high=1, above=True)
    sure = check.number("confidence", confidence, low=0, high=1)
    if not 0 < sure < 1:
        raise InvalidInput(f"confidence = {confidence!r}: must lie strictly between 0 and 1.")
    room = math.sqrt(math.log(2 / (1 - sure)) / (2 * len(values)))
    found = [_root(values, level) for level in (target, target + room, target - room)]
    return Estimate(found[0], found[1], found[2], sure, len(values))


def _loss(index: int, value: float) -> float:
    return math.inf if value == math.inf else check.number(f"losses[{index}]", value)


def _root(values: np.typing.NDArray[np.float64], level: float) -> float:
    """The eps >= 0 where the empirical mean of (1 - e^(eps - Z))_+ falls to the level."""

    def mean(eps: float) -> float:
        return float(np.where(values > eps, -np.expm1(np.minimum(eps - values, 0.0)), 0.0).mean())

    if level <= 0:
        return math.inf
    if level >= 1 or mean(0.0) <= level:
        return 0.0
    finite = values[np.isfinite(values)]
    high = float(finite[-1]) if len(finite) else 0.0
    if mean(high) > level:
        return math.inf
    low = 0.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if mean(middle) > level else (low, middle)
    return high
