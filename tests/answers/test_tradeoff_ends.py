"""The supremum over eps behind a trade-off curve: both sides of the best point, and what lies beyond all points."""

from __future__ import annotations

import math
import random

import mpmath
import pytest

import privloss as pl


def test_roundings_of_the_curve_are_outward() -> None:
    """f(a) = 1 - e^eps a left of the corner."""
    draw = random.Random(1)
    with mpmath.workdps(40):
        for eps in (0.3, 1.0, 5.0, 20.0):
            for _ in range(5):
                fpr = draw.random() / (1 + math.exp(eps))
                found = pl.PureDP(eps).tradeoff(fpr)
                assert found.lower <= 1 - mpmath.exp(mpmath.mpf(eps)) * mpmath.mpf(fpr) <= found.upper


@pytest.mark.parametrize("swapped", [False, True])
def test_certain_disclosure_in_either_direction(swapped: bool) -> None:
    p, q = [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]
    found = (pl.Custom(q, p) if swapped else pl.Custom(p, q)).tradeoff(0.0)
    assert found.lower <= 0.5 <= found.upper
    assert found.width < 1e-13


def test_certain_disclosure_of_a_bound_alone_is_not_claimed() -> None:
    """The bound for draws with replacement has infinite losses; Gaussian noise never has."""
    assert pl.Gaussian(1.0).with_replacement(100, 10).tradeoff(0.0).upper == 1


@pytest.mark.parametrize(("mu", "fpr"), [(38.3, 1e-321), (37.4, 1e-310), (37.4, 1e-306)])
def test_rates_below_the_last_point_of_the_search(mu: float, fpr: float) -> None:
    """The best eps is above 700: f(a) = Phi(z - mu), z the upper quantile of a."""
    with mpmath.workdps(40):
        z = mpmath.findroot(lambda y: mpmath.log(mpmath.erfc(y / mpmath.sqrt(2)) / 2 / mpmath.mpf(fpr)), 37.8)
        truth = mpmath.ncdf(z - mu)
        found = pl.GDP(mu).tradeoff(fpr)
        assert found.lower <= truth <= found.upper


@pytest.mark.parametrize("rho", [0.1, 1000.0])
def test_finite_divergences_disclose_nothing_for_sure(rho: float) -> None:
    """A test without false positives finds nothing: outputs that only one side has would make a divergence infinite."""
    found = pl.ZCDP(rho).tradeoff(0.0)
    assert found.upper == 1
