"""All outcomes of a few uses, against sums in high precision: small discrete Gaussians, boxes, tables of doubles."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import privloss as pl
from privloss.losses.table.build import discrete_gaussian, from_vectors
from privloss.losses.table.outcomes import outcomes, whole
from privloss.losses.table.table import Table


def _discrete_gaussian(sigma: float, sensitivity: int, uses: int, eps: float) -> mpmath.mpf:
    """delta by convolving the noise on the whole numbers: the loss of a sum k is (2k - nD) D/2s^2, P centred at D."""
    s, reach = mpmath.mpf(sigma), math.ceil(20 * sigma) + 2
    one = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s**2)) for k in range(-reach, reach + 1)]
    total = mpmath.fsum(one)
    one, law = [x / total for x in one], [mpmath.mpf(1)]
    for _ in range(uses):
        law = [
            mpmath.fsum(law[i] * one[k - i] for i in range(max(0, k - 2 * reach), min(k, len(law) - 1) + 1))
            for k in range(len(law) + 2 * reach)
        ]
    found = mpmath.mpf(0)
    for i, mass in enumerate(law):
        k = i - uses * reach + uses * sensitivity
        loss = (2 * k - uses * sensitivity) * sensitivity / (2 * s**2)
        if loss > eps:
            found += mass * -mpmath.expm1(eps - loss)
    return found


@pytest.mark.parametrize(
    ("sigma", "sensitivity", "uses", "eps"),
    [
        (0.43682548937035837, 3, 1, 0.2657538775442436),
        (0.43682548937035837, 3, 1, 40.0),
        (0.3788597859678306, 1, 2, 2.1976),
        (0.3788597859678306, 1, 2, 17.0),
        (0.55, 2, 4, 3.0),
        (0.3, 1, 7, 50.0),  # a loss in itself, where every rounding of it counts
    ],
)
def test_small_discrete_gaussians_are_elementary_sums(sigma: float, sensitivity: int, uses: int, eps: float) -> None:
    with mpmath.workdps(40):
        truth = _discrete_gaussian(sigma, sensitivity, uses, eps)
    found = (pl.DiscreteGaussian(sigma, sensitivity) * uses).delta(eps)
    assert found.lower <= truth <= found.upper
    assert found.relative_width < 1e-9
    back = (pl.DiscreteGaussian(sigma, sensitivity) * uses).epsilon(float(truth))
    assert back.lower <= eps * (1 + 1e-12)
    assert eps * (1 - 1e-12) <= back.upper


def test_tails_left_out_are_charged() -> None:
    """Without its outer outcomes, what a table says of delta must still reach up to the truth."""
    table = discrete_gaussian(0.5, 1)
    reach = 3
    kept = np.abs(np.arange(len(table.values)) - len(table.values) // 2) <= reach

    def beyond(c: float, t: np.ndarray) -> np.ndarray:
        return np.full(len(t), float(table.masses[~kept].sum()))

    short = Table(table.values[kept], table.masses[kept], slack=table.slack, missing=(beyond, beyond))
    for uses in (1, 2, 5):
        full, cut = (whole([(t, uses)]) for t in (table, short))
        for eps in (0.0, 3.0, 20.0):
            assert cut.hockey_stick(eps)[0] <= full.hockey_stick(eps)[1]
            assert full.hockey_stick(eps)[0] <= cut.hockey_stick(eps)[1]


def test_unequal_tables_with_and_without_equal_spacing_are_added() -> None:
    """Three values that are equally spaced and three that are not, against all 3^5 products."""
    even = from_vectors([0.25, 0.5, 0.25], [0.125, 0.5, 0.375])
    spaced = Table(np.array([0.5, -0.5, 0.0]), np.array([0.5, 0.5 * math.exp(-0.5), 0.5 - 0.5 * math.exp(-0.5)]))
    rows = [(spaced, 3), (even, 2)]
    assert outcomes(rows) == 7 * 6
    found = whole(rows)
    assert len(found.values) == 42
    for eps in (-1.0, 0.0, 0.3, 1.9):
        total = 0.0
        for index in np.ndindex(3, 3, 3, 3, 3):
            v = sum(spaced.values[i] for i in index[:3]) + sum(even.values[i] for i in index[3:])
            m = math.prod(spaced.masses[i] for i in index[:3]) * math.prod(even.masses[i] for i in index[3:])
            total += m * max(-math.expm1(eps - v), 0.0)
        low, high = found.hockey_stick(eps)
        assert math.exp(low) <= total * (1 + 1e-14)
        assert total * (1 - 1e-14) <= math.exp(high)
        assert high - low < 1e-11


@pytest.mark.parametrize(("uses", "delta"), [(3, 1e-3), (10, 1e-6), (40, 1e-9), (63, 0.1)])
def test_equal_boxes_are_binomial_sums(uses: int, delta: float) -> None:
    with mpmath.workdps(40):
        e = mpmath.mpf(0.1)
        up = 1 / (1 + mpmath.exp(-e))

        def truth(eps: float) -> mpmath.mpf:
            return mpmath.fsum(
                mpmath.binomial(uses, j) * up**j * (1 - up) ** (uses - j) * -mpmath.expm1(eps - (2 * j - uses) * e)
                for j in range(uses + 1)
                if (2 * j - uses) * e > eps
            )

        found = (pl.PureDP(0.1) * uses).epsilon(delta)
        assert found.relative_width < 1e-11
        assert truth(found.upper) <= delta
        assert truth(found.lower) >= delta


def test_delta_at_the_mass_of_infinite_loss_is_not_unknown() -> None:
    """A quarter of P is seen for certain, and no other loss is positive; the other way round delta(0) is 1/4."""
    found = pl.Custom([0.5, 0.25, 0.25], [0.5, 0.5, 0.0]).epsilon(0.25)
    assert 0 == found.lower <= found.upper < 1e-14
    assert pl.Custom([0.5, 0.25, 0.25], [0.5, 0.5, 0.0]).epsilon(0.2499).lower == math.inf


def test_sums_that_are_not_one_leave_the_mass_uncertain() -> None:
    """0.1 + 0.2 + 0.7 is not 1 in doubles: made to sum to one, 0.1 is no longer known to the last digit."""
    assert not from_vectors([0.7, 0.2, 0.1], [0.5, 0.5, 0.0]).exact
    assert from_vectors([0.5, 0.25, 0.25], [0.5, 0.5, 0.0]).exact


@pytest.mark.parametrize("uses", [1, 2, 7, 8])
def test_every_use_brings_its_roundings(uses: int) -> None:
    table = discrete_gaussian(0.5, 1)
    assert whole([(table, uses)]).slack > uses * float(np.max(table.slack))
