"""The privacy loss of discrete Gaussian noise through the theta function, for any sigma and sensitivity D.

With theta(a) = sum_k e^(-(k-a)^2/2s^2) and losses (2k - D) D/2s^2 on the whole numbers k,

    K(z) = z (z+1) D^2/2s^2 + log theta((z+1) D) - log theta(0),

and by Poisson summation theta(a) is a multiple of S(a) = 1 + 2 sum_{j>=1} e^(-2 pi^2 s^2 j^2) cos(2 pi j a): for sigma
of at least 0.6 three terms are more than doubles can hold. As D is a whole number, cos(2 pi j (z+1) D) - 1 =
-2 sin^2(pi j z D), which keeps the digits of small K. Z lives on a lattice of spacing h = D/s^2: K is periodic in
Im z with period 2 pi/h (up to the sign (-1)^D of e^K), so heights are first reduced to |t| <= pi/h. There term j is at
most 2 e^(-2 pi^2 s^2 j(j-1)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privloss.losses.base import Concentration, PrivacyLoss, columns
from privloss.losses.table.build import discrete_gaussian, within_table
from privloss.losses.table.lattice import Steps, common_lattice
from privloss.numerics.contour.sparse import fall_below
from privloss.numerics.contour.transform import Lattice, LineValues, TooExpensive
from privloss.numerics.floats import UNIT, Complex, Real, lowered, raised, widened
from privloss.numerics.stable import log1p_polar

LEAST_SIGMA = 0.6
_TERMS = (1, 2, 3)  # the fourth is below e^-85
_MAX_WORK = 20_000_000


@dataclass(frozen=True, eq=False)
class DiscreteGaussianLoss(PrivacyLoss):
    """Bundle over arrays sigma (at least LEAST_SIGMA), whole sensitivity and count."""

    place = 4
    symmetric = True  # k -> D - k
    sigma: Real
    sensitivity: Real
    count: Real

    def times(self, count: int) -> DiscreteGaussianLoss:
        return DiscreteGaussianLoss(self.sigma, self.sensitivity, count * self.count)

    @classmethod
    def merged(cls, parts: Sequence[DiscreteGaussianLoss]) -> Sequence[DiscreteGaussianLoss]:
        return (cls(*columns(parts, "sigma", "sensitivity", "count")),)

    def concentration(self) -> Concentration:
        return Concentration(limit=self.rho)

    def reversed(self) -> DiscreteGaussianLoss:
        return self

    @property
    def kinds(self) -> int:
        return len(self.sigma)

    @property
    def rho(self) -> float:
        """The sum of D^2/2s^2: zCDP, attained at whole t (Canonne, Kamath, Steinke 2020, Thm. 4)."""
        return float((0.5 * self.count * (self.sensitivity / self.sigma) ** 2).sum())

    @property
    def lattice(self) -> Lattice | None:
        return common_lattice(self.lattice_steps())

    def lattice_steps(self) -> list[Steps]:
        """The two losses nearest to 0 of each kind (they differ by the spacing), and how often it runs."""
        found = []
        for s, d, n in zip(self.sigma, self.sensitivity, self.count, strict=True):
            k = np.array([d // 2, d // 2 + 1])
            found.append(Steps((2 * k - d) * d / (2 * s * s), int(n)))
        return found

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c, alone=False)

    def lattice_vertical(self, c: float) -> _Vertical:
        """For a loss that is the whole plan: on its own lattice it decays."""
        return _Vertical(self, c, alone=len(self.sigma) == 1)

    def moments(self, c: float) -> tuple[float, float, float]:
        # like a Gaussian, up to e^(-2 pi^2 s^2)
        return self.rho * c * (c + 1), self.rho * (2 * c + 1), 2 * self.rho

    def log_mgf_upper(self, c: Real) -> Real:
        total = np.zeros(len(c))
        for s, d, n in zip(self.sigma, self.sensitivity, self.count, strict=True):
            for i, point in enumerate(c):
                re, _, error = _k(s, d, float(point), np.zeros(1))
                total[i] += raised(float(n * (re[0] + error[0])), 4)
        return raised(total, 2 * len(self.sigma))

    def mean_bounds(self) -> tuple[float, float]:
        """E[k] = D: by symmetry exactly D^2/2s^2 each."""
        return widened(self.rho, 16 + len(self.sigma))

    def weakest(self) -> DiscreteGaussianLoss:
        best = int(np.argmax(self.sensitivity / self.sigma))
        return DiscreteGaussianLoss(self.sigma[best : best + 1], self.sensitivity[best : best + 1], np.ones(1))

    def log_test_lower(self, eps: float) -> float:
        """One step, from its table where that is of reasonable size."""
        one = self.weakest()
        sigma, sensitivity = float(one.sigma[0]), int(one.sensitivity[0])
        return (
            discrete_gaussian(sigma, sensitivity).hockey_stick(eps)[0] if within_table(sigma, sensitivity) else -np.inf
        )


@dataclass(frozen=True, eq=False)
class _Vertical:
    loss: DiscreteGaussianLoss
    c: float
    alone: bool

    def line(self, t: Real, goal: float) -> LineValues:
        loss = self.loss
        if loss.kinds * len(t) > _MAX_WORK:
            raise TooExpensive("discrete Gaussian line")
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for s, d, n in zip(loss.sigma, loss.sensitivity, loss.count, strict=True):
            re, im, err = _k(s, d, self.c, t)
            modulus += n * re
            phase += n * im
            error += n * (err + 8 * UNIT * (np.abs(re) + np.abs(im)))
        return LineValues(modulus, phase, error + loss.kinds * UNIT * (np.abs(modulus) + np.abs(phase)))

    def decay(self, t: float) -> float:
        """On |t| <= pi/h: e^(-t^2 D^2/2s^2), and 0.998 <= S(c), |S| <= 2.01 (see above); elsewhere it resonates."""
        if not self.alone:
            return 0.0
        loss = self.loss
        each = math.log(2.02) - lowered(0.5 * (t * float(loss.sensitivity[0]) / float(loss.sigma[0])) ** 2, 8)
        return float(loss.count[0]) * min(each, 0.0)

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        """y = |M(c+it)/M(c)|^2 at the edges. The tilted variance of k is s^2 + s^4 (log S)'' <= 1.1 s^2, because
        |(log S)''| <= 4 pi^2 2.02 e^(-2 pi^2 s^2) on the axis."""
        loss, t = self.loss, start + width * np.arange(count + 1)
        total = np.zeros(count)
        for s, d, n in zip(loss.sigma, loss.sensitivity, loss.count, strict=True):
            at, _, error = _k(s, d, self.c, t)
            centre, _, slack = _k(s, d, self.c, np.zeros(1))
            squares = np.exp(np.minimum(2 * (at + error - centre + slack), 0.0))
            most = np.maximum(squares[1:], squares[:-1])[None]
            total += n * fall_below(most, np.array([[1.1 * (d / s) ** 2]]), width)[0]
        return total


def _k(sigma: float, sensitivity: float, c: float, t: Real) -> tuple[Real, Real, Real]:
    """Re K, Im K and error at c + it."""
    period = 2 * math.pi * sigma**2 / sensitivity
    turns = np.round(t / period)
    moved = np.where(turns == 0, t, t - turns * period)
    z = c + 1j * moved
    m1, doubt = _theta_minus_1(sigma, z * sensitivity)
    re, im = log1p_polar(m1.real, m1.imag)
    half = 0.5 * (sensitivity / sigma) ** 2
    own_re, own_im = half * (c * (c + 1) - moved**2), half * moved * (2 * c + 1)
    # a height wrong by dt moves M(c+it) by at most E|Z| dt M(c)
    typical = 1.1 * half * (2 * c + 1) + 1.5 * sensitivity / sigma
    shift = np.where(turns == 0, 0.0, 8 * UNIT * t * typical) * np.exp(np.minimum(half * moved**2, 700.0))
    relative = (doubt + 1.01 * shift) * np.exp(-np.maximum(re, -600.0))
    sign = math.pi * np.where((turns * sensitivity) % 2 == 1, 1.0, 0.0)
    size = np.abs(own_re) + half * (c * (c + 1) + moved**2) + np.abs(own_im) + np.abs(re)
    return own_re + re, own_im + im + sign, np.log1p(relative) + 8 * UNIT * size


def _theta_minus_1(sigma: float, w: Complex) -> tuple[Complex, Real]:
    """S(w)/S(0) - 1 with its absolute error, for |Im w| <= pi s^2 (rounded)."""
    total, error = np.zeros(len(w), dtype=complex), np.zeros(len(w))
    whole = 1.0
    for j in _TERMS:
        fall = -2 * (math.pi * sigma * j) ** 2
        whole += 2 * math.exp(fall)
        x, y = math.pi * j * np.fmod(w.real, 1.0), math.pi * j * np.abs(w.imag)  # sin^2 has period pi
        # e^fall sin^2(x + iy) = -e^fall (e^(2i(x+iy)) + e^(-2i(x+iy)) - 2)/4, with e^fall drawn into the exponentials;
        # for small arguments directly, which keeps the digits
        small = y < 1.0
        near = math.exp(fall) * np.sin(x + 1j * np.where(small, y, 0.0)) ** 2
        turn = np.exp(2j * x)
        far = -0.25 * (np.exp(fall - 2 * y) * turn + np.exp(fall + 2 * y) / turn - 2 * math.exp(fall))
        up = np.where(small, near, far)
        term = -4 * np.where(w.imag >= 0, up, up.conj())
        total += term
        turned = math.pi * j * np.abs(w.real)  # what rounding has done to the angle
        size = np.exp(fall + 2 * y)
        # |d sin^2| <= 2 |sin| cosh(y) |d(x + iy)|
        direct = np.abs(term) * (16 - 4 * fall) + 16 * math.exp(fall) * (x + y + turned) * np.hypot(x, y)
        error += UNIT * np.where(small, direct, size * (64 + 16 * (2 * y - fall + turned)))
    # the fourth term and on: below 3 e^(-2 pi^2 s^2 12) even at the end of the lattice's line
    error += 3 * math.exp(-24 * (math.pi * sigma) ** 2) * np.minimum(1.0, np.abs(w)) ** 2 * 300
    return np.asarray(total / whole, dtype=complex), error + 8 * UNIT * np.abs(total)
