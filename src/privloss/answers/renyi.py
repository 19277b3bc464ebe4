"""Renyi divergences and KL of a plan's worst neighbours: K read on the real axis.

D_alpha = K(alpha - 1)/(alpha - 1); KL = K'(0) is the mean loss; D_inf the largest loss. The larger of both directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from privloss.errors import InvalidInput
from privloss.losses.composed import ComposedLoss
from privloss.losses.composition import WorstNeighbours
from privloss.mechanisms.base import Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics import check
from privloss.numerics.bound import Bound, Bounds, exactly, largest
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import Real, lowered, raised

METHOD = "K on the real axis"
_TOGETHER = 10  # orders that share their nodes


def directions(loss: ComposedLoss) -> list[ComposedLoss]:
    """P against Q and, unless the same, Q against P."""
    return [loss] if loss.symmetric else [loss, loss.reversed()]


def log_mgf_bounds(loss: ComposedLoss, c: Real) -> tuple[Real, Real]:
    """Intervals for K at points c > 0 (nothing has infinite loss: K >= 0)."""
    if not loss.parts:
        return np.zeros_like(c), np.zeros_like(c)
    low, high = loss.log_mgf_bounds(c, 1e-14)
    low = np.maximum(low, 0.0)
    # far out, where one term is all, two inequalities are sharper than quadrature
    wide = ~(high - low <= 1e-11 * high)
    if np.any(wide):
        low[wide] = np.maximum(low[wide], [loss.log_mgf_simple_lower(float(point)) for point in c[wide]])
        high[wide] = np.fmin(high[wide], loss.log_mgf_simple_upper(c[wide]))
    return np.minimum(low, high), high


def rdp(plan: Plan, alpha: Any, *, adjacency: str | None = None) -> Bound | Bounds:
    """D_alpha for alpha >= 1 (1: KL; inf: the largest loss); an array for an array, from one composed loss."""
    worst = worst_neighbours(plan, adjacency)
    if isinstance(alpha, np.ndarray):
        alpha = alpha.tolist()
    if isinstance(alpha, (str, bytes)) or not isinstance(alpha, Iterable):
        return _one(worst, _order("alpha", alpha))
    orders = [_order(f"alpha[{i}]", a) for i, a in enumerate(alpha)]
    if not orders:
        raise InvalidInput(f"alpha = {alpha!r}: must not be empty.")
    return Bounds(_many(worst, orders))


def one_rdp(plan: Plan, alpha: float) -> Bound:
    """`rdp` at one order."""
    return _one(worst_neighbours(plan), _order("alpha", alpha))


def _order(name: str, value: Any) -> float:
    return math.inf if isinstance(value, float) and value == math.inf else check.number(name, value, low=1)


def _one(worst: WorstNeighbours, order: float) -> Bound:
    return _many(worst, [order])[0]


def _many(worst: WorstNeighbours, orders: list[float]) -> list[Bound]:
    """All orders > 1 from one pass over the losses; the two ends of the range by themselves."""
    inner = [order for order in dict.fromkeys(orders) if 1 < order < math.inf]
    found: dict[float, Bound] = {}
    if inner:
        c = np.array(inner) - 1
        extra = worst.curve.log_mgf_upper(c) / c
        found = dict(zip(inner, read(worst, lambda loss: _divergences(loss, c), extra.tolist()), strict=True))
    if 1.0 in orders:
        found[1.0] = _kl(worst)
    if math.inf in orders:
        found[math.inf] = _max_divergence(worst)
    return [found[order] for order in orders]


def rdp_uppers(plan: Plan, orders: Real) -> Real:
    """Upper bounds on D_alpha at many orders > 1 at once, sharp to about seven digits: for choosing orders."""
    worst, c = worst_neighbours(plan), np.asarray(orders) - 1
    found = _uppers(worst.loss, c)
    if worst.unsampled is not None:
        found = np.minimum(found, _uppers(worst.unsampled, c))
    return np.asarray(raised(found + worst.curve.log_mgf_upper(c) / c, 8))


def _uppers(loss: ComposedLoss, c: Real) -> Real:
    if not loss.parts:
        return np.zeros_like(c)
    both = directions(loss)
    if any(d.delta_inf_bounds[1] > 0 for d in both):
        return np.full_like(c, math.inf)
    # neighbouring orders need similar nodes
    pieces = [
        np.maximum.reduce([_upper(d, piece) for d in both]) for piece in np.array_split(c, -(-len(c) // _TOGETHER))
    ]
    return np.asarray(raised(np.maximum(np.concatenate(pieces), 0.0) / c, 4))


def _upper(loss: ComposedLoss, c: Real) -> Real:
    try:
        return loss.log_mgf_upper(c)
    except TooExpensive:
        return loss.log_mgf_simple_upper(c)


def kl(plan: Plan, *, adjacency: str | None = None) -> Bound:
    """The mean privacy loss, the larger of both directions."""
    return _kl(worst_neighbours(plan, adjacency))


def _kl(worst: WorstNeighbours) -> Bound:
    # D_1 <= D_alpha for every order of the curve; zCDP itself bounds KL by rho
    points = worst.curve.points
    at = np.array([1e-12]) if points is None else points[:1]
    return read(worst, _mean, [float((worst.curve.log_mgf_upper(at) / at)[0])])[0]


def _max_divergence(worst: WorstNeighbours) -> Bound:
    if not worst.curve.empty:
        return exactly(math.inf, METHOD, ("a Renyi curve bounds no largest loss",))
    return read(worst, lambda loss: [Bound(max(loss.largest_lower, 0.0), max(loss.largest, 0.0), METHOD)], [0.0])[0]


Ask = Callable[[ComposedLoss], list[Bound]]


def read(worst: WorstNeighbours, ask: Ask, extra: list[float]) -> list[Bound]:
    """Divergences of the worst neighbours: above those of the dominating pair (or of the plan without its samplers, if
    that is less) plus what the Renyi curve adds, below those of what is attained. `ask` answers for one direction of a
    loss that is finite; an infinite loss in either direction makes a divergence infinite."""
    found = of_both_directions(worst.loss, ask, len(extra))
    uppers, lowers = [b.upper for b in found], [b.lower for b in found]
    if worst.unsampled is not None:
        plain = of_both_directions(worst.unsampled, ask, len(extra))
        uppers = [min(upper, b.upper) for upper, b in zip(uppers, plain, strict=True)]
    if worst.attained or not worst.curve.empty:
        members = [of_both_directions(loss, ask, len(extra)) for loss in worst.attained or (worst.stand_in,)]
        lowers = [max(b.lower for b in each) for each in zip(*members, strict=True)]
    return [
        Bound(low, raised(high + more, 4) if more > 0 else high, b.method, b.notes)
        for low, high, more, b in zip(lowers, uppers, extra, found, strict=True)
    ]


def of_both_directions(loss: ComposedLoss, ask: Ask, count: int) -> list[Bound]:
    """The larger of both directions; infinite where some outcomes have infinite loss, in either direction."""
    if not loss.parts:
        return [exactly(0.0, METHOD)] * count
    both = directions(loss)
    notes = ("some outcomes have infinite loss",)
    if any(d.delta_inf_bounds[0] > 0 for d in both):
        return [exactly(math.inf, METHOD, notes)] * count
    if any(d.delta_inf_bounds[1] > 0 for d in both):  # perhaps
        return [Bound(0.0, math.inf, METHOD, notes)] * count
    return [largest(list(each)) for each in zip(*(ask(d) for d in both), strict=True)]


def _divergences(loss: ComposedLoss, c: Real) -> list[Bound]:
    lows, highs = (np.maximum(k, 0.0) / c for k in log_mgf_bounds(loss, c))
    return [
        Bound(lowered(low, 4), raised(high, 4), METHOD) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
    ]


def _mean(loss: ComposedLoss) -> list[Bound]:
    low, high = loss.mean_bounds()
    return [Bound(max(low, 0.0), max(high, 0.0), METHOD)]
