"""Several releases on one sample, against integrals over both outputs and sums over all outcomes."""

from __future__ import annotations

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import laplace, norm

import privloss as pl
from privloss.losses import product
from privloss.losses.density.normal import NormalPair
from privloss.losses.table.build import from_vectors
from privloss.losses.table.coarse import hull_above, merged_below, places_of
from privloss.losses.table.loss import TableLoss


def _grid(reach: float, cells: int = 3001) -> tuple[np.ndarray, float]:
    edges = np.linspace(-reach, reach, cells)
    return edges, float(edges[1] - edges[0])


def _sampled(p: np.ndarray, q: np.ndarray, rate: float, eps: float, back: bool) -> float:
    """Densities on a grid, times its cells: the sampled pair's hockey-stick divergence."""
    mixed = (1 - rate) * q + rate * p
    one, two = (q, mixed) if back else (mixed, q)
    return float(np.maximum(one - math.exp(eps) * two, 0.0).sum())


@pytest.mark.parametrize("eps", [0.2, 1.0])
def test_two_gaussians_by_quadrature_in_the_plane(eps: float) -> None:
    """Both outputs move on a hit: a product, which no sum of independent coins is."""
    y, h = _grid(12.0)
    p, q = (np.outer(norm.pdf(y, moved / 1.5), norm.pdf(y, moved / 2.0)) * h * h for moved in (1, 0))
    truth = _sampled(p, q, 0.1, eps, False)
    plan = pl.together(pl.Gaussian(1.5), pl.Gaussian(2.0)).poisson(0.1)
    found = plan.delta(eps)
    assert found.lower == pytest.approx(truth, rel=2e-4)
    assert found.upper == pytest.approx(truth, rel=2e-4)
    if eps == 1.0:  # 2.078e-5, where two coins would claim 4.8e-7
        assert found.upper == pytest.approx(2.078e-5, abs=1e-8)
        assert (pl.Gaussian(1.5).poisson(0.1) + pl.Gaussian(2.0).poisson(0.1)).delta(eps).upper < 5e-7


def _beside(rows: list[tuple[float, float]], sigma: float, rate: float, eps: float, back: bool) -> float:
    """A finite release beside Gaussian noise: one integral for every outcome."""
    y, h = _grid(14.0, 40_001)
    p, q = (
        np.concatenate([row[i] * norm.pdf(y, moved / sigma) * h for row in rows]) for i, moved in ((0, 1.0), (1, 0.0))
    )
    return _sampled(p, q, rate, eps, back)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("eps", [0.05, 0.3, 1.0])
def test_a_response_beside_gaussian_noise(eps: float, back: bool) -> None:
    """The answer is the larger of both directions; each is read off the step's own row."""
    a = 1 / (1 + math.exp(-1.0))
    truth = _beside([(a, 1 - a), (1 - a, a)], 1.5, 0.2, eps, back)
    made = pl.together(pl.Gaussian(1.5), pl.RandomizedResponse(1.0))
    loss = made.step("add-remove").on_poisson(0.2).loss
    assert loss is not None
    low, high = (loss.reversed() if back else loss).hockey_stick(eps) or (0.0, 0.0)
    assert math.exp(low) == pytest.approx(truth, rel=1e-5, abs=1e-9)
    assert math.exp(high) == pytest.approx(truth, rel=1e-5, abs=1e-9)
    if eps == 1.0 and not back:  # 1.98e-3, where two coins would claim 1.2e-4
        assert made.poisson(0.2).delta(1.0).upper == pytest.approx(1.983e-3, rel=1e-3)
        apart = pl.Gaussian(1.5).poisson(0.2) + pl.RandomizedResponse(1.0).poisson(0.2)
        assert apart.delta(1.0).upper < 1.3e-4


@pytest.mark.parametrize("uses", [1, 2])
@pytest.mark.parametrize("eps", [1e-6, 1e-4, 1e-3])
def test_few_hits_beside_gaussian_noise(eps: float, uses: int) -> None:
    """Gaussian noise by finitely many outcomes too; two uses by all pairs of outcomes of either direction."""
    a, rate = 1 / (1 + math.exp(-1.0)), 1e-3
    y, h = _grid(10.0, 801)
    q = np.concatenate([m * norm.pdf(y) * h for m in (1 - a, a)])
    p = np.concatenate([m * norm.pdf(y, 1 / 1.5) * h for m in (a, 1 - a)])
    one, two = (1 - rate) * q + rate * p, q
    if uses == 2:
        one, two = np.outer(one, one).ravel(), np.outer(two, two).ravel()
    truth = max(float(np.maximum(u - math.exp(eps) * v, 0.0).sum()) for u, v in ((one, two), (two, one)))
    found = (pl.together(pl.Gaussian(1.5), pl.RandomizedResponse(1.0)).poisson(rate) * uses).delta(eps)
    assert found.lower <= truth * (1 + 1e-4)
    assert found.upper >= truth * (1 - 1e-4)
    assert found.relative_width < 2e-4


def test_few_cells_of_gaussian_noise_lie_on_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "_CELLS", 40)
    a = 1 / (1 + math.exp(-1.0))
    truth = max(_beside([(a, 1 - a), (1 - a, a)], 1.5, 1e-3, 1e-4, back) for back in (False, True))
    found = pl.together(pl.Gaussian(1.5), pl.RandomizedResponse(1.0)).poisson(1e-3).delta(1e-4)
    assert found.lower < truth * (1 - 1e-4) < truth * (1 + 1e-4) < found.upper


def test_an_uneven_release_that_may_disclose_beside_gaussian_noise() -> None:
    """Outcomes that only one side has: infinite losses, and log(1 - q) whatever the noise."""
    p, q = [0.5, 0.3, 0.2, 0.0], [0.3, 0.5, 0.0, 0.2]
    plan = pl.together(pl.Gaussian(2.0), pl.Custom(p, q)).poisson(0.3)
    for eps in (0.1, 0.5, 2.0):
        truth = max(_beside(list(zip(p, q, strict=True)), 2.0, 0.3, eps, back) for back in (False, True))
        found = plan.delta(eps)
        assert found.lower <= truth * (1 + 1e-5)
        assert found.upper >= truth * (1 - 1e-5)
        assert found.relative_width < 1e-6
    assert plan.epsilon(0.05).upper == math.inf  # 0.3 * 0.2 of certain disclosure


def test_composition_of_what_shares_a_sample() -> None:
    """K on a line against powers of a sum over nodes, three uses."""
    made = pl.together(pl.Gaussian(1.5), pl.RandomizedResponse(1.0)).poisson(0.2)
    loss = made.step("add-remove").loss
    assert loss is not None
    a = 1 / (1 + math.exp(-1.0))
    y, h = _grid(14.0, 20_001)
    for z in (0.7, 2.0, 1.0 + 3.0j):
        total = 0.0 + 0.0j
        for up, down in ((a, 1 - a), (1 - a, a)):
            ratio = 0.8 + 0.2 * up / down * np.exp(y / 1.5 - 0.5 / 1.5**2)
            total += complex((down * norm.pdf(y) * ratio ** (1 + z)).sum() * h)
        assert complex(loss.log_mgf(z)) == pytest.approx(complex(np.log(total)), rel=1e-9)
        back = sum(
            complex((down * norm.pdf(y) * (0.8 + 0.2 * up / down * np.exp(y / 1.5 - 0.5 / 1.5**2)) ** (-z)).sum() * h)
            for up, down in ((a, 1 - a), (1 - a, a))
        )
        assert complex(loss.reversed().log_mgf(z)) == pytest.approx(complex(np.log(back)), rel=1e-9)


def _outcomes(pairs: list[tuple[list[float], list[float]]], rate: float, eps: float) -> float:
    found = []
    for back in (False, True):
        total = 0.0
        for outcome in itertools.product(*(range(len(p)) for p, _ in pairs)):
            p, q = (math.prod(pair[i][k] for pair, k in zip(pairs, outcome, strict=True)) for i in (0, 1))
            mixed = (1 - rate) * q + rate * p
            total += max((q - math.exp(eps) * mixed) if back else (mixed - math.exp(eps) * q), 0.0)
        found.append(total)
    return max(found)


@pytest.mark.parametrize("eps", [0.0, 0.15, 0.6])
def test_tables_by_counting_outcomes(eps: float) -> None:
    a, b = 1 / (1 + math.exp(-0.7)), 1 / (1 + math.exp(-0.4))
    pairs = [([a, 1 - a], [1 - a, a])] * 2 + [([b, 1 - b], [1 - b, b])] + [([0.5, 0.3, 0.2], [0.3, 0.4, 0.3])]
    releases = [pl.RandomizedResponse(0.7), pl.RandomizedResponse(0.7), pl.RandomizedResponse(0.4)]
    plan = pl.together(*releases, pl.Custom([0.5, 0.3, 0.2], [0.3, 0.4, 0.3])).poisson(0.25)
    truth, found = _outcomes(pairs, 0.25, eps), plan.delta(eps)
    assert found.lower <= truth * (1 + 1e-12) + 1e-15
    assert found.upper >= truth * (1 - 1e-12)
    assert found.upper == pytest.approx(truth, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("eps", [0.1, 0.5])
def test_laplace_noise_beside_a_response(eps: float) -> None:
    """A continuous release that is not Gaussian: between a finite pair above and its bins below."""
    a = 1 / (1 + math.exp(-0.5))
    y = np.linspace(-30, 31, 400_001)
    p, q = (laplace.pdf(y, moved) * (y[1] - y[0]) for moved in (1.0, 0.0))
    truth = max(
        _sampled(np.concatenate([a * p, (1 - a) * p]), np.concatenate([(1 - a) * q, a * q]), 0.3, eps, back)
        for back in (False, True)
    )
    found = pl.together(pl.Laplace(1.0), pl.RandomizedResponse(0.5)).poisson(0.3).delta(eps)
    assert found.lower <= truth * (1 + 1e-4)
    assert found.upper >= truth * (1 - 1e-4)
    assert found.upper == pytest.approx(truth, rel=2e-3)
    assert found.lower == pytest.approx(truth, rel=2e-3)


def test_batches_of_a_given_size_under_replace_one() -> None:
    """delta of one batch at alpha is that of the whole product at alpha' = 1 + (alpha - 1)/q, times q."""
    both = pl.Gaussian(2.0) + pl.RandomizedResponse(0.5)
    for eps in (0.1, 0.4):
        found = both.fixed_size(100, 20).delta(eps, adjacency="replace-one")
        whole = both.delta(math.log1p(math.expm1(eps) / 0.2), adjacency="replace-one")
        assert found.lower <= 0.2 * whole.upper * (1 + 1e-9)
        assert found.upper >= 0.2 * whole.lower * (1 - 1e-9)
        assert found.upper == pytest.approx(0.2 * whole.upper, rel=0.05)


def test_gaussian_noise_said_in_two_ways_under_every_sampler() -> None:
    made = pl.together(pl.Gaussian(4.0) * 3, pl.Gaussian(sigma=8.0, sensitivity=2.0))  # 3/16 + 1/16
    one = pl.Gaussian(sigma=2.0)
    for sample in (
        lambda m: m.poisson(0.1),
        lambda m: m.fixed_size(50, 5),
        lambda m: m.truncated_poisson(0.05, 100, 12),
        lambda m: m.allocated(20),
        lambda m: m.with_replacement(200, 5),
    ):
        found, single = sample(made).epsilon(1e-6), sample(one).epsilon(1e-6)
        assert found.upper == pytest.approx(single.upper, rel=1e-9)
        assert found.upper >= single.lower


def test_what_has_no_pair_beside_others_is_refused() -> None:
    with pytest.raises(pl.Unsupported, match="no proven worst pair"):
        pl.together(pl.Gaussian(2.0), pl.RDP([2.0, 4.0], [0.1, 0.2])).poisson(0.1).epsilon(1e-6)
    with pytest.raises(pl.Unsupported, match="replaced records"):
        pl.together(pl.Gaussian(2.0), pl.PureDP(0.1)).with_replacement(100, 3).epsilon(1e-6)
    with pytest.raises(pl.InvalidInput, match="sample of its own"):
        pl.together(pl.Gaussian(2.0), pl.Gaussian(2.0).poisson(0.1))


def test_without_a_sample_it_is_all_of_them() -> None:
    made = pl.together(pl.Gaussian(2.0), pl.PureDP(0.1) * 2)
    assert made * 3 == pl.Gaussian(2.0) * 3 + pl.PureDP(0.1) * 6
    assert made.epsilon(1e-6) == (pl.Gaussian(2.0) + pl.PureDP(0.1) * 2).epsilon(1e-6)


def test_coarser_pairs_lie_above_and_below() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(60))
    q = p[::-1]
    row = from_vectors([float(x) for x in p], [float(x) for x in q])
    loss = TableLoss.one(row)
    above, below = hull_above(loss, places_of(loss.largest, 9)), merged_below(row, 9)
    assert above is not None
    assert len(above.values) <= 2 * 9
    for eps in np.linspace(0.0, 4.0, 33):
        truth = float(np.maximum(p - math.exp(eps) * q, 0.0).sum())
        assert above.delta + math.exp(above.hockey_stick(float(eps))[1]) >= truth - 1e-15
        assert math.exp(below.hockey_stick(float(eps))[0]) <= truth + 1e-15


def test_what_lies_beyond_the_nodes_is_lifted_too() -> None:
    """The right tail of phi A^(1+c), A = e^lift (1 - r + r e^(dy - d^2/2)); and the left one under Q against P."""
    pair = NormalPair(((0.3, 0.7),), missed=0.7, lift=2.5)
    low, high = pair.ends
    with mpmath.workdps(30):

        def density(y: mpmath.mpf, c: float, back: bool) -> mpmath.mpf:
            a = mpmath.exp(2.5) * (0.7 + 0.3 * mpmath.exp(0.7 * y - 0.245))
            return mpmath.npdf(y) * a ** (-c if back else 1 + c)

        for c in (0.5, 2.0):
            for back in (False, True):
                ends = ([high + k / 4 for k in range(13)], [low - 3 + k / 4 for k in range(13)])
                tails = [mpmath.quad(functools.partial(density, c=c, back=back), end) for end in ends]
                assert sum(tails) <= pair.beyond(c, back) <= 40 * max(tails) + 1e-80
