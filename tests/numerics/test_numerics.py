"""The floor: stable functions and engine pieces against 50-digit arithmetic."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from privloss.losses.composed import ComposedLoss
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.numerics import stable
from privloss.numerics.contour.solve import delta_bounds
from privloss.numerics.contour.sparse import least
from privloss.numerics.normal import log_hockey_stick
from privloss.numerics.solve import decreasing_root, last_at_least
from privloss.numerics.stable import exp_minus_1_minus, log1p_polar, product, x_minus_log1p

POINTS = [s * 10.0**k for s in (-1, 1) for k in np.linspace(-12, 0.3, 26)]


def test_stable_functions() -> None:
    with mp.workdps(50):
        for x in POINTS:
            v = mp.mpf(x)
            assert abs(float(exp_minus_1_minus(x)) / (mp.e**v - 1 - v) - 1) < 1e-14
            if x > -0.9:
                assert abs(float(x_minus_log1p(x)) / (v - mp.log(1 + v)) - 1) < 1e-14
            z = mp.mpc(x, 0.7 * x)
            got = complex(exp_minus_1_minus(complex(z)))
            assert abs(mp.mpc(got) / (mp.e**z - 1 - z) - 1) < 1e-13
            re, im = log1p_polar(np.array(x / 4), np.array(x / 5))
            w = mp.log(1 + mp.mpc(x / 4, x / 5))
            assert abs(mp.mpc(float(re), float(im)) / w - 1) < 1e-13


@pytest.mark.parametrize(
    ("first", "second"),
    [((3, 5), (5, 7)), ((90, 70), (70, 41)), ((2, 4000), (4000, 3)), ((1, 900), (900, 300)), ((4, 33, 50), (50, 60))],
)
def test_products_in_parts(first: tuple[int, ...], second: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry, however many parts and tiles there are; and no part is large enough for threads."""
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in (first, second))
    whole, real = np.einsum("...ij,jk->...ik", a, b), np.matmul

    def counted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        assert x.shape[-2] * x.shape[-1] * y.shape[-1] <= stable._UNTHREADED
        return np.asarray(real(x, y))

    monkeypatch.setattr(np, "matmul", counted)
    assert np.allclose(product(a, b), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 8.0])
def test_two_normals(mu: float) -> None:
    with mp.workdps(60):
        for eps in (0.0, 0.3 * mu, 3 * mu, 20 * mu, mu * mu / 2 + 5 * mu):
            m, e = mp.mpf(mu), mp.mpf(eps)
            truth = mp.ncdf(-e / m + m / 2) - mp.e**e * mp.ncdf(-e / m - m / 2)
            low, high, relative = log_hockey_stick(eps, mu)
            assert relative < 0.1
            assert mp.mpf(low) <= mp.log(truth) <= mp.mpf(high)


def exact_k(q: float, sigma: float, z: mp.mpc, flipped: bool) -> mp.mpc:
    q_, s_ = mp.mpf(q), mp.mpf(sigma)
    w = -z if flipped else z + 1

    def f(y: mp.mpf) -> mp.mpc:
        r = 1 - q_ + q_ * mp.e ** ((2 * y - 1) / (2 * s_ * s_))
        return mp.npdf(y, 0, s_) * (mp.e ** (w * mp.log(r)) - 1 - w * (r - 1))

    high = abs(mp.re(z)) + 2 + 14 * s_
    return mp.log1p(mp.quad(f, [-14 * s_ + (high + 14 * s_) * k / 30 for k in range(31)]))


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize(
    ("q", "sigma", "c", "t"),
    [
        (0.01, 1.1, 5.0, 3.0),
        (1e-9, 0.5, 3.0, 2.0),
        (1e-4, 0.25, 0.5, 10.0),
        (0.5, 10.0, 20.0, 5.0),
        (0.01, 1.0, 8.0, 120.0),
    ],
)
def test_k_of_the_mixture(q: float, sigma: float, c: float, t: float, flipped: bool) -> None:
    loss = GaussianMixtureLoss(np.array([q]), np.array([sigma]), np.ones(1), flipped)
    values = loss.vertical(c).line(np.array([0.0, t]), 1e-14)
    with mp.workdps(30):
        for i, height in enumerate((0.0, t)):
            truth = exact_k(q, sigma, mp.mpc(c, height), flipped)
            got = mp.mpc(values.log_modulus[i], values.phase[i])
            assert abs(mp.e ** (got - truth) - 1) <= math.expm1(values.error[i])
            assert values.error[i] < 1e-10
        # and the decay bound holds at this and at larger heights
        bound = loss.vertical(c).decay(0.8 * t)
        for height in (0.8 * t, t, 1.7 * t):
            fall = exact_k(q, sigma, mp.mpc(c, height), flipped).real - exact_k(q, sigma, mp.mpc(c, 0), flipped).real
            assert fall <= bound + 1e-9


@pytest.mark.parametrize("flipped", [False, True])
def test_engine_against_closed_form_of_one_step(flipped: bool) -> None:
    """The contour, blurred where it must be, contains what the closed form of a single step says."""
    for q, sigma, eps in [(0.01, 1.0, 0.3), (0.3, 2.0, 0.2), (0.9, 0.7, 1.0), (1e-4, 0.6, 0.001)]:
        loss = ComposedLoss((GaussianMixtureLoss(np.array([q]), np.array([sigma]), np.ones(1), flipped),))
        closed = loss.hockey_stick(eps)
        assert closed is not None
        low, high = delta_bounds(loss, eps, 1e-8).logs
        assert low <= closed[1]
        assert closed[0] <= high
        if closed[1] > -700 and not flipped:
            assert high - low < 0.2


def test_trimmed_rows_keep_the_truth() -> None:
    loss = GaussianMixtureLoss(np.array([1e-3]), np.array([1.0]), np.array([5.0]))
    trimmed = loss.cut_at(np.array([9.0]))
    assert trimmed.log_lost < -25
    a = loss.vertical(3.0).line(np.linspace(0, 5, 6), 1e-13)
    b = trimmed.vertical(3.0).line(np.linspace(0, 5, 6), 1e-13)
    assert np.all(np.abs(a.log_modulus - b.log_modulus) <= a.error + b.error + 1e-6)


def test_solvers() -> None:
    low, high = decreasing_root(lambda x: (-x - 1e-9, -x + 1e-9), (-3.0, -3.0), 1.0)
    assert low <= 3.0 - 1e-9 <= 3.0 + 1e-9 <= high
    assert high - low < 3e-9
    assert decreasing_root(lambda x: (-x - 5, -x - 5), (-3.0, -3.0), 1.0) == (0.0, 0.0)
    assert decreasing_root(lambda x: (-x, -x), (-1e-200, -1e-200), 1.0)[1] <= 1.01e-200
    assert last_at_least(lambda x: -x, -0.1, 1.0) == pytest.approx(0.1)
    assert last_at_least(lambda x: -x, -0.1, 1.0) <= 0.1
    assert last_at_least(lambda x: -x if x > 0.05 else -math.inf, -0.1, 1.0) == pytest.approx(0.1)
    assert last_at_least(lambda x: -math.inf, -0.1, 1.0) == 0.0


@pytest.mark.parametrize("budget", [0.0, 1e-30, 1e-9, 0.3, 1e9])
def test_the_least_shares_within_a_budget(budget: float) -> None:
    """As many as stay within it, and no other that is smaller than one of them."""
    share = 10.0 ** np.random.default_rng(4).uniform(-40, 1, 5000)
    found = least(share, budget)
    left = np.sort(share[~found])
    assert share[found].sum() <= budget * (1 + 1e-12)
    assert len(left) == 0 or share[found].max(initial=0.0) <= left[0]
    assert len(left) == 0 or share[found].sum() + left[0] > budget * (1 - 1e-12)


def test_least_shares_count_from_the_first() -> None:
    """900 that are surely among them take nine hundredths of the budget, so that 91 of a hundredth are left for."""
    share = np.array([1e-4] * 900 + [1e-2] * 100)
    assert least(share, 1.0 + 1e-9).sum() == 991
