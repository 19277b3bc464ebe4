"""Sampled discrete noise: the truth, from convolutions of whole numbers, lies inside intervals, which are narrow."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mpmath as mp
import pytest

import privloss as pl
from tests.oracle.convolved import Pair, delta, fine, gaussian, hidden, laplace

CASES = json.loads((Path(__file__).parents[1] / "data" / "discrete.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_truth_inside_narrow_intervals(case: dict[str, float]) -> None:
    bound = (pl.DiscreteGaussian(case["sigma"]).poisson(case["q"]) * int(case["steps"])).epsilon(case["delta"])
    slack = case["epsilon"] * case["trust"]
    assert bound.lower - slack <= case["epsilon"] <= bound.upper + slack
    assert bound.upper - bound.lower <= 1e-6 * case["epsilon"]


def test_a_recorded_value_comes_out_again() -> None:
    found, slope = delta(gaussian(2.0, 1e-4), 2000, 0.0101034116174312, 2**13, 0.08 * 2**13)
    assert float((found - mp.mpf(1e-8)) / slope) == pytest.approx(0, abs=3e-12)


def test_a_lattice_finer_than_the_grids() -> None:
    """e^(1/sigma^2) is nearly 3: losses of many small steps nearly lie on a lattice, |phi|^n is .74 at 1.7e7.

    Grids of 2^13 to 2^16 points agree on a larger epsilon. What decides is one step of loss .0035, and the others on a
    grid fine enough.
    """
    steps, target = 838, 8.068864310364079e-11
    pair, size = gaussian(0.9541077835506968, 8.398794523560909e-06), 2**13
    bound = (pl.DiscreteGaussian(0.9541077835506968).poisson(8.398794523560909e-06) * steps).epsilon(target)
    eps = bound.upper
    large = next(i for i, loss in enumerate(pair.losses) if loss > 0.5 * eps)
    others = Pair(pair.losses[:large], pair.above[:large], pair.below[:large])
    coarse, slope = delta(pair, steps, eps, size, 0.1 * size)
    assert float((coarse - mp.mpf(target)) / slope) > 5 * (bound.upper - bound.lower)
    left = float(mp.mpf(eps) - pair.losses[large])
    missing = fine(others, steps - 1, left, 26_000, 2**21) - fine(others, steps - 1, left, 128, 2**14)
    truth = eps + float((coarse + steps * pair.above[large] * missing - mp.mpf(target)) / slope)
    assert bound.lower < truth < bound.upper
    assert truth == pytest.approx(0.0036481393950331, rel=1e-11)
    assert 1e-8 < hidden(pair, steps, eps, size, 0.1 * size) < 1e-6
    assert hidden(gaussian(2.0, 1e-4), 2000, 0.0101034116174312, size, 0.08 * size) < 1e-12


def test_discrete_laplace() -> None:
    bound = (pl.DiscreteLaplace(1.5, 3).poisson(0.01) * 500).epsilon(1e-7)
    assert bound.relative_width < 1e-9
    found, slope = delta(laplace(1.5, 0.01, 3), 500, bound.upper, 2**13, 0.1 * 2**13)
    assert bound.upper + float((found - mp.mpf(1e-7)) / slope) == pytest.approx(bound.lower, rel=1e-6)


def test_the_oracle_knows_two_steps() -> None:
    """A sum over all pairs of outcomes."""
    pair = gaussian(1.0, 0.3)
    truth = mp.fsum(
        a * b * -mp.expm1(0.2 - v - w)
        for v, a in zip(pair.losses, pair.above, strict=True)
        for w, b in zip(pair.losses, pair.above, strict=True)
        if v + w > 0.2
    )
    upper = delta(pair, 2, 0.2, 2**13, 0.05 * 2**13, linear=True)[0]
    assert truth * (1 - mp.mpf(2) ** -100) <= upper  # equal, but for what lies next to the kink
    assert math.isclose(upper, truth, rel_tol=1e-3)
