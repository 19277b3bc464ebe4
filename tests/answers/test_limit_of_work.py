"""A limit of work ends in a sound interval that says so, wherever on the way it is reached."""

from __future__ import annotations

import pytest

import privloss as pl
from privloss.answers import tradeoff
from privloss.numerics import work


@pytest.mark.parametrize("limit", [1.0, 1e4, 1e6])
def test_outcomes_on_a_grid(limit: float) -> None:
    plan = pl.DiscreteGaussian(2.0).poisson(0.01) * 5
    for short, full in (
        (plan.delta(0.1, work=limit), plan.delta(0.1)),
        (plan.epsilon(1e-4, work=limit), plan.epsilon(1e-4)),
    ):
        assert short.lower <= full.lower <= full.upper <= short.upper
        assert any("the limit of work" in note for note in short.notes)


@pytest.mark.parametrize("limit", [1.0, 1e6, 1e7])
def test_the_last_resort_of_a_sampled_density(limit: float) -> None:
    """Single points of a density's transform are always to be had: the bounds that are left read nothing else."""
    plan = pl.Laplace(0.345).poisson(0.005) * 765
    for short, full in (
        (plan.delta(1.0, work=limit), plan.delta(1.0)),
        (plan.epsilon(1e-6, work=limit), plan.epsilon(1e-6)),
    ):
        assert short.lower <= full.lower <= full.upper <= short.upper
        assert any("the limit of work" in note for note in short.notes)


@pytest.mark.parametrize("limit", [1.0, 1e6, 1e7])
@pytest.mark.parametrize("uses", [1, 3])
def test_a_profile_with_thresholds_to_be_searched(uses: int, limit: float) -> None:
    """One use of noise on a batch has a profile that costs work: where none is left, it says nothing."""
    plan = pl.Plan([(pl.Gaussian(2.0).fixed_size(n=20, m=3), uses)], adjacency="replace-one")
    for short, full in (
        (plan.delta(0.5, work=limit), plan.delta(0.5)),
        (plan.epsilon(1e-3, work=limit), plan.epsilon(1e-3)),
    ):
        assert short.lower <= full.lower <= full.upper <= short.upper


def test_a_trade_off_curve_has_a_limit_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """All its questions together; where it is reached, the curve says so, and is sound."""
    plan = pl.Gaussian(1.0).poisson(0.01) * 1000
    exactly = plan.tradeoff(0.05)
    assert exactly.notes == ()
    monkeypatch.setattr(tradeoff, "DEFAULT_WORK", 1e4)
    short = plan.tradeoff(0.05)
    assert short.lower <= exactly.lower <= exactly.upper <= short.upper
    assert short.notes == (tradeoff.REACHED,)
    assert work.DEFAULT_WORK == 2e9
