"""Renyi divergences at many orders from one pass, rho in closed form, and answers to a few digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

import privloss as pl
from privloss.answers import concentrated
from privloss.losses.closed import laplace
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics.normal import log_hockey_stick
from privloss.numerics.solve import decreasing_root

ORDERS = [1.0, 1.001, 1.1, 1.5, 2.0, 3.7, 10.0, 64.0, 1024.0, math.inf]
PLANS = [
    pl.Gaussian(4.0) * 30,
    pl.Laplace(3.0) * 20,
    pl.Plan.of(*((pl.Laplace(1.0 + i), i + 1) for i in range(7))),
    pl.RandomizedResponse(p=0.5) * 50,
    pl.RandomizedResponse(epsilon=0.3, answers=9) * 5,
    pl.Exponential(0.5) * 3,
    pl.Gaussian(1.1).poisson(0.01) * 10_000,
    pl.Custom([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]) * 10,
    pl.Laplace(2.0) * 3 + pl.Gaussian(3.0) * 2 + pl.PureDP(0.2),
    pl.ZCDP(0.1) + pl.Laplace(2.0),
    pl.ApproxDP(0.1, 1e-9) * 2,
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_many_orders_are_the_single_ones(plan: pl.Plan) -> None:
    for order, bound in zip(ORDERS, plan.rdp(ORDERS), strict=True):
        alone = plan.rdp(order)
        assert bound.lower == pytest.approx(alone.lower, rel=1e-12)
        assert bound.upper == pytest.approx(alone.upper, rel=1e-12)
        assert bound.lower <= alone.upper
        assert alone.lower <= bound.upper


@pytest.mark.parametrize("scale", [0.05, 0.7, 3.0, 100.0])
def test_laplace_divergences_hold_the_closed_form(scale: float) -> None:
    orders = [1 + 10**x for x in np.linspace(-6, 4, 40)]
    found = (pl.Laplace(scale) * 7).rdp(orders)
    with mp.workdps(60):
        lam = mp.mpf(1) / mp.mpf(scale)
        for order, bound in zip(orders, found, strict=True):
            a = mp.mpf(order)
            inside = a / (2 * a - 1) * mp.e ** ((a - 1) * lam) + (a - 1) / (2 * a - 1) * mp.e ** (-a * lam)
            truth = 7 * mp.log(inside) / (a - 1)
            assert bound.lower <= truth <= bound.upper
            assert bound.upper - bound.lower <= mp.mpf("1e-7") * truth


def test_one_pass_for_all_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = laplace._k

    def counted(*given: object) -> object:
        nonlocal calls
        calls += 1
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(laplace, "_k", counted)
    (pl.Laplace(3.0) * 20).rdp(np.linspace(1.1, 50, 100))
    assert calls == 1


def test_rho_of_laplace_noise_and_responses_is_the_mean_loss() -> None:
    """The ratio falls: nothing found by search lies above, and t -> 0 is approached. With many answers it may rise."""
    plans = [pl.Laplace(10**x) * n for x in np.linspace(-1.5, 2, 8) for n in (1, 4)]
    plans += [pl.PureDP(10**x) * 3 for x in np.linspace(-2, 1, 6)]
    plans += [pl.RandomizedResponse(epsilon=e, answers=k) * 2 for e in (0.1, 1.0, 4.0) for k in (2, 3, 8, 40)]
    rose = 0
    for plan in plans:
        found, loss = plan.zcdp(), worst_neighbours(plan).loss
        t = np.geomspace(1e-3, 1e3, 200)
        assert float((loss.log_mgf_lower(t) / (t * (t + 1))).max()) <= found.upper * (1 + 1e-12)
        low, high = concentrated._bounded(loss)
        assert found.lower <= high
        assert low <= found.upper
        falls = all(part.concentration().falls for part in loss.parts)
        if falls:
            assert found.upper == pytest.approx(plan.kl().upper, rel=1e-10)
        rose += not falls
    assert rose > 0


@pytest.mark.parametrize("mu", [1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.51, 2.0])
def test_two_normals_close_together(mu: float) -> None:
    """The series about the middle keeps the digits that a difference loses."""
    with mp.workdps(60):
        for a in np.linspace(-1.0, 12.0, 27):
            eps = (a + mu / 2) * mu
            m, e = mp.mpf(mu), mp.mpf(eps)
            truth = mp.log(mp.ncdf(-e / m + m / 2) - mp.e**e * mp.ncdf(-e / m - m / 2))
            low, high, relative = log_hockey_stick(eps, mu)
            assert mp.mpf(low) <= truth <= mp.mpf(high)
            assert relative < (1e-11 if mu <= 1e-3 else 2e-12)


ROUGH = [
    pl.Gaussian(20.0) * 1, pl.Gaussian(2.0).poisson(0.05) * 1, pl.Laplace(5.0) * 1, pl.PureDP(0.05) * 1,
    pl.Plan.of(*((pl.PureDP(0.1 + 0.0137 * i), 1) for i in range(40))), pl.Laplace(3.0).poisson(0.2) * 1,
]  # fmt: skip


@pytest.mark.parametrize("plan", ROUGH, ids=str)
@pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-30])
def test_a_few_digits_hold_all_of_them(plan: pl.Plan, delta: float) -> None:
    whole, rough = plan.epsilon(delta), plan.epsilon(delta, tolerance=5e-5)
    assert rough.lower <= whole.upper
    assert whole.lower <= rough.upper
    assert rough.relative_width <= 5e-5
    assert whole.relative_width <= 1e-8


def test_rough_roots_ask_less_and_lie_on_the_safe_sides() -> None:
    asked: list[float] = []

    def bounds(x: float) -> tuple[float, float]:
        asked.append(x)
        return -x * x - 1e-9, -x * x + 1e-9

    exact = decreasing_root(bounds, (-9.0, -9.0), 1.0)
    often = len(asked)
    assert len(set(asked)) == often  # nothing is asked twice
    asked.clear()
    rough = decreasing_root(bounds, (-9.0, -9.0), 1.0, 1e-4)
    assert len(asked) < often / 2
    assert rough[0] <= exact[0] <= 3.0 <= exact[1] <= rough[1]
    assert rough[1] - rough[0] < 3e-4


def test_delta_far_out_is_never_without_a_bound() -> None:
    for sigma in (8.0, 12.0, 18.0):
        found = (pl.Gaussian(sigma).poisson(2.7e-4) * 14).delta(0.0039, work=1e7)
        assert found.upper < 1e-40
        assert found.lower <= found.upper


def test_many_deltas_obey_the_limit_of_work() -> None:
    plan = pl.Gaussian(0.9).poisson(1e-4) * 200
    deltas = np.geomspace(1e-9, 1e-5, 6).tolist()
    whole, little = plan.epsilon(deltas), plan.epsilon(deltas, work=1e4)
    assert any("limit of work" in note for bound in little for note in bound.notes)
    for wide, narrow in zip(little, whole, strict=True):
        assert wide.lower <= narrow.upper
        assert narrow.lower <= wide.upper


def test_lines_that_serve_nothing_else_are_not_read_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few hits: after two lines that answered one question each, the others are asked by themselves."""
    from privloss.answers import curves

    reads = 0
    real = curves._read

    def counted(*given: object) -> object:
        nonlocal reads
        reads += 1
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(curves, "_read", counted)
    plan = pl.Gaussian(0.82).poisson(1.7e-4) * 14
    deltas = np.geomspace(1e-12, 1e-5, 10)
    together = plan.epsilon(deltas.tolist())
    assert reads <= 4
    for delta, bound in zip(deltas, together, strict=True):
        alone = plan.epsilon(float(delta))
        assert bound.lower <= alone.upper
        assert alone.lower <= bound.upper
