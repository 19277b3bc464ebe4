"""Losses whose density is an exponential: Laplace noise, whole or cut off, and bounded ranges; on a Poisson sample see
`sampled_exponentials.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privloss.losses.closed.bounded_range import BoundedRangeLoss
from privloss.losses.closed.laplace import LaplaceLoss
from privloss.losses.density.legendre import NODES, error, log_ends, panels
from privloss.losses.density.sampled_exponentials import SampledExponentials
from privloss.losses.table.build import from_vectors
from privloss.losses.table.table import Density, Table
from privloss.numerics.floats import SMALLEST, UNIT, Complex, Real
from privloss.numerics.stable import exp_or_inf


@dataclass(frozen=True)
class Exponentials:
    """A loss z with density `factor` e^(-(lambda+z)/2)/4 on [low, top] under Q, and atoms (value, Q-mass); the
    profile of the finite losses is the same in both directions, and so is the mass `revealed` of outputs that only one
    side can produce."""

    lam: float
    low: float
    top: float
    factor: float
    atoms: tuple[tuple[float, float], ...]
    profile: Callable[[float], tuple[float, float]]
    revealed: float = 0.0

    @classmethod
    def laplace(cls, lam: float) -> Exponentials:
        atoms = ((lam, 0.5 * math.exp(-lam)), (-lam, 0.5))
        return cls(lam, -lam, lam, 1.0, atoms, LaplaceLoss(np.array([lam]), np.ones(1)).one_release)

    @classmethod
    def bounded_range(cls, eps: float) -> Exponentials:
        one = BoundedRangeLoss(np.array([eps]), np.ones(1)).one_use
        return cls(eps, -eps, eps, -2 / math.expm1(-eps), (), one)

    @classmethod
    def truncated_laplace(cls, lam: float, bound: float) -> Exponentials | None:
        """Laplace noise cut off at +-bound (in units of its scale), shifted by lambda against not shifted; None where
        no output is possible on both sides."""
        share = -1 / math.expm1(-bound)  # of the noise that is left
        atoms: tuple[tuple[float, float], ...] = ()
        if bound > lam:
            low, top = -lam, lam
            large = -0.5 * share * math.expm1(lam - bound)
            small = large * math.exp(-lam)
            atoms = ((lam, small), (-lam, large))
            revealed = 0.5 * share * math.exp(-bound) * math.expm1(lam)
        else:  # the overlap (lambda - bound, bound) lies inside the slope of the loss
            low, top = lam - 2 * bound, 2 * bound - lam
            revealed = 1 - 0.5 * math.expm1(2 * bound - lam) / math.expm1(bound)
        if top <= low:
            return None

        def profile(eps: float) -> tuple[float, float]:
            if eps >= top:
                return -math.inf, -math.inf
            s = min(max(eps, low), top)
            inner = math.exp(0.5 * (top - lam)) - math.exp(0.5 * (s - lam))
            inner -= math.exp(eps - 0.5 * (lam + s)) - math.exp(eps - 0.5 * (lam + top))
            heavy = [(lam, large), (-lam, small)] if atoms else []  # under P
            total = 0.5 * share * inner + math.fsum(m * -math.expm1(eps - v) for v, m in heavy if v > eps)
            return log_ends(total, 32 * UNIT * share * (1 + lam))

        return cls(lam, low, top, share, atoms, profile, max(revealed, SMALLEST))  # never nothing: the supports differ

    def binned(self, count: int) -> Table:
        """The density's losses in so many bins: a post-processing."""
        z = np.linspace(self.low, self.top, count + 1)
        p = 0.5 * self.factor * np.diff(np.exp(-0.5 * (self.lam - z)))
        q = -0.5 * self.factor * np.diff(np.exp(-0.5 * (self.lam + z)))
        heavy = [(m * math.exp(v), m) for v, m in self.atoms] + [(self.revealed, 0.0), (0.0, self.revealed)]
        return from_vectors([*map(float, p), *(m for m, _ in heavy)], [*map(float, q), *(m for _, m in heavy)])

    def plain(self) -> Table:
        """P against Q."""
        lam, low, top, share = self.lam, self.low, self.top, self.factor
        z, weights, half = panels(low, top, 0.5)
        # an atom's mass under P is that of the mirrored atom under Q
        values = np.concatenate([z, [-v for v, _ in self.atoms]])
        masses = np.concatenate([0.25 * share * weights * np.exp(-0.5 * (lam - z)), [m for _, m in self.atoms]])

        def size(c: float, t: Real, height: float, overhang: float) -> Real:
            fixed = math.log(0.25 * share) - 0.5 * (lam - top - overhang) + c * (top + overhang)
            return fixed + t * height

        def size_back(c: float, t: Real, height: float, overhang: float) -> Real:
            return math.log(0.25 * share) - 0.5 * (lam + low - overhang) + c * (overhang - low) + t * height

        def variation(c: float) -> float:  # the tilted density rises: twice its larger end
            return 0.5 * share * exp_or_inf(-0.5 * (lam - top) + c * top)

        def variation_back(c: float) -> float:  # e^(-(lambda+z)/2 - cz) falls
            return 0.5 * share * exp_or_inf(-0.5 * (lam + low) - c * low)

        def closed(c: float, t: Real) -> tuple[Complex, Real]:
            w = c + 0.5 + 1j * t
            w = np.where(np.abs(w) < 1e-9, 1e-9, w)  # the quotient is entire; the interval has no mass there
            up, down = np.exp(w * top - 0.5 * lam), np.exp(w * low - 0.5 * lam)
            value = 0.25 * share * (up - down) / w
            scale = 0.25 * share * (np.abs(up) + np.abs(down)) / np.abs(w)
            return value, 16 * UNIT * scale * (2 + (np.abs(w) + 1) * lam)

        errors = error(half, len(z) // NODES, size), error(half, len(z) // NODES, size_back)
        # Q against P is the same with the mirrored interval, which is the interval itself
        both, forms = (self.profile, self.profile), (closed, closed)
        density = Density(len(z), errors, (variation, variation_back), both, (top, -low), forms)
        lost, slack = self.revealed, 32 + 4 * lam
        return Table(values, masses, lost, lost, slack=slack, wobble=8.0, density=density, symmetric=True)

    def poisson(self, rate: float, folded: bool = False) -> Table:
        """(1-q)Q + qP against Q; folded, the symmetric pair of its losses above 0, that is z > 0."""
        atoms = (*self.atoms, (-math.inf, self.revealed)) if self.revealed > 0 else self.atoms
        low = self.low
        if folded:
            low, atoms = max(low, 0.0), tuple((v, m) for v, m in atoms if v > 0)
        sampled = SampledExponentials(self.lam, low, self.top, self.factor, atoms, self.profile, self.revealed, rate)
        return sampled.folded() if folded else sampled.table()
