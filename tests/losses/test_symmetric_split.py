"""Symmetric pairs split by the largest loss: sums over marks and each error bound against mpmath, and answers against
the recorded values of tests/oracle/symmetric_losses.py."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.special import erfc

import privloss as pl
from privloss.losses.density.legendre import NODES, panels
from privloss.losses.mixture.largest import Side
from privloss.losses.mixture.marked import MarkedLine
from privloss.losses.mixture.windows import at_losses
from privloss.losses.symmetric.bulk import _ANGLES, Panels
from privloss.losses.symmetric.fall import BulkFall
from privloss.losses.symmetric.pair import Split, SymmetricPair
from privloss.losses.symmetric.rare import PairedRare
from privloss.losses.symmetric.step import SymmetricStep, mean_loss
from privloss.numerics.contour.largest import draw
from tests.oracle import make_symmetric

CASES = json.loads((Path(__file__).parents[1] / "data" / "symmetric.json").read_text())["cases"]
PAIRS = {  # rate, sigma, two-sided, the losses at the centres of windows
    "replace-one": (1e-3, 0.9, True, (0.1, 0.25, 0.7)),
    "fixed size": (2e-3, 1.2, False, (0.1, 0.25, 0.7)),
    "often, two-sided": (0.3, 2.0, True, (1.5, 3.0)),  # |B| and arg B matter
    "almost always": (1 - 1e-9, 1.5, True, (2.2, 4.0)),
}


@lru_cache(maxsize=8)
def step_of(name: str) -> SymmetricStep:
    rate, sigma, two_sided, levels = PAIRS[name]
    pair = SymmetricPair(rate, sigma, two_sided)
    windows = at_losses(rate, sigma, np.array(levels))
    windows = type(windows)(windows.centre, np.minimum(windows.width, (windows.centre[0] - 1.1) / 18))
    mean = mean_loss(pair)
    top = max(windows.end(windows.count - 1), 1 + 10 * sigma)
    return SymmetricStep(rate, sigma, windows, (mean, mean), top, two_sided=two_sided)


def exact(step: SymmetricStep, j: int, f: Any) -> mp.mpc:
    """The integral of phi w_j f(A, B) over all outcomes of a class with a loss; f takes both branches."""
    q, sigma, windows = mp.mpf(step.rate), mp.mpf(step.sigma), step.windows

    def integrand(y: mp.mpf) -> mp.mpc:
        a = 1 - q + q * mp.exp((y - mp.mpf(1) / 2) / sigma**2)
        b = 1 - q + q * mp.exp(-(y + mp.mpf(1) / 2) / sigma**2) if step.two_sided else mp.mpf(1)
        weight = mp.exp(-(y**2) / 2 / sigma**2) / sigma / mp.sqrt(2 * mp.pi)
        for i in range(max(j - 1, 0), windows.count):
            x = (windows.centre[i] - y) / windows.width[i]
            weight *= mp.erfc((x if i == j - 1 else -x) / mp.sqrt(2)) / 2
        return weight * f(a, b)

    with mp.workdps(25):
        end = min(windows.end(j), 1 + 13 * step.sigma)
        pieces = [mp.mpf(v) for v in np.linspace(step.pair.start, end, 13)]
        return mp.quad(integrand, pieces, method="gauss-legendre", maxdegree=5)


def exact_sum(step: SymmetricStep, j: int, z: complex) -> mp.mpc:
    """M_j(z)."""
    found = exact(step, j, lambda a, b: a * mp.power(a / b, z) + b * mp.power(a / b, -z))
    return found + (0 if j else zero_mass(step))


def zero_mass(step: SymmetricStep) -> mp.mpf:
    if step.two_sided:
        return mp.mpf(0)
    return (1 - mp.mpf(step.rate)) * mp.erf(mp.mpf(1) / 2 / mp.mpf(step.sigma) / mp.sqrt(2))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("j", [0, 1])
def test_sums_lie_within_their_errors(name: str, j: int) -> None:
    step = step_of(name)
    c = 3.0 / PAIRS[name][3][0]
    t = np.arange(3) * 6.0 / PAIRS[name][3][0]
    line = MarkedLine(step, c, False, t)
    found = line.rare(j) if j else line.bulk()
    size = abs(complex(exact_sum(step, j, complex(c, 0))))
    for i in (0, 2):
        truth = exact_sum(step, j, complex(c, float(t[i]))) - (0 if j else 1)
        assert abs(complex(truth) - complex(found.value[i])) <= found.error[i] + 2e-17 * abs(complex(truth))
        assert found.error[i] < 1e-8 * size


@pytest.mark.parametrize("name", PAIRS)
def test_one_point_is_read_like_a_line(name: str) -> None:
    step = step_of(name)
    for c in (0.5, 3.0 / PAIRS[name][3][0]):
        at, along = MarkedLine(step, c, False, np.zeros(1)).bulk(), MarkedLine(step, c, False, np.arange(3.0)).bulk()
        assert abs(at.value[0] - along.value[0]) <= at.error[0] + along.error[0]


@pytest.mark.parametrize("name", PAIRS)
def test_all_classes_together_have_mass_one_in_both_directions(name: str) -> None:
    step = step_of(name)
    for power in (1.0, 0.0):
        total = sum(float(np.exp(nodes.log_mass + power * nodes.log_r).sum()) for nodes in step.nodes)
        assert total == pytest.approx(1.0, abs=1e-11)


@pytest.mark.parametrize("name", PAIRS)
def test_masses_and_mean_above_the_bulk(name: str) -> None:
    step = step_of(name)
    above = step.above_bulk(False)
    mean = mp.mpf(0)
    for j in range(1, step.last + 1):
        mass = exact(step, j, lambda a, b: a + b)
        mean += exact(step, j, lambda a, b: (a - b) * mp.log(a / b))
        assert abs(float(mass - mp.mpf(float(above.masses[j - 1])))) <= above.errors[j - 1] + 1e-18
    assert abs(float(mean - mp.mpf(above.mean))) <= above.mean_error + 1e-17
    assert above.mean_error < 1e-10
    assert float(above.errors.max()) < 1e-11


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("short", [False, True])
def test_what_lies_beyond_the_last_nodes_is_bounded(name: str, short: bool) -> None:
    """With `short`, nodes end where much is missing."""
    whole = step_of(name)
    top = whole.windows.start(whole.last) + (1.0 if short else 3.0) * whole.sigma
    step = SymmetricStep(whole.rate, whole.sigma, whole.windows, whole.means, max(top, 1.0), two_sided=whole.two_sided)
    for power in (0.0, 0.3, 1.0):
        y = np.linspace(step.top, step.top + 14 * step.sigma, 20_001)
        a, b = step.pair.logs(y)
        phi = np.exp(-0.5 * (y / step.sigma) ** 2) / (step.sigma * math.sqrt(2 * math.pi))
        both = np.exp(power * a + (1 - power) * b) + np.exp((1 - power) * a + power * b)
        assert np.trapezoid(phi * both, y) <= math.exp(step.log_beyond(power))
        means = np.trapezoid(phi * (np.exp(a) - np.exp(b)) * (a - b), y)
        assert means <= math.exp(step.log_beyond(1.0)) * (step.top + step.sigma) / step.sigma**2
    assert step.log_beyond(1.5) == step.log_beyond(-0.1) == math.inf
    more, fewer = whole.above_bulk(False), step.above_bulk(False)
    assert abs(more.mean - fewer.mean) <= more.mean_error + fewer.mean_error
    assert abs(more.masses.sum() - fewer.masses.sum()) <= more.errors.sum() + fewer.errors.sum()


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


@pytest.mark.parametrize(
    ("rate", "sigma", "two_sided"),
    [
        (1e-3, 1.0, True), (1e-3, 1.0, False), (1e-9, 0.1, True), (1e-9, 0.1, False), (0.5, 0.08, True),
        (1 - 1e-9, 0.3, True), (1 - 1e-9, 0.3, False), (1e-6, 100.0, True), (0.3, 100.0, False), (0.9, 5.0, True),
    ],
)  # fmt: skip
def test_mean_losses(rate: float, sigma: float, two_sided: bool) -> None:
    found = mean_loss(SymmetricPair(rate, sigma, two_sided))
    with mp.workdps(40):
        q, s = mp.mpf(rate), mp.mpf(sigma)

        def f(y: mp.mpf) -> mp.mpf:
            a = 1 - q + q * mp.exp((y - mp.mpf(1) / 2) / s**2)
            b = 1 - q + q * mp.exp(-(y + mp.mpf(1) / 2) / s**2) if two_sided else mp.mpf(1)
            return mp.exp(-(y**2) / 2 / s**2) / s / mp.sqrt(2 * mp.pi) * (a - b) * mp.log(a / b)

        start = mp.mpf(0 if two_sided else 0.5)
        pieces = [start + (1 + 16 * s) * k / 24 for k in range(25)]
        truth = mp.quad(f, pieces, method="gauss-legendre", maxdegree=6)
        assert abs(truth - mp.mpf(float(found.value[0]))) <= mp.mpf(float(found.error[0]))
        assert float(found.error[0]) < 1e-9 * float(truth) + 1e-30


# -- answers -----------------------------------------------------------------------------------------------------------


def rare_of(rate: float, sigma: float, steps: int, two_sided: bool) -> PairedRare:
    return PairedRare((Split(((1.0, SymmetricPair(rate, sigma, two_sided)),)),), np.array([float(steps)]), None)


def plan(case: dict[str, Any]) -> Any:
    """sigma is in units of the distance of a hit, which under replace-one is 2 for batches of fixed size."""
    if case["two_sided"]:
        return pl.Gaussian(case["sigma"]).poisson(case["q"]) * case["steps"]
    size = round(case["q"] * make_symmetric.POPULATION)
    return pl.Gaussian(2 * case["sigma"]).fixed_size(make_symmetric.POPULATION, size) * case["steps"]


@pytest.mark.parametrize("first", range(4))
def test_answers_contain_the_recorded_values(first: int) -> None:
    split = 0
    for case in CASES[first::12]:
        found = plan(case).epsilon(case["delta"], adjacency="replace-one")
        truth, slack = case["epsilon"], case["epsilon"] * case["trust"]
        assert found.upper >= truth - slack, case
        if case["two_sided"]:  # else the lower end belongs to another pair
            assert found.lower <= truth + slack, case
            assert found.relative_width < 1e-6, case
        split += "split" in found.method
    assert split >= 2


@pytest.mark.parametrize("index", [3, 70])
def test_the_recorded_values_come_out_again(index: int) -> None:
    case = CASES[index]
    again = make_symmetric.solve(*(case[name] for name in ("sigma", "q", "steps", "delta", "two_sided")))
    assert again is not None
    assert again["epsilon"] == pytest.approx(case["epsilon"], rel=case["trust"], abs=0)


@pytest.mark.parametrize("two_sided", [True, False])
def test_any_split_gives_the_same_delta(two_sided: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(c for c in CASES if c["two_sided"] == two_sided and c["trust"] < 1e-10 and c["q"] * c["steps"] < 0.5)
    eps, log_delta = case["epsilon"], math.log(case["delta"])
    rare = rare_of(case["q"], case["sigma"], case["steps"], two_sided)
    usual = rare._levels(eps, log_delta)
    for factor in (1.0, 1.15):
        monkeypatch.setattr(PairedRare, "_levels", lambda *_, f=factor: f * usual)
        reading = draw(rare, eps, log_delta)
        low, high = (float(f(np.array([eps]))[0]) for f in (reading.log_lower, reading.log_upper))
        assert low <= log_delta + 200 * case["trust"]
        assert high >= log_delta - 200 * case["trust"]
        assert high - low < 1e-7


@pytest.mark.parametrize("two_sided", [True, False])
def test_lines_of_classes_stay_below_their_fall(two_sided: bool) -> None:
    case = next(c for c in CASES if c["two_sided"] == two_sided and c["trust"] < 1e-10 and c["q"] * c["steps"] < 0.5)
    eps = case["epsilon"]
    side: Side = rare_of(case["q"], case["sigma"], case["steps"], two_sided).sides(eps, math.log(case["delta"]))[0]
    for j in range(min(side.classes - 1, 3)):
        c = 6.0 / eps
        t = np.arange(80) * 0.7 / eps
        values, fall = side.line(j, c, t), side.decay(j, c)
        for start in (0, 20, 50):
            sure = values.error[start:] < 0.5
            most = fall.log_upper(float(t[start]))
            assert np.all((values.log_modulus[start:] - 2 * values.error[start:])[sure] <= most + 1e-9)


def test_two_kinds_and_other_noise_in_one_plan() -> None:
    one = pl.Gaussian(0.9).poisson(2e-4) * 300 + pl.Gaussian(1.2).poisson(5e-4) * 100 + pl.Gaussian(300.0) * 2
    two = pl.Gaussian(0.9).poisson(2e-4) * 100 + pl.Gaussian(0.9).poisson(2e-4 * (1 + 1e-13)) * 200
    two = two + pl.Gaussian(1.2).poisson(5e-4) * 100 + pl.Gaussian(300.0) * 2
    a, b = (steps.epsilon(1e-8, adjacency="replace-one") for steps in (one, two))
    assert a.relative_width < 1e-6
    assert b.lower <= a.upper * (1 + 1e-10)
    assert a.lower <= b.upper * (1 + 1e-10)
