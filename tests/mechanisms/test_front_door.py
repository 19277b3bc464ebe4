"""Ways in: one shared sample, noise relative to a clipping norm, what is supported, one word for one thing."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import privloss as pl
from privloss.adjacency import ADJACENCIES


def test_gaussians_on_one_shared_sample_are_one_gaussian() -> None:
    shared = (pl.Gaussian(1.1) * 4).poisson(0.01)
    assert shared.epsilon(1e-6).upper == pytest.approx(pl.Gaussian(0.55).poisson(0.01).epsilon(1e-6).upper, rel=1e-12)
    assert shared.epsilon(1e-6).lower > 3.3
    assert (pl.Gaussian(1.1).poisson(0.01) * 4).epsilon(1e-6).upper < 0.35  # four independent samples: another run
    mixed = (pl.Gaussian(sigma=2.0, sensitivity=1.0) + pl.Gaussian(sigma=3.0, sensitivity=2.0)).fixed_size(100, 5)
    (step, count), *none = mixed.steps
    assert (count, none) == (1, [])
    mu = math.hypot(1 / 2, 2 / 3)
    assert mixed.epsilon(1e-5).lower <= pl.Gaussian(sigma=1.0, sensitivity=mu).fixed_size(100, 5).epsilon(1e-5).upper
    assert step.mechanism.step("add-remove").distances.replace >= 2 * mu


@pytest.mark.parametrize("count", [1, 3, 10**6])
@pytest.mark.parametrize("noise", [0.3, 1.1, 7.0])
def test_less_noise_never_more(noise: float, count: int) -> None:
    """The noise of the one Gaussian is rounded down: 1/z^2 >= sum of 1/z_i^2 in exact arithmetic."""
    from fractions import Fraction

    (made, _), *_ = (pl.Gaussian(noise) * count).poisson(0.5).steps
    z = made.mechanism.noise_multiplier
    assert 1 / Fraction(z) ** 2 >= count / Fraction(noise) ** 2


def test_a_sample_of_a_sample_is_refused_with_what_is_true() -> None:
    with pytest.raises(pl.Unsupported, match="a sample of its own") as found:
        (pl.Gaussian(1.0).poisson(0.1) * 2).poisson(0.1)
    assert ".poisson(q) +" not in str(found.value)


def test_no_noise_among_others_on_one_sample() -> None:
    assert (pl.Gaussian(1.0) + pl.Gaussian(0.0)).poisson(0.5).epsilon(1e-6).upper == math.inf


RELATIVE: list[tuple[Callable[[], pl.Mechanism], Callable[[int], pl.Mechanism]]] = [
    (lambda: pl.Laplace(noise_multiplier=2.0), lambda d: pl.Laplace(2.0, float(d))),
    (lambda: pl.DiscreteLaplace(noise_multiplier=2.0), lambda d: pl.DiscreteLaplace(2.0, d)),
    (lambda: pl.DiscreteGaussian(noise_multiplier=2.0), lambda d: pl.DiscreteGaussian(2.0, d)),
    (lambda: pl.TruncatedLaplace(noise_multiplier=2.0, bound=40.0), lambda d: pl.TruncatedLaplace(2.0, 40.0, float(d))),
    (lambda: pl.TruncatedGaussian(noise_multiplier=2.0, bound=9.0), lambda d: pl.TruncatedGaussian(2.0, 9.0, float(d))),
    (lambda: pl.Gaussian(noise_multiplier=2.0), lambda d: pl.Gaussian(sigma=2.0, sensitivity=float(d))),
]


@pytest.mark.parametrize(("relative", "absolute"), RELATIVE)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_noise_multiplier_doubles_under_replace_one(
    relative: Callable[[], pl.Mechanism], absolute: Callable[[int], pl.Mechanism], adjacency: str
) -> None:
    apart = 2 if adjacency == "replace-one" else 1
    assert relative().epsilon(1e-3, adjacency=adjacency) == absolute(apart).epsilon(1e-3, adjacency=adjacency)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pl.Laplace(),
        lambda: pl.Laplace(1.0, noise_multiplier=1.0),
        lambda: pl.Laplace(noise_multiplier=1.0, sensitivity=1.0),
        lambda: pl.DiscreteLaplace(noise_multiplier=1.0, sensitivity=2),
        lambda: pl.DiscreteGaussian(noise_multiplier=-1.0),
        lambda: pl.TruncatedLaplace(noise_multiplier=1.0),
        lambda: pl.TruncatedGaussian(sigma=0.0, bound=1.0),
    ],
)
def test_noise_said_twice_or_not_at_all(call: Callable[[], object]) -> None:
    with pytest.raises(pl.InvalidInput):
        call()


def test_supported_says_why_not() -> None:
    plan = pl.Gaussian(1.0).shuffle(10) * 3
    assert not plan.supported()
    assert "add-remove" in plan.supported().reason
    assert plan.supported("zero-out")
    assert plan.under("replace-one").supported().answered
    with pytest.raises(pl.InvalidInput, match="adjacency = 'both'"):
        plan.supported("both")


def test_plan_of_takes_mechanisms_and_plans() -> None:
    assert pl.Plan.of(pl.Laplace(1)) == pl.Laplace(1).as_plan()
    assert pl.Plan.of(pl.Laplace(1) * 2, pl.Gaussian(1), (pl.Laplace(1), 3)) == pl.Laplace(1) * 5 + pl.Gaussian(1)


def test_one_word_for_shuffling() -> None:
    assert pl.Gaussian(1.0).shuffle(3) == pl.Gaussian(1.0).shuffled(3)
    assert pl.Gaussian(1.0).shuffle(3).to_dict()["sampling"] == {"scheme": "shuffle", "steps": 3}
    sizes = {"dataset_size": 100, "batch_size": 10, "epochs": 2, "noise_multiplier": 1.0, "adjacency": "zero-out"}
    assert pl.dp_sgd(**sizes, sampling="shuffled").plan == pl.dp_sgd(**sizes, sampling="shuffle").plan
