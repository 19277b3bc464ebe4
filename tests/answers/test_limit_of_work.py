"""A limit of work ends in a sound interval that says so, wherever on the way it is reached."""

from __future__ import annotations

import pytest

import privloss as pl
from privloss.answers import tradeoff
from privloss.numerics import work


def short_answers(plan: pl.Plan, eps: float, delta: float, limit: float) -> list[pl.Bound]:
    """With little work, around those with all of it."""
    full = plan.delta(eps), plan.epsilon(delta)
    short = plan.delta(eps, work=limit), plan.epsilon(delta, work=limit)
    for wide, narrow in zip(short, full, strict=True):
        assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper
    return list(short)


@pytest.mark.parametrize("limit", [1.0, 1e4, 1e6])
def test_outcomes_on_a_grid(limit: float) -> None:
    for short in short_answers(pl.DiscreteGaussian(2.0).poisson(0.01) * 5, 0.1, 1e-4, limit):
        assert any("the limit of work" in note for note in short.notes)


@pytest.mark.parametrize("limit", [1.0, 1e6, 1e7])
def test_the_last_resort_of_a_sampled_density(limit: float) -> None:
    """Single points of a density's transform are always to be had: the bounds that are left read nothing else."""
    for short in short_answers(pl.Laplace(0.345).poisson(0.005) * 765, 1.0, 1e-6, limit):
        assert any("the limit of work" in note for note in short.notes)


@pytest.mark.parametrize("limit", [1.0, 1e6, 1e7])
@pytest.mark.parametrize("uses", [1, 3])
def test_a_profile_with_thresholds_to_be_searched(uses: int, limit: float) -> None:
    """One use of noise on a batch has a profile whose thresholds are searched: it is answered without work, too."""
    plan = pl.Plan([(pl.Gaussian(2.0).fixed_size(n=20, m=3), uses)], adjacency="replace-one")
    short_answers(plan, 0.5, 1e-3, limit)


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
