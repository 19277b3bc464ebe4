"""One recorded question, asked again: an interval, a price, or a refusal with its text."""

from __future__ import annotations

import math
from typing import Any

import privloss as pl
from privloss.ledger.filters import Filter
from privloss.ledger.pricing import price

_BUDGETS = {
    "pure": ("pure", "10", None, None),
    "approx": ("approx", "10", "1e-4", "basic"),
    "advanced": ("approx", "10", "1e-4", "advanced"),
    "zcdp": ("zcdp", "1", None, None),
    "rdp": ("rdp", "10", "1e-6", None),
    "gdp": ("gdp", "1", None, None),
}


def made(record: dict[str, Any]) -> pl.Plan:
    """The plan of a record; a group of people sees another plan."""
    plan = pl.Plan.from_dict({k: v for k, v in record.items() if k in ("adjacency", "steps")})
    return pl.group.plan(plan, record["people"]) if "people" in record else plan


def answer(record: dict[str, Any], question: str) -> Any:
    """[lower, upper], {component: price}, or "ErrorName: text"."""
    name, _, at = question.partition(" ")
    try:
        plan = made(record)
        if name == "price":
            return {k: str(v) for k, v in price(plan, Filter.of(*_BUDGETS[at])).items()}
        found = getattr(plan, name)(*([float(at)] if at else []))
        return [_shown(found.lower), _shown(found.upper)]
    except pl.PrivlossError as problem:
        return f"{type(problem).__name__}: {problem}"


def _shown(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
