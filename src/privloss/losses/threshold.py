"""AboveThreshold: a profile that holds for all queries, and queries that come near it.

The threshold has Laplace noise, eps1 = D/b1; every query has noise of scale b2, and c positives cost eps2. Moving the
threshold noise by D makes negatives only more likely, and every positive less likely by at most e^(eps2/c), as the
hazard rate of the query noise is at most 1/b2. With the threshold noise revealed the loss is at most Z + eps2, Z the
loss of Laplace noise moved by D, so in both orders, for any number of adaptive queries,

    delta(x) <= delta_Laplace(eps1)(x - eps2) = 1 - e^((x - eps1 - eps2)/2),      1 - e^(x - eps2) for x < eps2 - eps1.

For eps1 >= eps2 that is the profile of the Laplace pair of ratio eps1 + eps2; otherwise the smaller of it and the pure
box, at finitely many points.

*Below*: m queries at one height, then c at another, which the neighbour moves towards the threshold and away from it.
The event "m negatives, then c positives" has probability int p(z) F(z - l)^m S(z - h)^c dz, F rising and S falling: on
a cell of z each factor lies between its values at the ends, and the cell has its exact mass."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.losses.table.build import from_vectors
from privloss.losses.table.polygon import privacy_profile
from privloss.losses.table.table import Table
from privloss.numerics.floats import Real, padded_down, padded_up, raised

_POINTS, _CELLS, _ROUGH, _REACH, _ROUNDS = 400, 8_000, 200, 30.0, 12
_MANY = (1, 3, 10, 30, 100, 1_000, 10_000, 1_000_000)
_PAD = 1e-11  # far above the roundings of powers of probabilities, which have up to 1e6 factors of 1e-16


def threshold_row(eps1: float, eps2: float) -> Table:
    """The convex minorant of the profile above and the pure box, for eps2 > eps1."""
    whole = eps1 + eps2
    points = [(raised(whole, 4), 0.0)]
    for x in np.linspace(0.0, whole, _POINTS)[:-1].tolist():
        profile = -math.expm1((x - whole) / 2) if x >= eps2 - eps1 else -math.expm1(x - eps2)
        box = -math.expm1(x - whole) / (1 + math.exp(-whole))
        points.append((x, min(raised(min(profile, box), 32, 1 + whole), 1.0)))
    return privacy_profile([x for x, _ in points], [d for _, d in points])


@dataclass(frozen=True)
class Queries:
    """Scales of the noises in units of the sensitivity, positives until it stops, whether all queries move together."""

    threshold: float
    query: float
    positives: int
    monotone: bool
    exponential: bool

    def rows(self, at: list[float]) -> list[Table]:
        """The best of these instances for questions at the epsilons `at`."""
        grid = self._grid()
        p, q = self._events(grid, _ROUGH, rough=True)
        found = [self._improved(grid[int(np.argmax(p - math.exp(x) * q))], math.exp(x)) for x in at]
        sure, most = self._events(np.unique(np.array(found), axis=0), _CELLS)
        pairs = [(float(a), float(b)) for a, b in zip(sure, most, strict=True) if b < a]
        return [from_vectors([a, 1 - a], [b, 1 - b]) for a, b in pairs]

    def _grid(self) -> Real:
        """How many queries, where their largest noisy value lies, and how far from there the last ones are."""
        places = self.threshold * np.linspace(-9.0, 9.0, 10)
        depths = np.concatenate([self.query * np.linspace(-14.0, 6.0, 9), self.threshold * np.array([-8.0, 8.0])])
        return np.stack([x.ravel() for x in np.meshgrid(np.array(_MANY, dtype=float), places, depths)], axis=1)

    def _improved(self, start: Real, a: float) -> Real:
        """A few rounds of a coordinate search: any instance is attained."""
        best, steps = start, np.array([3.0, self.threshold, 2.0 * self.query])
        for _ in range(_ROUNDS):
            moves = [np.where(np.arange(3) == k, sign * steps, 0.0) for k in (1, 2) for sign in (-1, 1)]
            tried = np.array([best, *(best + move for move in moves), best, best])
            tried[-2, 0], tried[-1, 0] = np.maximum(np.round(best[0] / steps[0]), 1.0), np.round(best[0] * steps[0])
            p, q = self._events(tried, _ROUGH, rough=True)
            chosen = int(np.argmax(p - a * q))
            best, steps = tried[chosen], steps if chosen else np.array([1 + (steps[0] - 1) / 2, *(steps[1:] / 2)])
        return best

    def _events(self, chosen: Real, cells: int, rough: bool = False) -> tuple[Real, Real]:
        """A lower bound on the chance of many negatives and then the positives, and an upper one for the neighbour; or
        roughly, at the middle of the cells, to search with."""
        many, place, depth = chosen.T
        low, high = place - self.query * np.log(many), place + depth
        reach = _REACH * max(self.threshold, 1.0)
        z = reach * np.sinh(np.linspace(-4.0, 4.0, cells + 1)) / math.sinh(4.0)
        up, fall = (0.5 * np.exp(np.minimum(sign * z, 0.0) / self.threshold) for sign in (1, -1))
        # differences on the side where they keep their digits; the middle is an edge
        mass = np.where(z[1:] <= 0, np.diff(up), -np.diff(fall))
        down = 0.0 if self.monotone else 1.0
        sure, most = np.zeros(len(many)), np.zeros(len(many))
        tail = 0.5 * math.exp(-reach / self.threshold)
        left, right = (0.5 * (z[1:] + z[:-1]),) * 2 if rough else (z[:-1], z[1:])
        for i, (n, at, top) in enumerate(zip(many, low, high, strict=True)):
            c = self.positives
            sure[i] = float(mass @ (self._under(left - at) ** n * self._over(right - top) ** c))
            most[i] = float(mass @ (self._under(right - at - 1) ** n * self._over(left - top + down) ** c))
            # beyond the cells: to the left no more negatives than at the first edge, to the right no more positives
            ends = self._under(z[:1] - at - 1) ** n + self._over(z[-1:] - top + down) ** c
            most[i] += tail * float(ends[0])
        pad = _PAD * np.maximum(many * 1e-4, 1.0)
        return np.maximum(padded_down(sure, pad), 0.0), padded_up(most, pad)

    def _under(self, gap: Real) -> Real:
        """The chance that noise stays below a gap."""
        x = gap / self.query
        if self.exponential:
            return np.asarray(-np.expm1(-np.maximum(x, 0.0)))
        return np.asarray(np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0.0)), 1 - 0.5 * np.exp(-np.maximum(x, 0.0))))

    def _over(self, gap: Real) -> Real:
        """The chance that noise exceeds it."""
        x = gap / self.query
        if self.exponential:
            return np.asarray(np.exp(-np.maximum(x, 0.0)))
        return np.asarray(np.where(x > 0, 0.5 * np.exp(-np.maximum(x, 0.0)), 1 - 0.5 * np.exp(np.minimum(x, 0.0))))
