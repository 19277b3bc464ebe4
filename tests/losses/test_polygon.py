"""Polygons: curves that touch zero early, promises in any order, points close together."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import privloss as pl
from privloss.losses.table.polygon import privacy_profile, trade_off


def test_a_curve_that_is_zero_before_one() -> None:
    """From where f is 0 on nothing is left to test: the corner (0.9, 0), not (1, 0), is the last one; it gives the
    inverse a mass of 0.1 that no error rate can undercut, as f(0) = 0.9 does for f itself."""
    early, late = trade_off([0.0, 0.3, 0.9, 1.0], [0.9, 0.3, 0.0, 0.0]), trade_off([0.0, 0.3, 0.9], [0.9, 0.3, 0.0])
    assert early.delta == late.delta == pytest.approx(0.1)
    assert np.array_equal(early.values, late.values)
    for eps in (0.0, 0.3, 0.6):
        h = max(1 - y - np.exp(eps) * x for x, y in ((0.0, 0.9), (0.3, 0.3), (0.9, 0.0)))
        found = pl.TradeOff([0.0, 0.3, 0.9, 1.0], [0.9, 0.3, 0.0, 0.0]).delta(eps)
        assert found.lower - 1e-14 <= h <= found.upper + 1e-14


def test_a_worse_promise_at_a_larger_eps_is_no_promise() -> None:
    """(0.5, 0.01)-DP implies (1, 0.01)-DP, whatever else is promised there."""
    found = pl.PrivacyProfile([0.5, 1.0], [0.01, 0.2])
    for eps in (0.5, 0.7, 1.0, 5.0):
        assert found.delta(eps).lower <= 0.01
    assert pl.PrivacyProfile([0.5, 1.0], [0.01, 0.2]).delta(5.0).upper == pytest.approx(0.01)


@pytest.mark.parametrize("eps", [0.0, 1e-6, 0.3, 2.0])
@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-13])
def test_promises_close_together_are_both_kept(eps: float, gap: float) -> None:
    """The profile at a promised eps is what was promised, and between two promises it is on their chord."""
    second = eps + gap
    table = privacy_profile([eps, second], [1e-3, 1e-3 - gap / 4])
    with mpmath.workdps(40):
        for e, d in ((eps, 1e-3), (second, 1e-3 - gap / 4)):
            low, high = (mpmath.exp(end) + table.delta for end in table.hockey_stick(e))
            assert low - mpmath.mpf("1e-18") <= d <= high + mpmath.mpf("1e-18")
