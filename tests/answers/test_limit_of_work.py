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


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_the_last_resort_needs_none(scale: float) -> None:
    """It ended in an internal error: moments of a density whose nodes are refined were charged."""
    plan = pl.Laplace(scale).poisson(0.05) * 400
    for limit in (1.0, 1e5, 2e7):
        assert 0 <= plan.delta(50.0, work=limit).upper <= 1
        assert plan.epsilon(1e-6, work=limit).upper <= 400 / scale


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
