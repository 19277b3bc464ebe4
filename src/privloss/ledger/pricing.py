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
from privloss.ledger.filters import INFINITE, SOME, Filter, order_of

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
        return _divergences(plan, budget)
    from privloss.ledger.gdp_price import mu_squared  # the engine, which other currencies ask through the plan

    return {"mu_squared": max(round_up(mu_squared(plan), BITS), Fraction(1, 2**BITS))}


def _share(budget: Filter) -> Fraction:
    """A hundredth of the budget's delta, as a double exactly."""
    return Fraction(float(budget.caps["delta"] / _SHARE))


def _up(name: str, value: float) -> Fraction:
    if not math.isfinite(value):
        raise Unsupported(f"plan: its {name} is infinite, so it has no price in this currency.")
    return max(round_up(Fraction(value), BITS), Fraction(1, 2**BITS))


def _divergences(plan: Plan, budget: Filter) -> dict[str, Fraction]:
    """At every order of the budget; where one order is enough, an infinite divergence at others is recorded as such."""
    found = plan.rdp([order_of(name) for name in budget.caps]).upper
    each = dict(zip(budget.caps, found, strict=True))
    if budget.rule == SOME and any(value < math.inf for name, value in each.items() if budget.caps[name] > 0):
        return {name: _up(name, value) if value < math.inf else INFINITE for name, value in each.items()}
    return {name: _up(f"Renyi divergence of {name}", value) for name, value in each.items()}
