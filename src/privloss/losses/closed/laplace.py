"""The Laplace privacy loss. With lambda = sensitivity/scale and s = z + 1/2,

    M(z) = e^(-lambda/2) [ cosh(s lambda) + sinh(s lambda) / (2 s) ]:

atoms 1/2 at +lambda and e^-lambda/2 at -lambda, and the density e^(-(lambda-x)/2)/4 between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privloss.losses.base import Concentration, PrivacyLoss, columns, on_axis
from privloss.numerics.contour.sparse import fall_below
from privloss.numerics.contour.transform import LineValues, TooExpensive
from privloss.numerics.floats import UNIT, Complex, Real, log_lowered, log_raised, lowered, padded_up, raised, widened
from privloss.numerics.stable import exp_minus_1_minus, log1p_polar

if TYPE_CHECKING:
    from privloss.losses.closed.laplace_sums import LaplaceSums

_MAX_WORK = 20_000_000
_ROUNDED = 4  # roundings in a lambda
_TOGETHER = 8192  # values that fit into a cache


@dataclass(frozen=True, eq=False)
class LaplaceLoss(PrivacyLoss):
    """Bundle over arrays `lam` (sensitivity/scale) and `count`."""

    place = 2
    symmetric = True
    lam: Real
    count: Real

    def times(self, count: int) -> LaplaceLoss:
        return LaplaceLoss(self.lam, count * self.count)

    @classmethod
    def merged(cls, parts: Sequence[LaplaceLoss]) -> Sequence[LaplaceLoss]:
        return (cls(*columns(parts, "lam", "count")),)

    def reversed(self) -> LaplaceLoss:
        return self

    @property
    def kinds(self) -> int:
        return len(self.lam)

    @property
    def solved_by_closed_form(self) -> bool:
        return self._sums is not None

    @property
    def largest(self) -> float:
        return raised(float(self.count @ self.lam), 4 + len(self.lam))

    @property
    def largest_lower(self) -> float:
        return lowered(float(self.count @ self.lam), 4 + len(self.lam))

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c)

    def moments(self, c: float) -> tuple[float, float, float]:
        # K', K'' by central differences of the analytic K on a complex step: exact to many digits
        step = 1e-4 * min(1.0, 1 / float(self.lam.max()))
        points = np.array([c + 0j, c + 1j * step])
        re, im, _ = _k(self.lam, points)
        k, angle = self.count @ re, self.count @ im
        return float(k[0]), float(angle[1] / step), float(2 * (k[0] - k[1]) / step**2)

    def log_mgf_upper(self, c: Real) -> Real:
        re, _, error = _k(self.lam, c + 0j)
        return np.asarray(raised(self.count @ (re + error), 2 * len(self.lam), self.count @ np.abs(re)))

    def log_mgf_bounds(self, c: Real, goal: float) -> tuple[Real, Real]:
        return on_axis(_k(self.lam, c + 0j), self.count)

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """One release: delta = 1 - e^((eps - lambda)/2) for |eps| <= lambda, 1 - e^eps below; a few: `laplace_sums`."""
        if self.count.sum() == 1:
            return self.one_release(eps)
        return None if self._sums is None else self._sums.hockey_stick(eps)

    @cached_property
    def _sums(self) -> LaplaceSums | None:
        """A few uses, in ball arithmetic, which is loaded for them only."""
        from privloss.losses.closed.laplace_sums import LaplaceSums, few

        return LaplaceSums(self.lam, self.count, _ROUNDED) if few(self.lam, self.count) else None

    def profile(self, eps: Real) -> tuple[Real, Real] | None:
        if self.count.sum() > 1:
            return None
        lam = widened(float(self.lam[0]), _ROUNDED)
        low, high = (-np.expm1(np.where(eps > -one, np.minimum(0.5 * (eps - one), 0.0), eps)) for one in lam)
        return np.maximum(lowered(low, 8), 0.0), np.minimum(raised(high, 8), 1.0)

    def one_release(self, eps: float) -> tuple[float, float]:
        """log of bounds on delta(eps) of the first member alone."""
        # lambda itself is rounded, and delta rises with lambda
        low, high = (_one_release(lam, eps) for lam in widened(float(self.lam[0]), _ROUNDED))
        return log_lowered(low, 8), min(log_raised(high, 8), 0.0)

    def concentration(self) -> Concentration:
        """M is an entire function F of u = s^2, of order 1/2, and with v = sqrt(-u) its zeros solve v cos(lambda v) +
        sin(lambda v)/2 = 0: eigenvalues v^2 of -y'' on [0, lambda] with y(0) = 0, y'(lambda) = -y(lambda)/2, all
        positive. So F is F(0) times a product of 1 + u/v_k^2 (Hadamard), log F is concave in u, and K(t)/(t(t+1)), its
        slope from u = 1/4 (t = 0) on, falls."""
        return Concentration(searched=self, falls=True)

    def mean_bounds(self) -> tuple[float, float]:
        """lambda - 1 + e^-lambda each."""
        mean = float(self.count @ np.real(exp_minus_1_minus(-self.lam)))
        return widened(mean, 64 + len(self.lam))

    def weakest(self) -> LaplaceLoss:
        return LaplaceLoss(np.array([self.lam.max()]), np.ones(1))


def _one_release(lam: float, eps: float) -> float:
    """log delta(eps) of one release."""
    if eps >= lam:
        return -np.inf
    return float(np.log(-np.expm1(0.5 * (eps - lam) if eps > -lam else eps)))


@dataclass(frozen=True, eq=False)
class _Vertical:
    loss: LaplaceLoss
    c: float

    def line(self, t: Real, goal: float) -> LineValues:
        lam, count = self.loss.lam, self.loss.count
        if len(lam) * len(t) > _MAX_WORK:
            raise TooExpensive("Laplace line")
        modulus, phase, error, size = (np.zeros_like(t) for _ in range(4))
        together = max(1, _TOGETHER // max(len(t), 1))  # members of a short line share their calls
        for i in range(0, len(lam), together):
            re, im, err = _k(lam[i : i + together], self.c + 1j * t)
            times = count[i : i + together]
            modulus += times @ re
            phase += times @ im
            error += times @ err
            size += times @ (np.abs(re) + np.abs(im))
        return LineValues(modulus, phase, error + (8 + len(lam)) * UNIT * size)

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        """y = |M(c+it)/M(c)|^2 at the edges; the variance of a bounded loss is at most lambda^2."""
        loss, t = self.loss, start + width * np.arange(count + 1)
        total = np.zeros(count)
        for one, times in zip(loss.lam, loss.count, strict=True):
            lam = np.array([one])
            at, _, error = _k(lam, self.c + 1j * t)
            centre, _, slack = _k(lam, np.array([self.c + 0j]))
            squares = np.exp(np.minimum(2 * (at + error - centre + slack), 0.0))
            most = np.maximum(squares[:, 1:], squares[:, :-1])
            total += times * fall_below(most, self._variance(one), width)[0]
        return total

    def _variance(self, lam: float) -> Real:
        """An upper bound on the tilted variance: lambda^2, or E[(lambda - Z)^2] with b = 2c + 1 and weights 1 and
        e^(-b lambda) of the atoms, e^(-bu/2)/2 of u = lambda - Z between them."""
        b = 2 * self.c + 1
        down = np.exp(-b * lam)
        whole = 1 + down - np.expm1(-b * lam) / b
        about_top = (4 * lam**2 * down + min(4 * lam**3 / 3, 8 / b**3)) / whole
        return np.array([[padded_up(min(lam**2, about_top), 1e-9)]])

    def decay(self, t: float) -> float:
        """The atoms never decay; the density, of total variation V on the tilted scale, contributes at most V/t."""
        lam, c = self.loss.lam, self.c
        # everything divided by e^((c + 1/2) lambda - lambda/2) / 2
        atoms = 1 + np.exp(-(2 * c + 1) * lam)
        whole = atoms + -np.expm1(-(2 * c + 1) * lam) / (2 * c + 1)
        smooth = np.minimum(whole - atoms, (1 + np.exp(-(2 * c + 1) * lam)) / max(2 * t, 1e-300))
        return float(self.loss.count @ np.log(np.minimum(raised((atoms + smooth) / whole, 8), 1.0)))


def _m_minus_1(lam: Real, z: Complex) -> tuple[Complex, Real]:
    """M - 1 without cancellation, and the size of the terms it is made of; for |z lambda| not large.

    M - 1 = e^(-lambda/2) { 2 sinh((z+1) lambda/2) sinh(z lambda/2) + lambda/2 [S(s lambda) - S(lambda/2)] },
    S = sinh(x)/x.
    The bracket is a series in x^2 - y^2 = z(z+1) lambda^2 for small arguments and otherwise, times lambda/2,
    [2 sinh(lambda/2) sinh^2(z lambda/2) + cosh(lambda/2) sinh(z lambda) - 2 z sinh(lambda/2)] / (2 s).
    """
    s = np.where(np.abs(z + 0.5) < 1e-9, 1e-9, z + 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        half = np.exp(-0.5 * lam)
        sinh, cosh = -0.5 * np.expm1(-lam), 0.5 * (1 + np.exp(-lam))  # of lambda/2, times e^(-lambda/2)
        a, b = 0.5 * (z + 1) * lam, 0.5 * z * lam  # of the same height
        cos, sin = np.cos(b.imag), np.sin(b.imag)
        sinh_b, cosh_b, sinh_a, cosh_a = np.sinh(b.real), np.cosh(b.real), np.sinh(a.real), np.cosh(a.real)
        both = (sinh_b * cos + 1j * (cosh_b * sin)) * (cosh_b * cos + 1j * (sinh_b * sin))
        sinh_a, sinh_b = sinh_a * cos + 1j * (cosh_a * sin), sinh_b * cos + 1j * (cosh_b * sin)
        terms = 2 * sinh * sinh_b**2, 2 * cosh * both, -2 * z * sinh
        second = (terms[0] + terms[1] + terms[2]) / (2 * s)
        first = 2 * half * sinh_a * sinh_b
        second_size = (np.abs(terms[0]) + np.abs(terms[1]) + np.abs(terms[2])) / np.abs(2 * s)
        # where a sine vanishes the rounding of its argument does not: |d sinh(w)| <= |w| |cosh w|, and |cosh w|^2 is at
        # most 1 + |sinh w|^2
        at_a, at_b, double = np.abs(sinh_a), np.abs(sinh_b), 2 * np.abs(both)
        moved = 2 * half * (np.abs(a) * _cosh(at_a) * at_b + np.abs(b) * _cosh(at_b) * at_a)
        moved = moved + np.abs(b) * 2 * (cosh * _cosh(double) + sinh * double) / np.abs(2 * s)
    near = (np.abs(s * lam) < 1.0) & (lam < 2.0)
    if np.any(near):
        every = [np.broadcast_to(x, near.shape)[near] for x in (half, lam, z, s)]
        series = every[0] * _series(*every[1:])
        second[near], second_size[near] = series, np.abs(series)
    return np.asarray(first + second), np.abs(first) + second_size + moved


def _cosh(sinh: Real) -> Real:
    return np.sqrt(1 + sinh * sinh)


def _series(lam: Real, z: Complex, s: Complex) -> Complex:
    """lambda/2 [S(x) - S(y)], x = s lambda, y = lambda/2, |x|, |y| < 1: (x^2 - y^2) times the sum of D_k/(2k+1)!,
    D_k = (x^2k - y^2k)/(x^2 - y^2)."""
    a, b = (s * lam) ** 2, (0.5 * lam) ** 2
    term, power, total, factorial = np.ones_like(a), b, np.zeros_like(a), 1.0
    for k in range(1, 11):
        factorial *= (2 * k) * (2 * k + 1)
        total += term / factorial
        term = a * term + power
        power = power * b
    return np.asarray(0.5 * lam * z * (z + 1) * lam**2 * total)


def _k(lam: Real, z: Complex) -> tuple[Real, Real, Real]:
    """Re K, Im K and error, arrays (lam, z), Re z > -1."""
    lam, z = lam[:, None], z[None, :]
    size = np.abs(z * lam)
    near = size < 20.0
    if np.all(near):
        return _k_near(lam, z, size)
    if not np.any(near):
        return _k_far(lam, z, size)
    lam, z = np.broadcast_to(lam, size.shape), np.broadcast_to(z, size.shape)
    re, im, error = np.empty_like(size), np.empty_like(size), np.empty_like(size)
    for which, ask in ((near, _k_near), (~near, _k_far)):
        re[which], im[which], error[which] = ask(lam[which], z[which], size[which])
    return re, im, error


def _k_near(lam: Real, z: Complex, size: Real) -> tuple[Real, Real, Real]:
    m1, terms = _m_minus_1(lam, z)
    re, im = log1p_polar(m1.real, m1.imag)
    # every hyperbolic function carries a few roundings of its argument
    return re, im, np.log1p(32 * UNIT * terms * (2 + size + lam) / np.exp(np.maximum(re, -600.0)))


def _k_far(lam: Real, z: Complex, size: Real) -> tuple[Real, Real, Real]:
    """M = e^(z lambda) (z + 1 + z e^(-(2z+1) lambda)) / (2z + 1)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        rest = (z + 1 + z * np.exp(-(2 * z + 1) * lam)) / (2 * z + 1)
        re, im = (z * lam).real + np.log(np.abs(rest)), (z * lam).imag + np.angle(rest)
        return re, im, np.log1p(64 * UNIT * (1 + size) / np.minimum(np.abs(rest), 1.0))
