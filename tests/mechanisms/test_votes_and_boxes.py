"""PATE, comparisons, adaptive clipping, smooth sensitivity, propose-test-release, stability histograms."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import laplace, norm

import privloss as pl
from privloss.losses.closed.votes import comparisons


def coin_delta(p: float, q: float, eps: float) -> float:
    """The larger direction for two outcomes."""
    pairs = ((p, q), (1 - p, 1 - q), (q, p), (1 - q, 1 - p))
    return max(a - math.exp(eps) * b for a, b in pairs)


def test_two_classes_of_gnmax() -> None:
    """sigma = 1, eps = 0.5: 0.400 for the pair, 0.370 for the best whole number of votes."""
    found = pl.GNMax(1.0).delta(0.5)
    assert found.upper == pytest.approx(0.400, abs=5e-4)
    votes = max(
        coin_delta(float(norm.cdf(d / math.sqrt(2))), float(norm.cdf((d - 2) / math.sqrt(2))), 0.5)
        for d in range(-15, 16)
    )
    assert votes == pytest.approx(0.370, abs=5e-4)
    assert found.lower == pytest.approx(votes, rel=1e-9)
    whole = pl.GNMax(1.0).delta(1.0)  # a multiple of 1/sigma^2: attained
    assert whole.lower == pytest.approx(whole.upper, rel=1e-9)


def test_three_classes_never_lose_more() -> None:
    """Simulated counts of three classes: the winner's law on neighbours, both directions, 5 standard errors."""
    rng = np.random.default_rng(8)
    sigma, eps, n = 2.0, 0.3, 400_000
    noise = rng.normal(size=(n, 3)) * sigma
    laws = [np.bincount((np.array(v) + noise).argmax(axis=1), minlength=3) / n for v in ((5, 5, 3), (4, 6, 3))]
    for p, q in (laws, laws[::-1]):
        delta = float(np.maximum(p - math.exp(eps) * q, 0).sum())
        assert delta - 5 * 3 / math.sqrt(n) <= pl.GNMax(sigma).delta(eps).upper


def test_confident_gnmax_pays_for_every_screening() -> None:
    plan = pl.confident_gnmax(queries=100, answered=10, screening_sigma=50.0, sigma=20.0)
    mu = math.sqrt(100 / 50**2 + 2 * 10 / 20**2)
    assert plan.epsilon(1e-6).upper == pytest.approx(pl.GDP(mu).epsilon(1e-6).upper, rel=1e-9)
    assert 0 < plan.epsilon(1e-6).lower < plan.epsilon(1e-6).upper
    with pytest.raises(pl.Unsupported, match="answered"):
        pl.confident_gnmax(queries=5, answered=6, screening_sigma=1.0, sigma=1.0)


def test_one_comparison_attains_the_gaussian_profile() -> None:
    for eps in (0.0, 0.4, 2.0):
        found, whole = pl.NoisyThreshold(2.0, 1.0).delta(eps), pl.Gaussian(2.0).delta(eps)
        assert found.lower == pytest.approx(whole.upper, rel=1e-9)
        t = np.linspace(-8, 8, 40_001)
        best = float((norm.cdf(t) - math.exp(eps) * norm.cdf(t - 0.5)).max())
        assert best == pytest.approx(found.upper, rel=1e-5)
    many = (pl.NoisyThreshold(20.0) * 100).epsilon(1e-6)
    assert many.lower < (pl.Gaussian(20.0) * 100).epsilon(1e-6).lower < many.upper * (1 + 1e-9)


def test_noise_at_its_ends() -> None:
    for mechanism in (pl.GNMax(0.0), pl.NoisyThreshold(0.0)):
        assert mechanism.epsilon(0.5).upper == math.inf
    assert pl.GNMax(1e9).epsilon(1e-3).upper < 1e-6
    for quiet in (1e6, 1e12):  # small numbers keep their digits, and the lower end stays below
        found = pl.NoisyThreshold(quiet).delta(0.0)
        assert found.lower == pytest.approx(1 / (quiet * math.sqrt(2 * math.pi)), rel=1e-9)
        assert (pl.NoisyThreshold(quiet) * 2).delta(0.0).lower <= pl.GDP(math.sqrt(2) / quiet).delta(0.0).upper


def test_the_even_comparison_keeps_its_digits() -> None:
    """log Phi(mu/2) / Phi(-mu/2), rounded down, against mpmath."""
    for mu in (1e-12, 1e-6, 0.3, 1.5, 9.0):
        with mpmath.workdps(40):
            truth = mpmath.log(mpmath.ncdf(mpmath.mpf(mu) / 2) / mpmath.ncdf(-mpmath.mpf(mu) / 2))
            (loss,) = comparisons(mu, ())
            assert truth * (1 - mpmath.mpf(1e-14)) <= loss.largest_lower <= truth


# -- adaptive clipping -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("z", "s"), [(1.0, 10.0), (0.7, 3.0), (5.0, 100.0)])
def test_adaptive_clipping_is_a_vector_release(z: float, s: float) -> None:
    """mu^2 of gradient and centred bit, and back; rounded to less privacy."""
    step = pl.adaptive_clipping(noise_multiplier=z, bit_noise=s)
    mu = math.hypot(1 / z, 0.5 / s)
    assert step.epsilon(1e-6).upper == pytest.approx(pl.GDP(mu).epsilon(1e-6).upper, rel=1e-9)
    assert step.noise_multiplier is not None
    assert step.noise_multiplier <= 1 / mu
    from privloss.planning.adaptive_clipping import gradient_noise

    back = gradient_noise(step.noise_multiplier, bit_noise=s)
    assert z * (1 - 1e-14) <= back == pytest.approx(z, rel=1e-9)
    with pytest.raises(pl.InvalidInput, match="bit_noise"):
        gradient_noise(1.0, bit_noise=0.5)


def test_a_bit_that_is_not_centred_costs_more() -> None:
    """A zeroed gradient that still votes: mu 1.09 where 1 is claimed."""
    from privloss.planning.adaptive_clipping import gradient_noise

    s = 1.0
    z = gradient_noise(1.0, bit_noise=s)
    assert math.hypot(1 / z, 0.5 / s) == pytest.approx(1.0, rel=1e-12)
    assert math.hypot(1 / z, 1 / s) > 1.3
    assert math.hypot(1 / gradient_noise(1.0, bit_noise=2.0), 1 / 2.0) == pytest.approx(1.09, abs=5e-3)


# -- boxes by formula --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("t", "s", "d"), [(0.1, 0.5, 3.0), (0.3, 0.2, 1.0), (0.05, 1.0, 0.5), (0.2, 0.3, 8.0)])
def test_students_noise_never_exceeds_its_box(t: float, s: float, d: float) -> None:
    """The loss on a grid: noise scaled by 1 and e^t (and back), centres up to s apart."""

    def log_density(y: np.ndarray, scale: float) -> np.ndarray:  # type: ignore[type-arg]
        constant = gammaln((d + 1) / 2) - gammaln(d / 2) - 0.5 * math.log(math.pi * d)
        found = constant - math.log(scale) - (d + 1) / 2 * np.log1p((y / scale) ** 2 / d)
        return np.asarray(found)

    y = np.concatenate([-np.geomspace(1e-3, 1e6, 4000)[::-1], np.geomspace(1e-3, 1e6, 4000)])
    eps = pl.SmoothSensitivity(noise="student-t", smoothness=t, scale=s, degrees=d).epsilon(0.0)
    worst = max(
        float(np.abs(log_density(y, 1.0) - log_density(y - shift, math.exp(u))).max())
        for shift in (-s, s)  # in units of the smaller scale, as S bounds the local sensitivity on both sides
        for u in (0.0, t)
    )
    assert worst <= eps.upper
    assert worst > 0.5 * eps.upper
    assert eps.lower == 0


@pytest.mark.parametrize("shape", [0.3, 0.5, 1.0])
def test_log_normal_noise_stays_below_its_curve(shape: float) -> None:
    """Renyi divergence of order 2 by quadrature, for a shift by s and a scaling by e^t."""
    t, s = 0.1, 0.2

    def density(y: float) -> float:
        def part(z: float) -> float:
            return float(norm.pdf(z) * 0.5 * math.exp(-shape * z - abs(y) * math.exp(-shape * z)))

        return quad(part, -8, 8, limit=100)[0]

    y = np.concatenate([-np.geomspace(1e-3, 40, 60)[::-1], np.geomspace(1e-3, 40, 60)])
    p = np.array([density(x) for x in y])
    q = np.interp((y - s) * math.exp(-t), y, p) * math.exp(-t)
    divergence = math.log(np.trapezoid(p * p / q, y) / np.trapezoid(p, y))
    box = pl.SmoothSensitivity(noise="laplace-log-normal", smoothness=t, scale=s, shape=shape)
    eps = t / shape + math.exp(1.5 * shape**2) * s
    assert box.rdp(2.0).upper == pytest.approx(eps**2, rel=1e-9)
    assert 0 < divergence < eps**2


def test_boxes_beside_sampled_noise() -> None:
    """A Renyi curve asks samples for tilts near 0, where nodes need not be anywhere."""
    box = pl.SmoothSensitivity(noise="laplace-log-normal", smoothness=0.1, scale=0.2, shape=0.5)
    beside = pl.Gaussian(2.0).poisson(0.01) * 100
    found = (box * 3 + beside).epsilon(1e-6)
    assert beside.epsilon(1e-6).lower <= found.upper <= (box * 3).epsilon(5e-7).upper + beside.epsilon(5e-7).upper
    assert (pl.ZCDP(0.12) * 3 + beside).epsilon(1e-6).upper < math.inf


def test_propose_test_release() -> None:
    """All cases of two distances and what they lead to, for randomised response behind the test: never above."""
    eps, delta, inner = 0.5, 1e-3, 0.7
    plan = pl.propose_test_release(pl.RandomizedResponse(inner), epsilon=eps, delta=delta)
    start = math.log(1 / (2 * delta)) / eps

    def passes(distance: int) -> float:
        gap = (start - distance) * eps
        return 0.5 * math.exp(-gap) if gap > 0 else 1 - 0.5 * math.exp(gap)

    assert passes(0) == pytest.approx(delta)
    high = math.exp(inner) / (1 + math.exp(inner))
    for x in (0.0, 0.3, 1.0, 1.3):
        bound = plan.delta(x).upper
        for a, b in ((0, 0), (0, 1), (1, 0), (5, 6), (12, 13), (13, 12), (14, 14)):
            answers = ((1.0, 0.0), (0.0, 1.0)) if (a, b) == (0, 0) else ((high, 1 - high), (1 - high, high))
            p = [1 - passes(a), passes(a) * answers[0][0], passes(a) * answers[0][1]]
            q = [1 - passes(b), passes(b) * answers[1][0], passes(b) * answers[1][1]]
            assert sum(max(u - math.exp(x) * v, 0) for u, v in zip(p, q, strict=True)) <= bound * (1 + 1e-9)
    assert plan.epsilon(delta).lower <= pl.RandomizedResponse(inner).epsilon(delta).upper


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_stability_histograms_by_cases(noise: str) -> None:
    """Two bins, each alone or crowded: product laws on a grid, both directions, never above; each extreme attained."""
    scale, threshold = 2.0, 12.0
    found = pl.StabilityHistogram(scale, threshold, 2, noise)
    law = norm(scale=scale) if noise == "gaussian" else laplace(scale=scale)
    edges = np.concatenate([[-np.inf], np.linspace(threshold, threshold + 40, 81), [np.inf]])

    def shown(count: int) -> np.ndarray:  # type: ignore[type-arg]
        if count == 0:
            return np.eye(1, len(edges) - 1)[0]
        return np.diff(law.cdf(edges - count))

    for eps in (0.1, 0.6, 1.1):
        bound = found.delta(eps)
        for counts in ((0, 0), (0, 30), (30, 30), (0, 8), (8, 8)):
            with_record = np.outer(*(shown(c + 1) for c in counts)).ravel()
            without = np.outer(*(shown(c) for c in counts)).ravel()
            for p, q in ((with_record, without), (without, with_record)):
                assert np.maximum(p - math.exp(eps) * q, 0).sum() <= bound.upper * (1 + 1e-9) + 1e-15
        alone = 1 - (1 - float(law.sf(threshold - 1))) ** 2
        assert alone * (1 - 1e-9) <= bound.lower or bound.lower >= alone
    assert not found.supported("replace-one")
    one = pl.StabilityHistogram(scale, threshold, 1, noise)
    assert one.epsilon(1e-9).upper == math.inf
    far = pl.StabilityHistogram(scale, 200.0, 1, noise)
    plain = pl.Laplace(scale) if noise == "laplace" else pl.Gaussian(scale)
    assert far.epsilon(1e-6).upper == pytest.approx(plain.epsilon(1e-6).upper, rel=1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: pl.SmoothSensitivity(noise="student-t", smoothness=0.1, scale=1.0),
        lambda: pl.SmoothSensitivity(noise="student-t", smoothness=0.1, scale=1.0, degrees=2.0, shape=1.0),
        lambda: pl.SmoothSensitivity(noise="cauchy", smoothness=0.1, scale=1.0, degrees=1.0),
        lambda: pl.DistanceTest(0.0, 1e-6),
        lambda: pl.DistanceTest(1.0, 0.6),
        lambda: pl.propose_test_release(pl.Gaussian(1.0).poisson(0.1), epsilon=1.0, delta=1e-6),
        lambda: pl.StabilityHistogram(1.0, 0.5),
        lambda: pl.GNMax(-1.0),
        lambda: pl.adaptive_clipping(noise_multiplier=-1.0, bit_noise=1.0),
    ],
)
def test_bad_input(bad: object) -> None:
    with pytest.raises(pl.InvalidInput):
        bad()  # type: ignore[operator]


def test_boxes_far_out_are_refused_and_tails_far_out_are_none() -> None:
    """e^(1.5 sg^2) beyond e^700 was cut off there, which a tiny scale made small; far tails were not numbers."""
    log_normal = {"noise": "laplace-log-normal", "smoothness": 0.0}
    assert pl.SmoothSensitivity(**log_normal, scale=1e-300, shape=21.5).zcdp().upper > 0.03  # type: ignore[arg-type]
    for shape, scale in ((30.0, 1e-304), (1e200, 1e-320)):
        with pytest.raises(pl.InvalidInput, match="epsilon is above"):
            pl.SmoothSensitivity(**log_normal, scale=scale, shape=shape)  # type: ignore[arg-type]
    with pytest.raises(pl.InvalidInput, match="epsilon is above"):
        pl.SmoothSensitivity(noise="student-t", smoothness=1e308, scale=1.0, degrees=1e300)
    with pytest.raises(pl.InvalidInput, match="beyond the range"):
        pl.TopK(1e300, k=10**9, noise="laplace", rounds="one-shot")
    counts = pl.Laplace(1.0).delta(0.1)
    far = pl.StabilityHistogram(scale=1.0, threshold=1e300).delta(0.1)
    assert counts.lower * (1 - 1e-7) <= far.lower <= far.upper <= counts.upper * (1 + 1e-7)
    assert pl.StabilityHistogram(scale=1.0, threshold=1e308, noise="gaussian").delta(0.1).upper < 0.4
    rare = pl.GaussianMixture([1.0, 2.0], [1e-300, 0.1], 1.0).delta(0.5)
    assert pl.Gaussian(0.5).poisson(0.1).delta(0.5).lower <= rare.upper
    assert pl.GaussianMixture([1.0, 2.0], [1e-301, 1e-301], 1.0).delta(0.0).upper >= 6.8e-301
