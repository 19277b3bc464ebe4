"""Events as sheets: CSV as RFC 4180 has it. Amounts are exact texts; a cell that a spreadsheet would run as a formula
begins with an apostrophe."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import IO, Any

from privloss.ledger.views import order
from privloss.service.calls import Answer

COLUMNS = (
    "dataset", "seq", "time", "kind", "key", "analyst", "charged", "why", "short", "plan", "label", "labels", "actor",
    "reason",
)  # fmt: skip
_FORMULAS = tuple("=+-@\t\r\n")
_IN_MEMORY = 2**20


def answer(rows: Iterable[tuple[str, Mapping[str, Any]]], name: str, headers: Mapping[str, str]) -> Answer:
    """A file to be kept, of events with the chain in which they stand."""
    held: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
    text = io.TextIOWrapper(held, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for chain, event in rows:
        writer.writerow(map(safe, _cells(chain, event)))
    text.detach()
    held.seek(0)
    kept = {"Content-Disposition": f'attachment; filename="{name}"', **headers}
    return Answer(held, media="text/csv; charset=utf-8", headers=kept)


def safe(cell: str) -> str:
    """What no spreadsheet takes for a formula.

    >>> safe("=HYPERLINK(0)"), safe("1/11")
    ("'=HYPERLINK(0)", '1/11')
    """
    return f"'{cell}" if cell.startswith(_FORMULAS) else cell


def _cells(chain: str, event: Mapping[str, Any]) -> list[str]:
    at = datetime.fromtimestamp(event["at"], UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    found = {**event, "dataset": chain, "time": at, "charged": _parts(event.get("charges", {}).get(chain, {}))}
    found["short"] = _parts(event.get("short") or {})
    for name in ("plan", "labels"):
        found[name] = json.dumps(event[name], sort_keys=True) if event.get(name) else ""
    return [str(found.get(column, "")) for column in COLUMNS]


def _parts(parts: Mapping[str, str]) -> str:
    return "; ".join(f"{part} {parts[part]}" for part in sorted(parts, key=order))
