"""Settings that users reported as crashing, hanging or wrong elsewhere."""

from __future__ import annotations

import math

import pytest

import privloss as pl

# sigma, rate, steps, delta, expected epsilon (to the digits known)
KNOWN = [
    (0.8, 0.125, 1000, 1e-6, 56.7, 0.05),
    (1.0, 0.2, 10, 1e-5, 4.98, 0.005),
    (1.0, 0.2, 500, 1e-5, 38.2, 0.05),
    (4.0, 0.00033, 10_000, 1.1e-18, 0.067, 0.001),
    (4.0, 0.00033, 10_000, 1.13e-18, 0.067, 0.001),
    (4.0, 0.00038, 10_000, 1.13e-18, 0.078, 0.001),
    (3.0, 0.2, 50, 1 / 48000, 1.96, 0.005),
    (1.5, 0.04, 2250, 1e-5, 6.77, 0.01),
    (1.3, 1 / 60, 900, 1e-5, 1.89, 0.005),
    (1.0, 0.01, 100, 1e-5, 0.718, 0.0005),
    (1.0, 0.08, 100, 1e-5, 5.61, 0.005),
    (57.0, 0.1, 128, 1e-9, 0.1, 0.001),
]


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta", "expected", "within"), KNOWN)
def test_known(sigma: float, rate: float, steps: int, delta: float, expected: float, within: float) -> None:
    bound = (pl.Gaussian(sigma).poisson(rate) * steps).epsilon(delta)
    assert bound.upper == pytest.approx(expected, abs=within)
    assert bound.relative_width < 1e-6


def test_zero_is_the_right_answer() -> None:
    assert pl.Gaussian(1.0).poisson(0.00105).epsilon(1e-3).upper == 0
    assert pl.Gaussian(1.2).poisson(0.2).epsilon(0.08).upper == 0
    assert pl.Gaussian(1.2).poisson(0.2).epsilon(0.2).upper == 0
    assert pl.Gaussian(1.2).poisson(0.2).delta(0.0).upper == pytest.approx(0.0646, abs=1e-4)


def test_the_mean_loss_survives_small_sigma() -> None:
    kl = pl.Gaussian(0.2).poisson(0.00011878).kl()
    assert kl.lower > 1e-4
    assert kl.relative_width < 1e-9


def test_single_release_noise() -> None:
    assert pl.Gaussian(243.785).epsilon(1e-5).upper == pytest.approx(0.01, rel=1e-5)


def test_boundaries() -> None:
    assert pl.Gaussian(1.0).poisson(1.0).epsilon(1e-6) == pl.Gaussian(1.0).epsilon(1e-6)
    assert pl.Gaussian(0.0).epsilon(1e-6).lower == math.inf
    assert pl.Gaussian(0.0).zcdp().lower == math.inf
    assert pl.Laplace(0.0).epsilon(0.5).lower == math.inf
    assert pl.Gaussian(1.0).poisson(0.0).epsilon(0.0).upper == 0
    assert pl.Gaussian(1.0).epsilon(0.0).lower == math.inf
    assert pl.Gaussian(1.0).epsilon(1.0).upper == 0
    assert pl.PureDP(0.5).epsilon(0.0).upper == pytest.approx(0.5)
    assert pl.ApproxDP(1.0, 1e-5).epsilon(1e-5).upper == pytest.approx(1.0)
    assert pl.ApproxDP(1.0, 1e-5).epsilon(0.99e-5).lower == math.inf
    assert pl.ApproxDP(0.0, 1e-5).epsilon(1e-5).upper == 0
    assert pl.PureDP(0.0).delta(0.0).upper == 0


def test_delta_beyond_709_is_finite() -> None:
    bound = (pl.Gaussian(0.02)).delta(2000.0)
    assert 0 <= bound.lower <= bound.upper < 1


def test_noise_with_no_noise_left_but_sampling() -> None:
    """Without noise a Poisson sample reveals the record exactly when it is in it."""
    shown = pl.Gaussian(0.0).poisson(0.01) * 10
    assert 1 - 0.99**10 in shown.delta(0.0)
    assert shown.epsilon(0.05).lower == math.inf
    assert shown.epsilon(0.2).upper == 0


def test_less_noise_never_costs_less() -> None:
    assert pl.Gaussian(0.01).epsilon(1e-6).lower > pl.Gaussian(1.0).epsilon(1e-6).upper


def test_a_rounding_of_delta_is_not_forgiven() -> None:
    """delta_inf of two boxes and delta agree to the last digit: the answer says that both are possible."""
    bound = (pl.ApproxDP(0.0, 0.1) * 2).epsilon(0.19)
    assert bound.lower == 0
    assert bound.upper == math.inf


def test_extremes_of_one_release() -> None:
    for sigma in (1e-160, 1e-3, 1e150):
        for delta in (0.4, 1e-12, 1e-300):
            bound = pl.Gaussian(sigma).epsilon(delta)
            assert 0 <= bound.lower <= bound.upper
