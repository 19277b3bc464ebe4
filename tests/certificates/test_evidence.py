"""Audits that a certificate carries: of its claim, as they were attached, and loud if they refute it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.certificates.checker import digest
from privloss.certificates.evidence import digest as audit_digest

PLAN, DELTA = pl.Gaussian(2.0) * 4, 1e-5
CERTIFICATE = pl.certify(PLAN, delta=DELTA)
EPSILON = CERTIFICATE.bound.upper


def audited(tp: int, claim: Any) -> pl.audit.Audit:
    return pl.audit.counts(
        tp=tp, positives=200, fp=200 - tp, negatives=200, delta=DELTA, trials="independent", claim=claim,
        method="clopper-pearson",
    )  # fmt: skip


REFUTED, HELD, PAIR = audited(180, PLAN), audited(138, PLAN), audited(138, (EPSILON, DELTA))


def test_audits_are_reported_with_their_verdicts(tmp_path: Path) -> None:
    found = CERTIFICATE.with_audit(HELD, date="2026-11-17").with_audit(PAIR.to_json())
    found.save(tmp_path / "cert.json")
    verdict = pl.verify(tmp_path / "cert.json")
    assert (verdict.holds, verdict.refuted) == (True, False)
    first, second = verdict.audits
    assert (first["verdict"], first["date"]) == ("not refuted", "2026-11-17")
    assert first["sha256"] == audit_digest(HELD.to_json())
    assert second["claim"]["upper"] == EPSILON
    assert found.audits == list(verdict.audits)
    assert found.bound == CERTIFICATE.bound
    loud = pl.verify(found.with_audit(REFUTED))
    assert (loud.holds, loud.refuted, len(loud.audits)) == (True, True, 3)
    assert not pl.verify(CERTIFICATE).refuted


def test_rounded_claims_are_those_of_the_certificate() -> None:
    for epsilon in (EPSILON, EPSILON * 1.0009):
        assert pl.verify(CERTIFICATE.with_audit(audited(138, (epsilon, DELTA)))).holds
    delta = pl.certify(PLAN, epsilon=3.0)
    assert pl.verify(delta.with_audit(audited(138, (3.0, delta.bound.upper)))).holds
    other = pl.certify(PLAN, delta=DELTA, adjacency="zero-out")
    assert pl.verify(other.with_audit(audited(138, PLAN.under("zero-out")))).holds


@pytest.mark.parametrize(
    ("audit", "says"),
    [
        (audited(138, pl.Gaussian(2.0) * 3), "another plan"),
        (audited(138, PLAN.under("zero-out")), "under zero-out, not under add-remove"),
        (audited(138, (EPSILON * 1.002, DELTA)), "another claim: epsilon"),
        (audited(138, (EPSILON * 0.999999, DELTA)), "another claim: epsilon"),
        (audited(138, (EPSILON, 2e-5)), "another claim: delta"),
        (audited(138, EPSILON), "another claim: delta"),  # pure
        (audited(138, None), "verdict = None"),
        ({}, "no audit of a claim"),
        (3, "cannot be attached"),
    ],
)
def test_an_audit_of_something_else_is_not_attached(audit: Any, says: str) -> None:
    with pytest.raises(pl.InvalidInput, match=says):
        CERTIFICATE.with_audit(audit)
    with pytest.raises(pl.InvalidInput, match="cannot be attached"):
        CERTIFICATE.with_audit(HELD, date="17.11.2026")


def changed(path: tuple[Any, ...], value: Any, rehashed: bool) -> dict[str, Any]:
    data = copy.deepcopy(CERTIFICATE.with_audit(REFUTED, date="2026-11-17").data)
    place = data["audits"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    if rehashed:
        data["audits"][0]["sha256"] = audit_digest(data["audits"][0]["audit"])
    return {**data, "hash": digest(data)}


@pytest.mark.parametrize(
    ("path", "value", "rehashed", "says"),
    [
        ((0, "audit", "verdict"), "not refuted", False, "its hash is another"),
        ((0, "audit", "verdict"), "not refuted", True, "contradicts its verdict"),
        ((0, "audit", "verdict"), "fine", True, "must be one of"),
        ((0, "audit", "claim_plan", "adjacency"), "replace-one", True, "under replace-one"),
        ((0, "audit", "claim_plan", "steps"), [], True, "another plan"),
        ((0, "date"), "2026-1-1", False, "malformed"),
        ((0, "sha256"), "ab", False, "its hash is another"),
        ((0, "more"), 1, False, "must have audit, date and sha256"),
        ((0, "audit", "claim_plan"), None, True, "audit 1: is of another claim: epsilon"),
    ],
)
def test_the_checker_looks_at_every_part(path: tuple[Any, ...], value: Any, rehashed: bool, says: str) -> None:
    data = changed(path, value, rehashed)
    if path[-1] == "claim_plan":
        data["audits"][0]["audit"]["claim"] = {"lower": 9.0, "upper": 9.0}
        data["audits"][0]["sha256"] = audit_digest(data["audits"][0]["audit"])
        data["hash"] = digest(data)
    verdict = pl.verify(data)
    assert not verdict.holds
    assert says in verdict.reason


def test_other_fields_are_still_refused() -> None:
    data = {**CERTIFICATE.data, "notes": []}
    assert "exactly the fields" in pl.verify({**data, "hash": digest(data)}).reason
    data = {**CERTIFICATE.data, "audits": {}}
    assert "must be a list" in pl.verify({**data, "hash": digest(data)}).reason
