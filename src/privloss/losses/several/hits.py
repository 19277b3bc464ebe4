"""The likelihood ratio of a mixture of normal laws, P = p_0 N(0) + sum p_k N(a_k), against Q = N(0).

All laws have standard deviation sigma, the shifts are 0 < a_1 < ... < a_K = 1, and with s_k = a_k (y - a_k/2)/sigma^2

    r(y) = p_0 + sum p_k e^(s_k) = 1 + sum p_k (e^(s_k) - 1),

so log r is convex, (log r)' = h/sigma^2 with h = sum a_k w_k, w_k = p_k e^(s_k)/r the probability of a hit given y, and
(log r)'' = Var/sigma^4, the variance of the shift given y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp

from privloss.losses.mixture.windows import SOFTNESS, Windows
from privloss.numerics.floats import Complex, Real
from privloss.numerics.stable import log1p_polar

_TAME = 300.0
_GRID = 6_000


@dataclass(frozen=True)
class SeveralHits:
    """Weights and shifts of the hits, what is left at 0, and how many roundings the weights carry."""

    weights: tuple[float, ...]
    shifts: tuple[float, ...]  # rising, in units of the last
    missed: float  # p_0
    sigma: float  # noise over the largest shift
    slack: float = 4.0

    @classmethod
    def of(cls, hits: tuple[tuple[float, float], ...], missed: float, slack: float = 4.0) -> SeveralHits:
        """From (weight, distance in units of the noise), rising distances."""
        furthest = hits[-1][1]
        shifts = tuple(distance / furthest for _, distance in hits)
        return cls(tuple(weight for weight, _ in hits), shifts, missed, 1 / furthest, slack)

    @cached_property
    def hits(self) -> tuple[tuple[float, float], ...]:
        """(weight, distance in units of the noise)."""
        return tuple((w, a / self.sigma) for w, a in zip(self.weights, self.shifts, strict=True))

    @cached_property
    def _columns(self) -> tuple[Real, Real, Real]:
        weights, shifts = np.array(self.weights), np.array(self.shifts)
        return weights, np.log(weights), shifts

    @property
    def rate(self) -> float:
        """The probability of some hit."""
        return math.fsum(self.weights)

    @property
    def log_least(self) -> float:
        return math.log(self.missed)

    def _exponents(self, y: Real) -> Real:
        """s_k, in a new first axis."""
        a = self._columns[2].reshape(-1, *([1] * np.ndim(y)))
        return np.asarray(a * (y - 0.5 * a) / self.sigma**2)

    def log_ratio(self, y: Real) -> Real:
        """With its digits where r is near 1, and where it is near p_0."""
        s = self._exponents(y)
        weights, logs, _ = (x.reshape(-1, *([1] * np.ndim(y))) for x in self._columns)
        tame = np.minimum(s, _TAME)
        rise = (weights * np.expm1(tame)).sum(axis=0)
        low = np.log(self.missed + (weights * np.exp(tame)).sum(axis=0))  # terms above 1 may stand in a sum below it
        found = np.where(rise < -0.4, low, np.log1p(np.maximum(rise, -0.5)))
        if s.max(initial=0.0) < _TAME:
            return np.asarray(found)
        return np.asarray(np.where(s.max(axis=0) < _TAME, found, np.logaddexp.reduce(logs + s, axis=0)))

    def shares(self, y: Real, log_r: Real) -> Real:
        """w_k of the hits, in a new first axis."""
        logs = self._columns[1].reshape(-1, *([1] * np.ndim(y)))
        return np.exp(np.minimum(logs + self._exponents(y) - log_r, 0.0))

    def slope(self, y: Real, log_r: Real) -> Real:
        """h = sigma^2 (log r)'."""
        return np.asarray(np.tensordot(self._columns[2], self.shares(y, log_r), axes=1))

    def drift(self, y: Real, log_r: Real) -> Real:
        """Roundings of y and of s_k; of what is summed, and what roundings of the weights do to it, |e^s - 1| p_k each;
        of log r itself."""
        s, logs = self._exponents(y), self._columns[1].reshape(-1, *([1] * np.ndim(y)))
        terms = np.exp(logs + np.maximum(s, 0.0) - log_r) * -np.expm1(-np.abs(s))
        moved = 8 * self.slope(y, log_r) * (np.abs(y) + 2.0) / self.sigma**2
        return np.asarray(moved + (self.slack + 8 + len(self.weights)) * terms.sum(axis=0) + 4 * np.abs(log_r))

    def turned(self, y: Real, theta: Real) -> Complex:
        shape = np.broadcast_shapes(np.shape(y), np.shape(theta))
        re, im, top = np.zeros(shape), np.zeros(shape), self._exponents(np.asarray(y)).max(axis=0)
        near = top < 30.0
        tame = np.where(near, y, 0.0)
        far_re, far_im = self.missed * np.exp(-np.maximum(top, 0.0)) + np.zeros(shape), np.zeros(shape)
        everywhere, nowhere = bool(np.all(near)), not bool(np.any(near))
        for p, a in zip(self.weights, self.shifts, strict=True):
            cos, sin = np.cos(a * theta), np.sin(a * theta)
            if not nowhere:
                grown = np.exp(a * (tame - 0.5 * a) / self.sigma**2)
                rise = np.expm1(a * (tame - 0.5 * a) / self.sigma**2)
                re += p * (rise * cos - 2 * np.sin(0.5 * a * theta) ** 2)
                im += p * grown * sin
            if not everywhere:
                scaled = p * np.exp(np.minimum(a * (y - 0.5 * a) / self.sigma**2 - top, 0.0))
                far_re, far_im = far_re + scaled * cos, far_im + scaled * sin
        # all terms of 1 + re have positive real parts: where they nearly cancel 1 they are added anew
        log_abs, arg = log1p_polar(re, im)
        if np.any(re < -0.5):
            log_abs, arg = self._low(tame, theta, re, log_abs, arg)
        if everywhere:
            return np.asarray(log_abs + 1j * arg)
        far = top + np.log(np.hypot(far_re, far_im)) + 1j * np.arctan2(far_im, far_re)
        return np.where(near, log_abs + 1j * arg, far)

    def _low(self, y: Real, theta: Real, re: Real, log_abs: Real, arg: Real) -> tuple[Real, Real]:
        whole, im = np.full(np.shape(re), self.missed), np.zeros(np.shape(re))
        for p, a in zip(self.weights, self.shifts, strict=True):
            grown = p * np.exp(np.minimum(a * (y - 0.5 * a) / self.sigma**2, 30.0))
            whole, im = whole + grown * np.cos(a * theta), im + grown * np.sin(a * theta)
        low = re < -0.5
        return np.where(low, np.log(np.hypot(whole, im)), log_abs), np.where(low, np.arctan2(im, whole), arg)

    def odds(self, y: Real) -> Real:
        """tan arg r <= sum p_k e^(s_k) sin(a_k theta)/p_0, whose terms are at most a_k theta p_k e^(s_k)/p_0."""
        logs = (self._columns[1] + np.log(self._columns[2])).reshape(-1, *([1] * np.ndim(y)))
        whole = np.logaddexp.reduce(logs + self._exponents(y), axis=0) - self.log_least
        return np.asarray(np.exp(np.minimum(whole + 1e-12, 0.0)))

    # -- probabilities -------------------------------------------------------------------------------------------------

    def log_above(self, y: float) -> tuple[float, float]:
        """log Q[outcome > y] and log P[outcome > y], to many digits."""
        none = float(log_ndtr(-y / self.sigma))
        each = self._columns[1] + log_ndtr((self._columns[2] - y) / self.sigma)
        return none, float(np.logaddexp(math.log(self.missed) + none, np.logaddexp.reduce(each)))

    def log_beyond(self, top: float, power: float) -> float:
        """For top >= 1, where r >= 1. For power > 1: log r grows at most like y/sigma^2, so r^power is at most
        r(top)^power e^(power (y - top)/sigma^2), whose integral with phi is closed."""
        none, one = self.log_above(top)
        if power <= 1:
            return (one if power > 0 else none) + 1e-9
        log_top, sigma = float(self.log_ratio(np.array([top]))[0]), self.sigma
        tilted = 0.5 * (power / sigma) ** 2 + float(log_ndtr((power - top) / sigma))
        return power * (log_top - top / sigma**2) + tilted + 1e-9

    def above(self, y: Real) -> Real:
        """P[outcome > y], for searching only."""
        found = self.missed * ndtr(-y / self.sigma)
        for p, a in zip(self.weights, self.shifts, strict=True):
            found = found + p * ndtr((a - y) / self.sigma)
        return np.asarray(found)

    def quantile(self, log_mass: float) -> float:
        """An outcome beyond which P has about that probability, or less."""
        log_p = log_mass - math.log(len(self.weights) + 1)
        ends = [-self.sigma * float(ndtri_exp(min(log_p, -1.0)))]
        for p, a in zip(self.weights, self.shifts, strict=True):
            ends.append(a - self.sigma * float(ndtri_exp(min(log_p - math.log(p), -1e-3))))
        return max(ends)

    # -- for searching -------------------------------------------------------------------------------------------------

    @cached_property
    def _drawn(self) -> tuple[Real, Real]:
        """Outcomes and their losses, for reading off where a loss is reached."""
        far = 4.0 + 40.0 * self.sigma
        y = np.concatenate([np.linspace(0.0, far, _GRID), far + np.geomspace(1e-3, 2e3 * self.sigma**2, 400)])
        return y, self.log_ratio(y)

    def outcome(self, loss: Real) -> Real:
        """About the outcome y with a loss > 0."""
        y, losses = self._drawn
        return np.asarray(np.interp(loss, losses, y))

    def windows(self, levels: Real) -> Windows:
        """Around the outcomes whose losses are `levels`, as those of `at_losses`: between what a loss that grows like
        e^(a y/sigma^2) asks for, a the mean shift of the hits, and one that grows like h y/sigma^2."""
        centre = self.outcome(levels)
        log_r = self.log_ratio(centre)
        shares, slope = self.shares(centre, log_r).sum(axis=0), self.slope(centre, log_r)
        return Windows(centre, 0.5 * SOFTNESS * self.sigma**2 * (levels + shares) / slope)
