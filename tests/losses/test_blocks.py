"""Outcomes of a few blocks on a grid against sums over all outcomes, and the Fourier transforms behind them."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import privloss as pl
from privloss.losses.composed import ComposedLoss
from privloss.losses.table import blocks
from privloss.losses.table.blocks import Blocks
from privloss.losses.table.build import from_vectors, symmetric_response
from privloss.losses.table.halves import Halves
from privloss.losses.table.lattice import Steps, common_lattice
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.table import Table
from privloss.numerics.contour.solve import epsilon_bounds
from privloss.numerics.fourier import convolved, fast_size
from tests.losses.test_halves import ROWS

DRAW = random.Random(11)
UNEQUAL = [(symmetric_response(DRAW.uniform(0.02, 0.6), 0.0, 0.0), 1) for _ in range(12)]
UNEVEN = [*ROWS, (from_vectors([0.6, 0.3, 0.1], [0.2, 0.5, 0.3]), 1)]
REVERSED = [(row.reversed(), n) for row, n in UNEVEN]


def _law(rows: list[tuple[Table, int]]) -> tuple[np.ndarray, np.ndarray]:
    """All outcomes: values and masses under P."""
    values, masses = np.zeros(1), np.ones(1)
    for row, n in rows:
        for _ in range(n):
            values = (values[:, None] + row.values).ravel()
            masses = (masses[:, None] * row.masses).ravel()
    return values, masses


def _delta(rows: list[tuple[Table, int]], eps: float) -> float:
    values, masses = _law(rows)
    return float(masses @ np.maximum(-np.expm1(np.minimum(eps - values, 0.0)), 0.0))


@pytest.mark.parametrize("rows", [UNEQUAL, UNEVEN, REVERSED])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_coarse_grids_contain_the_truth(
    rows: list[tuple[Table, int]], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On grids so coarse that the gap is seen: above is a sum that is no smaller, below one that is no larger."""
    monkeypatch.setattr(blocks, "_SHORTEST", 4)
    entries = math.fsum(math.log(len(u.values)) for u in Blocks(rows)._members)
    monkeypatch.setattr(blocks, "_IN_BLOCK", math.exp(entries / count) + 1)
    found = Blocks(rows)
    tightest = math.inf
    for share in np.linspace(0.02, 0.95, 40):
        eps = float(share * found._top)
        truth = _delta(rows, eps)
        for step in (0.31, 0.17, 0.05, 0.011):
            law = found._law(blocks._Saddle(eps, math.log(truth), 3.0), step, 3.0)
            assert law is not None
            read = found._read(law)
            scale = math.exp(read.scale)
            assert read.lower * scale <= truth * (1 + 1e-12)
            for upper, at in zip(read.uppers, (eps - law.step, eps, eps + law.step), strict=True):
                assert upper * scale >= _delta(rows, at) * (1 - 1e-12)
            tightest = min(tightest, (truth - read.lower * scale) / truth)
    assert tightest < 1e-2  # the lower end is not far off either


def test_what_wraps_around_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A period hardly longer than what is read: outcomes far below eps turn up above it."""
    monkeypatch.setattr(blocks, "_SHARE", 1e30)
    found = Blocks(UNEQUAL)
    eps = 0.7 * found._top
    truth, tops = _delta(UNEQUAL, eps), []
    for tilt in (1.0, 3.0, 9.0, 27.0):
        law = found._law(blocks._Saddle(eps, math.log(truth), tilt), 1e-4, tilt)
        assert law is not None
        read = found._read(law)
        assert read.lower * math.exp(read.scale) <= truth
        tops.append(read.uppers[1] * math.exp(read.scale) / truth)
    assert tops[0] > 1.5
    assert min(tops) < 1.001


def test_the_gap_is_attained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four tables whose likely outcome lies in the middle of a cell, and eps at the sum: m = 2 of n = 4 bits of 1/2,
    where what is taken off is needed to a few per cent."""
    monkeypatch.setattr(blocks, "_SHORTEST", 4)
    monkeypatch.setattr(blocks, "_IN_BLOCK", 2)
    rows = [(from_vectors([0.05, 0.95], [0.04, 0.96]), 1)] * 4
    found = Blocks(rows)
    eps = 4 * float(rows[0][0].values.min())
    short = found._top - eps
    law = found._law(blocks._Saddle(eps, math.log(_delta(rows, eps)), 3.0), short / 402, 3.0)
    assert law is not None
    assert law.cells == 402
    read = found._read(law)
    truth, scale = _delta(rows, eps), math.exp(read.scale)
    taken = read.uppers[1] - read.lower
    assert read.lower * scale <= truth
    assert read.uppers[1] * scale - truth > 0.97 * taken * scale


@pytest.mark.parametrize("seed", range(3))
def test_grid_and_halves_agree(seed: int) -> None:
    rng = random.Random(seed)
    rows = [(symmetric_response(rng.uniform(0.001, 0.1), 0.0, 0.0), 1) for _ in range(32)]
    for delta in (1e-3, 1e-7):
        level = (math.log(delta),) * 2
        low, high = Blocks(rows).epsilon(level, 1e-10) or (math.nan, math.nan)
        assert 0 < high - low < 3e-9 * high
        one, two = (Halves(rows).hockey_stick(eps) for eps in (low, high))
        assert one is not None
        assert two is not None
        assert one[1] >= level[0]  # delta(low) is at least delta, delta(high) at most
        assert two[0] <= level[0]
        logs, other = Blocks(rows).delta(high, 1e-10), two
        assert logs is not None
        assert max(logs[0], other[0]) <= min(logs[1], other[1])
        assert logs[1] - logs[0] < 1e-8


def test_fifty_boxes_are_narrow() -> None:
    rng = random.Random(50)
    plan = pl.composition.boxes([rng.uniform(0.001, 0.1) for _ in range(50)])
    found = plan.epsilon(1e-6)
    assert found.relative_width < 1e-9
    assert "grid" in found.method
    assert found.lower < 1.9079918929 < found.upper  # at a tolerance of 1e-12, with cells a tenth as wide
    assert plan.delta(found.upper).lower <= 1e-6 <= plan.delta(found.lower).upper


def test_mixed_tables_on_a_grid() -> None:
    """Randomised response with several answers, uneven tables and boxes that fail, both directions."""
    rng = random.Random(5)
    plan = pl.Plan([(pl.PureDP(rng.uniform(0.01, 0.2)), 1) for _ in range(30)])
    plan += pl.RandomizedResponse(epsilon=0.37, answers=5) * 3 + pl.Custom([0.25, 0.5, 0.25], [0.2, 0.5, 0.3]) * 4
    found = plan.epsilon(1e-6)
    assert found.relative_width < 1e-9
    for end, sign in ((found.lower, 1), (found.upper, -1)):
        delta = plan.delta(end)
        assert (delta.upper >= 1e-6) if sign > 0 else (delta.lower <= 1e-6)


# -- on a lattice ------------------------------------------------------------------------------------------------------


def test_halves_on_a_lattice_are_exact() -> None:
    """Boxes of whole multiples of 1/1000: outcomes merged, against the same sum in fractions of integers."""
    steps = [3, 17, 40, 41, 77, 101, 5, 9, 13, 60, 88, 14]
    rows = [(symmetric_response(k / 1000, 0.0, 0.0), 1) for k in steps]
    lattice = common_lattice([Steps(row.values, n) for row, n in rows])
    assert lattice is not None
    found = Halves(rows, lattice.unit * lattice.stride)
    law: dict[int, Fraction] = {0: Fraction(1)}
    for k in steps:
        up = Fraction(1 / (1 + math.exp(-k / 1000)))
        new: dict[int, Fraction] = {}
        for v, m in law.items():
            new[v + k] = new.get(v + k, Fraction(0)) + m * up
            new[v - k] = new.get(v - k, Fraction(0)) + m * (1 - up)
        law = new
    assert sum(len(found._sorted[i]) for i in (0, 2)) < 2**7 * 4  # far fewer than 2^12
    for eps in (0.0, 0.1, 0.234, 0.35):
        truth = math.fsum(float(m) * -math.expm1(eps - v / 1000) for v, m in law.items() if v / 1000 > eps)
        logs = found.hockey_stick(eps)
        assert logs is not None
        assert logs[0] <= math.log(truth) * (1 - 1e-14) + 1e-14
        assert logs[1] >= math.log(truth) * (1 + 1e-14) - 1e-14
        assert logs[1] - logs[0] < 2e-10


def test_lattice_halves_and_lattice_line_agree() -> None:
    rng = random.Random(4)
    sizes = [round(rng.uniform(0.001, 0.1), 4) for _ in range(50)]
    found = pl.composition.boxes(sizes).epsilon(1e-6)
    assert found.method == "closed form"
    assert found.relative_width < 1e-11
    loss = ComposedLoss.of([TableLoss.one(symmetric_response(e, 0.0, 0.0)) for e in sizes])
    assert loss.lattice is not None
    line = epsilon_bounds(loss, (math.log(1e-6),) * 2, 1e-10)
    assert max(line.lower, found.lower) <= min(line.upper, found.upper)


# -- transforms --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [12, 40, 64, 160, 192])
def test_convolutions_err_by_less_than_is_said(size: int) -> None:
    rng = np.random.default_rng(size)
    factors = [rng.random(size) ** k for k in (1, 9, 40)]
    factors = [f / f.sum() * (1 - 1e-15) for f in factors]
    law, wrong = convolved(factors, size)
    exact = [Fraction(1)] + [Fraction(0)] * (size - 1)
    for one in factors:
        own = [Fraction(float(x)) for x in one]
        exact = [sum((exact[i] * own[(k - i) % size] for i in range(size)), Fraction(0)) for k in range(size)]
    error = math.sqrt(math.fsum(float(Fraction(float(x)) - y) ** 2 for x, y in zip(law, exact, strict=True)))
    assert error <= wrong
    assert wrong < 3000 * max(error, 2.0**-60)


def test_sizes_are_large_enough() -> None:
    for least in itertools.chain(range(1, 200), (2**17 + 1, 3 * 2**15, 5 * 2**14 - 1)):
        size = fast_size(least)
        assert least <= size <= max(1.67 * least, 5)
