"""Choices of bounded range beside other steps, several ranges in one plan, and very many uses.

Notation of `closed/adaptive_range.py`: (T D)(a) is the largest E_P[D(a/r)] over choices of range eps with likelihood
ratios r, attained by two-point mechanisms, and D_k = T^k D_0. For a fixed pair R let (R * D)(a) = E_R[D(a/r)].

*Blocks.* T(R * D) <= R * (T D), since the largest value of a mean is at most the mean of the largest values. So each
choice may be moved behind every other step, in whatever order an adversary runs them, also after seeing earlier
outputs: a plan is dominated by the product of its other pairs and the pair with the profile D_k of all its k choices,
in whatever order these are picked (`closed/joint_ranges.py`; where they are too many for that, a pair for every range,
or for every group of ranges). A plan names no order: all else may come first, and then that product is the truth.

*From above* D_k lies below the hull of its upper bounds at points of the grid. *From below*, convexity continues the
chords of neighbouring points into a cell, from both sides: a function below D_k, whose lower hull is the profile of a
pair that D_k dominates (`table/polygon.py`).

*Very many uses.* Let G(M) be the profile of a loss N(M/2, M). With k = eps^2/4 and M > k,

    T G(M) <= G(M'),  M' = M^2/(M - k).

Proof. The ratio e^W = 1/r of a two-point choice and G(M) together has mean 1 under P, and W is a mixture of two normal
laws of variance M at a distance of eps. Its density f over that, g, of N(-M'/2, M') has a logarithm with second
derivative at most eps^2/(4 M^2) - 1/M + 1/M' = 0: it is concave, so f - g changes its sign at most twice, from - to +
and back. Both laws have mass 1 and E[e^W] = 1; so E h(e^W) is larger under g for every convex h (Shaked, Shanthikumar
2007, Thm. 3.A.44), as for h(x) = (1 - a x)_+. With D_0 <= G(m) for any m > 0, uses turn into noise one by one. In
units of k, N = M/k - 1 grows to N + 1 + 1/N, in n uses to at most N + n + 1/N + log(1 + (n-1)/N). Of several ranges the
worst order has the largest next to D_0: with M = 1 and k_2 <= k_1 <= 1/2 the other order has a 1/M'' that is larger by
k_1 k_2 (k_1 - k_2), and M' rises with M for M >= 2k, that is N >= 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.adaptive_range import AdaptiveRange, Grid
from privloss.losses.closed.bounded_range import BoundedRangeLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.closed.joint_ranges import Uses, any_order, groups, largest_last
from privloss.losses.composed import ComposedLoss
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.polygon import Point, from_hull, lower_corners, lower_hull, mirror_images
from privloss.losses.table.table import Table
from privloss.numerics.floats import Real, exp_up, lowered, raised

_CORNERS = 800  # of a block's polygon, and as many mirror images
_REACH = 9.0  # standard deviations of the whole loss that its grid covers
_BEYOND = 60  # points further out, half a standard deviation apart
_LARGEST = 600.0  # beyond it what is left of a profile counts as disclosure
_STARTS = np.geomspace(1.0, 64.0, 61)  # N tried
_TOGETHER, _WIDEST = 400, 300.0  # choices that one chain of all ranges has, and the largest range of it
_EXTRA = 2.0  # uses, beside log n, that turning n of them into noise costs


@dataclass(frozen=True)
class Ranges:
    """A plan with choices of bounded range."""

    uses: Uses
    rest: ComposedLoss  # dominates all else
    members: tuple[ComposedLoss, ...]  # what all but the first range attains
    without: tuple[ComposedLoss, ...]  # what the plan without its choices attains

    def above(self) -> tuple[ComposedLoss, ...]:
        """What dominates the plan, the best first; nothing where `AdaptiveRange` answers."""
        in_blocks = tuple(use for use in self.uses if use[1] == 1 or _better_in_a_block(*use))
        if self._alone and in_blocks:
            return ()
        noise = tuple(use for use in self.uses if use not in in_blocks)
        together = groups(in_blocks) if in_blocks and in_blocks[0][0] <= _WIDEST else [(use,) for use in in_blocks]
        blocks = [_of_a_group(group, 1 / math.sqrt(len(together))) for group in together]
        found = [ComposedLoss.of([*blocks, *_as_noise(noise), self.rest])]
        if any(count > 1 for _, count in in_blocks):
            found.append(ComposedLoss.of([*_as_noise(self.uses), self.rest]))
        return tuple(found)

    def below(self) -> tuple[ComposedLoss, ...]:
        """What some adversary attains: all else first, then the best choices, the largest range last; where they are
        too many for one chain, the best of the first range only."""
        eps, count = self.uses[0]
        if len(self.uses) > 1 and sum(n for _, n in self.uses) <= _TOGETHER and eps <= _WIDEST:
            return tuple(ComposedLoss.of([TableLoss.one(chain(self.uses)), member]) for member in self.without)
        if self._alone or (count > 1 and not _better_in_a_block(eps, count)):
            return ()
        own = _one(eps) if count == 1 else TableLoss.one(block(eps, count)[0])
        return tuple(ComposedLoss.of([own, member]) for member in self.members)

    @property
    def _alone(self) -> bool:
        return len(self.uses) == 1 and not self.rest.parts


def _one(eps: float) -> PrivacyLoss:
    return BoundedRangeLoss(np.array([eps]), np.ones(1))


def _of_a_group(uses: Uses, share: float) -> PrivacyLoss:
    """What dominates some choices, in any order."""
    if len(uses) > 1:
        return TableLoss.one(in_any_order(uses, share))
    ((eps, count),) = uses
    return _one(eps) if count == 1 else TableLoss.one(block(eps, count)[1])


def _as_noise(uses: Uses) -> list[PrivacyLoss]:
    return [GaussianLoss(as_noise(uses))] if uses else []


def _better_in_a_block(eps: float, count: int) -> bool:
    """Whether the recursion on a grid costs less than turning uses into noise, in uses: cells of 1/m let each have
    2/m^2 too much variance."""
    grid = _grid(eps, count)
    return grid is not None and 2 * count / grid.m**2 < _EXTRA + math.log(count)


def as_noise(uses: Uses) -> float:
    """mu^2 of normal noise that dominates all these uses, the largest range first: the least over a few starts."""
    unit = 0.25 * uses[0][0] ** 2
    total = unit * (1 + _STARTS)
    for eps, count in uses:
        k = 0.25 * eps * eps
        n = total / k - 1
        total = k * (1 + n + count + 1 / n + np.log1p((count - 1) / n))
    return raised(float(total.min()), 64 + 16 * len(uses))


def _grid(eps: float, count: int) -> Grid | None:
    """Over nearly all of the profile: the mean loss is at most eps^2/8 each."""
    return AdaptiveRange(eps, count).grid(0.0, _REACH + 0.25 * eps * math.sqrt(count))


@lru_cache(maxsize=64)
def block(eps: float, count: int) -> tuple[Table, Table]:
    """Pairs below and above all uses of one range, count > 1."""
    grid = _grid(eps, count)
    if grid is None:
        raise ValueError("no grid is fine enough")
    return _between(((eps, count),), _Known(grid.points(), grid.below(), grid.above(), grid.zero))


@lru_cache(maxsize=64)
def in_any_order(uses: Uses, share: float = 1.0) -> Table:
    """A pair above some choices in whatever order they are picked."""
    grid, high = any_order(uses, share)
    known = _Known(grid.points(), grid.first(-1.0), high, grid.zero)
    return _upper(uses, known, known.corners())


@lru_cache(maxsize=64)
def chain(uses: Uses) -> Table:
    """A pair below some choices, attained with the largest range last."""
    grid, low = largest_last(uses)
    x = grid.points()
    at = np.flatnonzero(np.abs(x) < _LARGEST)
    # a polygon that falls may be moved to the left
    places = np.exp(lowered(x[at], 8, 1 + np.abs(x[at])))
    places[at == grid.zero] = 1.0
    hull = lower_hull([(Fraction(0), Fraction(1)), *_points(places, low[at])])
    start = next(i for i, point in enumerate(hull) if point[0] >= 1)
    every = max(1, (len(hull) - start) // _CORNERS)
    kept = [*hull[start:-1:every], hull[-1]]
    return from_hull(lower_hull(mirror_images(lower_corners(hull[start - 1], kept, kept, Fraction(0)))))


@dataclass(frozen=True, eq=False)
class _Known:
    """Bounds on a profile at points, one of which is 0."""

    x: Real
    low: Real
    high: Real
    zero: int

    def corners(self) -> NDArray[np.intp]:
        """Some of the points, 0 among them."""
        stride = max(1, (len(self.x) - self.zero) // _CORNERS)
        at = np.arange(self.zero % stride, len(self.x), stride)
        return at[np.abs(self.x[at]) < _LARGEST]


def _upper(uses: Uses, known: _Known, at: NDArray[np.intp]) -> Table:
    start = int(np.count_nonzero(at < known.zero))  # where the loss is 0
    above = _above(known, at, start)
    points = [*above[start:], *_far_out(uses, float(known.x[at[-1]]), float(above[-1][1]))]
    return from_hull(lower_hull(mirror_images(points)))


def _above(known: _Known, at: NDArray[np.intp], start: int) -> list[Point]:
    """A profile falls: bounds from above may move to the right, and those from below to the left."""
    right = np.exp(raised(known.x[at], 8, 1 + np.abs(known.x[at])))
    right[start] = 1.0
    return _points(right, np.minimum(known.high[at], 1.0))


def _between(uses: Uses, known: _Known) -> tuple[Table, Table]:
    """Pairs below and above."""
    at = known.corners()
    start = int(np.count_nonzero(at < known.zero))
    above = _above(known, at, start)
    left = np.exp(lowered(known.x[at], 8, 1 + np.abs(known.x[at])))
    left[start] = 1.0
    below = _points(left, known.low[at])
    lower = lower_corners(above[start - 1], below[start:], above[start:], Fraction(0))
    return from_hull(lower_hull(mirror_images(lower))), _upper(uses, known, at)


def _far_out(uses: Uses, end: float, height: float) -> list[Point]:
    """Points above the profile beyond the grid: it is below that of noise, and 0 from the largest loss on."""
    noise, top = GaussianLoss(as_noise(uses)), math.fsum(eps * count for eps, count in uses)
    step = 0.25 * math.sqrt(sum(eps * eps * count for eps, count in uses))
    found = []
    for x in (end + step * np.arange(1, _BEYOND)).tolist():
        if x < min(top, _LARGEST):
            bound = min(height, exp_up(noise.hockey_stick(lowered(x, 8, 1 + x))[1]))
            found.append((Fraction(math.exp(x)), Fraction(bound)))
    if top < _LARGEST:
        found.append((Fraction(math.exp(raised(top, 64, 1 + top))), Fraction(0)))
    return found


def _points(alpha: Real, height: Real) -> list[Point]:
    return [(Fraction(a), Fraction(h)) for a, h in zip(alpha.tolist(), height.tolist(), strict=True)]
