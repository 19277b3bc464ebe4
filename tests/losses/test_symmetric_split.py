"""Symmetric pairs split by the largest loss: sums over marks against mpmath, and answers against the recorded values of
tests/oracle/symmetric_losses.py."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import privloss as pl
from privloss.losses.mixture.largest import Side
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.mixture.marked import MarkedLine
from privloss.losses.symmetric.pair import Split, SymmetricPair
from privloss.losses.symmetric.rare import PairedRare
from privloss.losses.symmetric.step import SymmetricStep, mean_loss
from privloss.numerics.contour.largest import draw
from tests.losses.symmetric_steps import PAIRS, step_of
from tests.oracle import make_symmetric

CASES = json.loads((Path(__file__).parents[1] / "data" / "symmetric.json").read_text())["cases"]


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
        reading = draw(rare, eps, log_delta, 1e-10)
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


def test_other_steps_are_reversed_with_the_direction() -> None:
    rest = GaussianMixtureLoss(np.array([1e-3]), np.array([1.0]), np.array([5.0]))
    rare = PairedRare((Split(((1.0, SymmetricPair(1e-3, 1.0, True)),)),), np.array([100.0]), rest)
    forward, backward = rare.sides(0.3, math.log(1e-6))
    assert forward.rest is rest
    assert backward.rest is not None
    there, here = (float(loss.moments(0.0)[1]) for loss in (backward.rest, rest.reversed()))
    assert there == here != float(rest.moments(0.0)[1])
