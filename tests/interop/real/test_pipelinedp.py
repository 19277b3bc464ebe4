"""PipelineDP itself: the page's code runs, and what it relies on is there."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pipeline_dp
import pytest
from pipeline_dp.budget_accounting import MechanismSpec, MechanismType

import privloss as pl
from tests.interop.pages import DOCS, run
from tests.interop.signatures import recorded, signatures

TOTALS = ("__init__", "request_budget", "compute_budgets", "total_epsilon", "total_delta", "mechanism_specs")


def test_signatures_are_those_recorded() -> None:
    found = signatures(pipeline_dp.NaiveBudgetAccountant, TOTALS)
    assert {**found, **signatures(MechanismSpec, ("eps", "delta", "count"))} == recorded("pipelinedp")


def test_the_code_in_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = run("pipelinedp")
    assert len(space["published"]) == 3
    assert sum(len(box) for box in space["boxes"]) == 3  # two counts and the choice of partitions
    assert space["run"].epsilon(1e-6).upper <= 1.0
    with closing(pl.Ledger("budgets.db")) as ledger:
        committed = ledger.status("visits")["committed"]
    assert (float(committed["epsilon"]), float(committed["delta"])) == (1.0, 1e-6)


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 2.0, 5.0)])
def test_the_boxes_add_up_to_no_more_than_the_total(weights: tuple[float, ...]) -> None:
    """An epsilon is for one use of a mechanism, as the page charges it."""
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=2.0, total_delta=1e-5)
    for weight in weights:
        budget.request_budget(MechanismType.GAUSSIAN, weight=weight, count=3)
        budget.request_budget(MechanismType.LAPLACE, weight=weight)
    budget.compute_budgets()
    spent = [(one.eps * one.count, (one.delta or 0.0) * one.count) for one in budget.mechanism_specs]
    for place, total in enumerate((2.0, 1e-5)):
        assert sum(Fraction(one[place]) for one in spent) <= Fraction(total) * (1 + Fraction(1, 10**9))


def test_many_boxes_compose_for_less() -> None:
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    budget.request_budget(MechanismType.GAUSSIAN, count=100)
    budget.compute_budgets()
    (one,) = budget.mechanism_specs
    found = (pl.ApproxDP(one.eps, one.delta) * one.count).epsilon(2e-6)
    assert "epsilon 0.3923 at delta 2e-6" in (DOCS / "pipelinedp.md").read_text()
    assert 0.3922 < found.lower <= found.upper < 0.3923
