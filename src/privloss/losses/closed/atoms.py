"""Losses at +eps, -eps and 0: randomised response and the black boxes it dominates.

P gives mass a to +eps, a e^-eps to -eps, w to 0 and delta to infinity, (a + a e^-eps + w = 1 - delta). An
(eps, delta)-DP box is dominated by w = 0 (Kairouz-Oh-Viswanath); k-ary randomised response has w = (k-2) a e^-eps. With
m = k - 2 "others" and share = 1 / (1 + (m+1) e^-eps) = a/(1-delta),

    M(z)/(1-delta) - 1 = share * expm1(eps z) (-expm1(-eps (z+1))),

a product, so nothing cancels. The law of Z is the same in both directions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.losses.base import Concentration, PrivacyLoss, columns, on_axis
from privloss.losses.table.build import symmetric_response
from privloss.losses.table.lattice import Steps, common_lattice
from privloss.losses.table.table import Table
from privloss.numerics.contour.transform import Lattice, LineValues, TooExpensive
from privloss.numerics.floats import (
    UNIT,
    Complex,
    Real,
    log_lowered,
    log_raised,
    lowered,
    padded_down,
    padded_up,
    raised,
    widened,
)
from privloss.numerics.stable import log1p_polar

_MAX_WORK = 60_000_000
_MAX_BLOCK = 1_000_000  # elements of a temporary array
_ROWS = 48  # added at a time
_UP, _DOWN = padded_up(1.0, 1e-12), padded_down(1.0, 1e-12)  # more than the rounding of the sums below


@dataclass(frozen=True, eq=False)
class AtomsLoss(PrivacyLoss):
    """Bundle over arrays `eps` > 0, `others` (answers equally likely for both inputs), `delta` and `count`."""

    place = 3
    symmetric = True
    eps: Real
    others: Real
    delta: Real
    count: Real

    @classmethod
    def one(cls, eps: float, others: float = 0.0, delta: float = 0.0) -> AtomsLoss:
        """A single use of a single box."""
        return cls(*(np.array([x], dtype=float) for x in (eps, others, delta, 1.0)))

    def times(self, count: int) -> AtomsLoss:
        return AtomsLoss(self.eps, self.others, self.delta, count * self.count)

    @classmethod
    def merged(cls, parts: Sequence[AtomsLoss]) -> Sequence[AtomsLoss]:
        return (cls(*columns(parts, "eps", "others", "delta", "count")),)

    def reversed(self) -> AtomsLoss:
        return self

    @property
    def delta_inf(self) -> float:
        if self.delta_inf_exact:
            return float(self.delta.max())
        return -math.expm1(float(self.count @ np.log1p(-self.delta)))

    @property
    def delta_inf_exact(self) -> bool:
        return bool(self.count[self.delta > 0].sum() <= 1)

    @property
    def kinds(self) -> int:
        return len(self.eps)

    @property
    def solved_by_closed_form(self) -> bool:
        return bool(self.count.sum() == 1)

    @property
    def largest(self) -> float:
        return raised(float(self.count @ self.eps), 4 + len(self.eps))

    @property
    def largest_lower(self) -> float:
        return lowered(float(self.count @ self.eps), 4 + len(self.eps))

    @cached_property
    def lattice(self) -> Lattice | None:
        """One eps, or epsilons with a common unit."""
        if np.all(self.eps == self.eps[0]):
            plain = bool(np.all(self.others == 0))
            return Lattice(float(self.eps[0]), 2, int(self.count.sum()) % 2) if plain else Lattice(self.eps[0], 1, 0)
        return common_lattice(self.lattice_steps())

    def concentration(self) -> Concentration:
        """As for Laplace noise: in u = (z + 1/2)^2 M is proportional to cosh(eps sqrt(u)) + others e^(-eps/2)/2, whose
        zeros are all negative if that constant is at most 1. K(t)/(t(t+1)) then falls."""
        return Concentration(searched=self, falls=bool(np.all(self.others * np.exp(-0.5 * self.eps) < 2 - 1e-9)))

    def lattice_steps(self) -> list[Steps]:
        """The losses of each row and how often it runs."""
        return [
            Steps(np.array([e, -e, 0.0] if m > 0 else [e, -e]), int(n))
            for e, m, n in zip(self.eps, self.others, self.count, strict=True)
        ]

    def tables(self) -> list[tuple[Table, int]]:
        """The members as tables, with their counts."""
        columns = zip(self.eps, self.others, self.delta, self.count, strict=True)
        return [(symmetric_response(float(e), float(m), float(d)), int(n)) for e, m, d, n in columns]

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c, None)

    def lattice_vertical(self, c: float) -> _Vertical:
        """The line of a homogeneous bundle, which ends at pi/spacing."""
        return _Vertical(self, c, self.lattice)

    def moments(self, c: float) -> tuple[float, float, float]:
        eps, small = self.eps, np.exp(-self.eps)
        # masses proportional to 1, e^-eps and others e^-eps, tilted by e^(c eps), e^(-c eps) and 1
        down, zero = np.exp(-eps * (1 + 2 * c)), self.others * small * np.exp(-c * eps)
        total = 1 + down + zero
        k1 = eps * (1 - down) / total
        k2 = eps**2 * (1 + down) / total - k1**2
        k = _k(eps, self.others, np.array([c + 0j]))[0][:, 0] + np.log1p(-self.delta)
        return float(self.count @ k), float(self.count @ k1), float(self.count @ k2)

    def log_mgf_upper(self, c: Real) -> Real:
        re, _, error = _k(self.eps, self.others, c + 0j)
        lost = np.log1p(-self.delta)[:, None]
        sizes = self.count @ (np.abs(re) + np.abs(lost))
        return np.asarray(raised(self.count @ (re + error + lost), 4 + 2 * len(self.eps), sizes))

    def log_mgf_bounds(self, c: Real, goal: float) -> tuple[Real, Real]:
        re, im, error = _k(self.eps, self.others, c + 0j)
        lost = np.log1p(-self.delta)[:, None]
        return on_axis((re + lost, im, error + 8 * UNIT * (np.abs(re) - lost)), self.count)

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """One use, without the mass at infinity."""
        if self.count.sum() != 1:
            return None
        # eps itself may be rounded, and delta rises with it
        low, high = (self._one_use(own, eps) for own in widened(float(self.eps[0]), 4))
        return log_lowered(low, 16), log_raised(high, 16)

    def _one_use(self, e: float, eps: float) -> float:
        others, mass = float(self.others[0]), 1 - float(self.delta[0])
        if eps >= e:
            return -math.inf
        terms = [-math.expm1(eps - e)]
        if eps < 0:
            terms.append(others * math.exp(-e) * -math.expm1(eps))
        if eps < -e:
            terms.append(math.exp(-e) * -math.expm1(eps + e))
        return math.log(mass / (1 + (others + 1) * math.exp(-e))) + math.log(math.fsum(terms))

    def mean_bounds(self) -> tuple[float, float]:
        """eps (a - a e^-eps) each."""
        share = 1 / (1 + (self.others + 1) * np.exp(-self.eps))
        mean = float(self.count @ (share * self.eps * -np.expm1(-self.eps)))
        return widened(mean, 32 + len(self.eps))

    def weakest(self) -> AtomsLoss:
        best = int(np.argmax(self.eps))
        return AtomsLoss(self.eps[[best]], self.others[[best]], self.delta[[best]], np.ones(1))


@dataclass(frozen=True, eq=False)
class _Vertical:
    loss: AtomsLoss
    c: float
    lattice: Lattice | None

    def line(self, t: Real, goal: float) -> LineValues:
        loss = self.loss
        if len(loss.eps) * len(t) > _MAX_WORK:
            raise TooExpensive("line of atoms")
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for eps, others, delta, times in zip(loss.eps, loss.others, loss.delta, loss.count, strict=True):
            re, im, err = _k(np.array([eps]), np.array([others]), self.c + 1j * t)
            modulus += times * (re[0] + np.log1p(-delta))
            phase += times * im[0]
            error += times * (err[0] + 8 * UNIT * (np.abs(re[0]) + np.abs(im[0]) - np.log1p(-delta)))
        size = len(loss.eps) * UNIT * (np.abs(modulus) + np.abs(phase))
        return LineValues(modulus, phase, error + size)

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        """With tilted masses up, down, zero: y = 1 - 4 up down sin^2(eps t) - 4 zero (up + down) sin^2(eps t/2).

        Rows are added until a cell has fallen far enough: with thousands of rows most cells need but a few of them.
        """
        loss, total = self.loss, np.zeros(count)
        open_cells, first = np.arange(count), 0
        while first < len(loss.eps) and len(open_cells):
            rows = slice(first, first + max(4, min(_ROWS, _MAX_BLOCK // len(open_cells))))
            eps, others, times = (a[rows, None] for a in (loss.eps, loss.others, loss.count))
            down, zero = np.exp(-eps * (1 + 2 * self.c)), others * np.exp(-eps * (1 + self.c))
            whole = 1 + down + zero
            variance = eps**2 * np.minimum((1 + down) / whole - ((1 - down) / whole) ** 2 + 1e-12, 1.0)
            # sin of an argument rounded by a few units is off by that much
            wrong = 64 * UNIT * (1 + eps * (start + width * count))
            if len(open_cells) > count / 10:  # take them from a table of all edges, which are equally spaced
                squares = _modulus(down, zero, whole, _half_sines(0.5 * eps, start, width, count + 1))
                most = np.maximum(squares[:, 1:], squares[:, :-1])[:, open_cells]
            else:
                edges = (start + width * (open_cells + k) for k in (0, 1))
                most = np.maximum(*(_modulus(down, zero, whole, np.sin(0.5 * eps * t) ** 2) for t in edges))
            most = most + wrong + 0.25 * width**2 * variance
            most = np.minimum(most * _UP, 1.0)
            if np.all(times == 1):  # one logarithm for all of them
                fall = -0.5 * np.log(np.maximum(np.prod(most, axis=0), 1e-300))
            else:
                fall = -0.5 * (times * np.log(np.maximum(most, 1e-300))).sum(axis=0)
            total[open_cells] += fall * _DOWN
            open_cells = open_cells[total[open_cells] < enough]
            first = rows.stop
        return total

    def decay(self, t: float) -> float:
        """Atoms do not decay for ever. On a lattice with spacing 2 eps |M| falls all the way to t = pi/(2 eps); with
        an atom at 0 it falls and may rise again, so the larger of both ends bounds what lies between."""
        if self.lattice is None or np.any(self.loss.eps != self.loss.eps[0]):
            return 0.0
        end = math.pi / self.lattice.spacing
        heights = np.array([0.0, min(t, end)] if self.lattice.stride == 2 else [0.0, min(t, end), end])
        re, _, error = _k(self.loss.eps, self.loss.others, self.c + 1j * heights)
        fall = (re + error)[:, 1:].max(axis=1) - (re - error)[:, 0]
        return float(self.loss.count @ np.minimum(fall, 0.0))


def _half_sines(half: Real, start: float, width: float, count: int) -> Real:
    """sin^2(half * (start + k width)) for k < count, by angle addition: two short tables instead of a long one."""
    block = math.isqrt(count) + 1
    coarse = half * (start + width * block * np.arange(block))
    fine = half * (width * np.arange(block))
    sine = np.sin(coarse)[:, :, None] * np.cos(fine)[:, None, :] + np.cos(coarse)[:, :, None] * np.sin(fine)[:, None, :]
    return np.asarray(sine.reshape(len(half), -1)[:, :count] ** 2)


def _modulus(down: Real, zero: Real, whole: Real, sine: Real) -> Real:
    """|M(c+it)/M(c)|^2 from sin^2(eps t/2)."""
    plain = 16 * down / whole**2 * sine * (1 - sine)
    return np.asarray(1 - plain if not np.any(zero) else 1 - plain - 4 * zero * (1 + down) / whole**2 * sine)


def _k(eps: Real, others: Real, z: Complex) -> tuple[Real, Real, Real]:
    """Re K, Im K and error for delta = 0, arrays (eps, z), Re z > -1."""
    eps, others, z = eps[:, None], others[:, None], z[None, :]
    share = 1 / (1 + (others + 1) * np.exp(-eps))
    near = np.abs(eps * z) < 30.0
    w = np.where(near, eps * z, 0.0)
    first, second = np.expm1(w), -np.expm1(-(w + eps))
    m1 = share * first * second
    near_re, near_im = log1p_polar(m1.real, m1.imag)
    with np.errstate(over="ignore", invalid="ignore"):
        rest = share * (1 + np.exp(-eps * (2 * z + 1)) + others * np.exp(-eps * (z + 1)))
    far_re, far_im = (eps * z).real + np.log(np.maximum(np.abs(rest), 1e-300)), (eps * z).imag + np.angle(rest)
    size = np.abs(eps * z)
    moved = np.abs(w) * np.abs(first + 1) * np.abs(second) + np.abs(w + eps) * np.abs(first) * np.abs(1 - second)
    near_error = UNIT * (32 * np.abs(m1) + 8 * share * moved) / np.exp(np.maximum(near_re, -600.0))
    far_error = 32 * UNIT * (1 + size) / np.maximum(np.minimum(np.abs(rest), 1.0), 1e-300)
    error = np.log1p(np.minimum(np.where(near, near_error, far_error), 1e300))
    return np.where(near, near_re, far_re), np.where(near, near_im, far_im), error
