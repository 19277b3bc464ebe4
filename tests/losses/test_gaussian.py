"""epsilon of Gaussian noise by its closed form, against 60 digits."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privloss as pl
from privloss.answers.pair import one_direction
from privloss.losses.closed import gaussian
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.composed import ComposedLoss
from privloss.numerics.normal import normal_epsilon


def log_delta(eps: float, mu_squared: float) -> mp.mpf:
    """Balle and Wang 2018, Thm. 5."""
    mu, e = mp.sqrt(mp.mpf(mu_squared)), mp.mpf(eps)
    return mp.log(mp.ncdf(mu / 2 - e / mu) - mp.e**e * mp.ncdf(-mu / 2 - e / mu))


@settings(max_examples=60)
@given(st.floats(-9, 9), st.floats(-200, -0.1))
def test_the_ends_lie_on_both_sides(log_mu_squared: float, level: float) -> None:
    mu_squared = math.exp(log_mu_squared)
    ends = GaussianLoss(mu_squared).closed_epsilon((level, level))
    if ends is None:  # nothing above 0, or too much cancels
        return
    with mp.workdps(60):
        assert log_delta(ends[1], mu_squared) <= level <= log_delta(ends[0], mu_squared)
    assert 0 < ends[1] - ends[0] < 1e-12 * ends[1]


def test_the_ends_hold_for_all_of_an_interval_of_delta() -> None:
    """delta less its mass at infinity is known as an interval only."""
    for mu_squared, level in ((0.4, -18.0), (30.0, -500.0), (1e-3, -20.0), (400.0, -3.0)):
        for width in (1e-14, 1e-12, 1e-10):
            ends = GaussianLoss(mu_squared).closed_epsilon((level * (1 + width), level))
            if ends is not None:
                with mp.workdps(60):
                    assert log_delta(ends[1], mu_squared) <= level * (1 + width)
                    assert log_delta(ends[0], mu_squared) >= level
        assert GaussianLoss(mu_squared).closed_epsilon((level * 1.01, level)) is None  # too wide to be tried
        assert GaussianLoss(mu_squared).closed_epsilon((level * (1 + 1e-14), level)) is not None


def test_near_nothing_the_ends_are_still_on_both_sides() -> None:
    """delta hardly depends on epsilon there, and what it is known to is all that counts."""
    for mu_squared in (1e-10, 1e-6, 1e-2, 1.0, 100.0):
        loss = GaussianLoss(mu_squared)
        for share in (0.5, 0.9, 0.99, 0.999):
            for width in (0.0, 1e-15, 4e-15):
                level = loss.hockey_stick(0.0)[0] + math.log(share)
                ends = loss.closed_epsilon((level * (1 + width), level))
                if ends is not None:
                    assert loss.hockey_stick(ends[1])[1] <= level * (1 + width)
                    assert loss.hockey_stick(ends[0])[0] >= level


@pytest.mark.parametrize("off", [-1e-13, -1e-14, 0.0, 1e-14, 1e-13])
def test_whatever_the_search_says_both_ends_are_proven(monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    monkeypatch.setattr(gaussian, "normal_epsilon", lambda log, mu: normal_epsilon(log, mu) * (1 + off))
    for mu_squared, level in ((0.4, -18.0), (30.0, -50.0), (1e-2, -20.0), (400.0, -3.0)):
        loss = GaussianLoss(mu_squared)
        for width in (0.0, 1e-13):
            low = level * (1 + width)
            ends = loss.closed_epsilon((low, level))
            assert ends is not None
            assert loss.hockey_stick(ends[1])[1] <= low
            assert loss.hockey_stick(ends[0])[0] >= level


def test_it_answers_wherever_doubles_can_tell() -> None:
    for mu_squared in (1e-6, 1e-3, 0.1, 10.0, 1000.0):
        for level in (-3.0, -30.0, -300.0):
            if GaussianLoss(mu_squared).hockey_stick(0.0)[0] > level:
                assert GaussianLoss(mu_squared).closed_epsilon((level, level)) is not None
    assert GaussianLoss(1.0).closed_epsilon((-0.1, -0.1)) is None  # epsilon is 0
    assert GaussianLoss(1.0).closed_epsilon((-math.inf, -math.inf)) is None


def test_it_is_the_line_of_the_contour() -> None:
    for mu_squared, level in ((0.4, math.log(1e-8)), (30.0, -500.0), (1e-3, -20.0), (2500.0, -14.0)):
        ends = GaussianLoss(mu_squared).closed_epsilon((level, level))
        read, _ = one_direction(ComposedLoss((GaussianLoss(mu_squared),)), (level, level), 1e-13)
        assert ends is not None
        assert max(ends[0], read.lower) <= min(ends[1], read.upper)


def test_plans_of_gaussian_noise_use_it() -> None:
    plan = pl.Gaussian(50.0) * 1000
    assert plan.epsilon(1e-8).method == "closed form"
    assert plan.epsilon(0.5).upper == 0 < plan.epsilon(1e-8).lower
    assert plan.epsilon(1e-8).relative_width < 1e-13
