"""Audits that a certificate carries: each must be of what is certified. The proof itself does not depend on them.

`audits` is a list of objects with the day, the SHA-256 of the audit's canonical JSON, and the audit. An audit of a plan
must be of this plan under this adjacency. An audit of a pair (epsilon, delta) must be of the claim's upper end, which
people round up: at most a thousandth above it, and the other number exactly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from flint import arb

from privloss.certificates.balls import Rejected, exact, need

ROUNDED = arb(1001) / 1000  # how far above the claim's upper end an audited claim may lie
VERDICTS = ("refuted", "not refuted", "blind")


def digest(audit: dict[str, Any]) -> str:
    """SHA-256 of an audit's JSON with sorted keys and no spaces."""
    return hashlib.sha256(
        json.dumps(audit, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    ).hexdigest()


def check_audits(data: dict[str, Any]) -> None:
    """Raise `Rejected` if an audit is not of what is certified, or is not the one that was attached."""
    audits = data.get("audits", [])
    need(isinstance(audits, list), "audits must be a list")
    for number, found in enumerate(audits, start=1):
        try:
            _check(found, data)
        except Rejected as problem:
            raise Rejected(f"audit {number}: {problem}") from None


def _check(found: Any, data: dict[str, Any]) -> None:
    need(isinstance(found, dict) and set(found) == {"audit", "date", "sha256"}, "must have audit, date and sha256")
    audit = found["audit"]
    need(found["sha256"] == digest(audit), "is not the one that was attached: its hash is another")
    need(date.fromisoformat(found["date"]).isoformat() == found["date"], f"date = {found['date']!r} must be a day")
    verdict, p = audit["verdict"], audit["p_value"]
    need(verdict in VERDICTS, f"verdict = {verdict!r} must be one of {', '.join(VERDICTS)}")
    need(p is None or (p <= audit["alpha"]) == (verdict == "refuted"), "its p-value contradicts its verdict")
    if audit["claim_plan"] is not None:
        need(_bare(audit["claim_plan"]) == _bare(data["plan"]), "is of another plan")
        said = audit["claim_plan"].get("adjacency", "add-remove")
        need(said == data["adjacency"], f"is of the plan under {said}, not under {data['adjacency']}")
        return
    claimed = {"epsilon": _number(audit["claim"]["upper"]), "delta": _number(audit["claim_delta"])}
    for name, number in claimed.items():
        of = data["claim"][name]
        if isinstance(of, dict):
            upper = exact(of["upper"])
            fits = bool(number >= upper) and bool(number <= upper * ROUNDED)
        else:
            fits = float(of) == float(number)
        need(fits, f"is of another claim: {name} = {float(number)!r}")


def _number(value: Any) -> arb:
    need(isinstance(value, (int, float)) and not isinstance(value, bool), f"{value!r} must be a number")
    return arb(value)


def _bare(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan without its adjacency, which is compared by itself, and its version."""
    return {name: value for name, value in plan.items() if name not in ("adjacency", "version")}


def attached(data: dict[str, Any], audit: Mapping[str, Any], day: str | None) -> dict[str, Any]:
    """A certificate's object with one audit more (`day`: when it was made; today, UTC); not yet hashed anew."""
    made = json.loads(json.dumps(dict(audit), allow_nan=False))
    when = datetime.now(UTC).date().isoformat() if day is None else day
    found = {**data, "audits": [*data.get("audits", []), {"audit": made, "date": when, "sha256": digest(made)}]}
    try:
        check_audits(found)
    except (KeyError, ValueError, TypeError, AttributeError) as problem:
        raise Rejected(f"it is no audit of a claim ({type(problem).__name__}: {problem})") from None
    return found


def listed(data: dict[str, Any]) -> list[dict[str, Any]]:
    """What a reader wants to know of each audit."""
    told = ("verdict", "epsilon", "delta", "alpha", "p_value", "claim", "claim_delta", "claim_text", "method")
    return [
        {"sha256": each["sha256"], "date": each["date"], **{name: each["audit"].get(name) for name in told}}
        for each in data.get("audits", [])
    ]
