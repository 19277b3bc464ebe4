"""Plans with a Renyi curve: the conversion itself, and both directions of the exact part beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest

import privloss as pl
from privloss.answers.moments import epsilon_upper, log_delta_upper

Vector = Sequence[float]


def log_kappa(c: mpmath.mpf) -> mpmath.mpf:
    """The largest x^-c (1 - e^-x) is c^c/(c+1)^(c+1)."""
    return c * mpmath.log(c) - (c + 1) * mpmath.log(c + 1)


@pytest.mark.parametrize("rho", [1e-4, 0.1, 5.0])
@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-30])
def test_moments_convert_at_the_best_order(rho: float, delta: float) -> None:
    grid = [mpmath.mpf(10) ** (mpmath.mpf(i) / 100) for i in range(-600, 601)]

    def k(c: np.ndarray) -> np.ndarray:
        return rho * c * (c + 1)

    with mpmath.workdps(30):
        least = min((rho * c * (c + 1) + log_kappa(c) - mpmath.log(delta)) / c for c in grid)
        found = epsilon_upper(k, None, math.log(delta))
        assert found >= least - mpmath.mpf("1e-3") * (1 + abs(least))
        assert found <= least + mpmath.mpf("1e-12") * (1 + abs(least))
        at = [mpmath.mpf(c) for c in (0.5, 3.0, 40.0)]
        points = np.array([float(c) for c in at])
        exact = min((rho * c * (c + 1) + log_kappa(c) - mpmath.log(delta)) / c for c in at)
        assert exact <= epsilon_upper(k, points, math.log(delta)) <= exact + mpmath.mpf("1e-11") * (1 + abs(exact))
        for eps in (0.1, 3.0):
            exact = min(rho * c * (c + 1) + log_kappa(c) - c * eps for c in at)
            assert exact <= log_delta_upper(k, points, eps) <= exact + mpmath.mpf("1e-11") * (1 + abs(exact))


def beside_gaussian(p: Vector, q: Vector, mu: float, eps: float) -> mpmath.mpf:
    """delta(eps) of a pair of vectors beside Gaussian noise: the noise is asked at eps - log p/q."""
    total = mpmath.mpf(0)
    for a, b in zip(p, q, strict=True):
        if b == 0:
            total += a
        elif a > 0:
            x = eps - mpmath.log(mpmath.mpf(a) / b)
            total += a * (mpmath.ncdf(mu / 2 - x / mu) - mpmath.exp(x) * mpmath.ncdf(-mu / 2 - x / mu))
    return total


BESIDE: list[tuple[Vector, Vector]] = [
    ([0.5, 0.5], [0.99, 0.01]),
    ([0.99, 0.01], [0.5, 0.5]),
    ([0.5, 0.5, 0.0], [0.5, 0.49, 0.01]),  # only Q shows the third outcome
    ([0.5, 0.49, 0.01], [0.5, 0.5, 0.0]),
    ([0.6, 0.39, 0.01], [0.9, 0.1, 0.0]),
    ([0.9, 0.1, 0.0], [0.6, 0.39, 0.01]),
]


@pytest.mark.parametrize("rho", [1e-3, 0.05])
@pytest.mark.parametrize(("p", "q"), BESIDE)
def test_moments_beside_a_pair_cover_both_directions(p: Vector, q: Vector, rho: float) -> None:
    """Gaussian noise with mu^2 = 2 rho satisfies the curve, so the plan may be that pair beside it."""
    plan = pl.Custom(p, q) + pl.ZCDP(rho)
    with mpmath.workdps(40):
        mu = mpmath.sqrt(2 * mpmath.mpf(rho))
        for eps in (0.0, 0.3, 1.0, 3.0, 4.0, 8.0):
            truth = max(beside_gaussian(p, q, mu, eps), beside_gaussian(q, p, mu, eps))
            found = plan.delta(eps)
            assert found.lower <= truth * (1 + mpmath.mpf("1e-9"))
            assert truth <= found.upper
        for delta in (0.3, 0.0101, 0.012, 1e-4):
            found = plan.epsilon(delta)
            for eps in (found.upper, found.lower):
                if math.isfinite(eps):
                    at = max(beside_gaussian(p, q, mu, eps), beside_gaussian(q, p, mu, eps))
                    assert at <= delta if eps == found.upper else at >= delta * (1 - 1e-9) or eps == 0


@pytest.mark.parametrize(("sigma", "rho"), [(1.0, 1e-4), (1.0, 0.5), (5.0, 0.5), (0.3, 1e-6)])
def test_moments_beside_noise(sigma: float, rho: float) -> None:
    """The box of the curve keeps its own delta, and the exact part stays beside it."""
    plan, least = pl.Gaussian(sigma) + pl.ZCDP(rho), pl.GDP(math.sqrt(sigma**-2 + 2 * rho))
    for delta in (0.1, 1e-3, 1e-6):
        assert plan.epsilon(delta).upper >= least.epsilon(delta).lower
    for eps in (0.0, 1.0, 3.0):
        assert plan.delta(eps).upper >= least.delta(eps).lower


def test_moments_a_box_has_a_delta_of_its_own() -> None:
    """A mechanism that shows all with probability 1e-3 satisfies no finite curve, but one that nearly does satisfies
    this one: losses of 6 with probability 1e-3 (randomised otherwise) have D_2 = log(1 + 1e-3 (e^6 - 1)) at most."""
    p = [1e-3, 1 - 1e-3]
    q = [1e-3 * math.exp(-6), 1 - 1e-3 * math.exp(-6)]
    order = math.log(p[0] ** 2 / q[0] + p[1] ** 2 / q[1])
    back = math.log(q[0] ** 2 / p[0] + q[1] ** 2 / p[1])
    plan = pl.RDP([2.0], [max(order, back) * (1 + 1e-12)]) + pl.PureDP(0.01)
    for eps in (0.0, 1.0, 4.0, 5.5):
        assert plan.delta(eps).upper >= p[0] - math.exp(eps) * q[0]
    assert plan.epsilon(5e-4).upper >= math.log((p[0] - 5e-4) / q[0])
