"""Randomised response and black boxes against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest

import privloss as pl


def binomial_delta(eps0: float, delta0: float, k: int, eps: float) -> mp.mpf:
    """The optimal composition theorem, in 60 digits."""
    with mp.workdps(60):
        e, x = mp.mpf(eps0), mp.mpf(eps)
        up, down = mp.e**e / (1 + mp.e**e), 1 / (1 + mp.e**e)
        total = mp.mpf(0)
        for j in range(k + 1):
            loss = (k - 2 * j) * e
            if loss > x:
                total += mp.binomial(k, j) * up ** (k - j) * down**j * (1 - mp.e ** (x - loss))
        kept = (1 - mp.mpf(delta0)) ** k
        return min(1 - kept + kept * total, mp.mpf(1))


@pytest.mark.parametrize("eps0", [1e-6, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta0", [0.0, 1e-9])
@pytest.mark.parametrize("k", [1, 2, 10, 101, 400])
def test_black_boxes(eps0: float, delta0: float, k: int) -> None:
    plan = pl.ApproxDP(eps0, delta0) * k
    for share in (0.0, 0.05, 0.3, 0.77, 0.999):
        eps = share * k * eps0
        truth = binomial_delta(eps0, delta0, k, eps)
        bound = plan.delta(eps)
        assert mp.mpf(bound.lower) <= truth <= mp.mpf(bound.upper)
        if truth > 1e-290:
            assert bound.upper <= float(truth) * (1 + 1e-9)


def test_ten_boxes_of_four() -> None:
    """A tool in use claims eps <= 32.1 at delta = 1e-6; the true delta there is 0.83."""
    boxes = pl.PureDP(4.0) * 10
    assert boxes.delta(32.1).lower > 0.83
    bound = boxes.epsilon(1e-6)
    assert binomial_delta(4.0, 0.0, 10, bound.lower) >= 1e-6 >= binomial_delta(4.0, 0.0, 10, bound.upper)
    assert bound.relative_width < 1e-12


def test_a_hundred_randomised_responses() -> None:
    """p = 1/2 and two answers: eps_0 = log 3. The answer is that of a hundred uses, not of one."""
    one_by_one = sum([pl.RandomizedResponse(p=0.5)] * 100)
    at_once = pl.RandomizedResponse(p=0.5) * 100
    assert one_by_one == at_once
    bound = at_once.epsilon(1e-6, adjacency="replace-one")
    up = Fraction(3, 4)

    def delta(eps: float) -> mp.mpf:
        with mp.workdps(60):
            total = mp.mpf(0)
            for j in range(101):
                mass = mp.binomial(100, j) * mp.mpf(up.numerator) ** (100 - j) / mp.mpf(4) ** 100
                total += mass * max(mp.mpf(0), 1 - mp.e ** (mp.mpf(eps) - (100 - 2 * j) * mp.log(3)))
            return total

    assert delta(bound.lower) >= 1e-6 >= delta(bound.upper)
    assert bound.relative_width < 1e-12
    assert 94.0 < bound.upper < 94.6


def test_many_answers() -> None:
    """k-ary randomised response: the k-2 other answers carry no loss."""
    k, eps0, uses = 5, 1.2, 7
    plan = pl.RandomizedResponse(epsilon=eps0, answers=k) * uses
    with mp.workdps(40):
        e = mp.mpf(eps0)
        a = mp.e**e / (mp.e**e + k - 1)
        b = 1 / (mp.e**e + k - 1)
        for eps in (0.0, 0.5, 2.0, 5.1):
            truth = mp.mpf(0)
            for i in range(uses + 1):
                for j in range(uses - i + 1):
                    ways = mp.factorial(uses) / (mp.factorial(i) * mp.factorial(j) * mp.factorial(uses - i - j))
                    mass = ways * a**i * b**j * ((k - 2) * b) ** (uses - i - j)
                    truth += mass * max(mp.mpf(0), 1 - mp.e ** (mp.mpf(eps) - (i - j) * e))
            bound = plan.delta(eps)
            assert mp.mpf(bound.lower) <= truth <= mp.mpf(bound.upper)
            assert bound.relative_width < 1e-11


def test_counts_of_a_million_million() -> None:
    plan = pl.RandomizedResponse(epsilon=1e-6) * 10**12
    gaussian = pl.GDP(1.0)  # the limit: mu = eps sqrt(k)
    assert plan.epsilon(1e-6).upper == pytest.approx(gaussian.epsilon(1e-6).upper, rel=1e-5)
    assert plan.epsilon(1e-6).relative_width < 1e-9
    assert math.isfinite((pl.RandomizedResponse(epsilon=5.0) * 10**12).epsilon(1e-300).upper)
