"""Tables split by the largest loss, against sums over all outcomes in high precision."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import mpmath as mp
import numpy as np
import pytest

import privloss as pl
from privloss.losses.table.build import from_vectors, poisson
from privloss.losses.table.classes import TableSide
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.rare import RareTables
from privloss.losses.table.table import Table
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics.contour.cells import Place, _Drawing, sparse_line
from privloss.numerics.contour.largest import draw

STEPS = 30
# Small losses that are frequent, and large ones that are rare; one that is always the same but for a rare one; and one
# with certain disclosure: P, Q and the rate.
PAIRS = {
    "spread": ((0.0625, 0.5, 0.4375), (0.4375, 0.5, 0.0625), 0.02),
    "heavy": ((0.875, 0.1240234375, 0.0009765625), (0.9375, 0.06243896484375, 0.00006103515625), 0.3),
    "lost": ((0.5, 0.375, 0.0625, 0.0625), (0.5625, 0.40625, 0.03125, 0.0), 0.01),
}
TABLES = {name: poisson(from_vectors(p, q), rate) for name, (p, q, rate) in PAIRS.items()}


def exact(name: str, back: bool) -> list[tuple[mp.mpf, mp.mpf]]:
    """Losses and masses, in the order of the table: the vectors add up to one exactly."""
    p, q, rate = PAIRS[name]
    found = []
    for a, b in ((mp.mpf(a), mp.mpf(b)) for a, b in zip(p, q, strict=True) if b > 0):
        mixed = (1 - mp.mpf(rate)) * b + mp.mpf(rate) * a
        found.append((mp.log(b / mixed), b) if back else (mp.log(mixed / b), mixed))
    return found


def sides(table: Table, eps: float, delta: float = 1e-6) -> tuple[TableSide, TableSide]:
    return RareTables((table,), np.array([float(STEPS)]), None).sides(eps, math.log(delta))


def splits(left: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to share out so many steps."""
    if parts == 1:
        yield (left,)
        return
    for k in range(left + 1):
        for rest in splits(left - k, parts - 1):
            yield (k, *rest)


def outcomes(name: str, back: bool) -> list[tuple[tuple[int, ...], mp.mpf, mp.mpf]]:
    """Counts of every outcome of a step, the loss, and its probability."""
    each, found = exact(name, back), []
    for counts in splits(STEPS, len(each)):
        ways = mp.factorial(STEPS) / mp.fprod(mp.factorial(k) for k in counts)
        mass = ways * mp.fprod(m**k for (_, m), k in zip(each, counts, strict=True))
        found.append((counts, mp.fsum(k * v for (v, _), k in zip(each, counts, strict=True)), mass))
    return found


def of_class(side: TableSide, name: str, back: bool, j: int) -> list[tuple[mp.mpf, mp.mpf]]:
    """Loss and probability of all outcomes whose largest mark is j."""
    marks = side.steps[0].marks.tolist()
    return [
        (v, m)
        for counts, v, m in outcomes(name, back)
        if max(mark for mark, k in zip(marks, counts, strict=True) if k) == j
    ]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("backward", [False, True])
def test_transforms_and_masses_are_those_of_all_outcomes(name: str, backward: bool) -> None:
    side = sides(TABLES[name], 0.05)[backward]
    heights = np.array([0.0, 0.3, 40.0, 2.5e5])
    with mp.workdps(40):
        for j in range(side.classes - 1):
            each = of_class(side, name, backward, j)
            for c in (0.7, 25.0):
                found = side.line(j, c, heights)
                for k, t in enumerate(heights):
                    truth = mp.fsum(m * mp.exp(mp.mpc(c, t) * v) for v, m in each)
                    value = mp.exp(mp.mpc(float(found.log_modulus[k]), float(found.phase[k])))
                    assert abs(truth / value - 1) <= mp.expm1(float(found.error[k]))
                    assert found.error[k] < 1e-6
                assert side.log_upper(j, np.array([c]))[0] >= mp.log(mp.fsum(m * mp.exp(c * v) for v, m in each))
            if j:
                low, high = side.mass(j)
                mass = mp.fsum(m for _, m in each)
                assert low <= mass <= high
                assert high - low < 1e-11 * mass
    with mp.workdps(40):
        last = mp.fsum(m for _, m in of_class(side, name, backward, side.classes - 1))
        assert last <= side.mass(side.classes - 1)[1]


@pytest.mark.parametrize("name", TABLES)
def test_no_point_of_a_cell_lies_above_its_bound(name: str) -> None:
    side, rng = sides(TABLES[name], 0.05)[0], np.random.default_rng(1)
    for j in range(side.classes - 1):
        for c, width in itertools.product((1.0, 30.0), (0.5 / side.spreads(j, 5.0)[0], 2.0 / side.spreads(j, 5.0)[1])):
            starts = width * 6 * np.array([0.0, 1.0, 7.0, 5000.0])
            bounds = side.cells(j, c, starts, width, 6)
            places = starts[:, None, None] + width * (np.arange(6)[:, None] + rng.random((6, 40)))
            inside = side.line(j, c, places.ravel()).log_modulus.reshape(places.shape)
            assert np.all(inside <= bounds[:, :, None] + 1e-12)
            assert bounds.max() <= side.log_upper(j, np.array([c]))[0] + math.log(2.1)


def place(side: TableSide, j: int, eps: float, tolerance: float) -> Place:
    c = 12.0 / eps
    points = np.array([0.5 * c, 2.0 * c])
    return Place(j, c, 12 * eps, eps, math.log(1e-6), 0.0, tolerance, points, side.log_upper(j, points))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-7])
def test_nodes_that_are_left_out_add_no_more_than_is_charged(name: str, tolerance: float) -> None:
    eps = 0.05
    side = sides(TABLES[name], eps)[0]
    for j in range(side.classes - 1):
        at = place(side, j, eps, tolerance)
        step, mu = 2 * math.pi / at.period, 0.03 / at.c
        drawing = _Drawing(side, at, mu, step, 3, 8)
        found = drawing.worthwhile()
        assert found is not None
        kept, lost, lost_density = found
        nodes = np.setdiff1d(np.arange(drawing.cells * 3), (3 * kept[:, None] + np.arange(3)).ravel())
        t = step * nodes
        size = np.exp(side.line(j, at.c, t).log_modulus - drawing.log_start - 0.5 * (mu * t) ** 2) * step / math.pi
        assert size.sum() <= lost_density * (1 + 1e-9)
        assert (size / np.hypot(at.c, t) / np.hypot(at.c + 1, t)).sum() <= lost * (1 + 1e-9)


def truth_of(each: list[tuple[mp.mpf, mp.mpf]], eps: float) -> mp.mpf:
    return mp.fsum(m * -mp.expm1(eps - v) for v, m in each if v > eps)


@pytest.mark.parametrize("name", ["spread", "lost"])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-9])
def test_one_line_holds_its_class(name: str, tolerance: float) -> None:
    """Whatever the blur: both of its ends are bounds."""
    eps = 0.05
    side = sides(TABLES[name], eps)[0]
    with mp.workdps(30):
        for j in range(side.classes - 1):
            each = of_class(side, name, False, j)
            line = sparse_line(side, place(side, j, eps, tolerance))
            for at in (0.8 * eps, eps, 1.3 * eps):
                found = line.read(np.array([at]))
                truth = truth_of(each, at) / mp.exp(float(found.log_scale[0]))
                assert found.value[0] - found.below[0] <= truth <= found.value[0] + found.above[0]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
@pytest.mark.parametrize("back", [False, True])
def test_all_classes_together_are_delta(name: str, tolerance: float, back: bool) -> None:
    table = TABLES[name].reversed() if back else TABLES[name]
    with mp.workdps(30):
        every = [(v, m) for _, v, m in outcomes(name, back)]
        for eps in (0.01, 0.05, 0.2):
            truth = truth_of(every, eps)
            if truth < 1e-14:
                continue
            reading = draw(RareTables((table,), np.array([float(STEPS)]), None), eps, float(mp.log(truth)), tolerance)
            low, high = (float(end[0]) for end in reading.log_bounds(np.array([eps])))
            assert low <= mp.log(truth) <= high
            if name == "lost":  # the others come in clusters: narrow only by enumeration
                assert high - low < 200 * tolerance + 1e-8


def test_symmetric_tables_keep_their_marks() -> None:
    """The reversed measure is that of the same outcomes, though the table is its own mirror image."""
    even = Table(np.array([2.0, 0.0, -2.0]), np.array([0.001, 0.99886466471676, 0.000135335283237]), symmetric=True)
    forward, backward = RareTables((even,), np.array([3.0]), None).sides(1.5, math.log(1e-3))
    for j in range(1, forward.classes - 1):
        power = np.array([1.5])
        here, there = forward.steps[0].own(j), backward.steps[0].own(j)
        assert here.transform(-1 - power[0], np.zeros(1)).value[0] == pytest.approx(
            there.transform(power[0], np.zeros(1)).value[0], rel=1e-14
        )
    assert forward.classes > 2


def test_densities_are_not_split_as_tables() -> None:
    sampled = worst_neighbours((pl.Laplace(1.0).poisson(0.1) * 9), None).loss.parts[0]
    assert isinstance(sampled, TableLoss)
    assert sampled.rare_losses(None) is None


def test_a_wide_blur_is_charged() -> None:
    """Nothing is left out, and images are far: what the blur adds is all there is, and the lower end allows for it."""
    eps = 0.01
    side = sides(TABLES["lost"], eps)[0]
    c, period, points = 150.0, 60 * eps, np.array([75.0, 300.0])
    at = Place(0, c, period, eps, math.log(1e-6), 0.0, 1e-9, points, side.log_upper(0, points))
    line = _Drawing(side, at, 0.3 / c, 2 * math.pi / period, 3, 1).line()
    assert line is not None
    found = line.read(np.array([eps]))
    with mp.workdps(30):
        truth = truth_of(of_class(side, "lost", False, 0), eps) / mp.exp(float(found.log_scale[0]))
    assert found.value[0] > truth * (1 + 1e-4)
    assert found.value[0] - found.below[0] <= truth
