"""Coarse tables of sampled Gaussian noise: from above for rare events, from below for lower ends."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from privloss.losses.table.build import from_vectors
from privloss.losses.table.table import Table
from privloss.numerics.floats import Real
from privloss.numerics.stable import log_sampled

Hits = tuple[tuple[float, float], ...]  # (weight, distance from 0), weights adding up to at most 1
_ATOMS, _RARE_ATOMS = 240, 100
_SHOWN_ATOMS, _SHOWN_REACH, _SHOWN_FURTHEST = 600, 11.0, 25.0


def hit_table(rate: float, distance: float) -> Table:
    """(1-q) N(0) + q N(s) against N(0), from above: every cell's mass is moved to the two losses at its ends so that
    the masses under P and under Q stay (a mixture of losses is dominated by the mixture of the extremes)."""
    return hits_table(((rate, distance),), 1 - rate, _RARE_ATOMS)


def hits_table(hits: Hits, missed: float, atoms: int, slack: float = 1e6) -> Table:
    """The same with several kinds of hits; with probability `missed` there is none."""
    rate, furthest = math.fsum(w for w, _ in hits), max(s for _, s in hits)
    y = np.linspace(-9.0, furthest + 9.0, atoms)
    if len(hits) == 1:
        losses = log_sampled(rate, furthest * y - 0.5 * furthest * furthest)
    else:
        rises = [w * np.expm1(np.minimum(s * y - 0.5 * s * s, 600.0)) for w, s in hits]
        far = [math.log(missed) + 0 * y, *(math.log(w) + s * y - 0.5 * s * s for w, s in hits)]
        near = np.log1p(np.maximum(sum(rises), -0.5))
        losses = np.where(np.abs(sum(rises)) < 0.4, near, np.logaddexp.reduce(far))
    edges = np.concatenate([[math.log(missed) if len(hits) > 1 else math.log1p(-rate)], losses])
    under_q = _cells(y)
    under_p = missed * under_q + sum(w * _cells(y - s) for w, s in hits)
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
    return Table(edges, masses * (1 - lost) / math.fsum(masses), lost, 0.0, slack=slack, wobble=64.0, absolute=8.0)


def with_disclosure(table: Table, chance: float) -> Table:
    """A table of atoms, or with some probability an output that gives the record, or its absence, away."""
    kept = 1 - chance
    lost, back = kept * table.delta + chance, kept * table.back + chance
    return replace(table, masses=kept * table.masses, delta=lost, back=back, slack=table.slack + 8)


def shown_hits(hits: Hits) -> Table:
    """Which hit it was is public, N(s) against N(0) with its probability, otherwise nothing: from above, every cell's
    mass moved to its ends likewise. The pair is its own mirror image, so this one dominates it in both orders."""
    values, masses, lost, back = [np.zeros(1)], [], 0.0, 0.0
    heaviest = max((w for w, _ in hits), default=0.0)
    for weight, distance in hits:
        atoms = _SHOWN_ATOMS if weight > 0.2 * heaviest else _RARE_ATOMS
        if distance > _SHOWN_FURTHEST:  # too far apart to matter how far
            lost, back = lost + weight, back + weight
            continue
        y = np.linspace(-_SHOWN_REACH, distance + _SHOWN_REACH, atoms)
        edges = distance * (y - 0.5 * distance)
        p, q = weight * _cells(y - distance), weight * _cells(y)
        low, high = np.exp(edges[:-1]), np.exp(edges[1:])
        up = np.clip((p[1:-1] - low * q[1:-1]) / (high - low), 0.0, q[1:-1])
        at = np.zeros(len(edges))
        at[:-1] += q[1:-1] - up
        at[1:] += up
        # beyond the edges: at the edge, as much as both have, and the rest for infinity
        at[-1] += q[-1]
        at[0] += p[0] / math.exp(float(edges[0]))
        values.append(edges)
        masses.append(at * np.exp(edges))
        lost += float(p[-1]) + weight * 1e-30
        back += float(q[0]) + weight * 1e-30
    found = np.concatenate(masses) if masses else np.zeros(0)
    rest = max(1 - lost - math.fsum(found), 0.0)
    slack = 1e4 + 1024 * float(max((s for _, s in hits), default=0.0)) ** 2
    masses_at = np.concatenate([[rest], found])
    return Table(np.concatenate(values), masses_at, lost, back, slack=slack, wobble=64.0, absolute=8.0)


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
