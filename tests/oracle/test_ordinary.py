"""Ordinary runs of noisy SGD: the truth, from summed_losses, lies inside our intervals, and they are narrow.

One case in five is asked, all with PRIVLOSS_ALL_ORDINARY=1 in the environment.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import privloss as pl
from tests.oracle import make_ordinary
from tests.oracle.summed_losses import Oracle, Pair, delta_other, epsilon

CASES = json.loads((Path(__file__).parents[1] / "data" / "ordinary.json").read_text())["cases"]
ASKED = CASES if os.environ.get("PRIVLOSS_ALL_ORDINARY") else CASES[::5]
CHUNKS = [ASKED[i : i + 11] for i in range(0, len(ASKED), 11)]
WIDEST = 1e-6  # relative


def _fault(case: dict[str, Any]) -> str:
    bound = (pl.Gaussian(case["sigma"]).poisson(case["q"]) * int(case["steps"])).epsilon(case["delta"])
    truth, slack = case["epsilon"], case["epsilon"] * case["trust"]
    if not bound.lower - slack <= truth <= bound.upper + slack:
        return f"{case}: truth outside [{bound.lower!r}, {bound.upper!r}]"
    if not bound.upper - bound.lower <= WIDEST * truth:
        return f"{case}: [{bound.lower!r}, {bound.upper!r}] is wide"
    return ""


@pytest.mark.parametrize("chunk", CHUNKS, ids=range(len(CHUNKS)))
def test_truth_inside_narrow_intervals(chunk: list[dict[str, Any]]) -> None:
    assert [fault for case in chunk if (fault := _fault(case))] == []


def test_cases_are_enough_and_trusted() -> None:
    assert len(CASES) >= 300
    assert max(case["trust"] for case in CASES) <= 1e-10
    assert sum(case["q"] * case["steps"] < 1 for case in CASES) >= 60  # few hits


@pytest.mark.parametrize("index", [1, 7, 47])
def test_the_recorded_values_come_out_again(index: int) -> None:
    case = CASES[index]
    again = make_ordinary.solve((case["sigma"], case["q"], case["steps"], case["delta"]))
    assert again is not None
    assert again["epsilon"] == pytest.approx(case["epsilon"], rel=case["trust"], abs=0)


def test_one_step_has_a_closed_form() -> None:
    for q, sigma, eps in [(0.3, 1.0, 0.2), (0.01, 0.7, 0.5), (0.5, 3.0, 0.1)]:
        y = sigma**2 * math.log((math.exp(eps) - 1 + q) / q) + 0.5  # where the likelihood ratio is e^eps
        plain, hit = float(ndtr(-y / sigma)), float(ndtr((1 - y) / sigma))
        delta = (1 - q) * plain + q * hit - math.exp(eps) * plain
        assert Oracle(Pair(q, sigma), 1, eps, delta, 1).delta(eps) == pytest.approx(delta, rel=1e-11)


def test_the_other_direction_is_the_same_curve_at_negative_eps() -> None:
    q, sigma, steps, eps = 0.1, 1.0, 30, 0.3
    mirrored = Oracle(Pair(q, sigma), steps, eps, 0.1, steps).delta(-eps)
    expected = math.exp(eps) * (mirrored - 1) + 1
    assert delta_other(Pair(q, sigma), steps, eps) == pytest.approx(expected, rel=1e-10)


def test_both_methods_agree() -> None:
    for q, sigma, steps, delta in [(0.1, 2.0, 60, 1e-10), (1e-5, 0.6, 400, 1e-6)]:
        values = [epsilon(Pair(q, sigma), steps, delta, mass) for mass in (0.01, 0.03, steps)]
        assert np.ptp(values) < 1e-12 * values[0]
