"""diffprivlib's budget accountant with the least total that its spends allow.

    import diffprivlib as dp
    with PrivlossBudgetAccountant(epsilon=1.0, delta=1e-6, slack=1e-6):
        dp.tools.mean(x, epsilon=0.1, bounds=(0, 1))

Its own total is the best of three bounds; this one is the exact composition of the boxes that were spent, rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from privloss.errors import MissingExtra
from privloss.interop.events import NOTHING
from privloss.interop.rounded import rounded
from privloss.mechanisms.approx_dp import ApproxDP
from privloss.mechanisms.base import Plan

try:
    from diffprivlib.accountant import BudgetAccountant
    from diffprivlib.utils import Budget
except ImportError:
    raise MissingExtra("its budgets need diffprivlib: pip install 'privloss[diffprivlib]'.") from None


class PrivlossBudgetAccountant(BudgetAccountant):
    """A `BudgetAccountant`. With `slack`, epsilons must be fixed before the first answer is seen, as in any composition
    theorem better than a sum; to choose them as you go, use a ledger. Sums of doubles are exact and rounded up: ten
    spends of 0.1 are a little more than 1."""

    @property
    def plan(self) -> Plan:
        """What was spent, as black boxes."""
        return _plan(self.spent_budget)

    def total(self, spent_budget: Any = None, slack: float | None = None) -> Any:
        """The least epsilon at the delta that all spends and the slack add up to."""
        spent = self.spent_budget if spent_budget is None else spent_budget
        super().total(spent_budget=spent_budget, slack=slack)  # refuses what it refuses
        lost = [Fraction(d) for d in (*(d for _, d in spent), self.slack if slack is None else slack)]
        delta = _up(1 - math.prod((1 - d for d in lost if d), start=Fraction(1)))
        if any(epsilon == math.inf for epsilon, _ in spent):
            return Budget(math.inf, delta)
        # a box is nothing but randomised response with a disclosure of probability delta_i: all epsilons together at
        # 1 - prod (1 - delta_i), and with slack less
        summed = _up(sum((Fraction(epsilon) for epsilon, _ in spent), Fraction(0)))
        return Budget(min(summed, _plan(spent).epsilon(delta).upper), delta)


def _up(exact: Fraction) -> float:
    return rounded(float(exact), exact, up=True)


def _plan(spent: Any) -> Plan:
    return Plan.of(*((ApproxDP(float(e), float(d)), 1) for e, d in spent)) if spent else NOTHING.as_plan()
