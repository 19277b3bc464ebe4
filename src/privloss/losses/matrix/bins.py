"""Balls in bins: every record keeps one of b bins, chosen at random, and takes part in the steps j, j+b, j+2b, ....

Without the record the output is noise, and the likelihood ratio is a mean of b log-normal variables whose logarithms
have covariance at most G_ij = m_i . m_j / sd^2, m_j = |C| 1_(steps of bin j). By Kahane's inequality G' >= G entrywise
is worse, and (C >= 0) G'' <= G better: with all diagonal entries d and all others c the ratio is a log-normal variable
of variance c, independent of a mean of b with variance d - c, one epoch of random allocation. Given which class j mod w
its bin has, a record has at least floor(b/w) bins to choose from, whose Gram matrix has smaller off-diagonal entries;
that it is given only helps the adversary (joint convexity), and so do fewer bins (Jensen). Proofs: docs/matrix.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.errors import Unsupported
from privloss.losses.matrix.strategy import MOST_TOEPLITZ, Strategy, Toeplitz
from privloss.numerics.floats import Real, rounded_down, rounded_up

_MOST_WORK = 20_000_000_000  # multiplications
_ORDERS = np.array([1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64])
_LOG_DELTA = math.log(1e6)  # for which w is chosen; any w is sound


@dataclass(frozen=True)
class Gram:
    """Bounds on G by how far apart two bins are: on the largest entries, and on the smallest."""

    most: Real
    least: Real
    attained: bool  # C >= 0

    @property
    def bins(self) -> int:
        return len(self.most)

    def scaled(self, unit: float) -> Gram:
        """In units of the noise, `unit` = 1/sd^2 known to 4 roundings."""
        most, least = rounded_up(self.most * unit, 8), rounded_down(self.least * unit, 8)
        return Gram(np.asarray(most), np.asarray(least), self.attained)


@dataclass(frozen=True)
class Allocation:
    """A shared variance and an allocation to one of `bins` with variance `own`."""

    shared: float
    own: float
    bins: int


def gram(strategy: Strategy, bins: int) -> Gram:
    """By lags; every entry is a sum of products >= 0 of sums of few terms."""
    if bins > strategy.steps:
        raise Unsupported(f"separation = {bins}: more bins than steps ({strategy.steps}); the last ones are empty.")
    if isinstance(strategy, Toeplitz):
        most, least = _toeplitz(strategy.magnitudes, bins)
    else:
        if bins * bins * strategy.rows > _MOST_WORK:
            raise Unsupported(f"separation = {bins}: that many bins of {strategy.rows} rows are too many.")
        modes = np.zeros((strategy.rows, bins))
        for start in range(0, strategy.steps, bins):
            part = np.abs(strategy.array[:, start : start + bins])
            modes[:, : part.shape[1]] += part
        g = modes.T @ modes
        diagonals = [np.diagonal(g, lag) for lag in range(bins)]
        most, least = (np.array([f(d) for d in diagonals]) for f in (np.max, np.min))
    units = 2 * -(-strategy.steps // bins) + strategy.steps + 16
    rows = units + (0 if isinstance(strategy, Toeplitz) else strategy.rows)
    return Gram(np.asarray(rounded_up(most, rows)), np.asarray(rounded_down(least, rows)), strategy.nonnegative)


def _toeplitz(c: Toeplitz, bins: int) -> tuple[Real, Real]:
    """Mode j is mode 0 moved down by j, cut at the end: G_(i, i+l) = sum_(r < n-i-l) m_(r+l) m_r, most for i = 0."""
    n = c.steps
    if n > MOST_TOEPLITZ or n * bins > _MOST_WORK:
        raise Unsupported(f"steps = {n}, separation = {bins}: too many for a Gram matrix.")
    padded = np.zeros(bins * -(-n // bins))
    padded[:n] = c.full
    mode = np.cumsum(padded.reshape(-1, bins), axis=0).ravel()[:n]
    kept = n - bins + 1  # rows of the last mode
    most = [float(mode[lag:] @ mode[: n - lag]) for lag in range(bins)]
    least = [float(mode[lag : lag + kept] @ mode[:kept]) for lag in range(bins)]
    return np.array(most), np.array(least)


def above(g: Gram) -> Allocation:
    """The w that looks best; all are upper ends."""
    d = float(g.most[0])
    found = [Allocation(max(float(g.most[w::w].max(initial=0.0)), 0.0), d, g.bins // w) for w in range(1, g.bins + 1)]
    shared = np.array([min(a.shared, d) if a.bins > 1 else d for a in found])
    bins = np.array([a.bins for a in found])
    best = int(np.argmin(_guess(shared, d - shared, bins)))
    return Allocation(float(shared[best]), d - float(shared[best]), int(bins[best]))


def below(g: Gram) -> Allocation:
    """The least diagonal entry and the least entry of all."""
    d, c = float(g.least[0]), float(g.least.min())
    return Allocation(c, d - c, g.bins)


def _guess(shared: Real, own: Real, bins: Real) -> Real:
    """About epsilon, by Renyi moments: the mean of B ratios is about log-normal, or one of them counts alone."""
    a, v, n = _ORDERS[:, None], np.minimum(own, 600.0)[None, :], bins[None, :]
    alone = 0.5 * a * (a - 1) * v - (a - 1) * np.log(n)
    moment = np.logaddexp(0.5 * a * (a - 1) * np.log1p(np.expm1(v) / n), alone)
    return np.asarray((0.5 * a * shared[None, :] + (moment + _LOG_DELTA) / (a - 1)).min(axis=0))
