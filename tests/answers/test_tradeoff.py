"""One set of tangents and chords for a whole trade-off curve: every end proven, few questions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import privloss as pl
from privloss.answers import exact, tradeoff

RATES = [0.0, 1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.77, 0.99, 1.0]


def closed(u: Any) -> Any:
    """d(u) of a Gaussian pair with mu = 1.3."""
    eps, mu = np.log(u), 1.3
    return norm.cdf(mu / 2 - eps / mu) - u * norm.cdf(-mu / 2 - eps / mu)


@pytest.mark.parametrize("seed", range(20))
def test_no_vertex_lies_above_a_convex_profile(seed: int) -> None:
    """Whatever points were asked, with intervals of any width: the vertices bound the conjugate from above."""
    rng = np.random.default_rng(seed)
    u = np.concatenate([[1.0], np.sort(1 + rng.exponential(3.0, rng.integers(1, 12)) ** 2)])
    wobble = rng.choice([0.0, 1e-9, 1e-3])
    low, high = (closed(u) + sign * rng.uniform(0, wobble + 1e-15, len(u)) for sign in (-1, 1))
    at, floor = tradeoff.vertices(u, np.maximum(low, 0.0), high)
    dense = np.exp(np.linspace(0, 12, 20_001))
    d = closed(dense)
    for a in (1e-4, 0.01, 0.2, 0.6, 0.95):
        truth = max(float(np.max(1 - d - dense * a)), float(np.max((1 - d - a) / dense)))
        assert tradeoff._largest(at, floor, np.array([a]))[1][0] >= truth - 1e-14
        assert tradeoff._largest(u, high, np.array([a]))[1][0] <= truth + 1e-7  # the dense grid is not the supremum


def test_a_kink_between_two_points_near_the_edge() -> None:
    """d falls by 40/100 until u = 1 + 1.5e-6 and is flat from there on; no point is asked at the kink."""
    kink, u = 1 + 1.5e-6, np.array([1.0, 1 + 0.6e-6, 1 + 3e-6, 1 + 9e-6])
    d = 0.3 + 0.4 * np.maximum(kink - u, 0.0)
    at, floor = tradeoff.vertices(u, d, d)
    assert tradeoff._largest(at, floor, np.array([0.1]))[1][0] >= 1 - 0.3 - kink * 0.1


def test_gaussian_curve_is_contained() -> None:
    truth = norm.cdf(norm.ppf(1 - np.array(RATES)) - 1.3)
    for found, exactly in zip(pl.GDP(1.3).tradeoff(RATES), truth, strict=True):
        assert found.lower - 1e-15 <= exactly <= found.upper + 1e-15
        assert found.width < 1e-9


@pytest.mark.parametrize(
    "plan",
    [
        pl.Gaussian(1.1).poisson(0.01) * 1000, pl.PureDP(1.0).as_plan(), pl.ApproxDP(0.5, 0.01) * 2,
        pl.RandomizedResponse(1.0) * 3, pl.ZCDP(0.1).as_plan(),
    ],
    ids=str,
)  # fmt: skip
def test_an_array_is_what_its_points_are(plan: pl.Plan) -> None:
    rates = [0.0, 0.02, 0.3, 0.3, 0.9, 1.0]
    together = plan.tradeoff(np.array(rates))
    assert isinstance(together, pl.Bounds)
    for rate, found in zip(rates, together, strict=True):
        alone = plan.tradeoff(rate)
        assert max(alone.lower, found.lower) <= min(alone.upper, found.upper)
        assert found.width <= 2 * alone.width + 1e-9
    assert list(together.lower) == sorted(together.lower, reverse=True)


def test_many_points_share_their_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    real = exact.delta

    def watched(plan: pl.Plan, epsilon: Any, **more: Any) -> Any:
        asked.extend(epsilon)
        return real(plan, epsilon, **more)

    monkeypatch.setattr(exact, "delta", watched)
    plan = pl.Gaussian(1.5) * 4
    plan.tradeoff(0.01)
    assert len(asked) <= 40  # it was 100 to 300
    asked.clear()
    found = plan.tradeoff(np.linspace(0.005, 0.995, 100), tolerance=1e-4)
    assert len(asked) <= 130
    assert max(b.width for b in found) <= 1e-4
    assert len(asked) == len(set(asked))


def test_bad_rates() -> None:
    plan = pl.Gaussian(1.0)
    with pytest.raises(pl.InvalidInput, match=r"fpr\[1\] = 1.5"):
        plan.tradeoff([0.5, 1.5])
    with pytest.raises(pl.InvalidInput, match="empty"):
        plan.tradeoff([])
    with pytest.raises(pl.InvalidInput, match="tolerance"):
        plan.tradeoff(0.5, tolerance=0.0)


def test_divergences_of_several_orders() -> None:
    plan = pl.Gaussian(1.1).poisson(0.01) * 1000 + pl.Laplace(3.0)
    orders = [1.0, 1.5, 8.0, math.inf]
    assert list(plan.rdp(orders)) == [plan.rdp(a) for a in orders]
    assert list(plan.rdp(np.array([2.0, 3.0]))) == [plan.rdp(2.0), plan.rdp(3.0)]
    with pytest.raises(pl.InvalidInput, match=r"alpha\[1\] = 0.5"):
        plan.rdp([2.0, 0.5])
    with pytest.raises(pl.InvalidInput, match="empty"):
        plan.rdp([])


def test_what_gives_everything_away_leaves_nothing_beyond_the_last_point() -> None:
    assert pl.Laplace(0.0).tradeoff(0.01).upper < 1e-14
    half = pl.ApproxDP(0.0, 0.5).tradeoff([0.01, 0.3])
    assert [b.upper for b in half] == pytest.approx([0.49, 0.2], abs=1e-9)
