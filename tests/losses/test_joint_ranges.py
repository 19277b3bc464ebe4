"""Choices of several ranges in any order, against strategies enumerated here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import privloss as pl
from privloss.losses.closed import joint_ranges
from privloss.losses.closed.joint_ranges import Uses, any_order, groups, largest_last, states
from privloss.losses.ranges import chain, in_any_order
from tests.losses.test_adaptive_range import one, then

SHARES = np.linspace(0.0, 1.0, 201)


def first_then(first: float, last: float, x: float) -> float:
    """The best first choice before the best last one: all t, the best of them polished."""
    values = [then(lambda y: one(last, y), first, x, first * s) for s in SHARES]
    k = int(np.argmax(values))
    ends = first * SHARES[max(k - 1, 0)], first * SHARES[min(k + 1, 200)]
    found = minimize_scalar(lambda t: -then(lambda y: one(last, y), first, x, t), bounds=ends, method="bounded")
    return max(float(-found.fun), max(values))


@pytest.fixture(params=[2e3, 3e5, None])
def work(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[float | None]:
    """A few points in a range, some, and as many as usual."""
    if request.param is not None:
        for name in ("_PROGRAMME", "_CHAIN"):
            monkeypatch.setattr(joint_ranges, name, request.param)
    clear()
    yield request.param
    clear()


def clear() -> None:
    for one_of in (any_order, largest_last, in_any_order, chain):
        one_of.cache_clear()


@pytest.mark.parametrize("ranges", [(0.37, 0.1), (1.0, 0.9), (3.0, 0.4)])
def test_two_choices_of_different_ranges(ranges: tuple[float, float], work: float | None) -> None:
    """Both orders, also between the points of a coarse grid."""
    large, small = ranges
    uses: Uses = ((large, 1), (small, 1))
    below, above = chain(uses), in_any_order(uses)
    for x in np.linspace(0.0, 0.97 * (large + small), 31).tolist():
        largest_is_last, smallest_is_last = first_then(small, large, x), first_then(large, small, x)
        assert max(largest_is_last, smallest_is_last) <= math.exp(above.hockey_stick(x)[1]) * (1 + 1e-9)
        assert math.exp(below.hockey_stick(x)[0]) <= largest_is_last * (1 + 1e-7) + 1e-15
        if work is None and x < 0.8 * (large + small):
            assert math.exp(above.hockey_stick(x)[1]) <= max(largest_is_last, smallest_is_last) * 1.02 + 1e-6
            assert math.exp(below.hockey_stick(x)[0]) >= largest_is_last * 0.97 - 1e-6


def on_a_lattice(ranges: tuple[int, ...], unit: float, x: float) -> float:
    """The best strategy with losses that are multiples of the unit, in whatever order, picked on the way: recursion
    over what is left, point by point."""
    known: dict[tuple[tuple[int, ...], int], float] = {}

    def value(left: tuple[int, ...], j: int) -> float:
        if not left:
            return max(-math.expm1(x + j * unit), 0.0)
        if (left, j) not in known:
            best = 0.0
            for e in set(left):
                rest = list(left)
                rest.remove(e)
                for t in range(e + 1):
                    up = -math.expm1((t - e) * unit) / -math.expm1(-e * unit)
                    best = max(best, up * value(tuple(rest), j - t) + (1 - up) * value(tuple(rest), j - t + e))
            known[left, j] = best
        return known[left, j]

    return value(tuple(sorted(ranges)), 0)


@pytest.mark.parametrize("x", [0.0, 0.35, 0.9, 1.6])
def test_every_order_of_five_choices(x: float, work: float | None) -> None:
    ranges, unit = (9, 7, 4, 4, 2), 0.1
    uses: Uses = ((0.9, 1), (0.7, 1), (0.4, 2), (0.2, 1))
    some = on_a_lattice(ranges, unit, x)
    high, low = (math.exp(table.hockey_stick(x)[0]) for table in (in_any_order(uses), chain(uses)))
    assert some <= high * (1 + 1e-9)
    assert low <= high
    if work is None and x < 1:
        assert high <= some * 1.06  # losses in whole tenths
        assert low >= some * 0.98


def test_coarse_grids_enclose_fine_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    uses: Uses = ((0.31, 3), (0.2, 4), (0.07, 5))
    clear()
    fine = chain(uses), in_any_order(uses)
    for name in ("_PROGRAMME", "_CHAIN"):
        monkeypatch.setattr(joint_ranges, name, 4e4)
    clear()
    coarse = chain(uses), in_any_order(uses)
    clear()
    for x in np.linspace(0.0, 2.0, 41).tolist():
        ends = [table.hockey_stick(x) for table in (coarse[0], fine[0], fine[1], coarse[1])]
        assert all(first[0] <= second[1] for first, second in itertools.pairwise(ends))
    assert coarse[0].hockey_stick(0.7)[1] < fine[0].hockey_stick(0.7)[0] - 1e-3


def test_the_order_hardly_matters_where_the_largest_is_last() -> None:
    """What all orders may reach, against what that one does."""
    uses: Uses = tuple((eps, 1) for eps in (0.29, 0.27, 0.2, 0.19, 0.13, 0.08, 0.05))
    below, above = chain(uses), in_any_order(uses)
    for x in (0.1, 0.4, 0.8):
        low, high = math.exp(below.hockey_stick(x)[0]), math.exp(above.hockey_stick(x)[1])
        assert low <= high <= low * 1.005


def test_groups_are_short_and_keep_all() -> None:
    uses: Uses = tuple((0.3 - 0.005 * i, 1 + i % 3) for i in range(40))
    found = groups(uses)
    assert tuple(itertools.chain.from_iterable(found)) == uses
    assert all(len(group) == 1 or states(group) <= joint_ranges._MOST_STATES for group in found)


@pytest.mark.parametrize(
    ("plan", "width"),
    [
        (pl.Exponential(0.1) * 20 + pl.Exponential(0.2) * 20, 1e-3),
        (pl.Exponential(0.5) * 6 + pl.Exponential(0.2) * 20 + pl.Laplace(4.0), 1e-3),
        (sum((pl.Exponential(0.02 + 0.03 * i) * 1 for i in range(1, 8)), pl.Gaussian(4.0) * 5), 5e-4),
    ],
)
def test_plans_with_several_ranges_are_narrow(plan: pl.Plan, width: float) -> None:
    """0.4 to 0.8 % before."""
    assert plan.epsilon(1e-6).relative_width < width


def test_forty_different_ranges() -> None:
    """12 % before: groups of ten, each with a best order of its own."""
    rng = np.random.default_rng(1)
    plan = pl.Exponential(0.02) * 1
    for eps in rng.uniform(0.02, 0.3, 39).tolist():
        plan = plan + pl.Exponential(eps)
    found = plan.epsilon(1e-6)
    assert found.relative_width < 0.03
    assert plan.delta(found.upper).lower <= 1e-6 <= plan.delta(found.lower).upper
