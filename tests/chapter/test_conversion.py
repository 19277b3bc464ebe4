"""Concentrated and Renyi DP: conversions in both directions, group privacy, the eight parts of Lem. rdp_properties."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privloss as pl
from privloss.theorems import conversion as conv
from privloss.theorems import group, optimal_conversion
from privloss.theorems.pairs.discrete import DiscretePair
from privloss.theorems.pairs.smooth import GaussianPair
from tests.chapter.test_composition import response
from tests.chapter.test_pairs import pairs

RHO = st.floats(1e-4, 5.0)
DELTA = st.floats(-60.0, -0.7).map(math.exp)


@settings(max_examples=60, deadline=None)
@given(RHO, DELTA)
def test_zcdp_to_approximate(rho: float, delta: float) -> None:
    """The Gaussian with this rho satisfies every conversion, and the forms are ordered."""
    exact = pl.GDP(math.sqrt(2 * rho)).epsilon(delta)
    best, simple = conv.zcdp_to_epsilon(rho, delta=delta), conv.zcdp_to_epsilon(rho, delta=delta, form="simple")
    assert exact.lower <= best <= simple * (1 + 1e-12)
    assert simple == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1 / delta)), rel=1e-14)
    if best >= rho:
        assert conv.zcdp_to_delta(rho, epsilon=best) == pytest.approx(delta, rel=1e-6)
    assert conv.zcdp_to_delta(rho, epsilon=simple, form="simple") == pytest.approx(delta, rel=1e-9)
    assert conv.zcdp_to_delta(rho, epsilon=simple) <= delta


def test_infimum_over_t() -> None:
    """delta is the least over t of the first half of Prop. cdp2adp."""
    rho, eps = 0.3, 2.0
    least = min(conv.moments_to_delta(t * (t + 1) * rho, t=t, epsilon=eps) for t in np.geomspace(0.05, 60, 4000))
    assert conv.zcdp_to_delta(rho, epsilon=eps) == pytest.approx(least, rel=1e-5)
    assert conv.zcdp_to_delta(rho, epsilon=eps) <= least


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-4, 20), DELTA)
def test_sufficient_rho(eps: float, delta: float) -> None:
    three = conv.sufficient_rho(eps, delta)
    assert three.lower <= three.rho <= three.upper
    for rho in (three.lower, three.rho):
        assert conv.zcdp_to_epsilon(rho, delta=delta, form="simple") <= eps * (1 + 1e-12)
    assert conv.zcdp_to_epsilon(three.rho, delta=delta, form="simple") == pytest.approx(eps, rel=1e-9)
    sigma = conv.sufficient_sigma(eps, delta)
    assert sigma**2 == pytest.approx(2 / eps**2 * (math.log(1 / delta) + eps), rel=1e-12)
    assert pl.Gaussian(sigma).epsilon(delta).upper <= eps


def test_gaussian_zcdp() -> None:
    assert conv.gaussian_zcdp(2.0, 4.0) == pytest.approx(0.125, rel=1e-14)
    assert pl.Gaussian(sigma=4.0, sensitivity=2.0).zcdp().lower <= conv.gaussian_zcdp(2.0, 4.0)


@settings(max_examples=80, deadline=None)
@given(st.floats(1e-3, 8), st.floats(1.001, 60))
def test_pure_to_concentrated(eps: float, alpha: float) -> None:
    tight = conv.randomized_response_renyi(alpha, eps)
    assert tight == pytest.approx(response(eps).renyi(alpha), rel=1e-8, abs=1e-13)
    assert tight <= alpha * conv.pure_to_zcdp(eps) * (1 + 1e-13)
    assert tight <= conv.range_to_renyi(alpha, eps, eps) * (1 + 1e-13)
    assert conv.pure_to_zcdp(eps) == pytest.approx(conv.range_to_renyi(2.0, eps, eps) / 2, rel=1e-13)
    assert tight <= pl.RandomizedResponse(epsilon=eps).rdp(alpha).upper * (1 + 1e-12)
    assert tight >= pl.RandomizedResponse(epsilon=eps).rdp(alpha).lower


@settings(max_examples=80, deadline=None)
@given(pairs(positive=True), st.floats(1, 30))
def test_range_to_renyi(pair: DiscretePair, alpha: float) -> None:
    """Part 5, and randomised response is the worst of all eps-DP pairs."""
    forth, back = pair.max_divergence(), pair.reversed().max_divergence()
    assert pair.renyi(alpha) <= conv.range_to_renyi(alpha, forth, back) + 1e-12
    assert pair.renyi(alpha) <= conv.randomized_response_renyi(alpha, max(forth, back)) + 1e-12


def test_randomized_response_limits() -> None:
    assert conv.randomized_response_renyi(1, 0.5) == pytest.approx(0.5 * math.tanh(0.25), rel=1e-14)
    assert conv.randomized_response_renyi([2, 1e9], 700.0) == pytest.approx([700.0, 700.0], rel=1e-12)
    assert conv.randomized_response_renyi(2, 1e-9) == pytest.approx(1e-18, rel=1e-9)


@settings(max_examples=80, deadline=None)
@given(pairs(positive=True), st.floats(-3, 3))
def test_hoeffding(pair: DiscretePair, t: float) -> None:
    bound = max(pair.max_divergence(), pair.reversed().max_divergence())
    assert pair.log_moment(t) <= conv.hoeffding_log_mgf(t, pair.kl(), bound) + 1e-12


@settings(max_examples=100, deadline=None)
@given(pairs(positive=True), pairs(positive=True), st.floats(1.01, 12), st.floats(0, 1))
def test_renyi_properties(pair: DiscretePair, other: DiscretePair, alpha: float, share: float) -> None:
    # 3, monotonicity
    orders = [1.0, alpha, 1.5 * alpha, 10 * alpha, math.inf]
    values = [pair.renyi(a) for a in orders]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(values))
    # 6, quasi-convexity
    if len(pair.p) == len(other.p):
        mixed, a, b = pair.mixed_with(other, share), pair.renyi(alpha), other.renyi(alpha)
        bound = group.mixture(alpha, max(a, 0.0), max(b, 0.0), share)
        assert mixed.renyi(alpha) <= bound + 1e-12
        assert bound <= max(a, b, 0.0) + 1e-12
        assert mixed.kl() <= group.mixture(1, max(pair.kl(), 0.0), max(other.kl(), 0.0), share) + 1e-12
    # 8, conversion to approximate DP
    divergence = max(pair.renyi(alpha), 0.0)
    for eps in (0.1, divergence, divergence + 1):
        truth = pair.hockey_stick(eps)
        forms = [conv.renyi_to_delta(alpha, divergence, epsilon=eps, form=f) for f in conv.RENYI_FORMS]
        assert truth <= forms[0] + 1e-13
        assert forms[0] <= forms[1] * (1 + 1e-12) <= forms[2] * (1 + 1e-11)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=9, max_size=9), st.floats(1.05, 6), st.floats(1.05, 4))
def test_triangle(weights: list[int], alpha: float, factor: float) -> None:
    """Part 7, at a given alpha' and at the best."""
    p, q, r = ([w / sum(part) for w in part] for part in (weights[:3], weights[3:6], weights[6:]))
    first, second, direct = DiscretePair(p, q), DiscretePair(q, r), DiscretePair(p, r)

    def forth(a: float) -> float:
        return max(first.renyi(a), 0.0)

    def back(a: float) -> float:
        return max(second.renyi(a), 0.0)

    given_order = group.renyi_triangle(alpha, forth, back, between=alpha * factor)
    best = group.renyi_triangle(alpha, forth, back)
    assert direct.renyi(alpha) <= best + 1e-12
    assert best <= given_order * (1 + 1e-3) + 1e-12


def test_group_privacy() -> None:
    # Gaussians at distance 0, 1, 3: k^2 rho and (sqrt + sqrt)^2 are attained
    assert group.zcdp(0.5, people=3) == pytest.approx(GaussianPair(3.0, 0.0, 1.0).rho, rel=1e-14)
    assert group.zcdp_triangle(0.5, 2.0) == pytest.approx(GaussianPair(3.0, 0.0, 1.0).rho, rel=1e-14)
    best = group.renyi_triangle(3.0, lambda a: 0.5 * a, lambda a: 2.0 * a)
    assert best == pytest.approx(3 * 4.5, rel=1e-6)
    eps, delta = group.approx(1.0, 1e-6, people=2)
    assert (eps, delta) == (pytest.approx(2.0), pytest.approx(1e-6 * (1 + math.e), rel=1e-12))
    assert group.approx(0.0, 0.1, people=3)[1] == pytest.approx(0.3)
    assert group.approx(1.0, 0.0, people=7) == (pytest.approx(7.0), 0.0)
    assert group.approx(5.0, 0.5, people=10**6)[1] == 1.0
    # the Gaussian: distance 2 at delta', from distance 1 at delta
    one = pl.Gaussian(1.0).epsilon(1e-6).upper
    grown = group.approx(one, 1e-6, people=2)
    assert pl.GDP(2.0).delta(grown[0]).upper <= grown[1]


@settings(max_examples=60, deadline=None)
@given(st.floats(1.01, 40), st.floats(1e-3, 3), st.floats(0, 4))
def test_optimal_conversion_is_optimal(alpha: float, divergence: float, eps: float) -> None:
    """The lower end is attained by a pair on two points, the upper end proven; together they leave no room."""
    found = optimal_conversion.delta(alpha, divergence, eps)
    assert found.upper <= conv.renyi_to_delta(alpha, divergence, epsilon=eps, form="infimum") * (1 + 1e-9)
    if found.upper > 1e-200:
        assert found.lower >= found.upper * (1 - 1e-4)


@settings(max_examples=150, deadline=None)
@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999), st.floats(1.05, 20), st.floats(0, 2))
def test_optimal_conversion_is_never_below_a_pair(p: float, q: float, alpha: float, eps: float) -> None:
    pair = DiscretePair([p, 1 - p], [q, 1 - q])
    bound = optimal_conversion.delta(alpha, max(pair.renyi(alpha), 0.0) * (1 + 1e-12) + 1e-15, eps)
    assert pair.hockey_stick(eps) <= bound.upper * (1 + 1e-11) + 1e-15


def test_optimal_epsilon() -> None:
    found = optimal_conversion.epsilon(8.0, 1.0, 1e-6)
    assert found.upper - found.lower < 1e-9
    assert optimal_conversion.delta(8.0, 1.0, found.upper).upper <= 1e-6
    assert optimal_conversion.epsilon(8.0, 1e-9, 0.5).upper == 0
    orders = list(range(2, 40))
    curve = [0.5 * a for a in orders]
    best, infimum, simple = (conv.renyi_to_epsilon(orders, curve, delta=1e-6, form=f) for f in conv.RENYI_FORMS)
    assert pl.GDP(1.0).epsilon(1e-6).lower <= best <= infimum <= simple


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: conv.zcdp_to_delta(1.0, epsilon=0.5), "must be at least rho"),
        (lambda: conv.zcdp_to_epsilon(1.0, delta=1e-6, form="best"), "form = 'best'"),
        (lambda: conv.zcdp_to_epsilon(-1.0, delta=1e-6), "rho = -1.0"),
        (lambda: conv.renyi_to_delta(1.0, 0.5, epsilon=1.0), "alpha = 1.0"),
        (lambda: conv.renyi_to_delta([2, 3], 0.5, epsilon=1.0), "alpha has 2 entries, divergence 1"),
        (lambda: conv.sufficient_rho(1.0, 0.0), "delta = 0.0"),
        (lambda: group.renyi_triangle(3.0, lambda a: a, lambda a: a, between=2.0), "between = 2.0"),
        (lambda: group.approx(1.0, 1e-6, people=0), "people = 0"),
        (lambda: optimal_conversion.delta(2.0, math.nan, 1.0), "divergence = nan"),
    ],
)
def test_bad_input(call: object, words: str) -> None:
    with pytest.raises(pl.InvalidInput) as caught:
        call()  # type: ignore[operator]
    assert words in str(caught.value)
