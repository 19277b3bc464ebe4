"""What runs in workers: everything whose cost a stranger's plan decides. Arguments and results are plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_MOST_STEPS = 1000


def _plan(body: Mapping[str, Any]) -> Any:
    from privloss.errors import InvalidPlan
    from privloss.mechanisms.base import Plan

    steps = body.get("steps")
    if isinstance(steps, list) and len(steps) > _MOST_STEPS:
        raise InvalidPlan(f"steps: at most {_MOST_STEPS} kinds of step.")
    return Plan.from_dict(dict(body))


def describe(body: dict[str, Any]) -> dict[str, Any]:
    """A plan as its canonical file, and its adjacency."""
    plan = _plan(body)
    return {"body": plan.to_dict(), "adjacency": plan.adjacency}


def price(body: dict[str, Any], budget: dict[str, Any], delta: str | None) -> dict[str, str]:
    """What a plan costs in a budget's currency, by component, as exact texts."""
    from privloss.ledger.amounts import show
    from privloss.ledger.filters import Filter
    from privloss.ledger.pricing import price as priced

    return {part: show(x) for part, x in priced(_plan(body), Filter.from_dict(budget), delta).items()}


def answer(body: dict[str, Any], delta: float | None, epsilon: float | None, adjacency: str | None) -> dict[str, Any]:
    """Epsilon or delta, with its reasons."""
    from privloss.answers.explain import explain

    return _plain(explain(_plan(body), delta=delta, epsilon=epsilon, adjacency=adjacency).to_dict())


def compare(body: dict[str, Any], delta: float, adjacency: str | None, noise: bool) -> dict[str, Any]:
    """Every bound that applies."""
    from privloss.theorems.compare import compare as compared

    rows = compared(_plan(body), delta, adjacency=adjacency, noise=noise)
    return _plain({"delta": delta, "bounds": [dict(vars(row)) for row in rows]})


def calibrate(body: dict[str, Any], epsilon: float, delta: float, adjacency: str | None) -> dict[str, Any]:
    """The least factor on all noise that meets a target."""
    from privloss.planning.calibrate import calibrate as calibrated
    from privloss.theorems.compare import with_noise

    plan = _plan(body)
    found = calibrated(lambda factor: with_noise(plan, factor), epsilon=epsilon, delta=delta, adjacency=adjacency)
    achieved = {"lower": found.achieved.lower, "upper": found.achieved.upper}
    return _plain({"factor": found.value, "epsilon": achieved, "delta": delta, "plan": found.plan.to_dict()})


def certify(body: dict[str, Any], delta: float | None, epsilon: float | None, adjacency: str | None) -> dict[str, Any]:
    """A certificate."""
    from privloss.certificates.certificate import certify as certified

    at = {name: value for name, value in (("delta", delta), ("epsilon", epsilon)) if value is not None}
    return dict(certified(_plan(body), adjacency=adjacency, **at).data)


def warm() -> int:
    """Load what a first price needs, so that nobody waits for it."""
    from privloss.ledger.filters import Filter

    plan = {"steps": [{"mechanism": "gaussian", "noise_multiplier": 2.0, "count": 2}]}
    budgets = [Filter.of(currency, "1", "1e-6").to_dict() for currency in ("zcdp", "approx")]
    return sum(len(price(plan, budget, None)) for budget in budgets)


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    return {name: _finite(each) for name, each in value.items()}


def _finite(value: Any) -> Any:
    """JSON has no infinity: the text stands for it."""
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return value
