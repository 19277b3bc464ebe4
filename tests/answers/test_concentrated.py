"""rho by branch and bound: the chord's bound against dense values, and planted errors."""

from __future__ import annotations

import numpy as np
import pytest

import privloss as pl
from privloss.answers import concentrated
from privloss.mechanisms.worst_neighbours import worst_neighbours


@pytest.mark.parametrize("plan", [pl.Laplace(10.3), pl.Laplace(0.3), pl.PureDP(0.05), pl.PureDP(3.0) * 2], ids=str)
def test_no_ratio_exceeds_the_bound_of_its_cell(plan: pl.Mechanism) -> None:
    loss = worst_neighbours(plan.as_plan()).loss
    edges = np.geomspace(1e-6, 1e6, 60)
    k = loss.log_mgf_upper(edges)
    bound = concentrated._below_chord(edges[:-1], edges[1:], k[:-1], k[1:])
    for i in range(len(edges) - 1):
        t = np.geomspace(edges[i], edges[i + 1], 40)
        assert (loss.log_mgf_lower(t) / (t * (t + 1))).max() <= bound[i]
    dense = np.geomspace(1e-8, 1e6, 20_000)
    best = float((loss.log_mgf_lower(dense) / (dense * (dense + 1))).max())
    rho = plan.zcdp()
    assert best <= rho.upper
    assert rho.relative_width < 2e-10


def test_a_parabola_attains_its_bound() -> None:
    """K = rho t(t+1): every cell's bound is rho up to the square of its width."""
    a, b = np.array([0.5, 10.0]), np.array([0.5 * 1.01, 10.1])
    bound = concentrated._below_chord(a, b, 0.3 * a * (a + 1), 0.3 * b * (b + 1))
    assert (bound >= 0.3).all()
    assert (bound <= 0.3 * (1 + 1e-4)).all()
