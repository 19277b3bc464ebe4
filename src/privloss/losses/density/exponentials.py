"""Losses whose density is an exponential: Laplace noise, whole, cut off or on a Poisson sample, and bounded ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privloss.losses.closed.bounded_range import BoundedRangeLoss
from privloss.losses.closed.laplace import LaplaceLoss
from privloss.losses.density.by_parts import Powers
from privloss.losses.density.legendre import NODES, FineRule, error, log_ends, panels
from privloss.losses.density.profile import sampled_hockey_stick
from privloss.losses.table.table import Density, Table
from privloss.numerics.floats import UNIT, Complex, Real
from privloss.numerics.stable import exp_or_inf, log_sampled


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

        return cls(lam, low, top, share, atoms, profile, max(revealed, 5e-324))  # never nothing: the supports differ

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
        """(1-q)Q + qP against Q: r = 1 - q + q e^z; what only Q produces has r = 1 - q. Folded: the symmetric pair of
        its losses above 0 (see `folding.py`), that is z > 0, with every function the sum of both directions.

        Off the axis |1 - q + q e^(x+iy)| <= 1 - q + q e^x, >= cos(y) times that, and its argument is at most p tan y,
        p = q e^x / (1 - q + q e^x).
        """
        lam, low, top, factor = self.lam, max(self.low, 0.0) if folded else self.low, self.top, self.factor
        z, weights, half = panels(low, top, 0.5)
        atoms = (*self.atoms, (-math.inf, self.revealed)) if self.revealed > 0 else self.atoms
        atoms = tuple((v, m) for v, m in atoms if v > 0) if folded else atoms
        plain = np.concatenate([z, [v for v, _ in atoms]])
        under_q = np.concatenate([0.25 * factor * weights * np.exp(-0.5 * (lam + z)), [m for _, m in atoms]])
        values = log_sampled(rate, plain)
        masses = under_q * np.exp(values)
        count, scale = len(z) // NODES, math.log(0.25 * factor) - 0.5 * (lam + low)

        def hit(overhang: float) -> tuple[float, float]:
            grown = rate * exp_or_inf(top + overhang)
            return math.log1p(grown - rate), grown / (1 - rate + grown) if grown < math.inf else 1.0

        def forth(c: float, t: Real, height: float, overhang: float) -> Real:
            log_r, p = hit(overhang)
            return scale + 0.5 * overhang + (c + 1) * log_r + t * p * math.tan(height)

        def back(c: float, t: Real, height: float, overhang: float) -> Real:
            fixed = scale + 0.5 * overhang - c * (math.log1p(-rate) + math.log(math.cos(height)))
            return fixed + t * hit(overhang)[1] * math.tan(height)

        # by parts in v = log r: F/v' is e^(-3z/2) r^(c+2), log-convex, or e^(-3z/2) r^(1-c), falling, up to a factor
        constant = math.log(0.25 * factor / rate) - 0.5 * lam

        def variation(c: float) -> float:
            down, up = (-1.5 * x + (c + 2) * float(log_sampled(rate, x)) for x in (low, top))
            return 2 * exp_or_inf(float(np.logaddexp(down, up)) + constant)

        def variation_back(c: float) -> float:
            end = -1.5 * low + (1 - c) * float(log_sampled(rate, low))
            return 2 * exp_or_inf(end + constant)

        powers = Powers(rate, low, top, constant)

        def loss(x: Real) -> Real:
            return log_sampled(rate, x)

        def under(power: float, x: Real) -> Real:
            return math.log(0.25 * factor) - 0.5 * (lam + x) + power * loss(x)

        fine = FineRule(low, top, lambda c, x: under(c + 1, x), loss, +1, forth, 64 + 4 * lam)
        fine_back = FineRule(low, top, lambda c, x: under(-c, x), loss, -1, back, 64 + 4 * lam)

        def closed(c: float, t: Real) -> tuple[Complex, Real]:
            return fine.refine(c, t, *powers.integral(c + 2, +1, t))

        def closed_back(c: float, t: Real) -> tuple[Complex, Real]:
            return fine_back.refine(c, t, *powers.integral(1 - c, -1, t))

        profile = (
            lambda eps: sampled_hockey_stick(rate, self.profile, eps, False, self.revealed),
            lambda eps: sampled_hockey_stick(rate, self.profile, eps, True, self.revealed),
        )
        errors = error(half, count, forth), error(half, count, back)
        ends = float(log_sampled(rate, top)), -float(log_sampled(rate, -math.inf if self.revealed else low))
        density = Density(len(z), errors, (variation, variation_back), profile, ends, (closed, closed_back))
        lost = max(rate * self.revealed, 5e-324) if self.revealed > 0 else 0.0
        if folded:
            density = density.folded()
            mirrored = masses * np.exp(-values)
            order = np.r_[0 : len(z), len(values) : len(values) + len(z), len(z) : len(values)]
            both = np.concatenate([values, -values]), np.concatenate([masses, mirrored])
            mirror_atoms = np.arange(len(values) + len(z), 2 * len(values))
            index = np.concatenate([order, mirror_atoms])
            rest = max(1 - lost - math.fsum(both[1]), 0.0)
            values, masses = np.append(both[0][index], 0.0), np.append(both[1][index], rest)
        only_q = lost if folded else 0.0
        slack = 32 + 4 * lam
        return Table(values, masses, lost, only_q, slack=slack, wobble=16.0, density=density, symmetric=folded)
