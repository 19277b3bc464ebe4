"""Integrals of e^(sv) F(v), s = +-it, at heights where no quadrature can follow: integration by parts.

    integral F e^(sv) dv = sum_{m<k} (-1)^m [F^(m) e^(sv)] / s^(m+1) + (-1)^k integral F^(k) e^(sv) dv / s^k,

so k terms at the two ends leave at most (length of the interval) max |F^(k)| / t^k.

On a Poisson sample v = log(1 - q + q e^z), and F is a multiple of e^(-3z/2) r^b, r = e^v. With w = r / (q e^z) one has
dF/dv = F (b - 3w/2) and dw/dv = -w (w - 1), hence F^(m) = F P_m(w) with polynomials P_0 = 1 and
P_{m+1} = P_m (b - 3w/2) - w (w - 1) P_m'. And F w^j is a multiple of e^(-(3/2+j)z) r^(b+j), log-convex in z if
b + j >= 0 and falling otherwise: either way largest at an end, and their sum is at most the sum over both ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privloss.numerics.floats import UNIT, Complex, Real, padded_up
from privloss.numerics.stable import log_sampled

_MOST_TERMS = 10


@dataclass(frozen=True)
class Powers:
    """F = e^log_factor e^(-3z/2) r^b for z from `low` to `top`, on a sample of rate q."""

    rate: float
    low: float
    top: float
    log_factor: float

    def derivatives(self, b: float, z: float, most: int) -> tuple[Real, Real]:
        """F^(m) at z for m <= most, and the same with the moduli of all terms."""
        v = float(log_sampled(self.rate, z))
        w = 1 + (1 - self.rate) / self.rate * math.exp(-z)
        size = math.exp(self.log_factor - 1.5 * z + b * v)
        rows, powers = _table(b, most), w ** np.arange(most + 1.0)
        return size * (rows @ powers), size * (np.abs(rows) @ powers)

    def integral(self, b: float, sign: int, t: Real) -> tuple[Complex, Real]:
        """The integral of F e^(sign i t v) and a bound on the error, with the best number of terms for each t."""
        ends = np.array([self.low, self.top])
        v = log_sampled(self.rate, ends)
        w = 1 + (1 - self.rate) / self.rate * np.exp(-ends)
        log_f = self.log_factor - 1.5 * ends + b * v
        off = UNIT * (64 + 8 * float(np.max(np.abs(log_f) + 1.5 * np.abs(ends) + abs(b) * (np.abs(v) + 1))))
        height = np.maximum(t, 1e-9)
        turned = np.exp(1j * sign * height * v[:, None])
        polynomial = np.polynomial.Polynomial([1.0])
        total, rounding = np.zeros(len(t), dtype=complex), np.zeros(len(t))
        best, doubt = np.zeros(len(t), dtype=complex), np.full(len(t), np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.exp(log_f)
            for m in range(_MOST_TERMS):
                most = size * np.polynomial.Polynomial(np.abs(polynomial.coef))(w)
                edge = (size * polynomial(w))[:, None] * turned
                total = total + (-1) ** m * (edge[1] - edge[0]) / (1j * sign * height) ** (m + 1)
                # the ends v are rounded, which turns e^(itv); every term carries the rounding of F and of P_m(w)
                wrong = off * (m + 1) + 16 * UNIT * height * float(np.abs(v).max())
                rounding = rounding + wrong * float(most.sum()) / height ** (m + 1)
                polynomial = np.polynomial.Polynomial(_next(np.asarray(polynomial.coef, dtype=float), b))
                largest = float((size * np.polynomial.Polynomial(np.abs(polynomial.coef))(w)).sum())
                left = padded_up(float(v[1] - v[0]) * largest / height ** (m + 1), 1e-9) + rounding
                better = left < doubt
                best, doubt = np.where(better, total, best), np.where(better, left, doubt)
        return best, np.where(np.isfinite(best), doubt, math.inf)


def _next(p: Real, b: float) -> Real:
    """Coefficients of P_(m+1) from those of P_m: (b + k) p_k - (k + 1/2) p_(k-1) at w^k."""
    k = np.arange(len(p) + 1.0)
    return np.asarray((b + k) * np.append(p, 0.0) - (k + 0.5) * np.append(0.0, p))


@lru_cache(maxsize=32)
def _table(b: float, most: int) -> Real:
    """Coefficients of P_0 to P_most, in rows."""
    rows = np.zeros((most + 1, most + 1))
    rows[0, 0] = 1.0
    for m in range(most):
        rows[m + 1, : m + 2] = _next(rows[m, : m + 1], b)
    return rows
