"""Amplification by subsampling: every bound above the truth, equality where the chapter says tight."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import privloss as pl
from privloss.theorems import pipelines, shuffling
from privloss.theorems import subsampling as sub
from privloss.theorems.pairs.discrete import DiscretePair
from tests.chapter.test_pairs import pairs

RATE = st.floats(1e-3, 1.0)


@settings(max_examples=100, deadline=None)
@given(pairs(), RATE, st.floats(0, 2))
def test_approximate(pair: DiscretePair, rate: float, eps: float) -> None:
    delta = max(pair.hockey_stick(eps), pair.reversed().hockey_stick(eps))
    grown, slack = sub.approx(eps, min(delta, 1.0), rate)
    for sampled in (pair.poisson(rate), pair.poisson(rate).reversed()):
        assert sampled.hockey_stick(grown) <= slack + 1e-13


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-3, 20), RATE)
def test_approximate_is_tight(eps: float, rate: float) -> None:
    pair = DiscretePair(*sub.approx_attained(eps, rate))
    assert pair.max_divergence() == pytest.approx(sub.approx(eps, 0.0, rate)[0], rel=1e-9)
    assert sub.approx(eps, 0.0, rate)[0] <= eps * (1 + 1e-14)


def test_approximate_at_the_ends() -> None:
    assert sub.approx(2.0, 1e-6, 1.0) == (2.0, 1e-6)
    assert sub.approx(2.0, 1e-6, 0.0) == (0.0, 0.0)
    assert sub.approx(700.0, 0.0, 0.01)[0] == pytest.approx(700 + math.log(0.01), rel=1e-14)
    assert sub.approx(1e-12, 0.0, 0.5)[0] == pytest.approx(5e-13, rel=1e-10)


@settings(max_examples=80, deadline=None)
@given(pairs(positive=True), st.floats(0.001, 0.999), st.integers(2, 12))
def test_renyi_is_tight_for_an_explicit_pair(pair: DiscretePair, rate: float, alpha: int) -> None:
    found = sub.renyi_poisson(alpha, rate, lambda k: max(pair.renyi(k), 0.0))
    assert found == pytest.approx(max(pair.poisson(rate).renyi(alpha), 0.0), rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.5, 5), st.floats(1e-3, 0.5), st.integers(2, 40))
def test_renyi_of_the_gaussian(sigma: float, rate: float, alpha: int) -> None:
    exact = pl.Gaussian(sigma).poisson(rate).rdp(alpha)
    found = sub.renyi_poisson(alpha, rate, lambda k: k / (2 * sigma**2))
    assert exact.lower * (1 - 1e-12) <= found <= exact.upper * (1 + 1e-9)
    between = pl.Gaussian(sigma).poisson(rate).rdp(alpha - 0.5)
    assert between.upper <= sub.renyi_poisson(alpha - 0.5, rate, lambda k: k / (2 * sigma**2)) * (1 + 1e-12)


@settings(max_examples=150, deadline=None)
@given(pairs(positive=True), st.floats(0, 1), st.floats(1.01, 20))
def test_flip(pair: DiscretePair, rate: float, alpha: float) -> None:
    forth = max(pair.poisson(rate).renyi(alpha), 0.0)
    back = max(pair.reversed().poisson(rate).renyi(alpha), 0.0)
    flipped = pair.poisson(rate).reversed().renyi(alpha)
    assert flipped <= sub.renyi_flip(alpha, rate, forth, back) + 1e-11
    assert sub.renyi_flip(alpha, rate, forth, back) <= max(forth, back)
    assert 0 <= sub.flip_weight(alpha, rate) <= 1


@settings(max_examples=100, deadline=None)
@given(pairs(positive=True), st.floats(1e-3, 0.63), st.floats(1.05, 15))
def test_analytic_jensen_and_floor(pair: DiscretePair, rate: float, alpha: float) -> None:
    truth = pair.poisson(rate).renyi(alpha)

    def curve(order: float) -> float:
        return max(pair.renyi(order), 0.0)

    best = sub.renyi_analytic(alpha, rate, curve)
    assert truth <= best + 1e-12
    assert best <= sub.renyi_analytic(alpha, rate, curve, omega=1.5 * alpha) * (1 + 1e-2) + 1e-12
    assert (
        sub.renyi_analytic(alpha, rate, curve, omega=1.5 * alpha)
        <= sub.renyi_analytic_simple(alpha, rate, curve, omega=1.5 * alpha) * (1 + 1e-9) + 1e-12
    )
    assert truth <= sub.renyi_jensen(alpha, rate, curve(alpha)) + 1e-12
    assert truth >= sub.renyi_floor(alpha, rate, curve(alpha)) - 1e-12


def test_jensen_is_sharp_for_large_orders() -> None:
    assert sub.renyi_jensen(300, 0.05, 150.0) == pytest.approx(sub.renyi_floor(300, 0.05, 150.0), rel=1e-12)
    assert sub.renyi_jensen([2.0, 5.0], 1.0, [0.3, 0.4]) == pytest.approx([0.3, 0.4])
    assert sub.renyi_jensen(2.0, 0.0, 0.3) == 0.0


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 0.05), st.floats(1e-4, 1.0), st.floats(0, 1))
def test_asymptotic(rate: float, rho: float, where: float) -> None:
    omega = min(math.log(1 / rate) / (4 * rho), 1 + rate**-0.25)
    if omega < 3 + 2 * math.log(1 / rho) / math.log(1 / rate):
        with pytest.raises(pl.InvalidInput, match="omega = min"):
            sub.zcdp_poisson(1.5, rate, rho)
        return
    alpha = 1.01 + where * (omega - 1.02)
    found = sub.zcdp_poisson(alpha, rate, rho)
    assert found == pytest.approx(10 * rate**2 * rho * alpha, rel=1e-12)
    assert pl.Gaussian(sigma=math.sqrt(0.5 / rho)).poisson(rate).rdp(alpha).lower <= found
    with pytest.raises(pl.InvalidInput, match="must be below omega"):
        sub.zcdp_poisson(omega * 1.01, rate, rho)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "delta"), [(1.1, 0.01, 10_000, 1e-6), (4.0, 0.1, 1000, 1e-5), (2.0, 1.0, 10, 1e-5)]
)
def test_pipelines(sigma: float, rate: float, steps: int, delta: float) -> None:
    exact = (pl.Gaussian(sigma).poisson(rate) * steps).epsilon(delta)
    renyi = pipelines.through_renyi_dp(sigma, rate, steps, delta)
    three = pipelines.through_approximate_dp(sigma, rate, steps, delta)
    assert exact.lower <= renyi <= three
    assert renyi <= 1.25 * exact.upper


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=9, max_size=9), st.floats(0.01, 0.9), st.floats(1.1, 6))
def test_replacement_through_group_privacy(weights: list[int], rate: float, alpha: float) -> None:
    p, other, q = ([w / sum(part) for w in part] for part in (weights[:3], weights[3:6], weights[6:]))
    close = [DiscretePair(a, q) for a in (p, other)]
    # the least rho for which both are rho-close to Q in both directions
    rho = max(d.renyi(a) / a for c in close for d in (c, c.reversed()) for a in np.geomspace(1.0001, 400, 60))
    mixed = [[rate * x + (1 - rate) * y for x, y in zip(side, q, strict=True)] for side in (p, other)]
    assert DiscretePair(*mixed).renyi(alpha) <= pipelines.renyi_replacement(alpha, rate, rho * 1.001) + 1e-12


def clone_pair(eps0: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The pair that shuffled eps0-local reports are reduced to: C other reports are clones of the two that differ."""
    p, q = np.zeros((n + 2, n + 2)), np.zeros((n + 2, n + 2))
    likely = 1 / (1 + math.exp(-eps0))
    for c in range(n):
        weight = binom.pmf(c, n - 1, math.exp(-eps0))
        for a in range(c + 1):
            w = weight * binom.pmf(a, c, 0.5)
            for mine, share in ((1, likely), (0, 1 - likely)):
                p[a + mine, c - a + 1 - mine] += w * share
                q[a + 1 - mine, c - a + mine] += w * share
    return p, q


@pytest.mark.parametrize(("eps0", "n", "delta"), [(0.3, 400, 0.01), (0.1, 300, 0.05), (0.5, 400, 0.05)])
def test_shuffling(eps0: float, n: int, delta: float) -> None:
    eps = shuffling.clones(eps0, n, delta)
    assert eps <= eps0
    p, q = clone_pair(eps0, n)
    assert np.maximum(p - math.exp(eps) * q, 0).sum() <= delta
    # and the real thing: randomised response, all others answer 0
    lie = 1 / (1 + math.exp(eps0))
    others = binom.pmf(np.arange(n), n - 1, lie)
    zero = (1 - lie) * np.append(others, 0) + lie * np.append(0, others)
    one = lie * np.append(others, 0) + (1 - lie) * np.append(0, others)
    assert np.maximum(one - math.exp(eps) * zero, 0).sum() <= delta


def test_shuffling_needs_people() -> None:
    with pytest.raises(pl.InvalidInput, match="no amplification is proven"):
        shuffling.clones(1.0, people=100, delta=1e-6)
    assert shuffling.clones(1.0, people=10**9, delta=1e-6) < shuffling.clones(1.0, people=10**6, delta=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sub.approx(1.0, 0.0, 1.5), "rate = 1.5"),
        (lambda: sub.approx(-1.0, 0.0, 0.5), "epsilon = -1.0"),
        (lambda: sub.renyi_poisson(1.0, 0.5, lambda k: k), "alpha = 1.0"),
        (lambda: sub.renyi_poisson(4, 0.5, lambda k: -1.0), "curve(2) = -1.0"),
        (lambda: sub.renyi_poisson(4, 0.5, lambda k: math.nan), "curve(2) = nan"),
        (lambda: sub.renyi_analytic(4, 0.7, lambda k: k), "rate = 0.7"),
        (lambda: sub.renyi_analytic(4, 0.1, lambda k: k, omega=3.0), "omega = 3.0"),
        (lambda: sub.zcdp_poisson(2, 0.6, 0.5), "rate = 0.6"),
        (lambda: sub.zcdp_poisson(2, 0.1, 2.0), "rho = 2.0"),
        (lambda: pipelines.through_renyi_dp(0.0, 0.1, 10, 1e-5), "noise_multiplier = 0.0"),
    ],
)
def test_bad_input(call: object, words: str) -> None:
    with pytest.raises(pl.InvalidInput) as caught:
        call()  # type: ignore[operator]
    assert words in str(caught.value)


@pytest.mark.parametrize("rate", [0.004, 0.1, 0.5])
@pytest.mark.parametrize("sigma", [0.7, 1.1, 4.0])
def test_fixed_size_in_renyi_divergences(rate: float, sigma: float) -> None:
    """Above the symmetric pair, which is above the batches themselves; never above the mechanism without sampling."""
    n = 1000
    plan = pl.Gaussian(sigma=sigma).fixed_size(n, round(n * rate)) * 1
    for alpha in (2.0, 3.0, 7.5, 20.0):
        bound = pl.subsampling.renyi_fixed_size(alpha, rate, lambda a: a / (2 * sigma**2))
        assert plan.rdp(alpha, adjacency="replace-one").upper <= bound * (1 + 1e-9)
        assert bound <= math.ceil(alpha) / (2 * sigma**2) * (1 + 1e-12)
    small = pl.subsampling.renyi_fixed_size(4, rate, lambda a: min(a * 0.005, 0.1), largest=0.1)
    assert small < pl.subsampling.renyi_fixed_size(4, rate, lambda a: min(a * 0.005, 0.1))
    assert pl.subsampling.renyi_fixed_size(4, 0.0, lambda a: a) == 0
    with pytest.raises(pl.InvalidInput, match="rate"):
        pl.subsampling.renyi_fixed_size(4, 1.5, lambda a: a)
