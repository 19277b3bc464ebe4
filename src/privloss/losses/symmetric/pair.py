"""Symmetric pairs made of sampled Gaussian noise: fixed-size batches, and Poisson samples under replace-one.

Outcomes y have noise of scale sigma and a record moves them by 1. With A = 1 - q + q e^((2y - 1)/2sigma^2) and B = 1
(fixed size) or B = 1 - q + q e^(-(2y + 1)/2sigma^2) (replace-one), the loss Z = log A - log B rises with y from 0 at
y_0 = 1/2 or 0. The pair has the losses Z > 0 with density phi A, their mirror images -Z with density phi B, and what is
left of the mass at loss 0 (nothing under replace-one, where the mirror image is the pair itself).

Off the axis, for theta = v/sigma^2 <= pi/2: |A(y + iv)| rises with y and falls with v, |B(y + iv)| falls with both and
is at least 1 - q; arg A lies between 0 and theta, arg B between -theta and 0, so that arg(A/B) >= arg A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.losses.mixture.sums import complex_log_ratio
from privloss.numerics.floats import Complex, Real
from privloss.numerics.stable import log_sampled


@dataclass(frozen=True)
class HitPair:
    """(1-q) N(0) + q N(1) against N(0), noise of scale sigma: not symmetric."""

    rate: float
    sigma: float


@dataclass(frozen=True)
class SymmetricPair:
    """One kind of step."""

    rate: float
    sigma: float
    two_sided: bool  # replace-one; otherwise fixed size

    @property
    def start(self) -> float:
        """Where the loss is 0."""
        return 0.0 if self.two_sided else 0.5

    @property
    def at_zero(self) -> float:
        """The mass at loss 0: (1-q)(1 - 2 Phi(-1/2sigma))."""
        return 0.0 if self.two_sided else (1 - self.rate) * math.erf(0.5 / self.sigma / math.sqrt(2))

    def logs(self, y: Real) -> tuple[Real, Real]:
        """log A and log B at outcomes y >= start."""
        a = log_sampled(self.rate, (y - 0.5) / self.sigma**2)
        return a, log_sampled(self.rate, -(y + 0.5) / self.sigma**2) if self.two_sided else np.zeros_like(a)

    def complex_logs(self, y: Real, theta: Real) -> tuple[Complex, Complex]:
        """The same at y + i sigma^2 theta, any y."""
        q = np.array(self.rate)
        a = complex_log_ratio(q, (y - 0.5) / self.sigma**2, theta)
        if not self.two_sided:
            return a, np.zeros_like(a)
        return a, np.conj(complex_log_ratio(q, -(y + 0.5) / self.sigma**2, theta))


Pair = HitPair | SymmetricPair


@dataclass(frozen=True)
class Split:
    """What a row stands for, if it can be split by the largest loss: pairs with weights that add up to 1, which of them
    it is being public; P against Q or, `turned`, Q against P."""

    pairs: tuple[tuple[float, Pair], ...]
    turned: bool = False

    @property
    def one_sided(self) -> bool:
        """Whether losses are large in one direction only."""
        return all(isinstance(pair, HitPair) for _, pair in self.pairs)

    def reversed(self) -> Split:
        return Split(self.pairs, not self.turned)

    @property
    def main(self) -> Pair:
        """The pair with the largest weight."""
        return max(self.pairs, key=lambda member: member[0])[1]
