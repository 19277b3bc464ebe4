"""What lives on a lattice of its own resonates beyond the end of that lattice's line: beside other steps, whose lines
go on, it claims no decay there."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

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


def _noise() -> tuple[pl.Plan, np.ndarray, np.ndarray]:
    """Five uses of discrete noise: the plan, its losses and their masses."""
    k = np.arange(-18, 19)
    once = np.exp(-0.5 * (k / SIGMA) ** 2)
    masses = np.ones(1)
    for _ in range(5):
        masses = np.convolve(masses, once / once.sum())
    losses = 2 * (2 * np.arange(-18 * 5, 18 * 5 + 1) + 2 * 5) / (2 * SIGMA**2)
    return pl.DiscreteGaussian(SIGMA, 2) * 5, losses, masses


def _boxes() -> tuple[pl.Plan, np.ndarray, np.ndarray]:
    k = np.arange(401)
    return pl.PureDP(1.0) * 400, 2.0 * k - 400, binom.pmf(k, 400, 1 / (1 + np.exp(-1)))


@pytest.mark.parametrize(("made", "eps"), [(_noise, 20.0), (_boxes, 220.0)])
def test_against_a_sum_over_the_outcomes(
    made: Callable[[], tuple[pl.Plan, np.ndarray, np.ndarray]], eps: float
) -> None:
    """delta of both is the mean of delta of the one over the outcomes of the other."""
    plan, losses, masses = made()
    seen = (masses > 1e-13) & (losses > eps - 12)  # nothing to speak of is left out
    away = eps - losses[seen]
    low = high = 0.0
    for x, mass, found in zip(away.tolist(), masses[seen].tolist(), SAMPLED.delta(np.abs(away)), strict=True):
        if x > 0:
            low, high = low + mass * found.lower, high + mass * found.upper
        else:  # H_a(P, Q) = a H_(1/a)(Q, P) + 1 - a
            grown = math.exp(x)
            low, high = low + mass * (1 - grown), high + mass * (1 - grown + grown * found.upper)
    both = (plan + SAMPLED).delta(eps)
    assert low * (1 - 1e-9) <= both.upper
    assert both.lower <= high * (1 + 1e-9) + 1e-12


def test_only_the_line_that_ends_falls() -> None:
    loss = worst_neighbours((pl.DiscreteGaussian(SIGMA, 2) * 13).as_plan(), None).loss
    height = 2 * np.pi * SIGMA**2 / 2  # a full turn: |M| is what it is at 0
    turned, start = loss.vertical(0.5).line(np.array([0.0, height]), 1e-12).log_modulus
    assert turned == pytest.approx(start, rel=1e-9)
    assert loss.vertical(0.5).decay(height) >= -1e-9
    assert loss.lattice_vertical(0.5).decay(0.5 * height) < -1.0
