"""Symmetric pairs split by the largest loss: every bound on an error and on a fall is at least the true one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import erfc

from privloss.losses.density.legendre import NODES, panels
from privloss.losses.mixture.marked import Nodes
from privloss.losses.mixture.strip import RARE_ANGLES, Strips
from privloss.losses.symmetric.bulk import _ANGLES, Panels
from privloss.losses.symmetric.fall import _ANGLES as FALL_ANGLES
from privloss.losses.symmetric.fall import BulkFall
from privloss.losses.symmetric.pair import SymmetricPair
from privloss.losses.symmetric.step import SymmetricStep
from tests.losses.symmetric_steps import PAIRS, step_of


def _quadrature(
    pair: SymmetricPair, low: float, high: float, width: float, f: Any, sizes: bool = False
) -> tuple[complex, Panels]:
    y, weights, half = panels(low, high, width)
    a, b = pair.logs(y)
    phi = weights * np.exp(-0.5 * (y / pair.sigma) ** 2) / (pair.sigma * math.sqrt(2 * math.pi))
    values = np.abs(f(a, b)) if sizes else f(a, b)
    return complex((phi * values).sum()), Panels.on(pair, None, low, half, len(y) // NODES)


@pytest.mark.parametrize(
    ("rate", "sigma", "two_sided"),
    [
        (1e-3, 0.9, True),
        (0.4, 0.3, False),
        (1 - 1e-6, 0.5, True),
        (1e-9, 0.08, True),
        (1e-9, 0.08, False),
        (0.2, 50, True),
    ],
)
def test_coarse_panels_never_err_by_more_than_they_say(rate: float, sigma: float, two_sided: bool) -> None:
    """Coarse rules err so much that a fine one in doubles is the truth; finer ones must be known to be good."""
    pair = SymmetricPair(rate, sigma, two_sided)
    high = pair.start + 6 * sigma
    telling = 0
    for c, t in [(0.0, 0.0), (2.0, 0.0), (0.5, 8.0), (3.0, 30.0), (10.0, 200.0)]:
        for f, bound in _kinds(c, t):
            truth, fine = _quadrature(pair, pair.start, high, min(sigma, sigma**2) / 40, f)
            size = _quadrature(pair, pair.start, high, min(sigma, sigma**2) / 40, f, sizes=True)[0].real
            for width in (6 * sigma, 3 * sigma, 1.5 * sigma, 0.7 * sigma, 0.3 * sigma):
                found, coarse = _quadrature(pair, pair.start, high, width, f)
                missed = abs(found - truth)
                assert missed <= math.exp(min(bound(coarse), 700.0)) + 1e-11 * size
                telling += missed > 1e-9 * size
            assert bound(fine) < math.log(1e-9 * size + 1e-300) or t >= 30
    assert telling >= 4 or sigma == 50


def _kinds(c: float, t: float) -> list[tuple[Any, Any]]:
    """Integrands of both branches, and what panels say of them: e^(zZ), its rest, the mean loss, Z^2 e^(cZ)."""
    z = complex(c, t)
    return [
        (lambda a, b: np.exp(a + z * (a - b)) + np.exp(b - z * (a - b)), lambda p: p.log_missed(c, t, False)),
        (
            lambda a, b: np.exp(a) * _rest(z * (a - b)) + np.exp(b) * _rest(-z * (a - b)),
            lambda p: p.log_missed(c, t, True) if z else -math.inf,
        ),
        (lambda a, b: np.exp(b) * np.expm1(a - b) * (a - b), lambda p: p.log_missed_mean()),
        (
            lambda a, b: (a - b) ** 2 * (np.exp(a + c * (a - b)) + np.exp(b - c * (a - b))),
            lambda p: p.log_missed_square(c),
        ),
    ]


def _rest(u: Any) -> Any:
    return np.where(np.abs(u) < 0.02, u * u * (1 / 2 + u / 6 + u**2 / 24 + u**3 / 120 + u**4 / 720), np.exp(u) - 1 - u)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("count", [1, 6, 40])
def test_panels_bound_every_factor_on_their_ellipses(name: str, count: int) -> None:
    step = step_of(name)
    pair, (low, high) = step.pair, step.span(0)
    half = 0.5 * (high - low) / count
    found = Panels.on(pair, step.windows, low, half, count)
    centre = low + half * (2 * np.arange(count)[:, None] + 1)
    for i, angle in enumerate(_ANGLES[:, 0]):
        ratio = angle * pair.sigma**2 / half
        rho = ratio + math.sqrt(ratio**2 + 1)
        around = rho * np.exp(1j * np.linspace(0.0, 2 * math.pi, 121))
        y = centre + 0.5 * half * (around + 1 / around)
        # n nodes err by 64/15 M rho^(2-2n) / (rho^2 - 1); or by twice the width times M
        rule = math.log(4 * half)
        if angle > 0:
            rule = math.log(64 / 15 * half) - (2 * NODES - 2) * math.log(rho) - math.log(rho**2 - 1)
        phi = np.exp(-0.5 * (y / pair.sigma) ** 2) / (pair.sigma * math.sqrt(2 * math.pi))
        for b, width in zip(step.windows.centre, step.windows.width, strict=True):
            phi = phi * 0.5 * erfc((y - b) / width / math.sqrt(2))
        a = 1 - pair.rate + pair.rate * np.exp((y - 0.5) / pair.sigma**2)
        b = 1 - pair.rate + pair.rate * np.exp(-(y + 0.5) / pair.sigma**2) if pair.two_sided else np.ones_like(a)
        z, least = np.log(a) - np.log(b), 1e-9
        assert np.all(rule + np.log(np.abs(phi).max(axis=1) + 1e-300) <= found.log_rule[i] + least)
        assert np.all(np.log(np.abs(a)).max(axis=1) <= found.log_a[i] + least)
        assert np.all(np.log(np.abs(b)).max(axis=1) <= found.log_b[i] + least)
        assert np.all(z.real.max(axis=1) <= found.most[i] + least)
        assert np.all(z.real.min(axis=1) >= found.least[i] - least)
        assert np.all(np.abs(z.imag).max(axis=1) <= found.arg[i] + least)
        assert np.all(np.abs(z).max(axis=1) <= found._size[i] + least)


def test_panels_put_their_factors_together() -> None:
    """One panel and one angle on which all is known."""
    ones = np.ones((1, 1))
    most, least, arg, log_a, log_b = 0.7, -0.2, 0.3, 0.4, -0.1
    one = Panels(-2.0 * ones, log_a * ones, log_b * ones, most * ones, least * ones, arg * ones)
    two = Panels(*(np.repeat(x, 2, axis=1) for x in vars(one).values()))
    c, t = 1.5, 4.0
    size = math.hypot(most, arg)
    up, down = math.exp(log_a), math.exp(log_b)
    tilted = up * math.exp(c * most + t * arg) + down * math.exp(-c * least + t * arg)
    square = up * math.exp(c * most) + down * math.exp(-c * least)
    mean = 0.5 * size**2 * (up * math.exp(-least) + down * math.exp(most))
    for panels_, times in ((one, 1), (two, 2)):
        share = times * math.exp(-2.0)
        assert math.exp(panels_.log_missed(c, t, False)) == pytest.approx(share * tilted, rel=1e-8)
        rest = 0.5 * (c**2 + t**2) * size**2 * tilted
        assert math.exp(panels_.log_missed(c, t, True)) == pytest.approx(share * rest, rel=1e-8)
        assert math.exp(panels_.log_missed_square(c)) == pytest.approx(share * size**2 * square, rel=1e-8)
        assert math.exp(panels_.log_missed_mean()) == pytest.approx(share * mean, rel=1e-8)


@pytest.mark.parametrize("name", PAIRS)
def test_panels_with_windows_bound_their_error(name: str) -> None:
    step = step_of(name)
    low, high = step.span(0)
    c = 3.0 / PAIRS[name][3][0]
    values = {}
    for width in (high - low, 0.5 * (high - low), 0.25 * (high - low), 0.002 * (high - low)):
        y, weights, half = panels(low, high, width)
        a, b = step.pair.logs(y)
        phi = (
            weights * np.exp(-0.5 * (y / step.sigma) ** 2 + step.windows.log_weights(0, y)) / step.sigma / 2.5066282746
        )
        value = complex((phi * (np.exp(a + c * (a - b)) + np.exp(b - c * (a - b)))).sum())
        bound = Panels.on(step.pair, step.windows, low, half, len(y) // NODES).log_missed(c, 0.0, False)
        values[width] = value, math.exp(min(bound, 700.0))
    truth = values.popitem()[1][0]
    for value, bound in values.values():
        assert abs(value - truth) <= bound + 1e-11 * abs(truth)


def _true_moduli(step: SymmetricStep, c: float, u: Any) -> tuple[Any, float]:
    """Lower bounds on |M_0(c + iu)|, and M_0(c)."""
    low, high = step.span(0)
    y, weights, _ = panels(low, high, (high - low) / 400)
    a, b = step.pair.logs(y)
    z = a - b
    log_phi = (
        step.windows.log_weights(0, y) - 0.5 * (y / step.sigma) ** 2 - math.log(step.sigma * math.sqrt(2 * math.pi))
    )
    up, down = weights * np.exp(log_phi + a + c * z), weights * np.exp(log_phi + b - c * z)
    steep = np.repeat(np.diff(z[::NODES], append=2 * z[-1] - z[-NODES]), NODES) * u.max() > 18.0
    lost = float((up + down)[steep].sum())  # what the panels cannot follow
    assert lost < 1e-5 * (up + down).sum()
    turned = np.multiply.outer(u, z)
    moduli = np.hypot(np.cos(turned) @ (up + down) + step.pair.at_zero, np.sin(turned) @ (up - down))
    return moduli - 2 * lost - 1e-12, float(up.sum() + down.sum()) + step.pair.at_zero


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("tilt", [0.05, 3.0])
def test_the_bulk_stays_below_its_proven_fall(name: str, tilt: float) -> None:
    step = step_of(name)
    c = tilt / PAIRS[name][3][0]
    fall = step.bulk_decay(c, False)
    assert isinstance(fall, BulkFall)
    spread = math.sqrt(fall._bend / fall._total)
    heights = fall._profile[0]
    u = np.concatenate([0.5 * (heights[1::4] + heights[:-1:4]), heights[::5], np.linspace(12, 30, 60) / spread])
    u = np.unique(np.concatenate([u, np.geomspace(1e-5, 30, 60) / spread]))
    moduli, total = _true_moduli(step, c, u)
    most = np.maximum.accumulate((moduli / total)[::-1])[::-1]
    found = np.array([float(fall.log_upper(float(x))[0]) for x in u])
    assert np.all(np.exp(found) >= most)
    assert np.all(found <= 0)
    assert found.min() < -0.2  # and it is worth something


@pytest.mark.parametrize("name", PAIRS)
def test_beyond_the_grid_of_heights_too(name: str) -> None:
    """The bound by moving off the axis alone."""
    step = step_of(name)
    c = 1.0 / PAIRS[name][3][0]
    fall = step.bulk_decay(c, False)
    assert isinstance(fall, BulkFall)
    u = np.geomspace(0.1, 40.0, 60) / math.sqrt(fall._bend / fall._total)
    moduli, _ = _true_moduli(step, c, u)
    bounds = np.array([fall._beyond(float(x)) for x in u])
    assert np.all(bounds >= moduli)
    assert np.all(np.diff(bounds) <= 1e-12 * bounds[:-1])


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("cells", [3, 256])
def test_the_way_off_the_axis(name: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """arg A rises at least as fast as said, and few cells bound the integral along the way as well as many do."""
    monkeypatch.setattr("privloss.losses.symmetric.fall._CELLS", cells)
    step = step_of(name)
    pair, c = step.pair, 1.0 / PAIRS[name][3][0]
    fall = step.bulk_decay(c, False)
    assert isinstance(fall, BulkFall)
    for angle, kappa in zip(FALL_ANGLES[:, 0], fall._kappa, strict=True):
        theta = angle * np.linspace(0.01, 1.0, 50)
        arg = pair.complex_logs(np.array([pair.start]), theta)[0].imag
        assert np.all(arg >= kappa * theta * (1 - 1e-12))
        assert arg[-1] <= 1.5 * kappa * angle or pair.rate > 0.5
    y = np.linspace(pair.start, step.span(0)[1], 2_001)
    for u in (3.0 / PAIRS[name][3][0], 30.0 / PAIRS[name][3][0]):
        along = []
        for angle in FALL_ANGLES[:, 0]:
            at = y + 1j * angle * pair.sigma**2
            a, b = pair.complex_logs(y, np.array([angle]))
            phi = np.exp(-0.5 * (at / pair.sigma) ** 2) / (pair.sigma * math.sqrt(2 * math.pi))
            for centre, width in zip(step.windows.centre, step.windows.width, strict=True):
                phi = phi * 0.5 * erfc((at - centre) / width / math.sqrt(2))
            z = (a - b).real
            both = np.exp(a.real + c * z) + np.exp(b.real - c * z)
            along.append(np.trapezoid(np.abs(phi) * both * np.exp(-u * a.imag), y))
        assert fall._beyond(u) >= min(along) * (1 - 1e-6)


def test_between_heights_a_sum_is_bounded_by_its_bend() -> None:
    """Losses -1 and 1 with equal chances: |cos u| reaches 1 again and again, between the heights."""
    usual = step_of("replace-one").bulk_decay(0.0, False)
    assert isinstance(usual, BulkFall)
    log_r = np.array([1.0, -1.0])
    nodes = Nodes(1.0, math.log(0.5) - log_r, log_r, np.zeros(2), np.zeros(2))
    nothing = Panels(np.full((1, 1), -np.inf), *(np.zeros((1, 1)) for _ in range(5)))
    fall = BulkFall(usual.pair, usual.windows, nodes, nothing, usual.end, 0.0)
    end = fall._profile[0][-1]
    for u in (*np.linspace(0.2, 0.999 * end, 200), *(math.pi * np.arange(1, int(end / math.pi) + 1))):
        assert float(fall.log_upper(float(u))[0]) >= math.log(abs(math.cos(u))) - 1e-12
    heights, bounds = fall._profile
    exact = np.maximum(np.abs(np.cos(heights[1:])), np.abs(np.cos(heights[:-1]))) + np.diff(heights) ** 2 / 8
    assert np.all(np.exp(bounds) >= exact * (1 - 1e-12))


@pytest.mark.parametrize("name", PAIRS)
def test_what_b_adds_to_rare_classes(name: str) -> None:
    step = step_of(name)
    both = step.rare_strips
    y = np.linspace(step.windows.start(1) - 0.25 * step.sigma, step.top, 300)
    b = step.pair.complex_logs(y[None, :], RARE_ANGLES)[1]
    assert np.all((both.least <= b.real) & (b.real <= 0) & (np.abs(b.imag) <= both.turn))
    spacings, t = step.spacings, 7.0
    for power in (1.0, 3.5):
        factors = [-min(1 - power, 0.0) * -both.least, -min(power, 0.0) * -both.least]  # |B|^(1-a), |B|^a at their most
        plain = [both.strips.log_missed(p, t, spacings) + f for p, f in zip((power, 1 - power), factors, strict=True)]
        assert np.allclose(both.log_missed(power, t, spacings), np.logaddexp(*plain) + t * both.turn, atol=1e-9)
        fallen = [both.strips.log_fallen(p, t) + f for p, f in zip((power, 1 - power), factors, strict=True)]
        assert np.allclose(both.log_fallen(power, t), np.logaddexp(*fallen), atol=1e-9)
    mean = np.exp(both.log_missed_mean(1.0, spacings))
    for p in (1.0, 0.0):  # |log r| <= |log A| + |log B|
        assert np.all(mean >= np.exp(both.strips.log_missed_mean(p, spacings)) * (1 - 1e-9))
        more = -both.least + both.turn
        assert np.all(mean >= more * np.exp(both.strips.log_missed(p, 0.0, spacings)) * (1 - 1e-9))
    plain_strips = Strips.of(step.law, step.windows, [(j, *step.span(j)) for j in range(1, step.last + 1)])
    way_up = np.log(np.exp(plain_strips.low_weight) * (1 + 0.8 * plain_strips.theta * step.sigma))
    assert np.all(both.strips.low_weight >= way_up - 1e-9)


@pytest.mark.parametrize("name", PAIRS)
def test_rare_classes_stay_below_their_proven_fall(name: str) -> None:
    step = step_of(name)
    c = 3.0 / PAIRS[name][3][0]
    fine = step.finer().finer()
    for t in np.array([0.0, 5.0, 20.0, 60.0]) / PAIRS[name][3][0]:
        most = step.rare_strips.log_fallen(1 + c, float(t))
        for j in range(1, step.last):
            nodes = fine.nodes[j]
            tilted = np.exp(nodes.log_mass + (1 + c) * nodes.log_r)
            u = t + np.linspace(0.0, 40.0, 200) / PAIRS[name][3][0]
            u = u[u * np.abs(np.diff(nodes.log_r[: len(nodes.log_r) // 2])).max() < 2.0]  # that the nodes can follow
            if not len(u):
                continue
            turned = np.multiply.outer(u, nodes.log_r)
            true = np.hypot(np.cos(turned) @ tilted, np.sin(turned) @ tilted).max()
            assert math.log(true + 1e-300) <= most[j - 1] + 1e-9 or true < 1e-10 * tilted.sum()


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("coarser", [2.0, 3.0, 5.0, 8.0])
def test_coarse_trapezoid_rules_err_by_no_more_than_they_say(name: str, coarser: float) -> None:
    step = step_of(name)
    c = 3.0 / PAIRS[name][3][0]
    for j in range(1, step.last):
        low, high = step.span(j)
        spacing = min(coarser * step.nodes[j].spacing, 0.25 * step.sigma)
        spacings = np.full(step.last, spacing)
        for t in (0.0, 8.0 / PAIRS[name][3][0]):
            z = complex(c, t)
            value = {}
            for h in (spacing, step.nodes[j].spacing / 2):
                y = high - h * (np.arange(math.ceil((high - low) / h)) + 0.5)
                a, b = step.pair.logs(y)
                weight = (
                    h * np.exp(step.windows.log_weights(j, y) - 0.5 * (y / step.sigma) ** 2) / step.sigma / 2.50662827
                )
                value[h] = complex((weight * (np.exp(a + z * (a - b)) + np.exp(b - z * (a - b)))).sum())
                size = float((weight * np.exp(a + c * (a - b))).sum())
            missed = abs(value[spacing] - value[step.nodes[j].spacing / 2])
            bound = math.exp(min(float(step.rare_strips.log_missed(1 + c, t, spacings)[j - 1]), 700.0))
            assert missed <= bound + 1e-9 * size
