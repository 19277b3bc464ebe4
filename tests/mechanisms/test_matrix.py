"""Matrix mechanisms, trees and mixtures as mechanisms: pairs, adjacencies, plan files, against oracles that know
nothing of the engine."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

import privloss as pl
from privloss.answers.pair import exact_epsilon
from privloss.losses.composed import ComposedLoss
from privloss.losses.matrix import bins
from privloss.losses.matrix.steps import _allocated
from tests.oracle.patterns import separated, squared

Array = NDArray[np.floating[Any]]
SQRT = pl.MatrixMechanism.square_root


def gaussian_delta(mu: float, eps: float) -> float:
    return float(norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu))


# -- one pattern -------------------------------------------------------------------------------------------------------


def test_delta_is_that_of_the_sensitivity() -> None:
    """Upper and lower end each a Gaussian with its own sensitivity, whatever is wide in between."""
    rng = np.random.default_rng(1)
    for trial in range(12):
        c = np.tril(rng.normal(size=(6, 6)))
        run = pl.MatrixMechanism(matrix=c, participation="min-separation", separation=2, times=2, sigma=3.0)
        truth = math.sqrt(squared(c, separated(6, 2, 2)))
        found = run.delta(0.3)
        assert found.lower <= gaussian_delta(truth / 3, 0.3) <= found.upper * (1 + 1e-12)
        low, high = run.sensitivity_of()
        assert found.upper == pytest.approx(gaussian_delta(high / 3, 0.3), rel=1e-9), trial
        assert found.lower == pytest.approx(gaussian_delta(low / 3, 0.3), rel=1e-9)


def test_no_strategy_beats_the_sensitivity() -> None:
    """A contribution that turns with what was released, in one dimension and with signs in C: Monte Carlo of
    E[(L - a)_+] under noise, 5 standard errors."""
    rng = np.random.default_rng(2)
    c, sd, eps = np.array([[1.0, 0.0], [-0.8, 1.0]]), 1.5, 0.5
    run = pl.MatrixMechanism(matrix=c, participation="min-separation", separation=1, sigma=sd)
    z = rng.normal(size=(400_000, 2)) * sd
    for turn in (
        lambda y: np.sign(y),
        lambda y: -np.sign(y),
        lambda y: np.where(y > 1, 1.0, -1.0),
        lambda y: 0 * y + 1,
    ):
        first = np.ones(len(z))
        shift = np.stack([first, c[1, 0] * first + c[1, 1] * turn(z[:, 0])], axis=1)
        ratio = np.exp((shift * z).sum(axis=1) / sd**2 - (shift**2).sum(axis=1) / (2 * sd**2))
        for gain in (np.maximum(ratio - math.exp(eps), 0), np.maximum(1 - math.exp(eps) * ratio, 0)):
            assert gain.mean() - 5 * gain.std() / math.sqrt(len(z)) <= run.delta(eps).upper


def test_adjacencies() -> None:
    run = SQRT(steps=40, noise_multiplier=5.0, participation="min-separation", separation=10)
    one, two = run.sensitivity_of()[1] / 5, 2 * run.sensitivity_of()[1] / 5
    assert run.delta(0.5).upper == pytest.approx(gaussian_delta(one, 0.5), rel=1e-9)
    assert run.delta(0.5, adjacency="zero-out") == run.delta(0.5)
    assert run.delta(0.5, adjacency="replace-one").upper == pytest.approx(gaussian_delta(two, 0.5), rel=1e-9)
    absolute = SQRT(steps=40, sigma=5.0, participation="min-separation", separation=10)
    assert absolute.delta(0.5, adjacency="replace-one") == absolute.delta(0.5)
    epochs = replace(run, participation="fixed-epochs")
    assert epochs.delta(0.5, adjacency="zero-out").upper <= run.delta(0.5).upper * (1 + 1e-12)
    assert not epochs.supported("add-remove")
    with pytest.raises(pl.Unsupported, match="moves others"):
        epochs.mu_squared("add-remove")
    for amplified in (_cyclic(), _bins(0.5)):
        assert not amplified.supported("replace-one")


def test_several_people_have_the_same_steps() -> None:
    run = SQRT(steps=40, noise_multiplier=9.0, participation="min-separation", separation=10)
    three = pl.group.plan(run, people=3)
    assert three.epsilon(1e-6).upper == pytest.approx(replace(run, noise_multiplier=3.0).epsilon(1e-6).upper, rel=1e-12)
    with pytest.raises(pl.Unsupported):
        pl.group.plan(_cyclic(), people=2)


# -- cyclic Poisson ----------------------------------------------------------------------------------------------------


def _cyclic(**more: Any) -> pl.MatrixMechanism:
    given: dict[str, Any] = {"toeplitz": [1.0], "steps": 2, "noise_multiplier": 1.0, "separation": 2, "rate": 0.5}
    return pl.MatrixMechanism(participation="cyclic-poisson", **{**given, **more})


def test_the_mixture_over_a_class_is_a_product() -> None:
    """C banded, with signs: the likelihood ratio of all subsets of a class's steps is the product over its steps."""
    rng = np.random.default_rng(3)
    n, b, q, sd = 6, 2, 0.3, 1.2
    c = np.tril(rng.normal(size=(n, n))) * (np.subtract.outer(np.arange(n), np.arange(n)) < b)
    steps = range(0, n, b)
    for y in rng.normal(size=(20, n)):
        ratio = {s: math.exp((c[:, s] @ y) / sd**2 - (c[:, s] @ c[:, s]) / (2 * sd**2)) for s in steps}
        total = 0.0
        for taken in itertools.product((False, True), repeat=len(steps)):
            shift = sum((c[:, s] for s, t in zip(steps, taken, strict=True) if t), np.zeros(n))
            weight = math.prod(q if t else 1 - q for t in taken)
            total += weight * math.exp((shift @ y) / sd**2 - (shift @ shift) / (2 * sd**2))
        assert total == pytest.approx(math.prod(1 - q + q * r for r in ratio.values()), rel=1e-12)
    run = pl.MatrixMechanism(matrix=c, sigma=sd, participation="cyclic-poisson", separation=b, rate=q)
    found = run.delta(0.4, work=1e7)
    assert found.lower > 0
    for j in range(b):  # the plan says each class's product; the larger of them lies between the ends
        parts = [pl.Gaussian(sigma=sd / float(np.linalg.norm(c[:, s]))).poisson(q) for s in range(j, n, b)]
        assert pl.Plan.of(*parts).delta(0.4, work=1e7).lower <= found.upper


def test_public_and_secret_classes() -> None:
    """n = b = 2, q = 1/2: the class known, 0.0660; not known, 0.0313."""
    assert _cyclic().delta(0.6).upper == pytest.approx(0.0660, abs=5e-5)
    assert _cyclic().delta(0.6).relative_width < 1e-9
    x = np.linspace(-12, 12, 2401)
    w = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    r = np.exp(x - 0.5)
    ratio = 0.5 + 0.25 * r[:, None] + 0.25 * r[None, :]
    truth = float((np.maximum(ratio - math.exp(0.6), 0) * w[:, None] * w[None, :]).sum())
    assert truth == pytest.approx(0.0313, abs=5e-5)
    secret = _cyclic(classes="secret").delta(0.6)
    assert 0 < secret.lower <= truth <= secret.upper == _cyclic().delta(0.6).upper


def test_the_last_steps_have_shorter_columns() -> None:
    run = SQRT(steps=7, bands=3, noise_multiplier=2.0, participation="cyclic-poisson", separation=3, rate=0.2)
    c = run.strategy.dense().array  # type: ignore[union-attr]
    sizes = [float(np.linalg.norm(c[:, s])) for s in (0, 3, 6)]
    assert sizes[2] < sizes[0]
    exact = pl.Plan.of(*(pl.Gaussian(sigma=2.0, sensitivity=s).poisson(0.2) for s in sizes)).epsilon(1e-5)
    found, dense = run.epsilon(1e-5), replace(run, toeplitz=None, steps=None, matrix=c).epsilon(1e-5)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper == pytest.approx(exact.upper, rel=1e-9)
    assert dense.upper == pytest.approx(found.upper, rel=1e-9)


def test_samples_of_a_class_cut_down() -> None:
    """The product of truncated Poisson samples of one class; hardly ever cut down: that of Poisson samples."""
    given: dict[str, Any] = {"toeplitz": [0.8, -0.6], "steps": 8, "rate": 0.05, "noise_multiplier": 2.0}
    made = _cyclic(**given, class_size=400, most=30).step("add-remove")
    whole = pl.Gaussian(2.0).truncated_poisson(0.05, 400, 30).step("add-remove").times(4)
    assert made.without_sampler is not None
    assert whole.without_sampler is not None
    for ours, plain in (
        (made.loss, whole.loss), (made.attained[0], whole.attained[0]),
        (made.without_sampler.loss, whole.without_sampler.loss),
    ):  # fmt: skip
        assert ours is not None
        assert plain is not None
        for c in (-1.5, 0.5, 2.0, 6.0):
            assert ours.log_mgf(c).real == pytest.approx(plain.log_mgf(c).real, rel=1e-9)
    loose = _cyclic(**given, class_size=400, most=500).delta(0.5)  # never cut down
    assert loose.upper == pytest.approx(_cyclic(**given).delta(0.5).upper, rel=1e-9)
    assert _cyclic(**given, class_size=400, most=30, classes="secret").step("zero-out").attained == (None,)


@pytest.mark.parametrize(
    "run",
    [
        lambda: SQRT(steps=20, noise_multiplier=1.0, participation="cyclic-poisson", separation=5, rate=0.1),
        lambda: _cyclic(toeplitz=None, steps=None, matrix=[[1.0, 0.5], [0.0, 1.0]]),
    ],
)
def test_no_amplification_without_bands(run: Any) -> None:
    with pytest.raises(pl.Unsupported, match="amplification is proven for a lower triangular C"):
        run().epsilon(1e-5)


def test_rates_at_their_ends() -> None:
    assert _cyclic(rate=0.0).epsilon(0.0).upper == 0
    assert _cyclic(rate=1.0).epsilon(1e-5).upper == pytest.approx(pl.Gaussian(1.0).epsilon(1e-5).upper, rel=1e-9)
    assert _cyclic(noise_multiplier=0.0).delta(3.0).upper == pytest.approx(0.5)


# -- balls in bins -----------------------------------------------------------------------------------------------------


def _bins(noise: float, c: Array | None = None, count: int = 2) -> pl.MatrixMechanism:
    matrix = [[1.0, 0.0], [0.5, 1.0]] if c is None else c
    return pl.MatrixMechanism(matrix=matrix, sigma=noise, participation="balls-in-bins", separation=count)


def two_modes(g: Array, eps: float) -> float:
    """E[(L - a)_+] and E[(1 - a L)_+], the larger, L the mean of two log-normal variables with covariance g."""
    x = np.linspace(-9, 9, 721)
    w = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    root = np.linalg.cholesky(g + 1e-15 * np.eye(2))
    first = root[0, 0] * x[:, None] + 0 * x[None, :]
    second = root[1, 0] * x[:, None] + root[1, 1] * x[None, :]
    ratio = 0.5 * np.exp(first - g[0, 0] / 2) + 0.5 * np.exp(second - g[1, 1] / 2)
    gains = (np.maximum(ratio - math.exp(eps), 0), np.maximum(1 - math.exp(eps) * ratio, 0))
    return max(float((gain * w[:, None] * w[None, :]).sum()) for gain in gains)


def test_two_bins_against_quadrature() -> None:
    rng = np.random.default_rng(5)
    gap = 0.0
    for trial in range(6):
        c = np.tril(rng.uniform(size=(4, 4)) ** (1 + trial % 3))
        sd = float(rng.uniform(1.0, 3.0))
        modes = np.stack([c[:, j::2].sum(axis=1) for j in range(2)], axis=1) / sd
        eps = 0.2 if trial % 2 else 0.6
        truth, found = two_modes(modes.T @ modes, eps), _bins(sd, c).delta(eps)
        assert found.lower <= truth * (1 + 1e-6) + 1e-9
        assert truth * (1 - 1e-6) <= found.upper
        gap = max(gap, found.upper / truth)
    assert gap < 3


def test_four_bins_against_sampling() -> None:
    """Adaptive contributions of 20 steps in 4 bins never beat the upper end; 5 standard errors."""
    rng = np.random.default_rng(6)
    run = SQRT(steps=8, noise_multiplier=2.0, participation="balls-in-bins", separation=4)
    c = run.strategy.dense().array  # type: ignore[union-attr]
    z = 2.0 * rng.normal(size=(200_000, 8))
    bound = run.delta(0.4)
    for turned in (False, True):
        contributions = np.where(z[:, :-1].cumsum(axis=1) < 0, -1.0 if turned else 1.0, 1.0)
        x = np.concatenate([np.ones((len(z), 1)), contributions], axis=1)
        ratio = np.zeros(len(z))
        for j in range(4):
            shift = (x * (np.arange(8) % 4 == j)) @ c.T
            ratio += 0.25 * np.exp((shift * z).sum(axis=1) / 4 - (shift**2).sum(axis=1) / 8)
        gain = np.maximum(ratio - math.exp(0.4), 0)
        mean, error = gain.mean(), gain.std() / math.sqrt(len(z))
        assert mean - 5 * error <= bound.upper
        if not turned:  # constant contributions are the worst
            assert mean + 5 * error >= bound.lower


@pytest.mark.parametrize(
    ("bands", "noise", "plain", "upper", "lower"),
    [(4, 4.0, 2.491, 0.4955, 0.212), (16, 4.0, 2.896, 1.56, 0.248), (None, 8.0, 2.132, 1.7675, 1.347)],
)
def test_square_root_in_100_bins(bands: int | None, noise: float, plain: float, upper: float, lower: float) -> None:
    """Square-root coefficients, 400 steps, 100 bins, delta = 1e-5."""
    run = SQRT(steps=400, bands=bands, noise_multiplier=noise, participation="balls-in-bins", separation=100)
    without = replace(run, participation="fixed-epochs").epsilon(1e-5, adjacency="zero-out")
    assert without.upper == pytest.approx(plain, abs=1e-3)
    found = run.epsilon(1e-5)
    assert lower <= found.lower < found.upper <= upper


def _one_of_some(mu: float, some: int, eps: float, step: float = 2e-3, top: float = 400.0) -> float:
    """delta of N(mu e_j, 1) for a random j of some coordinates against N(0, 1): the sum of log-normals on a grid."""
    edges = (np.arange(int(top / step) + 1) - 0.5) * step
    masses = np.diff(norm.cdf((np.log(np.maximum(edges, 1e-300)) + mu**2 / 2) / mu))
    size = 1 << math.ceil(math.log2(some * len(masses)))
    law = np.fft.irfft(np.fft.rfft(masses, size) ** some, size)
    ratio = np.arange(size) * step / some
    return float((np.maximum(ratio - math.exp(eps), 0) * law).sum())


def test_the_division_into_five_by_convolution() -> None:
    """Square-root coefficients in 16 bands, four participations, noise 4: orthogonal bins 20 apart, 1.5186 at 1e-5."""
    coefficients = [math.comb(2 * j, j) / 4**j for j in range(16)]
    mu = math.sqrt(4 * sum(c * c for c in coefficients)) / 4
    found = exact_epsilon(ComposedLoss.of([_allocated(bins.Allocation(0.0, mu**2, 5))]), 1e-5, 1e-4)
    assert _one_of_some(mu, 5, found.upper) <= 1e-5 * (1 + 1e-6)
    assert _one_of_some(mu, 5, 1.518612) == pytest.approx(1e-5, rel=1e-6)
    assert found.upper == pytest.approx(1.518612, rel=2e-4)


def test_another_division_of_the_bins_is_narrower_at_one_delta() -> None:
    """16 bands: revealing j mod 20 gives 1.519 at delta 1e-5, j mod 10, which is chosen for 1e-6, 1.549; both hold."""
    run = SQRT(steps=400, bands=16, noise_multiplier=4.0, participation="balls-in-bins", separation=100)
    assert run.strategy is not None
    g = bins.gram(run.strategy, 100).scaled(1 / 16)
    assert bins.above(g).bins == 10
    found = {}
    for w in (10, 20):
        shared = float(g.most[w::w].max())
        loss = ComposedLoss.of([_allocated(bins.Allocation(shared, float(g.most[0]) - shared, 100 // w))])
        found[w] = exact_epsilon(loss, 1e-5, 1e-4).upper
    assert found[20] == pytest.approx(1.519, abs=1e-3)
    assert found[10] == pytest.approx(1.549, abs=1e-3)


def test_identity_in_bins_is_one_allocation() -> None:
    """C = 1 over k epochs in the same bin: one allocation with the noise over sqrt k."""
    run = pl.MatrixMechanism(
        toeplitz=[1.0], steps=400, noise_multiplier=2.0, participation="balls-in-bins", separation=100
    )
    assert run.delta(1.0).upper == pytest.approx(pl.Gaussian(1.0).allocated(100).delta(1.0).upper, rel=1e-9)


def test_signs_claim_nothing_from_below() -> None:
    signed = _bins(2.0, np.array([[1.0, 0.0], [-0.5, 1.0]]))
    assert signed.delta(0.2).lower == 0
    assert signed.delta(0.2).upper == pytest.approx(_bins(2.0).delta(0.2).upper, rel=1e-12)
    given: dict[str, Any] = {"steps": 4, "noise_multiplier": 2.0, "participation": "balls-in-bins", "separation": 2}
    wavy, plain = (pl.MatrixMechanism(toeplitz=[1.0, s * 0.5], **given).delta(0.2) for s in (-1, 1))
    assert wavy.upper == pytest.approx(plain.upper, rel=1e-12)
    assert wavy.lower == 0 < plain.lower


def test_gram_by_lags_is_that_of_the_matrix() -> None:
    run = SQRT(steps=50, noise_multiplier=1.0, participation="balls-in-bins", separation=7)
    fast, slow = bins.gram(run.strategy, 7), bins.gram(run.strategy.dense(), 7)  # type: ignore[union-attr]
    assert np.allclose(fast.most, slow.most, rtol=1e-12)
    assert np.allclose(fast.least, slow.least, rtol=1e-12)


def test_an_equal_split_into_bins_is_another_mechanism() -> None:
    """Two bins of one record each, the other contributing -1: 3.63e-3 where independent bins have 6.5e-4. So the
    assumption names independence."""
    x = np.linspace(-20, 20, 1601)
    step = x[1] - x[0]

    def normal(at: tuple[float, float]) -> Array:
        first, second = (np.exp(-((x - a) ** 2) / 8) / math.sqrt(8 * math.pi) for a in at)
        return np.asarray(first[:, None] * second[None, :] * step * step)

    with_record = 0.5 * normal((1, -1)) + 0.5 * normal((-1, 1))
    without = 0.5 * normal((0, -1)) + 0.5 * normal((-1, 0))
    split = float(np.maximum(with_record - math.e * without, 0).sum())
    assert split == pytest.approx(3.63e-3, rel=2e-3)
    apart = _bins(2.0, np.eye(2))
    assert apart.delta(1.0).upper == pytest.approx(6.5e-4, rel=0.02)
    assert "independently of the others" in " ".join(apart.step("zero-out").assumptions)


# -- trees -------------------------------------------------------------------------------------------------------------


def test_levels_by_counting_nodes() -> None:
    """Finished nodes that hold one step, the worst step of n < 300."""
    for n in range(1, 300):
        most = max(sum((leaf >> level) + 1 << level <= n for level in range(n.bit_length())) for leaf in range(n))
        assert pl.TreeAggregation(steps=n, noise_multiplier=1.0).nodes == most
    assert pl.TreeAggregation(steps=2**39, noise_multiplier=1.0).nodes == 40


def test_trees_are_their_nodes() -> None:
    tree = pl.TreeAggregation(steps=1000, noise_multiplier=10.0)
    assert tree.epsilon(1e-6).upper == pytest.approx((pl.Gaussian(10.0) * 10).epsilon(1e-6).upper, rel=1e-12)
    restarted = replace(tree, trees=3)
    assert restarted.epsilon(1e-6).upper == pytest.approx((pl.Gaussian(10.0) * 30).epsilon(1e-6).upper, rel=1e-12)
    counts = pl.TreeAggregation(steps=365, noise="laplace", noise_multiplier=20.0)
    assert counts.epsilon(1e-6) == (pl.Laplace(noise_multiplier=20.0) * 9).epsilon(1e-6)
    assert counts.epsilon(1e-6).upper < pl.Laplace(noise_multiplier=20 / 9).epsilon(1e-6).upper
    assert counts.epsilon(0.0, adjacency="replace-one").upper == pytest.approx(0.9)


def test_a_tree_is_a_matrix_mechanism() -> None:
    """The node matrix, one participation; and two steps of one tree, which levels alone do not answer."""
    n = 13
    nodes = [(j << v, (j + 1) << v) for v in range(n.bit_length()) for j in range(n) if (j + 1) << v <= n]
    c = np.array([[float(a <= t < b) for t in range(n)] for a, b in nodes])
    run = pl.MatrixMechanism(matrix=c, noise_multiplier=4.0, participation="single")
    tree = pl.TreeAggregation(steps=n, noise_multiplier=4.0)
    assert run.epsilon(1e-6).lower <= tree.epsilon(1e-6).upper <= run.epsilon(1e-6).upper
    twice = replace(run, participation="min-separation", separation=4, times=2)
    truth = squared(c, separated(n, 4, 2))
    assert twice.sensitivity_of()[0] ** 2 <= truth <= twice.sensitivity_of()[1] ** 2


# -- mixtures ----------------------------------------------------------------------------------------------------------


def test_mixtures_against_quadrature() -> None:
    sizes, weights, sd = [0.5, 1.0, 2.5], [0.2, 0.1, 0.05], 1.5
    found = pl.GaussianMixture(sizes, weights, sd)

    def p(y: float) -> float:
        hits = sum(w * norm.pdf(y, c, sd) for w, c in zip(weights, sizes, strict=True))
        return float(0.65 * norm.pdf(y, 0, sd) + hits)

    def q(y: float) -> float:
        return float(norm.pdf(y, 0, sd))

    def gain(a: Any, b: Any, eps: float) -> float:
        grid = itertools.pairwise(np.linspace(-14, 18, 33))
        pieces = (quad(lambda y: max(a(y) - math.exp(eps) * b(y), 0), left, right) for left, right in grid)
        return sum(found for found, _ in pieces)

    for eps in (0.0, 0.8):
        truth = max(gain(p, q, eps), gain(q, p, eps))
        assert found.delta(eps).lower == pytest.approx(truth, rel=1e-7)
        assert found.delta(eps).relative_width < 1e-9


def test_mixtures_that_have_other_names() -> None:
    binomial = pl.group.plan(pl.Gaussian(2.0).poisson(0.1), people=2)
    mixture = pl.GaussianMixture([1.0, 2.0], [0.18, 0.01], 2.0)
    assert (mixture * 30).epsilon(1e-6).upper == pytest.approx((binomial * 30).epsilon(1e-6).upper, rel=1e-9)
    hit = pl.GaussianMixture([0.0, 1.0], [0.75, 0.25], 2.0)
    assert (hit * 9).epsilon(1e-6).upper == pytest.approx((pl.Gaussian(2.0).poisson(0.25) * 9).epsilon(1e-6).upper)
    assert pl.GaussianMixture([1.0], [1.0], 2.0).epsilon(1e-6).upper == pl.Gaussian(2.0).epsilon(1e-6).upper
    sampled = pl.GaussianMixture([1.0, 2.0], [0.3, 0.2], 2.0).poisson(0.5)
    assert sampled.epsilon(1e-6).upper == pytest.approx(pl.GaussianMixture([1, 2], [0.15, 0.1], 2).epsilon(1e-6).upper)


def test_a_sample_of_a_mixture_misses_more_often() -> None:
    """Far to the left only misses are left: the largest loss of the reversed pair is -log of their probability."""
    sampled = pl.GaussianMixture([1.0, 2.0], [0.5, 0.4], 1.0).poisson(0.9).step("add-remove").loss
    plain = pl.GaussianMixture([1.0, 2.0], [0.45, 0.36], 1.0).step("add-remove").loss
    assert sampled is not None
    assert plain is not None
    for c in (-3.0, -9.0):
        assert sampled.log_mgf(c).real == pytest.approx(plain.log_mgf(c).real, rel=1e-12)


def test_mixtures_at_their_ends() -> None:
    assert pl.GaussianMixture([1.0, 2.0], [0.5, 0.4], 0.0).delta(7.0).upper == pytest.approx(0.9)
    assert pl.GaussianMixture([1.0], [1.0], 0.0).epsilon(0.5).lower == math.inf
    assert pl.GaussianMixture([0.0], [1.0], 1.0).epsilon(0.0).upper == 0
    assert pl.GaussianMixture([3.0], [0.0], 1.0).epsilon(0.0).upper == 0
    never_missed = pl.GaussianMixture([1.0, 2.0], [0.5, 0.5], 3.0).epsilon(1e-6)
    assert pl.Gaussian(3.0).epsilon(1e-6).lower <= never_missed.lower * (1 + 1e-9)
    assert never_missed.upper == pytest.approx(pl.Gaussian(1.5).epsilon(1e-6).upper, rel=1e-9)
    assert not pl.GaussianMixture([1.0], [0.5], 1.0).supported("replace-one")
    y = np.linspace(-30, 36, 66_001)
    p, q = 0.5 * norm.pdf(y, 1, 3) + 0.5 * norm.pdf(y, 2, 3), norm.pdf(y, 0, 3)
    truth = float(np.maximum(p - math.exp(0.1) * q, 0).sum() * (y[1] - y[0]))
    found = pl.GaussianMixture([1.0, 2.0], [0.5, 0.5], 3.0).delta(0.1)
    assert 0 < found.lower < truth < found.upper


# -- what is refused, and plan files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"participation": "single"}, "exactly one"),
        ({"toeplitz": [1.0], "matrix": [[1.0]], "participation": "single"}, "exactly one"),
        ({"toeplitz": [1.0, math.nan], "participation": "single"}, r"toeplitz\[1\]"),
        ({"toeplitz": [], "participation": "single"}, "empty"),
        ({"toeplitz": [1.0, 2.0], "steps": 1, "participation": "single"}, "coefficients already"),
        ({"matrix": [[1.0]], "steps": 1, "participation": "single"}, "steps = 1"),
        ({"matrix": [[1.0], [1.0, 2.0]], "participation": "single"}, "equally many"),
        ({"matrix": [[math.inf]], "participation": "single"}, "finite"),
        ({"matrix": [["1"]], "participation": "single"}, "numbers"),
        ({"matrix": [1.0], "participation": "single"}, "shape"),
        ({"toeplitz": [1.0], "participation": "sometimes"}, "must be one of"),
        ({"toeplitz": [1.0], "participation": "fixed-epochs"}, "separation = None"),
        ({"toeplitz": [1.0], "participation": "single", "separation": 3}, "does not go with"),
        ({"toeplitz": [1.0], "participation": "fixed-epochs", "separation": 3, "times": 2}, "does not go with"),
        ({"toeplitz": [1.0], "participation": "cyclic-poisson", "separation": 3}, "rate = None"),
        ({"toeplitz": [1.0], "participation": "cyclic-poisson", "separation": 3, "rate": 1.5}, "rate = 1.5"),
        ({"toeplitz": [1.0], "participation": "single", "classes": "secret"}, "classes"),
        ({"toeplitz": [1.0], "participation": "single", "most": 3, "class_size": 9}, "does not go with"),
        (
            {"toeplitz": [1.0], "participation": "cyclic-poisson", "separation": 1, "rate": 0.5, "most": 3},
            "go together",
        ),
        ({"toeplitz": [1.0], "participation": "single", "sigma": 1.0}, "exactly one"),
        ({"toeplitz": [1e-60, 1e-200], "participation": "single"}, "largest entry"),
        ({"matrix": [[1e60]], "participation": "single"}, "largest entry"),
    ],
)
def test_bad_input_is_named(given: dict[str, Any], word: str) -> None:
    with pytest.raises(pl.InvalidInput, match=word):
        pl.MatrixMechanism(**{"noise_multiplier": 1.0, **given})


def test_no_sampler_takes_them() -> None:
    run = SQRT(steps=10, noise_multiplier=1.0, participation="single")
    for sampled in (lambda: run.poisson(0.1), lambda: run.shuffle(10), lambda: (run * 1).fixed_size(10, 2)):
        with pytest.raises(pl.Unsupported):
            sampled()
    data = json.loads((run * 1).to_json())
    data["steps"][0]["sampling"] = {"scheme": "poisson", "rate": 0.1}
    with pytest.raises(pl.Unsupported, match="part of a matrix mechanism"):
        pl.Plan.from_dict(data)


def test_no_noise_and_nothing_released() -> None:
    silent = pl.MatrixMechanism(matrix=[[0.0, 0.0]], noise_multiplier=1.0, participation="single")
    assert silent.epsilon(0.0).upper == 0
    assert replace(silent, noise_multiplier=0.0).epsilon(0.0).upper == 0
    loud = pl.MatrixMechanism(matrix=[[1.0]], noise_multiplier=0.0, participation="single")
    assert loud.epsilon(0.5).lower == math.inf


def test_numbers_far_out_are_refused_not_lost() -> None:
    """Squares that underflow would say that nothing is lost."""
    for plan in (
        pl.MatrixMechanism(toeplitz=[1.0], participation="single", noise_multiplier=1e100),
        pl.GaussianMixture([1e-200], [0.5], 1.0),
        pl.NoisyThreshold(1e160),
        pl.MatrixMechanism(toeplitz=[1.0], steps=10**12, participation="min-separation", separation=1, sigma=1e3),
        SQRT(steps=4, noise_multiplier=1.0, participation="balls-in-bins", separation=9),
    ):
        if plan.supported("zero-out"):
            assert plan.epsilon(1e-3, adjacency="zero-out").upper > 0
    for refused in (lambda: pl.GNMax(1e160), lambda: pl.StabilityHistogram(1e160, 2.0)):
        with pytest.raises(pl.InvalidInput):
            refused()
    small = pl.MatrixMechanism(toeplitz=[1.0], participation="single", noise_multiplier=1e80).delta(0.0)
    assert 0 < small.lower <= small.upper < 1e-80
    whole = pl.MatrixMechanism(toeplitz=[1.0], steps=10**12, participation="min-separation", separation=1, sigma=1e6)
    assert whole.delta(1.0).upper == pytest.approx(gaussian_delta(1.0, 1.0), rel=1e-9)


def test_plan_files_keep_the_matrix() -> None:
    run = pl.MatrixMechanism(matrix=[[1, 0], [0.1, 1]], noise_multiplier=1.0, participation="single")
    assert (run * 2).to_dict()["steps"][0]["matrix"] == [[1.0, 0.0], [0.1, 1.0]]
    assert pl.Plan.from_json((run * 2).to_json()) == run * 2
    other = pl.MatrixMechanism(matrix=[[1, 0], [0.2, 1]], noise_multiplier=1.0, participation="single")
    assert run != other
    assert len((run + other + run).steps) == 2


def test_price_in_gdp() -> None:
    run = SQRT(steps=40, noise_multiplier=5.0, participation="min-separation", separation=10)
    from fractions import Fraction

    price = run.mu_squared("replace-one")
    assert price is not None
    assert price >= Fraction(run.sensitivity_of()[0]) ** 2 * 4 / 25
    assert float(price) == pytest.approx(run.sensitivity_of()[1] ** 2 * 4 / 25, rel=1e-12)
