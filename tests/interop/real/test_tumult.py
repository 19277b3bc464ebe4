"""Tumult Analytics itself: the page's code runs, and what it relies on is there."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import tmlt.analytics as tumult
from tmlt.core.utils.exact_number import ExactNumber

import privloss as pl
from tests.interop.pages import DOCS, run
from tests.interop.signatures import recorded, signatures


def test_signatures_are_those_recorded() -> None:
    found = signatures(ExactNumber, ("to_float",))
    for kind in (tumult.PureDPBudget, tumult.ApproxDPBudget, tumult.RhoZCDPBudget):
        found |= signatures(kind, ("__init__", "value"))
    found |= signatures(tumult.Session, ("from_dataframe", "evaluate", "remaining_privacy_budget"))
    assert found == recorded("tumult")


def test_the_code_in_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = run("tumult")
    assert 900 < space["count"][0]["count"] < 1100
    assert space["session"].remaining_privacy_budget.rho == pytest.approx(0.03, rel=1e-12)
    with closing(pl.Ledger("budgets.db")) as ledger:
        spent = Fraction(ledger.status("visits")["committed"])
    assert Fraction(0.05) <= spent < Fraction(0.05) + Fraction(1, 10**9)  # the ledger rounds its costs up
    box = space["box"]
    assert box(tumult.PureDPBudget(2)) == pl.PureDP(2.0)
    assert box(tumult.ApproxDPBudget(1, 1e-6)) == pl.ApproxDP(1.0, 1e-6)
    third = box(tumult.PureDPBudget(ExactNumber(1) / ExactNumber(3)))
    assert Fraction(1, 3) < Fraction(third.to_dict()["epsilon"]) < Fraction(1, 3) + Fraction(1, 10**15)


@pytest.mark.parametrize(("sessions", "said"), [(10, "0.9994"), (100, "4.7746")])
def test_sessions_compose_for_less_than_their_sum(sessions: int, said: str) -> None:
    assert said in (DOCS / "tumult.md").read_text()
    found = (pl.PureDP(0.1) * sessions).epsilon(1e-6)
    assert float(said) - 1e-4 < found.lower
    assert found.upper <= float(said)
