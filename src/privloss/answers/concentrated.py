"""The least rho for which a plan is rho-zCDP: the supremum over t > 0 of K(t)/(t(t+1)), both directions.

- Gaussian steps attain mu^2/2 at every t; sampled Gaussians approach theirs as t grows (`concentration` of each loss).
- Bounded losses (Laplace, randomised response): branch and bound over t. K(t)/t does not fall, so on [a, b] the ratio
  is at most K(b)/(b (a+1)). K is convex, so on [a, b] it also lies below its chord s t - A, and for all t > 0
  (s t - A)/(t(t+1)) = (s+A)/(t+1) - A/t <= (sqrt(s+A) - sqrt(A))^2 if A >= 0. Outside [a, b] the chord lies below K, so
  this exceeds the supremum only by the square of the cell's width. The limit t -> 0 is the mean loss.

The supremum of a sum lies between its largest value found and the sum of the suprema.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privloss.answers.renyi import directions
from privloss.losses.base import PrivacyLoss
from privloss.losses.composed import ComposedLoss
from privloss.mechanisms.base import Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics.bound import Bound
from privloss.numerics.floats import Real, lowered, raised

METHOD = "supremum of K(t)/(t(t+1))"
_CELLS, _ROUNDS, _SPLIT, _WANTED = 200, 12, 8, 1e-10
_FEW = np.geomspace(1e-2, 1e3, 16)  # where a lower end looks


def zcdp(plan: Plan, *, adjacency: str | None = None) -> Bound:
    """The least rho."""
    worst = worst_neighbours(plan, adjacency)
    extra = worst.curve.rho if worst.curve.points is None else math.inf  # a finite table bounds no rho
    below, upper = _if_finite(worst.loss, _rho_bounds)
    if worst.unsampled is not None:
        upper = min(upper, _if_finite(worst.unsampled, _rho_bounds)[1])
    if worst.attained or not worst.curve.empty:  # what is attained is not the pair itself
        members = worst.attained or (worst.stand_in,)
        below = max(_if_finite(loss, lambda m: (_rho_lower(m), math.inf))[0] for loss in members)
    upper = raised(upper + extra, 4) if extra > 0 else upper
    notes = () if math.isfinite(upper) else ("no rho is proven for some step",)
    return Bound(below, upper, METHOD, notes)


def _if_finite(loss: ComposedLoss, ask: Callable[[ComposedLoss], tuple[float, float]]) -> tuple[float, float]:
    """(lower, upper); infinite where some outcomes have infinite loss, in either direction."""
    if not loss.parts:
        return 0.0, 0.0
    masses = [d.delta_inf_bounds for d in directions(loss)]
    if any(high > 0 for _, high in masses):
        return (math.inf if any(low > 0 for low, _ in masses) else 0.0), math.inf
    return ask(loss)


def _rho_lower(loss: ComposedLoss) -> float:
    """A lower bound on that supremum: the ratio itself at a few t, and the mean loss in the limit t -> 0."""
    known = [part.concentration() for part in loss.parts]
    best = math.fsum(k.limit for k in known)
    rest = ComposedLoss(tuple(k.searched for k in known if k.searched is not None))
    if rest.parts:
        for direction in [rest] if rest.symmetric else [rest, rest.reversed()]:
            ratio = direction.log_mgf_lower(_FEW) / (_FEW * (_FEW + 1))
            best = max(best, direction.mean_bounds()[0], float(ratio.max()))
    return lowered(math.fsum(k.everywhere for k in known) + best, 16 + len(loss.parts))


def _rho_bounds(loss: ComposedLoss) -> tuple[float, float]:
    """(lower, upper) for the supremum over t of K(t)/(t(t+1)): what the parts declare, and a search over the rest."""
    known = [part.concentration() for part in loss.parts]
    searched = [k.searched for k in known if k.searched is not None]
    found = _bounded(ComposedLoss(tuple(searched))) if searched else (0.0, 0.0)
    everywhere, limit = math.fsum(k.everywhere for k in known), math.fsum(k.limit for k in known)
    units = 16 + len(loss.parts)
    # what is attained at every t adds to the rest; suprema at different t do not add
    below = everywhere + max(limit, found[0])
    return lowered(below, units), raised(everywhere + limit + found[1] + math.fsum(k.bound for k in known), units)


def _bounded(loss: ComposedLoss) -> tuple[float, float]:
    """(lower, upper) for the supremum over t of K(t)/(t(t+1)), losses bounded, same law in both directions."""
    both: list[PrivacyLoss] = [loss] if loss.symmetric else [loss, loss.reversed()]
    found = [_branch_and_bound(direction) for direction in both]
    return max(f[0] for f in found), max(f[1] for f in found)


def _branch_and_bound(loss: PrivacyLoss) -> tuple[float, float]:
    top = max(loss.largest, 1e-300)
    mean_low, mean_high = loss.mean_bounds()
    first, last = 1e-12 / max(top, 1.0), 1e13
    edges = np.geomspace(first, last, _CELLS)
    left, right = edges[:-1], edges[1:]
    best = max(mean_low, 0.0)
    ceiling = best

    def ratio_upper(a: Real, b: Real) -> Real:
        edges, place = np.unique(np.concatenate([a, b]), return_inverse=True)
        k = np.zeros_like(edges)
        k[edges > 0] = np.minimum(loss.log_mgf_upper(edges[edges > 0]), top * edges[edges > 0])
        at_a, at_b = np.split(k[place], 2)
        return np.minimum(raised(at_b / (b * (a + 1)), 8), _below_chord(a, b, at_a, at_b))

    # left of all cells K(t)/t <= K(first)/first; right of all cells K(t)/t <= top
    outside = max(float(ratio_upper(np.zeros(1), np.array([first]))[0]), top / (last + 1))
    for _ in range(_ROUNDS):
        upper = ratio_upper(left, right)
        best = max(best, lowered(float((loss.log_mgf_lower(right) / (right * (right + 1))).max()), 8))
        alive = upper > best * (1 + _WANTED)
        ceiling = max(float(upper[alive].max()) if np.any(alive) else best * (1 + _WANTED), best)
        if not np.any(alive) or alive.sum() > 4000:
            break
        parts = np.exp(np.linspace(np.log(left[alive]), np.log(right[alive]), _SPLIT + 1, axis=1))
        parts[:, 0], parts[:, -1] = left[alive], right[alive]  # nothing may fall between two cells
        left, right = parts[:, :-1].ravel(), parts[:, 1:].ravel()
    return best, max(ceiling, outside, mean_high if outside > best else best)


def _below_chord(a: Real, b: Real, at_a: Real, at_b: Real) -> Real:
    """An upper bound on K(t)/(t(t+1)) on [a, b], from upper bounds on K at the ends: see above. It falls in A and rises
    in s, so A is rounded down and s up; where A is not surely positive the bound says nothing."""
    slope = np.asarray(raised((at_b - at_a) / (b - a), 8, (at_a + at_b) / (b - a)))
    short = lowered(
        slope * a - at_a, 16, slope * a + at_a
    )  # the chord through (a, at_a), rising no less than it should
    sure = (short > 0) & (slope > 0)
    root = np.sqrt(np.where(sure, slope + short, 1.0)) + np.sqrt(np.where(sure, short, 0.0))
    return np.asarray(np.where(sure, raised((np.where(sure, slope, 0.0) / root) ** 2, 16), np.inf))
