"""diffprivlib's budget accountant with the least total that its spends allow.

    import diffprivlib as dp
    with PrivlossBudgetAccountant(epsilon=1.0, delta=1e-6, slack=1e-6):
        dp.tools.mean(x, epsilon=0.1, bounds=(0, 1))

Its own total is the best of three bounds; this one is the exact composition of the boxes that were spent, rounded up.
"""

from __future__ import annotations

import math
from typing import Any

from privloss.errors import MissingExtra
from privloss.interop.events import NOTHING
from privloss.mechanisms.approx_dp import ApproxDP
from privloss.mechanisms.base import Plan
from privloss.numerics.floats import raised

try:
    from diffprivlib.accountant import BudgetAccountant
    from diffprivlib.utils import Budget
except ImportError:
    raise MissingExtra("its budgets need diffprivlib: pip install diffprivlib.") from None


class PrivlossBudgetAccountant(BudgetAccountant):
    """A `BudgetAccountant`. With `slack`, epsilons must be fixed before the first answer is seen, as in any composition
    theorem better than a sum; to choose them as you go, use a ledger."""

    @property
    def plan(self) -> Plan:
        """What was spent, as black boxes."""
        return _plan(self.spent_budget)

    def total(self, spent_budget: Any = None, slack: float | None = None) -> Any:
        """The least epsilon at the delta that all spends and the slack add up to."""
        spent = self.spent_budget if spent_budget is None else spent_budget
        delta = super().total(spent_budget=spent_budget, slack=slack)[1]
        delta = min(raised(float(delta), 4 * len(spent) + 8), 1.0)  # three roundings for every spend, all positive
        if any(epsilon == math.inf for epsilon, _ in spent):
            return Budget(math.inf, delta)
        return Budget(_plan(spent).epsilon(delta).upper, delta)


def _plan(spent: Any) -> Plan:
    return Plan.of(*((ApproxDP(float(e), float(d)), 1) for e, d in spent)) if spent else NOTHING.as_plan()
