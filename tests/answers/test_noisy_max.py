"""What two candidates attain, bare and on a sample, and what no end may claim beyond it."""

from __future__ import annotations

import mpmath
import pytest

import privloss as pl

CASES = [(noise, eps) for noise in ("exponential", "laplace") for eps in (0.3, 1.5, 2.5, 8.0)]


def advantage(noise: str, eps: float) -> mpmath.mpf:
    """1 - 2b, b the probability that the candidate behind by eps/2 wins."""
    half = mpmath.mpf(eps) / 2
    tail = mpmath.exp(-half) / 2 if noise == "exponential" else (2 + half) * mpmath.exp(-half) / 4
    return 1 - 2 * tail


@pytest.mark.parametrize(("noise", "eps"), CASES)
def test_noisy_max_claims_what_two_candidates_attain(noise: str, eps: float) -> None:
    """Two candidates change places: total variation 1 - 2b once, and twice no more (randomised response)."""
    with mpmath.workdps(30):
        truth = advantage(noise, eps) * (1 + mpmath.mpf("1e-12"))
        assert pl.NoisyMax(eps, noise).total_variation().lower <= truth
        assert (pl.NoisyMax(eps, noise) * 2).total_variation().lower <= truth
        assert pl.NoisyMax(eps, noise).total_variation().upper >= advantage("exponential", eps)


@pytest.mark.parametrize("rate", [0.1, 0.75])
@pytest.mark.parametrize(("noise", "eps"), CASES)
def test_noisy_max_on_a_sample_claims_what_two_candidates_attain(noise: str, eps: float, rate: float) -> None:
    """A sample scales the total variation by its rate."""
    with mpmath.workdps(30):
        for step, adjacency in (
            (pl.NoisyMax(eps, noise).poisson(rate), "add-remove"),
            (pl.NoisyMax(eps, noise).fixed_size(40, int(40 * rate)), "replace-one"),
        ):
            found = step.total_variation(adjacency=adjacency)
            assert found.lower <= rate * advantage(noise, eps) * (1 + mpmath.mpf("1e-12"))
            assert found.upper >= rate * advantage("exponential", eps) * (1 - mpmath.mpf("1e-12"))
