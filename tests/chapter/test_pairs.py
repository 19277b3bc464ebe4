"""Privacy loss distributions as objects: the definitions agree with each other and with plain enumeration."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privloss as pl
from privloss.theorems.gaussian_dp import gaussian_delta, gaussian_epsilon, gaussian_mu
from privloss.theorems.pairs.base import EXPRESSIONS
from privloss.theorems.pairs.discrete import DiscretePair
from privloss.theorems.pairs.smooth import DensityPair, GaussianPair

weights = st.lists(st.integers(0, 20), min_size=2, max_size=6)


@st.composite
def pairs(draw: st.DrawFn, positive: bool = False) -> DiscretePair:
    low = 1 if positive else 0
    size = draw(st.integers(2, 6))
    a = draw(st.lists(st.integers(low, 20), min_size=size, max_size=size).filter(sum))
    b = draw(st.lists(st.integers(low, 20), min_size=size, max_size=size).filter(sum))
    return DiscretePair([x / sum(a) for x in a], [x / sum(b) for x in b])


def best_event(pair: DiscretePair, eps: float) -> float:
    """sup over all events, by enumeration."""
    sets = itertools.product((0, 1), repeat=len(pair.p))
    return max(
        sum(s * (a - math.exp(eps) * b) for s, a, b in zip(chosen, pair.p, pair.q, strict=True)) for chosen in sets
    )


@settings(max_examples=150, deadline=None)
@given(pairs(), st.floats(0, 3))
def test_hockey_stick_by_every_expression(pair: DiscretePair, eps: float) -> None:
    truth = best_event(pair, eps)
    for expression in EXPRESSIONS:
        assert pair.hockey_stick(eps, expression=expression) == pytest.approx(truth, abs=1e-13)
    assert pair.hockey_stick_upper(eps) >= truth - 1e-15


@settings(max_examples=100, deadline=None)
@given(pairs())
def test_total_variation_and_kl(pair: DiscretePair) -> None:
    tv = 0.5 * sum(abs(a - b) for a, b in zip(pair.p, pair.q, strict=True))
    assert pair.total_variation() == pytest.approx(tv, abs=1e-14)
    assert pair.total_variation_as_half() == pytest.approx(tv, abs=1e-14)
    # the accuracy of the best test, evenly weighted
    accuracy = 0.5 * sum(max(a, b) for a, b in zip(pair.p, pair.q, strict=True))
    assert accuracy == pytest.approx(0.5 + 0.5 * tv, abs=1e-14)
    assert pair.kl() >= -1e-15


@settings(max_examples=100, deadline=None)
@given(pairs(positive=True), st.floats(-2, 2))
def test_change_of_distribution(pair: DiscretePair, t: float) -> None:
    direct = sum(b * math.exp(t * pair.log_ratio(i)) for i, b in enumerate(pair.q))
    assert pair.change_of_distribution(lambda z: math.exp(t * z)) == pytest.approx(direct, rel=1e-12)
    assert pair.change_of_distribution(lambda z: 1.0) == pytest.approx(1.0, abs=1e-14)  # E[e^-Z] = 1


@settings(max_examples=60, deadline=None)
@given(pairs(), st.floats(0, 1))
def test_neyman_pearson_beats_every_test(pair: DiscretePair, fpr: float) -> None:
    test = pair.neyman_pearson(fpr)
    for chosen in itertools.product((0, 1), repeat=len(pair.p)):
        alarm = sum(s * b for s, b in zip(chosen, pair.q, strict=True))
        if alarm <= fpr:
            assert sum(s * a for s, a in zip(chosen, pair.p, strict=True)) <= test.power + 1e-12
    assert pair.tradeoff(fpr) == 1 - test.power
    assert 0 <= test.coin <= 1


def test_dual_loss() -> None:
    pair = DiscretePair([0.5, 0.3, 0.2], [0.1, 0.3, 0.6])
    assert [pair.reversed().log_ratio(i) for i in range(3)] == [-pair.log_ratio(i) for i in range(3)]


@settings(max_examples=60, deadline=None)
@given(pairs(), pairs(), st.floats(0, 2))
def test_composition_is_convolution(first: DiscretePair, second: DiscretePair, eps: float) -> None:
    both = first.compose(second)
    direct = sum(
        a * b * max(0.0, 1 - math.exp(eps - y - z)) if y + z < math.inf else a * b
        for y, a in first.losses()
        for z, b in second.losses()
    )
    assert both.hockey_stick(eps) == pytest.approx(direct, abs=1e-13)
    if first.mass_at_infinity == second.mass_at_infinity == 0:
        assert both.kl() == pytest.approx(first.kl() + second.kl(), abs=1e-12)
        assert both.renyi(2.5) == pytest.approx(first.renyi(2.5) + second.renyi(2.5), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(pairs(), st.floats(0.1, 6), st.data())
def test_postprocessing_never_hurts(pair: DiscretePair, t: float, data: st.DataObject) -> None:
    image = data.draw(st.lists(st.integers(0, 2), min_size=len(pair.p), max_size=len(pair.p)))
    seen = pair.postprocess(image)
    assert seen.hockey_stick(0.3) <= pair.hockey_stick(0.3) + 1e-14
    assert -1e-14 <= seen.renyi(1 + t) <= pair.renyi(1 + t) + 1e-12


@settings(max_examples=150, deadline=None)
@given(pairs(), st.floats(0, 2), st.floats(0, 1))
def test_decomposition_and_randomised_response(pair: DiscretePair, eps: float, extra: float) -> None:
    need = max(pair.hockey_stick(eps), pair.reversed().hockey_stick(eps))
    delta = need + extra * (1 - need)
    parts = pair.decompose(eps, delta)
    for whole, main, rest in ((pair.p, parts.p_main, parts.p_rest), (pair.q, parts.q_main, parts.q_rest)):
        assert sum(main) == pytest.approx(1, abs=1e-9)
        assert min(main) >= 0
        if delta > 1e-9:
            assert sum(rest) == pytest.approx(1, abs=1e-6)
            assert min(rest) >= 0
        for w, m, r in zip(whole, main, rest, strict=True):
            assert (1 - delta) * m + delta * r == pytest.approx(w, abs=1e-9)
    for a, b in zip(parts.p_main, parts.q_main, strict=True):
        assert a <= math.exp(eps) * b + 1e-9
        assert b <= math.exp(eps) * a + 1e-9
    if eps > 1e-3:
        a_dist, b_dist = parts.randomized_response()
        grown = math.exp(eps)
        assert sum(a_dist) == pytest.approx(1, abs=1e-6)
        for p, q, a, b in zip(parts.p_main, parts.q_main, a_dist, b_dist, strict=True):
            assert (grown * a + b) / (grown + 1) == pytest.approx(p, abs=1e-6)
            assert (grown * b + a) / (grown + 1) == pytest.approx(q, abs=1e-6)


def test_decomposition_refuses_what_is_not_private() -> None:
    with pytest.raises(pl.InvalidInput, match=r"is not \(0.1, 0.1\)-DP"):
        DiscretePair([0.9, 0.1], [0.1, 0.9]).decompose(0.1, 0.1)


@pytest.mark.parametrize(("mean", "sigma", "eps"), [(1.0, 2.0, 1.0), (1.0, 0.5, 3.0), (-2.0, 1.0, 0.1)])
def test_gaussian(mean: float, sigma: float, eps: float) -> None:
    pair = GaussianPair(mean, 0.0, sigma)
    exact = pl.GDP(abs(mean) / sigma).delta(eps)
    for expression in EXPRESSIONS:
        assert pair.hockey_stick(eps, expression=expression) == pytest.approx(exact.upper, rel=1e-9)
    assert pair.hockey_stick(eps) <= pair.hockey_stick_upper(eps)
    if eps >= pair.rho:
        assert pair.hockey_stick_upper(eps) <= pair.upper(eps) * (1 + 1e-12)
    assert pair.kl() == pair.rho == mean**2 / (2 * sigma**2)
    assert pair.expectation(lambda z: z) == pytest.approx(pair.rho, rel=1e-9)
    assert pair.expectation(lambda z: (z - pair.rho) ** 2) == pytest.approx(2 * pair.rho, rel=1e-9)
    assert pair.renyi(3.0) == pytest.approx(3 * pair.rho)
    assert pair.tradeoff(0.05) == pytest.approx(pl.GDP(abs(mean) / sigma).tradeoff(0.05).lower, abs=1e-6)
    assert pair.total_variation() == pytest.approx(pl.GDP(abs(mean) / sigma).total_variation().upper, rel=1e-9)


def test_densities() -> None:
    laplace = DensityPair(
        lambda y: 0.5 * math.exp(-abs(y - 1)), lambda y: 0.5 * math.exp(-abs(y)), -40.0, 41.0, corners=(0.0, 1.0)
    )
    mechanism = pl.Laplace(1.0)
    for expression in ("tails", "expectation", "integral"):
        assert laplace.hockey_stick(0.4, expression=expression) == pytest.approx(mechanism.delta(0.4).upper, rel=2e-7)
    assert laplace.max_divergence() == pytest.approx(1.0)
    assert laplace.kl() == pytest.approx(mechanism.kl().upper, rel=1e-7)
    assert laplace.renyi(3.0) == pytest.approx(mechanism.rdp(3.0).upper, rel=1e-7)
    gaussian = GaussianPair(1.0, 0.0, 2.0)
    assert gaussian.as_densities().neyman_pearson(0.1).power == pytest.approx(
        gaussian.neyman_pearson(0.1).power, abs=1e-7
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: DiscretePair([0.5, 0.4], [0.5, 0.5]), "p: probabilities must sum to 1, not 0.9"),
        (lambda: DiscretePair([1.5, -0.5], [0.5, 0.5]), "p[0] = 1.5"),
        (lambda: DiscretePair([1.0], [0.5, 0.5]), "p has 1 entries, q 2"),
        (lambda: DiscretePair("ab", [1.0]), "p = 'ab'"),
        (lambda: DiscretePair([0.5, 0.5], [0.5, 0.5]).hockey_stick(0.1, expression="other"), "expression = 'other'"),
        (lambda: GaussianPair(0.0, 1.0, 0.0), "sigma = 0.0"),
        (lambda: DensityPair(lambda y: 1.0, lambda y: 1.0, 0.0, 2.0), "must integrate to 1"),
    ],
)
def test_bad_input(call: object, words: str) -> None:
    with pytest.raises(pl.InvalidInput) as caught:
        call()  # type: ignore[operator]
    assert words in str(caught.value)


def test_gaussian_vectors() -> None:
    """Cor. gauss_adp_exact_multi: only the l2 norm of the quotients matters, and it is sqrt(2 rho) of one Gaussian."""
    both = gaussian_mu([3.0, 4.0], [10.0, 10.0])
    assert both == pytest.approx(gaussian_mu(5.0, 10.0), rel=1e-15)
    one = GaussianPair(5.0, 0.0, 10.0)
    assert gaussian_delta(0.7, [3.0, 4.0], [10.0, 10.0]).upper == pytest.approx(one.hockey_stick(0.7), rel=1e-9)
    assert gaussian_epsilon(1e-3, 5.0, 10.0).lower <= gaussian_epsilon(1e-3, [3.0, 4.0], [10.0, 10.0]).upper
    composed = pl.Gaussian(sigma=10.0, sensitivity=3.0) + pl.Gaussian(sigma=10.0, sensitivity=4.0)
    assert composed.epsilon(1e-3).upper == pytest.approx(gaussian_epsilon(1e-3, 5.0, 10.0).upper, rel=1e-12)
    with pytest.raises(pl.InvalidInput, match="sensitivity has 2 entries, sigma 1"):
        gaussian_mu([1.0, 2.0], [1.0])
