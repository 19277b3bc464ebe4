"""What a plan costs in a currency: computed exactly inside the plan, rounded up once.

Everything inside one plan is fixed before it runs, so its own composition may be exact; the result is then charged to
the filter in the filter's currency.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privloss.errors import Unsupported
from privloss.ledger.amounts import BITS, DELTA_BITS, cost, down, round_up
from privloss.ledger.filters import Filter

if TYPE_CHECKING:
    from privloss.mechanisms.base import Plan

_SHARE = 100  # of a budget's delta that a plan is priced at, unless said otherwise


def price(plan: Plan, budget: Filter, delta: Any = None) -> dict[str, Fraction]:
    """The components a plan is charged; refused where it has no finite price."""
    if budget.currency == "pure":
        return {"epsilon": _up("pure epsilon", plan.epsilon(0.0).upper)}
    if budget.currency == "approx":
        chance = cost("plan-delta", delta, DELTA_BITS) if delta is not None else _share(budget)
        size = _up("epsilon", plan.epsilon(down(chance)).upper)  # epsilon falls with delta
        return {**({"epsilon": size} if budget.rule == "basic" else {"epsilon_squared": size * size}), "delta": chance}
    if budget.currency == "zcdp":
        return {"rho": _up("rho", plan.zcdp().upper)}
    if budget.currency == "rdp":
        orders = {name: float(name.split()[1]) for name in budget.caps}
        return {name: _up(f"Renyi divergence of {name}", plan.rdp(a).upper) for name, a in orders.items()}
    return {"mu_squared": _mu_squared(plan)}


def _share(budget: Filter) -> Fraction:
    """A hundredth of the budget's delta, as a double exactly."""
    return Fraction(float(budget.caps["delta"] / _SHARE))


def _up(name: str, value: float) -> Fraction:
    if not math.isfinite(value):
        raise Unsupported(f"plan: its {name} is infinite, so it has no price in this currency.")
    return max(round_up(Fraction(value), BITS), Fraction(1, 2**BITS))


def _mu_squared(plan: Plan) -> Fraction:
    """mu^2 adds up over Gaussian and GDP steps; nothing else is priced in GDP."""
    total = Fraction(0)
    for mechanism, times in plan.steps:
        own = mechanism.mu_squared(plan.adjacency)
        if own is None:
            raise Unsupported(
                f"plan: {mechanism!r} has no price in GDP; Gaussian and gdp steps have, without sampling."
            )
        total += times * own
    return max(round_up(total, BITS), Fraction(1, 2**BITS))
