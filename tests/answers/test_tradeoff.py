"""The supremum over eps behind a trade-off curve: both sides of the best point, and what lies beyond all points."""

from __future__ import annotations

import mpmath
import pytest

import privloss as pl


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
