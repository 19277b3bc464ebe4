"""Grids without cells, against the majorant itself, and upper bounds on K against 30-digit arithmetic."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from privloss.losses.mixture.explicit import explicit_grid, right_end
from privloss.losses.mixture.grid import Members
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.numerics.floats import Real
from tests.numerics.test_numerics import exact_k

ROWS = [
    (0.01, 1.1, 5.0),
    (0.3, 2.0, 10.0),
    (0.2, 0.6, 1.3),
    (1e-3, 1.0, 9.0),
    (0.05, 0.5, 2.5),
    (1e-6, 5.0, 60.0),
    (0.7, 8.0, 8.0),
    (0.02, 1.0, 1.0),
]


def _majorant(q: float, sigma: float, c: float, flipped: bool, y: Real) -> Real:
    """phi g as `grid.py` defines it, with the room for the mean."""
    s = (y - 0.5) / sigma**2
    r = 1 - q + q * np.exp(s)
    large = 5 * (1 / r + r ** -(c + 2)) if flipped else 1 + r ** (c - 1)
    phi = np.exp(-0.5 * (y / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    return np.asarray(phi * q**2 * (np.exp(2 * s) + 1) * large * (1 + 4 / (1 - q)))


@pytest.mark.parametrize("lifted", [False, True])
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize(("q", "sigma", "c"), ROWS)
@pytest.mark.parametrize("goal", [1e-3, 1e-14])
def test_closed_bounds_cover_the_majorant(
    q: float, sigma: float, c: float, flipped: bool, lifted: bool, goal: float
) -> None:
    rows = Members(np.array([q]), np.array([sigma]), np.array([c]), flipped)
    grid = explicit_grid(rows, 2.0, np.log([goal]), lifted)
    assert grid is not None
    start, step = float(grid.start[0]), float(grid.step[0])
    end = start + step * (grid.size - 1)
    # the strip: its lines are v away from those of the nodes, and those of the nodes v or 0 from the axis
    v = float(grid.shift[0]) if lifted else float(grid.slope[0]) * sigma**2
    furthest = (2 * v if lifted else v) / sigma**2
    cosine = (c + 2) if flipped else 0.0
    penalty = 0.5 * (furthest * sigma) ** 2 - cosine * math.log(math.cos(furthest / 2))
    wide = np.linspace(-40 * sigma, c + 2 + 40 * sigma, 200_001)
    whole = float(_majorant(q, sigma, c, flipped, wide).sum()) * float(wide[1] - wide[0])
    strip = math.log(2 * whole) + penalty - math.log(math.expm1(2 * math.pi * v / step))
    assert strip <= grid.log_strip[0]
    # the nodes that were left out
    on_nodes = 0.5 * (v / sigma) ** 2 - cosine * math.log(math.cos(0.5 * v / sigma**2)) if lifted else 0.0
    left = start - step * np.arange(1, 4000)
    right = end + step * np.arange(1, 4000)
    with np.errstate(over="ignore", invalid="ignore"):
        outside = np.nan_to_num(_majorant(q, sigma, c, flipped, np.concatenate([left, right])), posinf=0.0)
    assert math.log(step * float(outside.sum()) + 1e-300) + on_nodes <= grid.log_tail[0]


@pytest.mark.parametrize("goal", [1e-14, 1e-60])
@pytest.mark.parametrize("q", [1e-3, 0.01])
def test_nodes_on_a_lifted_line_weigh_more(q: float, goal: float) -> None:
    """At large tilts |r|^-(c+2) on the line of the nodes is far more than on the axis: what is left out is so, too."""
    c, rows = 200.0, Members(np.array([q]), np.ones(1), np.array([200.0]), True)
    grid = explicit_grid(rows, 2.0, np.log([goal]), True)
    assert grid is not None
    start, step, v = float(grid.start[0]), float(grid.step[0]), float(grid.shift[0])
    on_nodes = 0.5 * v**2 - (c + 2) * math.log(math.cos(0.5 * v))
    assert on_nodes > 8
    ends = [start - step * np.arange(1, 2000), start + step * (grid.size - 1) + step * np.arange(1, 2000)]
    with np.errstate(over="ignore", invalid="ignore"):
        outside = np.nan_to_num(_majorant(q, 1.0, c, True, np.concatenate(ends)), posinf=0.0)
    assert math.log(step * float(outside.sum())) + on_nodes <= grid.log_tail[0]


@pytest.mark.parametrize(("q", "sigma", "c"), [*ROWS, (0.2, 1.0, 6.0), (0.1, 0.8, 10.0)])
def test_what_lies_beyond_the_last_node(q: float, sigma: float, c: float) -> None:
    """Nodes as far apart as they may be, and the last where nothing is beyond, or little."""
    rows = Members(np.array([q]), np.array([sigma]), np.array([c]), False)
    log_unit = np.array([2 * math.log(q) + math.log1p(4 / (1 - q))])
    for goal in (-200.0, -80.0, -40.0, 5.0):
        found = right_end(rows, np.array([2 + 3 * sigma]), log_unit, np.array([goal]))
        if found is None:
            continue
        y = float(found[0][0]) + sigma * np.arange(1, 25)
        outside = sigma * float(_majorant(q, sigma, c, False, y).sum())
        assert math.log(outside + 1e-300) <= found[1][0] + math.log(4.0)
        assert found[1][0] <= max(goal, 5.0)


def test_cells_take_over() -> None:
    """Where closed bounds are poor or not known."""
    one = np.ones(1)
    for q, sigma, c, flipped in [(0.01, 0.2, 5.0, False), (0.01, 1.0, 0.5, False), (0.3, 0.5, 90.0, False)]:
        assert explicit_grid(Members(q * one, sigma * one, c * one, flipped), 1.0, np.log(1e-9 * one), False) is None
    trimmed = Members(0.01 * one, one, 5 * one, False, trim=9 * one, log_beyond=-30 * one)
    assert explicit_grid(trimmed, 1.0, np.log(1e-9 * one), False) is None


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize(
    ("q", "sigma", "c"), [*ROWS[:5], (1e-9, 0.5, 3.0), (1e-4, 0.25, 0.5), (0.01, 0.7, 30.0), (1e-7, 5.0, 50.0)]
)
def test_upper_bounds_at_real_points(q: float, sigma: float, c: float, flipped: bool) -> None:
    loss = GaussianMixtureLoss(np.array([q]), np.array([sigma]), np.array([1e4]), flipped)
    found = float(loss.log_mgf_upper(np.array([c]))[0])
    with mp.workdps(30):
        truth = 10_000 * exact_k(q, sigma, mp.mpc(c), flipped).real
        assert truth <= mp.mpf(found)
        assert found - truth <= 5e-8 + 1e-7 * truth
