"""What no private algorithm can beat.

>>> mean_error_lower(people=100, dimensions=10**6, epsilon=1.0, delta=1e-5)
0.1
>>> fingerprinting([Fraction(1, 2)] * 3, people=2)      # a constant answer attains the lemma
Fraction(1, 12)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import Any

from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.numerics.floats import padded_up, rounded_down

_MOST_PEOPLE = 100
_ROUNDED = 1e-12  # by what a mean may exceed its bound, where it was computed in floating point


def mean_error_lower(people: int, dimensions: int, epsilon: float, delta: float) -> float:
    """Thm. lowerbound: the least root-mean-square error per coordinate of any (epsilon, delta)-DP mean in {0,1}^k.

    min(sqrt(k) / (16 n (e^eps - 1)), 1/10) for some input, under delta <= 1/(100 n) and k >= 200 (e^eps - 1)^2 n;
    adjacency: replacement of one person. Refused where the conditions fail. At epsilon = 0 it is 1/10: the proof then
    says alpha^2 >= 1/12 - 2 n delta >= 1/12 - 1/50.
    """
    n, k = check.count("people", people), check.count("dimensions", dimensions)
    eps, slack = check.number("epsilon", epsilon, low=0), check.number("delta", delta, low=0, high=1)
    if slack > 1 / (100 * n):
        raise InvalidInput(f"delta = {delta!r}: must be at most 1/(100 n) = {1 / (100 * n):g} (Thm. lowerbound).")
    growth = math.expm1(min(eps, 300.0))
    least = 200 * growth**2 * n
    if k < least:
        raise InvalidInput(
            f"dimensions = {dimensions!r}: must be at least 200 (e^eps - 1)^2 n = {least:g} (Thm. lowerbound)."
        )
    return float(min(rounded_down(math.sqrt(k) / (16 * n * growth), 8), 0.1)) if growth > 0 else 0.1


def fingerprinting(values: Sequence[Any], people: int) -> Fraction:
    """The left-hand side of Lem. fingerprinting, exactly; the lemma says that it is at least 1/12.

    `values` are f on all 2^n inputs (entry x: the bits of x), or on the n+1 possible numbers of ones.
    """
    n = check.count("people", people)
    if n > _MOST_PEOPLE:
        raise InvalidInput(f"people = {people!r}: exact enumeration is for at most {_MOST_PEOPLE}.")
    sums = _sums_by_ones(_fractions(values, n), n)
    # E[(f(X) - P)(sum X - nP)]: the part with -P vanishes in expectation over X for every P ... kept, to be exact
    correlation = Fraction(0)
    for s in range(n + 1):
        # integral of p^s (1-p)^(n-s) (s - np), and of the same times p
        plain = s * _beta(s, n - s) - n * _beta(s + 1, n - s)
        tilted = s * _beta(s + 1, n - s) - n * _beta(s + 2, n - s)
        correlation += sums[s] * plain - comb(n, s) * tilted
    # E_P[(g(P) - P)^2], g(p) = sum over s of sums[s] p^s (1-p)^(n-s)
    error = Fraction(1, 3)
    for s in range(n + 1):
        error -= 2 * sums[s] * _beta(s + 1, n - s)
        error += sum(sums[s] * sums[r] * _beta(s + r, 2 * n - s - r) for r in range(n + 1))
    return correlation + error


def _fractions(values: Sequence[Any], n: int) -> list[Fraction]:
    """The values of f, checked."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise InvalidInput(f"values = {values!r}: must be a list of numbers.")
    if len(values) not in (2**n, n + 1):
        raise InvalidInput(f"values has {len(values)} entries: must be 2^n = {2**n} or n+1 = {n + 1}.")
    if any(isinstance(v, bool) or not isinstance(v, (int, float, Fraction)) or not 0 <= float(v) <= 1 for v in values):
        raise InvalidInput(f"values = {values!r}: every value must be a number between 0 and 1.")
    return [Fraction(v) for v in values]


def _sums_by_ones(answers: Sequence[Fraction], n: int) -> list[Fraction]:
    """The sum of f over all inputs with s ones, for s = 0, ..., n."""
    if len(answers) == n + 1:
        return [comb(n, s) * value for s, value in enumerate(answers)]
    sums = [Fraction(0)] * (n + 1)
    for x, value in enumerate(answers):
        sums[x.bit_count()] += value
    return sums


def _beta(a: int, b: int) -> Fraction:
    """The integral of p^a (1-p)^b over [0, 1]."""
    return Fraction(math.factorial(a) * math.factorial(b), math.factorial(a + b + 1))


def indistinguishable_mean(mean: float, mean_absolute: float, bound: float, epsilon: float, delta: float) -> float:
    """Lem. indistinguishable_expectation: E[X] <= E[Y] + (e^eps - 1) E|Y| + 2 delta D for X, Y in [-D, D].

    `mean` is E[Y], `mean_absolute` E|Y|: |E[Y]| <= E|Y| <= D, other numbers are refused.
    """
    centre, spread = check.number("mean", mean), check.number("mean_absolute", mean_absolute, low=0)
    width, eps = check.number("bound", bound, low=0), check.number("epsilon", epsilon, low=0)
    slack = check.number("delta", delta, low=0, high=1)
    if abs(centre) > spread * (1 + _ROUNDED):
        raise InvalidInput(f"mean_absolute = {mean_absolute!r}: must be at least |mean| = {abs(centre)!r}, as E|Y| is.")
    if spread > width * (1 + _ROUNDED):
        raise InvalidInput(f"mean_absolute = {mean_absolute!r}: must be at most bound = {bound!r}, as |Y| is.")
    spread = max(spread, abs(centre))
    growth = math.expm1(eps) if eps < 709 else math.inf
    value = centre + (growth * spread if spread > 0 else 0.0) + 2 * slack * width
    return min(padded_up(value, 1e-15, abs(centre) + abs(value)), width)
