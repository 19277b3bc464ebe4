"""A short hammering of both stores; the long one is `python -m tests.ledger.hammer`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from privloss.ledger.ledger import Ledger
from tests.ledger.hammer import ROOT, compare, set_up


def test_killed_processes_lose_nothing(place: str) -> None:
    which = ["--place", "postgresql", "--url", place] if "://" in place else ["--place", "sqlite"]
    call = [sys.executable, "-m", "tests.ledger.hammer", *which, "--lines", "1000", "--processes", "4", "--kills", "8"]
    run = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        pytest.fail(run.stdout + run.stderr)
    summary = json.loads(run.stdout)
    assert (summary["kills"], summary["problems"]) == (8, 0)
    assert summary["commits"] > 0


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"answer": "reserve", "key": "lost", "state": "RESERVED"}, "'lost': was answered"),
        ({"answer": "commit", "key": "k", "state": "COMMITTED"}, "answered with COMMITTED and is RESERVED"),
        ({"answer": "reserve", "key": "k", "refused": "budget-exceeded"}, "always refused"),
        ({"answer": "reserve", "key": "k", "error": "LedgerError: busy"}, "busy"),
    ],
)
def test_the_comparison_itself_can_fail(tmp_path: Path, entry: dict[str, Any], says: str) -> None:
    ledger = Ledger.create(str(tmp_path / "privloss.db"))
    set_up(ledger)
    ledger.reserve("wide", cost="1/7", key="k")
    told = [{"intent": "reserve", "key": "k"}, {"answer": "reserve", "key": "k", "state": "RESERVED"}]
    assert compare(ledger, told)[0] == []
    problems = compare(ledger, [told[0], entry])[0]
    assert any(says in problem for problem in problems)


def test_the_comparison_sees_two_callers(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path / "privloss.db"))
    set_up(ledger)
    ledger.reserve("wide", cost="1/7", key="k")
    ledger.start("k")
    told = [{"intent": "start", "key": "k"}, {"answer": "start", "key": "k", "state": "STARTED"}]
    assert compare(ledger, told)[0] == []
    assert "key 'k': let 2 callers in" in compare(ledger, told * 2)[0]
