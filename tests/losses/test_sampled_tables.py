"""The largest loss of tables on a Poisson sample, against 40 digits."""

from __future__ import annotations

import random
from collections.abc import Iterator

import mpmath as mp
import numpy as np
import pytest

import privloss as pl
from privloss.losses.table.build import poisson
from privloss.losses.table.polygon import privacy_profile
from privloss.numerics.stable import log_sampled

Case = tuple[pl.Plan, float, float, int]  # a plan, its largest loss without a sample, the rate and the count


def _cases(number: int) -> Iterator[Case]:
    draw = random.Random(20)
    for i in range(number):
        eps, rate = 10 ** draw.uniform(-5, 1.5), draw.choice((10 ** draw.uniform(-9, 0), draw.uniform(0.01, 0.99)))
        count = draw.choice((1, 2, 5, 40, 10_000))
        if i % 3 == 0:
            box: pl.Plan = pl.PureDP(eps).poisson(rate) * count
        elif i % 3 == 1:
            box = pl.PrivacyProfile([eps], [0.0]).poisson(rate) * count
        else:
            middle = eps * draw.uniform(0.1, 0.9)
            box = pl.PrivacyProfile([0.0, middle, eps], [0.3, 10 ** draw.uniform(-9, -2), 0.0]).poisson(rate) * count
        yield box, eps, rate, count


def _largest(eps: float, rate: float, count: int) -> mp.mpf:
    """n log(1 - q + q e^eps); the other direction's -log(1 - q + q e^-eps) is smaller."""
    q = mp.mpf(rate)
    return count * mp.log(1 - q + q * mp.exp(mp.mpf(eps)))


def test_the_largest_loss_of_sampled_tables_contains_the_truth() -> None:
    with mp.workdps(40):
        for plan, eps, rate, count in _cases(300):
            bound, truth = plan.epsilon(0.0), _largest(eps, rate, count)
            assert mp.mpf(bound.lower) <= truth <= mp.mpf(bound.upper), (eps, rate, count, bound, truth)


def test_a_tiny_sample_keeps_its_digits() -> None:
    eps, rate = 0.0011139546157293892, 1.0633834029011163e-07
    bound = (pl.PrivacyProfile([eps], [0.0]).poisson(rate) * 5).epsilon(0.0)
    with mp.workdps(40):
        assert mp.mpf(bound.lower) <= _largest(eps, rate, 5) <= mp.mpf(bound.upper)
    assert bound.relative_width < 1e-9


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 0.3, 0.999])
def test_absolute_errors_shrink_with_the_sample(rate: float) -> None:
    row = privacy_profile([0.1, 1.0], [1e-3, 0.0])
    sampled = poisson(row, rate)
    steepest = rate * np.exp(row.values - sampled.values[: len(row.values)]).max()
    assert steepest * row.absolute <= sampled.absolute <= steepest * row.absolute * (1 + 1e-12)


@pytest.mark.parametrize("x", [-800.0, -40.0, -1.0, -1e-9, 1e-9, 0.5, 40.0, 599.0])
@pytest.mark.parametrize("rate", [1e-12, 0.01, 0.399, 0.401, 0.6, 1 - 1e-9])
def test_the_sampled_loss_is_rounded_by_less_than_eight_units(rate: float, x: float) -> None:
    with mp.workdps(60):
        q = mp.mpf(rate)
        truth = mp.log(1 - q + q * mp.exp(mp.mpf(x)))
        assert abs(mp.mpf(float(log_sampled(rate, x))) - truth) <= 8 * mp.mpf(2) ** -53 * abs(truth)


def test_losses_far_out_on_a_minute_sample_are_as_wrong_as_their_terms() -> None:
    rate, eps = 1e-250, 640.0
    bound = (pl.PrivacyProfile([eps], [0.0]).poisson(rate) * 3).epsilon(0.0)
    with mp.workdps(60):
        assert mp.mpf(bound.lower) <= _largest(eps, rate, 3) <= mp.mpf(bound.upper)
