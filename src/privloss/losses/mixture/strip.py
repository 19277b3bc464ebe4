"""Marked outcomes on lines Im y = v off the real axis: what quadrature nodes miss, and how fast transforms fall.

Notation of `windows.py`; phi is the density of Q = N(0, sigma^2), r the likelihood ratio of a `Law`, and
f = phi r^a w_j e^(+-it log r) with a real power a the integrand of M_j. For theta = v/sigma^2 <= pi/2 we have
|phi(y+iv)| = phi e^(v^2/2sigma^2); |r(y+iv)| and arg r(y+iv) rise with y, |r(y+iv)| falls with v from r(y) on, and
0 <= arg r(y+iv) <= odds theta (`law.py`). Windows as in `Windows.log_bound`. Every factor is taken at the worse end
of its cell; any angle is sound, and several are tried.

*Nodes* e_j - (k + 1/2) h integrate f over y <= e_j. The error is at most

    2/(e^(2 pi v/h) - 1) * integral of |f(y + iv)| + 2 * integral over 0 < u < v of |f(e_j + iu)| / (1 + e^(2 pi u/h)).

*Decay.* For every height u >= t, the way over Im y = v gives |M_j(c+iu)| <= integral of |f| e^(-t arg r) there, plus
the way down at e_j, at most v times |f|.

Outcomes below the cells have U_(j-1) <= Phi(-START) or, in the bulk, a phi of many standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from privloss.losses.mixture.law import Law
from privloss.losses.mixture.windows import Windows
from privloss.numerics.floats import Real
from privloss.numerics.stable import log_sum_exp

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
RARE_ANGLES = np.array([0.1, 0.2, 0.3, 0.42, 0.56, 0.75])[:, None]
BULK_ANGLES = np.array([0.15, 0.3, 0.5, 0.8, 1.1, 1.5])[:, None]
_RARE_CELLS, _BULK_CELLS = 64, 128
_SAFETY = 1e-9  # nats; swallows the rounding of the sums below


@dataclass(frozen=True, eq=False)
class Strips:
    """Several classes of one kind of step: arrays (classes, angles, cells), edges one more; (classes, angles, 1) where
    no cell is meant."""

    sigma: float
    theta: Real
    log_weight: Real  # |phi w_j| times the width of the cell
    log_abs: Real  # log |r| at the edges
    arg: Real  # arg r at the edges
    end_weight: Real  # |phi w_j| at the end e_j, up to Im y = v
    end_growth: Real  # what of that is e^(growth of phi and of its own window), at most linear in Im y
    end_loss: Real  # log r(e_j)
    end_odds: Real  # of the law, at e_j
    low_weight: Real  # integral of |phi w_j| below the cells
    low_loss: Real  # log r at the first edge, on the axis, where it is largest
    least_loss: float  # log of the infimum of r

    @classmethod
    def of(
        cls, law: Law, windows: Windows, spans: Sequence[tuple[int, float, float]], angles: Real | None = None
    ) -> Strips:
        """Classes (j, low, high): either the bulk, or only rare ones."""
        bulk, sigma = spans[0][0] == 0, law.sigma
        theta = ((BULK_ANGLES if bulk else RARE_ANGLES) if angles is None else angles)[None]
        unit = np.linspace(0.0, 1.0, (_BULK_CELLS if bulk else _RARE_CELLS) + 1)
        low, high = (np.array([span[i] for span in spans])[:, None, None] for i in (1, 2))
        edges = low + (high - low) * unit
        left, right, lift = edges[:, :, :-1], edges[:, :, 1:], theta * sigma**2
        nearest = np.where(left > 0, left, np.where(right < 0, right, 0.0))
        scale = 0.5 * theta * lift - _LOG_SQRT_2PI - math.log(sigma)
        log_weight = scale - 0.5 * (nearest / sigma) ** 2 + np.log(right - left)
        window = np.array(
            [windows.log_bound(j, edges[i, 0, :-1], edges[i, 0, 1:], lift[0]) for i, (j, _, _) in enumerate(spans)]
        )
        at_end = np.array([windows.log_bound(j, np.array([b]), np.array([b]), lift[0]) for j, _, b in spans])
        below = np.array([windows.log_bound(j, np.array([-np.inf]), np.array([a]), lift[0]) for j, a, _ in spans])
        log_r = law.turned(edges, theta)
        own = np.array([windows.end_growth(j, b, lift[0]) for j, _, b in spans])
        return cls(
            sigma=sigma,
            theta=theta,
            log_weight=log_weight + window,
            log_abs=log_r.real,
            arg=log_r.imag,
            end_weight=scale - 0.5 * (high / sigma) ** 2 + at_end,
            end_growth=0.5 * theta * lift + own,
            end_loss=law.log_ratio(high) + _SAFETY,
            end_odds=law.odds(high),
            low_weight=log_ndtr(low / sigma) + 0.5 * theta * lift + below,
            low_loss=law.log_ratio(low),
            least_loss=law.log_least,
        )

    def log_missed(self, power: float, t: float, spacing: Real) -> Real:
        """log of bounds on the quadrature error of M_j at heights up to t, one for each class and its spacing."""
        low = t * self.arg[:, :, :1] + self._low_power(power)
        return self._missed(self._modulus(power) + t * self.arg[:, :, 1:], low, self._end_power(power), t, spacing)

    def log_missed_mean(self, power: float, spacing: Real) -> Real:
        """The same for the integral of phi r^power w_j log r, power 0 or 1."""
        end = self._end_power(power) + self._end_size()
        low = self._low_power(power) + self._low_size()
        return self._missed(self._modulus(power) + self._size(), low, end, 0.0, spacing)

    def log_missed_rest(self, c: float, backward: bool, t: float, spacing: Real) -> Real:
        """The same for E[e^(zZ) - 1 - zZ; mark j]: |e^u - 1 - u| <= |u|^2/2 max(1, e^(Re u))."""
        if c == 0 and t == 0:
            return np.full(len(self.log_abs), -np.inf)
        sign, (cells, low, end) = (-c, self._rest_backward) if backward else (c, self._rest_forward)
        cells = cells + np.maximum(self._modulus(sign) + t * self.arg[:, :, 1:], 0.0)
        low = low + np.maximum(self._low_power(sign) + t * self.arg[:, :, :1], 0.0)
        end = end + np.maximum(self._end_power(sign), 0.0)
        half_square = 2 * math.log(math.hypot(c, t)) - math.log(2.0)
        return half_square + self._missed(cells, low, end, t, spacing)

    @cached_property
    def _rest_forward(self) -> tuple[Real, Real, Real]:
        return self._rest(1.0)

    @cached_property
    def _rest_backward(self) -> tuple[Real, Real, Real]:
        return self._rest(0.0)

    def _rest(self, base: float) -> tuple[Real, Real, Real]:
        """|log r|^2 |r|^base on the cells, below them and at their end."""
        cells, low = 2 * self._size() + self._modulus(base), 2 * self._low_size() + self._low_power(base)
        return cells, low, 2 * self._end_size() + self._end_power(base)

    def _missed(self, cells: Real, low: Real, end: Real, t: float, spacing: Real) -> Real:
        """The smallest over all angles, from the log of what multiplies |phi w_j| on the cells, below them, and at
        their end (there without the growth in t). Nodes below the cells are left out: at most four times what the line
        carries there, for a spacing of at most sigma/4."""
        fall = 2 * math.pi * self.theta * self.sigma**2 / spacing[:, None, None]
        below = self.low_weight + low
        strip = np.logaddexp(log_sum_exp(self.log_weight + cells), below) - fall - np.log(-np.expm1(-fall))
        # |f(e_j + iu)| <= |f(e_j)| e^(g u/v) at t = 0 since g is quadratic in u, so the second integral is at most
        # that of e^(-slope u), or v times the largest value
        lift = self.theta * self.sigma**2
        slope = 2 * math.pi / spacing[:, None, None] - self.end_growth / lift - t * self.end_odds / self.sigma**2
        largest = np.log(lift) + self.end_weight + np.maximum(t * self.end_odds * self.theta - fall, 0.0)
        falling = self.end_weight - self.end_growth - np.log(np.maximum(slope, 1e-300))
        side = end + np.minimum(largest, np.where(slope > 0, falling, np.inf))
        total = np.logaddexp(np.logaddexp(strip, side), below + math.log(2.0))
        return np.asarray(total.min(axis=(1, 2))) + (math.log(2.0) + _SAFETY)

    def log_fallen(self, power: float, t: float) -> Real:
        """log of bounds on |M_j| at every height from t on."""
        inside = log_sum_exp(self.log_weight + self._modulus(power) - t * self.arg[:, :, :-1])
        down = np.log(self.theta * self.sigma**2) + self.end_weight + self._end_power(power)
        outside = np.logaddexp(self.low_weight + self._low_power(power), down)
        return np.asarray(np.logaddexp(inside, outside).min(axis=(1, 2))) + _SAFETY

    def _modulus(self, power: float) -> Real:
        """log of the largest |r|^power on each cell."""
        return np.asarray(power * (self.log_abs[:, :, 1:] if power > 0 else self.log_abs[:, :, :-1]))

    def _low_power(self, power: float) -> Real:
        """The same below the cells, on the axis and off it: r rises from 1 - q on, and r(y) >= |r(y+iv)| >= 1 - q."""
        return np.full_like(self.low_weight, power * (self.low_loss if power > 0 else self.least_loss))

    def _end_power(self, power: float) -> Real:
        """The same at e_j + iu, 0 <= u <= v: |r| falls with u."""
        return np.asarray(power * (self.end_loss if power > 0 else self.log_abs[:, :, -1:]))

    def _size(self) -> Real:
        """log of a bound on |log r| on each cell."""
        most = np.maximum(np.abs(self.log_abs[:, :, 1:]), np.abs(self.log_abs[:, :, :-1]))
        return np.asarray(np.log(np.hypot(most, self.arg[:, :, 1:])))

    def _low_size(self) -> Real:
        """The same below the cells, where log |r| lies between log(1-q) and log r at the first edge."""
        most = np.maximum(self.low_loss, -self.least_loss)
        return np.asarray(np.log(np.hypot(most, self.arg[:, :, :1])))

    def _end_size(self) -> Real:
        """The same at the end: log |r| lies between log(1-q) and log r, arg r below theta."""
        return np.asarray(np.log(np.hypot(np.maximum(self.end_loss, -self.least_loss), self.theta)))
