"""The checker's pairs of noise in units of the clipping bound, and of noisy maxima."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from flint import ctx

import privloss as pl
from privloss.adjacency import ADJACENCIES
from privloss.certificates.pairs.plan import plan_pairs

DELTA = 1e-5
BY_MULTIPLIER: dict[str, tuple[pl.Mechanism, Callable[[int], pl.Mechanism]]] = {
    "laplace": (pl.Laplace(noise_multiplier=2.0), lambda s: pl.Laplace(scale=2.0, sensitivity=s)),
    "discrete laplace": (
        pl.DiscreteLaplace(noise_multiplier=2.0),
        lambda s: pl.DiscreteLaplace(scale=2.0, sensitivity=s),
    ),
    "discrete gaussian": (
        pl.DiscreteGaussian(noise_multiplier=1.0),
        lambda s: pl.DiscreteGaussian(sigma=1.0, sensitivity=s),
    ),
    "truncated laplace": (
        pl.TruncatedLaplace(noise_multiplier=2.0, bound=50.0),
        lambda s: pl.TruncatedLaplace(scale=2.0, bound=50.0, sensitivity=s),
    ),
    "truncated gaussian": (
        pl.TruncatedGaussian(noise_multiplier=3.0, bound=25.0),
        lambda s: pl.TruncatedGaussian(sigma=3.0, bound=25.0, sensitivity=s),
    ),
}


def _same_and_right(given: pl.Plan, absolute: pl.Plan) -> None:
    found, other, floating = pl.certify(given, delta=DELTA), pl.certify(absolute, delta=DELTA), given.epsilon(DELTA)
    assert found.data["claim"] == other.data["claim"]
    assert found.bound.lower <= floating.upper
    assert floating.lower <= found.bound.upper
    assert pl.verify(found).holds


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", BY_MULTIPLIER)
def test_noise_multiplier(name: str, adjacency: str) -> None:
    """Everything is in units of the bound on a contribution, of which replace-one swaps two."""
    given, absolute = BY_MULTIPLIER[name]
    size, uses = 2 if adjacency == "replace-one" else 1, 30 if "truncated" in name else 3
    _same_and_right((given * uses).under(adjacency), (absolute(size) * uses).under(adjacency))


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
@pytest.mark.parametrize("name", BY_MULTIPLIER)
def test_noise_multiplier_on_a_poisson_sample(name: str, adjacency: str) -> None:
    given, absolute = BY_MULTIPLIER[name]
    _same_and_right((given.poisson(0.1) * 200).under(adjacency), (absolute(1).poisson(0.1) * 200).under(adjacency))


@pytest.mark.parametrize("name", ["laplace", "discrete laplace", "truncated laplace"])
def test_noise_multiplier_on_a_batch_of_fixed_size(name: str) -> None:
    given, absolute = BY_MULTIPLIER[name]
    steps = (mechanism.fixed_size(1000, 50) * 300 for mechanism in (given, absolute(2)))
    _same_and_right(*(plan.under("replace-one") for plan in steps))


def test_no_noise_is_refused() -> None:
    for plan in (pl.Laplace(noise_multiplier=0.0) * 1, pl.DiscreteLaplace(noise_multiplier=0.0) * 1):
        with pytest.raises(pl.Unsupported):
            pl.certify(plan, delta=DELTA)


def _behind(noise: str, e: float) -> float:
    """P that the candidate behind by e/2 wins."""
    return math.exp(-e / 2) / 2 if noise == "exponential" else (2 + e / 2) * math.exp(-e / 2) / 4


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_noisy_max(noise: str) -> None:
    """The Laplace pair of ratio epsilon, below that of any epsilon-DP mechanism; attained by two candidates."""
    plan = pl.NoisyMax(0.1, noise) * 100
    found, floating = pl.certify(plan, delta=1e-6), plan.epsilon(1e-6)
    assert found.bound.upper == pytest.approx(4.6926674146801943, rel=1e-12)
    assert found.bound.upper == pl.certify(pl.Laplace(10.0) * 100, delta=1e-6).bound.upper
    assert (
        found.bound.upper < pl.certify(pl.PureDP(0.1) * 100, delta=1e-6).bound.lower == pytest.approx(4.7746, rel=1e-4)
    )
    assert found.bound.lower <= floating.upper
    assert floating.lower <= found.bound.upper
    assert pl.verify(found).holds
    one = pl.certify(pl.NoisyMax(0.8, noise) * 1, epsilon=0.0).bound
    assert one.lower == pytest.approx(1 - 2 * _behind(noise, 0.8), rel=1e-12)


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_noisy_max_on_samples(noise: str) -> None:
    """Poisson samples and batches: the sampled Laplace pair above, the sampled candidates below."""
    behind, laplace = _behind(noise, 0.5), pl.Laplace(2.0)
    coins = pl.Custom([1 - behind, behind], [behind, 1 - behind]).poisson(0.05) * 100
    attained = pl.certify(coins, delta=DELTA).bound
    for step, twin, adjacency in (
        (pl.NoisyMax(0.5, noise).poisson(0.05), laplace.poisson(0.05), "add-remove"),
        (pl.NoisyMax(0.5, noise).fixed_size(1000, 50), laplace.fixed_size(1000, 50), "replace-one"),
    ):
        plan, other = (step * 100).under(adjacency), (twin * 100).under(adjacency)
        found, floating = pl.certify(plan, delta=DELTA), plan.epsilon(DELTA)
        assert found.bound.upper == pytest.approx(pl.certify(other, delta=DELTA).bound.upper, rel=1e-9)
        assert found.bound.lower == pytest.approx(attained.lower, rel=1e-9)
        assert found.bound.lower <= floating.upper
        assert floating.lower <= found.bound.upper
        assert pl.verify(found).holds


@pytest.mark.parametrize("noise", ["gumbel", "exponential", "laplace"])
def test_a_choice_that_ignores_its_scores(noise: str) -> None:
    for step in (pl.NoisyMax(0.0, noise), pl.NoisyMax(0.0, noise).poisson(0.5)):
        assert pl.certify(step * 5, delta=DELTA).bound.upper <= 1e-9
        with ctx.workprec(100):
            sides = plan_pairs((step * 5).to_dict(), "add-remove")
        assert all(float(loss) == 0 for pair, _ in sides.upper["P against Q"] for _, loss in pair.atoms)
