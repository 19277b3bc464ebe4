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
from privloss.losses.chains import approx
from privloss.numerics import check
from privloss.numerics.floats import padded_down, padded_up, rounded_down

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


def mean_error_lower_small_delta(people: int, dimensions: int, epsilon: float, delta: float) -> float:
    """A lower bound that grows with sqrt(log(1/delta)), after Steinke and Ullman 2015, with constants of its own.

    Let g people hold the same record, n' = n // g such groups (the rest hold zeros, which costs a factor n' g / n): to
    them the mean is (eps', delta')-DP, the parameters of a group of g. With Z_i and A = |M - P| as in the proof of
    Thm. lowerbound, clipped to [0,1]^k, and Z~_i for a record that M has not seen: Z~_i is a sum of k independent
    terms, so P[Z~_i > s A] <= e^(-2 s^2) (Hoeffding), and P[Z_i > s A] <= e^(eps' - 2 s^2) + delta' =: eta, s > 0. As
    |Z_i| <= k, E[Z_i] <= s E[A] + k eta, and E[A] <= alpha sqrt(k) + sqrt(k / 6n'). By Lem. fingerprinting

        1/12 - alpha^2 <= n' (s alpha / sqrt(k) + s / sqrt(6 n' k) + eta),

    a quadratic inequality for alpha. Thm. lowerbound pays e^eps' - 1 where this pays sqrt(eps'), so here groups may be
    large: eps' up to about log(1/delta). Every g and s is valid, the best of many is taken; 0 if none says anything.

    >>> [round(mean_error_lower_small_delta(10**6, 10**9, 0.1, 10.0**-d), 4) for d in (8, 16, 32, 64)]
    [0.0086, 0.0989, 0.1588, 0.1968]
    """
    n, k = check.count("people", people), check.count("dimensions", dimensions)
    eps, slack = check.number("epsilon", epsilon, low=0), check.number("delta", delta, low=0, high=1)
    best, size = 0.0, 1
    while size <= n:
        best = max(best, _grouped_error(n, k, size, *approx(eps, slack, size)))
        size = max(size + 1, math.ceil(size * 1.05))
    return best


def _grouped_error(n: int, k: int, size: int, eps: float, slack: float) -> float:
    """The bound for groups of `size` people that are (eps, slack)-DP, at the best of a few s."""
    groups, best = n // size, 0.0
    if slack * groups >= 1 / 12:
        return 0.0
    for more in (2.0, 4.0, 6.0, 9.0, 13.0, 18.0):
        s = math.sqrt((eps + math.log(groups) + more) / 2)
        eta = padded_up(math.exp(-more) / groups * (1 + 1e-13 * (eps + 60)) + slack, 1e-14)
        room = padded_down(1 / 12 - s * math.sqrt(groups / (6 * k)) - groups * eta, 1e-14, 1 + s)
        if room > 0:
            linear = groups * s / math.sqrt(k)
            alpha = 2 * room / (linear + math.sqrt(linear**2 + 4 * room))
            best = max(best, padded_down(alpha * (groups * size / n), 1e-14, alpha))
    return best


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
