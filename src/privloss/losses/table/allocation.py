"""One epoch of random allocation: a record takes part in one of t steps, chosen at random.

Against the data without the record, which gives y_i ~ N(0, 1) at every step, the likelihood ratio is S = R/t, R = r_1 +
... + r_t, r_i = e^(s y_i - s^2/2), and delta(eps) = E[(S - e^eps)_+] (Feldman and Shenfeld 2025, Chua et al. 2025: this
pair dominates, also adaptively). S is a mean of independent variables of mean 1, and sums keep the convex order: if
every r_i is moved at random to the two ends of its cell on a grid so that its mean stays, E[(S - a)_+] and E[(a - S)_+]
grow for every a.

The r_i are split at B into small ones, on an even grid, and large ones, on a grid of even ratios. With k large ones

    E[(R - x)_+; k large] = C(t, k) F_k(x),   F_k(x) = sum over large r of q(r) F_(k-1)(x - r),   F_0(x) = E[(R' -
    x)_+],

R' the sum of t - k small ones; likewise for (x - R)_+. All terms are positive. F_k is convex, so it lies below the
chords of points of it, and beyond the last point below its last value, or its line. The law of R' is a power of a
discrete Fourier transform, of masses tilted by e^(theta r): its error (`numerics/fourier.py`) is relative to the tilted
law, so each F_0 is the least of several upper bounds. What is left out adds at most

- sums of small ones beyond the window: E[R'; R' > end] <= e^(-theta end) M^(n-1) E[r e^(theta r)] n (Chernoff), and
  P[R' < begin] <= e^(-d^2/(2 n E r^2)), d = E R' - begin (Chernoff for positive variables), times x;
- more than K large ones: C(t, K+1) P[large]^K ((K+1) E[r; large] + (t - K - 1) P[large]);
- ratios beyond the last cell: E[R; some r > end] <= t (E[r; r > end] + (t - 1) P[r > end]).

A profile known from above at points lies below their lower convex hull (`polygon.py`): that is the pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from privloss.losses.table.polygon import Point, from_convex, lower_hull
from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real, lowered, padded_up, raised
from privloss.numerics.fourier import fast_size, powered

_FURTHEST = 3.0  # beyond, no grid is fine enough
_FINE = 192.0  # grid cells per standard deviation of one ratio
LARGEST_TRANSFORM = 2**19
_EXPECTED_LARGE, _MOST_LARGE = 0.02, 6  # large ratios of an epoch, and at most so many at once
_RATIO, _FEW, _FINER = 1.01, 4, 1.003  # of cells of large ratios; steps that are few enough for finer ones
FAR = 13.0  # standard deviations at which they end
WINDOW = 12.0  # standard deviations of the sum on either side
_TILTS = (-6.0, -2.5, 0.0, 2.5, 6.0)  # in units of 1/standard deviation of the sum
_MOST_TILT = 14.0  # times the largest small ratio
_PER_SPREAD, _BULK, _SPARSE = 100.0, 7.5, 8  # points of the profile
_SMALLEST_DELTA = 1e-17
_ROUNDED = 128.0  # relative roundings of a mass, its tilt and the scale, for each ratio


@dataclass(frozen=True)
class _Ratios:
    """One ratio under Q, on its grid: small ones at 0, h, 2h, ..., large ones anywhere."""

    step: float
    small: Real
    places: Real
    large: Real
    beyond: tuple[float, float]  # P[r > end], E[r; r > end]


@dataclass(frozen=True, eq=False)
class Above:
    """Points above the profile of one epoch, from (0, 1) on, at losses that are multiples of `unit`."""

    points: list[Point]
    unit: float

    def table(self) -> Table:
        found = from_convex(lower_hull(self.points))
        # corners are losses; what their logarithms lose against the lattice is less than the slack of their masses
        values = self.unit * np.rint(found.values / self.unit)
        return replace(found, values=values, slack=64.0 + 4 * float(np.abs(values).max()))


@lru_cache(maxsize=64)  # calibrations and tables ask for the same epoch again and again
def allocation_table(steps: int, distance: float) -> Table | None:
    """A table that dominates one epoch; None where the grid would be too coarse to gain anything."""
    found = above(steps, distance)
    return None if found is None else found.table()


@lru_cache(maxsize=16)
def above(steps: int, distance: float) -> Above | None:
    """The same as points."""
    if distance > _FURTHEST:
        return None
    spread = math.sqrt(math.expm1(distance * distance))
    deviation = spread * math.sqrt(steps)
    ratios = _ratios(steps, distance, spread / _FINE)
    profile = _Profile(ratios, steps, deviation, math.exp(distance * distance))
    if profile.size > LARGEST_TRANSFORM:
        return None
    unit = _decimal(math.log1p(min(deviation / steps, 0.5)) / _PER_SPREAD)
    bulk = math.ceil(_BULK * _PER_SPREAD)
    last = math.ceil(distance * (FAR + distance) / unit)
    index = np.concatenate([np.arange(-bulk, bulk), np.arange(bulk, max(last, bulk) + _SPARSE, _SPARSE)])
    return Above(_points(index, unit, profile, steps), unit)


def _decimal(value: float) -> float:
    """Two digits of it: losses that are whole multiples are found to be on a lattice."""
    return float(f"{value:.1e}")


def _points(index: Real, unit: float, profile: _Profile, steps: int) -> list[Point]:
    alphas = np.exp(unit * index)
    puts, calls = profile.sums(steps * alphas)
    points = [(Fraction(0), Fraction(1))]
    for alpha, put, call in zip(alphas.tolist(), puts.tolist(), calls.tolist(), strict=True):
        at = Fraction(alpha)
        height = min(Fraction(call), Fraction(put) + 1 - at)  # E(S - a)_+ = E(a - S)_+ + 1 - a
        points.append((at, min(max(height, Fraction(0)), points[-1][1])))
        if call < _SMALLEST_DELTA:
            break
    return points


def _ratios(steps: int, distance: float, step: float) -> _Ratios:
    """The masses of one ratio, its mean kept in every cell."""
    at_b = -float(ndtri(_EXPECTED_LARGE / steps))
    cut = math.ceil(max(math.exp(distance * at_b - 0.5 * distance**2), 2.0) / step)
    end = math.exp(distance * (FAR + distance) - 0.5 * distance**2)
    ratio = _FINER if steps <= _FEW else _RATIO
    cells = max(math.ceil(math.log(end / (cut * step)) / math.log(ratio)), 1)
    grid = np.concatenate([step * np.arange(cut), cut * step * ratio ** np.arange(cells + 1)])
    with np.errstate(divide="ignore"):
        y = np.log(grid) / distance + 0.5 * distance
    (q, doubt_q, beyond_q), (p, doubt_p, beyond_p) = (cell_masses(y - shift) for shift in (0.0, distance))
    left, width = grid[:-1], np.diff(grid)
    up = np.clip((p - left * q) / width, 0.0, q)
    doubt = doubt_q + (doubt_p + left * doubt_q + 4 * UNIT * (p + left * q)) / width
    masses, wrong = np.zeros(len(grid)), np.zeros(len(grid))
    masses[:-1] += q - up
    masses[1:] += up
    wrong[:-1] += doubt
    wrong[1:] += doubt
    masses += 2 * wrong  # more mass never makes a sum of positive terms smaller
    return _Ratios(step, masses[: cut + 1], grid[cut + 1 :], masses[cut + 1 :], (beyond_q, beyond_p))


def cell_masses(y: Real) -> tuple[Real, Real, float]:
    """Masses of N(0, 1) between the y, bounds on their errors, and the mass above the last one, rounded up."""
    left, right = ndtr(y), ndtr(-y)
    lower = y[1:] < 0
    found = np.where(lower, np.diff(left), -np.diff(right))
    with np.errstate(invalid="ignore"):
        # a place y is rounded too, by some units of |y| + 1, in a density of at most |y| + 1 times the tail (Mills)
        units = UNIT * (64 + 8 * np.where(np.isfinite(y), y * y, 0.0))
    terms = np.where(lower, (left * units)[1:] + (left * units)[:-1], (right * units)[1:] + (right * units)[:-1])
    return found, terms, padded_up(float(right[-1]), 1e-9)


class _Profile:
    """Upper bounds on E[(R - x)_+] and E[(x - R)_+]."""

    def __init__(self, ratios: _Ratios, steps: int, deviation: float, square: float) -> None:
        self._ratios, self._steps, self._deviation = ratios, steps, deviation
        top = ratios.step * (len(ratios.small) - 1)
        half = WINDOW * math.sqrt(steps * square)
        self._first = max(math.floor((steps - half) / ratios.step), 0)
        longest = steps + WINDOW * deviation + 12 * top - self._first * ratios.step
        self.size = fast_size(max(longest / ratios.step, len(ratios.small) + 2))
        self._sums = ratios.step * (self._first + np.arange(self.size))
        self._top = top

    def sums(self, x: Real) -> tuple[Real, Real]:
        """Divided by t: upper bounds on E[(x - R)_+] and E[(R - x)_+]."""
        ratios, t = self._ratios, self._steps
        large, mean = float(ratios.large.sum()), float(ratios.large @ ratios.places)
        puts, calls = np.zeros(len(x)), np.zeros(len(x))
        near, far = lowered(x, 32), raised(x, 32)  # sums, and their places, are rounded
        for k in range(min(_MOST_LARGE, t) + 1):
            points = self._knots(float(far.max())) if k else np.unique(np.concatenate([near, far, np.zeros(1)]))
            found = self._small(t - k, points)
            for _ in range(k):
                found = self._shifted(points, found)
            puts += math.comb(t, k) * np.interp(far, points, found.puts)
            calls += math.comb(t, k) * np.interp(near, points, found.calls)
        more = min(_MOST_LARGE, t) + 1
        chance = math.comb(t, more) * large**more
        calls += math.comb(t, more) * large ** (more - 1) * (more * mean + max(t - more, 0) * large)
        calls += t * (ratios.beyond[1] + (t - 1) * ratios.beyond[0])
        puts += x * (chance + t * ratios.beyond[0])
        grown = padded_up(1.0, 1e-9 + t * _ROUNDED * UNIT)
        return puts * grown / t, calls * grown / t

    def _knots(self, last: float) -> Real:
        """Where chords of F_k meet, up to this x and beyond."""
        low, high = float(self._sums[0]), float(self._sums[-1])
        even = np.linspace(low, high, 2000)
        more = max(math.ceil(math.log(last / high) / math.log(1.02)) + 1, 1)
        return np.concatenate([[0.0], even[even > 0], high * 1.02 ** np.arange(1, more + 1)])

    def _small(self, n: int, x: Real) -> _Sums:
        """Of n small ones."""
        if n == 0:
            return _Sums(np.maximum(x, 0.0), np.maximum(-x, 0.0), 1.0)
        weights, step, sums = self._ratios.small, self._ratios.step, self._sums
        places = step * np.arange(len(weights))
        mass = float(weights.sum())
        mean, square = float(weights @ places) / mass, float(weights @ places**2) / mass
        best = np.full((2, len(x)), np.inf)
        first = np.searchsorted(sums, x, side="left")
        for share in _TILTS:
            tilt = math.copysign(min(abs(share) / self._deviation, _MOST_TILT / self._top), share)
            law, wrong, log_scale = powered(weights, tilt * step, n, self.size)
            law = np.roll(law, -(self._first % self.size))
            with np.errstate(over="ignore", invalid="ignore"):
                back = np.exp(log_scale - tilt * sums)
                below = np.sqrt(np.concatenate([[0.0], np.cumsum(back * back)]))[first]  # norms of what masses weigh
                above = np.sqrt(np.concatenate([np.cumsum(((back * sums) ** 2)[::-1])[::-1], [0.0]]))[first]
                puts, calls = _linear_sums(sums, np.maximum(law, 0.0) * back, x, first)
                best[0] = np.minimum(best[0], _or_inf(puts + wrong * below * x))
                best[1] = np.minimum(best[1], _or_inf(calls + wrong * above))
        past, begin = self._past(n), float(sums[0])
        missed = math.exp(-(max(n * mean - begin, 0.0) ** 2) / (2.01 * n * square)) if self._first else 0.0
        puts = np.minimum(best[0] + x * (missed + past / float(sums[-1])), x * mass**n)
        return _Sums(puts, best[1] + past + begin * missed, mass**n)

    def _past(self, n: int) -> float:
        """Chernoff's bound on E[R'; R' > end]."""
        weights = self._ratios.small
        places = self._ratios.step * np.arange(len(weights))
        end, best = float(self._sums[-1]), math.inf
        for share in (4.0, 8.0, 16.0, 32.0, 64.0):
            tilt = share / self._top
            grown = weights * np.exp(tilt * places)
            log = (n - 1) * math.log(float(grown.sum())) + math.log(n * float(grown @ places)) - tilt * end
            best = min(best, log)
        return math.exp(min(best, 600.0))

    def _shifted(self, x: Real, known: _Sums) -> _Sums:
        """With one more large ratio: F_k from F_(k-1), by chords; lines beyond their ends."""
        puts, calls = np.zeros(len(x)), np.zeros(len(x))
        for place, weight in zip(self._ratios.places.tolist(), self._ratios.large.tolist(), strict=True):
            at = x - place
            beyond = np.maximum(x[0] - at, 0.0) * known.mass
            calls += weight * (np.interp(at, x, known.calls) + beyond)
            puts += weight * np.interp(at, x, known.puts)
        return _Sums(puts, calls, known.mass * float(self._ratios.large.sum()))


@dataclass(frozen=True)
class _Sums:
    """Upper bounds on E[(x - R)_+] and E[(R - x)_+] at some x, from 0 on, and on P."""

    puts: Real
    calls: Real
    mass: float


def _or_inf(values: Real) -> Real:
    return np.where(np.isnan(values), np.inf, values)


def _linear_sums(sums: Real, masses: Real, x: Real, first: NDArray[np.intp]) -> tuple[Real, Real]:
    """sum m (x - s)_+ and sum m (s - x)_+ of sums that rise."""
    below, weighted = (np.concatenate([[0.0], np.cumsum(m)]) for m in (masses, masses * sums))
    above, heavier = (np.concatenate([np.cumsum(m[::-1])[::-1], [0.0]]) for m in (masses, masses * sums))
    puts, calls = x * below[first] - weighted[first], heavier[first] - x * above[first]
    units = 4 * len(sums) * UNIT
    return puts + units * x * below[first], calls + units * heavier[first]
