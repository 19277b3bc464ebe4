"""A symmetric pair whose outcomes are marked, in the form that `mixture/largest.py` splits.

A class j >= 1 adds the integral of phi w_j (A e^(zZ) + B e^(-zZ)), both branches at the same nodes; with r = A/B the
branches are phi B r^(z+1) and phi B r^(-z), the two directions of `mixture/marked.py`, so their errors add. There
B = 1; under replace-one |B|^(1-a), which multiplies |A|^a, lies between its values at |B| = 1 - q and at |B| = 1, and
|arg B| adds to the angle. Here integrals begin at the outcome without loss, below the nodes of every class j >= 1: the
trapezoid rule is applied from the lower end of its last interval on, whose side adds less than a fifth of what the
strip carries below the cells, and what lies before it is at most that; `Strips` counts four times as much. Where it
bounds how M_j falls, the way from the axis to the strip at the first edge is counted with what lies below it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from privloss.losses.density.legendre import NODES, panels
from privloss.losses.mixture.marked import MarkedStep, Nodes
from privloss.losses.mixture.strip import RARE_ANGLES, Strips
from privloss.losses.mixture.sums import Mean
from privloss.losses.symmetric.bulk import Panels
from privloss.losses.symmetric.fall import BulkFall
from privloss.losses.symmetric.pair import SymmetricPair
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import UNIT, Real, padded_down
from privloss.numerics.stable import exp_minus_1_minus

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_MOST_NODES = 40_000
_FINER = 1.5
_REACH = 12.0  # standard deviations beyond the hit at which the mean is cut off


@dataclass(frozen=True, eq=False)
class SymmetricStep(MarkedStep):
    """`means` hold the mean loss, the same in both directions."""

    two_sided: bool = False

    @property
    def pair(self) -> SymmetricPair:
        return SymmetricPair(self.rate, self.sigma, self.two_sided)

    @property
    def one_sided(self) -> bool:
        return False

    def finer(self) -> SymmetricStep:
        step = SymmetricStep(
            self.rate, self.sigma, self.windows, self.means, self.top, self.fineness + 1, two_sided=self.two_sided
        )
        step.__dict__.update(rare_strips=self.rare_strips)
        return step

    def span(self, j: int) -> tuple[float, float]:
        low, high = super().span(j) if j else (self.pair.start, min(self.windows.end(0), self.top))
        if j and low < self.pair.start + 0.25 * self.sigma:
            raise TooExpensive("a window reaches down to no loss")
        return low, high

    @cached_property
    def _panels(self) -> tuple[Real, Real, float]:
        low, high = self.span(0)
        width = min(0.5 * self.sigma, 0.5 * self.sigma**2, 3.0 * float(self.windows.width[0])) / _FINER**self.fineness
        if (high - low) / width * NODES > _MOST_NODES:
            raise TooExpensive("too many panels")
        return panels(low, high, width)

    @cached_property
    def bulk_strip(self) -> BulkError:  # type: ignore[override]
        y, _, half = self._panels
        return BulkError(Panels.on(self.pair, self.windows, self.span(0)[0], half, len(y) // NODES))

    @cached_property
    def rare_strips(self) -> BothBranches:  # type: ignore[override]
        spans = [(j, *self.span(j)) for j in range(1, self.last + 1)]
        return BothBranches.of(self.pair, Strips.of(self.law, self.windows, spans), self.windows.start(1))

    def _made(self, j: int) -> Nodes:
        if j:
            plain = super()._made(j)
            high = self.span(j)[1]
            y = high - plain.spacing * (np.arange(len(plain.log_r)) + 0.5)
            return self._both(plain, y)
        y, weights, half = self._panels
        squared = (y / self.sigma) ** 2
        log_a = self.pair.logs(y)[0]
        log_mass = self.windows.log_weights(0, y) - 0.5 * squared + np.log(weights / self.sigma) - _LOG_SQRT_2PI
        drift = 8 * (np.abs(y) + 1.0) / self.sigma**2 * self._share(y) + 4 * np.abs(log_a)
        both = self._both(Nodes(half, log_mass, log_a, 64 + 3 * squared + self.windows.slack(0, y), drift), y)
        if not self.pair.at_zero:
            return both
        zero, mass = np.zeros(1), np.log(np.array([self.pair.at_zero]))
        return Nodes.joined([both, Nodes(half, mass, zero, np.array([64.0]), zero)])

    def _share(self, y: Real) -> Real:
        """An upper bound on the slope of log A by y, times sigma^2: q e^s / A."""
        log_a = self.pair.logs(y)[0]
        return np.exp(np.minimum(math.log(self.rate) + (y - 0.5) / self.sigma**2 - log_a, 0.0))

    def _both(self, plain: Nodes, y: Real) -> Nodes:
        """Nodes of A alone become those of both branches: a loss Z with mass phi A, and -Z with mass phi B."""
        log_b = self.pair.logs(y)[1]
        z, under_q = plain.log_r - log_b, plain.log_mass + log_b
        slack = plain.slack + 4 * np.abs(log_b) + 4
        drift = plain.drift
        if self.two_sided:
            hit = np.exp(math.log(self.rate) - (y + 0.5) / self.sigma**2 - log_b)
            drift = drift + 4 * hit * (np.abs(y) + 1.0) / self.sigma**2 + 8 * np.abs(log_b)
        # the mass of -Z is that of Z times e^-Z, which is as wrong as Z is
        log_mass, log_r = np.concatenate([under_q, under_q + z]), np.concatenate([z, -z])
        slack = np.concatenate([slack, slack + 4 * z + drift])
        return Nodes(plain.spacing, log_mass, log_r, slack, np.concatenate([drift, drift]))

    def log_beyond(self, power: float) -> float:
        if not 0 <= power <= 1:
            return math.inf
        none, one = float(log_ndtr(-self.top / self.sigma)), float(log_ndtr((1 - self.top) / self.sigma))
        both = float(np.logaddexp(none + math.log(2.0), one + math.log(self.rate)))
        # Z exceeds log A, for which the mean beyond is bounded, by at most -log(1-q)
        return both + math.log1p(-2 * self.sigma**2 * math.log1p(-self.rate)) + 1e-9

    def bulk_decay(self, c: float, backward: bool) -> BulkFall:
        return BulkFall(self.pair, self.windows, self.nodes[0], self.bulk_strip.panels, self.span(0)[1], c)


@dataclass(frozen=True, eq=False)
class BulkError:
    """What `MarkedLine` asks of a strip of the bulk."""

    panels: Panels

    def log_missed_rest(self, c: float, backward: bool, t: float, spacing: Real) -> Real:
        return np.array([self.panels.log_missed(c, t, rest=True) if c or t else -np.inf])


@dataclass(frozen=True, eq=False)
class BothBranches:
    """Errors and decay of the rare classes: those of A alone in both directions, and what |B| may add."""

    strips: Strips
    least: float  # log of a lower bound on |B| <= 1
    turn: float  # an upper bound on |arg B|

    @classmethod
    def of(cls, pair: SymmetricPair, strips: Strips, start: float) -> BothBranches:
        # M_j begins with the way up at the first edge: |f| times v, where phi < 0.4/sigma and Phi(low/sigma) > 1/2
        strips = replace(strips, low_weight=strips.low_weight + np.log1p(strips.theta * pair.sigma))
        if not pair.two_sided:
            return cls(strips, 0.0, 0.0)
        lowest = np.array([start - 0.25 * pair.sigma])  # the last interval may begin a spacing before the cells
        turned = pair.complex_logs(lowest, RARE_ANGLES[-1])[1]
        return cls(strips, padded_down(math.log1p(-pair.rate), 1e-12), float(abs(turned.imag[0])) + 1e-12)

    def _both(self, power: float, t: float, found: Real, other: Real) -> Real:
        """Powers a and 1 - a of A, times |B|^(1-a) and |B|^a."""
        first, second = max((1 - power) * self.least, 0.0), max(power * self.least, 0.0)
        return np.asarray(np.logaddexp(found + first, other + second) + t * self.turn)

    def log_missed(self, power: float, t: float, spacing: Real) -> Real:
        found, other = (self.strips.log_missed(p, t, spacing) for p in (power, 1 - power))
        return self._both(power, t, found, other)

    def log_missed_mean(self, power: float, spacing: Real) -> Real:
        """|log r| is at most |log A| + |log B|."""
        found, other = (
            np.logaddexp(
                self.strips.log_missed_mean(p, spacing),
                self.strips.log_missed(p, 0.0, spacing) + math.log(max(-self.least + self.turn, 1e-300)),
            )
            for p in (power, 1 - power)
        )
        return self._both(power, 0.0, found, other)

    def log_fallen(self, power: float, t: float) -> Real:
        found, other = (self.strips.log_fallen(p, t) for p in (power, 1 - power))
        return self._both(power, 0.0, found, other)


def mean_loss(pair: SymmetricPair) -> Mean:
    """E[Z] of one step, the integral of phi (A - B) Z over all outcomes with a loss, and its error.

    In terms of masses m = phi A and phi B it is the sum of m (e^-v - 1 + v) over both branches, positive terms only.
    """
    high = 1.0 + pair.start + _REACH * pair.sigma
    y, weights, half = panels(pair.start, high, min(0.5 * pair.sigma, 0.5 * pair.sigma**2))
    if len(y) > _MOST_NODES:
        raise TooExpensive("too many panels")
    log_a, log_b = pair.logs(y)
    z = log_a - log_b
    log_phi = np.log(weights / pair.sigma) - 0.5 * (y / pair.sigma) ** 2 - _LOG_SQRT_2PI
    terms = np.exp(log_phi + log_a) * np.real(exp_minus_1_minus(-z)) + np.exp(log_phi + log_b) * np.real(
        exp_minus_1_minus(z)
    )
    squared = np.exp(log_phi + log_a) * z * z + np.exp(log_phi + log_b) * z * z
    value = float(terms.sum())
    # an error d of Z moves a term by at most d |e^Z - 1| times its mass, and d is a few units of its parts
    share = 64 + 3 * (y / pair.sigma) ** 2 + 4 * (np.abs(log_a) + np.abs(log_b))
    moved = np.exp(log_phi + log_a) * -np.expm1(-z) * 16 * (np.abs(log_a) + np.abs(log_b)) * 2
    drift = 12 * pair.rate * (np.abs(y) + 1) / pair.sigma**2 * np.exp(log_phi + np.maximum(y - 0.5, 0) / pair.sigma**2)
    rounding = UNIT * float((terms * (share + len(y)) + moved + drift * -np.expm1(-z)).sum())
    missed = math.exp(Panels.on(pair, None, pair.start, half, len(y) // NODES).log_missed_mean())
    # beyond: at most E_P[Z; y > high], where Z <= 2y/sigma^2 as B >= e^(-(2y+1)/2sigma^2), and E[y; y > high] is at
    # most (high + sigma) P[y > high] for a normal law around 1 or around 0
    room = (high + 1 + 2 * pair.sigma) / pair.sigma**2
    beyond = 2 * room * math.exp(float(log_ndtr((1 - high) / pair.sigma)) + 1e-9)
    return Mean(np.array([value]), np.array([rounding + missed + beyond]), np.array([float(squared.sum()) - value**2]))
