"""The supremum over eps behind a trade-off curve: both sides of the best point, and what lies beyond all points."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest

import privloss as pl
from privloss.answers import tradeoff
from privloss.numerics.bound import Bound

H = 1e-6  # the first width that is tried, times x


def roof(top: float) -> Callable[[float], tuple[float, float]]:
    """Concave, 0.5 at its top, falling alike on both sides."""

    def branch(at: float) -> tuple[float, float]:
        value = 0.5 - 40.0 * abs(at - top)
        return value, value

    return branch


@pytest.mark.parametrize("sign", [+1, -1])
@pytest.mark.parametrize("away", [-10.0, -0.4, 0.4, 10.0])
def test_the_top_may_lie_on_either_side_of_the_best_point(sign: int, away: float) -> None:
    x = 1.5 if sign > 0 else 0.5
    assert tradeoff._concave_upper(roof(x + sign * away * H * x), x, sign) >= 0.5


@pytest.mark.parametrize("sign", [+1, -1])
def test_the_top_may_lie_beside_the_edge(sign: int) -> None:
    assert tradeoff._concave_upper(roof(1 + sign * 0.4 * H), 1.0, sign) >= 0.5


@pytest.mark.parametrize("sign", [+1, -1])
@pytest.mark.parametrize("away", [-0.3, 0.4])
def test_the_top_may_lie_on_either_side_of_a_point_beside_the_edge(sign: int, away: float) -> None:
    x = 1 + sign * 0.5 * H
    assert tradeoff._concave_upper(roof(x + sign * away * H), x, sign) >= 0.5


def laplace_delta(lam: float, eps: float) -> float:
    return -math.expm1((eps - lam) / 2) if eps < lam else 0.0


def laplace_curve(lam: float, fpr: float) -> float:
    if fpr < 0.5 * math.exp(-lam):
        return 1 - math.exp(lam) * fpr
    return math.exp(-lam) / (4 * fpr) if fpr <= 0.5 else math.exp(-lam) * (1 - fpr)


@pytest.mark.parametrize("fpr", [0.01, 0.1, 0.3, 0.45])
def test_cells_are_above_the_curve_of_the_smaller_delta(fpr: float) -> None:
    def delta(eps: float) -> Bound:
        return Bound(laplace_delta(1.0, eps), laplace_delta(3.0, eps))

    limit = -math.log(fpr)
    eps = [limit * i / 2000 for i in range(2001)]
    steep = max(1 - laplace_delta(1.0, e) - math.exp(e) * fpr for e in eps)
    flat = max(math.exp(-e) * (1 - laplace_delta(1.0, e) - fpr) for e in eps)
    assert tradeoff._cells_upper(delta, fpr, limit, +1) >= steep
    assert tradeoff._cells_upper(delta, fpr, 700.0, -1) >= flat


@pytest.mark.parametrize("fpr", [0.01, 0.1, 0.3, 0.7, 0.9])
def test_each_end_comes_from_the_other_end_of_delta(fpr: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """delta is known only between those of Laplace noise 0.5 and 1: so is the curve."""

    def one_delta(plan: pl.Plan, eps: float, *, adjacency: str | None = None) -> Bound:
        return Bound(laplace_delta(0.5, eps), laplace_delta(1.0, eps))

    monkeypatch.setattr(tradeoff.exact, "one_delta", one_delta)
    found = pl.PureDP(1.0).tradeoff(fpr)
    assert found.lower <= laplace_curve(1.0, fpr) + 1e-15
    assert found.upper >= laplace_curve(0.5, fpr) - 1e-15


def test_roundings_of_the_curve_are_outward() -> None:
    """f(a) = 1 - e^eps a left of the corner."""
    draw = random.Random(1)
    with mpmath.workdps(40):
        for eps in (0.3, 1.0, 5.0, 20.0):
            for _ in range(5):
                fpr = draw.random() / (1 + math.exp(eps))
                found = pl.PureDP(eps).tradeoff(fpr)
                assert found.lower <= 1 - mpmath.exp(mpmath.mpf(eps)) * mpmath.mpf(fpr) <= found.upper


def test_roundings_at_the_edge_are_outward(monkeypatch: pytest.MonkeyPatch) -> None:
    """delta(eps) = d for all eps: f(a) = 1 - d - a, in rational numbers."""
    draw = random.Random(2)
    for _ in range(100):
        d, fpr = draw.random() / 2, draw.random() / 2
        monkeypatch.setattr(tradeoff.exact, "one_delta", lambda *_, d=d, **__: Bound(d, d))
        found = pl.PureDP(1.0).tradeoff(fpr)
        assert Fraction(found.lower) <= 1 - Fraction(d) - Fraction(fpr) <= Fraction(found.upper)


@pytest.mark.parametrize("swapped", [False, True])
def test_certain_disclosure_in_either_direction(swapped: bool) -> None:
    p, q = [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]
    found = (pl.Custom(q, p) if swapped else pl.Custom(p, q)).tradeoff(0.0)
    assert found.lower <= 0.5 <= found.upper
    assert found.width < 1e-13


def test_certain_disclosure_of_a_bound_alone_is_not_claimed() -> None:
    """The bound for draws with replacement has infinite losses; Gaussian noise never has."""
    assert pl.Gaussian(1.0).with_replacement(100, 10).tradeoff(0.0).upper == 1


@pytest.mark.parametrize(("mu", "fpr"), [(38.3, 1e-321), (37.4, 1e-310), (37.4, 1e-306)])
def test_rates_below_the_last_point_of_the_search(mu: float, fpr: float) -> None:
    """The best eps is above 700: f(a) = Phi(z - mu), z the upper quantile of a."""
    with mpmath.workdps(40):
        z = mpmath.findroot(lambda y: mpmath.log(mpmath.erfc(y / mpmath.sqrt(2)) / 2 / mpmath.mpf(fpr)), 37.8)
        truth = mpmath.ncdf(z - mu)
        found = pl.GDP(mu).tradeoff(fpr)
        assert found.lower <= truth <= found.upper


@pytest.mark.parametrize("rho", [0.1, 1000.0])
def test_finite_divergences_disclose_nothing_for_sure(rho: float) -> None:
    """A test without false positives finds nothing: outputs that only one side has would make a divergence infinite."""
    found = pl.ZCDP(rho).tradeoff(0.0)
    assert found.upper == 1
