"""Laplace against quadrature in 30 digits."""

from __future__ import annotations

import mpmath as mp
import pytest

import privloss as pl


def one(lam: mp.mpf, eps: mp.mpf) -> mp.mpf:
    if eps >= lam:
        return mp.mpf(0)
    return 1 - mp.e ** ((eps - lam) / 2) if eps > -lam else 1 - mp.e**eps


def two(lam: mp.mpf, eps: mp.mpf) -> mp.mpf:
    """delta of two releases: the law of one loss (atoms at +-lam, density between) over delta of the other."""
    atoms = one(lam, eps - lam) / 2 + mp.e**-lam / 2 * one(lam, eps + lam)
    kinks = sorted({-lam, lam, *(x for x in (eps - lam, eps + lam) if -lam < x < lam)})
    density = mp.quad(lambda x: mp.e ** (-(lam - x) / 2) / 4 * one(lam, eps - x), kinks)
    return atoms + density


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 20.0])
def test_one_and_two_releases(scale: float) -> None:
    with mp.workdps(30):
        lam = mp.mpf(1) / mp.mpf(scale)
        for share in (0.0, 0.2, 0.7, 0.99):
            eps = float(lam) * share
            single = pl.Laplace(scale).delta(eps)
            assert mp.mpf(single.lower) <= one(lam, mp.mpf(eps)) <= mp.mpf(single.upper)
            assert single.relative_width < 1e-12
            double = (pl.Laplace(scale) * 2).delta(2 * eps)
            assert mp.mpf(double.lower) <= two(lam, mp.mpf(2 * eps)) <= mp.mpf(double.upper)
            assert double.relative_width < 1e-3


def test_sensitivity_scales() -> None:
    assert pl.Laplace(10.0, sensitivity=2.0).epsilon(1e-3) == pl.Laplace(5.0).epsilon(1e-3)
    assert pl.Laplace(4.0).epsilon(0.0).upper == pytest.approx(0.25)
