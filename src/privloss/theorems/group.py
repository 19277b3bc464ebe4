"""Privacy for several people at once, and inequalities that play the part of a triangle inequality.

>>> approx(1.0, 1e-6, people=2)
(2.000000000000..., 3.71828182...e-06)
>>> zcdp(0.5, people=3)
4.5...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privloss.errors import InvalidInput
from privloss.losses.chains import approx, pure, zcdp
from privloss.mechanisms.base import Mechanism, Plan
from privloss.numerics import check
from privloss.numerics.arrays import numbers, plain, together
from privloss.numerics.floats import raised, rounded_up

__all__ = ["approx", "log_mean", "mixture", "plan", "pure", "renyi_triangle", "zcdp", "zcdp_triangle"]
Curve = Callable[[float], float]  # Renyi divergence by order


def zcdp_triangle(first: float, second: float) -> float:
    """(sqrt(rho1) + sqrt(rho2))^2: from P to R by way of Q."""
    a, b = check.number("first", first, low=0), check.number("second", second, low=0)
    root = math.sqrt(a) + math.sqrt(b)
    return float(rounded_up(root * root, 6))


def renyi_triangle(alpha: float, first: Curve, second: Curve, *, between: float | None = None) -> float:
    """Part 7 of Lem. rdp_properties: D_alpha(P||R) from curves of D(P||Q) and D(Q||R).

    alpha'/(alpha'-1) D_{alpha (alpha'-1)/(alpha'-alpha)}(P||Q) + D_alpha'(Q||R) for any alpha' > alpha: the one given
    as `between`, or the best of many.
    """
    order = check.number("alpha", alpha, low=1, above=True)
    for name, curve in (("first", first), ("second", second)):
        if not callable(curve):
            raise InvalidInput(f"{name} = {curve!r}: must be a function of the order.")
    if between is not None:
        return _through(order, check.number("between", between, low=order, above=True), first, second)
    low, high, best = -12.0, 12.0, math.inf
    for _ in range(4):
        # alpha' = alpha (1 + x): x from e^-12 to e^12, narrowed around the best
        grid = np.linspace(low, high, 33)
        values = [_through(order, order * (1 + math.exp(x)), first, second) for x in grid]
        at = int(np.argmin(values))
        best = min(best, values[at])
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, 32)]
    return best


def _through(alpha: float, between: float, first: Curve, second: Curve) -> float:
    # rounding an order down would be unsafe, since divergences rise with it
    order = float(rounded_up(alpha * (between - 1) / (between - alpha), 8))
    value = between / (between - 1) * float(first(order)) + float(second(between))
    return float(rounded_up(value, 8)) if math.isfinite(value) else math.inf


def mixture(alpha: Any, first: Any, second: Any, share: Any) -> Any:
    """Quasi-convexity, part 6 of Lem. rdp_properties: D_alpha between two mixtures, the second component at `share`."""
    c, a, b, s = together(
        alpha=numbers("alpha", alpha, low=1) - 1,
        first=numbers("first", first, low=0),
        second=numbers("second", second, low=0),
        share=numbers("share", share, low=0, high=1),
    )
    value = np.where(c > 0, log_mean(c, a, b, 1 - s, s), (1 - s) * a + s * b)  # at alpha = 1 KL is convex
    return plain(np.minimum(rounded_up(np.maximum(value, 0.0), 24), np.maximum(a, b)))


def log_mean(c: Any, a: Any, b: Any, first: Any, second: Any) -> Any:
    """log(first e^(ca) + second e^(cb)) / c for weights that sum to one, without cancellation near 0."""
    safe, top = np.maximum(c, 1e-300), np.maximum(c * a, c * b)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        near = np.log1p(first * np.expm1(np.minimum(c * a, 600.0)) + second * np.expm1(np.minimum(c * b, 600.0)))
        far = raised(np.logaddexp(np.log(first) + c * a, np.log(second) + c * b), 8, 1 + top)
    return np.where(top < 30, near, np.maximum(far, 0.0)) / safe


def plan(plan: Plan | Mechanism, people: int) -> Plan:
    """The plan as it looks to a group of people who all join, leave or change together: distances add up, and of a
    Poisson sample any number of the group may be in it (all contributions alike are worst: among events with the same
    probability without the group a half-space has the largest with any part of it, Neyman and Pearson).

    >>> import privloss as pl
    >>> pl.group.plan(pl.Gaussian(2.0) * 3 + pl.Laplace(10.0), people=4)
    Plan(3 * Gaussian(noise_multiplier=0.5) + Laplace(scale=10.0, sensitivity=4.0))
    """
    k = check.count("people", people)
    made = plan.as_plan()
    return Plan(tuple((m.grouped(k, made.adjacency), n) for m, n in made.steps), made.adjacency)
