"""AboveThreshold by force: random queries, random neighbours, all outcomes by integrals over the threshold noise.

Nothing here knows the bound's proof. `python -m tests.mechanisms.threshold_by_force [instances]` counts queries above
it, and says how near the pure loss comes to the largest one allowed.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass

import numpy as np

import privloss as pl

CELLS = 2_001


@dataclass(frozen=True)
class Noise:
    """Scales in units of the sensitivity."""

    threshold: float
    query: float
    positives: int = 1
    monotone: bool = False
    exponential: bool = False

    def mechanism(self) -> pl.AboveThreshold:
        return pl.AboveThreshold(
            threshold_scale=self.threshold, query_scale=self.query, positives=self.positives, monotone=self.monotone,
            noise="exponential" if self.exponential else "laplace",
        )  # fmt: skip

    def negative(self, gap: np.ndarray) -> np.ndarray:
        x = gap / self.query
        if self.exponential:
            return np.asarray(np.where(x > 0, -np.expm1(-np.abs(x)), 0.0))
        return np.asarray(np.where(x < 0, 0.5 * np.exp(-np.abs(x)), 1 - 0.5 * np.exp(-np.abs(x))))

    def outcomes(self, queries: np.ndarray) -> np.ndarray:
        """The probability of every outcome: which queries were above, until so many were (the rest is not asked)."""
        reach = 20 * self.threshold + 3
        z = np.sinh(np.linspace(-3, 3, CELLS)) / math.sinh(3) * reach
        weight = np.gradient(z) * np.exp(-np.abs(z) / self.threshold) / (2 * self.threshold)
        weight /= weight.sum()
        below = self.negative(z[None, :] - queries[:, None])
        found = []
        for count in range(self.positives + 1):
            for above in itertools.combinations(range(len(queries)), count):
                asked = above[-1] + 1 if count == self.positives else len(queries)
                factors = [1 - below[i] if i in above else below[i] for i in range(asked)]
                found.append(float(weight @ np.prod(factors, axis=0)))
        return np.array(found)


NOISES = (
    Noise(2.0, 4.0), Noise(1.0, 2.0, exponential=True), Noise(2.0, 12.0, positives=2), Noise(3.0, 1.5),
    Noise(0.7, 1.4, monotone=True), Noise(4.0, 2.0, positives=2, exponential=True, monotone=True),
)  # fmt: skip


def _instance(noise: Noise, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    many = int(rng.choice([1, 2, 4, 8] if noise.positives == 1 else [2, 3, 5]))
    if rng.random() < 0.5:  # equal ones, then higher ones
        height = rng.normal(0, 3 * noise.threshold)
        queries = np.full(many, height)
        queries[many // 2 :] = height + rng.exponential(4 * noise.query)
    else:
        queries = rng.normal(0, 3 * noise.query, many)
    moved = rng.choice([-1.0, 1.0], many) if rng.random() < 0.8 else rng.uniform(-1, 1, many)
    if rng.random() < 0.4:
        moved = np.where(np.arange(many) < many // 2, 1.0, -1.0)
    return queries, queries + (np.maximum(moved, 0.0) if noise.monotone else moved)


def violations(noise: Noise, instances: int, seed: int) -> tuple[int, float]:
    """How many (queries, order, question) lie above the bound, and the largest loss seen over that allowed."""
    rng = np.random.default_rng(seed)
    mechanism = noise.mechanism()
    whole = mechanism.epsilon(0.0).upper
    xs = [float(x) for x in np.linspace(0.0, whole, 15)]
    bounds = mechanism.delta(xs).upper
    found, largest = 0, 0.0
    for _ in range(instances):
        p, q = (noise.outcomes(queries) for queries in _instance(noise, rng))
        for one, two in ((p, q), (q, p)):
            for x, bound in zip(xs, bounds, strict=True):
                found += float(np.maximum(one - math.exp(x) * two, 0.0).sum()) > bound + 2e-6
            sure = one > 1e-6  # what is cut off beyond 20 threshold scales is 1e-4 of that at most
            largest = max(largest, float(np.log(one[sure] / two[sure]).max()) / whole)
    return found, largest


if __name__ == "__main__":
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for noise in NOISES:
        print(noise, *violations(noise, -(-total // len(NOISES)), seed=5))
