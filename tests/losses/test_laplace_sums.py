"""A few uses of Laplace noise against integrals of the definition (mpmath) and against the certificate's residues."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

import privloss as pl
from privloss.certificates.methods.residues import by_residues
from privloss.certificates.pairs.pieces import laplace_pair
from privloss.losses.closed.laplace import LaplaceLoss
from privloss.losses.closed.laplace_sums import LaplaceSums, few

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "reference.json").read_text())["cases"]
NARROW = 1e-12


def _defined(lams: list[float], x: mpmath.mpf) -> mpmath.mpf:
    """delta(x) = E[delta of the others (x - Z)], from the atoms and the density of the first loss Z."""
    lam, rest = mpmath.mpf(lams[0]), lams[1:]
    if not rest:
        return -mpmath.expm1(x if x < -lam else (min(x, lam) - lam) / 2)
    atoms = _defined(rest, x - lam) / 2 + mpmath.exp(-lam) / 2 * _defined(rest, x + lam)
    kinks = {mpmath.mpf(0)}
    for other in rest:
        kinks = {k + s * mpmath.mpf(other) for k in kinks for s in (-1, 1)}
    ends = sorted({-lam, lam, *(x - k for k in kinks if -lam < x - k < lam)})
    inner = sum(
        mpmath.quad(lambda z: mpmath.exp((z - lam) / 2) / 4 * _defined(rest, x - z), [a, b], maxdegree=4)
        for a, b in pairwise(ends)
    )
    return atoms + inner


@pytest.mark.parametrize(
    ("lams", "eps"),
    [
        ([1.0, 1.0], 0.7),
        ([1.0, 1.0], -0.3),
        ([2.0, 0.3], 1.5),
        ([2.0, 0.3], 1.9),
        ([0.7, 0.11], 0.0),
        ([1.0, 1.0, 1.0], 0.5),
        ([1.0, 0.45, 2.0], 1.1),
        ([1.0, 0.45, 2.0], 3.0),
        ([0.25, 0.5, 0.5], -0.4),
    ],
)
def test_sums_are_the_integrals_they_stand_for(lams: list[float], eps: float) -> None:
    with mpmath.workdps(20):
        truth = mpmath.log(_defined(lams, mpmath.mpf(eps)))
    low, high = LaplaceLoss(np.array(lams), np.ones(len(lams))).hockey_stick(eps) or (0.0, 0.0)
    assert low <= truth <= high
    assert high - low < NARROW


@pytest.mark.parametrize("uses", [2, 3, 5, 8, 21, 60])
@pytest.mark.parametrize("lam", [0.03125, 0.5, 1.0, 7.0])
def test_sums_of_equal_scales_are_those_of_the_certificate(uses: int, lam: float) -> None:
    sums = LaplaceSums(np.array([lam]), np.array([float(uses)]), 0.0)
    with ctx.workprec(600):
        read = by_residues([(laplace_pair(arb(lam)), uses)], {"most": uses})
        for share in (0.0, 0.21, 0.5, 0.93, 0.999):
            eps = share * uses * lam
            truth = read(arb(eps))[0]
            found = sums.delta(eps)
            assert found.overlaps(truth)
            assert found.rel_accuracy_bits() > 60
            assert (found - truth).abs_upper() < truth * arb(2) ** -60


def test_uses_may_be_split_and_put_in_any_order() -> None:
    one = LaplaceSums(np.array([0.5, 1.25, 0.5]), np.array([1.0, 2.0, 2.0]), 4).hockey_stick(1.0)
    two = LaplaceSums(np.array([1.25, 0.5]), np.array([2.0, 3.0]), 4).hockey_stick(1.0)
    assert one == pytest.approx(two, rel=1e-14)


def test_roundings_of_the_scales_are_inside() -> None:
    """At the largest loss nothing but the rounding of lambda decides."""
    loss = LaplaceLoss(np.array([0.1]), np.array([3.0]))
    low, high = loss.hockey_stick(3 * 0.1 - 4e-17) or (0.0, 0.0)
    assert low == -math.inf < high
    up, down = (LaplaceSums(np.array([0.1 * (1 + s * 4 * 2.0**-53)]), np.array([3.0]), 0.0) for s in (1, -1))
    for eps in (0.05, 0.25, 0.2999):
        low, high = loss.hockey_stick(eps) or (0.0, 0.0)
        assert low <= float(down.delta(eps).log())
        assert float(up.delta(eps).log()) <= high


def test_beyond_the_largest_loss_nothing_is_left() -> None:
    assert LaplaceSums(np.array([1.0]), np.array([3.0]), 4).hockey_stick(3.001) == (-math.inf, -math.inf)


@pytest.mark.parametrize("name", ["B1", "B2", "B5"])
def test_references_are_met_to_the_last_digits(name: str) -> None:
    case = next(c for c in REFERENCE if c["name"] == name)
    found = pl.Plan.from_dict(case["plan"]).epsilon(case["delta"])
    assert found.lower <= case["epsilon"] * (1 + 1e-14)
    assert case["epsilon"] * (1 - 1e-14) <= found.upper
    assert found.relative_width < 1e-13


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-9, 1e-30, 1e-280])
@pytest.mark.parametrize("plan", [pl.Laplace(1.0, 2.0) * 6, pl.Laplace(1.0) + pl.Laplace(2.3) + pl.Laplace(0.7)])
def test_epsilon_of_a_few_uses_is_narrow(plan: pl.Plan, delta: float) -> None:
    found = plan.epsilon(delta)
    assert found.relative_width < NARROW
    at = plan.delta(found.upper)
    assert at.lower <= delta
    assert plan.delta(found.lower).upper >= delta


def test_long_sums_are_left_to_the_line() -> None:
    assert few(np.array([1.0]), np.array([150.0]))
    assert not few(np.array([1.0]), np.array([151.0]))
    assert few(np.arange(1.0, 13.0), np.ones(12))
    assert not few(np.arange(1.0, 14.0), np.ones(13))


@pytest.mark.parametrize("fpr", [1e-6, 0.01, 0.12, 0.9, 0.999])
def test_trade_off_of_two_uses_is_narrow(fpr: float) -> None:
    """f(a) is the largest line below it, over the corners of the profile and between; at a = 1e-6 and 0.999 the corner
    at the largest loss 2 decides, where delta is 0."""
    found = (pl.Laplace(1.0) * 2).tradeoff(fpr)
    assert found.upper - found.lower < 1e-12
    sums = LaplaceSums(np.array([1.0]), np.array([2.0]), 0.0)
    profile = [(eps, 1 - float(sums.delta(eps))) for eps in np.linspace(0, 2, 201).tolist()]
    lines = [max(kept - math.exp(eps) * fpr, math.exp(-eps) * (kept - fpr)) for eps, kept in profile]
    assert found.upper >= max(lines) - 1e-15
    if fpr != 0.12:
        assert found.lower == pytest.approx(lines[-1], abs=1e-14)
