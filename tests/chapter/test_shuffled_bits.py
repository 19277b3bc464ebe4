"""Shuffled bits against enumerations: exact rationals over all values of the others, and binomials for many people."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

import privloss as pl
from privloss.theorems import shuffled_bits

shuffling = pl.shuffling


def count_of_ones(chances: list[Fraction]) -> list[Fraction]:
    law = [Fraction(1)]
    for c in chances:
        law = [a * (1 - c) + b * c for a, b in zip([*law, Fraction(0)], [Fraction(0), *law], strict=True)]
    return law


def by_enumeration(odds: Fraction, grown: Fraction, n: int) -> list[Fraction]:
    """delta for every number of ones among the others, the larger of both orders; e^eps0 = odds, e^eps = grown."""
    p, found = 1 / (odds + 1), []
    for j in range(n):
        others = [1 - p] * j + [p] * (n - 1 - j)
        one, zero = count_of_ones([*others, 1 - p]), count_of_ones([*others, p])
        orders = ((one, zero), (zero, one))
        found.append(max(sum(max(a - grown * b, Fraction(0)) for a, b in zip(*pair, strict=True)) for pair in orders))
    return found


def doubles(value: Fraction) -> float:
    with mpmath.workdps(40):
        return float(mpmath.log(mpmath.mpf(value.numerator) / value.denominator))


@pytest.mark.parametrize("n", [1, 2, 3, 9, 24])
@pytest.mark.parametrize(
    ("odds", "grown"), [("3", "1"), ("3", "3/2"), ("101/100", "1001/1000"), ("50", "49"), ("20", "2")]
)
def test_every_value_of_the_others(odds: str, grown: str, n: int) -> None:
    truth = doubles(max(by_enumeration(Fraction(odds), Fraction(grown), n)))
    eps0, eps = doubles(Fraction(odds)), doubles(Fraction(grown))
    found = shuffled_bits.log_delta(eps0, eps, n)
    spread = 1e-14 / (eps0 - eps)  # the doubles eps0 and eps are not the logarithms themselves
    assert found.low - spread <= truth <= found.high + spread
    assert found.high - found.low < 1e-11
    bound = shuffling.numerical_delta(eps0, n, eps, 2)
    assert bound.lower * (1 - spread) <= math.exp(truth) <= bound.upper * (1 + spread)


def test_the_others_need_not_all_hold_the_same_value() -> None:
    """An answer from others that are all alike, which was the lower end before, lies below the truth."""
    deltas = by_enumeration(Fraction(7), Fraction(8, 5), 12)
    assert max(deltas) > max(deltas[0], deltas[-1]) * Fraction(21, 20)
    truth = float(max(deltas))
    assert shuffling.numerical_delta(math.log(7), 12, math.log(1.6), 2).lower == pytest.approx(truth, rel=1e-11)


def sums_of_binomials(eps0: float, eps: float, n: int) -> float:
    p, worst = 1 / (math.exp(eps0) + 1), 0.0
    for j in range(n):
        w = np.convolve(binom.pmf(np.arange(j + 1), j, 1 - p), binom.pmf(np.arange(n - j), n - 1 - j, p))
        more, less = np.concatenate([[0.0], w]), np.concatenate([w, [0.0]])
        gap = (1 - p) * more + p * less - math.exp(eps) * (p * more + (1 - p) * less)
        worst = max(worst, float(np.maximum(gap, 0).sum()))
    return worst


@pytest.mark.parametrize(("eps0", "eps", "n"), [(2.0, 0.5, 200), (1.0, 0.1, 500), (4.0, 1.5, 300), (0.3, 0.0, 400)])
def test_many_people(eps0: float, eps: float, n: int) -> None:
    found = shuffling.numerical_delta(eps0, n, eps, 2)
    assert found.relative_width < 1e-9
    assert found.upper == pytest.approx(sums_of_binomials(eps0, eps, n), rel=1e-8)


@pytest.mark.parametrize(("eps0", "n", "delta"), [(2.0, 200, 1e-3), (1.0, 10_000, 1e-6), (6.0, 5_000, 1e-10)])
def test_epsilon_asks_everyone(eps0: float, n: int, delta: float) -> None:
    found = shuffling.numerical_epsilon(eps0, n, delta, 2)
    assert found.relative_width < 1e-8
    assert shuffling.numerical_delta(eps0, n, found.upper, 2).upper <= delta * (1 + 1e-12)
    assert shuffling.numerical_delta(eps0, n, found.lower, 2).lower >= delta * (1 - 1e-12)


def test_some_of_the_others_are_not_all_of_them() -> None:
    """The ends over a few j would be wrong: the worst one must be among them."""
    everyone = shuffled_bits.log_delta(2.0, 0.5, 200)
    ends = shuffled_bits.log_delta(2.0, 0.5, 200, np.array([0.0, 199.0]))
    assert ends.high < everyone.low
    alone = shuffled_bits.log_delta(2.0, 0.5, 200, np.array([everyone.worst]))
    assert alone.low == pytest.approx(everyone.low, abs=1e-12)


def test_beyond_a_million_people_the_blanket_serves() -> None:
    found = shuffling.numerical_delta(1.0, 10 * shuffled_bits.MOST_PEOPLE, 0.001, 2)
    assert found.method == "shuffled randomised response, privacy blanket"
