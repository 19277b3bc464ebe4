"""Values computed in ball arithmetic by another algorithm lie inside our intervals, in all regimes."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import privloss as pl

CASES = json.loads((Path(__file__).parents[1] / "data" / "oracle_mixture.json").read_text())["cases"]
WORK = 2e8  # a tenth of what is usually allowed: what is extreme is wider then, and must be as sound
CHUNKS = [CASES[i : i + 10] for i in range(0, len(CASES), 10)]


def _misses(case: dict[str, Any]) -> list[str]:
    bound = (pl.Gaussian(case["sigma"]).poisson(case["q"]) * int(case["steps"])).epsilon(case["delta"], work=WORK)
    truth = Decimal(case["epsilon"])
    slack = abs(truth) * Decimal(10) ** (1 - case["digits"])
    inside = Decimal(bound.lower) <= truth + slack and Decimal(bound.upper) >= truth - slack
    return [] if inside else [f"{case}: {bound!r}"]


@pytest.mark.parametrize("chunk", CHUNKS, ids=range(len(CHUNKS)))
def test_truth_inside(chunk: list[dict[str, Any]]) -> None:
    assert [miss for case in chunk for miss in _misses(case)] == []


def test_there_are_enough_and_they_spread() -> None:
    assert len(CASES) >= 300
    assert sum(c["steps"] >= 10**9 for c in CASES) >= 30
    assert sum(c["sigma"] < 0.3 for c in CASES) >= 30
    assert sum(c["delta"] < 1e-100 for c in CASES) >= 30
    assert sum(c["q"] < 1e-5 for c in CASES) >= 30
