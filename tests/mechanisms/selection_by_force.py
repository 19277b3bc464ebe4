"""Selection by force: random finite bases, random rankings, laws of the number of runs as lists of weights.

Nothing here knows the engine. `python -m tests.mechanisms.selection_by_force [bases]` looks for a base above the
bound."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from privloss.losses.selection import Trials, bound_points, cost, look

MOST_RUNS = 800


def law_of(mean: float, shape: float) -> list[float]:
    """P[K = k]: truncated negative binomial weights, proportional to (1-g)^k prod (h + i)/(i + 1), or Poisson."""
    if math.isinf(shape):
        weights = [math.exp(-mean)]
        while len(weights) < 200:
            weights.append(weights[-1] * mean / len(weights))
        return weights
    if mean == 1:
        return [0.0, 1.0]

    def made(gamma: float) -> np.ndarray:
        k = np.arange(1, MOST_RUNS)
        ratio = (shape + k[:-1]) / (k[:-1] + 1) * (1 - gamma)
        weights = np.concatenate([[1.0], np.cumprod(ratio)])
        return np.asarray(weights / weights.sum())

    low, high = 1e-3, 1.0
    for _ in range(80):
        mid = 0.5 * (low + high)
        low, high = (mid, high) if float(made(mid) @ np.arange(1, MOST_RUNS)) > mean else (low, mid)
    return [0.0, *(float(w) for w in made(low))]


def generating(weights: Sequence[float], u: float) -> float:
    return math.fsum(w * u**k for k, w in enumerate(weights))


def ranked(weights: Sequence[float], masses: Sequence[float]) -> list[float]:
    """The law of the best of K runs, outcomes given from worst to best; last, of no run at all."""
    ends = [generating(weights, min(u, 1.0)) for u in np.concatenate([[0.0], np.cumsum(masses)])]
    return [*np.diff(ends).tolist(), ends[0]]


def _delta(p: np.ndarray, q: np.ndarray, eps: float) -> float:
    a = math.exp(eps)
    return float(max(np.maximum(p - a * q, 0.0).sum(), np.maximum(q - a * p, 0.0).sum()))


def _base(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    size = int(rng.integers(2, 6))
    p = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 4.0])))
    q = (
        p * np.exp(rng.normal(0, rng.choice([0.1, 0.7, 2.0]), size))
        if rng.random() < 0.7
        else rng.dirichlet(np.ones(size))
    )
    return p, q / q.sum()


def violations(mean: float, shape: float, bases: int, seed: int) -> tuple[int, float]:
    """How many (base, ranking, question) lie above the bound, and the smallest ratio of bound and truth."""
    rng, law, weights = np.random.default_rng(seed), Trials(mean, shape), law_of(mean, shape)
    found, closest = 0, math.inf
    for _ in range(bases):
        p, q = _base(rng)
        top = float(np.abs(np.log(p) - np.log(q)).max())

        def profile(epsilons: Sequence[float], p: np.ndarray = p, q: np.ndarray = q) -> list[float]:
            return [_delta(p, q, e) * (1 + 1e-13) for e in epsilons]

        seen = look(profile, [top / 30, top / 5, top * (1 - 1e-9)])
        points = bound_points(law, cost(law, profile, seen), profile, seen, top * (1 + 1e-12))
        for _ in range(6):
            order = rng.permutation(len(p))
            # outcomes may also be divided by a coin of their own: ties at random
            forth, back = (np.array(ranked(weights, side[order].tolist())) for side in (p, q))
            for x, bound in points[:: max(len(points) // 20, 1)]:
                truth = _delta(forth, back, x)
                found += truth > bound * (1 + 1e-9) + 1e-12
                if truth > 1e-9:
                    closest = min(closest, bound / truth)
    return found, closest


if __name__ == "__main__":
    for mean, shape in [(10.0, 1.0), (3.0, 0.0), (2.0, 5.0), (4.0, -0.5), (6.0, 2.0), (5.0, 0.5), (5.0, math.inf)]:
        print(mean, shape, violations(mean, shape, int(sys.argv[1]) if len(sys.argv) > 1 else 1000, seed=17))
