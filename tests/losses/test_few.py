"""A few uses of tables with hundreds of outcomes on a grid, against sums over all outcomes and another algorithm."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

import privloss as pl
from privloss.answers.on_grid import GRID
from privloss.losses.table.few import FewOnGrid
from privloss.losses.table.table import Table


def sampled(sigma: float, rate: float, reach: int, back: bool) -> tuple[np.ndarray, np.ndarray]:
    """Losses and masses of discrete Gaussian noise on a sample, from the definition, in more digits than doubles."""
    weights = {k: mp.exp(-mp.mpf(k * k) / (2 * mp.mpf(sigma) ** 2)) for k in range(-reach - 1, reach + 1)}
    whole = mp.fsum(weights.values())
    losses, masses = [], []
    for k in range(-reach, reach + 1):
        q, p = weights[k] / whole, weights[k - 1] / whole
        mixed = (1 - mp.mpf(rate)) * q + mp.mpf(rate) * p
        losses.append(float(mp.log(q / mixed) if back else mp.log(mixed / q)))
        masses.append(float(q if back else mixed))
    return np.array(losses), np.array(masses)


def all_sums(losses: np.ndarray, masses: np.ndarray, count: int, eps: float) -> float:
    """delta by listing everything but the last use, which is sorted."""
    order = np.argsort(losses)
    v, p = losses[order], masses[order]
    above, below = (np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (p, p * np.exp(-v)))
    sums, weights = np.zeros(1), np.ones(1)
    for _ in range(count - 1):
        sums, weights = (sums[:, None] + v).ravel(), (weights[:, None] * p).ravel()
    first = np.searchsorted(v, eps - sums, side="right")
    return float(weights @ (above[first] - np.exp(eps - sums) * below[first]))


CASES = [(8.7, 1e-3, 3, 1e-7), (6.8, 8e-3, 3, 1e-11), (3.1, 0.05, 4, 1e-6), (18.0, 0.03, 3, 1e-6)]


@pytest.mark.parametrize(("sigma", "rate", "count", "delta"), CASES)
def test_epsilon_of_a_few_uses(sigma: float, rate: float, count: int, delta: float) -> None:
    """[.0105, .159] and the like before."""
    plan = pl.DiscreteGaussian(sigma).poisson(rate) * count
    found = plan.epsilon(delta)
    assert GRID in found.method
    assert found.relative_width < 1e-7
    reach = int(sigma * math.sqrt(2 * (12 - math.log(delta)))) + 2
    lows, highs = [], []
    for back in (False, True):
        v, m = sampled(sigma, rate, reach, back)
        seen = m > 1e-5 * delta
        left = count * (float(m[~seen].sum()) + 1e-5 * delta)  # what lies beyond reach is far less
        lows.append(all_sums(v[seen], m[seen], count, found.lower) + left)
        highs.append(all_sums(v[seen], m[seen], count, found.upper))
    assert max(lows) >= delta * (1 - 1e-12)
    assert max(lows) <= delta * (1 + 1e-2)
    assert max(highs) <= delta * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_ends_hold_whatever_is_left_out(seed: int) -> None:
    """Outcomes as rare as a tenth of delta are left out, and both ends still hold."""
    rng = np.random.default_rng(seed)
    masses = np.exp(-rng.uniform(0, 14, 60))
    masses /= masses.sum()
    values = rng.normal(0.0, 0.3, 60)
    back = float(masses @ np.exp(-values))
    row = Table(values + math.log(back), masses)
    for eps in (0.1, 0.5, 0.9):
        truth = all_sums(row.values, row.masses, 3, eps)
        few = FewOnGrid.of([(row, 3)], math.log(truth) + 30.0)
        assert few.left > 1e-3 * truth
        logs = few.delta(eps, 1e-8)
        assert logs is not None
        assert logs[0] <= math.log(truth) <= logs[1]
        level = (math.log(truth) - 1e-14, math.log(truth) + 1e-14)
        ends = few.epsilon(level, 1e-8)
        if few.left < 0.5 * truth:
            assert ends is not None
            assert ends[0] <= eps <= ends[1]
            assert ends[1] > eps * (1 + 1e-9)
        else:
            assert ends is None


def test_delta_of_a_few_uses_agrees_with_epsilon() -> None:
    plan = pl.DiscreteGaussian(8.2).poisson(3.7e-4) * 7
    found = plan.epsilon(2e-10)
    assert plan.delta(found.lower).upper >= 2e-10
    assert plan.delta(found.upper).lower <= 2e-10
    assert plan.delta(found.upper).relative_width < 1e-5


def test_an_epsilon_far_below_one_loss() -> None:
    """[2.2e-5, .15] before: tilts are limited there."""
    plan = pl.DiscreteGaussian(2.35).poisson(1.4e-5) * 48
    found = plan.epsilon(8.3e-6)
    assert found.relative_width < 1e-4
    assert plan.delta(found.upper).lower <= 8.3e-6
    assert plan.delta(found.lower).upper >= 8.3e-6


def test_what_is_left_out_counts_once_for_each_use() -> None:
    """A rare outcome so large that any use that has it exceeds eps."""
    rng = np.random.default_rng(9)
    masses = np.append(np.full(40, (1 - 1e-9) / 40), 1e-9)
    values = np.append(rng.normal(0.0, 0.1, 40), 30.0)
    row, count, eps = Table(values, masses), 3, 0.4
    truth = all_sums(values, masses, count, eps)
    few = FewOnGrid.of([(row, count)], math.log(4e5))
    logs = few.delta(eps, 1e-10)
    assert logs is not None
    rest = all_sums(values[:-1], masses[:-1], count, eps)
    assert truth - rest > 2e-9
    assert logs[0] <= math.log(rest) * (1 - 1e-12)
    assert logs[1] >= math.log(truth)


def test_tails_that_a_table_left_out_count_too() -> None:
    rng = np.random.default_rng(3)
    masses, values = np.full(40, (1 - 1e-4) / 40), rng.normal(0.0, 0.1, 40)
    tail = lambda c, t: np.full(len(t), 1e-4)  # noqa: E731
    few = FewOnGrid.of([(Table(values, masses, missing=(tail, tail)), 3)], math.log(1e-3))
    logs = few.delta(0.2, 1e-8)
    assert logs is not None
    rest = all_sums(values, masses, 3, 0.2)
    assert logs[0] <= math.log(rest)
    assert logs[1] >= math.log(rest + 3e-4)
