"""What ``privloss ledger`` says to people: amounts rounded to the safe side, tables, and one line for each event."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

_DIGITS = 6
_SMALL = -5  # the exponent from which on amounts are written like 1.5e-6
_UP = ("charged", "committed", "reserved", "spent", "shortfall", "guarantee")
_DOWN = ("cap", "remaining")
COLUMNS = (
    "seq", "at", "kind", "key", "analyst", "charged", "detail", "plan", "label", "labels", "actor", "reason",
)  # fmt: skip
_LONGEST_PLAN = 60
_FORMULAS = "=+-@\t"  # a spreadsheet would run a cell that begins so


# -- amounts -----------------------------------------------------------------------------------------------------------


def rough(amount: str, up: bool) -> str:
    """Six significant digits, never below an amount that is spent (`up`), never above one that is left.

    >>> rough("1/11", up=True), rough("1/11", up=False), rough("0.5", up=True), rough("-2/3", up=False)
    ('0.0909091', '0.090909', '0.5', '-0.666667')
    >>> rough("1e-9", up=True), rough("0.00000099999999", up=True), rough("123456789/2", up=False)
    ('1e-9', '1e-6', '61728394')
    """
    from privloss.ledger.views import signed

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
    from privloss.ledger.views import order

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


def outline(data: Mapping[str, Any], indent: int = 0, up: bool | None = None) -> list[str]:
    """A status: one line for each name, what holds more beneath it."""
    width = max((len(str(name)) for name in data), default=0)
    found = []
    for name, value in data.items():
        towards = True if name in _UP else False if name in _DOWN else up
        start = f"{'':{indent}}{name:<{width}}"
        if isinstance(value, Mapping) and any(isinstance(each, Mapping) for each in value.values()):
            found += [start.rstrip(), *outline(value, indent + 2, towards)]
        elif isinstance(value, Mapping):
            found.append(f"{start}  {', '.join(f'{k} {_leaf(k, v, towards)}' for k, v in value.items())}".rstrip())
        else:
            found.append(f"{start}  {_leaf(name, value, towards)}")
    return found


def _leaf(name: str, value: Any, up: bool | None) -> str:
    towards = True if name in _UP else False if name in _DOWN else up
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return str(value) if towards is None else rough(value, towards)


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
        from privloss.audit.record import line

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


# -- tables ------------------------------------------------------------------------------------------------------------


def table(rows: Sequence[Mapping[str, str]], columns: Sequence[str], right: str = "") -> str:
    """Columns that say something, under their names; `right` is set to the right."""
    used = [column for column in columns if any(row[column] for row in rows)]
    widths = {column: max(len(column), *(len(row[column]) for row in rows)) for column in used}
    lines = []
    for row in [{column: column for column in used}, *rows]:
        cells = (row[c].rjust(max(widths[c], 6)) if c == right else row[c].ljust(widths[c]) for c in used)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def show_table(rows: Sequence[Mapping[str, str]], columns: Sequence[str], right: str = "") -> None:
    """A table that fits a terminal; lines as long as they are for a file or a pipe."""
    if not _on_terminal():
        print(table(rows, columns, right) if rows else "nothing")
        return
    from rich.table import Table
    from rich.text import Text

    from privloss.cli.arguments import print_table

    used = [column for column in columns if any(row[column] for row in rows)]
    made = Table(box=None, padding=(0, 2, 0, 0))
    for column in used:
        made.add_column(column, justify="right" if column == right else "left", no_wrap=column in ("at", "seq"))
    for row in rows:
        loud = any("REFUTED" in row.get(column, "") for column in ("detail", "audits"))
        style = "bold red" if loud else "red" if row.get("kind") == "refused" else ""
        made.add_row(*(Text(row[column]) for column in used), style=style)
    print_table(made)


def as_csv(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> str:
    """With a header; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([f"'{row[c]}" if row[c][:1] in _FORMULAS and row[c] else row[c] for c in columns])
    return held.getvalue().rstrip("\n")
