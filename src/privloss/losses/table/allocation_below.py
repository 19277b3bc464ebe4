"""One epoch of random allocation from below: what can be told from a coarser look at it.

Notation of `allocation.py`. Let g be the cell of a ratio on a grid of step h below B, and K the number of ratios from B
on. Whoever sees only

- the sum of all cells, if K = 0,
- the cell of the large ratio on a grid of even ratios, and the sum of the cells of the others, roughly, if K = 1,
- the cell of the largest ratio, if K > 1,

sees a function of what the epoch shows, so every event A there has P[A] - a Q[A] <= H_a of the epoch: a lower bound.
(Post-processing is conditional expectation of the ratio S, which lowers the convex order; moving ratios to the ends of
their cells raised it.) What is lost is of second order in h. With p, q the masses of a cell under P and Q, p_S, q_S
those of all small ones and * for convolution, the masses are

    K = 0:  P: p_S * q_S^(t-1)                                       Q: q_S^t
    K = 1:  P: p q_S^(t-1) + (t-1) q (p_S * q_S^(t-2))               Q: t q q_S^(t-1)
    K > 1:  P: p (F^(t-1) - F_B^(t-1)) + (t-1) q (G F^(t-2) - G_B F_B^(t-2)),  Q: at most t q (F_1^(t-1) - F_B^(t-1))

with F, G the chance of a ratio below the cell (F_1: below its upper end) under Q and P, F_B, G_B that of a small one.
Sums are taken modulo the length of the transform: a function of the sum, so nothing is missed beyond its ends. Tilted
laws, for rare sums, are not: there what the other turns add, inflated by the tilt, is bounded (Chernoff) and taken off.

The bounds at the points of `allocation.above`, and those above, enclose a convex profile; the corners that convexity
leaves below it (`brackets.py`) are the pair. Any number of epochs of it are dominated by as many of the real one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from privloss.losses.table.allocation import FAR, LARGEST_TRANSFORM, WINDOW, above, cell_masses
from privloss.losses.table.brackets import corners_below
from privloss.losses.table.polygon import Point, from_convex, lower_hull
from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real, padded_up
from privloss.numerics.fourier import convolved, fast_size, powered

_FINE = 96.0  # grid cells per standard deviation of one ratio
_EXPECTED_LARGE = (1e-6, 1e-3, 2e-2)  # large ratios of an epoch: the first for which the grid is not too long
_RATIO = 1.02  # of cells of large ratios
_BINS, _SEEN = 400, 9.0  # of the sum beside a large ratio, over so many standard deviations
_TILTS = (0.0, 2.5, 6.0)  # in units of 1/standard deviation of the sum, and their negatives
_MOST_TILT = 14.0  # times the largest small ratio
_FURTHER = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # tilts of Chernoff's bounds, in units of 1/largest small ratio


@lru_cache(maxsize=16)
def allocation_below(steps: int, distance: float) -> Table | None:
    """A table that one epoch dominates; None where there is none above either."""
    higher = above(steps, distance)
    if higher is None:
        return None
    tried = (_Epoch.of(steps, distance, expected) for expected in _EXPECTED_LARGE)
    epoch = next((each for each in tried if each.size <= LARGEST_TRANSFORM), None)
    if epoch is None:
        return None
    alphas = np.array([float(alpha) for alpha, _ in higher.points[1:]])
    none, some = _without_large(epoch, alphas), _with_large(epoch, alphas)
    calls, puts = none[0] + some[0], none[1] + some[1]
    low: list[Point] = [higher.points[0]]
    for (alpha, _), call, put in zip(higher.points[1:], calls.tolist(), puts.tolist(), strict=True):
        low.append((alpha, max(Fraction(call), Fraction(put) + 1 - alpha, 1 - alpha, Fraction(0))))
    return from_convex(lower_hull(corners_below(low, higher.points, Fraction(0))))


@dataclass(frozen=True, eq=False)
class _Masses:
    """Of cells, under P or Q, between bounds."""

    low: Real
    high: Real

    @classmethod
    def around(cls, y: Real) -> _Masses:
        """Under N(0, 1), between these places; what lies above the last one is a cell too."""
        found, doubt, beyond = cell_masses(y)
        low, high = np.maximum(found - doubt, 0.0), found + doubt
        return cls(np.append(low, beyond * (1 - 1e-8)), np.append(high, beyond))

    def cut(self, at: int) -> tuple[_Masses, _Masses]:
        return _Masses(self.low[:at], self.high[:at]), _Masses(self.low[at:], self.high[at:])


@dataclass(frozen=True, eq=False)
class _Epoch:
    """The cells of one ratio, and the window of their sums."""

    steps: int
    step: float
    deviation: float
    edges: Real  # lower ends of the large cells
    small: tuple[_Masses, _Masses]  # under P and Q
    large: tuple[_Masses, _Masses]
    first: int
    size: int

    @classmethod
    def of(cls, steps: int, distance: float, expected: float) -> _Epoch:
        spread = math.sqrt(math.expm1(distance * distance))
        step, deviation = spread / _FINE, spread * math.sqrt(steps)
        at_b = -float(ndtri(expected / steps))
        cut = math.ceil(max(math.exp(distance * at_b - 0.5 * distance**2), 2.0) / step)
        end = math.exp(distance * (FAR + distance) - 0.5 * distance**2)
        more = max(math.ceil(math.log(end / (cut * step)) / math.log(_RATIO)), 1)
        edges = np.concatenate([step * np.arange(cut), cut * step * _RATIO ** np.arange(more + 1)])
        with np.errstate(divide="ignore"):
            y = np.log(edges) / distance + 0.5 * distance
        (p_small, p_large), (q_small, q_large) = (_Masses.around(y - shift).cut(cut) for shift in (distance, 0.0))
        half = WINDOW * math.sqrt(steps * math.exp(distance * distance))
        first = max(math.floor((steps - half) / step) - steps, 0)
        size = fast_size(max((steps + WINDOW * deviation + 12 * cut * step) / step - first, cut + 2))
        small, large = (p_small, q_small), (p_large, q_large)
        return cls(steps, step, deviation, edges[cut:], small, large, first, size)

    @property
    def cut(self) -> int:
        return len(self.small[0].low)

    def sums(self, n: int) -> Real:
        """About what n small ratios add up to, at every place of the window."""
        p, q = self.small
        shift = float((p.high - self.step * np.arange(self.cut) * q.high).sum()) / float(q.high.sum())
        return self.step * (self.first + np.arange(self.size)) + n * shift

    def law(self, n: int, high: bool, hit: bool, tilt: float = 0.0) -> tuple[Real, float, float]:
        """Of the sum of n small cells, one of them under P if `hit`: tilted, with sum about 1, a bound on the norm of
        its error, and the logarithm of what it was divided by."""
        p, q = (each.high if high else each.low for each in self.small)
        count = n - hit
        if count:
            found, wrong, scale = powered(q, tilt, count, self.size)
            found = np.maximum(found, 0.0)
        else:
            found, wrong, scale = np.append(1.0, np.zeros(self.size - 1)), 0.0, 0.0
        if hit:
            grown = p * np.exp(tilt * np.arange(self.cut))
            total = float(grown.sum())
            over = max(float(found.sum()) - 1, 0.0)
            wrong += over * float(np.linalg.norm(found))
            found, more = convolved([found / (1 + over), grown / total], self.size)
            wrong, scale = wrong + more, scale + math.log(total)
        return np.roll(np.maximum(found, 0.0), -(self.first % self.size)), padded_up(wrong, 1e-9), scale

    def log_chernoff(self, tilt: float, hit: bool) -> float:
        """log of the least bound on E[e^(tilt (s - first)); s beyond the window], in cells."""
        p, q = (each.high for each in self.small)
        j, best = np.arange(self.cut), math.inf
        for share in _FURTHER:
            more = tilt + share / self.cut
            logs = [float(np.log((each * np.exp(more * (j - self.cut))).sum())) + more * self.cut for each in (p, q)]
            whole = logs[0] * hit + logs[1] * (self.steps - hit)
            best = min(best, whole - (more - tilt) * (self.first + self.size) - tilt * self.first)
        return best


@dataclass(frozen=True, eq=False)
class _Ends:
    """Bounds on the masses of all sums from each place on, or up to each place, under P or Q."""

    low: Real
    high: Real


def _ends(epoch: _Epoch, hit: bool, tilt: float, upper: bool) -> _Ends:
    """Of K = 0. The tilt is positive for sums from a place on, and negative for those up to it."""
    found = []
    with np.errstate(over="ignore", invalid="ignore"):
        for high in (False, True):
            law, wrong, scale = epoch.law(epoch.steps, high, hit, tilt)
            back = np.exp(scale - tilt * (epoch.first + np.arange(epoch.size)))
            masses, norms = law * back, back * back
            if upper:
                masses, norms = masses[::-1], norms[::-1]
            total, error = np.cumsum(masses), wrong * np.sqrt(np.cumsum(norms))
            rounded = 8 * epoch.size * UNIT * total
            other = _other_turns(epoch, hit, tilt)
            if upper:
                total, error, rounded = total[::-1], error[::-1], rounded[::-1]
            found.append(total + error + rounded if high else total - error - rounded - other)
    low, high = found
    return _Ends(np.where(np.isfinite(low), low, 0.0), np.where(np.isnan(high), np.inf, high))


def _other_turns(epoch: _Epoch, hit: bool, tilt: float) -> Real:
    """What sums outside the window add to the tilted masses from each place on, or up to it."""
    if tilt == 0:
        return np.zeros(epoch.size)  # sums modulo the window are what is seen
    once = math.exp(-abs(tilt) * epoch.size)
    if tilt < 0:
        return np.full(epoch.size, 2 * once)
    log = epoch.log_chernoff(tilt, hit)
    return np.asarray(2 * once + np.exp(np.minimum(log - tilt * np.arange(epoch.size), 700.0)))


def _without_large(epoch: _Epoch, alphas: Real) -> tuple[Real, Real]:
    """Lower bounds on what K = 0 adds to E[(S - a)_+] and E[(a - S)_+]: all sums on one side of t a."""
    sums = epoch.sums(epoch.steps)
    place = np.searchsorted(sums, epoch.steps * alphas)
    calls, puts = np.zeros(len(alphas)), np.zeros(len(alphas))
    from_on, up_to = np.minimum(place, epoch.size - 1), np.maximum(place - 1, 0)
    for share in _TILTS:
        tilt = min(share * epoch.step / epoch.deviation, _MOST_TILT / epoch.cut)
        p, q = (_ends(epoch, hit, tilt, True) for hit in (True, False))
        calls = np.maximum(calls, _less(p.low[from_on], alphas * q.high[from_on]) * (place < epoch.size))
        p, q = (_ends(epoch, hit, -tilt, False) for hit in (True, False))
        puts = np.maximum(puts, _less(alphas * q.low[up_to], p.high[up_to]) * (place > 0))
    return calls, puts


def _less(one: Real, other: Real) -> Real:
    return np.asarray(one - other - 8 * UNIT * (np.abs(one) + np.abs(np.minimum(other, 1e300))))


def _with_large(epoch: _Epoch, alphas: Real) -> tuple[Real, Real]:
    """The same of K = 1 and K > 1: outcomes one by one, in the order of their ratios."""
    p, q = (_joined(each) for each in zip(_one_large(epoch), _several_large(epoch), strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num((p.low + p.high) / (q.low + q.high), nan=0.0)
    order = np.argsort(ratio)
    ratio, every = ratio[order], len(order)
    sums = [np.append(0.0, np.cumsum(each[order])) for each in (p.low, p.high, q.low, q.high)]
    at = np.searchsorted(ratio, alphas, side="right")
    p_low, _, _, q_high = (each[-1] - each[at] for each in sums)
    _, p_high, q_low, _ = (each[at] for each in sums)
    rounded = 4 * every * UNIT * (sums[1][-1] + alphas * sums[3][-1])
    calls = np.maximum(p_low - alphas * q_high - rounded, 0.0)
    return calls, np.maximum(alphas * q_low - p_high - rounded, 0.0)


def _joined(parts: tuple[_Masses, _Masses]) -> _Masses:
    return _Masses(*(np.concatenate([np.ravel(getattr(each, end)) for each in parts]) for end in ("low", "high")))


def _one_large(epoch: _Epoch) -> tuple[_Masses, _Masses]:
    """Masses of K = 1 under P and Q: a row for every cell, a column for every bin of the sum of the others."""
    n = epoch.steps - 1
    wanted = n + epoch.deviation * np.linspace(-_SEEN, _SEEN, _BINS)
    starts = np.unique(np.append(0, np.minimum(np.searchsorted(epoch.sums(n), wanted), epoch.size - 1)))
    sizes = np.diff(np.append(starts, epoch.size))

    def bins(high: bool, hit: bool) -> Real:
        law, wrong, scale = epoch.law(n, high, hit)
        total, sign = np.add.reduceat(law, starts), 1 if high else -1
        doubt = wrong * np.sqrt(sizes) + 8 * epoch.size * UNIT * total
        return np.asarray(np.maximum(total + sign * doubt, 0.0) * math.exp(scale) * (1 + sign * 1e-13))

    p, q = epoch.large
    under_p, under_q = [], []
    for of_p, of_q, high in ((p.low, q.low, False), (p.high, q.high, True)):
        none, hit = bins(high, False), bins(high, True)
        under_p.append(np.outer(of_p, none) + n * np.outer(of_q, hit))
        under_q.append(epoch.steps * np.outer(of_q, none))
    return _Masses(*under_p), _Masses(*under_q)


def _several_large(epoch: _Epoch) -> tuple[_Masses, _Masses]:
    """Masses of K > 1 under P and Q, by the cell of the largest ratio."""
    t, (p, q) = epoch.steps, epoch.large
    tail_p, tail_q = (_Masses(_tails(m.low, 1 - 1e-12), _tails(m.high, 1 + 1e-12)) for m in (p, q))

    def below(places: slice, high: bool, n: int, hit: bool) -> Real:
        """F^n, or G F^n if `hit`, at these edges."""
        of_p, of_q = ((m.low if high else m.high)[places] for m in (tail_p, tail_q))
        return np.asarray(np.exp(n * np.log1p(-of_q)) * (1 - of_p if hit else 1.0))

    def others(high: bool, n: int, hit: bool) -> Real:
        """All others below the cell, or its upper end, but not all of them small."""
        reached = below(slice(1, None) if high else slice(None, -1), high, n, hit)
        small, sign = below(slice(0, 1), not high, n, hit), 1 if high else -1
        return np.asarray(np.maximum(reached - small + sign * 64 * UNIT, 0.0))

    under_p, under_q = [], []
    for high in (False, True):
        of_p, of_q = (m.high if high else m.low for m in (p, q))
        under_p.append(of_p * others(high, t - 1, False) + (t - 1) * of_q * others(high, t - 2, True))
        under_q.append(t * of_q * others(high, t - 1, False))
    return _Masses(*under_p), _Masses(*under_q)


def _tails(masses: Real, rounded: float) -> Real:
    """Sums from each cell on, and 0 beyond the last."""
    return np.append(np.cumsum(masses[::-1])[::-1] * rounded, 0.0)
