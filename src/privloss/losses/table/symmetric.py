"""Pairs that are their own mirror image and dominate both orders of the neighbours.

*Folding.* Let H_alpha(P, Q) be a bound for both orders of the neighbours at every alpha >= 1. The pair that has exactly
this profile above 1 and its mirror image below, h(alpha) = alpha h(1/alpha) + 1 - alpha, consists of the losses > 0 of
(P, Q), their mirror images, and the rest of the mass at loss 0 (Zhu, Dong, Wang 2022, Thm. 11 and Prop. 6).

*Both orders.* Let h(alpha) = max(H_alpha(P, Q), H_alpha(Q, P)). A maximum of convex functions is convex, and from
H_alpha(P, Q) = alpha H_(1/alpha)(Q, P) + 1 - alpha follows h(alpha) = alpha h(1/alpha) + 1 - alpha; so h is the profile
of a pair, and that pair is its own mirror image. It dominates (P, Q) and (Q, P), hence any composition in which the
roles of the neighbours swap from step to step, even adaptively (Zhu, Dong, Wang 2022, Thm. 10). docs/design.md has the
proof.

A profile known from above at finitely many alpha is bounded between them by chords (convexity), so any choice of points
is sound: the pair is read off the lower convex hull of (0, 1), the points and their mirror images, in exact rational
arithmetic. For a table the profile is a polygon with corners at its losses and at the crossings of the two orders, and
with these points nothing is lost but roundings.

>>> from privloss.losses.table.build import from_vectors
>>> from privloss.losses.table.loss import TableLoss
>>> pair = both_orders(TableLoss.one(from_vectors([0.9, 0.1], [0.5, 0.5])))
>>> [round(float(x), 6) for x in np.exp(sorted(pair.values))]
[0.2, 0.555556, 1.0, 1.8, 5.0]
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.table.polygon import Point, from_hull, lower_hull, mirror_images
from privloss.losses.table.table import Table
from privloss.numerics.floats import exp_up, lowered, raised

_MOST_CORNERS = 2_000
_GRID = 400  # points where a loss is no table
_LARGEST = 600.0  # beyond it a loss counts as disclosure


def fold(row: Table) -> Table:
    """The symmetric pair of a table's losses above 0."""
    up = row.values > 0
    values, masses = row.values[up], row.masses[up]
    mirrored = np.exp(np.log(np.maximum(masses, 1e-320)) - values)
    rest = max(1 - row.delta - math.fsum(masses) - math.fsum(mirrored), 0.0)
    wobble = float(np.max(row.wobble))
    size = float(np.abs(values).max()) if len(values) else 0.0
    slack = float(np.max(row.slack)) + 4 + wobble * size
    return Table(
        np.concatenate([values, -values, [0.0]]), np.concatenate([masses, mirrored, [rest]]), row.delta, row.delta,
        slack, wobble, absolute=row.absolute, symmetric=True,
    )  # fmt: skip


def both_orders(loss: PrivacyLoss) -> Table:
    """The pair with the larger of both orders' profiles, of one use of a loss with a closed profile."""
    forth, back = loss, loss.reversed()
    lost = max(side.delta_inf_bounds[1] for side in (forth, back))
    if lost >= 1:
        return Table(np.zeros(1), np.zeros(1), 1.0, 1.0, symmetric=True)
    sizes = [side.largest for side in (forth, back)]
    top = max([0.0, *sizes])
    found: list[Point] = []
    for eps in _corners(forth, back, min(top, _LARGEST)):
        alpha = math.exp(eps)
        below = lowered(math.log(alpha), 4, 1 + eps)  # the profile falls: at a smaller eps it is larger
        height = max(_profile_upper(side, below) for side in (forth, back))
        found.append((Fraction(alpha), Fraction(min(height, 1.0))))
    if top <= _LARGEST:  # beyond the largest loss only what is infinite is left
        found.append((Fraction(math.exp(raised(top, 4, 1 + top))), Fraction(lost)))
    return from_hull(lower_hull(mirror_images(found)))


def _profile_upper(loss: PrivacyLoss, eps: float) -> float:
    """An upper bound on delta(eps), infinite losses included."""
    logs = loss.hockey_stick(eps)
    if logs is None:
        raise ValueError("a loss without a closed profile has no symmetric pair")
    return raised(exp_up(min(logs[1], 0.0)) + loss.delta_inf_bounds[1], 2)


def _corners(forth: PrivacyLoss, back: PrivacyLoss, top: float) -> list[float]:
    """Where to ask for the profile, in [0, top]: any choice is sound."""
    tables = forth.tables()
    if tables is None:
        reach = min(top, 60.0)
        return [float(x) for x in np.linspace(0.0, reach, _GRID)]
    losses = np.unique(np.abs(np.concatenate([t.values for t, _ in tables])))
    losses = losses[losses <= top]
    if len(losses) > _MOST_CORNERS:
        losses = losses[np.linspace(0, len(losses) - 1, _MOST_CORNERS).astype(int)]
    corners = sorted({0.0, *(float(v) for v in losses)})
    return sorted({*corners, *_crossings(forth, back, corners)})


def _crossings(forth: PrivacyLoss, back: PrivacyLoss, corners: list[float]) -> list[float]:
    """Where the two polygons meet between corners, roughly."""
    gaps = [_profile_upper(forth, x) - _profile_upper(back, x) for x in corners]
    found = []
    for (a, f), (b, g) in itertools.pairwise(zip(corners, gaps, strict=True)):
        if f * g < 0:
            low, high = math.exp(a), math.exp(b)
            found.append(min(max(math.log(low + (high - low) * f / (f - g)), a), b))
    return found
