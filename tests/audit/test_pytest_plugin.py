"""Audits as tests: what is refuted fails, and one false alarm rate serves the whole suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUITE = """
import pytest

def noisy(scale):
    return lambda x, rng: x + rng.laplace(scale=scale)

@pytest.mark.dp_audit(claim=1.0, runs=1000)
def test_honest(dp_audit):
    assert dp_audit(noisy(1.0), 0.0, 1.0).verdict == "not refuted"
    assert abs(dp_audit.alpha - 0.04 / 6) < 1e-12

@pytest.mark.dp_audit(claim=1.0, runs=1000)
def test_halved(dp_audit):
    dp_audit(noisy(0.25), 0.0, 1.0)

@pytest.mark.dp_audit(claim=2.0, runs=200, audits=2)
def test_two(dp_audit):
    for seed in (1, 2):
        dp_audit(noisy(1.0), 0.0, 1.0, seed=seed)

@pytest.mark.skip
@pytest.mark.dp_audit(claim=2.0, runs=200)
def test_skipped(dp_audit):
    dp_audit(noisy(1.0), 0.0, 1.0)

@pytest.mark.dp_audit(claim=2.0, runs=200)
def test_pair(dp_audit):
    for seed in (1, 2):
        dp_audit(noisy(1.0), 0.0, 1.0, seed=seed)
"""


def run(folder: Path, suite: str, *more: str) -> str:
    (folder / "test_noise.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "privloss.audit.pytest_plugin"]
    command += list(more)
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take longer to load than all audits
    done = subprocess.run([*command, "test_noise.py"], cwd=folder, env=alone, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_refuted_claims_fail_and_alpha_is_shared(tmp_path: Path) -> None:
    said = run(tmp_path, SUITE, "--dp-audit-alpha", "0.04")
    assert "6 audits, false alarm rate 0.04 over the suite" in said
    assert "2 failed, 2 passed, 1 skipped" in said, said
    assert "test_halved" in said
    assert "Claim 1: refuted" in said
    alone = run(tmp_path, SUITE, "--dp-audit-alpha", "0.04", "-k", "honest")  # the share stays
    assert "1 passed" in alone


def test_what_the_marker_does_not_know_is_said(tmp_path: Path) -> None:
    assert "dp_audit takes" in run(tmp_path, SUITE.replace("audits=2", "claims=2"))
    assert "must be a number above 0" in run(tmp_path, SUITE, "--dp-audit-alpha", "0.7")
    said = run(tmp_path, SUITE, "-k", "pair")
    assert "more than audits=1" in said
    assert "a claim is missing" in run(tmp_path, SUITE.replace("claim=2.0, ", ""), "-k", "two")


def test_an_audit_that_was_not_counted_is_not_made(tmp_path: Path) -> None:
    """It would have had the whole alpha for itself."""
    late = "def test_late(request):\n    request.getfixturevalue('dp_audit')\n"
    assert "was not counted" in run(tmp_path, late)
