"""Gaussian noise that is cut off at +-bound, N(0, 1) shifted by mu against not shifted.

Where both sides can produce the output y, from mu - bound to bound, the loss is mu y - mu^2/2; the rest of P is an
infinite loss. (Laplace noise: see `exponentials.py`.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from privloss.losses.density.legendre import NODES, FineRule, error, log_ends, panels
from privloss.losses.density.profile import sampled_hockey_stick
from privloss.losses.table.table import Closed, Density, Table
from privloss.numerics.floats import UNIT, Complex, Real
from privloss.numerics.stable import exp_or_inf, log_sampled

_ROOT = math.sqrt(2 * math.pi)
_GRID = 2_000


@dataclass(frozen=True)
class TruncatedNormal:
    """The pair, for 2 bound > mu."""

    mu: float
    bound: float

    @property
    def _share(self) -> float:
        return 1 / math.erf(self.bound * math.sqrt(0.5))

    @property
    def _top(self) -> float:
        return self.mu * self.bound - 0.5 * self.mu**2

    def _nodes(self) -> tuple[Real, Real, float]:
        return panels(self.mu - self.bound, self.bound, 0.5 / max(self.mu, 1.0))

    def _revealed(self) -> float:
        """The noise from -bound to mu - bound, as a sum of positive terms."""
        inward, width, _ = panels(0.0, self.mu, 0.5)
        found = self._share * float((width * np.exp(-0.5 * (self.bound - inward) ** 2)).sum()) / _ROOT
        return max(found, 5e-324)  # never nothing: the supports differ

    def profile(self, eps: float) -> tuple[float, float]:
        """log of bounds on delta(eps) of the finite losses, the same both ways."""
        if eps >= self._top:
            return -math.inf, -math.inf
        mu, bound = self.mu, self.bound
        start = min(max(eps / mu + 0.5 * mu, mu - bound), bound)
        under_p = float(ndtr(mu - start) - ndtr(mu - bound))
        # e^eps times the tails of Q, in logarithms: either factor alone may leave the range of doubles
        nearer, farther = (math.exp(min(eps + float(log_ndtr(-y)), 700.0)) for y in (start, bound))
        size = (float(ndtr(mu - start)) + nearer) * (1 + bound * (1 + abs(start)) + abs(eps))
        return log_ends(self._share * (under_p - (nearer - farther)), 64 * UNIT * self._share * size)

    def plain(self) -> Table:
        """P against Q."""
        mu, bound, share = self.mu, self.bound, self._share
        y, weights, half = self._nodes()
        masses = share * weights * np.exp(-0.5 * (y - mu) ** 2) / _ROOT

        def size(c: float, t: Real, height: float, overhang: float) -> Real:
            # e^(-(y-mu)^2/2 + c(mu y - mu^2/2)) is largest at y = (c+1) mu, or at the end
            best = min((c + 1) * mu, bound + overhang)
            top = -0.5 * (best - mu) ** 2 + c * (mu * best - 0.5 * mu * mu)
            return math.log(share) + max(top, 0.0) + 0.5 * height**2 + t * mu * height

        def variation(c: float) -> float:  # one peak: twice its height
            best = min((c + 1) * mu, bound)
            peak = -0.5 * (best - mu) ** 2 + c * (mu * best - 0.5 * mu * mu)
            return 2 * share / _ROOT / mu * exp_or_inf(max(peak, -700.0))

        errors = error(half, len(y) // NODES, size), error(half, len(y) // NODES, size)
        # the same law both ways
        both, ends = (self.profile, self.profile), (self._top, self._top)
        density = Density(len(y), errors, (variation, variation), both, ends)
        lost, slack, wobble = self._revealed(), 64 + 4 * bound**2, 8.0 + 4 * bound
        values = mu * y - 0.5 * mu * mu
        return Table(values, masses, lost, lost, slack=slack, wobble=wobble, density=density, symmetric=True)

    def poisson(self, rate: float) -> Table:
        """(1-q)Q + qP against Q: r = 1 - q + q e^(mu y - mu^2/2), and r = 1 - q where only Q can be.

        Off the axis, at height h with mu h < pi/2: |r| <= its value on the axis, >= cos(mu h) times that, and its
        argument is at most p tan(mu h), p <= 1 the share of e^z in r (as for `Exponentials.poisson`).
        """
        mu, bound, share, lost = self.mu, self.bound, self._share, self._revealed()
        y, weights, half = self._nodes()
        values = np.append(log_sampled(rate, mu * y - 0.5 * mu * mu), math.log1p(-rate))
        under_q = np.append(share * weights * np.exp(-0.5 * y * y) / _ROOT, lost)
        grid = np.linspace(mu - bound, bound, _GRID)
        log_r = log_sampled(rate, mu * grid - 0.5 * mu * mu)
        gap = float(grid[1] - grid[0])

        def peak(power: float, tilt: float, overhang: float) -> float:
            """An upper bound on -y^2/2 + tilt y + power log r over the interval and `overhang` beyond either end.

            The slope changes by at most 1 + |power| mu^2/4 per unit, which bounds the maximum between grid points; and
            beyond the ends the slope there bounds the growth.
            """
            logs = -0.5 * grid * grid + tilt * grid + power * log_r
            bend = 1 + abs(power) * mu * mu / 4
            slope = bound + mu + abs(tilt) + abs(power) * mu
            return float(logs.max()) + gap * gap / 8 * bend + overhang * (slope + 0.5 * bend * overhang) + 1e-9

        def size(power: float, t: Real, height: float, overhang: float) -> Real:
            if mu * height > 1.2:
                return np.full_like(t, np.inf)
            inward = -min(power, 0.0) * math.log(1 / math.cos(mu * height))
            fixed = math.log(share) + peak(power, 0.0, overhang) + 0.5 * height**2 + inward
            return fixed + t * math.tan(mu * height)

        def variation(power: float) -> float:
            # by parts in v = log r: F = phi r^power e^-z / (mu q). The slope of log F, -y - mu + power mu p(y), has at
            # most three zeros (a line meets a logistic curve), so F at most three peaks with the ends: 6 max F
            top = peak(power, -mu, 0.0) + 0.5 * mu * mu
            return 6 * share / _ROOT / (mu * rate) * exp_or_inf(top)

        count = len(y) // NODES
        errors = (
            error(half, count, lambda c, t, height, overhang: size(c + 1, t, height, overhang)),
            error(half, count, lambda c, t, height, overhang: size(-c, t, height, overhang)),
        )
        profile = (
            lambda eps: sampled_hockey_stick(rate, self.profile, eps, False, lost),
            lambda eps: sampled_hockey_stick(rate, self.profile, eps, True, lost),
        )
        ends = float(log_sampled(rate, self._top)), -math.log1p(-rate)
        variations = (lambda c: variation(c + 2), lambda c: variation(1 - c))

        def closed(power: float, sign: int, at: float, fade: Callable[[float], float]) -> Closed:
            def loss(x: Real) -> Real:
                return np.asarray(log_sampled(rate, mu * x - 0.5 * mu * mu))

            def log_f(c: float, x: Real) -> Real:
                return np.asarray(math.log(share / _ROOT) - 0.5 * x * x + (at + power * c) * loss(x))

            def bound_on(c: float, t: Real, height: float, overhang: float) -> Real:
                return size(at + power * c, t, height, overhang)

            fine = FineRule(mu - bound, bound, log_f, loss, sign, bound_on, 64 + 8 * bound**2, 0.04 / max(mu, 1.0))

            def found(c: float, t: Real) -> tuple[Complex, Real]:
                return fine.refine(c, t, np.zeros(len(t), dtype=complex), fade(c) / np.maximum(t, 1e-9))

            return found

        forms = closed(1, 1, 1.0, variations[0]), closed(-1, -1, 0.0, variations[1])
        density = Density(len(y), errors, variations, profile, ends, forms)
        slack, wobble = 64 + 4 * bound**2, 24.0 + 8 * bound
        masses = np.exp(np.log(np.maximum(under_q, 1e-320)) + values)
        return Table(values, masses, max(rate * lost, 5e-324), slack=slack, wobble=wobble, density=density)
