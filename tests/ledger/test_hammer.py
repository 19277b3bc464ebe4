"""A short hammering of both stores; the long one is `python -m tests.ledger.hammer`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from privloss.ledger.ledger import Ledger
from tests.ledger.hammer import ROOT, set_up
from tests.ledger.hammer_check import compare


@pytest.mark.parametrize(("place", "lines", "kills"), [("sqlite", 1000, 8), ("postgresql", 900, 6)])
def test_killed_processes_lose_nothing(place: str, lines: int, kills: int) -> None:
    """In PostgreSQL also: backends ended and killed, the server restarted, connections cut around a commit."""
    call = [sys.executable, "-m", "tests.ledger.hammer", "--place", place, "--lines", str(lines)]
    run = subprocess.run(
        [*call, "--processes", "4", "--kills", str(kills)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        pytest.fail(run.stdout + run.stderr)
    summary = json.loads(run.stdout)
    assert (summary["kills"], summary["problems"]) == (kills, 0)
    assert summary["commits"] > 0
    assert summary["entered"] > 0
    assert {"analyst", "already-started"} <= set(summary["reasons"])
    assert place == "sqlite" or summary["cut"] > 0


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
    ledger.reserve("vast", cost="1/7", key="k")
    told = [{"intent": "reserve", "key": "k"}, {"answer": "reserve", "key": "k", "state": "RESERVED"}]
    assert compare(ledger, told)[0] == []
    problems = compare(ledger, [told[0], entry])[0]
    assert any(says in problem for problem in problems)


def test_the_comparison_sees_two_callers(tmp_path: Path) -> None:
    ledger = Ledger.create(str(tmp_path / "privloss.db"))
    set_up(ledger)
    ledger.reserve("vast", cost="1/7", key="k")
    ledger.start("k")
    told: list[dict[str, Any]] = [{"intent": "reserve", "key": "k"}, {"entered": "k"}]
    assert compare(ledger, told)[0] == []
    assert "key 'k': let 2 callers in" in compare(ledger, [*told, {"entered": "k"}])[0]
    assert "key 'x': the data was read, and it is not charged" in compare(ledger, [*told, {"entered": "x"}])[0]
    assert "key 'k': the data was read, and it is STARTED" in compare(ledger, [*told, {"released": "k"}])[0]
