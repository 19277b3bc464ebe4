"""Sums of turns at many heights, against each turn by itself in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from privloss.losses.table.turned import turned
from privloss.numerics.floats import UNIT


def _bent() -> np.ndarray:
    """Equally spaced, but for one height that is off by a part in 10^12."""
    heights = np.linspace(3.0, 40.0, 1000)
    heights[500] *= 1 + 1e-12
    return heights


@pytest.mark.parametrize(
    "heights",
    [
        np.linspace(3.0, 40.0, 1000),
        0.37 + 0.21 * np.arange(97),
        np.geomspace(1e-3, 90.0, 300),
        _bent(),
        np.array([7.0]),
    ],
    ids=["a grid", "a short grid", "no grid", "nearly a grid", "one"],
)
def test_every_sum_is_as_near_as_is_said(heights: np.ndarray) -> None:
    rng = np.random.default_rng(5)
    values = 9.0 * rng.normal(size=400)
    weights = rng.exponential(size=400)
    weights /= weights.sum()
    angle = np.multiply.outer(heights.astype(np.longdouble), values.astype(np.longdouble))
    truth = np.hypot((np.cos(angle) * weights).sum(axis=1), (np.sin(angle) * weights).sum(axis=1))
    wrong = UNIT * (64 + 2 * 400 + 12 * heights * float(np.abs(values).max()))
    assert np.all(np.abs(turned(values, weights, heights) - truth) <= wrong)


def test_a_height_off_the_grid_is_not_moved_to_it() -> None:
    """Far up, where a part in 10^12 is a good part of a turn."""
    heights = 1e12 + np.arange(64.0)
    heights[40] += 0.5
    found = turned(np.array([0.0, np.pi]), np.array([0.5, 0.5]), heights)
    assert found[40] == pytest.approx(np.sqrt(0.5), abs=1e-3)
