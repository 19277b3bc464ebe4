"""What is said of a ledger's amounts and events to people, on the command line and on pages: amounts rounded to the
safe side, one row of texts for each event, and the same rows for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from privloss.audit.record import line
from privloss.ledger.views import order, signed

_DIGITS = 6
_SMALL = -5  # the exponent from which on amounts are written like 1.5e-6
COLUMNS = (
    "seq", "at", "kind", "key", "analyst", "charged", "detail", "plan", "label", "labels", "actor", "reason",
)  # fmt: skip
_LONGEST_PLAN = 60
_FORMULAS = "=+-@\t\r"  # a spreadsheet would run a cell that begins so


# -- amounts -----------------------------------------------------------------------------------------------------------


def rough(amount: str, up: bool) -> str:
    """Six significant digits, never below an amount that is spent (`up`), never above one that is left.

    >>> rough("1/11", up=True), rough("1/11", up=False), rough("0.5", up=True), rough("-2/3", up=False)
    ('0.0909091', '0.090909', '0.5', '-0.666667')
    >>> rough("1e-9", up=True), rough("0.00000099999999", up=True), rough("123456789/2", up=False)
    ('1e-9', '1e-6', '61728394')
    """
    value = Fraction(amount)
    if value == 0:
        return "0"
    scale = Fraction(10) ** max(_DIGITS - 1 - _exponent(value), 0)
    whole = -(-value * scale // 1) if up else value * scale // 1
    rounded = whole / scale
    exponent = _exponent(rounded)
    if exponent > _SMALL:
        return signed(rounded)
    return f"{signed(rounded / Fraction(10) ** exponent)}e{exponent}"


def _exponent(value: Fraction) -> int:
    """Of ten: 10^e <= |value| < 10^(e+1)."""
    found = len(str(abs(value.numerator))) - len(str(value.denominator))
    return found if abs(value) >= Fraction(10) ** found else found - 1


def rough_parts(parts: Any, up: bool) -> str:
    """An amount, or amounts by component, orders in order."""
    if not isinstance(parts, Mapping):
        return rough(parts, up)
    if len(parts) == 1:
        return rough(next(iter(parts.values())), up)
    return ", ".join(f"{part} {rough(parts[part], up)}" for part in sorted(parts, key=order)) or "nothing"


def rough_accounts(accounts: Any, up: bool) -> str:
    """The same of several accounts; one alone is not named."""
    if not isinstance(accounts, Mapping) or not all(isinstance(parts, Mapping) for parts in accounts.values()):
        return rough_parts(accounts, up)
    if len(accounts) == 1:
        return rough_parts(next(iter(accounts.values())), up)
    return "; ".join(f"{name} {rough_parts(parts, up)}" for name, parts in accounts.items())


# -- events ------------------------------------------------------------------------------------------------------------


def time_of(at: float) -> str:
    """Seconds since the epoch as people read them, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def event_row(event: Mapping[str, Any], name: str) -> dict[str, str]:
    """An event in the history of one account, as texts; amounts are rounded up."""
    charges = event.get("charges", {}).get(name)
    return {
        "seq": str(event["seq"]),
        "at": time_of(event["at"]),
        "kind": event["kind"],
        "key": event.get("key", ""),
        "analyst": event.get("analyst", ""),
        "charged": rough_parts(charges, up=True) if charges else "",
        "detail": _detail(event, name),
        "plan": plan_text(event["plan"]) if event.get("plan") else "",
        "label": event.get("label", ""),
        "labels": ", ".join(f"{label}={text}" for label, text in event.get("labels", {}).items()),
        "actor": event.get("actor", ""),
        "reason": event.get("reason", ""),
    }


def _detail(event: Mapping[str, Any], name: str) -> str:
    found: list[str] = []
    if event["kind"] == "refused":
        found.append(f"{event['asked']}: {event['why']}")
        if event.get("short"):
            found.append(f"short by {rough_parts(event['short'], up=True)}")
    elif "why" in event:
        found.append(event["why"])
    if "audit" in event:
        found.append(line(event["audit"]))
    if "adjacency" in event:
        found += [event["adjacency"], f"protects one {event['unit']}"]
        found += [f"{word} {event[part]}" for part, word in (("parent", "under"), ("blocks", "by")) if part in event]
    if "budget" in event:
        found.append(_budget(event["budget"]) + (f" every {event['every']}" if "every" in event else ""))
    if "frozen" in event:
        found.append("frozen" if event["frozen"] else "open")
    if "events" in event:
        found.append(f"{event['events']} events")
    blocks = [owner[1:] for owner in event.get("on", {}).get(name, []) if owner.startswith("#")]
    if blocks:
        found.append(blocks[0] if len(blocks) == 1 else f"{len(blocks)} blocks {blocks[0]} to {blocks[-1]}")
    return ", ".join(found)


def audits_text(attached: int = 0, refuted: int = 0) -> str:
    """How many audits there are, and loudly how many of them refute what was claimed."""
    if not refuted:
        return str(attached or "")
    return f"{refuted} REFUTED" if refuted == attached else f"{refuted} REFUTED of {attached}"


def _budget(budget: Mapping[str, Any]) -> str:
    rule = f" {budget['filter']}" if budget["filter"] != "basic" else ""
    text = f"{budget['currency']}{rule} {rough(budget['cap'], up=False)}"
    return text if budget["delta"] is None else f"{text}, delta {rough(budget['delta'], up=True)}"


def plan_text(plan: Mapping[str, Any]) -> str:
    """A plan in a few words.

    >>> step = {"mechanism": "gaussian", "noise_multiplier": 20.0, "count": 4}
    >>> plan_text({"steps": [step, {**step, "sampling": {"scheme": "poisson", "rate": 0.01}}]})
    '4 x gaussian(20) + 4 x gaussian(20) on poisson(0.01)'
    """
    found = []
    for step in plan.get("steps", []):
        count, sampling = step.get("count", 1), step.get("sampling")
        text = _call(step["mechanism"], {k: v for k, v in step.items() if k not in ("mechanism", "count", "sampling")})
        if sampling:
            text += " on " + _call(sampling["scheme"], {k: v for k, v in sampling.items() if k != "scheme"})
        found.append(text if count == 1 else f"{count} x {text}")
    text = " + ".join(found)
    return text if len(text) <= _LONGEST_PLAN else text[: _LONGEST_PLAN - 3] + "..."


def _call(name: str, parameters: Mapping[str, Any]) -> str:
    shown = [
        f"{v:g}" if isinstance(v, (int, float)) else str(v) if isinstance(v, str) else "..."
        for v in parameters.values()
    ]
    return f"{name}({', '.join(shown)})"


def as_csv(rows: Sequence[Mapping[str, str]], columns: Sequence[str], end: str = "\n") -> str:
    """With a header; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator=end)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([f"'{row[c]}" if row[c][:1] in _FORMULAS and row[c] else row[c] for c in columns])
    return held.getvalue().removesuffix(end)
