"""Outcome by outcome (`numerics/contour/apart.py`): against sums of closed forms in high precision, in plans against a
privacy loss distribution on a grid and the blurred line, two other algorithms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from unittest import mock

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer

import privloss as pl
from privloss.answers.pair import APART
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.composed import ComposedLoss
from privloss.losses.table.apart import apart
from privloss.losses.table.table import Table
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics.contour.apart import Far, Read, delta_apart, epsilon_apart
from privloss.numerics.contour.solve import delta_bounds
from privloss.numerics.contour.transform import Apart, Transform

MU = 0.35
TABLE = Table(np.array([0.6, -0.9, 0.1, 0.6]), np.array([0.25, 0.2, 0.3, 0.25]))
MASSES = {0.6: 0.5, 0.1: 0.3, -0.9: 0.2}


def gaussian_delta(eps: mp.mpf) -> mp.mpf:
    return mp.ncdf(MU / 2 - eps / MU) - mp.exp(eps) * mp.ncdf(-MU / 2 - eps / MU)


def truth(eps: float) -> mp.mpf:
    return mp.fsum(m * gaussian_delta(mp.mpf(eps) - z) for z, m in MASSES.items())


@dataclass(frozen=True)
class OnePoint:
    """A reading that knows delta of Gaussian noise everywhere."""

    def log_bounds(self, eps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logs = np.array([float(mp.log(gaussian_delta(mp.mpf(float(x))))) for x in eps])
        return logs - 1e-12 * (1 + np.abs(logs)), logs + 1e-12 * (1 + np.abs(logs))


def known(transform: Transform, eps: float, tolerance: float) -> Read:
    ends = OnePoint().log_bounds(np.array([eps]))
    return Read((float(ends[0][0]), float(ends[1][0])), OnePoint())


def at_one_point(transform: Transform, eps: float, tolerance: float) -> Read:
    return known(transform, eps, tolerance)._replace(readable=None)


def terms() -> Apart:
    rest = ComposedLoss((GaussianLoss(MU * MU),))
    return apart(TABLE, rest, rest.reversed())


@pytest.mark.parametrize("ask", [known, at_one_point])
@pytest.mark.parametrize("eps", [0.0, 0.05, 0.1, 0.3, 0.6, 0.6000001, 1.0, 1.9])
def test_delta_is_the_mean_over_outcomes(eps: float, ask: object) -> None:
    exact = truth(eps)
    lower, upper = delta_apart(terms(), eps, float(mp.log(exact)), 1e-10, ask)  # type: ignore[arg-type]
    assert lower <= mp.log(exact) <= upper
    assert upper - lower < 1e-9


@pytest.mark.parametrize("eps", [0.05, 0.3, 0.59, 1.2])
@pytest.mark.parametrize("guess", [0.01, 0.6, 4.0])
def test_epsilon_meets_delta(eps: float, guess: float) -> None:
    log = float(mp.log(truth(eps)))
    lower, upper = epsilon_apart(terms(), (log - 1e-15, log + 1e-15), guess, 1e-10, known)
    assert lower <= eps * (1 + 1e-12)
    assert upper >= eps * (1 - 1e-12)
    assert upper - lower < 1e-8


def test_what_is_not_listed_is_added_above() -> None:
    exact = truth(0.3)
    some = replace(terms(), left=1e-3)
    lower, upper = delta_apart(some, 0.3, float(mp.log(exact)), 1e-10, known)
    assert lower <= mp.log(exact)
    assert mp.exp(upper) >= exact + 1e-3


def test_values_that_are_off_widen_both_ends() -> None:
    lower, upper = delta_apart(replace(terms(), off=1e-3), 0.3, -3.0, 1e-10, known)
    assert lower <= mp.log(truth(0.301))
    assert upper >= mp.log(truth(0.299))


def test_outcomes_that_are_not_read_are_bounded() -> None:
    """With delta said to be about e^40 times what it is all but the largest outcomes may be left out, not forgotten."""
    exact = truth(1.0)
    lower, upper = delta_apart(terms(), 1.0, float(mp.log(exact)) + 40.0, 1e-10, known)
    assert lower <= mp.log(exact) <= upper
    assert upper > mp.log(exact) + 1e-6


FAR = pl.Gaussian(1.3).poisson(1e-4) * 300


@cache
def _least(eps: float) -> float:
    return FAR.delta(eps).lower


@pytest.mark.parametrize(("x", "log_small"), [(0.2, -30.0), (1.0, -30.0), (1.0, -math.inf)])
def test_far_bounds_hold_everywhere(x: float, log_small: float) -> None:
    far = Far.at(worst_neighbours(FAR, None).loss, x, log_small)
    for eps in (0.1, 0.4, 1.0):
        assert far.log_upper(eps) >= math.log(_least(eps)) - 1e-9


PLANS = [
    (pl.Gaussian(1.7).poisson(3.4e-4) * 253, pl.DiscreteLaplace(3.8) * 2, 2.1e-7),
    (pl.Gaussian(1.35).poisson(1.8e-5) * 417, pl.DiscreteLaplace(3.6) * 1, 2.7e-8),
    (pl.Gaussian(1.24).poisson(5.8e-4) * 62, pl.Custom([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]) * 2, 1e-6),
]


@pytest.mark.parametrize(("rare", "few", "delta"), PLANS)
def test_plans_agree_with_the_blurred_line(rare: pl.Plan, few: pl.Plan, delta: float) -> None:
    plan = rare + few
    found = plan.epsilon(delta)
    assert APART in found.method
    assert found.relative_width < 1e-8
    with mock.patch.object(ComposedLoss, "apart", None):
        other = plan.delta(found.upper)
    again = plan.delta(found.upper)
    assert max(again.lower, other.lower) <= min(again.upper, other.upper)
    assert again.lower <= delta * (1 + 1e-9)
    assert again.upper >= delta * (1 - 1e-7)


def test_a_plan_agrees_with_a_grid() -> None:
    """Rounded up and rounded down, neither by our engine."""
    plan = pl.Gaussian(1.7).poisson(3.4e-4) * 253 + pl.DiscreteLaplace(3.8) * 2
    ends = []
    for up in (True, False):
        grid = {"pessimistic_estimate": up, "value_discretization_interval": 1e-4, "use_connect_dots": False}
        sgd = peer.from_gaussian_mechanism(1.7, sampling_prob=3.4e-4, **grid).self_compose(253)
        noise = peer.from_discrete_laplace_mechanism(1 / 3.8, **grid).self_compose(2)
        ends.append(sgd.compose(noise).get_epsilon_for_delta(2.1e-7))
    found = plan.epsilon(2.1e-7)
    assert ends[1] <= found.upper
    assert found.lower <= ends[0]
    assert APART in found.method


@pytest.mark.parametrize("near", [1e-3, 1e-4])
def test_just_below_an_outcome_the_rest_is_read_in_the_other_direction(near: float) -> None:
    plan = pl.Gaussian(1.7).poisson(3.4e-4) * 253 + pl.DiscreteLaplace(3.8) * 2
    eps = 2 / 3.8 - near
    found = delta_bounds(worst_neighbours(plan, None).loss, eps, 1e-10)
    with mock.patch.object(ComposedLoss, "apart", None):
        other = delta_bounds(worst_neighbours(plan, None).loss, eps, 1e-10)
    assert found.apart
    assert max(found.logs[0], other.logs[0]) <= min(found.logs[1], other.logs[1])
    assert other.logs[1] - other.logs[0] < 1e-3
