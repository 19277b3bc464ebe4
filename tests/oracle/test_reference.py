"""Reference values, known to 11-15 digits, lie inside our intervals, which are narrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import privloss as pl

CASES = json.loads((Path(__file__).parents[1] / "data" / "reference.json").read_text())["cases"]
NARROW = {f"A{i}" for i in (*range(1, 15), 16)}  # relative width 1e-9; the others 1e-7


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_reference_inside(case: dict[str, Any]) -> None:
    plan = pl.Plan.from_dict(case["plan"])
    truth, slack = case["epsilon"], 10.0 ** (1 - case["digits"])
    bound = plan.epsilon(case["delta"])
    assert bound.lower <= truth * (1 + slack)
    assert bound.upper >= truth * (1 - slack)
    assert bound.relative_width <= (1e-9 if case["name"] in NARROW else 1e-8 if case["name"] == "G1" else 1e-7)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["name"] in ("A1", "A5", "A12", "A15", "B3", "C2")], ids=lambda c: c["name"]
)
def test_delta_inverts_epsilon(case: dict[str, Any]) -> None:
    plan = pl.Plan.from_dict(case["plan"])
    bound = plan.epsilon(case["delta"])
    assert plan.delta(bound.upper).lower <= case["delta"]
    assert plan.delta(bound.lower).upper >= case["delta"]
    assert plan.delta(bound.upper).upper == pytest.approx(case["delta"], rel=1e-7)


def test_whatever_the_number_of_steps() -> None:
    for steps in (10**3, 10**6, 10**9, 10**12):
        rate = 0.01 / steps**0.5 * 30
        bound = (pl.Gaussian(2.0).poisson(rate) * steps).epsilon(1e-7)
        assert bound.relative_width < 1e-9
