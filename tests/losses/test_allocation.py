"""Profiles of random allocation against iterated integrals, and powers of transforms against exact ones."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

import privloss as pl
from privloss.losses.table import allocation
from privloss.losses.table.allocation import allocation_table
from privloss.numerics.fourier import powered

EPS = np.array([-0.9, -0.5, -0.2, 0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.2, 3.0])


@cache
def _calls(steps: int, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """x and log E[(r_1 + ... + r_t - x)_+]: one more ratio is one more integral; 5 digits."""
    x = np.geomspace(1e-4, 1e6, 4000)
    y = np.linspace(-9.0, 9.0 + distance, 3001)
    weights = np.exp(-0.5 * y * y) / math.sqrt(2 * math.pi) * (y[1] - y[0])
    ratios = np.exp(distance * y - 0.5 * distance**2)
    d = (-np.log(x) + 0.5 * distance**2) / distance
    logs = np.log(np.maximum(ndtr(d) - x * ndtr(d - distance), 1e-300))
    for n in range(1, steps):
        found = np.zeros(len(x))
        for ratio, weight in zip(ratios, weights, strict=True):
            left = x - ratio
            inside = np.exp(np.interp(np.log(np.maximum(left, 1e-4)), np.log(x), logs))
            found += weight * np.where(left > 1e-4, inside, n - left)
        logs = np.log(found)
    return x, logs


def _exact(steps: int, distance: float, eps: float) -> float:
    x, logs = _calls(steps, distance)
    return math.exp(float(np.interp(math.log(steps) + eps, np.log(x), logs))) / steps


@pytest.mark.parametrize(("steps", "distance"), [(2, 0.5), (2, 1.0), (3, 1.0), (5, 1.4)])
def test_profiles_are_above_the_truth_and_close(steps: int, distance: float) -> None:
    table = allocation_table(steps, distance)
    assert table is not None
    assert table.delta < 1e-15
    checked = 0
    for eps in EPS:
        truth = _exact(steps, distance, float(eps))
        if truth < 1e-13:
            continue
        _, high = table.hockey_stick(float(eps))
        found = math.exp(high) + table.delta
        assert found > truth * (1 - 3e-5)
        assert found < truth * (1 + 2e-3)
        checked += 1
    assert checked >= 7
    for eps in (0.1, 0.3, 0.6):  # the other direction: e^eps E[(e^-eps - S)_+]
        truth = math.exp(eps) * (_exact(steps, distance, -eps) - 1 + math.exp(-eps))
        if truth > 1e-7:  # the oracle cancels
            _, high = table.reversed().hockey_stick(eps)
            assert truth * (1 - 3e-3) - 1e-6 * truth < math.exp(high) + table.back < truth * (1 + 5e-3) + 1e-7
            assert math.exp(high) + table.back > truth - 3e-5


@pytest.mark.parametrize("expected", [0.05, 2e-3])
def test_where_ratios_count_as_large_changes_nothing(expected: float, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = allocation_table(40, 1.0)
    assert reference is not None
    monkeypatch.setattr(allocation, "_EXPECTED_LARGE", expected)
    other = allocation_table.__wrapped__(40, 1.0)
    for eps in (0.1, 0.4, 0.8, 1.4, 2.0):
        for one, two in ((reference, other), (reference.reversed(), other.reversed())):
            a, b = (t.hockey_stick(eps)[1] for t in (one, two))
            assert (a == pytest.approx(b, abs=1e-3)) or max(a, b) < math.log(1e-14)


@pytest.mark.parametrize(("steps", "distance"), [(100, 1.0), (1000, 0.5)])
def test_one_jump_is_below(steps: int, distance: float) -> None:
    """S is at least r_1/t, and its mean is 1: E(S - a)_+ >= E(r_1/t - a)_+ and >= 1 - a, at any depth."""
    table = allocation_table(steps, distance)
    assert table is not None
    for eps in np.arange(0.05, 8.0, 0.1):
        d = (-math.log(steps) - eps + 0.5 * distance**2) / distance
        least = float(ndtr(d)) / steps - math.exp(eps) * float(ndtr(d - distance))
        assert math.exp(table.hockey_stick(eps)[1]) + table.delta >= least
        assert math.exp(table.reversed().hockey_stick(eps)[1]) + table.back > 0


def test_small_deltas_are_amplified_too() -> None:
    """At 1e-10 an epoch used to be worth no more than without amplification."""
    found = (pl.Gaussian(2.0).allocated(steps=100) * 10).epsilon(1e-10)
    assert found.upper < 1.0
    plain = (pl.Gaussian(2.0) * 10).epsilon(1e-10).upper
    assert found.upper < 0.1 * plain
    one = pl.Gaussian(1.0).allocated(steps=100).epsilon(1e-10)
    assert one.upper < 1.15 * one.lower


@pytest.mark.parametrize("tilt", [-0.05, 0.0, 0.08])
def test_powers_err_by_less_than_is_said(tilt: float) -> None:
    size, count = 64, 5
    masses = np.random.default_rng(3).random(20) ** 3
    law, wrong, log_scale = powered(masses, tilt, count, size)
    exact = [Fraction(1)]
    for _ in range(count):
        new = [Fraction(0)] * (len(exact) + 19)
        for i, a in enumerate(exact):
            for j, b in enumerate(masses):
                new[i + j] += a * Fraction(float(b))
        exact = new
    truth = np.zeros(size)
    for k, value in enumerate(exact):
        truth[k % size] += float(value) * math.exp(tilt * k - log_scale)
    error = float(np.linalg.norm(law - truth))
    assert error <= wrong
    assert wrong < 1e-12


def test_high_powers_err_by_less_than_is_said() -> None:
    """A binomial law: the error grows with the power, and so must the bound."""
    for count in (50, 1000, 16000):
        size = 2 ** math.ceil(math.log2(count + 2))
        law, wrong, log_scale = powered(np.array([0.3, 0.7]), 0.0, count, size)
        with mpmath.workdps(40):
            p, q = mpmath.mpf(0.7), mpmath.mpf(0.3)
            term, truth = q**count, np.zeros(size)
            for k in range(count + 1):
                truth[k] = float(term * mpmath.exp(-log_scale))
                term *= p / q * (count - k) / (k + 1)
        error = float(np.linalg.norm(law - truth))
        assert error <= wrong
        assert wrong < 1e4 * error
