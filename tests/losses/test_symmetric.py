"""The pair for both orders of the neighbours, infinite losses of either order included, against exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

import privloss as pl
from privloss.losses.table.build import from_vectors, poisson
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.symmetric import both_orders, fold
from privloss.losses.table.table import Table

Vector = tuple[float, ...]
PAIRS: list[tuple[Vector, Vector]] = [  # dyadic: the tables hold these very numbers
    ((0.875, 0.125), (0.5, 0.5)),
    ((0.25, 0.25, 0.5), (0.25, 0.5, 0.25)),
    ((0.5, 0.5, 0.0), (0.25, 0.25, 0.5)),
    ((0.25, 0.25, 0.5), (0.5, 0.5, 0.0)),
    ((0.125, 0.5, 0.375, 0.0), (0.5, 0.25, 0.0, 0.25)),
    ((0.96875, 0.03125, 0.0), (0.0625, 0.875, 0.0625)),
]
EPSILONS = (0.0, 1e-9, 0.1, 0.4, 0.69, 0.7, 1.0, 2.0, 3.0, 20.0)


def exact(p: Vector, q: Vector, eps: float) -> mpmath.mpf:
    """sum (p - e^eps q)_+, to 50 digits."""
    with mpmath.workdps(50):
        return mpmath.fsum(max(a - mpmath.exp(eps) * b, 0) for a, b in zip(p, q, strict=True))


def upper(table: Table, eps: float) -> float:
    return math.exp(table.hockey_stick(eps)[1]) + table.delta


def lower(table: Table, eps: float) -> float:
    return math.exp(table.hockey_stick(eps)[0]) + table.delta


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_both_orders_is_the_larger_profile(p: Vector, q: Vector) -> None:
    table = both_orders(TableLoss.one(from_vectors(p, q)))
    for eps in EPSILONS:
        truth = max(exact(p, q, eps), exact(q, p, eps))
        assert upper(table, eps) >= truth
        if eps in (0.0, 20.0) or len(p) == 2:  # here a corner, or a straight piece between corners
            assert upper(table, eps) <= truth + mpmath.mpf("1e-12")


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_both_orders_has_the_mass_of_two_distributions(p: Vector, q: Vector) -> None:
    table = both_orders(TableLoss.one(from_vectors(p, q)))
    assert math.fsum(table.masses) + table.delta == pytest.approx(1, abs=1e-12)
    assert math.fsum(m * math.exp(-v) for m, v in zip(table.masses, table.values, strict=True)) + table.back == (
        pytest.approx(1, abs=1e-12)
    )


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_the_largest_loss_of_both_orders(p: Vector, q: Vector) -> None:
    """At delta = the infinite mass only the largest finite loss is left."""
    table = both_orders(TableLoss.one(from_vectors(p, q)))
    ratios = [Fraction(a) / Fraction(b) for a, b in zip(p, q, strict=True) if a > 0 and b > 0]
    with mpmath.workdps(40):
        top = max(abs(mpmath.log(mpmath.mpf(r.numerator) / r.denominator)) for r in ratios)
        assert table.largest >= top


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_two_uses_of_infinite_losses_in_either_order(p: Vector, q: Vector) -> None:
    lost = max(
        1 - sum(a for a, b in zip(p, q, strict=True) if b > 0), 1 - sum(b for a, b in zip(p, q, strict=True) if a > 0)
    )
    plan = (pl.Custom(p, q) * 2).under("replace-one")
    assert plan.delta(60.0).upper >= 1 - (1 - lost) ** 2 - 1e-15
    if lost > 0:
        assert plan.epsilon(0.99 * (1 - (1 - lost) ** 2)).upper == math.inf


@pytest.mark.parametrize("rate", [0.125, 0.75])
@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_fold_keeps_the_profile_above_one_and_mirrors_it(p: Vector, q: Vector, rate: float) -> None:
    """Of a sample of the pair for both orders: rate h(1 + (a - 1)/rate) above a = 1, a h(1/a) + 1 - a below."""
    table = fold(poisson(both_orders(TableLoss.one(from_vectors(p, q))), rate))
    for eps in EPSILONS:
        inner = float(mpmath.log1p(mpmath.expm1(eps) / rate))
        truth = rate * max(exact(p, q, inner), exact(q, p, inner))
        assert truth <= upper(table, eps) + 1e-15
        assert lower(table, eps) <= truth + mpmath.mpf("1e-6")
        mirrored = mpmath.exp(-eps) * truth - mpmath.expm1(-eps)
        assert mirrored <= upper(table, -eps) + 1e-15
        assert lower(table, -eps) <= mirrored + mpmath.mpf("1e-6")


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_batches_that_may_disclose(rate: float) -> None:
    """All others give Q: a batch with the record shows the third outcome with probability rate/2 (P and Q swapped)."""
    step = pl.Custom([0.5, 0.5, 0.0], [0.25, 0.25, 0.5]).fixed_size(8, int(8 * rate))
    assert step.delta(40.0, adjacency="replace-one").upper >= rate / 2
