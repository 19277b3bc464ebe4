"""Grids without cells: where the integral of the majorant phi*g of `grid.py` and its tails have closed bounds.

X phi is q^2 times e^(1/sigma^2) N(2, sigma^2) + N(0, sigma^2), so the integral of phi X is q^2 (e^(1/sigma^2) + 1), and

    P against Q, c >= 1:  E[r^(c-1)] <= (1 - q + q e^(a/sigma^2))^(c-1), a = max((c+2)/2, 2), under N(2, sigma^2)
                          and hence under N(0, sigma^2), as r rises: by Minkowski's inequality for c >= 2, where
                          E[e^((c-1)s)]^(1/(c-1)) = e^((c+2)/2sigma^2); for c < 2 by Jensen's, E[e^s] = e^(2/sigma^2);
    Q against P:          S <= 10 (1-q)^-(c+2) (without its cosine, which is a penalty of the strip);
    the mean, c = 0:      S <= 4/(1-q).

*Tails.* Left of the nodes s < 0: X <= 2q^2 and S is at most 2 or as above. Right of them, for Q against P and the mean,
X phi is as above. For P against Q, from any y >= 1/2 on r e^-s falls and r >= 1, so phi g <= 4 q^2 (r e^-s)^(c-1)
e^((c+1)s) phi with the bracket at the last node: a normal density around c + 1 of mass e^(c(c+1)/2sigma^2), which may
all lie there, or what is beyond so many sigma of it. Beyond x sigma a normal density has a mass of e^(-x^2/2)/2 at
most, and nodes of a step <= sigma sum to at most e^(-x^2/2); where all of it may lie there, to 1.4 times its mass.
"""

from __future__ import annotations

import math

import numpy as np

from privloss.losses.mixture.grid import Grid, Members, laid, strip
from privloss.numerics.floats import Real

_LOG_2 = math.log(2.0)
_LEAST_SIGMA = 0.3
_MOST = 20.0  # log of what closed bounds may add to the integral: beyond, cells are sharper
_TAME = 600.0  # whose exponential is a double
_FURTHEST = 16.0  # standard deviations up to the peak of large losses beyond which cells need fewer nodes
_DIGITS = math.log(1e-8)  # of M - 1, which are always worth having


def explicit_grid(rows: Members, t_max: float, log_goal: Real, lifted: bool) -> Grid | None:
    """A grid as that of `Majorant.grid`, None where cells are better."""
    q, sigma, c = rows.q, rows.sigma, rows.c
    if rows.trim is not None or sigma.min() < _LEAST_SIGMA or (not rows.flipped and c.min() < 1):
        return None
    inverse = 1 / sigma**2
    if rows.flipped:
        added = math.log(10.0) - (c + 2) * np.log1p(-q)
    else:
        power = np.maximum(0.5 * c + 1, 2.0) * inverse
        if power.max() > _TAME:
            return None
        added = _LOG_2 + (c - 1) * np.log1p(q * np.expm1(power))
    if added.max() > _MOST:
        return None
    log_unit = 2 * np.log(q) + np.log1p(4 / (1 - q))  # room for the mean
    log_all = log_unit + np.log1p(np.exp(inverse)) + added
    squared = t_max * t_max
    half_zz1 = 0.5 * np.log(np.maximum(0.25 * (c * c + squared) * ((c + 1) ** 2 + squared), 1e-300))
    # M(c) - 1 is about c(c+1)/2 Var[x]
    about = np.log(np.maximum(0.5 * c * (c + 1) * np.expm1(inverse), 1e-300)) + 2 * np.log(q)
    need = np.maximum(half_zz1 + log_all - np.minimum(log_goal, about + _DIGITS), 5.0)
    theta, penalty, on_nodes = strip(rows, need, lifted)
    reach = np.sqrt(2 * (need + on_nodes)) + 1.0
    high, log_right = 2 + reach * sigma, log_all - 0.5 * reach**2
    if not rows.flipped:
        found = right_end(rows, high, log_unit, log_all - need - on_nodes)
        if found is None:
            return None
        high, log_right = found
    log_tail = 2 * _LOG_2 + np.logaddexp(log_all - 0.5 * reach**2, log_right) + on_nodes
    return laid(rows, (-reach * sigma, high), (theta, penalty), t_max, need, log_all, log_tail, lifted)


def right_end(rows: Members, high: Real, log_unit: Real, log_goal: Real) -> tuple[Real, Real] | None:
    """P against Q: where nodes may end, `high` if hardly anything is beyond, and the log of what is."""
    sigma, c = rows.sigma, rows.c
    peak = c + 1
    log_hits = log_unit + 2 * _LOG_2 + 0.5 * c * peak / sigma**2
    log_right = log_hits + (c - 1) * _log_excess(rows, high)
    if np.all(log_right <= log_goal):
        return high, log_right
    if np.any(peak > _FURTHEST * sigma):
        return None
    log_hits = log_hits + (c - 1) * _log_excess(rows, peak)
    reach = np.sqrt(2 * np.maximum(log_hits - log_goal, 0.5)) + 1.0
    further = np.maximum(high, peak + reach * sigma)
    return further, log_hits - 0.5 * reach**2


def _log_excess(rows: Members, y: Real) -> Real:
    """log of r e^-s = q + (1-q) e^-s."""
    return np.asarray(np.log(rows.q + (1 - rows.q) * np.exp(-(y - 0.5) / rows.sigma**2)))


def mean_grid(rows: Members, log_goal: Real) -> Grid | None:
    """The grid for the mean."""
    sigma, q = rows.sigma, rows.q
    if rows.trim is not None or sigma.min() < _LEAST_SIGMA:
        return None
    log_all = np.log(4 / (1 - q)) + 2 * np.log(q) + np.log1p(np.exp(1 / sigma**2))
    need = np.maximum(log_all - np.minimum(log_goal, log_all + _DIGITS), 5.0)
    reach = np.sqrt(2 * need) + 1.0
    theta = np.minimum(np.pi / 2, np.sqrt(2 * need) / sigma)
    ends, angles = (-reach * sigma, 2 + reach * sigma), (theta, 0.5 * (theta * sigma) ** 2)
    return laid(rows, ends, angles, 0.0, need, log_all, 2 * _LOG_2 + log_all - 0.5 * reach**2, False)
