"""The exponential mechanism: any loss with a range of eps (bounded range).

Every such pair is dominated by one with a density. Two-point pairs with losses t and t - eps are the extreme ones, with
delta(x) = (E - e^t)(1 - e^(x-t))/(E - 1), E = e^eps (Dong, Durfee, Rogers 2020); it is largest at t = (eps + x)/2:

    delta(x) = (e^(eps/2) - e^(x/2))^2 / (e^eps - 1),    -eps <= x <= eps,

convex in e^x, so it is the profile of a pair: the density e^(z/2) / (4 sinh(eps/2)) on [-eps, eps], and

    M(z) = sinh((z + 1/2) eps) / ((2z + 1) sinh(eps/2)).

It composes adaptively. One use attains it for each x; many uses may not, so the lower end of a composition is that of
two-point mechanisms with a common t (optimal without adaptivity).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privloss.losses.base import PrivacyLoss, columns, on_axis
from privloss.losses.table.table import Table
from privloss.numerics.contour.transform import LineValues
from privloss.numerics.floats import UNIT, Complex, Real, lowered, raised, widened
from privloss.numerics.stable import log1p_polar


@dataclass(frozen=True, eq=False)
class BoundedRangeLoss(PrivacyLoss):
    """Bundle over arrays `eps` > 0 and `count`."""

    place = 5
    symmetric = True
    eps: Real
    count: Real

    def times(self, count: int) -> BoundedRangeLoss:
        return BoundedRangeLoss(self.eps, count * self.count)

    @classmethod
    def merged(cls, parts: Sequence[BoundedRangeLoss]) -> Sequence[BoundedRangeLoss]:
        return (cls(*columns(parts, "eps", "count")),)

    def reversed(self) -> BoundedRangeLoss:
        return self

    @property
    def kinds(self) -> int:
        return len(self.eps)

    @property
    def largest(self) -> float:
        return raised(float(self.count @ self.eps), 4 + len(self.eps))

    @property
    def largest_lower(self) -> float:
        return lowered(float(self.count @ self.eps), 4 + len(self.eps))

    @property
    def solved_by_closed_form(self) -> bool:
        return bool(self.count.sum() == 1)

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c)

    def moments(self, c: float) -> tuple[float, float, float]:
        a = (c + 0.5) * self.eps
        # Z has density e^(az/eps) on [-eps, eps]: mean eps L(a), variance eps^2 L'(a) = eps^2 (1 - L^2 - 2 L/a)
        langevin = _langevin(a)
        slope = np.where(a < 1e-3, 1 / 3, 1 - langevin**2 - 2 * langevin / np.maximum(a, 1e-300))
        k = _k(self.eps, np.array([c + 0j]))[0][:, 0]
        return (
            float(self.count @ k),
            float(self.count @ (self.eps * langevin)),
            float(self.count @ (self.eps**2 * slope)),
        )

    def log_mgf_upper(self, c: Real) -> Real:
        re, _, error = _k(self.eps, c + 0j)
        return np.asarray(raised(self.count @ (re + error), 2 * len(self.eps), self.count @ np.abs(re)))

    def log_mgf_bounds(self, c: Real, goal: float) -> tuple[Real, Real]:
        return on_axis(_k(self.eps, c + 0j), self.count)

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """One use: (e^(eps0/2) - e^(x/2))^2 / (e^eps0 - 1)."""
        return self.one_use(eps) if self.count.sum() == 1 else None

    def one_use(self, eps: float) -> tuple[float, float]:
        """log of bounds on delta(eps) of the first member alone."""
        own = float(self.eps[0])
        if eps >= own:
            return -math.inf, -math.inf
        if eps <= -own:
            value = math.log(-math.expm1(eps))
        else:
            # e^(own/2) - e^(x/2) = e^(own/2) (1 - e^((x-own)/2)); e^own / (e^own - 1) = -1/expm1(-own)
            value = 2 * math.log(-math.expm1(0.5 * (eps - own))) - math.log(-math.expm1(-own))
        low, high = widened(value, 16, 1 + abs(value) + own / max(own - eps, 1e-300))
        return low, min(high, 0.0)

    def mean_bounds(self) -> tuple[float, float]:
        mean = float(self.count @ (self.eps * _langevin(0.5 * self.eps)))
        return widened(mean, 256 + len(self.eps))

    def weakest(self) -> BoundedRangeLoss:
        return BoundedRangeLoss(np.array([self.eps.max()]), np.ones(1))


def _langevin(a: Real) -> Real:
    """coth(a) - 1/a, for small a by its continued fraction a/(3 + a^2/(5 + a^2/(7 + ...)))."""
    small = np.minimum(a, 2.0)
    fraction = np.full_like(small, 31.0)
    for odd in range(29, 1, -2):
        fraction = odd + small**2 / fraction
    return np.asarray(np.where(a < 2.0, small / fraction, 1 / np.tanh(np.minimum(a, 300.0)) - 1 / np.maximum(a, 1.0)))


def two_point(eps: float, t: float) -> Table:
    """Losses t and t - eps: what a real exponential mechanism can do."""
    up = -math.expm1(t - eps) / -math.expm1(-eps)  # (E - e^t)/(E - 1)
    return Table(
        np.array([t, t - eps]), np.array([up, math.exp(t - eps) * -math.expm1(-t) / -math.expm1(-eps)]), slack=16.0
    )


@dataclass(frozen=True, eq=False)
class _Vertical:
    loss: BoundedRangeLoss
    c: float

    def line(self, t: Real, goal: float) -> LineValues:
        re, im, err = _k(self.loss.eps, self.c + 1j * t)
        n, count = len(self.loss.eps), self.loss.count
        size = count @ (np.abs(re) + np.abs(im))
        return LineValues(count @ re, count @ im, count @ err + (8 + n) * UNIT * size)

    def decay(self, t: float) -> float:
        """|sinh((c+1/2+it) eps)| <= cosh((c+1/2) eps): the quotient falls like 1/t."""
        b = 2 * self.c + 1
        ratio = b / np.hypot(b, 2 * t) / np.tanh(0.5 * b * self.loss.eps)
        return float(self.loss.count @ np.log(np.minimum(raised(ratio, 16), 1.0)))

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        left = start + width * np.arange(count)
        b = 2 * self.c + 1
        ratio = b / np.hypot(b, 2 * left)[None, :] / np.tanh(0.5 * b * self.loss.eps)[:, None]
        return np.asarray(-(self.loss.count @ np.log(np.minimum(raised(ratio, 16), 1.0))))


def _k(eps: Real, z: Complex) -> tuple[Real, Real, Real]:
    """Re K, Im K and error, arrays (eps, z), Re z > -1/2: log of S(s eps)/S(eps/2), S = sinh(x)/x, s = z + 1/2."""
    eps, z = eps[:, None], z[None, :]
    x, y = (z + 0.5) * eps, 0.5 * eps
    # near 0: S(x) - S(y) = (x^2 - y^2)(1/6 + (x^2+y^2)/120 + ...), x^2 - y^2 = z(z+1) eps^2
    near = (np.abs(x) < 1.0) & (y < 1.0)
    a, b = np.where(near, x * x, 0.0), np.where(near, y * y, 0.0)
    term, power, total, factorial = np.ones_like(a), b + 0 * a, np.zeros_like(a), 1.0
    for k in range(1, 11):
        factorial *= (2 * k) * (2 * k + 1)
        total = total + term / factorial
        term = a * term + power
        power = power * b
    m1 = z * (z + 1) * eps**2 * total / (np.sinh(np.minimum(y, 1.0)) / np.minimum(y, 1.0))
    near_re, near_im = log1p_polar(m1.real, m1.imag)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # far: log sinh(x) = x + log1p(-e^(-2x)) - log 2
        rest = -np.expm1(-2 * x)
        far_re = x.real + np.log(np.abs(rest)) - np.log(np.abs(2 * z + 1)) - (y + np.log(-np.expm1(-2 * y)))
        far_im = x.imag + np.angle(rest) - np.angle(2 * z + 1)
    re, im = np.where(near, near_re, far_re), np.where(near, near_im, far_im)
    near_error = 64 * UNIT * np.abs(m1) / np.exp(np.maximum(near_re, -600.0))
    far_error = 64 * UNIT * (1 + np.abs(x)) / np.maximum(np.minimum(np.abs(rest), 1.0), 1e-300)
    return re, im, np.log1p(np.where(near, near_error, far_error))
