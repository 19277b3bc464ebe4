"""A short hammering of both stores; the long one is `python -m tests.ledger.hammer`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.ledger.hammer import ROOT


def test_killed_processes_lose_nothing(place: str) -> None:
    which = ["--place", "postgresql", "--url", place] if "://" in place else ["--place", "sqlite"]
    call = [sys.executable, "-m", "tests.ledger.hammer", *which, "--seconds", "5", "--processes", "4", "--kills", "8"]
    run = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    if run.returncode != 0:
        pytest.fail(run.stdout + run.stderr)
    summary = json.loads(run.stdout)
    assert summary["kills"] == 8
    assert summary["problems"] == 0
    assert summary["commits"] > 0
