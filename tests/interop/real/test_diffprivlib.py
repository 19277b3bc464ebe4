"""diffprivlib itself: its tools spend from our accountant, and its signatures are those recorded."""

from __future__ import annotations

from pathlib import Path

import diffprivlib as dp
import numpy as np
import pytest
from diffprivlib.utils import Budget, BudgetError

import privloss as pl
from privloss.interop.diffprivlib import PrivlossBudgetAccountant
from tests.interop.pages import run
from tests.interop.signatures import recorded, signatures

METHODS = ("__init__", "total", "check", "remaining", "spend", "slack", "spent_budget", "epsilon", "delta")


def test_signatures_are_those_recorded() -> None:
    found = {**signatures(dp.BudgetAccountant, METHODS), **signatures(Budget, ("__new__",))}
    assert found == recorded("diffprivlib")


def test_tools_spend_from_it() -> None:
    x = np.linspace(0.0, 1.0, 100)
    with PrivlossBudgetAccountant(slack=1e-6) as accountant:
        for _ in range(100):
            dp.tools.mean(x, epsilon=0.1, bounds=(0, 1))
    assert accountant.plan == (pl.ApproxDP(0.1, 0.0) * 100)
    epsilon, delta = accountant.total()
    assert epsilon == (pl.PureDP(0.1) * 100).epsilon(delta).upper
    theirs = dp.BudgetAccountant(slack=1e-6, spent_budget=[(0.1, 0)] * 100).total()
    assert 4.77 < epsilon < 0.9 * theirs[0]


def test_a_ceiling_holds() -> None:
    accountant = PrivlossBudgetAccountant(epsilon=1.0, delta=1e-6)
    accountant.spend(0.6, 0)
    assert accountant.remaining()[0] == pytest.approx(0.4, rel=1e-9)
    with pytest.raises(BudgetError):
        accountant.spend(0.5, 0)
    assert len(accountant) == 1


def test_the_code_in_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("diffprivlib")
