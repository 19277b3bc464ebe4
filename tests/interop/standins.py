"""Stand-ins for other packages, as small as the adapters allow; a test compares their signatures with the recorded."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any, NamedTuple

# -- diffprivlib -------------------------------------------------------------------------------------------------------


class Budget(NamedTuple):
    epsilon: float
    delta: float


class BudgetAccountant:
    """Keeps spends; its own totals are sums."""

    def __init__(self, epsilon=float("inf"), delta=1.0, slack=0.0, spent_budget=None):  # type: ignore[no-untyped-def]
        self._ceiling, self._spent, self._slack = Budget(epsilon, delta), [], slack  # type: ignore[var-annotated]
        for spend in spent_budget or ():
            self.spend(*spend)

    @property
    def slack(self) -> float:
        return float(self._slack)

    @property
    def spent_budget(self) -> list[tuple[float, float]]:
        return list(self._spent)

    @property
    def epsilon(self) -> float:
        return float(self._ceiling.epsilon)

    @property
    def delta(self) -> float:
        return float(self._ceiling.delta)

    def total(self, spent_budget=None, slack=None):  # type: ignore[no-untyped-def]
        spent = self._spent if spent_budget is None else spent_budget
        if any(e < 0 for e, _ in spent):
            raise ValueError("Epsilon must be non-negative")
        return Budget(sum(e for e, _ in spent), sum(d for _, d in spent))

    def check(self, epsilon, delta):  # type: ignore[no-untyped-def]
        found = self.total(spent_budget=[*self._spent, (epsilon, delta)])
        if found[0] > self.epsilon or found[1] > self.delta:
            raise ValueError("exceeds remaining privacy budget")
        return True

    def remaining(self, k=1):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    def spend(self, epsilon, delta):  # type: ignore[no-untyped-def]
        self.check(epsilon, delta)
        self._spent.append((epsilon, delta))
        return self


def diffprivlib() -> dict[str, Any]:
    """Its modules, as far as the adapter imports them."""
    accountant = types.SimpleNamespace(BudgetAccountant=BudgetAccountant)
    utils = types.SimpleNamespace(Budget=Budget)
    whole = types.SimpleNamespace(accountant=accountant, utils=utils)
    return {"diffprivlib": whole, "diffprivlib.accountant": accountant, "diffprivlib.utils": utils}


# -- OpenDP ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """A metric, a measure, and what the map returns."""

    metric: str
    measure: str
    found: Any

    @property
    def input_metric(self) -> str:
        return self.metric

    @property
    def output_measure(self) -> str:
        return self.measure

    def map(self, d_in):  # type: ignore[no-untyped-def]
        return self.found(d_in)


class PrivacyProfile:
    """Of randomised response with epsilon 1 and a disclosure of 1e-7."""

    def delta(self, epsilon):  # type: ignore[no-untyped-def]
        return 1e-7 if epsilon >= 1 else 0.47

    def epsilon(self, delta):  # type: ignore[no-untyped-def]
        return 1.0 if delta >= 1e-7 else float("inf")
