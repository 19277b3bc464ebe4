"""Hits that are shown: the table lies above sum w H(N(s), N(0)), in both directions, and close to it."""

from __future__ import annotations

import math

import pytest
from scipy.special import ndtr

import privloss as pl
from privloss.losses.table.hits import shown_hits


def shown(hits: tuple[tuple[float, float], ...], eps: float) -> float:
    return math.fsum(
        w * (float(ndtr(s / 2 - eps / s)) - math.exp(eps) * float(ndtr(-s / 2 - eps / s))) for w, s in hits
    )


@pytest.mark.parametrize(
    "hits", [((0.6, 1.5),), ((0.01, 0.5), (0.001, 1.0)), ((0.3, 10.0), (0.05, 20.0)), ((1.0, 0.1),)], ids=str
)
def test_shown_hits_lie_above(hits: tuple[tuple[float, float], ...]) -> None:
    table = shown_hits(hits)
    for eps in (0.0, 0.05, 0.5, 2.0, 30.0, 100.0):
        truth = shown(hits, eps)
        for side in (table, table.reversed()):
            found = math.exp(side.hockey_stick(eps)[1]) + side.delta
            assert found >= truth * (1 - 1e-9) - 1e-15
            assert found <= truth * 1.05 + 1e-3 * max(w for w, _ in hits)


def test_a_lower_end_that_was_not_attained() -> None:
    """Zero-out with little noise: with K shown delta(1200) is at most 2.5e-7 (a sum over all numbers of draws)."""
    found = (pl.Gaussian(0.1).with_replacement(50, 5) * 20).epsilon(1e-6, adjacency="zero-out")
    assert 900 < found.lower < 1200
