"""Densities on an interval, read at Gauss-Legendre nodes, with the error proven.

An n-point rule on [-1, 1] errs by at most 64/15 * M rho^(2-2n) / (rho^2 - 1) if |f| <= M on the ellipse with foci +-1
and semi-axes (rho +- 1/rho)/2 (Trefethen 2008, Thm. 4.5). On panels of half-width h the ellipse reaches
A = h (rho + 1/rho)/2 beyond the centre and b = h (rho - 1/rho)/2 off the axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privloss.numerics.floats import SMALLEST, UNIT, Complex, Real
from privloss.numerics.work import charge

NODES = 24
_RULE = np.polynomial.legendre.leggauss(NODES)
_MOST_NODES = 20_000  # of a finer rule
_MOST_FINE = 3_000_000  # nodes times heights: the lowest heights matter most
_HEIGHTS = (1.0, 0.5, 0.2, 0.08, 0.03, 0.01, 3e-3, 1e-3)
LogBound = Callable[[float, Real, float, float], Real]  # (c, t, height b, overhang) -> log of a bound on |f|


def panels(low: float, high: float, width: float) -> tuple[Real, Real, float]:
    """Nodes, weights and the half-width of the panels."""
    count = max(1, math.ceil((high - low) / width))
    half = 0.5 * (high - low) / count
    centres = low + half * (2 * np.arange(count) + 1)
    x, w = _RULE
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


@dataclass(frozen=True, eq=False)
class FineRule:
    """The integral of e^(log_f(c, x)) e^(sign i t v(x)) on narrow panels: for heights that the nodes of a row cannot
    follow, and which are too few to burden every other height with so many nodes."""

    low: float
    high: float
    log_f: Callable[[float, Real], Real]
    loss: Callable[[Real], Real]
    sign: int
    bound: LogBound
    slack: float  # roundings of log_f and of the loss, in units
    width: float = 0.04

    def refine(self, c: float, t: Real, value: Complex, doubt: Real) -> tuple[Complex, Real]:
        """Replaces values that it knows better."""
        if (self.high - self.low) / self.width * NODES > _MOST_NODES:
            return value, doubt
        x, weights, half = self._rule
        with np.errstate(over="ignore"):
            masses = weights * np.exp(self.log_f(c, x))
            v = self.loss(x)
            rounding = UNIT * float(masses.sum()) * (self.slack + len(x) + self.slack * float(np.abs(v).max()) * t)
            left = error(half, len(x) // NODES, self.bound)(c, t) + rounding
        value, doubt = value.copy(), np.where(np.isnan(doubt), np.inf, doubt)
        better = np.flatnonzero(left < 0.1 * doubt)[: _MOST_FINE // len(x)]
        if len(t) > 1:  # single points, for moments, are always to be had
            charge(1.0 * len(x) * len(better))
        for start in range(0, len(better), 256):
            at = better[start : start + 256]
            value[at] = np.exp(1j * self.sign * t[at, None] * v) @ masses
        doubt[better] = left[better]
        return value, doubt

    @cached_property
    def _rule(self) -> tuple[Real, Real, float]:
        return panels(self.low, self.high, self.width)


def log_ends(value: float, wrong: float) -> tuple[float, float]:
    """Logs of value -+ wrong; what underflows is not 0."""
    return (math.log(value - wrong) if value > wrong else -math.inf), math.log(max(value, 0.0) + wrong + SMALLEST)
