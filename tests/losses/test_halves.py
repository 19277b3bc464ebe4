"""Sums over two halves against sums over all outcomes in high precision."""

from __future__ import annotations

import itertools
import math
import random

import mpmath
import numpy as np
import pytest

import privloss as pl
from privloss.losses.table import halves
from privloss.losses.table.build import from_vectors, symmetric_response
from privloss.losses.table.halves import Halves
from privloss.losses.table.table import Table

BOXES = [
    symmetric_response(random.Random(3).uniform(0.05, 0.9) * k, 0.0, 0.001 * k) for k in (1, 0.37, 0.21, 0.8, 0.55)
]
ROWS = [
    *((box, 1) for box in BOXES),
    (symmetric_response(0.4, 3.0, 0.0), 2),
    (from_vectors([0.25, 0.5, 0.25], [0.125, 0.5, 0.375]), 2),
]


def _all(rows: list[tuple[Table, int]], eps: float) -> mpmath.mpf:
    draws = [list(zip(t.values.tolist(), t.masses.tolist(), strict=True)) for t, n in rows for _ in range(n)]
    total = mpmath.mpf(0)
    for outcome in itertools.product(*draws):
        v = mpmath.fsum(x for x, _ in outcome)
        if v > eps:
            total += mpmath.fprod(m for _, m in outcome) * -mpmath.expm1(eps - v)
    return total


@pytest.mark.parametrize("eps", [0.0, 0.31, 1.2, 1.7])
@pytest.mark.parametrize("most", [None, 8])
def test_two_halves_are_the_whole(eps: float, most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if most is not None:
        monkeypatch.setattr(halves, "_MOST_TERMS", most)
    found = Halves(ROWS)
    logs = found.hockey_stick(eps)
    if logs is None:
        assert most is not None
        assert eps < found.least
        return
    with mpmath.workdps(30):
        truth = mpmath.log(_all(ROWS, eps))
    assert logs[0] <= truth <= logs[1]
    assert logs[1] - logs[0] < 1e-10


def test_what_is_left_out_is_never_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Halves(ROWS)
    assert full.least == 0
    monkeypatch.setattr(halves, "_MOST_TERMS", 12)
    few = Halves(ROWS)
    assert few.least > 0
    for eps in np.linspace(few.least, few._top, 50, endpoint=False):
        one, two = full.hockey_stick(float(eps)), few.hockey_stick(float(eps))
        assert one is not None
        assert two is not None
        assert max(one[0], two[0]) <= min(one[1], two[1])
        assert one == pytest.approx(two, abs=1e-9)


@pytest.mark.parametrize("off", [0.0, 5e-4])
def test_outcomes_at_eps_itself_are_within_rounding(off: float) -> None:
    """Values that meet eps exactly, or miss it by a rounding, must not be lost."""
    rows = [(symmetric_response(e, 0.0, 0.0), 1) for e in (0.1, 0.2, 0.3, 0.7)]
    for signs in itertools.product((-1, 1), repeat=4):
        eps = sum(s * e for s, e in zip(signs, (0.1, 0.2, 0.3, 0.7), strict=True)) - off
        low, high = Halves(rows).hockey_stick(max(eps, 0.0)) or (0.0, 0.0)
        with mpmath.workdps(30):
            truth = _all(rows, max(eps, 0.0))
        assert math.exp(low) * (1 - 1e-15) <= truth <= math.exp(high) * (1 + 1e-15)


def test_beyond_the_largest_loss_nothing_is_left() -> None:
    found = Halves(ROWS)
    assert found.hockey_stick(found._top * (1 + 1e-12)) == (-math.inf, -math.inf)


@pytest.mark.parametrize(
    ("count", "high", "delta"), [(16, 0.3, 1e-6), (30, 0.3, 1e-2), (40, 0.3, 1e-6), (50, 2.0, 1e-6)]
)
def test_dozens_of_unequal_boxes_are_narrow(count: int, high: float, delta: float) -> None:
    rng = random.Random(count)
    steps = [(rng.uniform(0.01, high), rng.choice([0.0, 1e-9])) for _ in range(count)]
    plan = pl.Plan([(pl.ApproxDP(e, d) if d else pl.PureDP(e), 1) for e, d in steps])
    found = plan.epsilon(delta, tolerance=1e-12)  # narrower than a grid is
    assert found.method == "closed form"
    assert found.relative_width < 1e-11
    # delta rises with every eps: below with all of them rounded down to a thousandth, above with them rounded up
    grid = 1e-3
    for way, end in ((math.floor, found.lower), (math.ceil, found.upper)):
        other = _on_grid([(way(e / grid), d) for e, d in steps], grid, end)
        assert (other <= delta) if way is math.floor else (other >= delta)


def _on_grid(steps: list[tuple[int, float]], grid: float, eps: float) -> float:
    """delta of boxes whose eps are whole multiples of the grid: delta rises with every eps."""
    law, kept = np.ones(1), 1.0
    for k, d in steps:
        up = 1 / (1 + math.exp(-k * grid))
        one = np.zeros(2 * k + 1)
        one[-1] += up
        one[0] += 1 - up
        law, kept = np.convolve(law, one), kept * (1 - d)
    values = grid * (np.arange(len(law)) - len(law) // 2)
    return 1 - kept + kept * float((law * np.maximum(-np.expm1(np.minimum(eps - values, 0.0)), 0.0)).sum())


@pytest.mark.parametrize("eps", [0.3, 1.5, 4.0])
def test_tails_that_were_left_out_may_have_any_loss(eps: float) -> None:
    """One outcome of the table is named as a tail instead: of a probability of 1e-3, and far out."""
    values, masses, rare = np.array([1.0, -0.5]), np.array([0.4, 0.599]), 1e-3
    tail = (lambda c, t: np.full(len(t), rare), lambda c, t: np.full(len(t), rare))
    found = Halves([(Table(values, masses, missing=tail), 2), (Table(values[:1] - 0.9, np.ones(1)), 1)])
    whole = [(Table(np.append(values, 30.0), np.append(masses, rare)), 1)] * 2
    logs = found.hockey_stick(eps)
    assert logs is not None
    with mpmath.workdps(30):
        truth = mpmath.log(_all([*whole, (Table(values[:1] - 0.9, np.ones(1)), 1)], eps))
    assert logs[0] <= truth <= logs[1]


def test_few_uses_of_a_long_table_are_shared_out() -> None:
    """Three uses of two hundred values have 1.4 million outcomes: two of them are one half."""
    values = np.cos(np.arange(200.0))
    table = Table(values, np.full(200, 0.005))
    assert halves.shares(table, 3) == (2, 1)
    found = Halves([(table, 3)]).hockey_stick(0.7)
    sums = values[:, None, None] + values[:, None] + values
    truth = math.log(float(np.maximum(-np.expm1(0.7 - sums), 0.0).mean()))
    assert found is not None
    assert found[0] - 1e-12 <= truth <= found[1] + 1e-12
    assert found[1] - found[0] < 1e-10
