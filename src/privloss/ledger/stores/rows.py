"""Rows of the tables, and what they stand for; how an event is written, and linked to the one before it."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

from privloss.ledger.filters import Filter
from privloss.ledger.state import Account, Analysis, Balance, Charges, charges_from_json, charges_to_json

GENESIS = "0" * 64
ACCOUNT = "SELECT name, adjacency, unit, frozen, settings, seq, head FROM dataset"
BALANCE = "SELECT dataset, owner, component, cap, committed, reserved, total_units, cap_units FROM balance"
ANALYSIS = "SELECT key, request, analyst, state, lease, charges, held_on, run FROM analysis"
Row = tuple[Any, ...]


QUOTED = json.encoder.encode_basestring_ascii
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(data: Any) -> str:
    return _ENCODER.encode(data)


def _texts(parts: Mapping[str, str]) -> str:
    """`canonical` of texts by name, without its ceremony."""
    return "{" + ",".join([f"{QUOTED(name)}:{QUOTED(parts[name])}" for name in sorted(parts)]) + "}"


def charges_text(charges: Charges) -> str:
    """`canonical(charges_to_json(charges))`."""
    found = [f"{QUOTED(name)}:{_texts(parts)}" for name, parts in sorted(charges_to_json(charges).items())]
    return "{" + ",".join(found) + "}"


def _on_text(on: Mapping[str, Sequence[str]]) -> str:
    """`canonical(on)`."""
    found = [f"{QUOTED(name)}:[{','.join(map(QUOTED, on[name]))}]" for name in sorted(on)]
    return "{" + ",".join(found) + "}"


def chain(previous: str, body: str) -> str:
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def marks(values: Collection[Any]) -> str:
    """Places for so many parameters."""
    return ", ".join("?" * len(values))


def account_row(account: Account) -> Row:
    """Name, adjacency, unit, frozen and settings."""
    settings: dict[str, Any] = {
        "budget": None if account.filter is None else account.filter.to_dict(),
        "quotas": {who: quota.to_dict() for who, quota in account.quotas.items()},
        "every": account.every,
        "recurring": None if account.recurring is None else account.recurring.to_dict(),
        "group": account.group,
        "parent": account.parent,
        "blocks": account.blocks,
        "used": account.used,
        "audits": account.audits,
    }
    kept = {name: value for name, value in settings.items() if value}
    return account.name, account.adjacency, account.unit, int(account.frozen), canonical(kept)


def account_from(row: Sequence[Any]) -> Account:
    name, adjacency, unit, frozen, settings = row[:5]
    given, budget, recurring, quotas = _settings(settings)
    found = Account(name, adjacency, unit, frozen=bool(frozen), filter=budget, recurring=recurring, quotas=dict(quotas))
    for part in ("group", "parent", "blocks", "used", "every", "audits"):
        if part in given:
            setattr(found, part, given[part])
    return found


@functools.lru_cache(maxsize=4096)
def _settings(text: str) -> tuple[dict[str, Any], Filter | None, Filter | None, dict[str, Filter]]:
    """Settings and the filters in them, which are the same at every command."""
    given = json.loads(text)
    budget = Filter.from_dict(given["budget"]) if "budget" in given else None
    recurring = Filter.from_dict(given["recurring"]) if "recurring" in given else None
    if recurring is not None and budget is not None:
        recurring = recurring.each_period(budget, bool(given.get("group")))
    quotas = {who: Filter.from_dict(data) for who, data in given.get("quotas", {}).items()}
    return given, budget, recurring, {who: q if budget is None else q.beneath(budget) for who, q in quotas.items()}


def balance_row(place: tuple[str, str, str], balance: Balance) -> Row:
    return (*place, *balance.row(place[2]))


def balance_from(row: Sequence[Any]) -> Balance:
    cap, committed, reserved = row[3:6]
    return Balance(None if cap is None else _fraction(cap), _fraction(committed), _fraction(reserved))


def analysis_row(found: Analysis) -> Row:
    charges, on = charges_text(found.charges), _on_text(found.on)
    return found.key, found.request, found.analyst, found.state, found.lease, charges, on, found.run


def analysis_from(row: Sequence[Any]) -> Analysis:
    key, request, analyst, state, lease, charges, on, run = row
    amounts = charges_from_json(json.loads(charges))
    return Analysis(key, request, analyst, state, float(lease), amounts, json.loads(on), run)


def _fraction(text: str) -> Fraction:
    top, _, bottom = text.partition("/")
    return Fraction(int(top), int(bottom))
