"""What answers look like, as JSON Schema, and which routes give them."""

from __future__ import annotations

from typing import Any

from privloss.ledger.refusals import Refusal

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"anyOf": [{"type": "number"}, {"enum": ["Infinity", "-Infinity"]}]}
_ANYTHING: Schema = {"type": "object"}


def _object(required: dict[str, Schema], **optional: Schema) -> Schema:
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def _map(of: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(of: Schema) -> Schema:
    return {"anyOf": [of, {"type": "null"}]}


# of the service's own; the ledger's refusals are reasons too
REASONS = (
    "busy", "failed", "host", "invalid", "lost-reply", "method", "not-json", "not-verified", "price-memory",
    "price-timeout", "rate", "role", "token", "too-deep", "too-large", "unknown-path", "unsupported",
)  # fmt: skip
_REASON: Schema = {"type": "string", "enum": sorted({*REASONS, *(each.code for each in Refusal)})}
_SIZES = _ref("Sizes")
_FACTS = {"sha256": _TEXT, "date": _TEXT, "verdict": _TEXT}
_RUN = _object(
    {"clean": {"type": ["boolean", "null"]}, "problems": {"type": "array", "items": _TEXT}, "at": _TEXT, "run": _COUNT},
    events=_COUNT, head=_TEXT, ends=_map({"type": "array"}), attached=_COUNT, refuted=_COUNT,
    seconds={"type": "number"}, kind=_TEXT,
)  # fmt: skip

SCHEMAS: dict[str, Schema] = {
    "Amount": {"type": "string", "description": 'Exact: a decimal or p/q, "1/11".', "pattern": "^-?[0-9./]+$"},
    "Parts": {**_map(_ref("Amount")), "description": "By component: epsilon, delta, rho, order 2, ..."},
    "Sizes": {"anyOf": [_ref("Amount"), _ref("Parts")], "description": "One component is shown as its amount."},
    "Accounts": {**_map(_ref("Parts")), "description": "By dataset or group."},
    "Approx": {"type": "object", "description": "The amounts beside it as doubles, for display only."},
    "Status": _object(
        {"dataset": _TEXT, "currency": _or_null(_TEXT), "adjacency": _TEXT, "unit": _TEXT, "frozen": _FLAG,
         "approx": _ref("Approx")},
        cap=_SIZES, committed=_SIZES, reserved=_SIZES, remaining=_SIZES, guarantee=_ANYTHING, group=_FLAG,
        parent=_TEXT, blocks=_TEXT, audits=_map(_COUNT), filter=_TEXT, period=_ANYTHING, spent=_ANYTHING,
        analysts=_ANYTHING,
    ),
    "Statuses": _object({"datasets": {"type": "array", "items": _ref("Status")}}),
    "Reservation": _object(
        {"key": _TEXT, "state": {"enum": ["RESERVED", "STARTED", "COMMITTED", "VOIDED"]}, "charged": _ref("Accounts"),
         "remaining": _ref("Accounts"), "approx": _ref("Approx")}
    ),
    "Quotes": _map(
        _object(
            {"charged": _ref("Parts"), "remaining": _ref("Parts"), "fits": _FLAG, "approx": _ref("Approx")},
            refused=_REASON, text=_TEXT,
        )
    ),
    "Event": _object({"seq": _COUNT, "kind": _TEXT}, at={"type": "number"}, key=_TEXT, actor=_TEXT, reason=_TEXT),
    "Page": _object(
        {"events": {"type": "array", "items": _ref("Event")},
         "next": {**_or_null(_COUNT), "description": "The `after` of the next page; null at the end."}}
    ),
    "Reading": _object({"epsilon": _NUMBER, "delta": _NUMBER, "theorem": _TEXT, "dominated": _FLAG}),
    "AuditFacts": _object(_FACTS),
    "Begun": _object({"running": _FLAG, "began": _TEXT, "joined": _FLAG, "process": _TEXT, "run": _COUNT}),
    "Verified": _object({"running": _FLAG, "process": _TEXT, "last": _or_null(_RUN)}),
    "Priced": _object({"charged": _ref("Parts"), "approx": _ref("Approx")}),
    "Explained": _ANYTHING,
    "Calibrated": _object({"factor": _NUMBER, "epsilon": _map(_NUMBER), "delta": _NUMBER, "plan": _ANYTHING}),
    "Compared": _object({"delta": _NUMBER, "bounds": {"type": "array", "items": _ANYTHING}}),
    "Certificate": {**_ANYTHING, "description": "`privloss verify` checks it without this service."},
    "Lines": {"type": "string", "description": "Canonical JSON lines: also a backup, for privloss ledger restore."},
    "Sheet": {"type": "string", "description": "CSV (RFC 4180) with a header."},
    "Live": _object({"live": _FLAG}),
    "Ready": _object({"ready": _FLAG}),
    "Problem": _object(
        {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "reason": _REASON, "text": _TEXT},
        detail=_TEXT, charged=_ref("Accounts"), remaining=_ref("Accounts"), shortfall=_ref("Parts"),
    ),
}  # fmt: skip

_D, _R = "/datasets/{dataset}", "/reservations/{key}"
_AS_IT_IS_NOW = (200, "As it is now.", "Status")
_KEY_NOW = (200, "Where the key stands.", "Reservation")
ANSWERS: dict[tuple[str, str], list[tuple[int, str, str]]] = {
    ("GET", "/datasets"): [(200, "All that the token may see.", "Statuses")],
    ("GET", _D): [_AS_IT_IS_NOW],
    ("PUT", _D): [_AS_IT_IS_NOW],
    ("PUT", f"{_D}/budget"): [_AS_IT_IS_NOW],
    ("PUT", f"{_D}/quotas/{{analyst}}"): [_AS_IT_IS_NOW],
    ("PUT", f"{_D}/frozen"): [_AS_IT_IS_NOW],
    ("POST", f"{_D}/audits"): [(200, "What stands in the history now.", "AuditFacts")],
    ("GET", f"{_D}/history"): [(200, "Oldest first.", "Page")],
    ("GET", f"{_D}/history.csv"): [(200, "A sheet, oldest first.", "Sheet")],
    ("GET", f"{_D}/refusals"): [(200, "Oldest first.", "Page")],
    ("GET", f"{_D}/odometer"): [(200, "What was lost so far.", "Reading")],
    ("PUT", _R): [(201, "Held now.", "Reservation"), (200, "The same request as before.", "Reservation")],
    ("GET", _R): [_KEY_NOW],
    ("POST", f"{_R}/start"): [_KEY_NOW],
    ("POST", f"{_R}/commit"): [_KEY_NOW],
    ("POST", f"{_R}/void"): [_KEY_NOW],
    ("POST", f"{_R}/audits"): [(200, "What stands in the history now.", "AuditFacts")],
    ("POST", "/quote"): [(200, "By dataset and group.", "Quotes")],
    ("POST", "/price"): [(200, "What it would be charged.", "Priced")],
    ("POST", "/answer"): [(200, "The answer with its reasons.", "Explained")],
    ("POST", "/calibrate"): [(200, "The least factor on all noise.", "Calibrated")],
    ("POST", "/compare"): [(200, "Every bound that applies.", "Compared")],
    ("POST", "/certify"): [(200, "A certificate.", "Certificate")],
    ("POST", "/verify"): [(202, "A run that has begun, or is running.", "Begun")],
    ("GET", "/verify"): [(200, "The last result.", "Verified")],
    ("GET", "/export"): [(200, "The whole history.", "Lines")],
    ("GET", "/export.csv"): [(200, "The whole history as a sheet.", "Sheet")],
}
