"""Choices of bounded range beside other steps, of several ranges, and very many of them, against enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom

import privloss as pl
from privloss.answers.pair import CONTOUR
from privloss.losses.closed.adaptive_range import AdaptiveRange
from privloss.losses.ranges import as_noise, block
from privloss.numerics.work import limited
from tests.losses.test_adaptive_range import one, then, two


def normal(variance: float, x: float) -> float:
    """delta of N(v/2, v) at x."""
    s = math.sqrt(variance)
    return float(ndtr(0.5 * s - x / s) - math.exp(x) * ndtr(-0.5 * s - x / s))


def after_noise(profile: object, variance: float, x: float) -> float:
    """Normal noise first, and then what has this profile: an integral over what the noise has shown."""
    assert callable(profile)
    s = math.sqrt(variance)

    def weighted(y: float) -> float:
        return profile(x - 0.5 * variance - s * y) * math.exp(-0.5 * y * y) / math.sqrt(2 * math.pi)

    return float(quad(weighted, -9, 9, limit=400, epsabs=1e-12, epsrel=1e-10)[0])


@pytest.mark.parametrize(("eps", "sigma", "x"), [(1.0, 2.0, 0.7), (0.2, 8.0, 0.15), (3.0, 1.0, 2.0)])
def test_one_choice_beside_noise_is_exact(eps: float, sigma: float, x: float) -> None:
    truth = after_noise(lambda y: one(eps, y), 1 / sigma**2, x)
    found = (pl.Exponential(eps) + pl.Gaussian(sigma)).delta(x)
    assert found.relative_width < 1e-9
    assert found.lower * (1 - 1e-8) <= truth <= found.upper * (1 + 1e-8)


@pytest.mark.parametrize(("eps", "sigma", "x"), [(1.0, 2.0, 0.9), (0.3, 5.0, 0.2)])
def test_two_choices_beside_noise(eps: float, sigma: float, x: float) -> None:
    """The choices may depend on what the noise has shown: as wide as the grid only."""
    truth = after_noise(lambda y: two(eps, y), 1 / sigma**2, x)
    found = (pl.Exponential(eps) * 2 + pl.Gaussian(sigma)).delta(x)
    assert found.relative_width < 1e-3
    assert found.lower * (1 - 1e-6) <= truth <= found.upper * (1 + 1e-6)


@pytest.mark.parametrize(("eps", "count"), [(1.0, 2), (0.2, 3), (4.0, 2)])
def test_blocks_bracket_the_truth_everywhere(eps: float, count: int) -> None:
    """Also between the points of their polygons, and far out."""
    below, above = block(eps, count)
    for x in np.linspace(0.0, 1.02 * eps * count, 23).tolist():
        low, high = (math.exp(ends[k]) for ends, k in ((below.hockey_stick(x), 0), (above.hockey_stick(x), 1)))
        if count == 2:
            truth = two(eps, x)
        else:
            truth = max(then(lambda y: two(eps, y), eps, x, eps * s) for s in np.linspace(0, 1, 21).tolist())
        assert truth <= high * (1 + 1e-9) + 1e-15
        if count == 2:  # enumeration of three stops short of the best
            assert low <= truth * (1 + 1e-7) + 1e-15
        assert high - low <= 1e-2 * high + 1e-4


@pytest.mark.parametrize("deviations", [8.0, 9.3, 11.0, 14.0])
def test_blocks_beyond_their_grid(deviations: float) -> None:
    """Two-point choices at eps/2 are randomised response: a binomial sum."""
    eps, count = 0.2, 400
    x = 0.125 * eps**2 * count + deviations * 0.5 * eps * math.sqrt(count)
    up = 1 / (1 + math.exp(-0.5 * eps))
    k = np.arange(count + 1)
    gain = np.maximum(-np.expm1(x - 0.5 * eps * (2 * k - count)), 0.0)
    below, above = block(eps, count)
    assert float(binom.pmf(k, count, up) @ gain) <= math.exp(above.hockey_stick(x)[1])
    assert below.hockey_stick(x)[0] <= math.log(normal(as_noise(((eps, count),)), x))


@pytest.mark.parametrize("ratio", [1.2, 2.0, 10.0, 300.0])
@pytest.mark.parametrize("eps", [0.05, 1.0])
def test_a_choice_turns_into_noise(ratio: float, eps: float) -> None:
    """T G(M) <= G(M^2/(M - k)), and M + k is not enough."""
    unit = 0.25 * eps * eps
    m = ratio * unit
    s = math.sqrt(m)
    short = False
    for d in np.linspace(-4.0, 4.0, 33).tolist():
        x = 0.5 * m + d * s
        most = max(then(lambda y: normal(m, y), eps, x, eps * share) for share in np.linspace(0, 1, 41).tolist())
        assert most <= normal(m * m / (m - unit), x) + 1e-15
        short = short or most > normal(m + unit, x) + 1e-16
    assert short or eps > 0.1  # the variance of a large choice is less than k


@pytest.mark.parametrize(("eps", "count"), [(0.1, 40), (0.5, 30), (1.0, 12)])
def test_as_noise_is_above_what_is_attained(eps: float, count: int) -> None:
    variance = as_noise(((eps, count),))
    assert variance < 0.25 * eps**2 * (count + 4 + 1.5 * math.log(count))
    for d in (0.0, 0.3, 1.0, 2.5):
        x = 0.5 * variance + d * math.sqrt(variance)
        ends = AdaptiveRange(eps, count).delta(x)
        assert ends is None or ends[0] <= normal(variance, x)


def test_as_noise_of_several_ranges_is_above_every_order() -> None:
    """The recursion from any start, in random orders."""
    rng = np.random.default_rng(5)
    uses = ((0.4, 7), (0.3, 5), (0.1, 30))
    found = as_noise(uses)
    best = math.inf
    for start in np.geomspace(2.0, 60.0, 25).tolist():
        worst = 0.0
        for trial in range(12):
            every = np.repeat([e for e, _ in uses], [n for _, n in uses])
            order = every if trial == 0 else every[::-1] if trial == 1 else rng.permutation(every)
            m = start * 0.25 * 0.4**2
            for eps in order.tolist():
                m = m * m / (m - 0.25 * eps * eps)
            worst = max(worst, m)
        best = min(best, worst)
    assert best <= found <= 1.06 * best


@pytest.mark.parametrize(
    ("plan", "width"),
    [
        (pl.Exponential(0.1) * 100 + pl.Gaussian(5.0) * 3, 2e-4),
        (pl.Exponential(0.01) * 20_000, 1e-3),
        (pl.Exponential(0.2) * 5_000 + pl.Gaussian(1.0) * 3, 3e-3),
        (pl.Exponential(0.5) * 6 + pl.Exponential(0.2) * 20, 1e-2),
    ],
)
def test_mixed_plans_are_narrow(plan: pl.Plan, width: float) -> None:
    """15 % before."""
    assert plan.epsilon(1e-6).relative_width < width


@pytest.mark.parametrize("eps", [50.0, 500.0])
def test_ranges_beyond_doubles_are_bounded(eps: float) -> None:
    """e^x overflows there."""
    plan = pl.Exponential(eps) * 50 + pl.Gaussian(5.0)
    found = plan.epsilon(1e-6)
    assert 0 < found.lower <= found.upper
    assert found.upper >= 25 * eps  # all of one sign, at half of the range: randomised response
    assert plan.delta(3.0).upper == 1.0


def test_forty_queries_of_many_kinds_are_read_on_one_line() -> None:
    """Half a minute before: what stands beside tables lets a single line fall, and no class is needed."""
    rng = np.random.default_rng(3)
    plan = pl.Gaussian(9.0) * 1
    for _ in range(10):
        a, b, c = rng.uniform(4.0, 30.0, 3).tolist()
        plan = plan + pl.Laplace(a) + pl.Gaussian(b) + pl.DiscreteLaplace(c) + pl.RandomizedResponse(1 / a)
    with limited(5e7):
        found = plan.epsilon(1e-6)
    assert found.relative_width < 1e-9
    assert found.method == CONTOUR
