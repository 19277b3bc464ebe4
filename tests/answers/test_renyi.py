"""Renyi divergences and KL against sums with 40 digits: both directions, what is attained, what a curve adds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mpmath
import pytest

import privloss as pl

Vector = Sequence[float]
UNEVEN: list[tuple[Vector, Vector]] = [
    ([0.875, 0.125], [0.5, 0.5]),
    ([0.5, 0.5], [0.875, 0.125]),
    ([0.25, 0.25, 0.5], [0.25, 0.625, 0.125]),
    ([0.0078125, 0.9921875], [0.5, 0.5]),
]


def divergence(p: Vector, q: Vector, alpha: float) -> mpmath.mpf:
    pairs = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(p, q, strict=True)]
    if alpha == 1:
        return mpmath.fsum(a * mpmath.log(a / b) for a, b in pairs)
    if alpha == math.inf:
        return max(mpmath.log(a / b) for a, b in pairs)
    return mpmath.log(mpmath.fsum(a**alpha * b ** (1 - alpha) for a, b in pairs)) / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.0, 1.0625, 2.0, 3.5, 64.0, math.inf])
@pytest.mark.parametrize(("p", "q"), UNEVEN)
def test_renyi_divergence_is_the_larger_direction(p: Vector, q: Vector, alpha: float) -> None:
    with mpmath.workdps(40):
        truth = max(divergence(p, q, alpha), divergence(q, p, alpha))
        for count in (1, 5):
            found = (pl.Custom(p, q) * count).rdp(alpha)
            assert found.lower <= count * truth <= found.upper
            assert found.upper <= count * truth * (1 + mpmath.mpf("1e-9"))
        swapping = (pl.Custom(p, q) * 5).rdp(alpha, adjacency="replace-one")
        assert swapping.lower <= 5 * truth <= swapping.upper


@pytest.mark.parametrize("alpha", [1.0, 2.0, 8.0])
def test_renyi_curves_add(alpha: float) -> None:
    """A Gaussian satisfies zCDP with equality at every order."""
    p, q = UNEVEN[1]
    with mpmath.workdps(40):
        own = max(divergence(p, q, alpha), divergence(q, p, alpha))
        for rho in (0.1, 3.0):
            found = (pl.Custom(p, q) + pl.ZCDP(rho)).rdp(alpha)
            assert found.upper >= own + rho * alpha * (1 - mpmath.mpf("1e-15"))
            assert found.lower <= own + rho * alpha
    assert pl.ZCDP(0.25).kl().upper >= 0.25
    assert (pl.ZCDP(0.1) + pl.PureDP(1.0)).rdp(math.inf).upper == math.inf


def test_renyi_tables_bound_the_orders_below_their_own() -> None:
    """D_alpha grows with alpha: a mechanism with D_4 = 1 may have D_2 and KL just as large (an output of loss 1)."""
    table = pl.RDP([4.0, 8.0], [1.0, 3.0])
    for alpha in (1.0, 2.0, 4.0):
        assert table.rdp(alpha).upper >= 1
    assert table.rdp(5.0).upper == pytest.approx(7.5 / 4)  # the chord of (alpha - 1) D_alpha from 3 to 21
    assert table.rdp(9.0).upper == math.inf


def test_renyi_of_bounds_are_not_claimed_below() -> None:
    """The pair for both orders is no pair of the mechanism: at every order each step has its worse order, no more."""
    p, q = [0.25, 0.25, 0.5], [0.25, 0.625, 0.125]
    with mpmath.workdps(40):
        for alpha in (1.0, 2.0, 20.0):
            truth = max(divergence(p, q, alpha), divergence(q, p, alpha))
            found = (pl.Custom(p, q) * 3).rdp(alpha, adjacency="replace-one")
            assert found.lower <= 3 * truth
            assert alpha > 2 or found.upper > 3 * truth * (1 + mpmath.mpf("1e-6"))  # the bound is one
