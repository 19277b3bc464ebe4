"""Splitting by the largest loss: marks, sums over marks, and each error bound, against mpmath and balls."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from flint import acb, arb, ctx

import privloss as pl
from privloss.losses.composed import ComposedLoss
from privloss.losses.mixture.largest import Side
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.mixture.marked import MarkedLine
from privloss.losses.mixture.windows import END, at_losses
from privloss.numerics.contour.largest import draw

FEW_HITS = [  # sigma, rate, steps, delta, epsilon to ten digits or more
    (1.3, 1e-3, 10_000, 1e-6, 0.3623217626),
    (1.0, 3e-4, 10_000, 1e-6, 0.1529594412),
    (1.3, 1e-3, 3_000, 1e-6, 0.1940783735),
]


def sides(rate: float, sigma: float, steps: int, eps: float, log_delta: float) -> tuple[Side, Side]:
    loss = ComposedLoss((GaussianMixtureLoss(np.array([rate]), np.array([sigma]), np.array([float(steps)])),))
    assert loss.rare is not None
    return loss.rare.sides(eps, log_delta)  # type: ignore[return-value]


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta", "epsilon"), FEW_HITS)
def test_known_epsilons(sigma: float, rate: float, steps: int, delta: float, epsilon: float) -> None:
    found = (pl.Gaussian(noise_multiplier=sigma).poisson(rate) * steps).epsilon(delta)
    assert found.lower - 1e-10 <= epsilon <= found.upper + 1e-10
    assert found.relative_width < 1e-9
    assert "split by the largest loss" in found.method


def test_marks_are_probabilities_that_add_up() -> None:
    windows = at_losses(1e-3, 0.8, np.array([0.05, 0.1, 0.2]))
    y = np.linspace(-3.0, windows.end(0) - 1e-9, 400)
    total = sum(np.exp(windows.log_weights(j, y)) for j in range(windows.count + 1))
    assert np.allclose(total, 1.0, rtol=0, atol=2e-15)
    assert np.allclose(windows.left_out(y), 1 - np.exp(windows.log_weights(0, y)), rtol=0, atol=2e-15)


@pytest.mark.parametrize("j", [0, 1, 2, 3])
def test_windows_off_the_axis_stay_below_their_bound(j: int) -> None:
    windows = at_losses(1e-3, 0.8, np.array([0.05, 0.1, 0.2]))
    edges = np.linspace(windows.start(1), float(windows.centre[-1] + 3 * windows.width[-1]), 25)
    for lift in (0.02, 0.1, 0.3):
        bound = windows.log_bound(j, edges[:-1], edges[1:], np.array([lift]))
        for left, right, most in zip(edges[:-1], edges[1:], bound, strict=True):
            for y in (left, 0.5 * (left + right), right):
                value = mp.mpf(1)
                for i in range(max(j - 1, 0), windows.count):
                    x = (windows.centre[i] - mp.mpc(y, lift)) / windows.width[i]
                    value *= mp.erfc((x if i == j - 1 else -x) / mp.sqrt(2)) / 2
                assert float(mp.log(abs(value) + mp.mpf(10) ** -300)) <= most + 1e-9


def exact_sum(side: Side, j: int, z: complex) -> acb:
    """M_j(z) by adaptive integration of its definition, in ball arithmetic."""
    step = side.steps[0]
    q, sigma, windows = arb(step.rate), arb(step.sigma), step.windows
    power = acb(-z if side.backward else z + 1)
    low, high = step.span(j)

    def f(y: acb, analytic: bool) -> acb:
        r = 1 - q + q * ((y - arb("0.5")) / sigma**2).exp()
        weight = (-y * y / (2 * sigma**2) + power * r.log(analytic=analytic)).exp() / (sigma * (2 * arb.pi()).sqrt())
        for i in range(max(j - 1, 0), windows.count):
            x = (arb(float(windows.centre[i])) - y) / (arb(float(windows.width[i])) * arb(2).sqrt())
            weight *= (x if i == j - 1 else -x).erfc() / 2
        return weight

    with ctx.workprec(100):
        pieces = [acb(float(v)) for v in np.linspace(low - 1.0, high, 41)]
        return sum((acb.integral(f, a, b) for a, b in itertools.pairwise(pieces)), acb(0))


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("j", [0, 1, 2])
def test_sums_lie_within_their_errors(backward: bool, j: int) -> None:
    eps = 0.2157
    side = sides(1e-3, 0.8, 50, eps, math.log(1e-6))[1 if backward else 0]
    c = 8.0 / eps
    t = np.arange(4) * 9.0 / eps
    line = MarkedLine(side.steps[0], c, backward, t)
    found = line.rare(j) if j else line.bulk()
    for height, value, error in zip(t, found.value, found.error, strict=True):
        with ctx.workprec(100):
            truth = exact_sum(side, j, complex(c, float(height))) - (0 if j else 1)
            assert abs(truth - acb(complex(value))) <= error + 1e-17 * abs(truth)
        assert error < 1e-9 * abs(float(np.abs(found.value[0]))) + 1e-13


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("j", [0, 1, 2, 3])
def test_the_line_stays_below_its_proven_fall(backward: bool, j: int) -> None:
    eps = 0.2157
    side = sides(1e-3, 0.8, 50, eps, math.log(1e-6))[1 if backward else 0]
    c = 8.0 / eps
    fall = side.decay(j, c)
    t = np.arange(120) * 0.5 / eps
    values = side.line(j, c, t)
    for start in (0, 20, 50, 80):
        most = fall.log_upper(float(t[start]))
        sure = values.error[start:] < 0.5
        assert np.any(sure)
        assert np.all((values.log_modulus[start:] - 2 * values.error[start:])[sure] <= most + 1e-9)


def test_masses_and_real_points() -> None:
    eps = 0.2157
    forward, backward = sides(1e-3, 0.8, 50, eps, math.log(1e-6))
    for side in (forward, backward):
        for j in range(1, side.classes - 1):
            low, high = side.mass(j)
            line = side.line(j, 0.0, np.zeros(1))
            value = math.exp(float(line.log_modulus[0]))
            assert low * (1 - 1e-12) <= value <= high * (1 + 1e-12)
            assert 0 <= high - low <= 1e-9 * value
            for c in (1.0 / eps, 10.0 / eps):
                at = side.line(j, c, np.zeros(1))
                assert side.log_upper(j, np.array([c]))[0] >= at.log_modulus[0] - at.error[0]


@pytest.mark.parametrize("levels", [(0.45, 0.9, 1.8, 3.6), (0.3, 0.7, 1.5, 3.5), (0.55, 1.1, 2.2, 5.0)])
def test_any_split_gives_the_same_delta(levels: tuple[float, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    loss = ComposedLoss((GaussianMixtureLoss(np.array([1e-3]), np.array([0.8]), np.array([50.0])),))
    assert loss.rare is not None
    eps, log_delta = 0.2157, math.log(1.000084991536e-6)
    monkeypatch.setattr(type(loss.rare), "levels", lambda self, at: np.array(levels) * at)
    reading = draw(loss.rare, eps, log_delta, 1e-10)
    low, high = (float(f(np.array([eps]))[0]) for f in (reading.log_lower, reading.log_upper))
    assert low <= log_delta + 1e-11
    assert high >= log_delta - 1e-11
    assert high - low < 1e-7


def test_windows_end_where_they_say() -> None:
    windows = at_losses(1e-3, 0.8, np.array([0.05, 0.1]))
    assert windows.end(0) == windows.centre[0] + END * windows.width[0]
    assert windows.end(2) == math.inf


def test_mixed_plans_are_split_as_well() -> None:
    """Two kinds of steps and plain noise: splitting one of them in two changes nothing."""
    one = pl.Gaussian(0.9).poisson(2e-4) * 300 + pl.Gaussian(1.2).poisson(5e-4) * 100 + pl.Gaussian(200.0) * 2
    two = pl.Gaussian(0.9).poisson(2e-4) * 100 + pl.Gaussian(0.9).poisson(2e-4 * (1 + 1e-13)) * 200
    two = two + pl.Gaussian(1.2).poisson(5e-4) * 100 + pl.Gaussian(200.0) * 2
    a, b = one.epsilon(1e-8), two.epsilon(1e-8)
    assert a.relative_width < 1e-7
    assert b.lower <= a.upper * (1 + 1e-10)
    assert a.lower <= b.upper * (1 + 1e-10)


def test_a_poor_line_is_drawn_elsewhere() -> None:
    """Classes for the eps of this delta, a twentieth of all hits, leave the bulk a line that no nodes can follow."""
    answer = (pl.Gaussian(0.6026384129733567).poisson(8.136305764956314e-06) * 12).epsilon(4.540340096700872e-06)
    assert answer.relative_width < 1e-7
    assert answer.lower <= 0.00026442267693 <= answer.upper
