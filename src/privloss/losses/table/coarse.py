"""Pairs with few outcomes that stand above or below another one: for products, whose outcomes multiply.

*Above*: a profile lies below its chords, so the hull of finitely many of its points is the profile of a pair that
dominates, whatever points are chosen (`polygon.py`). *Below*: outcomes that are no longer told apart are a
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.table.build import from_vectors
from privloss.losses.table.polygon import Point, from_hull, lower_hull, mirror_images
from privloss.losses.table.table import Table
from privloss.numerics.floats import exp_up, lowered, raised


def hull_above(loss: PrivacyLoss, places: Sequence[float]) -> Table | None:
    """An even pair above one use of an even loss, with corners at these epsilons at most; None without a closed
    profile. Beyond the last place what is left counts as disclosure."""
    points: list[Point] = []
    for eps in sorted({0.0, *places}):
        alpha = math.exp(eps)
        logs = loss.hockey_stick(lowered(math.log(alpha), 4, 1 + eps))  # at a smaller eps a profile is larger
        if logs is None:
            return None
        height = raised(exp_up(min(logs[1], 0.0)) + loss.delta_inf_bounds[1], 2)
        points.append((Fraction(alpha), Fraction(min(height, 1.0))))
    return from_hull(lower_hull(mirror_images(points)))


def merged_below(row: Table, most: int) -> Table:
    """Neighbouring losses taken together until at most so many are left."""
    if len(row.values) <= most:
        return row
    order = np.argsort(row.values)
    p = row.masses[order]
    q = p * np.exp(-row.values[order])
    cuts = np.linspace(0, len(p), most + 1).astype(int)[:-1]
    groups = [np.add.reduceat(x, cuts) for x in (p, q)]
    # 1e-13 of noise alike on both sides (post-processing), far above the roundings of sums
    ends = [(row.delta, 0.0), (0.0, row.back)]
    smooth = [[float(m) + 1e-13 for m in group] for group in groups]
    return from_vectors(*([*group, *(end[i] for end in ends)] for i, group in enumerate(smooth)))


def places_of(top: float, count: int) -> list[float]:
    """Epsilons from 0 to a largest loss, equally spaced, the last one surely beyond it."""
    return [float(x) for x in np.linspace(0.0, raised(top, 8, 1 + top), count)]
