"""Another second opinion on the composed Poisson-subsampled Gaussian: losses are added as densities, on the real line.

Setting.  Q = N(0, s^2), P = (1-q) N(0, s^2) + q N(1, s^2); the loss of one step is l = log dP/dQ under P, and
delta(eps) = E[(1 - exp(eps - L))_+] for the sum L of T such losses ("remove"). Plain doubles, no proof: a value is
trusted as far as different cuts agree. Nothing of the package is used, and nothing of tests/oracle/balls.py.

Large and small.  A loss is large if it exceeds a cut b, which `mass` = T P(l > b) sets. With k large losses,

    delta(eps) = sum over k of C(T, k) * integral of h_k(w) F_(T-k)(eps - w) dw,

where h_k is the density of the sum of k large losses (not divided by their chance) and F_n(x) = E[(1 - exp(x - S))_+]
belongs to the sum S of n small losses. Every term is positive: nothing cancels, and far tails keep their relative
accuracy without a tilt. The sum ends where C(T, k) P(l > b)^k is negligible.

h_k.  The logarithm of the density is smooth in log v, where v is the distance to the lower end k b. It is kept as
Chebyshev series on panels, which are halved until the series has died out. h_(k+1) = h_1 * h_k is integrated by
Gauss-Legendre rules between all panel edges of both factors, the shorter of the two arguments being exact.

F_n.  S is bounded, and has no rare large terms, so one line does:
1/(2 pi i) * integral of E[exp(z S)] exp(-z x) / (z (z+1)) by the trapezoid rule through the saddle point right of 0, or
left of -1 where the residues are added. Period and end of the sum follow from Chernoff's bound and from the size of the
terms. log F_n is kept as Chebyshev series too.

With mass = T every loss is large (b is the least loss there is), F is (1 - exp(x))_+, and h_T comes by repeated
squaring: a method without any Fourier transform. It loses about log10(T) digits, and serves up to some thousand steps;
the split serves from about 40 steps on (few small losses have no smooth sum). Both agree to 1e-12 where both serve.

The other direction, Q against P, is one line left of -1: there large losses do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.polynomial import chebyshev, legendre
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr, logsumexp

Real = np.ndarray
NODES = 18  # of a Chebyshev panel
RULE = legendre.leggauss(20)
POINTS = np.cos(math.pi * (np.arange(NODES) + 0.5) / NODES)
FIT = np.linalg.inv(chebyshev.chebvander(POINTS, NODES - 1))
NATS = 36.0  # what is smaller than exp(-NATS) of the answer is left out
TOLERANCE = 2e-13
NOTHING = -1e5


class Series:
    """A positive function of one variable: Chebyshev series of its logarithm on panels, 0 outside of them."""

    def __init__(self, edges: Real, coefficients: Real) -> None:
        self.edges, self.coefficients = edges, coefficients

    def log(self, x: Real) -> Real:
        panel = np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, len(self.edges) - 2)
        low, high = self.edges[panel], self.edges[panel + 1]
        u = 2 * (2 * x - low - high) / (high - low)  # twice the place in the panel, for Clenshaw's rule
        columns = self.coefficients
        one, two = np.zeros_like(u), np.zeros_like(u)
        for j in range(NODES - 1, 0, -1):
            one, two = u * one - two + columns[j][panel], one
        value = u / 2 * one - two + columns[0][panel]
        return np.where((x >= self.edges[0]) & (x <= self.edges[-1]), value, NOTHING)


def fit(log_function: Callable[[Real], Real], edges: Real, floor: float, depth: int = 12) -> Series:
    """Halve panels until the series has died out. Values whose logarithm is below `floor` need no digits."""
    done: list[tuple[float, float, Real]] = []
    todo = np.stack([edges[:-1], edges[1:]], axis=1)
    for level in range(depth + 1):
        middle, half = todo.mean(axis=1), (todo[:, 1] - todo[:, 0]) / 2
        values = log_function((middle[:, None] + half[:, None] * POINTS).ravel()).reshape(len(todo), NODES)
        values = np.maximum(values, floor - 40)  # else a series would swing above the floor
        coefficients = values @ FIT.T
        top = values.max(axis=1)
        # A panel 20 nats above the floor needs all digits, one 5 nats above needs exp(15) times fewer.
        need = TOLERANCE * np.maximum(1, np.exp(np.clip(floor + NATS - top, 0, 60)))
        rough = abs(coefficients[:, -3:]).max(axis=1) > need
        rough |= top - np.maximum(values.min(axis=1), floor) > 6  # what the rule of convolve can follow
        rough &= top > floor
        if level == depth:
            rough[:] = False
        done += [(a, b, c) for (a, b), c, r in zip(todo, coefficients, rough, strict=True) if not r]
        todo = todo[rough]
        if not len(todo):
            break
        centre = todo.mean(axis=1)
        todo = np.concatenate([np.stack([todo[:, 0], centre], 1), np.stack([centre, todo[:, 1]], 1)])
    done.sort(key=lambda piece: piece[0])
    return Series(np.array([a for a, _, _ in done] + [done[-1][1]]), np.array([c for _, _, c in done]).T.copy())


def _pieces(breaks: Real) -> tuple[Real, Real, Real]:
    """Row, start and length of the intervals between the sorted breaks of each row."""
    breaks = np.sort(breaks, axis=1)
    length = np.diff(breaks, axis=1)
    row, column = np.nonzero(length > 0)
    return row, breaks[row, column], length[row, column]


def convolve(one: Series, two: Series, log_v: Real) -> Real:
    """log of the integral of one(a) two(v - a) da; both are series in the logarithm of their argument."""
    v = np.exp(log_v)
    best = np.full(len(v), -np.inf)
    parts = []
    for f, g in ((one, two), (two, one)):  # the argument of f is the shorter one
        own = np.minimum(np.exp(f.edges)[None, :], v[:, None] / 2)
        other = np.clip(v[:, None] - np.exp(g.edges)[None, :], own[:, :1], v[:, None] / 2)
        row, start, length = _pieces(np.concatenate([own, other, v[:, None] / 2], axis=1))
        middle = start + length / 2
        rough = f.log(np.log(middle)) + g.log(np.log(v[row] - middle)) + np.log(length)
        np.maximum.at(best, row, rough)
        parts.append((f, g, row, start, length, rough))
    total = np.zeros(len(v))
    for f, g, row, start, length, rough in parts:
        keep = rough > best[row] - 60
        row, start, length = row[keep], start[keep], length[keep]
        for first in range(0, len(row), 60_000):
            some = slice(first, first + 60_000)
            a = start[some, None] + length[some, None] * (1 + RULE[0]) / 2
            exponent = f.log(np.log(a)) + g.log(np.log(v[row[some], None] - a)) - best[row[some], None]
            sums = np.exp(np.minimum(exponent, 600)) @ RULE[1] * length[some] / 2
            total += np.bincount(row[some], sums, len(v))
    with np.errstate(divide="ignore"):
        return np.log(total) + np.where(np.isfinite(best), best, NOTHING)


class Pair:
    """The loss of one step."""

    def __init__(self, q: float, sigma: float) -> None:
        self.q, self.sigma, self.least = q, sigma, math.log1p(-q)

    def log_density(self, v: Real) -> Real:
        """log of the density under P of the loss, v above its least value."""
        q, s = self.q, self.sigma
        with np.errstate(over="ignore"):
            log_expm1 = np.where(v < 30, np.log(np.expm1(np.minimum(v, 30))), v + np.log1p(-np.exp(-np.maximum(v, 1))))
        y = s * s * (math.log((1 - q) / q) + log_expm1) + 0.5
        slope = 2 * math.log(s) + v - log_expm1  # dy / dl
        return -(y**2) / (2 * s * s) - math.log(s * math.sqrt(2 * math.pi)) + self.least + v + slope

    def loss(self, y: Real | float) -> Real:
        u = (2 * np.asarray(y, dtype=float) - 1) / (2 * self.sigma**2)
        with np.errstate(over="ignore"):
            return np.where(u < 30, np.log1p(self.q * np.expm1(np.minimum(u, 30))), u + math.log(self.q))

    def log_above(self, y: float) -> float:
        """log P(outcome > y)."""
        return float(
            np.logaddexp(self.least + log_ndtr(-y / self.sigma), math.log(self.q) + log_ndtr((1 - y) / self.sigma))
        )

    def outcome_above(self, log_chance: float) -> float:
        return float(
            brentq(lambda y: self.log_above(y) - log_chance, -10 * self.sigma, 1 + 60 * self.sigma, xtol=1e-14)
        )

    def outcome(self, levels: Real) -> Real:
        """Where the losses are `levels`."""
        return self.sigma**2 * np.log(np.expm1(levels) / self.q + 1) + 0.5

    def masses(self, below: float, fastest: float) -> tuple[Real, Real]:
        """Losses and weights of a rule over the outcomes below `below` that follows exp(i t l) up to t = fastest."""
        s = self.sigma
        low = -13 * s
        edges = list(np.linspace(low, below, max(4, math.ceil((below - low) / s * 1.5)) + 1))
        turns = lambda a, b: fastest * float(self.loss(b) - self.loss(a)) / 6  # noqa: E731
        fine = [low]
        for a, b in pairwise(edges):
            count = max(1, math.ceil(turns(a, b)))
            levels = np.linspace(float(self.loss(a)), float(self.loss(b)), count + 1)[1:-1]
            fine += [y for y in self.outcome(levels) if fine[-1] < y < b] + [b]
        grid = np.array(fine)
        half, middle = np.diff(grid) / 2, (grid[1:] + grid[:-1]) / 2
        y = (middle[:, None] + half[:, None] * RULE[0]).ravel()
        loss = self.loss(y)
        density = np.exp(-y * y / (2 * s * s) + loss) / (s * math.sqrt(2 * math.pi))
        return loss, density * (half[:, None] * RULE[1]).ravel()


class Small:
    """F_n for the sum of n losses below a cut, for several n at once."""

    def __init__(self, pair: Pair, cut: float, counts: Real) -> None:
        self.pair, self.cut, self.counts = pair, cut, counts.astype(float)
        self.above = math.exp(pair.log_above(cut))
        self.rules: dict[int, tuple[Real, Real]] = {}
        self.loss, self.mass = self._rule(1.0)
        self.top = float(pair.loss(cut))
        self.log_one = math.log1p(-self.above)  # of E[1; small]
        self.log_other = self.log_mgf(-1.0)

    def _rule(self, fastest: float) -> tuple[Real, Real]:
        level = max(0, math.ceil(math.log2(max(fastest, 1))))
        if level not in self.rules:
            self.rules[level] = self.pair.masses(self.cut, 2.0**level)
        return self.rules[level]

    def log_mgf(self, c: float) -> float:
        return math.log1p(float(self.mass @ np.expm1(c * self.loss)) - self.above)

    def moments(self, c: float) -> tuple[float, float]:
        w = self.mass * np.exp(c * self.loss)
        w /= w.sum()
        mean = float(w @ self.loss)
        return mean, math.sqrt(float(w @ (self.loss - mean) ** 2))

    def saddle(self, n: float, x: float, right: bool) -> tuple[float, float]:
        """c right of 0 (or left of -1) with the least log of mgf^n exp(-c x) / |c (c+1)|, and that."""

        def height(t: float) -> float:
            c = math.exp(t) if right else -1 - math.exp(t)
            return n * self.log_mgf(c) - c * x - t - math.log1p(math.exp(t))

        high = 600 / max(self.top, 1e-12) if right else 600 / max(-self.pair.least, 1e-12)
        found = minimize_scalar(height, bounds=(-8.0, math.log(high)), method="bounded", options={"xatol": 1e-4})
        return math.exp(found.x) if right else -1 - math.exp(found.x), float(found.fun)

    def residues(self, x: Real) -> Real:
        """log (E[1] - e^x E[e^(-S)]), one row for each n; NOTHING where that is not positive."""
        n = self.counts[:, None]
        gap = np.minimum(x + n * (self.log_other - self.log_one), 0.0)
        with np.errstate(divide="ignore"):
            return np.maximum(n * self.log_one + np.log(-np.expm1(gap)), NOTHING)

    def values(self, x: Real) -> Real:
        """log F_n(x) for a few nearby x: one row for each n."""
        n = float(self.counts.max())
        mean, spread = self.moments(0.0)
        gap = float(x.max()) + max(n, n - len(self.counts) + 1) * (self.log_other - self.log_one)
        # Left of -1 where the residues are positive and the larger part.
        right = gap > -0.2 * min(spread * math.sqrt(n), 1.0) or float(x.mean()) > n * mean
        return self.line(x, True) if right else np.logaddexp(self.line(x, False), self.residues(x))

    def line(self, x: Real, right: bool) -> Real:
        """log of the integral right of 0, or of the one left of -1: E[(exp(x - S) - 1)_+]."""
        centre = float(x.mean())
        reach = float(x.max() - x.min())
        n_most = float(self.counts.max())
        c, height = self.saddle(n_most, centre, right)
        period = 2.0 * reach
        width = max(math.sqrt(n_most) * self.moments(c)[1], 1 / abs(c if right else c + 1))
        while True:  # until the copies at distance of a period are negligible
            period += 3 * width
            sure = (c if right else -1 - c) * (period - reach) > NATS + 8
            away = centre + (period if right else -period)
            other = self.saddle(n_most, away, right)[1] + c * (away - centre)
            if sure and other < height - NATS - 6:
                break
            if not right and away < n_most * self.pair.least - reach and sure:
                break
        step = 2 * math.pi / period
        base = self.log_mgf(c)
        total = np.zeros((len(self.counts), len(x)))
        first, chunk = 0, 48
        while True:
            t = step * np.arange(first, first + chunk)
            loss, mass = self._rule(float(t[-1]))
            z = c + 1j * t
            grown = np.expm1(c * loss)
            weight = mass * (1 + grown)
            real, imaginary = np.empty(chunk), np.empty(chunk)
            rows = max(1, 2_000_000 // len(loss))
            for i in range(0, chunk, rows):
                angle = np.multiply.outer(t[i : i + rows] / 2, loss)
                sine = np.sin(angle)
                real[i : i + rows] = -2 * (sine * sine) @ weight
                imaginary[i : i + rows] = 2 * (sine * np.cos(angle)) @ weight
            real += float(mass @ grown) - self.above
            log = 0.5 * np.log1p(np.maximum(2 * real + real**2 + imaginary**2, -1 + 1e-300)) + 1j * np.arctan2(
                imaginary, 1 + real
            )
            factor = np.exp(self.counts[:, None] * (log - base)[None, :]) / (z * (z + 1))
            if first == 0:
                factor[:, 0] *= 0.5
            total += (factor @ np.exp(-1j * np.multiply.outer(t, x - centre) - 1j * centre * t[:, None])).real
            first += chunk
            last = abs(factor[:, -16:]).max(axis=1)
            if (
                last * first * step
                < 1e-15 * np.maximum(abs(total).max(axis=1) * step, 1e-4 / abs(c * (c + 1)) / period)
            ).all():
                break
            if first > 400_000:
                raise ValueError("the line of small losses does not end")
            chunk = min(2 * chunk, 4096)
        with np.errstate(divide="ignore", invalid="ignore"):
            line = np.log(np.maximum(total, 0)) + math.log(step / math.pi)
            line += self.counts[:, None] * base - c * x[None, :]
        return np.where(np.isfinite(line), line, NOTHING)


class Oracle:
    """delta(eps) of `steps` steps for eps up to `top`; `delta`, about its value, says what is negligible."""

    def __init__(
        self, pair: Pair, steps: int, top: float, delta: float, mass: float = 0.01, panel: float = 1.0
    ) -> None:
        self.pair, self.steps, self.top = pair, steps, top
        self.log_delta, self.panel = math.log(delta), panel
        self.squares = mass >= steps
        if self.squares:
            self.cut_loss, self.log_rare = self.pair.least, 0.0
        else:
            self.log_rare = math.log(mass / steps)
            cut = self.pair.outcome_above(self.log_rare)
            self.cut_loss = float(self.pair.loss(cut))
        self.end = self._end()
        if self.squares:
            self._square()
        else:
            self._large()
            self._small(cut)

    def _log_ways(self, k: int) -> float:
        return math.log(math.comb(self.steps, k))  # differences of gammaln would lose the digits of T log T

    def _end(self) -> float:
        """A sum of losses that is exceeded with a negligible chance (Chernoff's bound)."""
        loss, mass = self.pair.masses(1 + 40 * self.pair.sigma, 0.0)
        log_mass = np.log(np.maximum(mass, 1e-300))
        best = math.inf
        for c in np.exp(np.linspace(-3, 7, 80)):
            exponent = log_mass + c * loss
            peak = exponent.max()
            mgf = math.log(float(np.exp(exponent - peak).sum())) + peak
            best = min(best, (self.steps * mgf + NATS - self.log_delta) / c)
        return max(best, 1.5 * self.top)

    def _fit(self, log_function: Callable[[Real], Real], k: int, low: float, floor: float) -> Series:
        high = math.log(self.end - k * self.cut_loss)
        coarse = np.linspace(low, high, max(2, math.ceil((high - low) / self.panel)) + 1)
        if not self.squares:  # v^(k-1) times a power series, far below the cut: longer panels do
            middle = low + 28
            coarse = np.concatenate(
                [
                    np.linspace(low, middle, 8),
                    np.linspace(middle, high, math.ceil((high - middle) / self.panel) + 1)[1:],
                ]
            )
        # In v itself the density has features of length 1 or 1/sigma, however far out.
        length = max(0.7, 0.7 / self.pair.sigma)
        edges = [coarse[0]]
        for a, b in pairwise(coarse):
            count = math.ceil((math.exp(b) - math.exp(a)) / (3 * length))
            edges += list(np.log(np.linspace(math.exp(a), math.exp(b), count + 1))[1:-1]) if count > 1 else []
            edges.append(b)
        return fit(lambda w: log_function(w) + w, np.array(edges), floor)  # of v h(v): mass by log v

    @staticmethod
    def _plain(series: Series) -> Series:
        """From the series of v h(v) to that of h(v)."""
        half, middle = np.diff(series.edges) / 2, (series.edges[1:] + series.edges[:-1]) / 2
        coefficients = series.coefficients.copy()
        coefficients[0] -= middle
        coefficients[1] -= half
        return Series(series.edges, coefficients)

    def _large(self) -> None:
        offset = self.cut_loss - self.pair.least
        low = math.log(offset) - 38
        self.sums: list[Series] = []
        most = 0
        while most < self.steps and self._log_ways(most + 1) + (most + 1) * self.log_rare > self.log_delta - NATS:
            most += 1
            if most * self.cut_loss > self.end:
                most -= 1
                break
        for k in range(1, most + 1):
            if k == 1:
                log_function = lambda w: self.pair.log_density(offset + np.exp(w))  # noqa: E731
            else:
                one, two = self.sums[0], self.sums[-1]
                log_function = lambda w, one=one, two=two: convolve(one, two, w)  # noqa: E731
            floor = self.log_delta - NATS - self._log_ways(k)
            self.sums.append(self._plain(self._fit(log_function, k, low, floor)))

    def _square(self) -> None:
        s = self.pair.sigma
        first = math.log(self.pair.q) - 1 / (2 * s * s) - 9 / s - math.log1p(-self.pair.q)
        floor = self.log_delta - NATS - math.log(self.steps)
        # low end in log v; the density of a sum is negligible there
        power = self._plain(self._fit(self.pair_log, 1, first, floor))
        have, whole, count = 0, None, 1
        todo = self.steps
        while True:
            if todo & 1:
                if whole is None:
                    whole, have = power, count
                else:
                    have += count
                    left, right = whole, power
                    whole = self._plain(self._fit(lambda w, a=left, b=right: convolve(a, b, w), have, first, floor))
            todo >>= 1
            if not todo:
                break
            count *= 2
            same = power
            power = self._plain(self._fit(lambda w, a=same: convolve(a, a, w), count, first, floor))
        assert whole is not None
        self.sums = [whole]

    def pair_log(self, w: Real) -> Real:
        return self.pair.log_density(np.exp(w))

    def _small(self, cut: float) -> None:
        counts = self.steps - np.arange(len(self.sums) + 1)
        small = self.small = Small(self.pair, cut, counts[counts > 0])
        n = float(self.steps)
        mean, spread = small.moments(0.0)
        spread *= math.sqrt(n)
        middle = n * mean
        # leftwards until the line adds nothing to the residues
        low = middle - 3 * spread
        while small.saddle(n, low, False)[1] > float(small.residues(np.array([low]))[0, 0]) - NATS - 3:
            low -= spread
        high = middle
        while high < self.top and small.saddle(n, high, True)[1] > self.log_delta - NATS:
            high += 2 * spread
        self.low, self.high = low, min(high, self.top * (1 + 1e-12))
        edges, x = [low], low
        while x < self.high:
            width = spread
            if x > middle:
                c, _ = small.saddle(n, x, True)
                width = max(0.5 * spread, min(math.sqrt(n) * small.moments(c)[1], 8 * spread))
            x = min(x + 2 * width, self.high)
            edges.append(x)
        self.tails = self._fit_small(np.array(edges))

    def _fit_small(self, edges: Real) -> list[Series]:
        done: list[tuple[float, float, Real]] = []
        todo = [(a, b, 0) for a, b in pairwise(edges)]
        floor = self.log_delta - NATS
        while todo:
            a, b, depth = todo.pop()
            values = np.maximum(self.small.values((a + b) / 2 + (b - a) / 2 * POINTS), floor - 30)
            coefficients = values @ FIT.T
            top = values.max(axis=1)
            need = 10 * TOLERANCE * np.maximum(1, np.exp(np.clip(floor + NATS - top, 0, 60)))
            rough = (abs(coefficients[:, -3:]).max(axis=1) > need) & (top > floor)
            if rough.any() and depth < 5:
                todo += [(a, (a + b) / 2, depth + 1), ((a + b) / 2, b, depth + 1)]
            else:
                done.append((a, b, coefficients))
        done.sort(key=lambda piece: piece[0])
        grid = np.array([a for a, _, _ in done] + [done[-1][1]])
        return [Series(grid, np.array([c[i] for _, _, c in done]).T.copy()) for i in range(len(self.small.counts))]

    def _log_tail(self, k: int, x: Real) -> Real:
        """log F_(T-k)(x)."""
        if self.squares or k == self.steps:
            with np.errstate(divide="ignore"):
                return np.maximum(np.log(-np.expm1(np.minimum(x, 0.0))), NOTHING)
        gap = np.minimum(x + (self.steps - k) * (self.small.log_other - self.small.log_one), 0.0)
        with np.errstate(divide="ignore"):
            far = (self.steps - k) * self.small.log_one + np.log(-np.expm1(gap))
        return np.where(x < self.low, far, self.tails[k].log(x))

    def delta(self, eps: float) -> float:
        """delta at eps <= top."""
        if eps > self.top:
            raise ValueError("eps lies beyond the top")
        total = 0.0
        if not self.squares:
            total = float(np.exp(self._log_tail(0, np.array([eps]))[0]))
        for i, series in enumerate(self.sums):
            k = self.steps if self.squares else i + 1
            start = k * self.cut_loss
            v = np.exp(series.edges)
            breaks = [v]
            if self.squares or k == self.steps:
                breaks.append(np.array([eps - start]))
            else:
                breaks.append(eps - start - self.tails[k].edges)
            edges = np.unique(np.clip(np.concatenate(breaks), v[0], v[-1]))
            half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
            a = (middle[:, None] + half[:, None] * RULE[0]).ravel()
            weight = (half[:, None] * RULE[1]).ravel()
            logs = (
                series.log(np.log(a))
                + self._log_tail(k, eps - start - a)
                + (0.0 if self.squares else self._log_ways(k))
            )
            total += float(weight @ np.exp(np.minimum(logs, 600)))
        return total


def delta_other(pair: Pair, steps: int, eps: float, enough: float = 1e-300) -> float:
    """delta(eps) of Q against P, which is exp(eps) E[(exp(-eps - L) - 1)_+]; or `enough` if that is surely more."""
    if eps >= -steps * pair.least:
        return 0.0
    whole = Small(pair, 1 + 14 * pair.sigma, np.array([steps]))
    c = whole.saddle(steps, -eps, False)[0]
    bound = steps * whole.log_mgf(c) + c * eps + eps - (-1 - c) * math.log1p(1 / (-1 - c)) - math.log(-c)
    if bound < math.log(enough):  # (e^a - 1)_+ <= e^(-c a) (-1-c)^(-1-c) / (-c)^(-c)
        return enough
    return math.exp(min(eps + float(whole.line(np.array([-eps]), False)[0, 0]), 0.0))


def highest(pair: Pair, steps: int, delta: float) -> float:
    """An epsilon that is surely enough (Chernoff's bound)."""
    loss, mass = pair.masses(1 + 40 * pair.sigma, 0.0)
    log_mass = np.log(np.maximum(mass, 1e-300))
    orders = np.exp(np.linspace(-3, 10, 200))
    return min(float((steps * logsumexp(log_mass + c * loss) - math.log(delta)) / c) for c in orders)


def epsilon(pair: Pair, steps: int, delta: float, mass: float = 0.01, panel: float = 1.0) -> float:
    """The eps with delta(eps) = delta, P against Q; 0 if there is none above a ten-thousandth of Chernoff's bound."""
    top = highest(pair, steps, delta)
    oracle = Oracle(pair, steps, top, delta, mass, panel)
    if oracle.delta(top / 1e4) <= delta:
        return 0.0
    return float(brentq(lambda x: math.log(oracle.delta(x) / delta), top / 1e4, top, xtol=1e-300, rtol=1e-14))
