"""What a Poisson sample that is cut down to `most` records does to one record, the number of others not revealed.

Let S ~ Bin(N, q) of the N others be sampled, pi_s = P[S = s], m = most, and U_k the output of k others chosen at
random. If S < m, nothing is cut off: U_S with probability 1 - q, and U_S with the record otherwise. If S >= m, the
record is in the batch with probability q m/(S+1), beside m - 1 others chosen at random, and then the output is that of
U_(m-1) with the record: just as if S had been m - 1. So with G = sum over s >= m of pi_s q m/(s+1) =
m/(N+1) P[Bin(N+1, q) > m] the output is a mixture of

- pi_s ((1-q) U_s + q (U_s with the record)) for s < m - 1,
- (1-q) pi_(m-1) U_(m-1) + (q pi_(m-1) + G) (U_(m-1) with the record), and
- (P[S >= m] - G) U_m.

A null record, or another one, in its place gives the same mixture with that record; so it may be revealed which of the
three it is (joint convexity), and which others there are: Poisson samples of rates q, and q' = (q pi_(m-1) +
G)/(pi_(m-1) + G) with probability pi_(m-1) + G, and nothing, all at the distance of one record. The distance of a
replacement does not enter.

Without the record (add-remove) it is pi_s U_s, pi_(m-1) U_(m-1) and P[S >= m] U_m. The profile is the sum of those of
the three parts; it is asked for at finitely many points, for both N that are possible, and lies below its chords.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import betainc, ndtr

from privloss.losses.density.normal import NormalPair, normal_table
from privloss.losses.table.hits import hits_table
from privloss.losses.table.polygon import Point, from_convex, lower_hull
from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real

_SURE = 1e-6  # relative error of a binomial tail
_REACH, _POINTS, _RARE_ATOMS = 9.0, 400, 100
_NOTHING = Table(np.zeros(1), np.ones(1), symmetric=True)
_LOST = 1e-18  # times the rate: what lies beyond the last point, and more


@dataclass(frozen=True)
class CutDown:
    """The probabilities of the three parts, and how well they are known."""

    rate: float
    whole: float  # P[S < m - 1]
    last: float  # pi_(m-1)
    over: float  # P[S >= m]
    moved: float  # G
    unsure: float

    @classmethod
    def of(cls, others: int, rate: float, most: int) -> CutDown:
        over = float(betainc(most, others - most + 1, rate))
        least = float(betainc(most - 1, others - most + 2, rate)) if most > 1 else 1.0
        last = max(least - over, 0.0)
        if least > 0.5:  # differences of the smaller tails
            last = max(float(betainc(others - most + 1, most, 1 - rate)) - (1 - least), 0.0)
        moved = most / (others + 1) * float(betainc(most + 1, others + 1 - most, rate))
        tail = over if least <= 0.5 else 1 - over
        unsure = _SURE * (1 + tail / last) if last > 0 else math.inf
        return cls(rate, max(1 - least, 0.0), last, over, moved, unsure)

    @property
    def known(self) -> bool:
        return self.unsure < 1e-3 and self.hits < 1 - 1e-6

    @property
    def hits(self) -> float:
        """q', rounded up."""
        both = (self.rate * self.last + self.moved) / (self.last + self.moved)
        return min(both * (1 + 4 * self.unsure), 1.0)

    @property
    def weights(self) -> tuple[float, float, float]:
        """Of the rates q and q', and of nothing: rounded to more of what is worse."""
        second = min((self.last + self.moved) * (1 + 2 * self.unsure), 1.0)
        none = max((self.over - self.moved) * (1 - 4 * self.unsure) - 2 * self.unsure * self.last, 0.0)
        none = min(none, 1 - second)
        return max(1 - second - none, 0.0), second, none

    def square(self) -> float:
        """Roughly the mean square of the hit rates: what is to be compared with other bounds."""
        first, second, _ = self.weights
        return first * self.rate**2 + second * self.hits**2

    # -- one record against none --------------------------------------------------------------------------------------

    def heights(self, ratio: Real, y: Real, s: float) -> tuple[Real, Real]:
        """Upper bounds on the profile at alpha = 1 - q + q r, r = e^(s y - s^2/2): what it is for alpha >= 1, and what
        it exceeds 1 - alpha by for alpha < 1."""
        q, more, less = self.rate, 1 + self.unsure, 1 - self.unsure
        usual = min(self.whole * more, 1.0) * q
        hit = q * self.last + self.moved
        # alpha >= 1: sup over events of weight N(s)[E] - (alpha - 1 + q) pi N(0)[E]
        above = usual * _beyond(ratio, y, s) + _scaled(hit * more, q * self.last * less, ratio, s, _beyond)
        # alpha < 1: sup over events of (alpha - 1 + q) pi N(0)[E] - weight N(s)[E], and the part that is only smaller
        below = usual * _within(ratio, y, s) + _scaled(hit * less, q * self.last * more, ratio, s, _within)
        fallen = self.moved * more + self.over * less * q * (ratio - 1)
        return above, below + np.maximum(fallen, 0.0)


def _beyond(ratio: Real, y: Real, s: float) -> Real:
    """Phi(s - y) - r Phi(-y), rounded up."""
    first, second = ndtr(s - y), ratio * ndtr(-y)
    return np.asarray(np.maximum(first - second, 0.0) + 256 * UNIT * (1 + y * y) * (first + second))


def _within(ratio: Real, y: Real, s: float) -> Real:
    """r Phi(y) - Phi(y - s), rounded up."""
    first, second = ratio * ndtr(y), ndtr(y - s)
    return np.asarray(np.maximum(first - second, 0.0) + 256 * UNIT * (1 + y * y) * (first + second))


def _scaled(weight: float, base: float, ratio: Real, s: float, side: Callable[[Real, Real, float], Real]) -> Real:
    """weight times `side` at the ratio base r / weight."""
    if weight <= 0 or base <= 0:
        return np.zeros_like(ratio)
    moved = base / weight * ratio
    y = (np.log(moved) + 0.5 * s * s) / s
    return np.asarray(weight * side(moved, y, s))


def against_none(parts: list[CutDown], s: float) -> Table:
    """Add-remove: a pair that dominates all of them."""
    rate = Fraction(parts[0].rate)
    y = np.linspace(-_REACH, s + _REACH, _POINTS)
    y = np.sort(np.append(y, 0.5 * s))  # r = 1
    ratio = np.exp(s * y - 0.5 * s * s)
    above, below = (np.max(sides, axis=0) for sides in zip(*(part.heights(ratio, y, s) for part in parts), strict=True))
    lost = Fraction(_LOST) * rate
    points: list[Point] = [(Fraction(0), Fraction(1)), (1 - rate, rate)]
    for r, up, down in zip(ratio, above, below, strict=True):
        alpha = 1 - rate + rate * Fraction(float(r))
        height = Fraction(float(up)) if alpha >= 1 else 1 - alpha + Fraction(float(down))
        points.append((alpha, min(height + lost, Fraction(1))))
    return from_convex(lower_hull(points))


def against_null(part: CutDown, s: float) -> Table:
    """Zero-out: Poisson samples of two rates, and nothing."""
    first, second, none = part.weights
    rare = [(second, hits_table(((part.hits, s),), 1 - part.hits, _RARE_ATOMS)), (none, _NOTHING)]
    return normal_table(
        [(max(first, 1e-300), NormalPair(((part.rate, s),)))], [(w, table) for w, table in rare if w > 0]
    )


def against_another(part: CutDown, s: float) -> Table:
    """Replace-one: hits on both sides, which are their own mirror images."""
    first, second, none = part.weights
    pairs = [(w, NormalPair(((q, s),), ((q, s),))) for w, q in ((first, part.rate), (second, part.hits)) if w > 0]
    return normal_table(pairs, [(none, _NOTHING)] if none > 0 else [])
