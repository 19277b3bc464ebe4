"""Two continuous distributions as a mechanism: bins that bound the truth from both sides.

>>> from scipy.stats import norm
>>> noise = tabulate(norm(1, 2), norm(0, 2), bins=2000)
>>> noise.epsilon(delta=1e-5)
Bound(1.993..., 1.993...)

Needs a monotone likelihood ratio. On a bin it lies between its values at the two edges, so moving the bin's mass to the
edges, with both the P- and the Q-mass kept, can only make the pair easier to tell apart (the profile is convex in the
ratio): an upper bound. Telling only which bin was hit is post-processing: a lower bound. The distribution functions are
taken as they are given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privloss.errors import InvalidInput
from privloss.losses.step import Step
from privloss.losses.table.build import from_vectors
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.custom import check_vectors
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import numbers
from privloss.numerics import check
from privloss.numerics.floats import Real

_TAIL = 1e-18  # probability left outside the bins on each side


@dataclass(frozen=True, repr=False)
class Tabulated(Mechanism):
    """A pair of distributions read at bins: one pair of vectors that dominates it, one that it dominates.

    Made by `pl.tabulate`; the interval for epsilon lies between the two.
    """

    kind: ClassVar[str] = "tabulated"
    p_above: Sequence[float] = numbers(high=1.0)
    q_above: Sequence[float] = numbers(high=1.0)
    p_below: Sequence[float] = numbers(high=1.0)
    q_below: Sequence[float] = numbers(high=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_vectors("p_above", self.p_above, "q_above", self.q_above)
        check_vectors("p_below", self.p_below, "q_below", self.q_below)

    def __repr__(self) -> str:
        return f"Tabulated({len(self.p_above)} losses above, {len(self.p_below)} bins below)"


def _step(m: Tabulated, adjacency: str) -> Step:
    return Step.of_table(
        from_vectors(m.p_above, m.q_above),
        "Bins: the likelihood ratio lies between its ends (dominating pair); which bin it is, post-processing (below)",
        f"tabulated: monotone likelihood ratio, exact distribution functions, worst neighbours under {adjacency}",
        mirrored=False,  # bins of a continuous pair: not worth a claim
        below=from_vectors(m.p_below, m.q_below),
    )


add_kind(Kind("tabulated", Tabulated, _step))


def tabulate(p: Any, q: Any, bins: int = 1000) -> Tabulated:
    """From two frozen SciPy distributions (with `cdf`, `sf`, `logpdf` and `ppf`), P with the record and Q without."""
    for name, side in (("p", p), ("q", q)):
        if not all(hasattr(side, method) for method in ("cdf", "sf", "logpdf", "ppf")):
            raise InvalidInput(f"{name} = {side!r}: must be a frozen continuous SciPy distribution.")
    count = check.count("bins", bins)
    low = min(float(p.ppf(_TAIL)), float(q.ppf(_TAIL)))
    high = max(float(p.isf(_TAIL)), float(q.isf(_TAIL)))
    edges = np.linspace(low, high, count + 1)
    under_p, under_q = (_masses(side.cdf, side.sf, edges) for side in (p, q))
    return _from_bins(edges, under_p, under_q, p.logpdf(edges) - q.logpdf(edges))


def tabulate_densities(
    p: Callable[[float], float], q: Callable[[float], float], low: float, high: float, bins: int = 1000
) -> Tabulated:
    """From two densities on [low, high], integrated over each bin by adaptive quadrature."""
    from scipy.integrate import quad

    count, start = check.count("bins", bins), check.number("low", low)
    edges = np.linspace(start, check.number("high", high, low=start, above=True), count + 1)
    sides = []
    for name, density in (("p", p), ("q", q)):
        if not callable(density):
            raise InvalidInput(f"{name} = {density!r}: must be a function.")
        inside = np.array([quad(density, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in itertools.pairwise(edges)])
        if abs(math.fsum(inside) - 1) > 1e-9 or inside.min() < 0:
            raise InvalidInput(f"{name}: the density must be positive and integrate to 1, not {math.fsum(inside):.9g}.")
        sides.append(np.concatenate([[0.0], inside / math.fsum(inside), [0.0]]))
    with np.errstate(divide="ignore"):
        ratio = np.array([math.log(p(y)) - math.log(q(y)) if p(y) > 0 and q(y) > 0 else math.nan for y in edges])
    return _from_bins(edges, sides[0], sides[1], ratio)


def _masses(cdf: Callable[[Real], Real], sf: Callable[[Real], Real], edges: Real) -> Real:
    """Left tail, bins, right tail; differences of the smaller of both functions keep their digits."""
    left, right = np.asarray(cdf(edges)), np.asarray(sf(edges))
    inside = np.where(left[1:] < 0.5, np.diff(left), -np.diff(right))
    return np.concatenate([left[:1], inside, right[-1:]])


def _from_bins(edges: Real, p: Real, q: Real, log_ratio: Real) -> Tabulated:
    if np.any(np.isnan(log_ratio)):
        raise InvalidInput("densities: must both be positive where the bins are; choose a smaller interval.")
    steps = np.diff(log_ratio)
    if np.all(steps <= 1e-12 * (1 + np.abs(log_ratio[1:]))):  # falling: turn it round
        p, q, log_ratio = p[::-1], q[::-1], log_ratio[::-1]
    elif not np.all(steps >= -1e-12 * (1 + np.abs(log_ratio[1:]))):
        raise InvalidInput("densities: the likelihood ratio p/q must be monotone.")
    ratio = np.exp(log_ratio)
    inner_p, inner_q = p[1:-1], q[1:-1]
    gap = -np.expm1(log_ratio[:-1] - log_ratio[1:])
    # masses a at the lower and b at the upper edge: a + b = P, a/r1 + b/r2 = Q
    upper = np.where(gap > 1e-12, (inner_p - ratio[:-1] * inner_q) / np.maximum(gap, 1e-300), inner_p)
    upper = np.clip(upper, 0.0, inner_p)
    at_edge = np.zeros(len(edges))
    at_edge[:-1] += inner_p - upper
    at_edge[1:] += upper
    # left tail: ratio between 0 and r0; right tail: between rn and infinity
    left, right = min(p[0], ratio[0] * q[0]), min(p[-1], ratio[-1] * q[-1])
    at_edge[0] += left
    at_edge[-1] += right
    under_q = at_edge / ratio
    above = [*at_edge, max(p[0] - left + p[-1] - right, 0.0), 0.0]
    above_q = [*under_q, 0.0, max(1 - math.fsum(under_q), 0.0)]
    return Tabulated(_listed(above), _listed(above_q), _listed(p), _listed(q))


def _listed(values: Any) -> list[float]:
    total = math.fsum(values)
    return [float(v) / total for v in values]
