"""Choices of several ranges, in any order: both ends of what the best adversary attains, on one grid.

Notation of `adaptive_range.py`: (T_e D)(a) is the largest value at a of chords of D over [u, e^e u], u <= a <= e^e u.
An analyst runs choices of ranges e_1, ..., e_k, each when the outputs of those before are known, and picks the order on
the way. With S still to come, the largest H_a is

    V_S = max over e in S of T_e V_(S - e),    V of nothing = D_0(a) = (1 - a)_+:

a programme over subsets, or over counts where ranges are equal. *Any* order is a strategy, so a lower end is that of
one order, T_(e_1) ... T_(e_k) D_0: with the largest range last (next to D_0) it is as large as V to some 1e-4, since
only the last choices feel the corner of D_0. (It is not exactly the best one: with functions of two corners in place of
D_0 the other order may win, so that no exchange of two choices proves it; the programme asks for no such thing.)

*Beside other steps, and in groups.* T_e(R * D) <= R * (T_e D) for a fixed pair R. So V_(S + S') <= V_S * V_S': the next
choice is one of S, say, and T_e(V_(S - e) * V_S') <= V_S' * (T_e V_(S - e)) by induction. Where a programme over all of
S is too long, groups of neighbouring ranges have one each, and their product is above all orders of all of them.

*On a grid* of step h the ends of [x - t, x - t + e] need not both be points. Above, D lies below its chords between
points; t is cut where either end passes a point, and on each piece the bound of `adaptive_range.py` holds, for both
ends move in one cell each. Below, a polygon L with corners at points lies below D everywhere. T_e L is convex; with
lower bounds v (of some t) and upper bounds at points, it lies in every cell above two lines: from the upper bound at
the point before through v at its left end, and likewise from the right. They are below the chord of v by at most

    (c - l)(r - c)/(r - l),    c, l, r what the chord, and the lines, rise over the cell, l < c < r (0 otherwise),

where they meet. With v lowered by the larger of these of both of its cells, chords of v are below T_e L everywhere: the
next polygon. It begins as 1 - a and ends as 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privloss.numerics.floats import UNIT, Real, lowered, raised

Uses = tuple[tuple[float, int], ...]  # (range, count), the largest range first

_FINEST = 256.0  # points in the largest range
_PROGRAMME, _CHAIN = 2e8, 1e8  # points times pieces of all orders, and of one
_MOST_STATES = 1100
_ABOVE, _BELOW = 9.0, 5.0  # standard deviations of the whole loss beyond its mean, and below 0
_EACH = 64.0  # roundings of one use


def states(uses: Uses) -> int:
    """Of a programme: how many counts may be left."""
    return math.prod(count + 1 for _, count in uses)


def groups(uses: Uses) -> list[Uses]:
    """Neighbouring ranges with a programme for each, as few groups as its length allows."""
    found: list[list[tuple[float, int]]] = []
    for use in uses:
        if found and states((*found[-1], use)) <= _MOST_STATES:
            found[-1].append(use)
        else:
            found.append([use])
    return [tuple(group) for group in found]


@dataclass(frozen=True)
class JointGrid:
    """Points x = 0, h, 2h, ... and as many below as a recursion needs."""

    uses: Uses
    h: float
    zero: int
    size: int

    @classmethod
    def of(cls, uses: Uses, passes: float, work: float) -> JointGrid:
        """As fine as so many uses of a choice allow."""
        total = sum(eps * count for eps, count in uses)
        deviation = 0.5 * math.sqrt(sum(eps * eps * count for eps, count in uses))
        largest = uses[0][0]
        top = min(_ABOVE * deviation + 0.5 * deviation**2, total) + largest
        bottom = min(_BELOW * deviation, total) + largest
        mean = sum(eps * count for eps, count in uses) / sum(count for _, count in uses)
        h = max(largest / _FINEST, math.sqrt(passes * mean * (top + bottom) / work))
        zero = math.ceil(bottom / h)
        return cls(uses, h, zero, zero + math.ceil(top / h) + 1)

    def points(self) -> Real:
        return (np.arange(self.size) - self.zero) * self.h

    def first(self, sign: float) -> Real:
        """D_0 at the points, up to a few roundings of the largest one."""
        x = self.points()
        return np.asarray(np.maximum(-np.expm1(np.minimum(x - sign * 8 * UNIT * float(np.abs(x).max()), 1.0)), 0.0))


@dataclass(frozen=True)
class _Choice:
    """One range on a grid: m cells of it, and a part `over` of one more."""

    eps: float
    h: float
    m: int
    over: float
    pad: int

    @classmethod
    def of(cls, eps: float, grid: JointGrid) -> _Choice:
        m = math.floor(raised(eps / grid.h, 4))
        over = min(max(eps - m * grid.h, 0.0), grid.h)
        return cls(eps, grid.h, m, over, m + 3)

    def shares(self, t: Real) -> tuple[Real, Real]:
        """P-masses of the losses t and t - eps."""
        whole, rest = -math.expm1(-self.eps), np.maximum(self.eps - t, 0.0)
        return -np.expm1(-rest) / whole, np.exp(-rest) * -np.expm1(-t) / whole

    @property
    def at_points(self) -> Real:
        """t with the lower end at a point; with `over` added, and m for 0, the upper end is at one."""
        return self.h * np.arange(self.m + 1)


def _padded(found: Real, choice: _Choice, sign: float) -> Real:
    """Before the first point the chord from D(0) = 1, rounded up or down; beyond the last one what it is there."""
    lead = np.exp(-choice.h * np.arange(choice.pad, 0, -1)) * (1 - sign * 1e-12)
    before = 1 - (1 - found[..., :1]) * lead
    return np.concatenate([before, found, np.repeat(found[..., -1:], choice.pad, axis=-1)], axis=-1)


def _above(found: Real, choice: _Choice) -> Real:
    """Upper bounds on T_e of what lies below `found` (the last axis: points of the grid)."""
    h, m, pad, n = choice.h, choice.m, choice.pad, found.shape[-1]
    whole = _padded(found, choice, 1.0)
    grown, part = math.expm1(h), math.expm1(choice.over) / math.expm1(h)
    steps = np.diff(whole, axis=-1)
    up_to = whole[..., :-1] + min(part * (1 - 1e-12), 1.0) * steps  # at x + over: chords, and they fall
    back = math.expm1(max(h - choice.over, 0.0)) / grown
    down_to = whole[..., :-1] + min(back * (1 - 1e-12), 1.0) * steps  # at x + h - over
    intercept = whole[..., :-1] - steps / grown  # of the cell after each point, at a = 0
    slack = 32 * UNIT * (1 + 1 / grown)
    t = choice.at_points
    (up, down), (up_b, down_b) = choice.shares(t), choice.shares(np.minimum(t + choice.over, choice.eps))
    bend = np.exp(t + h) / (4 * math.expm1(choice.eps)) * (1 + 1e-9)
    first, second = math.expm1(choice.over) ** 2, math.expm1(max(h - choice.over, 0.0)) ** 2
    best = found
    before = found
    for i in range(m + 1):
        low, high = pad - i, pad - i + m  # the points below x - t, and below x - t + m h
        between = up_b[i] * down_to[..., low - 1 : low - 1 + n] + down_b[i] * whole[..., high : high + n]
        cell = intercept[..., low - 1 : low - 1 + n]
        near = whole[..., low - 1 : low - 1 + n] * slack
        curved = np.maximum(cell - intercept[..., high : high + n], 0.0) + near
        best = np.maximum(best, np.maximum(before, between) + (bend[i] * first) * curved)
        if i == m:
            break
        after = up[i + 1] * whole[..., low - 1 : low - 1 + n] + down[i + 1] * up_to[..., high - 1 : high - 1 + n]
        curved = np.maximum(cell - intercept[..., high - 1 : high - 1 + n], 0.0) + near
        best = np.maximum(best, np.maximum(between, after) + (bend[i] * second) * curved)
        before = after
    return np.asarray(np.minimum(raised(best, _EACH), 1.0))


def _below(polygon: Real, grid: JointGrid, choice: _Choice) -> Real:
    """A polygon below T_e of a polygon that is 1 - a up to the first point and 0 from the last one on."""
    h, m, pad, n = choice.h, choice.m, choice.pad, len(polygon)
    whole = _padded(polygon, choice, -1.0)
    steps, grown = np.diff(whole), math.expm1(h)
    up_to = whole[:-1] + math.expm1(choice.over) / grown * steps
    down_to = whole[:-1] + math.expm1(max(h - choice.over, 0.0)) / grown * steps
    t = choice.at_points
    (up, down), (up_b, down_b) = choice.shares(t), choice.shares(np.minimum(t + choice.over, choice.eps))
    best = polygon
    for i in range(m + 1):
        low, high = pad - i, pad - i + m
        if i:
            best = np.maximum(best, up[i] * whole[low : low + n] + down[i] * up_to[high : high + n])
        between = up_b[i] * down_to[low - 1 : low - 1 + n] + down_b[i] * whole[high : high + n]
        best = np.maximum(best, between)
    attained = np.asarray(lowered(best, _EACH))
    attained[0], attained[-1] = polygon[0], 0.0
    return np.maximum(attained - _sags(attained, _above(polygon, choice), float(grid.points()[0]), h), 0.0)


def _sags(low: Real, high: Real, first: float, h: float) -> Real:
    """How much lower a convex function between these bounds at points may be than the chords of `low`, next to each
    point; before the first one it is 1 - a, and beyond the last one 0."""
    chord = np.diff(low)
    left = np.append(-math.exp(first) * math.expm1(h), (low[1:-1] - high[:-2]) * math.exp(h))
    right = np.append((high[2:] - low[1:-1]) * math.exp(-h), 0.0)
    over, under = np.maximum(chord - left, 0.0), np.maximum(right - chord, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sag = np.where((over > 0) & (under > 0), over * under / (over + under), 0.0)
    sag = sag * (1 + 1e-9) + 32 * UNIT * (np.abs(low[:-1]) + np.abs(low[1:]))
    found = np.maximum(np.append(sag, 0.0), np.append(0.0, sag))
    found[0] = 0.0
    return np.asarray(found)


@lru_cache(maxsize=32)
def any_order(uses: Uses, share: float = 1.0) -> tuple[JointGrid, Real]:
    """Upper bounds on V at the points of a grid: every order, picked on the way; with a share of the usual work."""
    counts = [count for _, count in uses]
    grid = JointGrid.of(uses, 2.0 * states(uses) * len(uses), share * _PROGRAMME)
    choices = [_Choice.of(eps, grid) for eps, _ in uses]
    level: dict[tuple[int, ...], Real] = {(0,) * len(uses): grid.first(1.0)}
    for _ in range(sum(counts)):
        following: dict[tuple[int, ...], Real] = {}
        for k, choice in enumerate(choices):
            open_ones = [state for state in level if state[k] < counts[k]]
            if not open_ones:
                continue
            found = _above(np.stack([level[state] for state in open_ones]), choice)
            for state, row in zip(open_ones, found, strict=True):
                after = (*state[:k], state[k] + 1, *state[k + 1 :])
                following[after] = np.maximum(following[after], row) if after in following else row
        level = following
    return grid, level[tuple(counts)] + 1e-300


@lru_cache(maxsize=32)
def largest_last(uses: Uses) -> tuple[JointGrid, Real]:
    """A polygon, given at the points of a grid, below what the order with the largest range last attains."""
    grid = JointGrid.of(uses, 4.0 * sum(count for _, count in uses), _CHAIN)
    found = grid.first(-1.0)  # 0 is a point of the grid
    for eps, count in uses:
        choice = _Choice.of(eps, grid)
        for _ in range(count):
            found = _below(found, grid, choice)
    return grid, found
