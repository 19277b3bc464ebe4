"""Renyi divergences and KL of a plan's worst neighbours: K read on the real axis.

D_alpha = K(alpha - 1)/(alpha - 1); KL = K'(0) is the mean loss; D_inf the largest loss. The larger of both directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privloss.losses.composed import ComposedLoss
from privloss.losses.composition import WorstNeighbours
from privloss.mechanisms.base import Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics import check
from privloss.numerics.bound import Bound, exactly, largest
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import lowered, raised

METHOD = "K on the real axis"


def directions(loss: ComposedLoss) -> list[ComposedLoss]:
    """P against Q and, unless the same, Q against P."""
    return [loss] if loss.symmetric else [loss, loss.reversed()]


def log_mgf_bounds(loss: ComposedLoss, c: float) -> tuple[float, float]:
    """An interval for K(c), c > 0 (without the mass at infinity)."""
    if not loss.parts:
        return 0.0, 0.0
    low, high = 0.0, math.inf
    try:
        at = loss.vertical(c).line(np.zeros(1), 1e-14)
        value, error = float(at.log_modulus[0]), float(at.error[0])
        low, high = value - 2 * error if error < 0.5 else 0.0, value + error
    except TooExpensive:
        pass
    if (
        math.isinf(high) or high - low > 1e-11 * high
    ):  # far out, where one term is all, two inequalities are sharper than quadrature
        low = max(low, loss.log_mgf_simple_lower(c))
        high = min(high, float(loss.log_mgf_simple_upper(np.array([c]))[0]))
    return min(low, high), high


def rdp(plan: Plan, alpha: Any, *, adjacency: str | None = None) -> Bound:
    """D_alpha for alpha >= 1 (1: KL; inf: the largest loss)."""
    worst = worst_neighbours(plan, adjacency)
    order = math.inf if isinstance(alpha, float) and alpha == math.inf else check.number("alpha", alpha, low=1)
    if order == 1:
        return kl(plan, adjacency=adjacency)
    if worst.loss.delta_inf > 0:
        return exactly(math.inf, METHOD, ("some outcomes have infinite loss",))
    if math.isinf(order):
        return _max_divergence(worst)
    c = order - 1
    each = [_divergence(*log_mgf_bounds(d, c), c) for d in directions(worst.loss)]
    found = largest(each)
    if worst.curve.empty:
        return _with_attained(found, worst, lambda d: _divergence(*log_mgf_bounds(d, c), c))
    upper = raised(found.upper + float(worst.curve.log_mgf_upper(np.array([c]))[0]) / c, 4)
    lower = max(_divergence(*log_mgf_bounds(d, c), c).lower for d in directions(worst.stand_in))
    return Bound(lower, upper, METHOD)


def _with_attained(found: Bound, worst: WorstNeighbours, ask: Callable[[ComposedLoss], Bound]) -> Bound:
    """Where the dominating pair may not be attained, the lower end is that of mechanisms that are."""
    if not worst.attained:
        return found
    lower = max(ask(d).lower for loss in worst.attained for d in directions(loss))
    return Bound(lower, found.upper, found.method, found.notes)


def _divergence(k_low: float, k_high: float, c: float) -> Bound:
    low, high = max(k_low, 0.0) / c, max(k_high, 0.0) / c
    return Bound(lowered(low, 4), raised(high, 4), METHOD)


def _max_divergence(worst: WorstNeighbours) -> Bound:
    if not worst.curve.empty:
        return exactly(math.inf, METHOD, ("a Renyi curve bounds no largest loss",))
    top = max([0.0, *(d.largest for d in directions(worst.loss))]) if worst.loss.parts else 0.0
    low = max([0.0, *(d.largest_lower for d in directions(worst.loss))]) if worst.loss.parts else 0.0
    return _with_attained(Bound(low, top, METHOD), worst, lambda d: exactly(max(d.largest_lower, 0.0), METHOD))


def kl(plan: Plan, *, adjacency: str | None = None) -> Bound:
    """The mean privacy loss, the larger of both directions."""
    worst = worst_neighbours(plan, adjacency)
    if worst.loss.delta_inf > 0:
        return exactly(math.inf, METHOD, ("some outcomes have infinite loss",))
    found = largest([_mean(d) for d in directions(worst.loss)])
    if worst.curve.empty:
        return _with_attained(found, worst, _mean)
    # D_1 <= D_alpha for every order of the curve; zCDP itself bounds KL by rho
    points = worst.curve.points
    at = np.array([1e-12]) if points is None else points[:1]
    upper = raised(found.upper + float((worst.curve.log_mgf_upper(at) / at)[0]), 4)
    return Bound(max(_mean(d).lower for d in directions(worst.stand_in)), upper, METHOD)


def _mean(loss: ComposedLoss) -> Bound:
    low, high = loss.mean_bounds()
    return Bound(max(low, 0.0), max(high, 0.0), METHOD)
