"""Coarse tables of sampled Gaussian noise: from above for rare events, from below for lower ends."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from privloss.losses.table.build import from_vectors
from privloss.losses.table.table import Table
from privloss.numerics.floats import Real
from privloss.numerics.stable import log_sampled

Hits = tuple[tuple[float, float], ...]  # (weight, distance from 0), weights adding up to at most 1
_ATOMS, _RARE_ATOMS = 240, 100


def hit_table(rate: float, distance: float) -> Table:
    """(1-q) N(0) + q N(s) against N(0), from above: every cell's mass is moved to the two losses at its ends so that
    the masses under P and under Q stay (a mixture of losses is dominated by the mixture of the extremes)."""
    y = np.linspace(-9.0, distance + 9.0, _RARE_ATOMS)
    edges = np.concatenate([[math.log1p(-rate)], log_sampled(rate, distance * y - 0.5 * distance * distance)])
    under_q = _cells(y)
    under_p = (1 - rate) * under_q + rate * _cells(y - distance)
    inner_p, inner_q = under_p[:-1], under_q[:-1]
    low, high = np.exp(edges[:-1]), np.exp(edges[1:])
    # Q-mass at the upper end; where doubles cannot tell the ends apart, all of it
    up = np.clip((inner_p - low * inner_q) / np.maximum(high - low, 1e-300), 0.0, inner_q)
    q = np.zeros(len(edges))
    q[:-1] += inner_q - up
    q[1:] += up
    q[-1] += under_q[-1]  # losses beyond the last edge: down to it, and to infinity
    masses = q * np.exp(edges)
    lost = max(under_p[-1] - under_q[-1] * math.exp(float(edges[-1])), 0.0) + 1e-16 * rate
    return Table(edges, masses * (1 - lost) / math.fsum(masses), lost, 0.0, slack=1e6, wobble=64.0, absolute=8.0)


def binned(p: Hits, q: Hits) -> Table:
    """Two mixtures of N(0) and hits, of which only the cell on a grid is shown: a post-processing, so a lower end."""
    # not so far that N(0) underflows, which would look like disclosure
    y = np.linspace(-8.0, min(max(s for _, s in (*p, *q)) + 8.0, 36.0), _ATOMS)

    def masses(hits: Hits) -> list[float]:
        missed = (1 - math.fsum(w for w, _ in hits)) * _cells(y)
        total = sum((w * _cells(y - s) for w, s in hits), missed)
        return [float(m) for m in total]

    return from_vectors(masses(p), masses(q))


def _cells(y: Real) -> Real:
    """Masses of N(0, 1) below y[0], between the y, and above the last; differences of the smaller tail."""
    left, right = ndtr(y), ndtr(-y)
    return np.concatenate([left[:1], np.where(y[1:] < 0, np.diff(left), -np.diff(right)), right[-1:]])
