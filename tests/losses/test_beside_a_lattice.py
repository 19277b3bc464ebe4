"""What lives on a lattice of its own resonates beyond the end of that lattice's line: beside other steps, whose lines
go on, it claims no decay there."""

from __future__ import annotations

import numpy as np
import pytest

import privloss as pl
from privloss.mechanisms.worst_neighbours import worst_neighbours

SIGMA = 1.021874664818285
SAMPLED = pl.Gaussian(0.8081253831418748).poisson(0.0238452175103075) * 5


@pytest.mark.parametrize(("uses", "eps"), [(1, 1.0), (5, 20.0), (13, 58.49390403494067)])
def test_more_steps_more_delta(uses: int, eps: float) -> None:
    plan = pl.DiscreteGaussian(SIGMA, 2) * uses
    alone, both = plan.delta(eps), (plan + SAMPLED).delta(eps)
    assert alone.lower <= both.lower
    assert both.relative_width < 1e-9


def test_against_a_sum_over_the_outcomes() -> None:
    """delta of both is the mean of delta of the one over the outcomes of the other, here at 5 uses."""
    sigma, sensitivity, uses, eps = SIGMA, 2, 5, 20.0
    k = np.arange(-18, 19)
    once = np.exp(-0.5 * (k / sigma) ** 2)
    once /= once.sum()
    masses = np.ones(1)
    for _ in range(uses):
        masses = np.convolve(masses, once)
    losses = sensitivity * (2 * np.arange(-18 * uses, 18 * uses + 1) + sensitivity * uses) / (2 * sigma**2)
    low = high = 0.0
    for loss, mass in zip(losses, masses, strict=True):
        if mass < 1e-16:
            continue
        found = SAMPLED.delta(abs(eps - loss)) if loss < eps else None
        if found is not None:
            low, high = low + mass * found.lower, high + mass * found.upper
        else:  # H_a(P, Q) = a H_(1/a)(Q, P) + 1 - a, and no more than the larger direction is known of it
            grown = np.exp(eps - loss)
            low += mass * (1 - grown)
            high += mass * min(1 - grown + grown * SAMPLED.delta(loss - eps).upper, 1.0)
    both = (pl.DiscreteGaussian(sigma, sensitivity) * uses + SAMPLED).delta(eps)
    assert low <= both.upper
    assert both.lower <= high + 1e-12


def test_only_the_line_that_ends_falls() -> None:
    loss = worst_neighbours((pl.DiscreteGaussian(SIGMA, 2) * 13).as_plan(), None).loss
    height = 2 * np.pi * SIGMA**2 / 2  # a full turn: |M| is what it is at 0
    turned, start = loss.vertical(0.5).line(np.array([0.0, height]), 1e-12).log_modulus
    assert turned == pytest.approx(start, rel=1e-9)
    assert loss.vertical(0.5).decay(height) >= -1e-9
    assert loss.lattice_vertical(0.5).decay(0.5 * height) < -1.0
