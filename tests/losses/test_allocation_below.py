"""The lower end of random allocation, against iterated integrals, simulations and what dominates it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import privloss as pl
from privloss.losses.table import allocation_below as module
from privloss.losses.table.allocation import allocation_table
from privloss.losses.table.allocation_below import allocation_below
from privloss.losses.table.table import Table
from tests.losses.test_allocation import EPS, _exact


def profile(table: Table, eps: float) -> tuple[float, float]:
    """Bounds on H at e^eps, of any sign."""
    if eps >= 0:
        low, high = table.hockey_stick(eps)
        return math.exp(low) + table.delta, math.exp(high) + table.delta
    low, high = (math.exp(eps) * (math.exp(end) + table.back) + 1 - math.exp(eps) for end in _back(table, -eps))
    return low, high


def _back(table: Table, eps: float) -> tuple[float, float]:
    return table.reversed().hockey_stick(eps)


@pytest.mark.parametrize(("steps", "distance"), [(2, 0.5), (2, 1.0), (3, 1.0), (5, 1.4)])
def test_profiles_are_below_the_truth_and_close(steps: int, distance: float) -> None:
    table = allocation_below(steps, distance)
    assert table is not None
    checked = 0
    for eps in EPS:
        truth = _exact(steps, distance, float(eps))
        if truth < 1e-13:
            continue
        low, _ = profile(table, float(eps))
        assert low < truth * (1 + 3e-5)
        assert low > truth * (1 - 6e-3)
        checked += 1
    assert checked >= 7
    for eps in (0.1, 0.3, 0.6):  # the other direction, H_a(Q, P) = a H_(1/a)(P, Q) + 1 - a
        truth = math.exp(eps) * (_exact(steps, distance, -eps) - 1 + math.exp(-eps))
        found = math.exp(_back(table, eps)[0])
        assert found < truth * (1 + 1e-3) + 3e-5
        assert truth < 1e-5 or found > truth * (1 - 5e-3) - 3e-5


@pytest.mark.parametrize("expected", [1e-6, 1e-3, 0.3])
@pytest.mark.parametrize(("steps", "distance"), [(3, 1.0), (40, 1.0), (100, 0.5), (30, 2.0)])
def test_what_dominates_lies_above(
    steps: int, distance: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever ratios count as large; in both directions."""
    monkeypatch.setattr(module, "_EXPECTED_LARGE", (expected, 0.02))
    below, above = allocation_below.__wrapped__(steps, distance), allocation_table(steps, distance)
    assert below is not None
    assert above is not None
    for eps in np.linspace(-1.5, 2.0, 36).tolist():
        low, high = profile(below, eps)[0], profile(above, eps)[1]
        assert low <= high * (1 + 1e-12)
        if high > max(1e-6, 1 - math.exp(eps) + 1e-6) and expected < 0.1:
            assert low >= high * 0.99


@pytest.mark.parametrize("swapped", [False, True])
def test_two_epochs_against_a_simulation(swapped: bool) -> None:
    """A test on what two epochs really show attains at least what is claimed."""
    steps, sigma, eps, runs = 6, 1.0, 1.1, 400_000
    rng = np.random.default_rng(11)

    def ratio(hit: bool) -> np.ndarray:
        total = np.zeros(runs)
        for _ in range(2):
            y = rng.standard_normal((runs, steps))
            if hit:
                y[:, 0] += 1 / sigma  # the steps are alike
            total += np.log(np.exp(y / sigma - 0.5 / sigma**2).mean(axis=1))
        return total

    p, q = ratio(hit=True), ratio(hit=False)
    if swapped:
        p, q = -q, -p
    seen = float((p > eps).mean()), float((q > eps).mean())
    delta = seen[0] - math.exp(eps) * seen[1]
    error = 5 * math.sqrt((seen[0] + math.exp(2 * eps) * seen[1]) / runs)
    below = allocation_below(steps, 1 / sigma)
    assert below is not None
    side = below.reversed() if swapped else below
    losses = (side.values[:, None] + side.values[None, :]).ravel()
    masses = (side.masses[:, None] * side.masses[None, :]).ravel()
    claimed = float((masses * np.maximum(-np.expm1(eps - losses), 0.0)).sum())
    assert claimed <= delta + error
    assert claimed >= delta - error


@pytest.mark.parametrize(
    ("sigma", "steps", "epochs", "width"), [(2.0, 50, 20, 2e-4), (1.0, 50, 1, 1e-3), (0.8, 20, 4, 1e-3)]
)
def test_epochs_are_narrow(sigma: float, steps: int, epochs: int, width: float) -> None:
    """1 to 46 % before."""
    assert (pl.Gaussian(sigma).allocated(steps=steps) * epochs).epsilon(1e-6).relative_width < width


def test_sums_of_all_turns_are_accounted_for() -> None:
    """The mass of no ratio large, of one and of more, is 1 under both, whatever the window."""
    epoch = module._Epoch.of(30, 1.0, 0.05)
    for index in (0, 1):
        rest = sum(float(each[index].high.sum()) for each in (module._one_large(epoch), module._several_large(epoch)))
        law, _, scale = epoch.law(30, True, index == 0)
        assert float(law.sum()) * math.exp(scale) + rest == pytest.approx(1.0, abs=2e-4)
        low = sum(float(each[index].low.sum()) for each in (module._one_large(epoch), module._several_large(epoch)))
        assert low <= rest <= low * 1.02


@pytest.mark.parametrize("hit", [False, True])
@pytest.mark.parametrize("share", [-4.0, 2.0, 8.0])
def test_tilted_sums_leave_other_turns_out(hit: bool, share: float) -> None:
    """A window so short that sums come round, against one that holds them all."""
    epoch = module._Epoch.of(12, 1.0, 0.02)
    whole = module._ends(epoch, hit, 0.0, share > 0)
    seen = False
    for size in (epoch.size // 4, epoch.size // 8):
        short = replace(epoch, size=size)
        found = module._ends(short, hit, share * epoch.step / epoch.deviation, share > 0)
        other = module._other_turns(short, hit, share * epoch.step / epoch.deviation)
        assert np.all(found.low <= whole.high[:size] * (1 + 1e-9) + 1e-14)
        seen = seen or float(np.max(found.low + other - whole.high[:size])) > 1e-6
    assert seen or share < 0


def test_replaced_records_against_quadrature() -> None:
    """Two steps: a record against one that contributes nothing, and against its opposite."""
    y = np.linspace(-9.0, 9.0, 1201)
    density = np.exp(-0.5 * y * y) / math.sqrt(2 * math.pi) * (y[1] - y[0])
    weight, sigma = density[:, None] * density[None, :], 1.3

    def ratio(s: float) -> np.ndarray:
        one = np.exp(s * y - 0.5 * s * s)
        return 0.5 * (one[:, None] + one[None, :])

    mechanism = pl.Gaussian(noise_multiplier=sigma).allocated(steps=2)
    for eps in (0.2, 0.7):
        found = mechanism.delta(eps, adjacency="replace-one")
        hit, nothing, opposite = ratio(1 / sigma), 1.0, ratio(-1 / sigma)
        truths = [
            float((weight * np.maximum(a - math.exp(eps) * b, 0.0)).sum())
            for a, b in ((hit, nothing), (nothing, hit), (hit, opposite))
        ]
        assert 0.99 * max(truths[:2]) <= found.lower <= max(truths) * (1 + 1e-6)
        assert max(truths) <= found.upper
