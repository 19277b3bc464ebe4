"""Plans whose ends are those of different pairs: many questions at once share lines at either end."""

from __future__ import annotations

import pytest

import privloss as pl
from privloss.answers import exact

BATCHES = (pl.Gaussian(1.0).fixed_size(1000, 20) * 100).under("replace-one")
PLANS = [
    (pl.Gaussian(1.5).truncated_poisson(0.2, 40, 12) * 5).as_plan(),
    pl.Exponential(0.2) * 6 + pl.Gaussian(3.0) * 4,
    (pl.Custom([0.9, 0.1], [0.6, 0.4]) * 3 + pl.Gaussian(2.0)).under("replace-one"),
]


@pytest.mark.parametrize("plan", PLANS)
def test_arrays_say_what_single_questions_say(plan: pl.Plan) -> None:
    levels, deltas = [0.05, 0.3, 0.9, 1.4], [0.2, 1e-2, 1e-4, 1e-6]
    pairs = [(plan.delta(levels), [plan.delta(e) for e in levels]), (plan.epsilon(deltas), map(plan.epsilon, deltas))]
    for together, alone in pairs:
        for many, one in zip(together, alone, strict=True):
            assert max(many.lower, one.lower) <= min(many.upper, one.upper)
            assert many.lower <= one.lower * (1 + 1e-4)  # what dominates is not what is attained
            assert many.relative_width <= 1.1 * one.relative_width + 1e-5
            assert "lower end: a mechanism that attains it" in many.notes


def test_lines_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []
    own = exact.delta_bounds
    monkeypatch.setattr(exact, "delta_bounds", lambda loss, eps, *rest: drawn.append(eps) or own(loss, eps, *rest))
    found = BATCHES.delta([0.1 * k for k in range(1, 30)])
    assert all(0 < b.lower <= b.upper for b in found)
    assert 2 <= len(drawn) <= 12
