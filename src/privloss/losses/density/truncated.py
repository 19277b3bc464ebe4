"""Gaussian noise that is cut off at +-bound, N(0, 1) shifted by mu against not shifted.

Where both sides can produce the output y, from mu - bound to bound, the loss is mu y - mu^2/2; the rest of P is an
infinite loss. (Laplace noise: see `exponentials.py`.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from privloss.losses.density.legendre import NODES, error, log_ends, panels
from privloss.losses.density.sampled_truncated import SampledTruncatedNormal
from privloss.losses.table.table import Density, Table
from privloss.numerics.floats import SMALLEST, UNIT, Real
from privloss.numerics.stable import exp_or_inf

_ROOT = math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class TruncatedNormal:
    """The pair, for 2 bound > mu."""

    mu: float
    bound: float

    @property
    def share(self) -> float:
        """1 over the part of the noise that is left."""
        return 1 / math.erf(self.bound * math.sqrt(0.5))

    @property
    def _top(self) -> float:
        return self.mu * self.bound - 0.5 * self.mu**2

    def _nodes(self) -> tuple[Real, Real, float]:
        return panels(self.mu - self.bound, self.bound, 0.5 / max(self.mu, 1.0))

    def revealed(self) -> float:
        """The noise from -bound to mu - bound, as a sum of positive terms."""
        inward, width, _ = panels(0.0, self.mu, 0.5)
        found = self.share * float((width * np.exp(-0.5 * (self.bound - inward) ** 2)).sum()) / _ROOT
        return max(found, SMALLEST)  # never nothing: the supports differ

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
        return log_ends(self.share * (under_p - (nearer - farther)), 64 * UNIT * self.share * size)

    def plain(self) -> Table:
        """P against Q."""
        mu, bound, share = self.mu, self.bound, self.share
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
        lost, slack, wobble = self.revealed(), 64 + 4 * bound**2, 8.0 + 4 * bound
        values = mu * y - 0.5 * mu * mu
        return Table(values, masses, lost, lost, slack=slack, wobble=wobble, density=density, symmetric=True)

    def poisson(self, rate: float) -> Table:
        """(1-q)Q + qP against Q."""
        return SampledTruncatedNormal(self.mu, self.bound, self.share, self.revealed(), self.profile, rate).table()
