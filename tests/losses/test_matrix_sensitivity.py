"""Sensitivities of matrix mechanisms between their two ends, against brute force over patterns and signs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import privloss as pl
from privloss.losses.matrix import families
from privloss.losses.matrix.patterns import best_pattern, best_sums, most_steps
from privloss.losses.matrix.sensitivity import EPOCHS, SEPARATED, SINGLE, Participation, Squared, squared_sensitivity
from privloss.losses.matrix.strategy import Dense, Toeplitz
from tests.oracle.patterns import epochs, separated, squared

Array = NDArray[np.floating[Any]]
TINY = 1e-13


def ways(steps: int, apart: int, most: int) -> list[tuple[Participation, list[tuple[int, ...]]]]:
    return [
        (Participation(SINGLE), [(i,) for i in range(steps)]),
        (Participation(EPOCHS, apart), list(epochs(steps, apart))),
        (Participation(SEPARATED, apart, most), list(separated(steps, apart, most))),
    ]


def small_matrices(count: int) -> Iterator[tuple[Array, int, int]]:
    """Lower triangular and tall ones, banded and not, with signs and without."""
    rng = np.random.default_rng(7)
    for trial in range(count):
        n, b, k = int(rng.integers(1, 8)), int(rng.integers(1, 6)), int(rng.integers(1, 5))
        c = rng.normal(size=(n, n)) if trial % 2 else rng.uniform(size=(n, n))
        if trial % 3 == 0:
            c = np.tril(c) * (np.subtract.outer(np.arange(n), np.arange(n)) < b)
        elif trial % 3 == 1:
            c = np.tril(c)
        if trial % 7 == 0:
            c = np.concatenate([c, rng.normal(size=(2, n))])
        yield c, b, k


def holds(found: Squared, truth: float) -> None:
    assert found.high >= truth * (1 - TINY), "above"
    assert found.low <= truth * (1 + TINY), "below"


def test_500_small_matrices_against_brute_force() -> None:
    """Never below; where the docs say exact, exact."""
    widest, short = 1.0, 0
    for c, b, k in small_matrices(500):
        for how, patterns in ways(c.shape[1], b, k):
            found, truth = squared_sensitivity(Dense(c), how), squared(c, patterns)
            holds(found, truth)
            short += found.low < truth * (1 - 1e-9)
            assert found.low >= 0.9 * truth
            assert found.high > truth  # rounding is charged
            exact = how.kind == SINGLE or (how.kind == EPOCHS and c.min() >= 0) or Dense(c).bands <= b
            if exact and how.kind != EPOCHS:
                assert found.high <= truth * (1 + 1e-12)
            if how.kind == SEPARATED:
                widest = max(widest, math.sqrt(found.high / truth))
    assert widest < 1.15
    assert short <= 5  # the ascent hardly ever misses the worst pattern


def test_banded_matrices_with_signs_are_exact() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        n, b, k = int(rng.integers(4, 12)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
        c = np.tril(rng.normal(size=(n, n))) * (np.subtract.outer(np.arange(n), np.arange(n)) < b)
        found = squared_sensitivity(Dense(c), Participation(SEPARATED, b, k))
        truth = squared(c, separated(n, b, k))
        assert found.low <= truth * (1 + TINY) <= found.high * (1 + 2 * TINY) < truth * (1 + 1e-12)


def test_toeplitz_matrices_against_brute_force() -> None:
    rng = np.random.default_rng(4)
    below = 0
    for trial in range(200):
        n, b, k = int(rng.integers(2, 9)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
        m = int(rng.integers(1, n + 1))
        c = rng.normal(size=m) if trial % 3 == 0 else rng.uniform(size=m)
        c = -np.sort(-c) if trial % 3 == 1 else c
        matrix = Toeplitz(c, n)
        for how, patterns in ways(n, b, k):
            found, truth = squared_sensitivity(matrix, how), squared(matrix.dense().array, patterns)
            holds(found, truth)
            if trial % 3 == 1:
                assert truth * (1 - 1e-12) <= found.low <= found.high <= truth * (1 + 1e-12)
        first = squared(matrix.dense().array, [tuple(range(0, n, b))[:k]])
        below += first < squared(matrix.dense().array, separated(n, b, k)) * (1 - 1e-6)
    assert below > 5  # the columns 0, b, 2b, ... are not always the worst: the rule needs its hypothesis


def test_large_toeplitz_agrees_with_dense() -> None:
    n = 300
    for c in (families.square_root(n), families.blt(np.array([0.3, 0.1]), np.array([0.9, 0.99]), n)):
        for b, k in ((30, None), (30, 4), (7, 9), (1, None)):
            how = Participation(SEPARATED, b, k)
            exact, dense = squared_sensitivity(Toeplitz(c, n), how), squared_sensitivity(Toeplitz(c, n).dense(), how)
            assert exact.low * (1 - 1e-9) <= dense.low <= exact.high <= dense.high * (1 + TINY)
            assert exact.high <= exact.low * (1 + 1e-10)
    wavy = Toeplitz(families.square_root(4000) * np.cos(np.arange(4000)), 4000)  # too large for the dense look
    found = squared_sensitivity(wavy, Participation(SEPARATED, 1000, 4))
    assert 0 < found.low < found.high < 3 * found.low


def test_best_sums_against_enumeration() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        n, b, k = int(rng.integers(1, 9)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
        v = rng.uniform(size=n)
        truth = max(math.fsum(v[list(p)]) for p in separated(n, b, k))
        most = most_steps(n, b, k)
        assert float(best_sums(v[None, :], b, most)[0]) == pytest.approx(truth, rel=1e-14)
        chosen = best_pattern(v, b, most)
        assert chosen in [list(p) for p in separated(n, b, k)]
        assert math.fsum(v[chosen]) == pytest.approx(truth, rel=1e-14)


# -- families ----------------------------------------------------------------------------------------------------------


def test_the_square_root_is_one() -> None:
    n = 40
    c = Toeplitz(families.square_root(n), n).dense().array
    assert np.allclose(c @ c, np.tril(np.ones((n, n))), rtol=1e-13)
    inverse = Toeplitz(families.inverse_square_root(n), n).dense().array
    assert np.allclose(c @ inverse, np.eye(n), atol=1e-14)
    assert np.allclose(families.inverse_square_root(n)[1:], np.diff(families.square_root(n)), rtol=1e-12)


def test_blt_norm_in_closed_form() -> None:
    """One participation: 1 + sum_ij omega_i omega_j (1 - (theta_i theta_j)^(n-1)) / (1 - theta_i theta_j)."""
    omega, theta, n = np.array([0.3, 0.2, 0.05]), np.array([0.5, 0.9, 1.0]), 50
    products = np.outer(theta, theta)
    series = np.where(products == 1, n - 1.0, (1 - products ** (n - 1)) / np.where(products == 1, 1.0, 1 - products))
    truth = 1 + float(omega @ series @ omega)
    run = pl.MatrixMechanism.blt(
        omega=list(omega), theta=list(theta), steps=n, participation="single", noise_multiplier=1.0
    )
    low, high = run.sensitivity_of()
    assert low**2 <= truth * (1 + 1e-14) <= high**2 * (1 + 2e-14)
    assert high <= low * (1 + 1e-12)


def test_banded_inverse_is_the_inverse() -> None:
    noise, n = np.array([1.0, -0.5, -0.125]), 30
    c = Toeplitz(families.banded_inverse(noise, n), n).dense().array
    a = Toeplitz(noise, n).dense().array
    assert np.allclose(a @ c, np.eye(n), atol=1e-13)
    run = pl.MatrixMechanism.banded_inverse_square_root(
        bands=3, steps=n, participation="min-separation", separation=10, noise_multiplier=1.0
    )
    truth = squared(c, separated(n, 10, 3))
    low, high = run.sensitivity_of()
    assert low * (1 - 1e-12) <= math.sqrt(truth) <= high * (1 + 1e-12) <= low * (1 + 1e-9)


def test_identity_is_independent_noise() -> None:
    """C = 1: k steps of Gaussian noise."""
    for how, k in (({"participation": "single"}, 1), ({"participation": "min-separation", "separation": 5}, 4)):
        run = pl.MatrixMechanism(toeplitz=[1.0], steps=20, noise_multiplier=2.0, **how)
        plain = (pl.Gaussian(2.0) * k).epsilon(1e-6)
        assert run.epsilon(1e-6).lower <= plain.lower <= plain.upper <= run.epsilon(1e-6).upper
        assert run.epsilon(1e-6).relative_width < 1e-9
    run = pl.MatrixMechanism(toeplitz=[1.0], steps=20, noise_multiplier=2.0, participation="fixed-epochs", separation=5)
    assert run.epsilon(1e-6, adjacency="zero-out").upper == pytest.approx((pl.Gaussian(2.0) * 4).epsilon(1e-6).upper)
