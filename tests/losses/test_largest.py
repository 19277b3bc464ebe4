"""The largest loss, rounded down: only over losses that surely occur, by all roundings, in the right direction."""

from __future__ import annotations

import math
import random

import mpmath
import numpy as np
import pytest

import privloss as pl
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.composed import ComposedLoss
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.table import Table
from privloss.mechanisms.worst_neighbours import worst_neighbours


def contains(plan: pl.Plan | pl.Mechanism, truth: mpmath.mpf) -> None:
    found = plan.epsilon(0.0)
    assert mpmath.mpf(found.lower) <= truth <= mpmath.mpf(found.upper)


def test_values_without_mass_are_not_reached() -> None:
    table = Table(np.array([3.0, 1.0, -1.0]), np.array([0.0, 0.7, 0.3]))
    assert table.largest >= 3
    assert table.largest_lower <= 1


def test_absolute_roundings_of_small_losses_are_charged() -> None:
    """p and q are made to sum to one: that moves a loss of 1e-13 by far more than a rounding of itself."""
    draw = random.Random(3)
    with mpmath.workdps(40):
        for _ in range(200):
            weights = [draw.uniform(0.1, 1.0) for _ in range(3)]
            p = [w / sum(weights) for w in weights]
            q = [x * (1 + draw.uniform(-1, 1) * 10 ** draw.uniform(-15, -12)) for x in p]
            scale = mpmath.fsum(map(mpmath.mpf, q)) / mpmath.fsum(map(mpmath.mpf, p))
            losses = [mpmath.log(scale * a / mpmath.mpf(b)) for a, b in zip(p, q, strict=True)]
            contains(pl.Custom(p, q), max(abs(x) for x in losses))


@pytest.mark.parametrize("wobble", [4.0, 40.0])
def test_relative_roundings_are_charged(wobble: float) -> None:
    table = Table(np.array([1.0, -1.0]), np.array([0.7, 0.3]), wobble=wobble)
    assert table.largest_lower <= 1 - wobble * 2.0**-53
    assert table.largest >= 1 + wobble * 2.0**-53


def test_the_end_of_a_density_is_that_of_its_own_direction() -> None:
    """Sampled Laplace noise: log(1 - q + q e^lam) with the record against without, -log(1 - q + q e^-lam) back."""
    rate, lam = 0.3, 2.0
    loss = worst_neighbours(pl.Laplace(1 / lam).poisson(rate).as_plan()).loss
    with mpmath.workdps(40):
        q = mpmath.mpf(rate)
        forth, back = mpmath.log(1 - q + q * mpmath.exp(lam)), -mpmath.log(1 - q + q * mpmath.exp(-lam))
        for direction, truth in ((loss, forth), (loss.reversed(), back)):
            assert mpmath.mpf(direction.largest_lower) <= truth <= mpmath.mpf(direction.largest)


@pytest.mark.parametrize("count", [1, 3, 7, 1000])
def test_sums_of_largest_losses(count: int) -> None:
    draw = random.Random(4)
    with mpmath.workdps(40):
        for _ in range(60):
            eps, scale = draw.uniform(0.01, 3.0), draw.uniform(0.3, 9.0)
            contains(pl.PureDP(eps) * count, count * mpmath.mpf(eps))
            contains(pl.Laplace(scale) * count, count / mpmath.mpf(scale))
            contains(pl.PureDP(eps) * count + pl.Laplace(scale), count * mpmath.mpf(eps) + 1 / mpmath.mpf(scale))
            box = pl.PrivacyProfile([eps], [0.0]) * count
            contains(box, count * mpmath.mpf(eps))
            contains(box + pl.PureDP(eps), (count + 1) * mpmath.mpf(eps))
            top = worst_neighbours(pl.Exponential(eps) * count).loss
            assert mpmath.mpf(top.largest_lower) <= count * mpmath.mpf(eps) <= mpmath.mpf(top.largest)


@pytest.mark.parametrize("rate", [1e-6, 0.1, 0.7])
def test_a_sampled_gaussian_is_bounded_in_one_direction_only(rate: float) -> None:
    loss = worst_neighbours(pl.Gaussian(1.0).poisson(rate) * 3).loss
    assert loss.largest_lower == math.inf
    with mpmath.workdps(40):
        truth = -3 * mpmath.log(1 - mpmath.mpf(rate))
        back = loss.reversed()
        assert mpmath.mpf(back.largest_lower) <= truth <= mpmath.mpf(back.largest)


def test_a_loss_that_says_nothing_claims_nothing() -> None:
    class Bounded(GaussianLoss):
        @property
        def largest(self) -> float:
            return 5.0

    assert PrivacyLoss.largest_lower.fget(Bounded(1.0)) == 0  # type: ignore[attr-defined]
    assert PrivacyLoss.largest_lower.fget(GaussianLoss(1.0)) == math.inf  # type: ignore[attr-defined]


def test_bundles_of_tables_from_lower_ends() -> None:
    table = Table(np.array([1.0, -1.0]), np.array([0.7, 0.3]), wobble=1e6)
    loss = TableLoss((table,), np.array([3.0]))
    assert loss.largest_lower <= 3 * table.largest_lower
    assert ComposedLoss((loss, loss)).largest_lower <= 6 * table.largest_lower
