"""An audit as evidence: its canonical JSON, the hash of that, and the few facts that are kept beside it.

Nothing here loads NumPy: a ledger keeps such facts, and the command line reads audits from files.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Protocol

from privloss.errors import InvalidInput

REFUTED, NOT_REFUTED, BLIND = "refuted", "not refuted", "blind"
VERDICTS = (REFUTED, NOT_REFUTED, BLIND, None)  # None: nothing was claimed


class Written(Protocol):
    """What an audit can do."""

    def to_json(self) -> dict[str, Any]: ...


def canonical(data: Any) -> str:
    """JSON with sorted keys and no spaces."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(data: Mapping[str, Any]) -> str:
    """SHA-256 of an audit's canonical JSON."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def read_audit(audit: Written | Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object of an audit, as `to_json` made it, or as a file holds it."""
    given = audit if isinstance(audit, Mapping) or not hasattr(audit, "to_json") else audit.to_json()
    if not isinstance(given, Mapping) or given.get("audit_version") != 1:
        raise InvalidInput(
            "audit: must be a result of pl.audit, or the object that `privloss audit ... --json` prints."
        )
    try:
        data = json.loads(canonical(dict(given)))
    except (TypeError, ValueError) as bad:
        raise InvalidInput(f"audit: is no JSON object ({bad}).") from None
    problem = flaw(facts(data, "2000-01-01"))
    if problem:
        raise InvalidInput(f"audit: {problem}.")
    return dict(data)


def facts(audit: Mapping[str, Any], day: str) -> dict[str, Any]:
    """What is kept of an audit beside its hash."""
    claim = audit.get("claim")
    told = {name: audit.get(name) for name in FACTS if name not in ("sha256", "date", "claim")}
    upper = claim.get("upper") if isinstance(claim, Mapping) else claim
    return {"sha256": digest(audit), "date": day, "claim": upper, **told}


def flaw(found: Any) -> str:
    """What is wrong with the facts of an audit; empty if nothing is."""
    if not isinstance(found, Mapping) or set(found) != set(FACTS):
        return f"its facts must be {', '.join(FACTS)}"
    for name, (fits, rule) in _RULES.items():
        if not fits(found[name]):
            return f"{name} = {found[name]!r} must be {rule}"
    verdict, p = found["verdict"], found["p_value"]
    if (verdict is None) != (found["claim"] is None):
        return "a verdict needs a claim, and a claim a verdict"
    if p is not None and verdict is not None and (p <= found["alpha"]) != (verdict == REFUTED):
        return f"p = {p!r} and alpha = {found['alpha']!r} contradict the verdict {verdict!r}"
    return ""


def day_of(value: Any) -> str:
    """A day as it is written: today's (UTC) if none is given."""
    if value is None:
        return datetime.now(UTC).date().isoformat()
    text = value.isoformat() if type(value) is date else value
    if not _is_day(text):
        raise InvalidInput(f"date = {value!r}: must be a day like 2026-11-18.")
    return str(text)


def _is_day(value: Any) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


_Rule = tuple[Callable[[Any], bool], str]
_NUMBER: _Rule = (_is_number, "a number from 0")
_PERHAPS: _Rule = (lambda value: value is None or _is_number(value), "a number from 0, or null")
_RULES: dict[str, _Rule] = {
    "sha256": (_is_hash, "64 hexadecimal digits"),
    "date": (_is_day, "a day like 2026-11-18"),
    "verdict": (lambda value: value in VERDICTS, "refuted, not refuted, blind or null"),
    "epsilon": _NUMBER,
    "delta": _NUMBER,
    "alpha": _NUMBER,
    "p_value": _PERHAPS,
    "claim": (lambda value: value in (None, "Infinity") or _is_number(value), "a number from 0, Infinity or null"),
    "claim_delta": _PERHAPS,
    "claim_text": (lambda value: isinstance(value, str), "a text"),
}
FACTS = tuple(_RULES)


def line(found: Mapping[str, Any]) -> str:
    """The facts in one line; a refuted claim in capitals.

    >>> line({"verdict": "refuted", "date": "2026-11-18", "epsilon": 3.29, "delta": 1e-05, "claim": 1.0,
    ...       "claim_delta": 1e-05, "p_value": 0.013, "sha256": "ab" * 32})
    'REFUTED: claim 1 at delta 1e-05, p 0.013; epsilon >= 3.290 at delta 1e-05; 2026-11-18, sha256 abababababab...'
    """
    verdict = found["verdict"]
    said = "no claim" if verdict is None else f"{verdict.upper() if verdict == REFUTED else verdict}: claim"
    if verdict is not None:
        said += f" {_shown(found['claim'])}" + (
            "" if found["claim_delta"] is None else f" at delta {found['claim_delta']:g}"
        )
        said += "" if found["p_value"] is None else f", p {found['p_value']:.2g}"
    bound = f"epsilon >= {rounded_down(found['epsilon'])} at delta {found['delta']:g}"
    return f"{said}; {bound}; {found['date']}, sha256 {found['sha256'][:12]}..."


def _shown(claim: Any) -> str:
    return f"{claim:.6g}" if isinstance(claim, (int, float)) else str(claim)


def rounded_down(value: float) -> str:
    """Four significant digits, rounded down."""
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.floor(value / unit * (1 + 1e-15)) * unit:.{max(0, 3 - math.floor(math.log10(value)))}f}"
