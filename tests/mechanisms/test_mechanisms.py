"""Each mechanism against an enumeration or an integral that knows nothing of the engine."""

from __future__ import annotations

import itertools
import math
import random

import mpmath
import numpy as np
import pytest
from flint import acb, arb, ctx
from scipy import stats
from scipy.special import ndtr

import privloss as pl
from privloss.losses.closed.discrete_gaussian import DiscreteGaussianLoss


def hockey_stick(p: list[float], q: list[float], eps: float) -> float:
    return math.fsum(max(a - math.exp(eps) * b, 0.0) for a, b in zip(p, q, strict=True))


def compose(p: list[float], q: list[float], times: int) -> tuple[list[float], list[float]]:
    a, b = [1.0], [1.0]
    for _ in range(times):
        a = [x * y for x in a for y in p]
        b = [x * y for x in b for y in q]
    return a, b


def agree(plan: pl.Plan, p: list[float], q: list[float], eps: float, lost: float = 0.0) -> None:
    """delta at eps is the larger of both directions; `lost` is what the enumeration leaves out."""
    truth = max(hockey_stick(p, q, eps), hockey_stick(q, p, eps))
    found = plan.delta(eps)
    assert found.lower <= truth * (1 + 1e-9) + lost + 1e-15
    assert found.upper >= truth * (1 - 1e-9) - 1e-15
    assert found.upper <= truth * (1 + 1e-6) + lost + 1e-14


def discrete_gaussian(sigma: float, shift: int, reach: int) -> list[float]:
    weights = [math.exp(-((k - shift) ** 2) / (2 * sigma**2)) for k in range(-reach, reach + 1)]
    whole = math.fsum(math.exp(-(k**2) / (2 * sigma**2)) for k in range(-40 * reach, 40 * reach + 1))
    return [w / whole for w in weights]


@pytest.mark.parametrize(("sigma", "sensitivity"), [(0.8, 1), (1.5, 2), (3.0, 1)])
def test_discrete_gaussian(sigma: float, sensitivity: int) -> None:
    reach = int(12 * sigma) + sensitivity
    p, q = discrete_gaussian(sigma, sensitivity, reach), discrete_gaussian(sigma, 0, reach)
    for eps in (0.0, 0.5, 2.0):
        agree(pl.DiscreteGaussian(sigma, sensitivity) * 1, p, q, eps, 1e-14)
    if len(p) < 60:
        agree(pl.DiscreteGaussian(sigma, sensitivity) * 2, *compose(p, q, 2), 1.0, 1e-14)
    assert pl.DiscreteGaussian(sigma, sensitivity).zcdp().upper == pytest.approx(
        sensitivity**2 / (2 * sigma**2), rel=1e-12
    )


@pytest.mark.parametrize(("scale", "sensitivity"), [(0.7, 1), (2.0, 3), (10.0, 2)])
def test_discrete_laplace(scale: float, sensitivity: int) -> None:
    reach = int(40 * scale) + sensitivity
    side = [[math.exp(-abs(k - s) / scale) for k in range(-reach, reach + 1)] for s in (sensitivity, 0)]
    p, q = ([w * math.tanh(0.5 / scale) for w in one] for one in side)
    for eps in (0.0, 0.1, 0.5):
        agree(pl.DiscreteLaplace(scale, sensitivity) * 1, p, q, eps, 1e-15)
    agree(
        pl.DiscreteLaplace(scale, sensitivity).poisson(0.3) * 1,
        [0.3 * a + 0.7 * b for a, b in zip(p, q, strict=True)],
        q,
        0.05,
        1e-15,
    )


def test_discrete_laplace_of_sensitivity_one_is_randomised_response() -> None:
    a, b = (pl.DiscreteLaplace(10.0) * 100).epsilon(1e-6), (pl.PureDP(0.1) * 100).epsilon(1e-6)
    assert a.lower <= b.upper
    assert b.lower <= a.upper


@pytest.mark.parametrize("times", [1, 3])
def test_sampled_tables(times: int) -> None:
    p, q = [0.5, 0.3, 0.2], [0.3, 0.3, 0.4]
    for rate in (0.01, 0.4):
        mixed = [rate * a + (1 - rate) * b for a, b in zip(p, q, strict=True)]
        agree(pl.Custom(p, q).poisson(rate) * times, *compose(mixed, q, times), 0.02)
    likely = 1 / (1 + math.exp(-1.0))
    response, other = [likely, 1 - likely], [1 - likely, likely]
    mixed = [0.2 * a + 0.8 * b for a, b in zip(response, other, strict=True)]
    agree(pl.RandomizedResponse(1.0).poisson(0.2) * times, *compose(mixed, other, times), 0.05)
    agree(pl.PureDP(1.0).poisson(0.2) * times, *compose(mixed, other, times), 0.05)
    box, back = [1e-3, 0.999 * likely, 0.999 * (1 - likely), 0.0], [0.0, 0.999 * (1 - likely), 0.999 * likely, 1e-3]
    mixed = [0.2 * a + 0.8 * b for a, b in zip(box, back, strict=True)]
    agree(pl.ApproxDP(1.0, 1e-3).poisson(0.2) * times, *compose(mixed, back, times), 0.05)


def test_sampled_laplace() -> None:
    """One use by reduction to Laplace itself, two by a fine table of bins from above and below."""
    lam, rate, bins = 1.0, 0.1, 160
    edges = np.linspace(-lam, lam, bins + 1)
    # Q-mass of the loss z: atoms at both ends, density e^(-(lam+z)/2)/4 between
    inner = 0.5 * (np.exp(-(lam + edges[:-1]) / 2) - np.exp(-(lam + edges[1:]) / 2))
    under_q = np.concatenate([[0.5], inner, [0.5 * math.exp(-lam)]])
    assert math.fsum(under_q) == pytest.approx(1, abs=1e-14)
    below = np.concatenate([[-lam], edges[:-1], [lam]])
    above = np.concatenate([[-lam], edges[1:], [lam]])
    found = (pl.Laplace(1.0).poisson(rate) * 2).delta(0.05)
    values = []
    for z in (below, above):
        r = 1 - rate + rate * np.exp(z)
        p = under_q * r
        pairs = np.add.outer(np.log(r), np.log(r))
        values.append(float((np.outer(p, p) * np.maximum(-np.expm1(0.05 - pairs), 0)).sum()))
    assert found.lower <= values[1]
    assert found.upper >= values[0]
    assert found.upper / found.lower - 1 < 1e-3


@pytest.mark.parametrize("times", [1, 2])
def test_truncated_laplace(times: int) -> None:
    scale, bound, n = 1.0, 4.0, 2000 if times == 1 else 500
    y = np.linspace(-bound, bound + 1, int((2 * bound + 1) * n / 4) + 1)
    middle, width = 0.5 * (y[1:] + y[:-1]), y[1] - y[0]
    density = lambda x: np.where(np.abs(x) <= bound, np.exp(-np.abs(x)), 0.0) / (2 * -math.expm1(-bound))  # noqa: E731
    p, q = density(middle - 1) * width, density(middle) * width
    if times == 2:
        p, q = np.outer(p, p).ravel(), np.outer(q, q).ravel()
    truth = float(np.maximum(p - math.exp(0.4) * q, 0).sum())
    found = (pl.TruncatedLaplace(scale, bound) * times).delta(0.4)
    assert found.upper == pytest.approx(truth, rel=2e-3)
    assert found.lower > pl.TruncatedLaplace(scale, bound).delta(50.0).lower > 0  # what gives the record away


@pytest.mark.parametrize(("mu", "bound"), [(1.0, 3.0), (0.5, 6.0), (3.0, 2.0)])
def test_truncated_gaussian(mu: float, bound: float) -> None:
    with mpmath.workdps(30):
        share = 1 / (mpmath.ncdf(bound) - mpmath.ncdf(-bound))
        for eps in (0.0, 0.7):
            start = min(max(eps / mu + mu / 2, mu - bound), bound)
            inside = share * (mpmath.ncdf(bound - mu) - mpmath.ncdf(start - mu))
            inside -= mpmath.exp(eps) * share * (mpmath.ncdf(bound) - mpmath.ncdf(start))
            lost = share * (mpmath.ncdf(bound) - mpmath.ncdf(bound - mu))
            truth = float(inside + lost) if 2 * bound > mu else 1.0
            found = pl.TruncatedGaussian(1.0, bound, sensitivity=mu).delta(eps)
            assert found.lower <= truth * (1 + 1e-12)
            assert found.upper >= truth * (1 - 1e-12)
            assert found.relative_width < 1e-9
    far = (pl.TruncatedGaussian(1.0, 12.0) * 5).epsilon(1e-6)
    assert far.upper == pytest.approx((pl.Gaussian(1.0) * 5).epsilon(1e-6).upper, rel=1e-9)


def cells_of(mechanism: object, rate: float, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Masses of (1-q)Q + qP and of Q on small cells, by exact distribution functions; outputs that one side alone can
    produce are cells of their own."""
    bound = mechanism.bound  # type: ignore[attr-defined]
    if isinstance(mechanism, pl.TruncatedGaussian):
        cdf = ndtr
    else:
        cdf = lambda x: np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0)))  # noqa: E731
    shift = mechanism.sensitivity  # type: ignore[attr-defined]
    edges = np.unique(
        np.concatenate([np.linspace(shift - bound, bound, cells + 1), [0.0, shift], [-bound, bound + shift]])
    )
    clip = lambda x: cdf(np.clip(x, -bound, bound))  # noqa: E731
    whole = cdf(np.array(bound)) - cdf(np.array(-bound))
    p, q = np.diff(clip(edges - shift)) / whole, np.diff(clip(edges)) / whole
    return (1 - rate) * q + rate * p, q


@pytest.mark.parametrize(
    "mechanism", [pl.TruncatedLaplace(1.0, 4.0), pl.TruncatedGaussian(1.0, 3.0), pl.TruncatedLaplace(1.0, 0.8)]
)
@pytest.mark.parametrize("rate", [0.05, 0.6])
def test_a_sample_of_truncated_noise(mechanism: object, rate: float) -> None:
    """Which cell it is, is post-processing (below the truth), and converges to it."""
    p, q = cells_of(mechanism, rate, 40_000)
    sampled = mechanism.poisson(rate)  # type: ignore[attr-defined]
    for eps in (0.0, 0.02, 0.3):
        truth = max(float(np.maximum(a - math.exp(eps) * b, 0).sum()) for a, b in ((p, q), (q, p)))
        found = sampled.delta(eps)
        assert found.upper >= truth * (1 - 1e-9)
        assert found.lower == pytest.approx(truth, rel=1e-6)
        assert found.relative_width < 1e-9
    p, q = cells_of(mechanism, rate, 1_500)
    p, q = np.outer(p, p).ravel(), np.outer(q, q).ravel()
    for eps in (0.0, 0.1):
        truth = max(float(np.maximum(a - math.exp(eps) * b, 0).sum()) for a, b in ((p, q), (q, p)))
        found = (sampled * 2).delta(eps)
        assert found.upper >= truth * (1 - 1e-9)
        assert found.lower <= truth * (1 + 1e-5)
        assert found.relative_width < 0.02


def test_few_uses_of_noise_on_a_sample_are_narrow() -> None:
    """Integration by parts and finer panels where the nodes of a density cannot follow."""
    for plan, delta in (
        (pl.Laplace(1.0).poisson(0.01) * 2, 1e-6),
        (pl.Laplace(0.3).poisson(0.1) * 2, 1e-6),
        (pl.Laplace(1.0).poisson(0.1) * 5, 0.01),
    ):
        assert plan.epsilon(delta).relative_width < 1e-7


def test_a_table_of_hundreds_used_a_thousand_times() -> None:
    """Far more outcomes than a double can count."""
    draws = np.random.default_rng(1)
    p = draws.dirichlet(np.full(500, 5.0))
    q = p * np.exp(0.3 * draws.standard_normal(500))
    assert (pl.Custom(list(p), list(q / q.sum())) * 1000).epsilon(1e-6).relative_width < 1e-7


def test_what_is_wider_than_asked_for_says_so() -> None:
    wide = (pl.Exponential(0.1) * 100).epsilon(1e-6)
    assert any(n.startswith("warning: relative width") for n in wide.notes)
    assert (pl.Gaussian(1.0) * 3).epsilon(1e-6).notes == ()


@pytest.mark.parametrize(("sigma", "sensitivity"), [(0.6, 1), (0.9, 3), (2.5, 1), (40.0, 7), (900.0, 1)])
def test_the_theta_function_of_discrete_noise(sigma: float, sensitivity: int) -> None:
    """K against the plain sum in 200 bits, far up the line and beyond the end of the lattice as well."""
    loss = DiscreteGaussianLoss(np.array([sigma]), np.array([float(sensitivity)]), np.ones(1))
    spacing = sensitivity / sigma**2
    heights = np.array([0.0, 1e-3, 0.1, 0.4, 0.5, 0.9, 1.2, 2.7]) * 2 * math.pi / spacing
    reach = int(20 * sigma) + 1
    with ctx.workprec(200):
        scale = 2 * arb(sigma) ** 2
        whole = sum(((-(arb(k) ** 2) / scale).exp() for k in range(-reach, reach + 1)), arb(0))
        for c in (1e-6, 0.3, 2.0, 17.7):
            found = loss.vertical(c).line(heights, 1e-14)
            middle = int((c + 1) * sensitivity)
            for i in (0, 1, 3, 6) if sigma < 10 else (0, 1):
                z = acb(c, float(heights[i]))
                terms = (
                    ((-((k - sensitivity) ** 2) + z * ((2 * k - sensitivity) * sensitivity)) / scale).exp()
                    for k in range(middle - reach, middle + reach + 1)
                )
                truth = sum(terms, acb(0)) / whole
                ours = acb(float(found.log_modulus[i]), float(found.phase[i])).exp()
                assert abs(truth / ours - 1) <= arb(float(found.error[i])).expm1() + 1e-40


def test_discrete_noise_of_any_size() -> None:
    """The larger sigma, the nearer to the Gaussian, and the cost does not grow."""
    for sigma, sensitivity, count in ((1e4, 1, 10**6), (1e6, 1000, 10), (3e8, 10**5, 10**4)):
        discrete = (pl.DiscreteGaussian(sigma, sensitivity) * count).epsilon(1e-6)
        assert discrete.upper == pytest.approx((pl.Gaussian(sigma / sensitivity) * count).epsilon(1e-6).upper, rel=1e-4)
        assert discrete.relative_width < 1e-11
    assert (pl.DiscreteGaussian(5.0, 3) * 7 + pl.DiscreteGaussian(7.0, 2) * 3).epsilon(1e-6).relative_width < 1e-7


def exponential_pair(scores: list[float], other: list[float], eps: float) -> tuple[list[float], list[float]]:
    sides = []
    for s in (scores, other):
        weights = [math.exp(eps * v / 2) for v in s]
        sides.append([w / math.fsum(weights) for w in weights])
    return sides[0], sides[1]


def test_exponential_mechanism_is_never_worse_than_its_bound() -> None:
    rng = random.Random(4)
    eps = 0.8
    for _ in range(60):
        scores = [rng.uniform(0, 5) for _ in range(rng.randint(2, 5))]
        moved = [s + rng.uniform(-1, 1) for s in scores]
        p, q = exponential_pair(scores, moved, eps)
        assert max(math.log(a / b) for a, b in zip(p, q, strict=True)) <= eps
        for at in (0.0, 0.3):
            assert hockey_stick(p, q, at) <= pl.Exponential(eps).delta(at).upper
            assert hockey_stick(*compose(p, q, 2), at) <= (pl.Exponential(eps) * 2).delta(at).upper
    # one use is attained by two outcomes with losses (eps + x)/2 and (x - eps)/2
    x = 0.3
    t = (eps + x) / 2
    up = (math.exp(eps) - math.exp(t)) / math.expm1(eps)
    p, q = [up, 1 - up], [up * math.exp(-t), (1 - up) * math.exp(eps - t)]
    assert hockey_stick(p, q, x) == pytest.approx(pl.Exponential(eps).delta(x).upper, rel=1e-12)
    assert pl.NoisyMax(eps).delta(x) == pl.Exponential(eps).delta(x)
    assert pl.NoisyMax(eps, "exponential").delta(x) == pl.Laplace(1 / eps).delta(x)


def test_bounded_range_against_the_optimal_non_adaptive_bound() -> None:
    """Dong, Durfee, Rogers 2020: max over t of the two-point mechanism. Adapting t is a little worse."""
    eps, k = 0.1, 100
    found = (pl.Exponential(eps) * k).epsilon(1e-6)
    best = close = 0.0
    for t in np.linspace(0.001, 0.0999, 60):
        up = (math.exp(eps) - math.exp(t)) / math.expm1(eps)
        hits = np.arange(k + 1)
        logs = stats.binom.logpmf(hits, k, up)
        losses = hits * t + (k - hits) * (t - eps)
        best = max(best, float((np.exp(logs) * np.maximum(-np.expm1(found.upper - losses), 0)).sum()))
        close = max(close, float((np.exp(logs) * np.maximum(-np.expm1(0.99 * found.lower - losses), 0)).sum()))
    assert best <= 1e-6  # one t for all is no worse than the upper end
    assert close >= 1e-6  # and attains 99 % of the lower one
    assert found.upper < (pl.PureDP(eps) * k).epsilon(1e-6).lower  # and the upper end beats pure DP
    assert found.relative_width < 1e-3


def test_unary_encoding() -> None:
    p, q = 0.7, 0.2
    bits = [(a, b) for a in (1, 0) for b in (1, 0)]
    one = [(p if a else 1 - p) * (q if b else 1 - q) for a, b in bits]
    two = [(q if a else 1 - q) * (p if b else 1 - p) for a, b in bits]
    agree(pl.UnaryEncoding(p, q) * 1, one, two, 0.4)
    agree(pl.UnaryEncoding(p, q) * 3, *compose(one, two, 3), 0.4)
    assert pl.UnaryEncoding(p, q).rdp(math.inf).upper == pytest.approx(math.log(p * (1 - q) / (q * (1 - p))))
    assert pl.UnaryEncoding(1.0, 0.2).epsilon(1e-6).lower == math.inf


def test_randomised_response_a_hundred_times() -> None:
    """Half the answers uniform: a hundred uses one at a time, or at once, are the exact binomial to twelve digits."""
    at_once = (pl.RandomizedResponse(p=0.5) * 100).epsilon(1e-6, adjacency="replace-one")
    one_by_one = sum([pl.RandomizedResponse(p=0.5) for _ in range(100)], start=pl.Plan.of((pl.PureDP(0.0), 1)))
    again = one_by_one.epsilon(1e-6, adjacency="replace-one")
    with mpmath.workdps(40):
        third = mpmath.log(3)

        def delta(eps: mpmath.mpf) -> mpmath.mpf:
            return mpmath.fsum(
                mpmath.binomial(100, k)
                * mpmath.mpf(3) ** k
                / mpmath.mpf(4) ** 100
                * (1 - mpmath.exp(eps - (2 * k - 100) * third))
                for k in range(101)
                if (2 * k - 100) * third > eps
            )

        truth = float(mpmath.findroot(lambda e: delta(e) * 10**6 - 1, (93, 95), solver="anderson"))
    for found in (at_once, again):
        assert found.lower == pytest.approx(truth, rel=1e-12)
        assert found.upper == pytest.approx(truth, rel=1e-12)
    assert truth == pytest.approx(94.29, abs=0.01)


@pytest.mark.parametrize(("eps", "k"), [(4.0, 10), (1.0, 100)])
def test_large_boxes_are_the_exact_sum(eps: float, k: int) -> None:
    found = (pl.PureDP(eps) * k).epsilon(1e-6)
    with mpmath.workdps(60):
        e = mpmath.mpf(eps)
        up = 1 / (1 + mpmath.exp(-e))
        for end, sign in ((found.upper, -1), (found.lower, 1)):
            delta = mpmath.fsum(
                mpmath.binomial(k, i)
                * up**i
                * (1 - up) ** (k - i)
                * (1 - mpmath.exp(mpmath.mpf(end) - (2 * i - k) * e))
                for i in range(k + 1)
                if (2 * i - k) * e > end
            )
            assert sign * (delta - mpmath.mpf(1e-6)) >= 0
    assert found.relative_width < 1e-12


def test_profiles_and_trade_offs() -> None:
    one = pl.PrivacyProfile([0.5], [1e-6])
    assert (one * 30).epsilon(1e-4).upper == pytest.approx((pl.ApproxDP(0.5, 1e-6) * 30).epsilon(1e-4).upper, rel=1e-12)
    several = pl.PrivacyProfile([0.0, 0.5, 1.5], [0.2, 1e-2, 1e-8])
    for eps, delta in zip(several.epsilons, several.deltas, strict=True):
        assert several.delta(eps).upper == pytest.approx(delta, rel=1e-9)
    # convexity in e^eps between the points
    assert several.delta(0.25).upper == pytest.approx(0.2 + (1e-2 - 0.2) * math.expm1(0.25) / math.expm1(0.5), rel=1e-9)
    # the Gaussian's own curve, read at many points, is above the Gaussian and close
    fpr = [0.0, *np.geomspace(1e-9, 0.5, 300), *(1 - np.geomspace(0.49, 1e-9, 300)), 1.0]
    fnr = [float(stats.norm.cdf(stats.norm.isf(a) - 1)) if 0 < a < 1 else 1.0 - a for a in fpr]
    polygon = (pl.TradeOff(fpr, fnr) * 1).delta(1.0)
    assert polygon.upper == pytest.approx(pl.GDP(1.0).delta(1.0).upper, rel=1e-3)
    assert pl.TradeOff([0.0, 0.3, 0.9, 1.0], [0.9, 0.3, 0.0, 0.0]).delta(100.0).lower == pytest.approx(0.1)
    # neighbours may be taken in either order: of a curve and its inverse the larger binds
    lopsided, turned = (
        pl.TradeOff([0.0, 0.5, 1.0], [0.9, 0.2, 0.0]),
        pl.TradeOff([0.0, 0.2, 0.9, 1.0], [1.0, 0.5, 0.0, 0.0]),
    )
    assert lopsided.delta(0.3).upper == pytest.approx(turned.delta(0.3).upper, rel=1e-9)
    assert lopsided.delta(100.0).upper == 0


def test_tabulated_distributions_hold_the_truth() -> None:
    noise = pl.tabulate(stats.norm(1, 2), stats.norm(0, 2), bins=400)
    exact = pl.Gaussian(2.0)
    for plan, truth in ((noise * 1, exact * 1), (noise * 10, exact * 10)):
        found, known = plan.epsilon(1e-5), truth.epsilon(1e-5)
        assert found.lower <= known.upper
        assert found.upper >= known.lower
        assert found.relative_width < 0.01
    logistic = pl.tabulate(stats.logistic(1, 1), stats.logistic(0, 1), bins=400)
    # of the tails beyond the bins nothing is known but their masses, so the largest loss is not bounded
    assert logistic.rdp(math.inf).lower == pytest.approx(1.0, rel=1e-3)
    assert logistic.epsilon(1e-15).upper == pytest.approx(1.0, rel=1e-3)
    backwards = pl.tabulate(stats.norm(0, 2), stats.norm(1, 2), bins=400)
    assert backwards.epsilon(1e-5).upper == pytest.approx(noise.epsilon(1e-5).upper, rel=1e-6)
    laplace = pl.tabulate_densities(
        lambda y: 0.5 * math.exp(-abs(y - 1)), lambda y: 0.5 * math.exp(-abs(y)), -25.0, 26.0, bins=510
    )
    known = pl.Laplace(1.0).delta(0.3)
    assert laplace.delta(0.3).lower <= known.upper * (1 + 1e-9)
    assert laplace.delta(0.3).upper >= known.lower * (1 - 1e-9)
    for bad, words in (
        (lambda: pl.tabulate(stats.norm(0, 1), stats.norm(0, 2)), "must be monotone"),
        (lambda: pl.tabulate(1.0, stats.norm(0, 2)), "p = 1.0"),
        (lambda: pl.tabulate_densities(lambda y: 1.0, lambda y: 2.0, 0.0, 1.0), "integrate to 1"),
    ):
        with pytest.raises(pl.InvalidInput, match=words):
            bad()


def test_estimates_are_not_bounds() -> None:
    rng = random.Random(2)
    losses = [rng.gauss(0.5, 1.0) for _ in range(40_000)]
    found = pl.estimate.epsilon_from_losses(losses, delta=0.05)
    truth = pl.GDP(1.0).epsilon(0.05).upper
    assert found.low <= truth <= found.high
    assert found.value == pytest.approx(truth, rel=0.05)
    assert "not a bound" in repr(found)
    assert not isinstance(found, pl.Bound)
    assert pl.estimate.epsilon_from_losses([*losses, math.inf], delta=1e-6).high == math.inf
    for bad in ([], [1.0], [1.0, math.nan], ["a", "b"]):
        with pytest.raises(pl.InvalidInput):
            pl.estimate.epsilon_from_losses(bad, delta=0.1)  # type: ignore[list-item]


def test_mixed_plan() -> None:
    """Noisy SGD with Laplace releases and boxes on one line."""
    plan = pl.Gaussian(1.1).poisson(0.01) * 10_000 + pl.Laplace(10.0) * 200 + pl.ApproxDP(0.1, 1e-9) * 20
    found = plan.epsilon(1e-6)
    assert found.relative_width < 1e-7
    parts = [(pl.Gaussian(1.1).poisson(0.01) * 10_000).epsilon(1e-6), found]
    assert parts[0].upper < parts[1].lower


def test_many_different_boxes() -> None:
    rng = random.Random(1)
    for digits, width in ((4, 1e-7), (None, 1e-6)):
        eps = [rng.uniform(0.001, 0.1) for _ in range(500)]
        plan = pl.composition.boxes([round(e, digits) if digits else e for e in eps])
        found = plan.epsilon(1e-6)
        assert found.relative_width < width
        again = plan.epsilon(1e-6, tolerance=1e-5)
        assert again.lower <= found.upper
        assert found.lower <= again.upper


def test_few_different_boxes_are_enumerated() -> None:
    eps = [0.1, math.sqrt(2) / 10, math.pi / 10, math.e / 10]
    p, q = [1.0], [1.0]
    for e in eps:
        likely = 1 / (1 + math.exp(-e))
        p = [x * y for x in p for y in (likely, 1 - likely)]
        q = [x * y for x in q for y in (1 - likely, likely)]
    plan = pl.composition.boxes(eps)
    for at in (0.0, 0.2, 0.6):
        found, truth = plan.delta(at), hockey_stick(p, q, at)
        assert found.lower <= truth * (1 + 1e-12)
        assert found.upper >= truth * (1 - 1e-12)
        assert found.relative_width < 1e-10


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pl.Custom([0.5, 0.4], [0.5, 0.5]), "p: probabilities must sum to 1, not 0.9"),
        (lambda: pl.Custom([1.2, -0.2], [0.5, 0.5]), "p[0] = 1.2"),
        (lambda: pl.Custom([1.0], [0.5, 0.5]), "p has 1 entries, q 2"),
        (lambda: pl.Custom("ab", [1.0]), "p = 'ab'"),
        (lambda: pl.DiscreteGaussian(1.0, 1.5), "sensitivity = 1.5"),
        (lambda: pl.DiscreteLaplace(1.0, 0), "sensitivity = 0"),
        (lambda: pl.DiscreteLaplace(math.nan), "scale = nan"),
        (lambda: pl.UnaryEncoding(0.2, 0.7), "q = 0.7"),
        (lambda: pl.Exponential(-1.0), "epsilon = -1.0"),
        (lambda: pl.NoisyMax(1.0, "cauchy"), "noise = 'cauchy'"),
        (lambda: pl.NoisyMax(1.0, "gaussian"), "noise = 'gaussian': the hazard rate of normal noise has no bound"),
        (lambda: pl.TruncatedGaussian(1.0, 0.0), "bound = 0.0"),
        (lambda: pl.PrivacyProfile([0.1], [0.1, 0.2]), "epsilons has 1 entries, deltas 2"),
        (lambda: pl.TradeOff([0.0, 1.0], [1.0, 0.5]), "must rise from 0 to 1"),
        (lambda: pl.TradeOff([0.0, 0.5, 1.0], [0.5, 0.45, 0.0]), "convex"),
        (lambda: pl.ZCDP(0.1, 2.0), "delta = 2.0"),
        (lambda: pl.register(int), "must be a privloss.Kind"),  # type: ignore[arg-type]
        (lambda: pl.register(pl.Kind("int", int, print)), "a subclass of privloss.Mechanism"),
        (lambda: pl.register(pl.Kind("gaussian", pl.Gaussian, print)), "is registered already"),
    ],
)
def test_bad_input(call: object, words: str) -> None:
    with pytest.raises(pl.InvalidInput) as caught:
        call()  # type: ignore[operator]
    assert words in str(caught.value)


def test_defined_answers_at_the_ends() -> None:
    assert pl.Custom([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]).delta(100.0).lower == pytest.approx(0.5)  # half is infinite loss
    assert pl.Custom([1.0, 0.0], [0.0, 1.0]).epsilon(0.5).lower == math.inf  # disjoint
    assert pl.Custom([0.5, 0.5], [0.5, 0.5]).epsilon(1e-9).upper == 0
    assert pl.DiscreteGaussian(0.0).epsilon(0.5).lower == math.inf
    assert pl.DiscreteLaplace(0.0).poisson(0.25).delta(10.0).upper == pytest.approx(0.25)
    assert pl.Laplace(0.0).poisson(0.25).delta(10.0).upper == pytest.approx(0.25)
    assert pl.Exponential(0.0).epsilon(1e-9).upper == 0
    with pytest.raises(pl.Unsupported, match=r"sigma = 1000000000\.0"):
        pl.DiscreteGaussian(1e9).poisson(0.1).epsilon(1e-6)


def test_every_mechanism_survives_a_plan_file() -> None:
    plan = (
        pl.DiscreteGaussian(2.0, 3) * 2 + pl.DiscreteLaplace(2.0) + pl.TruncatedGaussian(1.0, 5.0)
        + pl.TruncatedLaplace(1.0, 9.0, 2.0) + pl.UnaryEncoding(0.75, 0.25) + pl.Exponential(0.1)
        + pl.NoisyMax(0.1, "laplace") + pl.PrivacyProfile([0.1], [1e-6]) + pl.TradeOff([0.0, 1.0], [1.0, 0.0])
        + pl.Custom([0.5, 0.5], [0.4, 0.6]).poisson(0.1) + pl.ZCDP(0.1, 1e-9)
        + pl.tabulate(stats.norm(1, 9), stats.norm(0, 9), bins=4)
    )  # fmt: skip
    again = pl.Plan.from_json(plan.to_json())
    assert again == plan
    assert hash(again) == hash(plan)
    import jsonschema

    from privloss.mechanisms.plan_file import schema

    jsonschema.validate(plan.to_dict(), schema())


def test_pairs_of_products() -> None:
    """The order of composition does not matter."""
    steps = [pl.DiscreteLaplace(2.0), pl.PureDP(0.3), pl.Custom([0.6, 0.4], [0.5, 0.5]), pl.Gaussian(3.0)]
    answers = [sum(order[1:], start=order[0].as_plan()).epsilon(1e-4) for order in itertools.permutations(steps)]
    for a in answers:
        assert a.lower <= answers[0].upper
        assert answers[0].lower <= a.upper


@pytest.mark.parametrize(
    ("plan", "eps", "truth"),
    [
        (pl.TruncatedLaplace(1.0, 3.0, 1e-8) * 3, 100.0, 7.859354510926e-10),
        (pl.TruncatedGaussian(1.0, 3.0, 1e-8) * 3, 100.0, 1.333153786811e-10),
        (pl.TruncatedGaussian(1.0, 3.0, 1e-12) * 1, 5.0, 4.443845889583e-15),
        (pl.Custom([1.0, 0.0], [0.9999999999560687, 4.393136099588129e-11]) * 2, 7.907644979432328e-11, 8.78627220e-11),
        (
            pl.Custom([0.6549976229551542, 0.3450023770448459], [0.6549976208352785, 0.34500237916472143]) * 17,
            1.0435246182358672e-07,
            1.451819887e-18,
        ),
        (
            pl.PrivacyProfile(
                [0.4527086204524262, 0.6191739897537714, 1.4601672911358974],
                [0.7044558444708823, 0.6842239902975081, 0.5102462268156797],
            )
            * 1,
            0.0,
            0.7702339482803,
        ),
    ],
    ids=["truncated laplace", "truncated gaussian", "hardly any shift", "mass of one side", "tiny losses", "one point"],
)
def test_small_differences(plan: pl.Plan, eps: float, truth: float) -> None:
    """Values from 60-digit arithmetic, where a difference of nearly equal numbers would go wrong."""
    found = plan.delta(eps)
    assert found.lower <= truth * (1 + 1e-9)
    assert found.upper >= truth * (1 - 1e-9)


def test_the_end_of_a_density_is_not_its_last_node() -> None:
    top = math.log1p(0.1 * math.expm1(1.0))
    once = pl.Exponential(1.0).poisson(0.1)
    assert once.rdp(math.inf).upper >= top
    assert once.epsilon(0.0).upper >= top
    assert (once * 2).delta(2 * top - 4e-4).upper > 0
    near = pl.TruncatedGaussian(1.0, 1.5).epsilon(0.2790101070834544)
    assert near.lower <= 0.9999298445316778 <= near.upper


@pytest.mark.parametrize(
    ("plan", "eps", "truth"),
    [
        # below a resonance the theta function runs backwards
        (pl.DiscreteGaussian(0.6) * 2 + pl.PureDP(0.77), 15.0, 1.0345341e-8),
        (pl.DiscreteGaussian(0.6) + pl.DiscreteGaussian(0.6, 2), 5.0, 0.65630224835),
        (pl.DiscreteGaussian(0.61) + pl.Laplace(1.0, 1.3), 1.0, 0.5312101),
        # differences of numbers near one
        (pl.TruncatedLaplace(1.0, 1e-6, 1.5e-6) * 1, 5.0, 0.75000006250000005),
        (pl.TruncatedGaussian(1.0, 1e-6, 1.5e-6) * 1, 5.0, 0.75000000000003),
        # e^eps beyond the range of doubles, tails below it
        (pl.TruncatedGaussian(1.0, 40.0, 40.0) * 1, 750.0, 0.88964),
        (pl.TruncatedGaussian(1.0, 40.0, 20.0) * 1, 560.0, 5.116e-73),
    ],
    ids=["theta", "two thetas", "theta and laplace", "laplace", "gaussian", "far", "farther"],
)
def test_third_review(plan: pl.Plan, eps: float, truth: float) -> None:
    """Truths by enumeration and quadrature in 50 digits, as many digits as are written."""
    digits = 10.0 ** -(len(repr(truth).split("e")[0].replace(".", "").strip("0")) - 1)
    found = plan.delta(eps)
    assert found.lower <= truth * (1 + digits)
    assert found.upper >= truth * (1 - digits)


@pytest.mark.parametrize(
    ("plan", "delta", "truth"),
    [
        (pl.Gaussian(0.0).poisson(0.1) + pl.Gaussian(5.0), 0.100001, 0.72405),
        (pl.Laplace(1.0, 35.0).poisson(1 - 1e-12) + pl.Custom([1.0, 1e-300], [0.5, 0.5]), 0.0, 717.712793629),
        (pl.PureDP(30.0).poisson(1 - 1e-12) + pl.Custom([1.0, 1e-300], [0.5, 0.5]), 0.0, 717.62396879),
        (pl.TruncatedLaplace(1.0, 1000.0) * 1, 0.0, math.inf),
        (pl.TruncatedGaussian(1.0, 40.0) * 1, 0.0, math.inf),
    ],
    ids=["no quick zero", "rate near one", "box near one", "never nothing", "never nothing, gaussian"],
)
def test_third_review_epsilon(plan: pl.Plan, delta: float, truth: float) -> None:
    found = plan.epsilon(delta)
    assert found.upper >= truth * (1 - 1e-5)
    assert found.upper >= truth * (1 - 1e-10) or delta > 0
    assert found.lower <= truth * (1 + 1e-5)


def test_zero_is_not_claimed_beside_infinite_losses() -> None:
    """Pinsker's inequality for P given that the loss is finite."""
    for plan, delta in (
        (pl.TruncatedLaplace(1.0, 1.0, 0.5).poisson(0.5) * 2, 0.19606733067),
        (pl.TruncatedGaussian(1.0, 2.0, 1.5).poisson(0.5) * 3, 0.4119),
        (pl.ApproxDP(0.1, 0.1).poisson(0.5) + pl.Gaussian(5.0), 0.0501),
        (pl.Custom([0.5, 0.4, 0.1], [0.5, 0.5, 0.0]) + pl.Gaussian(8.0), 0.1001),
    ):
        assert plan.delta(plan.epsilon(delta).upper).lower <= delta * (1 + 1e-9)
