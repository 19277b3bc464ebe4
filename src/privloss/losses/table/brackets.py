"""Pairs with finitely many losses below and above one use of a pair with a closed profile: second order in the distance
of the losses, at any number of uses, where no line falls and few hits rule every tilt.

A profile h is convex, 1 at 0 and at least 1 - a. So the lower hull of points above it is the profile of a pair that
dominates, and the lower hull of what `lower_corners` finds of one that is dominated. Below a = 1 points
come from the other direction, h(a) = a h'(1/a) + 1 - a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privloss.losses.table.polygon import Point, from_convex, lower_corners, lower_hull
from privloss.losses.table.table import Profile, Table
from privloss.numerics.floats import Real, exp_down, exp_up, lowered, raised, widened
from privloss.numerics.work import charge

CORNERS = 1_600
MOST_ROWS = 4  # different members that are worth it
_LARGEST = 600.0
_A_CORNER = 3e4  # evaluations that a corner in whole fractions takes the time of (0.14 ms, measured)
MARGIN = 45.0  # nats below delta from which on outcomes need no corners
_ORIGIN: Point = (Fraction(0), Fraction(1))


@dataclass(frozen=True, eq=False)
class Brackets:
    """For every member of a bundle a table below and one above it."""

    pairs: tuple[tuple[Table, Table], ...]
    count: Real


@dataclass(frozen=True)
class OneUse:
    """Logs of bounds on delta(eps) of finite losses, for eps >= 0, the mass of infinite ones, forth and back, and what
    no finite loss exceeds in either direction: there roundings of a profile would be taken for outcomes that Q has and
    P has not, in every use anew."""

    forth: Profile
    back: Profile
    lost: tuple[float, float]
    lost_back: tuple[float, float]
    ends: tuple[float, float]
    price: float = 0.0  # evaluations that reading a profile once takes the time of

    def tables(self, losses: Real) -> tuple[Table, Table]:
        """Below and above, with corners at about these losses."""
        charge((_A_CORNER + 2 * self.price) * len(losses))
        low, high = [_ORIGIN], [_ORIGIN]
        for alpha in np.unique(np.exp(np.clip(losses, -_LARGEST, _LARGEST))).tolist():
            lower, upper = self._at(alpha)
            low.append((Fraction(alpha), lower))
            high.append((Fraction(alpha), min(upper, high[-1][1])))
        below = corners_below(low, high, Fraction(self.lost[0]))
        return from_convex(lower_hull(below)), from_convex(lower_hull(high))

    def _at(self, alpha: float) -> tuple[Fraction, Fraction]:
        """Bounds on the profile at this very alpha."""
        exact = Fraction(alpha)
        eps = math.log(alpha)
        off = 4e-16 * abs(eps)
        forward = eps >= 0
        profile, lost = (self.forth, self.lost) if forward else (self.back, self.lost_back)
        low, high = lost
        if abs(eps) - off < self.ends[0 if forward else 1]:  # a profile falls
            low += lowered(exp_down(profile(abs(eps) + off)[0]), 2)
            high += raised(exp_up(min(profile(max(abs(eps) - off, 0.0))[1], 0.0)), 2)
        lower, upper = Fraction(max(lowered(low, 2), 0.0)), Fraction(min(raised(high, 2), 1.0))
        if not forward:
            lower, upper = exact * lower + 1 - exact, exact * upper + 1 - exact
        return max(lower, 1 - exact), upper


def corners_below(low: list[Point], high: list[Point], floor: Fraction) -> list[Point]:
    """Corners of a function below the profile, and above 1 - a: points next to 0 where roundings hide that are left
    out, as before them the line 1 - a is below the profile too."""
    while True:
        found = lower_corners((Fraction(-1), Fraction(2)), low, high, floor)
        lost = max((alpha for alpha, height in found if height < 1 - alpha), default=None)
        if lost is None:
            return found
        kept = [i for i, (alpha, _) in enumerate(low) if alpha > lost]
        low, high = [_ORIGIN, *(low[i] for i in kept)], [_ORIGIN, *(high[i] for i in kept)]


def refined(losses: Real, count: int = CORNERS) -> Real:
    """About so many losses, each gap between neighbours divided alike."""
    own = np.unique(losses)
    if len(own) > count:
        return np.asarray(own[np.unique(np.linspace(0, len(own) - 1, count).astype(int))])
    parts = max(1, count // max(len(own) - 1, 1))
    steps = np.arange(parts) / parts
    return np.append((own[:-1, None] + np.diff(own)[:, None] * steps).ravel(), own[-1])


def bracketed(row: Table, log_delta: float) -> tuple[Table, Table]:
    """Of a row with a density: its nodes, and losses between them, are the corners."""
    density = row.density
    if density is None:
        return row, row
    lost, lost_back = (
        widened(mass, 16 + float(np.max(row.slack))) if mass else (0.0, 0.0) for mass in (row.delta, row.back)
    )
    with np.errstate(divide="ignore", over="ignore"):
        seen = np.maximum(np.log(row.masses), np.log(row.masses) - row.values) > log_delta - MARGIN
    losses = refined(row.values[seen])
    top, least = (raised(end, 64, 1 + abs(end)) for end in density.top)
    beyond = -raised(least, 8, 1 + abs(least)), raised(top, 8, 1 + abs(top))
    one = OneUse(*density.profile, lost, lost_back, (top, least), density.price)
    return one.tables(np.concatenate([losses, beyond]))
