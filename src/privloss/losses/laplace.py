"""The Laplace privacy loss. With lambda = sensitivity/scale and s = z + 1/2,

    M(z) = e^(-lambda/2) [ cosh(s lambda) + sinh(s lambda) / (2 s) ]:

atoms 1/2 at +lambda and e^-lambda/2 at -lambda, and the density e^(-(lambda-x)/2)/4 between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.numerics.small import UNIT, Complex, Real, exp_minus_1_minus, log1p_polar
from privloss.numerics.transform import LineValues, TooExpensive

_MAX_WORK = 20_000_000


@dataclass(frozen=True, eq=False)
class LaplaceLoss(PrivacyLoss):
    """Bundle over arrays `lam` (sensitivity/scale) and `count`."""

    lam: Real
    count: Real
    symmetric = True

    def reversed(self) -> LaplaceLoss:
        return self

    @property
    def largest(self) -> float:  # type: ignore[override]
        return float(self.count @ self.lam) * (1 + (4 + len(self.lam)) * UNIT)

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c)

    def moments(self, c: float) -> tuple[float, float, float]:
        # K', K'' by central differences of the analytic K on a complex step: exact to many digits
        step = 1e-4 * min(1.0, 1 / float(self.lam.max()))
        points = np.array([c + 0j, c + 1j * step])
        m1 = _m_minus_1(self.lam[:, None], points[None, :])
        k = self.count @ _log1p(m1)
        return float(k[0].real), float(k[1].imag / step), float(2 * (k[0].real - k[1].real) / step**2)

    def log_mgf_upper(self, c: Real) -> Real:
        re, _, error = _k(self.lam, c + 0j)
        return np.asarray(self.count @ (re + error) + 2 * len(self.lam) * UNIT * (self.count @ np.abs(re)))

    def log_mgf_simple_upper(self, c: Real) -> Real:
        return self.log_mgf_upper(c)

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """One release: delta = 1 - e^((eps - lambda)/2) for |eps| <= lambda, 1 - e^eps below."""
        if self.count.sum() != 1:
            return None
        lam = float(self.lam[0])
        if eps >= lam:
            return -np.inf, -np.inf
        value = -np.expm1(0.5 * (eps - lam)) if eps > -lam else -np.expm1(eps)
        log_value, slack = float(np.log(value)), 8 * UNIT * (1 + (abs(eps) + lam) / max(lam - eps, 1e-300))
        return log_value - slack, min(log_value + slack, 0.0)

    def mean_bounds(self) -> tuple[float, float]:
        """lambda - 1 + e^-lambda each."""
        mean = float(self.count @ np.real(exp_minus_1_minus(-self.lam)))
        slack = (64 + len(self.lam)) * UNIT * mean
        return mean - slack, mean + slack

    def weakest(self) -> LaplaceLoss:
        return LaplaceLoss(np.array([self.lam.max()]), np.ones(1))


@dataclass(frozen=True, eq=False)
class _Vertical:
    loss: LaplaceLoss
    c: float

    def line(self, t: Real, goal: float) -> LineValues:
        lam, count = self.loss.lam, self.loss.count
        if len(lam) * len(t) > _MAX_WORK:
            raise TooExpensive("Laplace line")
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for one, times in zip(lam, count, strict=True):
            re, im, err = _k(np.array([one]), self.c + 1j * t)
            modulus += times * re[0]
            phase += times * im[0]
            error += times * (err[0] + 8 * UNIT * (np.abs(re[0]) + np.abs(im[0])))
        size = len(lam) * UNIT * (np.abs(modulus) + np.abs(phase))
        return LineValues(modulus, phase, error + size)

    def decay(self, t: float) -> float:
        """The atoms never decay; the density, of total variation V on the tilted scale, contributes at most V/t."""
        lam, c = self.loss.lam, self.c
        # everything divided by e^((c + 1/2) lambda - lambda/2) / 2
        atoms = 1 + np.exp(-(2 * c + 1) * lam)
        whole = atoms + -np.expm1(-(2 * c + 1) * lam) / (2 * c + 1)
        smooth = np.minimum(whole - atoms, (1 + np.exp(-(2 * c + 1) * lam)) / max(2 * t, 1e-300))
        return float(self.loss.count @ np.log(np.minimum((atoms + smooth) / whole * (1 + 8 * UNIT), 1.0)))


def _m_minus_1(lam: Real, z: Complex) -> Complex:
    """M - 1 without cancellation, for |z lambda| not large:

    e^(-lambda/2) { 2 sinh((z+1) lambda/2) sinh(z lambda/2) + lambda/2 [S(s lambda) - S(lambda/2)] },  S(x) = sinh(x)/x.
    """
    s = z + 0.5
    x2, y2 = (s * lam) ** 2, (0.5 * lam) ** 2
    product = z * (z + 1) * lam**2  # x2 - y2
    # S(x) - S(y) = (x2 - y2) sum_k D_k/(2k+1)!,  D_k = (x2^k - y2^k)/(x2 - y2); used for |x|, |y| < 1
    near = (np.abs(x2) < 1.0) & (y2 < 1.0)
    a, b = np.where(near, x2, 0.0), np.where(near, y2, 0.0)
    term, power, total, factorial = np.ones_like(a), b + 0 * a, np.zeros_like(a), 1.0
    for k in range(1, 11):
        factorial *= (2 * k) * (2 * k + 1)
        total = total + term / factorial
        term = a * term + power
        power = power * b
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.sinh(s * lam) / (s * lam) - np.sinh(0.5 * lam) / (0.5 * lam)
        first = 2 * np.sinh(0.5 * (z + 1) * lam) * np.sinh(0.5 * z * lam)
    return np.asarray(np.exp(-0.5 * lam) * (first + 0.5 * lam * np.where(near, product * total, far)))


def _log1p(m1: Complex) -> Complex:
    re, im = log1p_polar(m1.real, m1.imag)
    return np.asarray(re + 1j * im)


def _k(lam: Real, z: Complex) -> tuple[Real, Real, Real]:
    """Re K, Im K and error, arrays (lam, z), Re z > -1/2."""
    lam, z = lam[:, None], z[None, :]
    near = np.abs(z * lam) < 20.0
    m1 = _m_minus_1(lam, np.where(near, z, 0.0))
    near_re, near_im = log1p_polar(m1.real, m1.imag)
    # far out: M = e^(z lambda) (z + 1 + z e^(-(2z+1) lambda)) / (2z + 1)
    rest = (z + 1 + z * np.exp(-(2 * z + 1) * lam)) / (2 * z + 1)
    far_re, far_im = (z * lam).real + np.log(np.abs(rest)), (z * lam).imag + np.angle(rest)
    re, im = np.where(near, near_re, far_re), np.where(near, near_im, far_im)
    size = np.abs(z * lam)
    growth = np.exp(np.minimum(z.real * lam, 50.0))
    # near: relative error of M - 1, whose terms are at most |z(z+1)| lambda^2 e^(..) or the sinh themselves
    near_error = 64 * UNIT * np.minimum(size * np.abs((z + 1) * lam), 4.0) * (1 + size) * growth / np.exp(near_re)
    far_error = 64 * UNIT * (1 + size) / np.minimum(np.abs(rest), 1.0)
    return re, im, np.where(near, near_error, far_error)
