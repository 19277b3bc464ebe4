"""A second opinion on compositions of several hits (groups on a sample, Gaussian mixtures): `summed_losses` for the
losses of sum p_k N(a_k, s^2) against N(0, s^2). Nothing of the package is used.

With v the loss above its least value log p_0, log expm1(v) = g(y) = log sum (p_k/p_0) e^(s_k),
s_k = a_k (y - a_k/2)/s^2, a convex function, which Newton's method inverts from the right.

Usage: python -m tests.oracle.several_losses SEED COUNT: random groups against the package, both directions.
"""

from __future__ import annotations

import math
import random
import sys
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr

from tests.oracle.summed_losses import Pair, Real, delta_other, epsilon


class Several(Pair):
    """Weights and shifts of the hits, the largest shift 1; sigma is the noise in that unit."""

    def __init__(self, weights: list[float], shifts: list[float], missed: float, sigma: float) -> None:
        self.weights, self.shifts, self.missed, self.sigma = np.array(weights), np.array(shifts), missed, sigma
        self.q, self.least = math.fsum(weights), math.log(missed)
        self.logs = np.log(self.weights / missed)

    def _terms(self, y: Real) -> Real:
        return self.logs[:, None] + self.shifts[:, None] * (y - 0.5 * self.shifts[:, None]) / self.sigma**2

    def _solved(self, target: Real) -> tuple[Real, Real]:
        """y with g(y) = target, and g' there."""
        least = np.min((target - self.logs[:, None]) * self.sigma**2 / self.shifts[:, None], axis=0)
        y = least + 0.5 * self.shifts.max()  # g >= each of its terms
        for _ in range(60):
            terms = self._terms(y)
            value = np.logaddexp.reduce(terms, axis=0)
            slope = self.shifts @ np.exp(terms - value) / self.sigma**2
            y = y - (value - target) / slope
        return y, slope

    def log_density(self, v: Real) -> Real:
        with np.errstate(over="ignore"):
            log_expm1 = np.where(v < 30, np.log(np.expm1(np.minimum(v, 30))), v + np.log1p(-np.exp(-np.maximum(v, 1))))
        y, slope = self._solved(log_expm1)
        s = self.sigma
        return (
            -(y**2) / (2 * s * s)
            - math.log(s * math.sqrt(2 * math.pi))
            + self.least
            + 2 * v
            - log_expm1
            - np.log(slope)
        )

    def loss(self, y: Real | float) -> Real:
        at = np.atleast_1d(np.asarray(y, dtype=float))
        s = self.shifts[:, None] * (at - 0.5 * self.shifts[:, None]) / self.sigma**2
        with np.errstate(over="ignore"):
            near = np.log1p(np.maximum(self.weights @ np.expm1(np.minimum(s, 30.0)), -0.9))
        far = np.logaddexp(self.least, np.logaddexp.reduce(np.log(self.weights)[:, None] + s, axis=0))
        found = np.where((s.max(axis=0) < 30.0) & (near > -0.5), near, far)
        return found.reshape(np.shape(y))

    def log_above(self, y: float) -> float:
        hits = np.log(self.weights) + log_ndtr((self.shifts - y) / self.sigma)
        return float(np.logaddexp(self.least + log_ndtr(-y / self.sigma), np.logaddexp.reduce(hits)))

    def outcome(self, levels: Real) -> Real:
        above = np.asarray(levels) - self.least
        with np.errstate(over="ignore"):
            return self._solved(np.where(above < 30, np.log(np.expm1(np.minimum(above, 30))), above))[0]


def group(sigma: float, rate: float, people: int) -> Several:
    """People on a Poisson sample, each at a distance of one over the noise."""
    q = Fraction(rate)
    weights = [float(math.comb(people, k) * q**k * (1 - q) ** (people - k)) for k in range(1, people + 1)]
    return Several(weights, [k / people for k in range(1, people + 1)], float((1 - q) ** people), sigma / people)


def main(seed: int, count: int) -> None:
    import privloss as pl

    rng = random.Random(seed)

    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    done, widest, furthest = 0, 0.0, 0.0
    while done < count:
        sigma, q, steps = between(0.5, 5), between(1e-6, 0.2), round(between(45, 1e5))
        delta, people = between(1e-12, 1e-5), rng.randint(2, 8)
        answer = pl.group.plan(pl.Gaussian(sigma).poisson(q) * steps, people).epsilon(delta)
        if not 1e-3 < answer.upper < 30:
            continue
        pair = group(sigma, q, people)
        try:
            first, second = (epsilon(pair, steps, delta, mass, panel) for mass, panel in ((0.01, 1.0), (0.003, 0.8)))
        except (ValueError, OverflowError, MemoryError) as problem:
            print("oracle:", problem, (sigma, q, steps, delta, people), flush=True)
            continue
        trust = 3 * abs(first / second - 1) + 3e-13
        other = delta_other(pair, steps, answer.lower, delta)
        off = max(answer.lower - first, first - answer.upper, 0.0) / first
        bad = "" if off <= trust and other <= delta else "  <-- OUTSIDE"
        widest, furthest = max(widest, answer.relative_width), max(furthest, off)
        print(
            f"{done} {(sigma, q, steps, delta, people)} {answer} {first:.14g} trust {trust:.0e} off {off:.0e}{bad}",
            flush=True,
        )
        done += 1
    print(f"{done} settings, widest {widest:.1e}, furthest outside {furthest:.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
