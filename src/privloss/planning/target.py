"""What a calibration aims at: (epsilon, delta), or a limit on an attacker's success.

>>> import privloss as pl
>>> target = Target.of(epsilon=1.0, delta=1e-6)
>>> target.excess(pl.Gaussian(3.0).as_plan()) > 0, target.excess(pl.Gaussian(5.0).as_plan()) <= 0
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privloss.answers import exact, tradeoff
from privloss.errors import InvalidInput
from privloss.mechanisms.base import Plan
from privloss.numerics import check
from privloss.numerics.bound import Bound

_FAR = 2_000.0  # logs beyond this all mean "far off"
_ROUGH, _SHORT = 1e-3, 1e7  # tolerance and work of a short look


@dataclass(frozen=True)
class Target:
    """Exactly one of: epsilon with delta; tpr at fpr; advantage (of a test with equal priors, the total variation)."""

    epsilon: float | None = None
    delta: float | None = None
    tpr: float | None = None
    fpr: float | None = None
    advantage: float | None = None
    adjacency: str | None = None

    @classmethod
    def of(cls, *, adjacency: str | None = None, **given: Any) -> Target:
        known = {name: value for name, value in given.items() if value is not None}
        kinds = [set(known) & {"epsilon", "delta"}, set(known) & {"tpr", "fpr"}, set(known) & {"advantage"}]
        if sum(bool(kind) for kind in kinds) != 1:
            raise InvalidInput(
                f"target = {known!r}: give epsilon and delta, or tpr and fpr, or advantage, and only one of these."
            )
        if kinds[0]:
            if len(kinds[0]) < 2:
                raise InvalidInput(f"target = {known!r}: epsilon and delta go together.")
            epsilon = check.number("epsilon", known["epsilon"], low=0)
            return cls(epsilon=epsilon, delta=check.number("delta", known["delta"], low=0, high=1), adjacency=adjacency)
        if kinds[1]:
            if len(kinds[1]) < 2:
                raise InvalidInput(f"target = {known!r}: tpr and fpr go together.")
            fpr = check.number("fpr", known["fpr"], low=0, high=1)
            tpr = check.number("tpr", known["tpr"], low=0, high=1)
            if tpr < fpr:
                raise InvalidInput(f"tpr = {tpr!r}: guessing alone reaches fpr = {fpr!r}; it must be at least that.")
            return cls(tpr=tpr, fpr=fpr, adjacency=adjacency)
        return cls(advantage=check.number("advantage", known["advantage"], low=0, high=1), adjacency=adjacency)

    def excess(self, plan: Plan, tolerance: float = 1e-10) -> float:
        """Falls as the plan gets more private, and is at most 0 only if the plan surely meets the target."""
        if self.delta is not None and self.epsilon is not None:
            if self.delta > 0:
                found = exact.one_delta(plan, self.epsilon, adjacency=self.adjacency, tolerance=tolerance)
                gap = _log(found.upper) - math.log(self.delta)
                return gap if found.upper <= self.delta else max(gap, 1e-300)  # logs round, the comparison does not
            found = exact.one_epsilon(plan, 0.0, adjacency=self.adjacency, tolerance=tolerance)
            return min(found.upper, 1e300) - self.epsilon
        if self.advantage is not None:
            found = tradeoff.total_variation(plan, adjacency=self.adjacency)
            return found.upper - self.advantage
        reached = 1 - tradeoff.one_tradeoff(plan, self.fpr, adjacency=self.adjacency).lower
        return reached * (1 + 4e-16) - (self.tpr or 0.0)

    def glimpse(self, plan: Plan) -> float | None:
        """`excess` by a short look, right in sign; None if that does not tell. Far from the target, where a search for
        it begins, sharp answers may be dear."""
        if not self.delta or self.epsilon is None:
            return None
        found = exact.one_delta(plan, self.epsilon, adjacency=self.adjacency, tolerance=_ROUGH, work=_SHORT)
        if found.lower > self.delta:
            return max(_log(found.lower) - math.log(self.delta), 1e-300)
        return min(_log(found.upper) - math.log(self.delta), 0.0) if found.upper <= self.delta else None

    def achieved(self, plan: Plan) -> Bound:
        """Epsilon at the target's delta, or the attacker's success."""
        if self.delta is not None:
            return exact.one_epsilon(plan, self.delta, adjacency=self.adjacency)
        if self.advantage is not None:
            return tradeoff.total_variation(plan, adjacency=self.adjacency)
        missed = tradeoff.one_tradeoff(plan, self.fpr, adjacency=self.adjacency)
        return Bound(1 - missed.upper, 1 - missed.lower, missed.method, missed.notes)

    def met_by(self, achieved: Bound) -> bool:
        """Whether the upper end of `achieved` keeps the promise."""
        limit = self.epsilon if self.delta is not None else self.advantage if self.advantage is not None else self.tpr
        return limit is not None and achieved.upper <= limit

    def describe(self) -> str:
        if self.delta is not None:
            return f"epsilon <= {self.epsilon:g} at delta = {self.delta:g}"
        if self.advantage is not None:
            return f"advantage <= {self.advantage:g}"
        return f"tpr <= {self.tpr:g} at fpr = {self.fpr:g}"


def _log(value: float) -> float:
    return max(math.log(value), -_FAR) if value > 0 else -_FAR
