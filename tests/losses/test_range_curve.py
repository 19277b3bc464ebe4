"""Many questions about choices of one range, off the points of the grid, against two choices enumerated."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import privloss as pl
from privloss.losses.closed.adaptive_range import AdaptiveRange
from privloss.losses.closed.range_curve import RangeCurve, range_curve
from tests.losses.test_adaptive_range import two

RNG = np.random.default_rng(5)


def curve_of(eps: float, count: int) -> RangeCurve:
    found = range_curve(AdaptiveRange(eps, count))
    assert found is not None
    return found


@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
def test_deltas_between_the_points(eps: float) -> None:
    curve = curve_of(eps, 2)
    x = RNG.uniform(0, 1.6 * eps, 12)
    low, high = curve.deltas(x)
    truth = np.array([two(eps, float(one)) for one in x])
    assert np.all(low <= truth * (1 + 1e-12))
    assert np.all(truth * (1 - 1e-6) <= high)  # two() tries finitely many choices
    assert np.all(high - low <= 2e-3 * truth)


@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
def test_epsilons_between_the_points(eps: float) -> None:
    curve = curve_of(eps, 2)
    delta = two(eps, 0.0) * RNG.uniform(0.02, 0.98, 12)
    low, high = curve.epsilons(delta)
    assert np.all(high - low <= 2e-4 * eps)
    for one, a, b in zip(delta.tolist(), low.tolist(), high.tolist(), strict=True):
        assert two(eps, a) * (1 + 1e-6) >= one >= two(eps, b) * (1 - 1e-12)


def straight(x: np.ndarray) -> np.ndarray:
    """A profile that is straight in e^x, where continued chords err by nothing but their ends."""
    return np.maximum(0.5 - 0.009 * np.exp(x), 0.0)


def curved(x: np.ndarray) -> np.ndarray:
    return np.array([0.5 * math.erfc(float(v) / 2) for v in x])  # erfc(log a / 2) is convex for a >= 1


@pytest.mark.parametrize("profile", [straight, curved])
def test_a_rough_grid_stays_on_both_sides(profile: Callable[[np.ndarray], np.ndarray]) -> None:
    at = np.linspace(0.0, 4.0, 41)
    low = profile(at) * (1 - RNG.uniform(0, 0.01, 41))
    high = profile(at) * (1 + RNG.uniform(0, 0.01, 41))
    curve = RangeCurve(at, np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high), 1e3)
    x = RNG.uniform(0, 4.5, 2000)
    truth = profile(x)
    low, high = curve.deltas(x)
    assert np.all((low <= truth) & (truth <= high))
    least, most = curve.epsilons(truth)
    assert np.all((least <= x) & (x <= most))
    assert np.max((most - least)[(x > 2) & (x < 3.5)]) < 0.4


def test_beyond_the_grid_and_at_its_ends() -> None:
    curve = curve_of(1.0, 2)
    low, high = curve.deltas(np.array([0.0, 1.9999, 2.0, 2.5, 50.0]))
    assert low[0] <= two(1.0, 0.0) <= high[0]
    assert low[1] <= two(1.0, 1.9999) <= high[1] <= 1e-6
    assert list(low[3:]) == list(high[3:]) == [0.0, 0.0]
    least, most = curve.epsilons(np.array([1.0, 0.9, 1e-200]))
    assert list(least[:2]) == list(most[:2]) == [0.0, 0.0]
    assert least[2] <= 2.0 <= most[2] * (1 + 1e-12)


def test_arrays_say_what_single_questions_say() -> None:
    plan = pl.Exponential(0.3) * 12
    deltas = [0.3, 0.1, 1e-2, 1e-4, 1e-9, 1e-30]
    for together, alone in zip(plan.epsilon(deltas), [plan.epsilon(d) for d in deltas], strict=True):
        assert max(together.lower, alone.lower) <= min(together.upper, alone.upper)
        assert together.relative_width <= max(3 * alone.relative_width, 1e-3)
    levels = [0.0, 0.5, 1.0, 1.7, 3.5, 3.7]
    for together, alone in zip(plan.delta(levels), [plan.delta(e) for e in levels], strict=True):
        assert max(together.lower, alone.lower) <= min(together.upper, alone.upper)
        assert together.upper <= alone.upper * (1 + 1e-2) + 1e-15


def test_the_trade_off_curve_is_read_off_one_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    own = AdaptiveRange.grid
    monkeypatch.setattr(AdaptiveRange, "grid", lambda self, *at: drawn.append(at) or own(self, *at))
    found = (pl.Exponential(0.2) * 21).tradeoff(0.05)
    assert found.relative_width < 1e-4
    assert len(drawn) <= 2
