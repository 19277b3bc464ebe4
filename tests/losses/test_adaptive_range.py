"""The best adversary of bounded-range choices, against strategies enumerated here."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import privloss as pl
from privloss.losses.closed.adaptive_range import AdaptiveRange, Grid, _above, _below

SHARES = np.linspace(0.0, 1.0, 401)


def one(eps: float, x: float) -> float:
    """The largest delta of one choice (Dong, Durfee, Rogers 2020), in closed form."""
    if x >= eps:
        return 0.0
    if x <= -eps:
        return -math.expm1(x)
    return (math.exp(eps / 2) - math.exp(x / 2)) ** 2 / math.expm1(eps)


def then(after: object, eps: float, x: float, t: float) -> float:
    """One more choice, with losses t and t - eps, before the others."""
    assert callable(after)
    up = -math.expm1(t - eps) / -math.expm1(-eps)
    return up * after(x - t) + (1 - up) * after(x - t + eps)


def two(eps: float, x: float) -> float:
    """The largest delta of two, the second chosen after the first: all t, the best of them polished."""
    values = [then(lambda y: one(eps, y), eps, x, eps * s) for s in SHARES]
    k = int(np.argmax(values))
    ends = eps * SHARES[max(k - 1, 0)], eps * SHARES[min(k + 1, 400)]
    found = minimize_scalar(lambda t: -then(lambda y: one(eps, y), eps, x, t), bounds=ends, method="bounded")
    return max(float(-found.fun), max(values))


@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.95])
def test_two_choices(eps: float, share: float) -> None:
    x = 2 * eps * share
    truth, ends = two(eps, x), AdaptiveRange(eps, 2).delta(x)
    assert ends is not None
    assert ends[0] <= truth * (1 + 1e-9)
    assert truth * (1 - 1e-6) <= ends[1] <= truth * 1.01 + 1e-6


@pytest.mark.parametrize(("eps", "x"), [(1.0, 1.0), (1.0, 2.5), (0.3, 0.2)])
def test_three_choices(eps: float, x: float) -> None:
    truth = max(then(lambda y: two(eps, y), eps, x, eps * s) for s in np.linspace(0, 1, 41))
    ends = AdaptiveRange(eps, 3).delta(x)
    assert ends is not None
    assert truth * (1 - 1e-9) <= ends[1] <= truth * 1.01
    assert ends[0] <= truth * (1 + 1e-3)


def test_adapting_is_worse_than_a_common_t() -> None:
    """Two-point mechanisms with one t for all, the lower end before, are not the worst."""
    uses, x = 10, 7.6

    def common(t: float) -> float:
        up = -math.expm1(t - 1) / -math.expm1(-1)
        terms = (
            math.comb(uses, j) * up**j * (1 - up) ** (uses - j) * max(-math.expm1(x - uses * t + uses - j), 0.0)
            for j in range(uses + 1)
        )
        return math.fsum(terms)

    ends = AdaptiveRange(1.0, uses).delta(x)
    assert ends is not None
    assert ends[0] > 1.02 * max(common(float(t)) for t in np.linspace(0, 1, 5001))


def grid(m: int, count: int, eps: float, x: float) -> Grid:
    zero = math.ceil((x + (count + 1) * eps) * m / eps)
    return Grid(eps, count, m, x, zero, zero + math.ceil(((count + 1) * eps - x) * m / eps))


@pytest.mark.parametrize("x", [0.0, 1.3, 3.1])
def test_coarse_grids_lie_above_fine_ones(x: float) -> None:
    """Between grid points: a grid that forgot what lies between them would be too low at two cells in a range."""
    coarse, fine = grid(2, 5, 1.0, x), grid(64, 5, 1.0, x)
    truth = float(_below(fine)[fine.zero])
    assert truth <= float(_above(coarse)[coarse.zero])
    assert float(_below(coarse)[coarse.zero]) <= float(_above(fine)[fine.zero])
    assert x == 0.0 or float(_below(coarse)[coarse.zero]) < truth * (1 - 1e-4)


@pytest.mark.parametrize(("eps", "uses", "width"), [(0.1, 1000, 0.01), (1.0, 10, 1e-3), (1.0, 100, 2e-3)])
def test_many_uses_are_narrow(eps: float, uses: int, width: float) -> None:
    found = (pl.Exponential(eps) * uses).epsilon(1e-6)
    assert found.relative_width < width
    again = (pl.Exponential(eps) * uses).delta(found.upper)
    assert again.lower <= 1e-6 * (1 + 1e-9)
    below = (pl.Exponential(eps) * uses).delta(found.lower)
    assert below.upper >= 1e-6 * (1 - 1e-9)


def test_only_choices_of_one_range() -> None:
    """Other steps, other ranges, samples and epochs keep the product of dominating pairs."""
    mixed = (pl.Exponential(1.0) * 5 + pl.Gaussian(1.0)).epsilon(1e-6)
    unequal = (pl.Exponential(1.0) * 5 + pl.Exponential(0.5)).epsilon(1e-6)
    shuffled = (pl.Exponential(1.0).shuffled(steps=3) * 5).epsilon(1e-6, adjacency="replace-one")
    for found in (mixed, unequal, shuffled):
        assert "recursion" not in found.method
    assert shuffled.lower == 0.0
    assert "recursion" in (pl.NoisyMax(1.0) * 5).epsilon(1e-6).method
