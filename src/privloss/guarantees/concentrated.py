"""The least rho for which a plan is rho-zCDP: the supremum over t > 0 of K(t)/(t(t+1)), both directions.

- Gaussian steps attain mu^2/2 at every t.
- A Poisson-sampled Gaussian attains 1/(2 sigma^2) in the limit t -> inf, exactly as without sampling: E[r^(t+1)] <=
  1 - q + q e^(t(t+1)/2sigma^2) <= e^(t(t+1)/2sigma^2), and log E[r^(t+1)] >= (t+1) log q + t(t+1)/2sigma^2.
- Bounded losses (Laplace, randomised response): branch and bound over t. K(t)/t does not fall, so on [a, b] the ratio
  is at most K(b)/(b (a+1)); the limit t -> 0 is the mean loss.

The supremum of a sum lies between its largest value found and the sum of the suprema.
"""

from __future__ import annotations

import math

import numpy as np

from privloss.guarantees.renyi import neighbours
from privloss.losses.base import PrivacyLoss
from privloss.losses.composed import ComposedLoss
from privloss.losses.discrete import DiscreteLoss
from privloss.losses.discrete_gaussian import DiscreteGaussianLoss
from privloss.losses.gaussian import GaussianLoss
from privloss.losses.gaussian_mixture import GaussianMixtureLoss
from privloss.mechanisms.plan import Plan
from privloss.numerics.bound import Bound, exactly
from privloss.numerics.small import UNIT, Real

METHOD = "supremum of K(t)/(t(t+1))"
_ROUNDS, _SPLIT, _WANTED = 12, 8, 1e-10


def zcdp(plan: Plan, *, adjacency: str | None = None) -> Bound:
    """The least rho."""
    worst = neighbours(plan, adjacency)
    if worst.loss.delta_inf > 0:
        return exactly(math.inf, METHOD, ("some outcomes have infinite loss",))
    limit, extra_rho = 0.0, 0.0
    bounded: list[PrivacyLoss] = []
    for part in worst.loss.parts:
        if isinstance(part, GaussianLoss):
            limit += 0.5 * part.mu_squared
        elif isinstance(part, DiscreteGaussianLoss):
            limit += part.rho
        elif isinstance(part, GaussianMixtureLoss):
            limit += float((0.5 * part.count / part.sigma**2).sum())
        elif isinstance(part, DiscreteLoss) and math.isinf(part.largest):
            unbounded = [(r, n) for r, n in zip(part.rows, part.count, strict=True) if math.isinf(r.largest)]
            extra_rho += math.fsum(float(n) * r.rho for r, n in unbounded)
            rest = [(r, n) for r, n in zip(part.rows, part.count, strict=True) if math.isfinite(r.largest)]
            if rest:
                bounded.append(DiscreteLoss(tuple(r for r, _ in rest), np.array([float(n) for _, n in rest])))
        else:
            bounded.append(part)
    slack = (16 + len(worst.loss.parts)) * UNIT
    finite = _bounded(ComposedLoss(tuple(bounded))) if bounded else (0.0, 0.0)
    plain = all(isinstance(p, GaussianLoss) for p in worst.loss.parts if p not in bounded)
    below = limit + finite[0] if plain else max(limit, finite[0])
    curve = worst.curve
    points = curve.points
    extra = curve.rho if points is None else math.inf  # a finite table bounds no rho
    upper = (limit + finite[1] + extra + extra_rho) * (1 + slack)
    if worst.attained:  # what is attained is smaller than the pair
        below = 0.0
    lower = max(below, 0.5 * curve.attained_mu_squared) * (1 - slack)
    notes = () if math.isfinite(upper) else ("no rho is proven for some step",)
    return Bound(min(lower, upper), upper, METHOD, notes)


def _bounded(loss: ComposedLoss) -> tuple[float, float]:
    """(lower, upper) for the supremum over t of K(t)/(t(t+1)), losses bounded, same law in both directions."""
    both: list[PrivacyLoss] = [loss] if loss.symmetric else [loss, loss.reversed()]
    found = [_branch_and_bound(direction) for direction in both]
    return max(f[0] for f in found), max(f[1] for f in found)


def _branch_and_bound(loss: PrivacyLoss) -> tuple[float, float]:
    top = max(loss.largest, 1e-300)
    mean_low, mean_high = loss.mean_bounds()
    first, last = 1e-12 / max(top, 1.0), 1e13
    edges = np.geomspace(first, last, 200)
    left, right = edges[:-1], edges[1:]
    best = max(mean_low, 0.0)
    ceiling = best

    def ratio_upper(a: Real, b: Real) -> Real:
        k = np.minimum(loss.log_mgf_upper(b), top * b)
        return np.asarray(k / (b * (a + 1)) * (1 + 8 * UNIT))

    # left of all cells K(t)/t <= K(first)/first; right of all cells K(t)/t <= top
    outside = max(float(ratio_upper(np.zeros(1), np.array([first]))[0]), top / (last + 1))
    for _ in range(_ROUNDS):
        upper = ratio_upper(left, right)
        best = max(best, float((_log_mgf_lower(loss, right) / (right * (right + 1))).max()) * (1 - 8 * UNIT))
        alive = upper > best * (1 + _WANTED)
        ceiling = max(float(upper[alive].max()) if np.any(alive) else best * (1 + _WANTED), best)
        if not np.any(alive) or alive.sum() > 4000:
            break
        parts = np.exp(np.linspace(np.log(left[alive]), np.log(right[alive]), _SPLIT + 1, axis=1))
        left, right = parts[:, :-1].ravel(), parts[:, 1:].ravel()
    return best, max(ceiling, outside, mean_high if outside > best else best)


def _log_mgf_lower(loss: PrivacyLoss, c: Real) -> Real:
    """K from below: closed forms are a few roundings wide, tables know their own error."""
    total = np.zeros_like(c)
    for part in loss.parts if isinstance(loss, ComposedLoss) else (loss,):
        if isinstance(part, DiscreteLoss):
            lines = [part.vertical(float(x)).line(np.zeros(1), 1e-14) for x in c]
            sure = [float(at.log_modulus[0] - 2 * at.error[0]) if at.error[0] < 0.5 else 0.0 for at in lines]
            total += np.maximum(np.array(sure), 0.0)
        else:
            k = part.log_mgf_upper(c)
            total += k - 256 * UNIT * (1 + np.abs(k)) * np.minimum(1.0, np.abs(c) + c * c)
    return total
