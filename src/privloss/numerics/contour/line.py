"""Reading delta(eps) = E[(1 - e^(eps - Z))_+] off one vertical line, with every error term bounded.

For any c > 0 with K(c) finite, delta(eps) = 1/(2 pi i) * integral over Re z = c of e^(K(z) - eps z) / (z (z+1)) dz. The
trapezoid rule with step D (period L = 2 pi/D) and nodes z_n = c + i n D, |n| <= N, leaves four errors:

1. *Images.* By Poisson summation the infinite sum is the sum over k of delta(eps + kL) e^(ckL); every term is >= 0, so
   the sum is an upper bound. With delta(x) <= kappa(b) e^(K(b) - b x) the images on either side add at most
   kappa(b) e^(K(b) - b eps) / (e^(|b - c| L) - 1), for any b > c on the right and any 0 <= b < c on the left.
2. *Cut.* Beyond t_N = N D, |e^K| <= B and 1/|z(z+1)| <= 1/t^2 leave at most B e^(-c eps) / (pi t_N).
3. *K itself* (quadrature and rounding): each node carries e with |exact/computed - 1| <= expm1(e).
4. *Rounding of the sum*: phases up to |Im K| + eps t, each to a few roundings, and the sum itself.

On a lattice of spacing h the integral runs over |t| <= pi/h, L is a multiple of h, and 1/(z(z+1)) is replaced by the
geometric sum over the lattice points g above eps (g1 the first, eta = g1 - eps in (0, h]):

    h [ (1 - e^-eta) + e^(-(z+1)h) (e^(h-eta) - 1) ] / ((1 - e^(-zh)) (1 - e^(-(z+1)h)))  with e^(-z g1) for e^(-z eps).

*Blur.* If Z was blurred by an independent W ~ N(mu^2/2, mu^2), the privacy loss of a Gaussian mechanism, the line gives
delta_{Z+W} >= delta_Z. Conversely delta_{Z+W}(eps) - delta_Z(eps) = E[G(eps - Z)] with
G(x) = delta_W(x) - (1 - e^x)_+ <= (1+mu) mu phi(x/mu) e^(x/2), whose expectation is (1+mu) mu^2 e^(mu^2/8) times the
density of Z+W at eps: the same sum with kernel 1. So the lower end loses a term of second order in mu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.numerics.contour.transform import Lattice, LineValues, log_kappa
from privloss.numerics.floats import UNIT, Complex, Real, lowered


@dataclass(frozen=True)
class Reading:
    """delta(eps) = e^log_scale * value, with value in [value - below, value + above]; arrays over eps."""

    log_scale: Real
    value: Real
    above: Real
    below: Real

    def log_upper(self) -> Real:
        with np.errstate(divide="ignore", invalid="ignore"):
            log = self.log_scale + np.log(np.maximum(self.value + self.above, 0.0))
        return np.where(np.isnan(log), np.inf, log)

    def log_lower(self) -> Real:
        with np.errstate(divide="ignore", invalid="ignore"):
            log = self.log_scale + np.log(np.maximum(self.value - self.below, 0.0))
        return np.where(np.isnan(log), -np.inf, log)

    def log_value(self) -> Real:
        with np.errstate(divide="ignore"):
            return self.log_scale + np.log(np.maximum(self.value, 1e-300))


@dataclass(frozen=True, eq=False)
class Line:
    """One vertical line, evaluated once; `read` may then be asked for many eps."""

    c: float
    step: float
    t: Real
    values: LineValues
    log_beyond: float  # log B - K(c); -inf if nothing was cut
    image_points: Real  # b
    image_logs: Real  # upper bounds on K(b) - K(c)
    largest: float
    lattice: Lattice | None
    mu: float
    log_lost: float = -math.inf  # what the transform has left out of delta
    height: float = math.nan  # where the line was cut, if not at its last node
    skipped: float = 0.0  # what nodes left out could add to the sum over 1/t^2, and
    skipped_density: float = 0.0  # to the plain sum

    @property
    def log_mgf_upper(self) -> float:
        """An upper bound on K(c)."""
        return float(self.values.log_modulus[0] + self.values.error[0])

    @property
    def _end(self) -> float:
        return float(self.t[-1]) if math.isnan(self.height) else self.height

    @cached_property
    def _amplitude(self) -> Real:
        """|e^(K - K(c))| D/pi at each node, the zeroth at half weight."""
        amplitude = np.exp(self.values.log_modulus - self.values.log_modulus[0]) * (self.step / np.pi)
        amplitude[0] *= 0.5
        return np.asarray(amplitude)

    @cached_property
    def _errors(self) -> tuple[Real, Real]:
        """Error of each node, times D/pi: a constant part (errors 3 and 4) and a part per unit of |eps| (error 4)."""
        values = self.values
        exponent = np.abs(values.log_modulus) + abs(values.log_modulus[0]) + np.abs(values.phase)
        fixed = values.error + UNIT * (16 + 2 * len(self.t) + 4 * exponent)
        # a large relative error belongs to a tiny modulus: go through the sum of the logs, e^(a) + 1 >= expm1(a)
        grown = np.exp(np.minimum(values.log_modulus - values.log_modulus[0] + fixed, 700.0)) * (self.step / np.pi)
        # expm1(a + b) <= expm1(a) + 2 b e^a for b <= 1
        constant = np.where(fixed < 1, self._amplitude * np.expm1(np.minimum(fixed, 1.0)), 2 * grown)
        return constant, 8 * UNIT * (self.c + self.t) * grown

    @cached_property
    def kernel(self) -> Complex:
        """D/pi |e^(K - K(c))| / (z (z+1)) at each node, the zeroth at half weight."""
        z = self.c + 1j * self.t
        return np.asarray(self._amplitude / (z * (z + 1)), dtype=complex)

    @cached_property
    def _smooth_errors(self) -> tuple[float, float]:
        size = 1 / np.hypot(self.c, self.t) / np.hypot(self.c + 1, self.t)
        fixed, per_eps = self._errors
        return float(size @ fixed), float(size @ per_eps)

    def log_value(self, eps: float) -> float:
        """log delta(eps) as computed, without bounds: for root finding."""
        if self.lattice is not None:
            return float(self.read(np.array([eps])).log_value()[0])
        angle = self.values.phase - eps * self.t
        kernel = self.kernel
        value = float(kernel.real @ np.cos(angle) - kernel.imag @ np.sin(angle))
        return float(self.values.log_modulus[0]) - self.c * eps + math.log(max(value, 1e-300))

    def log_bounds(self, eps: Real) -> tuple[Real, Real]:
        """log of lower and upper bounds on delta at each eps."""
        reading = self.read(eps)
        return reading.log_lower(), reading.log_upper()

    def read(self, eps: Real) -> Reading:
        """delta at each eps, with its errors (an overflow makes a bound infinite or NaN, and then no bound at all)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._read(eps)

    def _read(self, eps: Real) -> Reading:
        start = eps if self.lattice is None else self.lattice.next_above(eps)
        angle = self.values.phase - start[:, None] * self.t
        turned = np.cos(angle)
        if self.lattice is None:
            value = turned @ self.kernel.real - np.sin(angle) @ self.kernel.imag
            rounding = self._smooth_errors[0] + np.abs(eps) * self._smooth_errors[1]
            tail: Real | float = 1.0
        else:
            kernel, kernel_error, tail = _lattice_kernel(self.c + 1j * self.t, self.lattice.spacing, eps, start)
            fixed, per_eps = self._errors
            value = (self._amplitude * (kernel * np.exp(1j * angle)).real).sum(axis=1)
            node = fixed + np.abs(start)[:, None] * per_eps
            rounding = (np.abs(kernel) * node + kernel_error * (self._amplitude + node)).sum(axis=1)
        cut = self.skipped * tail
        if self.log_beyond > -np.inf:
            cut = cut + np.exp(min(self.log_beyond, 700.0)) * tail / (np.pi * self._end)
        # e^(K(c) - c eps) itself is rounded; its error is part of `_errors`
        log_scale = self.values.log_modulus[0] - self.c * start
        below = rounding + cut + self._images(eps, start)
        if self.mu > 0:
            below = below + self._blur(start, turned)
        lost = np.exp(np.minimum(self.log_lost - log_scale, 700.0))
        return Reading(log_scale, value, rounding + cut + lost, below)

    @cached_property
    def _image_terms(self) -> tuple[tuple[Real, Real], tuple[Real, Real]]:
        """Logs of the bounds on error 1 at eps = 0, and their points b, left of the line and right of it."""
        gap = np.abs(self.image_points - self.c) * (2 * np.pi / self.step)
        logs = log_kappa(self.image_points) + self.image_logs - gap - np.log(-np.expm1(-np.maximum(gap, 1e-300)))
        left = self.image_points < self.c
        return (logs[left], self.image_points[left]), (logs[~left], self.image_points[~left])

    def _images(self, eps: Real, start: Real) -> Real:
        """Error 1, on the scale e^(K(c) - c start) of this line."""
        lefts, rights = (
            np.exp(np.minimum((logs - eps[:, None] * points).min(axis=1, initial=np.inf) + self.c * start, 700.0))
            for logs, points in self._image_terms
        )
        if not len(self._image_terms[1][0]):
            rights = np.full(len(eps), np.inf)
        # one period to the right there may be nothing left (but a blur has no end)
        ended = (eps + lowered(2 * np.pi / self.step, 4) > self.largest) & (self.mu == 0)
        return np.asarray(lefts + np.where(ended, 0.0, rights))

    def _blur(self, eps: Real, turned: Real) -> Real:
        """Upper bound on delta_{Z+W} - delta_Z on the scale of this line, from the cosines of its phases."""
        mu, t = self.mu, self._end
        fixed, per_eps = self._errors
        density = turned @ self._amplitude + (fixed + np.abs(eps)[:, None] * per_eps).sum(axis=1)
        beyond = np.exp(min(self.log_beyond, 700.0)) / (np.pi * mu * mu * t)  # Gaussian decay from t on
        whole = np.maximum(density, 0.0) + beyond + self.skipped_density
        return np.asarray((1 + mu) * np.exp(mu * mu / 8) * mu * mu * whole)


def _lattice_kernel(z: Complex, h: float, eps: Real, start: Real) -> tuple[Complex, Real, Real]:
    """Kernel (eps, t), a bound on its own rounding error, and C with |kernel| <= C / t^2 beyond the cut."""
    c = z[0].real
    eta = np.clip(start - eps, 0.0, h)
    fall = -np.expm1(-eta)[:, None]
    denominator = np.expm1(-z * h) * np.expm1(-(z + 1) * h)
    # e^(-(z+1)h) (e^(h-eta) - 1), without overflow
    rest = np.exp(-z * h - eta[:, None]) * -np.expm1(eta - h)[:, None]
    kernel = h * (fall + rest) / denominator
    # eta = g1 - eps is a difference of doubles, and may have been clipped: absolute error of a few units of |g1|;
    # d kernel / d eta = h e^-eta / (1 - e^(-(z+1)h))
    blur = 40 * UNIT * np.abs(start)[:, None] * h / np.abs(np.expm1(-(z + 1) * h))
    # |1 - e^(-zh)| >= (2/pi) t h e^(-ch/2) for |t| h <= pi
    tail = (fall[:, 0] + np.abs(rest[:, 0])) * np.pi**2 * np.exp((c + 0.5) * h) / (4 * h)
    return kernel, blur + 16 * UNIT * np.abs(kernel), tail
