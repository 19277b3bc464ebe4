"""A second opinion on composed symmetric pairs of sampled Gaussian noise: one long line, made by a Fourier transform.

Setting.  A step has losses Z = log A - log B > 0 with density phi A and mirror images -Z with density phi B, where phi
is that of N(0, s^2), A = 1-q + q e^((2y-1)/2s^2), and B = 1-q + q e^(-(2y+1)/2s^2) (Poisson under replace-one) or
B = 1 (fixed size; what is left of the mass has loss 0). delta(eps) = E[(1 - e^(eps - L))_+] for the sum L of T losses.

Method.  The losses of one step, cut off where T times the chance of a larger one is 1e-19 delta, are Gauss-Legendre
nodes, each e^(cZ) times its mass spread over eight points of a periodic grid by Lagrange's weights: one Fourier
transform gives E[e^((c+it)Z)] for all t = 2 pi k / period, and delta is a trapezoid sum over t. Plain doubles, no
proof: a value is trusted as far as another tilt, period and grid agree. Nothing of the package is used.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

Real = np.ndarray
RULE = np.polynomial.legendre.leggauss(12)
POINTS = 8  # of Lagrange's weights
CELLS = 8  # of the grid, to a panel
NATS = 36.0
MOST = 2**19


class Pair:
    """The loss of one step."""

    def __init__(self, q: float, sigma: float, two_sided: bool) -> None:
        self.q, self.sigma, self.two_sided = q, sigma, two_sided
        self.start = 0.0 if two_sided else 0.5
        self.at_zero = 0.0 if two_sided else (1 - q) * math.erf(0.5 / sigma / math.sqrt(2))

    def _log(self, x: Real) -> Real:
        with np.errstate(over="ignore"):
            return np.where(x < 600, np.log1p(self.q * np.expm1(np.minimum(x, 600))), x + math.log(self.q))

    def log_b(self, y: Real) -> Real:
        return self._log(-(y + 0.5) / self.sigma**2) if self.two_sided else np.zeros_like(y)

    def loss(self, y: Real) -> Real:
        return self._log((y - 0.5) / self.sigma**2) - self.log_b(y)

    def outcome(self, levels: Real) -> Real:
        """Where the losses are `levels` > 0: A = e^Z B is a quadratic equation for e^(y/sigma^2)."""
        q, s2 = self.q, self.sigma**2
        if not self.two_sided:
            with np.errstate(over="ignore"):
                rise = np.where(levels < 600, np.log1p(np.expm1(np.minimum(levels, 600)) / q), levels - math.log(q))
            return np.asarray(0.5 + s2 * rise)
        log_k = math.log(q / (1 - q)) - 0.5 / s2  # 2 k w = (r-1) + sqrt((r-1)^2 + 4 r k^2)
        log_gap = np.log(np.expm1(np.minimum(levels, 600)))
        log_root = 0.5 * np.logaddexp(2 * log_gap, math.log(4) + levels + 2 * log_k)
        return np.asarray(s2 * (np.logaddexp(log_gap, log_root) - math.log(2) - log_k))

    def end(self, log_chance: float) -> float:
        """The outcome that is exceeded with that chance."""

        def above(y: float) -> float:
            return float(np.logaddexp(log_ndtr(-y / self.sigma), math.log(self.q) + log_ndtr((1 - y) / self.sigma)))

        return float(brentq(lambda y: above(y) - log_chance, 0.0, 1 + 60 * self.sigma))

    def nodes(self, end: float, panel: float) -> tuple[Real, Real, Real]:
        """Losses above 0, their masses and those of their images, on panels no longer than `panel` in losses."""
        even = np.linspace(self.start, end, math.ceil((end - self.start) / self.sigma * 12) + 2)
        edges = even
        if math.isfinite(panel):
            top = float(self.loss(np.array([end]))[0])
            inner = self.outcome(np.arange(1, math.floor(top / panel) + 1) * panel)
            edges = np.sort(np.concatenate([even, inner[(inner > self.start) & (inner < end)]]))
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        y = (middle[:, None] + half[:, None] * RULE[0]).ravel()
        phi = np.exp(-0.5 * (y / self.sigma) ** 2) / (self.sigma * math.sqrt(2 * math.pi))
        log_b, z = self.log_b(y), self.loss(y)
        there = (half[:, None] * RULE[1]).ravel() * phi * np.exp(log_b)
        return z, there * np.exp(z), there


class Composed:
    """`steps` steps; `delta`, about the answer, says what is negligible."""

    def __init__(self, pair: Pair, steps: int, delta: float) -> None:
        self.pair, self.steps, self.log_delta = pair, steps, math.log(delta)
        self.end = pair.end(self.log_delta - math.log(steps) - 44.0)
        self.coarse = pair.nodes(self.end, math.inf)

    def log_mgf(self, c: float) -> float:
        z, here, there = self.coarse
        return math.log1p(float(here @ np.expm1(c * z) + there @ np.expm1(-c * z)))

    def bound(self, eps: float) -> tuple[float, float]:
        """The c with the least log of mgf^T e^(-c eps) / (c (c+1)), and that."""
        tilts, mgf = self._tilts
        logs = mgf - tilts * eps - np.log(tilts * (tilts + 1))
        best = int(np.argmin(logs))
        return float(tilts[best]), float(logs[best])

    @cached_property
    def _tilts(self) -> tuple[Real, Real]:
        tilts = np.geomspace(1e-2, 600 / self._top, 400)
        return tilts, self.steps * np.array([self.log_mgf(c) for c in tilts])

    @property
    def _top(self) -> float:
        return float(self.coarse[0][-1])

    def guess(self) -> float:
        """About epsilon."""
        try:
            return float(brentq(lambda x: self.bound(math.exp(x))[1] - self.log_delta, -9, 6, xtol=1e-3))
        except ValueError:
            return math.nan

    def epsilon(self, tilt: float = 1.0, longer: float = 1.0, finer: float = 1.0) -> float:
        """nan if no grid is long and fine enough."""
        eps = math.exp(self.guess())
        for _ in range(6):
            found = self._epsilon(eps, tilt, longer, finer)
            if not 0.8 * eps < found < 1.25 * eps:
                eps = found
                continue
            return found
        return math.nan

    def _epsilon(self, guess: float, tilt: float, longer: float, finer: float) -> float:
        if not math.isfinite(guess):
            return math.nan
        c = tilt * self.bound(guess)[0]
        period = longer * max((NATS + 3 - self.log_delta) / c, 4 * guess)
        while self.bound(guess + period)[1] + c * period > self.log_delta - NATS and period < 200 * guess:
            period *= 1.2  # images from above
        for doubled in range(8, 21):
            size = math.ceil(finer * 2**doubled)
            if size > MOST or self._top * size / period > 2 * MOST:
                return math.nan
            t, log_phi = self._line(c, period, size)
            if log_phi[-1].real < -35.0:
                break
        kernel = np.exp(-np.log(c + 1j * t) - np.log(c + 1 + 1j * t))
        kernel[0] *= 0.5

        def off(eps: float) -> float:
            total = float((np.exp(log_phi - 1j * t * eps) * kernel).real.sum()) * 2 / period
            return math.log(max(total, 1e-300)) + self.scale - c * eps - self.log_delta

        try:
            return float(brentq(off, 0.03 * guess, 2 * guess, xtol=1e-300, rtol=1e-13))
        except ValueError:
            return math.nan

    def _line(self, c: float, period: float, size: int) -> tuple[Real, Real]:
        """Heights, and T log of the transform there less its value at 0."""
        h = period / size
        z, here, there = self.pair.nodes(self.end, CELLS * h)
        grid = np.zeros(size)
        for loss, mass in ((z, here * np.exp(c * z)), (-z, there * np.exp(-c * z))):
            _spread(grid, loss / h, mass)
        grid[0] += self.pair.at_zero
        found = np.fft.rfft(grid)[: size // 32].conj()
        t = 2 * math.pi / period * np.arange(len(found))
        self.scale = self.steps * self.log_mgf(c)
        return t, self.steps * (np.log(found) - np.log(found[0].real))


def _spread(grid: Real, place: Real, mass: Real) -> None:
    """Lagrange's weights on the eight points around each place."""
    first = np.floor(place).astype(np.int64) - (POINTS // 2 - 1)
    x = place - first
    for i in range(POINTS):
        weight = mass.copy()
        for j in range(POINTS):
            if j != i:
                weight *= (x - j) / (i - j)
        grid += np.bincount((first + i) % len(grid), weight, len(grid))


def epsilon(q: float, sigma: float, steps: int, delta: float, two_sided: bool) -> tuple[float, float]:
    """epsilon and how far it is trusted (relative), nan where the method does not serve."""
    composed = Composed(Pair(q, sigma, two_sided), steps, delta)
    first = composed.epsilon()
    second = composed.epsilon(0.8, 1.37, 1.9)
    return first, max(3 * abs(second / first - 1), 1e-12)
