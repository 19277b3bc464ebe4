"""Certificates of 0.1.0 still prove what they claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import privloss as pl

OLD: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "certificates-0.1.0.json").read_text())


@pytest.mark.parametrize("name", OLD)
def test_old_certificates_hold(name: str) -> None:
    assert OLD[name]["library"] == "privloss 0.1.0"
    verdict = pl.verify(OLD[name])
    assert verdict.holds, verdict.reason
    claimed = pl.Certificate(OLD[name]).bound
    plan, claim = pl.Plan.from_dict(OLD[name]["plan"]), OLD[name]["claim"]
    if isinstance(claim["epsilon"], dict):
        answer = plan.epsilon(float(claim["delta"]), adjacency=OLD[name]["adjacency"])
    else:
        answer = plan.delta(float(claim["epsilon"]), adjacency=OLD[name]["adjacency"])
    assert max(answer.lower, claimed.lower) <= min(answer.upper, claimed.upper) * (1 + 1e-12)


def test_a_changed_claim_does_not_hold() -> None:
    broken = json.loads(json.dumps(OLD["noisy max"]))
    broken["claim"]["epsilon"]["upper"] = "0.1"
    assert not pl.verify(broken).holds
