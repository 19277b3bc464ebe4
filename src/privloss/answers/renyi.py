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
    if math.isinf(order):
        return _max_divergence(worst)
    c = order - 1
    extra = float(worst.curve.log_mgf_upper(np.array([c]))[0]) / c
    return read(worst, lambda loss: _divergence(*log_mgf_bounds(loss, c), c), extra)


def kl(plan: Plan, *, adjacency: str | None = None) -> Bound:
    """The mean privacy loss, the larger of both directions."""
    worst = worst_neighbours(plan, adjacency)
    # D_1 <= D_alpha for every order of the curve; zCDP itself bounds KL by rho
    points = worst.curve.points
    at = np.array([1e-12]) if points is None else points[:1]
    return read(worst, _mean, float((worst.curve.log_mgf_upper(at) / at)[0]))


def _max_divergence(worst: WorstNeighbours) -> Bound:
    if not worst.curve.empty:
        return exactly(math.inf, METHOD, ("a Renyi curve bounds no largest loss",))
    return read(worst, lambda loss: Bound(max(loss.largest_lower, 0.0), max(loss.largest, 0.0), METHOD))


def read(worst: WorstNeighbours, ask: Callable[[ComposedLoss], Bound], extra: float = 0.0) -> Bound:
    """A divergence of the worst neighbours: above that of the dominating pair (or of the plan without its samplers, if
    that is less) plus what the Renyi curve adds, below that of what is attained. `ask` answers for one direction of a
    loss that is finite; an infinite loss in either direction makes the divergence infinite."""
    found = of_both_directions(worst.loss, ask)
    upper, lower = found.upper, found.lower
    if worst.unsampled is not None:
        upper = min(upper, of_both_directions(worst.unsampled, ask).upper)
    if worst.attained or not worst.curve.empty:
        lower = max(of_both_directions(loss, ask).lower for loss in worst.attained or (worst.stand_in,))
    return Bound(lower, raised(upper + extra, 4) if extra > 0 else upper, found.method, found.notes)


def of_both_directions(loss: ComposedLoss, ask: Callable[[ComposedLoss], Bound]) -> Bound:
    """The larger of both directions; infinite where some outcomes have infinite loss, in either direction."""
    if not loss.parts:
        return exactly(0.0, METHOD)
    both = directions(loss)
    notes = ("some outcomes have infinite loss",)
    if any(d.delta_inf_bounds[0] > 0 for d in both):
        return exactly(math.inf, METHOD, notes)
    if any(d.delta_inf_bounds[1] > 0 for d in both):  # perhaps
        return Bound(0.0, math.inf, METHOD, notes)
    return largest([ask(d) for d in both])


def _divergence(k_low: float, k_high: float, c: float) -> Bound:
    low, high = max(k_low, 0.0) / c, max(k_high, 0.0) / c
    return Bound(lowered(low, 4), raised(high, 4), METHOD)


def _mean(loss: ComposedLoss) -> Bound:
    low, high = loss.mean_bounds()
    return Bound(max(low, 0.0), max(high, 0.0), METHOD)
