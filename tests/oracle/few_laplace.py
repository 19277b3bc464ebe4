"""A second opinion on two and three uses of Laplace noise on a Poisson sample: nested integrals, no transform.

delta_1 is closed; delta_(k+1)(eps) = E[delta_k(eps - V)] over the two atoms of one loss V and its density, integrated
by Gauss-Legendre rules between all points where delta_k has a corner. Plain doubles; nothing of the package is used.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

RULE = np.polynomial.legendre.leggauss(26)
Real = np.ndarray


class Sampled:
    """(1-q) Q + q P against Q for Laplace noise of that lambda; `back` is Q against the mixture."""

    def __init__(self, lam: float, rate: float, back: bool) -> None:
        self.lam, self.rate, self.sign = lam, rate, -1.0 if back else 1.0
        z = np.array([lam, -lam])
        under_q = np.array([0.5 * math.exp(-lam), 0.5])
        self.atoms = list(zip(self.loss(z), under_q if back else under_q * self.ratio(z), strict=True))
        self.back = back

    def ratio(self, z: Real) -> Real:
        return 1 + self.rate * np.expm1(z)

    def loss(self, z: Real) -> Real:
        return self.sign * np.log1p(self.rate * np.expm1(z))

    def density(self, z: Real) -> Real:
        under_q = 0.25 * np.exp(-0.5 * (self.lam + z))
        return under_q if self.back else under_q * self.ratio(z)

    def outcome(self, loss: float) -> float:
        """z with that loss, or the nearer end."""
        r = math.exp(self.sign * loss)
        inside = (r - 1) / self.rate + 1
        return min(max(math.log(inside), -self.lam), self.lam) if inside > 0 else -self.lam

    def delta(self, eps: float, uses: int) -> float:
        if uses == 0:
            return max(-math.expm1(eps), 0.0)
        total = sum(mass * self.delta(eps - v, uses - 1) for v, mass in self.atoms)
        (top, _), (bottom, _) = self.atoms
        corners = {i * top + (uses - 1 - i) * bottom for i in range(uses)}
        cuts = sorted(
            {-self.lam, self.lam, 0.5 * -self.lam, 0.0, 0.5 * self.lam} | {self.outcome(eps - b) for b in corners}
        )
        for low, high in itertools.pairwise(cuts):
            if high > low:
                z = 0.5 * (low + high) + 0.5 * (high - low) * RULE[0]
                below = np.array([self.delta(float(e), uses - 1) for e in eps - self.loss(z)])
                total += 0.5 * (high - low) * float(RULE[1] @ (self.density(z) * below))
        return float(total)
