"""What is claimed: a plan, an (epsilon, delta) or a pure epsilon, as a bound on every test.

A claim is known by finitely many points (e_k, d_k) of its privacy profile, d_k rounded up. A test with false positive
rate x then has a true positive rate of at most

    F_K(x) = min(1, min_k d_k + e^(e_k) x, min_k 1 - e^(-e_k) (1 - d_k - x)),

the two (eps, delta) inequalities for the event and its complement. F_K lies above the exact curve F whatever points
were chosen: a weaker null, so every refutation stands; only power depends on the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privloss.audit.rates import remaining
from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, Plan
from privloss.numerics import check
from privloss.numerics.bound import Bound, exactly
from privloss.numerics.floats import Real

_WIDTH = 1e-4  # relative, of the profile asked: upper ends are sound at any width, and more digits refute no more
POINTS = np.round(  # where a plan's profile is asked: F_K is within 2e-3 of F for ordinary plans
    np.concatenate([[0.0], np.geomspace(0.02, 0.4, 10), np.linspace(0.5, 6.0, 56), np.geomspace(6.5, 12.0, 8)]), 12
)


@dataclass(frozen=True)
class Claim:
    """Points of a privacy profile from above; `epsilon` is claimed at `delta`: of a plan, at that of the audit."""

    eps: tuple[float, ...]
    deltas: tuple[float, ...]
    epsilon: Bound
    text: str
    adjacency: str | None = None
    delta: float = 0.0
    plan: Plan | None = None

    @classmethod
    def pair(cls, epsilon: float, delta: float) -> Claim:
        return cls((epsilon,), (delta,), exactly(epsilon), f"({epsilon:g}, {delta:g})-DP", delta=delta)

    def most_true(self, fpr: Any) -> Real:
        """F_K: the largest true positive rate at a false positive rate, rounded up."""
        x = np.asarray(fpr, dtype=float)[..., None]
        eps, delta = np.array(self.eps), np.array(self.deltas)
        with np.errstate(over="ignore"):
            ends = np.minimum(delta + np.exp(eps) * x, 1 - np.exp(-eps) * (1 - delta - x))
        return np.asarray(np.minimum(ends.min(axis=-1) * (1 + 1e-13) + 1e-15, 1.0))

    def least_false(self, tpr: float) -> float:
        """The least false positive rate at a true positive rate, rounded down: the inverse of F_K."""
        eps, delta = np.array(self.eps), np.array(self.deltas)
        with np.errstate(over="ignore"):
            ends = np.maximum(np.exp(-eps) * (tpr - delta), 1 - delta - np.exp(eps) * (1 - tpr))
        return max(float(ends.max()) * (1 - 1e-13) - 1e-15, 0.0)

    def excess(self, least_true: Any, most_false: Any) -> Real:
        """The largest logarithm by which rates (TPR >= least_true, FPR <= most_false) break an inequality."""
        low, high = np.asarray(least_true, dtype=float)[..., None], np.asarray(most_false, dtype=float)[..., None]
        eps, delta = np.array(self.eps), np.array(self.deltas)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
            left = remaining(delta) - high
            second = np.log(np.maximum(left, 0.0)) - np.log(np.maximum(1 - low, 0.0))
            both = np.fmax(np.where(low > delta, first, -np.inf), np.where(left > 0, second, -np.inf))
        return np.asarray((both - eps).max(axis=-1))


def read_claim(claim: Any, delta: float, adjacency: str | None = None) -> Claim | None:
    """A plan, (epsilon, delta) or a number; None for none."""
    if claim is None:
        return None
    if isinstance(claim, (Plan, Mechanism)):
        plan = claim.as_plan()
        profile = plan.delta(POINTS.tolist(), adjacency=adjacency, tolerance=_WIDTH)
        deltas = tuple(float(d.upper) for d in profile)
        at = plan.epsilon(delta, adjacency=adjacency)
        return Claim(tuple(POINTS.tolist()), deltas, at, repr(plan), adjacency or plan.adjacency, delta, plan)
    if isinstance(claim, tuple):
        if len(claim) != 2:
            raise InvalidInput(f"claim = {claim!r}: must be a plan, a number or a pair (epsilon, delta).")
        epsilon = check.number("claim's epsilon", claim[0], low=0)
        return Claim.pair(epsilon, check.number("claim's delta", claim[1], low=0, high=1))
    return Claim.pair(check.number("claim", claim, low=0), 0.0)
