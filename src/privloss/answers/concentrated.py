"""The least rho for which a plan is rho-zCDP: the supremum over t > 0 of K(t)/(t(t+1)), both directions.

- Gaussian steps attain mu^2/2 at every t; sampled Gaussians approach theirs as t grows (`concentration` of each loss).
- Laplace noise and randomised response: the ratio falls in t, and its limit t -> 0 is the mean loss (`concentration`).
- Other bounded losses: branch and bound over t, on cells where K lies below its chord.

The supremum of a sum lies between its largest value found and the sum of the suprema.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privloss.answers.renyi import directions
from privloss.losses.base import PrivacyLoss
from privloss.losses.composed import ComposedLoss
from privloss.losses.composition import WorstNeighbours
from privloss.mechanisms.base import Plan
from privloss.mechanisms.worst_neighbours import worst_neighbours
from privloss.numerics.bound import Bound
from privloss.numerics.floats import UNIT, Real, lowered, padded_up, raised

METHOD = "supremum of K(t)/(t(t+1))"
_ROUNDS, _CELLS, _SPLIT, _WANTED = 16, 100, 4, 1e-10
_LIKELY, _MOST_ALIVE = 3, 1000  # points where a lower end looks in a round; cells beyond which it stops
_FEW = np.geomspace(1e-2, 1e3, 16)  # where a lower end looks


def zcdp(plan: Plan, *, adjacency: str | None = None) -> Bound:
    """The least rho."""
    worst = worst_neighbours(plan, adjacency)
    below, upper = _of_pairs(plan, worst)
    if worst.attained or not worst.curve.empty:  # what is attained is not the pair itself
        members = worst.attained or (worst.stand_in,)
        below = max(_if_finite(loss, lambda m: (_rho_lower(m), math.inf))[0] for loss in members)
    notes = () if math.isfinite(upper) else ("no rho is proven for some step",)
    return Bound(below, upper, METHOD, notes)


def zcdp_upper(plan: Plan) -> float:
    """The upper end alone."""
    return _of_pairs(plan, worst_neighbours(plan, None))[1]


def _of_pairs(plan: Plan, worst: WorstNeighbours) -> tuple[float, float]:
    """What the dominating pair has, and an upper end for all of the plan."""
    extra = worst.curve.rho if worst.curve.points is None else math.inf  # a finite table bounds no rho
    below, upper = _if_finite(worst.loss, _rho_bounds)
    if worst.unsampled is not None:
        upper = min(upper, _if_finite(worst.unsampled, _rho_bounds)[1])
    upper = raised(upper + extra, 4) if extra > 0 else upper
    return below, min(upper, _declared(plan, worst.adjacency))


def _declared(plan: Plan, adjacency: str) -> float:
    """What some steps bring along by an argument of their own, plus the rho of the others together: zCDP adds up, also
    where the choice of a step depends on what others have shown."""
    own = [(mechanism.step(adjacency).rho, n) for mechanism, n in plan.steps]
    if all(math.isinf(rho) for rho, _ in own):
        return math.inf
    rest = tuple(step for step, (rho, _) in zip(plan.steps, own, strict=True) if math.isinf(rho))
    others = zcdp_upper(Plan(rest, adjacency)) if rest else 0.0
    return raised(others + math.fsum(n * rho for rho, n in own if rho < math.inf), 8)


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
    falls = all(k.falls for k in known if k.searched is not None)  # so does a sum of such
    found = (0.0, 0.0)
    if searched:
        rest = ComposedLoss(tuple(searched))
        found = rest.mean_bounds() if falls else _bounded(rest)
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
    edges = np.geomspace(first, last, _CELLS + 1)[None, :]  # every row: neighbouring cells
    best = max(mean_low, 0.0)
    ceiling, outside = best, math.inf
    reach = max(top, loss.reversed().largest)

    def near_zero(t: Real) -> Real:
        """e^u - 1 - u <= u^2/2 e^|u| and log(1 + x) <= x: up to t, K(t)/t <= E[Z] + t/2 reach^2 e^(t reach). For tiny t
        the roundings of K itself would say nothing."""
        with np.errstate(over="ignore"):
            rest = 0.5 * t * reach * reach * np.exp(t * reach)
        return np.asarray(padded_up(max(mean_high, 0.0) + rest, 1e-12))

    for _ in range(_ROUNDS):
        k = np.minimum(loss.log_mgf_upper(edges.ravel()), raised(top * edges.ravel(), 2)).reshape(edges.shape)
        if math.isinf(outside):  # left of all cells K(t)/t <= K(first)/first; right of all cells K(t)/t <= top
            below = min(raised(float(k[0, 0]) / first, 8), float(near_zero(np.array([first]))[0]))
            outside = max(below, raised(top / (last + 1), 8))
        likely = edges.ravel()[np.argsort((k / (edges * (edges + 1))).ravel())[-_LIKELY:]]
        best = max(best, lowered(float((loss.log_mgf_lower(likely) / (likely * (likely + 1))).max()), 8))
        left, right = edges[:, :-1].ravel(), edges[:, 1:].ravel()
        upper = np.minimum(_on_cells(left, right, k[:, :-1].ravel(), k[:, 1:].ravel()), near_zero(right))
        alive = upper > best * (1 + _WANTED)
        ceiling = max(float(upper[alive].max()) if np.any(alive) else best * (1 + _WANTED), best)
        if not np.any(alive) or alive.sum() > _MOST_ALIVE:
            break
        edges = np.exp(np.linspace(np.log(left[alive]), np.log(right[alive]), _SPLIT + 1, axis=1))
        edges[:, 0], edges[:, -1] = left[alive], right[alive]  # no gaps by rounding
    return best, max(ceiling, outside, mean_high if outside > best else best)


def _on_cells(a: Real, b: Real, k_a: Real, k_b: Real) -> Real:
    """Upper bounds on K(t)/(t(t+1)) for a <= t <= b, from those on K at the ends.

    K(t)/t does not fall: at most K(b)/(b(a+1)). K is convex, so below its chord s + rt, and h(t) = (s + rt)/(t(t+1))
    = r/(t+1) + s/t - s/(t+1) is largest at an end, or where h' = 0, at most (b-a)/2 from the middle: there it exceeds
    the middle by no more than max |h''| (b-a)^2/8, |h''| <= 2|r|/(a+1)^3 + 2|s|/a^3.
    """
    width, middle = b - a, 0.5 * (a + b)
    rough = 8 * UNIT * (np.abs(k_a) + np.abs(k_b))
    r = padded_up((np.abs(k_b - k_a) + rough) / width, 1e-9)
    s = padded_up(np.abs(k_a * b - k_b * a) / width + rough * b / width, 1e-9)
    ends = np.maximum(k_a / (a * (a + 1)), k_b / (b * (b + 1)))
    inside = 0.5 * (k_a + k_b) / (middle * (middle + 1))
    bend = (r / (a + 1) ** 3 + s / a**3) * width**2 / 4
    return np.asarray(raised(np.minimum(np.maximum(ends, inside) + padded_up(bend, 1e-9), k_b / (b * (a + 1))), 16))
