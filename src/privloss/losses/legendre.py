"""Densities on an interval, read at Gauss-Legendre nodes, with the error proven.

An n-point rule on [-1, 1] errs by at most 64/15 * M rho^(2-2n) / (rho^2 - 1) if |f| <= M on the ellipse with foci +-1
and semi-axes (rho +- 1/rho)/2 (Trefethen 2008, Thm. 4.5). On panels of half-width h the ellipse reaches
A = h (rho + 1/rho)/2 beyond the centre and b = h (rho - 1/rho)/2 off the axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privloss.losses.bounded_range import BoundedRangeLoss
from privloss.losses.laplace import LaplaceLoss
from privloss.losses.row import Density, Row
from privloss.losses.sampled_profile import sampled_hockey_stick
from privloss.numerics.small import UNIT, Complex, Real, exp_or_inf

NODES = 24
_HEIGHTS = (1.0, 0.5, 0.2, 0.08, 0.03, 0.01, 3e-3, 1e-3)
LogBound = Callable[[float, Real, float, float], Real]  # (c, t, height b, overhang) -> log of a bound on |f|


def panels(low: float, high: float, width: float) -> tuple[Real, Real, float]:
    """Nodes, weights and the half-width of the panels."""
    count = max(1, math.ceil((high - low) / width))
    half = 0.5 * (high - low) / count
    centres = low + half * (2 * np.arange(count) + 1)
    x, w = np.polynomial.legendre.leggauss(NODES)
    return (centres[:, None] + half * x).ravel(), np.tile(half * w, count), half


def error(half: float, count: int, bound: LogBound) -> Callable[[float, Real], Real]:
    """The error of all panels together, with the best of a few ellipses; `overhang` = A - half."""

    def total(c: float, t: Real) -> Real:
        best = np.full(np.shape(t), np.inf)
        for height in _HEIGHTS:
            ratio = height / half
            rho = ratio + math.sqrt(ratio * ratio + 1)  # rho - 1/rho = 2 b/h
            overhang = half * (0.5 * (rho + 1 / rho) - 1)
            log = bound(c, t, height, overhang) + math.log(64 / 15 * count * half)
            log = log - (2 * NODES - 2) * math.log(rho) - math.log(rho * rho - 1)
            best = np.minimum(best, log)
        with np.errstate(over="ignore"):  # beyond the range of doubles: no bound
            return np.asarray(np.exp(best))

    return total


@dataclass(frozen=True)
class Exponentials:
    """A loss z with density `factor` e^(-(lambda+z)/2)/4 on [low, top] under Q, and atoms (value, Q-mass); the
    profile is the same in both directions."""

    lam: float
    low: float
    top: float
    factor: float
    atoms: tuple[tuple[float, float], ...]
    profile: Callable[[float], tuple[float, float]]

    @classmethod
    def laplace(cls, lam: float) -> Exponentials:
        atoms = ((lam, 0.5 * math.exp(-lam)), (-lam, 0.5))
        return cls(lam, -lam, lam, 1.0, atoms, LaplaceLoss(np.array([lam]), np.ones(1)).one_release)

    @classmethod
    def bounded_range(cls, eps: float) -> Exponentials:
        one = BoundedRangeLoss(np.array([eps]), np.ones(1)).one_use
        return cls(eps, -eps, eps, -2 / math.expm1(-eps), (), one)

    def poisson(self, rate: float) -> Row:
        """(1-q)Q + qP against Q: r = 1 - q + q e^z.

        Off the axis |1 - q + q e^(x+iy)| <= 1 - q + q e^x, >= cos(y) times that, and its argument is at most p tan y,
        p = q e^x / (1 - q + q e^x).
        """
        lam, low, top, factor = self.lam, self.low, self.top, self.factor
        z, weights, half = panels(low, top, 0.5)
        plain = np.concatenate([z, [v for v, _ in self.atoms]])
        under_q = np.concatenate([0.25 * factor * weights * np.exp(-0.5 * (lam + z)), [m for _, m in self.atoms]])
        values = np.log1p(rate * np.expm1(plain))
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
            down, up = (-1.5 * x + (c + 2) * math.log1p(rate * math.expm1(x)) for x in (low, top))
            return 2 * exp_or_inf(float(np.logaddexp(down, up)) + constant)

        def variation_back(c: float) -> float:
            end = -1.5 * low + (1 - c) * math.log1p(rate * math.expm1(low))
            return 2 * exp_or_inf(end + constant)

        profile = (
            lambda eps: sampled_hockey_stick(rate, self.profile, eps, False),
            lambda eps: sampled_hockey_stick(rate, self.profile, eps, True),
        )
        errors = error(half, count, forth), error(half, count, back)
        ends = math.log1p(rate * math.expm1(top)), -math.log1p(rate * math.expm1(low))
        density = Density(len(z), errors, (variation, variation_back), profile, ends)
        return Row(values, masses, slack=32 + 2 * lam, wobble=16.0, density=density)


def truncated_laplace(lam: float, bound: float) -> Row:
    """Laplace noise cut off at +-bound (in units of its scale), shifted by lambda against not shifted.

    Where both sides can produce the output the loss is that of Laplace noise; the rest of P is an infinite loss.
    """
    share = -1 / math.expm1(-bound)  # of the noise that is left
    if bound <= lam:
        # up: y from lambda to bound is empty; the overlap is (lambda - bound, bound), inside the slope of the loss
        top, low = 2 * bound - lam, lam - 2 * bound
        atoms = []
    else:
        top, low = lam, -lam
        atoms = [
            (lam, -0.5 * share * math.expm1(lam - bound)),
            (-lam, 0.5 * share * (math.exp(-lam) - math.exp(-bound))),
        ]
    if top <= low:
        from privloss.losses.tables import REVEALED

        return REVEALED
    z, weights, half = panels(low, top, 0.5)
    values = np.concatenate([z, [v for v, _ in atoms]])
    masses = np.concatenate([0.25 * share * weights * np.exp(-0.5 * (lam - z)), [m for _, m in atoms]])
    delta = 0.5 * share * math.exp(-bound) * math.expm1(lam) if bound > lam else 1 - _mass(lam, bound, share)

    def size(c: float, t: Real, height: float, overhang: float) -> Real:
        fixed = math.log(0.25 * share) - 0.5 * (lam - top - overhang) + c * (top + overhang)
        return fixed + t * height

    def size_back(c: float, t: Real, height: float, overhang: float) -> Real:
        return math.log(0.25 * share) - 0.5 * (lam + low - overhang) + c * (overhang - low) + t * height

    def variation(c: float) -> float:  # the tilted density rises: twice its larger end
        return 0.5 * share * exp_or_inf(-0.5 * (lam - top) + c * top)

    def variation_back(c: float) -> float:  # e^(-(lambda+z)/2 - cz) falls
        return 0.5 * share * exp_or_inf(-0.5 * (lam + low) - c * low)

    errors = error(half, len(z) // NODES, size), error(half, len(z) // NODES, size_back)

    def profile(eps: float) -> tuple[float, float]:
        if eps >= top:
            return -math.inf, -math.inf
        s = min(max(eps, low), top)
        inner = math.exp(0.5 * (top - lam)) - math.exp(0.5 * (s - lam))
        inner -= math.exp(eps - 0.5 * (lam + s)) - math.exp(eps - 0.5 * (lam + top))
        total = 0.5 * share * inner + math.fsum(m * -math.expm1(eps - v) for v, m in atoms if v > eps)
        return _logs(total, 32 * UNIT * share * (1 + lam))

    def closed(c: float, t: Real) -> tuple[Complex, Real]:
        w = c + 0.5 + 1j * t
        w = np.where(np.abs(w) < 1e-9, 1e-9, w)  # the quotient is entire; the interval has no mass there
        up, down = np.exp(w * top - 0.5 * lam), np.exp(w * low - 0.5 * lam)
        value = 0.25 * share * (up - down) / w
        size = 0.25 * share * (np.abs(up) + np.abs(down)) / np.abs(w)
        return value, 16 * UNIT * size * (2 + (np.abs(w) + 1) * lam)

    # Q against P is the same with the mirrored interval, which is the interval itself
    density = Density(len(z), errors, (variation, variation_back), (profile, profile), (top, -low), (closed, closed))
    return Row(values, masses, delta, delta, slack=32 + 4 * lam, wobble=8.0, density=density)


def _mass(lam: float, bound: float, share: float) -> float:
    """P-mass of the overlap (lambda - bound, bound) where bound <= lambda: noise from -bound to bound - lambda."""
    return 0.5 * share * (math.exp(bound - lam) - math.exp(-bound))


def _logs(value: float, error: float) -> tuple[float, float]:
    """Logs of value -+ error."""
    return (math.log(value - error) if value > error else -math.inf), math.log(max(value, 0.0) + error)


def truncated_gaussian(mu: float, bound: float) -> Row:
    """N(0, 1) noise cut off at +-bound, shifted by mu or not: losses mu y - mu^2/2 on (mu - bound, bound)."""
    from scipy.special import ndtr

    from privloss.losses.tables import REVEALED

    if 2 * bound <= mu:
        return REVEALED
    share = 1 / (1 - 2 * float(ndtr(-bound)))
    y, weights, half = panels(mu - bound, bound, min(0.5, 0.5 / max(mu, 1e-300)) if mu > 1 else 0.5)
    masses = share * weights * np.exp(-0.5 * (y - mu) ** 2) / math.sqrt(2 * math.pi)
    # the noise from -bound to mu - bound, as a sum of positive terms
    inward, width, _ = panels(0.0, mu, 0.5)
    delta = share * float((width * np.exp(-0.5 * (bound - inward) ** 2)).sum()) / math.sqrt(2 * math.pi)

    def size(c: float, t: Real, height: float, overhang: float) -> Real:
        # e^(-(y-mu)^2/2 + c(mu y - mu^2/2)) is largest at y = (c+1) mu, or at the end
        best = min((c + 1) * mu, bound + overhang)
        top = -0.5 * (best - mu) ** 2 + c * (mu * best - 0.5 * mu * mu)
        return math.log(share) + max(top, 0.0) + 0.5 * height**2 + t * mu * height

    def variation(c: float) -> float:  # one peak: twice its height
        best = min((c + 1) * mu, bound)
        peak = -0.5 * (best - mu) ** 2 + c * (mu * best - 0.5 * mu * mu)
        return 2 * share / math.sqrt(2 * math.pi) / mu * exp_or_inf(max(peak, -700.0))

    errors = error(half, len(y) // NODES, size), error(half, len(y) // NODES, size)

    def profile(eps: float) -> tuple[float, float]:
        if eps >= mu * bound - 0.5 * mu * mu:
            return -math.inf, -math.inf
        start = min(max(eps / mu + 0.5 * mu, mu - bound), bound)
        under_p, under_q = ndtr(mu - start) - ndtr(mu - bound), ndtr(-start) - ndtr(-bound)
        weight = math.exp(min(eps, 700.0))
        size = float(ndtr(mu - start) + weight * ndtr(-start)) * (1 + bound * (1 + abs(start)))
        return _logs(share * float(under_p - weight * under_q), 64 * UNIT * share * size)

    top = mu * bound - 0.5 * mu * mu
    density = Density(len(y), errors, (variation, variation), (profile, profile), (top, top))  # the same law both ways
    slack, wobble = 64 + 4 * bound**2, 8.0 + 4 * bound
    return Row(mu * y - 0.5 * mu * mu, masses, delta, delta, slack=slack, wobble=wobble, density=density)
