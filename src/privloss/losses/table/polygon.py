"""Profiles that are polygons, as tables, in exact rational arithmetic: trade-off curves and lists of (eps, delta).

A profile h(alpha), alpha = e^eps, that is known from above at finitely many points is bounded by their lower convex
hull with (0, 1); a corner of the hull at alpha, where the slope rises by w, is the loss log alpha with Q-mass w and
P-mass alpha w. Differences of nearly equal numbers cost nothing here: only the finished masses are rounded.

>>> table = privacy_profile([1.0], [0.0])
>>> [round(float(v), 12) for v in table.values], round(float(table.masses[1]), 12)
([-1.0, 1.0], 0.73105857863)
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from privloss.losses.table.table import Table

Point = tuple[Fraction, Fraction]  # alpha, and an upper bound on the profile there
_LARGEST = 700.0  # leaving out a promise at a larger eps is safe
_SMALL, _TERMS, _DIGITS = 1e-3, 16, 60  # e^eps - 1 to more than 45 digits
_HUGE = 2**1000


def mirror_images(points: Iterable[Point]) -> list[Point]:
    """The points with their mirror images, h(1/alpha) = (h(alpha) - 1)/alpha + 1, and h(0) = 1, from left to right."""
    unique: dict[Fraction, Fraction] = {}
    for alpha, height in points:
        unique[alpha] = min(unique.get(alpha, height), height)
    mirrored = [(1 / alpha, 1 - (1 - height) / alpha) for alpha, height in unique.items() if alpha > 1]
    return sorted([(Fraction(0), Fraction(1)), *mirrored, *unique.items()])


def lower_hull(points: Iterable[Point]) -> list[Point]:
    """The lower convex hull of points given from left to right."""
    hull: list[Point] = []
    for point in points:
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_down(a: Point, b: Point, c: Point) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) >= (c[1] - b[1]) * (b[0] - a[0])


def from_hull(hull: list[Point]) -> Table:
    """The pair of a convex polygon that starts at (0, 1), is its own mirror image, and stays at its last height."""
    slopes = [slope(a, b) for a, b in itertools.pairwise(hull)]
    values, masses = [], []
    for (alpha, _), before, after in zip(hull[1:], slopes, [*slopes[1:], Fraction(0)], strict=True):
        if after > before:  # a point on the last, level stretch is no loss
            values.append(_log(alpha))
            masses.append(float(alpha * (after - before)))
    lost = float(hull[-1][1])
    return Table(np.array(values), np.array(masses), lost, lost, slack=4.0, wobble=4.0, symmetric=True)


def lower_corners(before: Point, low: list[Point], high: list[Point], floor: Fraction) -> list[Point]:
    """Corners, from low[0] on, of a function below a convex profile, given points below and above it, from left to
    right; `before` lies above the profile (or on a line below it that passes low[0]), `floor` is its limit from below.

    Convexity continues the chord from a point above to the next one below into the cell behind it, and likewise from
    the right: in every cell the larger of the two lines, which meet in a corner. Where one of them says nothing, the
    line that comes from the left goes on, down to the floor."""
    found, falls = [low[0]], slope(before, low[0])
    for j in range(len(low) - 2):
        here, there = low[j], low[j + 1]
        falls, after = slope(high[j - 1] if j else before, here), slope(there, high[j + 2])
        if falls < after:  # otherwise, or where they meet outside, one of them is above the chord
            meet = (there[1] - here[1] + falls * here[0] - after * there[0]) / (falls - after)
            if here[0] < meet < there[0]:
                height = here[1] + falls * (meet - here[0])
                if height <= floor:
                    break
                found.append((meet, height))
        if there[1] <= floor:
            break
        found.append(there)
    alpha, height = found[-1]
    return [*found, (alpha - (height - floor) / falls, floor)] if falls < 0 and height > floor else found


def slope(a: Point, b: Point) -> Fraction:
    return (b[1] - a[1]) / (b[0] - a[0])


def from_convex(hull: list[Point]) -> Table:
    """The pair of a convex polygon that starts at (0, 1), and stays at its last height: not its own mirror image. What
    Q has and P never has is 1 plus the first slope."""
    found = from_hull(hull)
    back = 1 + (hull[1][1] - hull[0][1]) / (hull[1][0] - hull[0][0])
    return replace(found, back=float(back), symmetric=False)


def _log(alpha: Fraction) -> float:
    """Antisymmetric to the last digit: mirrored corners have opposite losses."""
    if alpha < 1:
        return -_log(1 / alpha)
    if alpha > _HUGE:
        return math.log(alpha.numerator) - math.log(alpha.denominator)
    return math.log1p(float(alpha - 1)) if alpha < 2 else math.log(float(alpha))


def _expm1(eps: float) -> Fraction:
    """e^eps - 1, relative to far more digits than doubles have."""
    if eps < _SMALL:
        x, total = Fraction(eps), Fraction(0)
        for k in range(_TERMS, 0, -1):
            total = (1 + total) * x / k
        return total
    return Fraction(Context(prec=_DIGITS).exp(Decimal(eps))) - 1


def privacy_profile(epsilons: Sequence[float], deltas: Sequence[float]) -> Table:
    """(eps_i, delta_i)-DP for all i is f-DP with the largest of their curves (Dong, Roth, Su 2022): the profile is the
    largest one below all points, and the pair with that profile is one such mechanism."""
    points: list[Point] = []
    least = Fraction(1)
    for eps, delta in sorted(zip(epsilons, deltas, strict=True)):
        if eps <= _LARGEST:
            least = min(least, Fraction(delta))  # a profile falls
            points.append((1 + _expm1(eps), least))
    if least >= 1:
        return revealed()
    return from_hull(lower_hull(mirror_images(points)))


def trade_off(fpr: Sequence[float], fnr: Sequence[float]) -> Table:
    """f-DP means that no test does better than f, in either order of the neighbours, hence none better than the larger
    of f and its inverse; the pair with that very curve dominates (Dong, Roth, Su 2022).

    The profile of f is h(alpha) = max over corners of 1 - y - alpha x, with corners of its own at the slopes of f; that
    of the inverse has x and y exchanged. The profile of the larger curve is the convex hull of the smaller profile,
    whose corners are among those of the two.
    """
    corners = lower_hull((Fraction(x), Fraction(y)) for x, y in zip(fpr, fnr, strict=True))
    corners = [c for i, c in enumerate(corners) if i == 0 or corners[i - 1][1] > 0]  # from where f is 0 on, no more
    slopes = [(a[1] - b[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(corners)]  # falling, positive
    if not slopes:
        return revealed()
    forth = _Lines([(y, x) for x, y in corners], slopes)
    back = _Lines([(x, y) for x, y in reversed(corners)], [1 / s for s in reversed(slopes)])
    points = [(a, min(forth.at(a), back.at(a))) for a in sorted({*slopes, *(1 / s for s in slopes)})]
    if points[-1][1] >= 1:
        return revealed()
    return from_hull(lower_hull([(Fraction(0), Fraction(1)), *points]))


class _Lines:
    """max over corners (y, x) of 1 - y - alpha x, x rising, with the corner changing where alpha passes a slope."""

    def __init__(self, corners: list[Point], slopes: list[Fraction]) -> None:
        self.corners, self.rising = corners, sorted(slopes)

    def at(self, alpha: Fraction) -> Fraction:
        passed = len(self.rising) - bisect.bisect_right(self.rising, alpha)  # slopes above alpha
        y, x = self.corners[passed]
        return 1 - y - alpha * x


def revealed() -> Table:
    """The output gives the record away."""
    return Table(np.zeros(1), np.zeros(1), 1.0, 1.0)
