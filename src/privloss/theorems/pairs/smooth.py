"""Pairs of continuous distributions: two Gaussians in closed form, and any two densities by quadrature.

>>> GaussianPair(mean=1.0, other=0.0, sigma=2.0).rho                # Z ~ N(rho, 2 rho)
0.125
>>> pair = GaussianPair(1.0, 0.0, 2.0)
>>> round(pair.hockey_stick(1.0), 12), round(pair.as_densities().hockey_stick(1.0), 9)
(0.006829594983, 0.006829595)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from privloss.errors import InvalidInput
from privloss.numerics import check
from privloss.theorems.pairs.base import Function, NeymanPearson, Pair

_TINY = 1e-300


@dataclass(frozen=True)
class GaussianPair(Pair):
    """N(mean, sigma^2) against N(other, sigma^2): the loss is N(rho, 2 rho) both ways (Prop. gauss_privloss)."""

    mean: float
    other: float
    sigma: float

    def __post_init__(self) -> None:
        check.number("mean", self.mean)
        check.number("other", self.other)
        check.number("sigma", self.sigma, low=0, above=True)

    @property
    def rho(self) -> float:
        distance = (self.mean - self.other) / self.sigma
        return 0.5 * distance * distance

    def reversed(self) -> GaussianPair:
        return GaussianPair(self.other, self.mean, self.sigma)

    @property
    def mass_at_infinity(self) -> float:
        return 0.0

    def max_divergence(self) -> float:
        return math.inf if self.rho > 0 else 0.0

    def expectation(self, g: Function) -> float:
        if self.rho == 0:
            return g(0.0)
        spread = math.sqrt(2 * self.rho)

        def weighted(x: float) -> float:
            return g(self.rho + spread * x) * math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)

        # from beyond the bulk of Q (at -spread), which e^-Z weighs, to beyond that of P; functions have a corner at 0
        corners = sorted({-spread - 12.0, -spread, -0.5 * spread, 0.0, 12.0})
        return math.fsum(_integral(weighted, a, b) for a, b in itertools.pairwise(corners) if a < b)

    def tail(self, epsilon: float) -> float:
        return float(ndtr((self.rho - epsilon) / math.sqrt(2 * self.rho))) if self.rho > 0 else float(epsilon < 0)

    def tail_under_q(self, epsilon: float) -> float:
        return float(ndtr((-self.rho - epsilon) / math.sqrt(2 * self.rho))) if self.rho > 0 else float(epsilon < 0)

    def kl(self) -> float:
        return self.rho

    def log_moment(self, t: float) -> float:
        return t * (t + 1) * self.rho

    def hockey_stick(self, epsilon: float, *, expression: str = "tails") -> float:
        if expression == "expectation" and self.rho > 0:  # integrate up from the corner
            spread, eps = math.sqrt(2 * self.rho), check.number("epsilon", epsilon)
            start = (eps - self.rho) / spread
            return _integral(
                lambda x: -math.expm1(eps - self.rho - spread * x) * math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi),
                start, max(start, -12.0) + 24.0,
            )  # fmt: skip
        return super().hockey_stick(epsilon, expression=expression)

    def _tail_integral(self, epsilon: float) -> float:
        return _integral(lambda z: math.exp(epsilon - z) * self.tail(z), epsilon, epsilon + 60.0)

    def neyman_pearson(self, fpr: float) -> NeymanPearson:
        rate = check.number("fpr", fpr, low=0, high=1)
        if self.rho == 0:  # the loss is 0 always: no test beats a coin
            return NeymanPearson(0.0, rate, rate)
        spread = math.sqrt(2 * self.rho)
        quantile = float(ndtri(rate))  # Q[Z > t] = Phi((-rho - t)/spread)
        return NeymanPearson(-self.rho - spread * quantile, 1.0, float(ndtr(quantile + spread)))

    def upper(self, epsilon: float) -> float:
        """The readable bound after Cor. gauss_adp_exact, for epsilon >= rho."""
        eps = check.number("epsilon", epsilon, low=self.rho)
        if self.rho == 0:
            return 0.0
        gap = eps - self.rho
        return math.exp(-(gap**2) / (4 * self.rho)) / max(2.0, math.sqrt(math.pi / self.rho) * gap)

    def as_densities(self) -> DensityPair:
        """The same as two densities."""
        low, high = min(self.mean, self.other), max(self.mean, self.other)
        return DensityPair(
            self._density(self.mean), self._density(self.other), low - 12 * self.sigma, high + 12 * self.sigma
        )

    def _density(self, mean: float) -> Function:
        return lambda y: math.exp(-0.5 * ((y - mean) / self.sigma) ** 2) / (self.sigma * math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class DensityPair(Pair):
    """Two densities on [low, high]; integrals by adaptive quadrature, so numbers are estimates."""

    p: Callable[[float], float]
    q: Callable[[float], float]
    low: float
    high: float
    corners: tuple[float, ...] = ()  # places where a density is not smooth

    def __post_init__(self) -> None:
        check.number("low", self.low)
        check.number("high", self.high, low=self.low, above=True)
        for name, density in (("p", self.p), ("q", self.q)):
            mass = self._over(density)
            if abs(mass - 1) > 1e-6:
                raise InvalidInput(
                    f"{name}: the density must integrate to 1 on [{self.low:g}, {self.high:g}], not {mass:g}."
                )

    def _over(self, f: Function, extra: tuple[float, ...] = ()) -> float:
        edges = sorted({self.low, self.high, *self.corners, *(e for e in extra if self.low < e < self.high)})
        pieces = [a + (b - a) * i / 16 for a, b in itertools.pairwise(edges) for i in range(16)] + [edges[-1]]
        return math.fsum(_integral(f, a, b) for a, b in itertools.pairwise(pieces))

    def log_ratio(self, y: float) -> float:
        a, b = self.p(y), self.q(y)
        if a < 0 or b < 0:
            raise InvalidInput(f"density at {y:g}: must not be negative.")
        return 0.0 if a == b else math.inf if b <= _TINY else -math.inf if a <= _TINY else math.log(a) - math.log(b)

    def reversed(self) -> DensityPair:
        return DensityPair(self.q, self.p, self.low, self.high, self.corners)

    def expectation(self, g: Function) -> float:
        def weighted(y: float) -> float:
            a, z = self.p(y), self.log_ratio(y)
            return 0.0 if a <= _TINY or math.isinf(z) else a * g(z)

        return self._over(weighted, self._crossings(0.0))

    @property
    def mass_at_infinity(self) -> float:
        return self._over(lambda y: self.p(y) if self.log_ratio(y) == math.inf else 0.0)

    def tail(self, epsilon: float) -> float:
        return self._over(lambda y: self.p(y) if self.log_ratio(y) > epsilon else 0.0, self._crossings(epsilon))

    def tail_under_q(self, epsilon: float) -> float:
        return self._over(lambda y: self.q(y) if self.log_ratio(y) > epsilon else 0.0, self._crossings(epsilon))

    def hockey_stick(self, epsilon: float, *, expression: str = "expectation") -> float:
        if expression == "expectation":
            eps = check.number("epsilon", epsilon)
            cut = self._crossings(eps)
            return self._over(lambda y: max(0.0, self.p(y) - math.exp(eps) * self.q(y)), cut)
        return super().hockey_stick(epsilon, expression=expression)

    def _tail_integral(self, epsilon: float) -> float:
        # exchanging the integrals: each outcome with loss z > eps contributes p(y) (1 - e^(eps - z))
        top = max(min(self.max_divergence(), epsilon + 50.0), epsilon)
        return _integral(
            lambda z: math.exp(epsilon - z) * self.tail(z), epsilon, top
        ) + self.mass_at_infinity * math.exp(epsilon - top)

    def max_divergence(self) -> float:
        grid = [self.low + (self.high - self.low) * i / 4000 for i in range(4001)]
        return max(self.log_ratio(y) for y in grid)

    def neyman_pearson(self, fpr: float) -> NeymanPearson:
        rate = check.number("fpr", fpr, low=0, high=1)
        top = min(self.max_divergence(), 700.0) + 1.0
        bottom = -min(self.reversed().max_divergence(), 700.0) - 1.0
        threshold = float(brentq(lambda t: self.tail_under_q(t) - rate, bottom, top, xtol=1e-12))
        return NeymanPearson(threshold, 1.0, self.tail(threshold))

    def _crossings(self, level: float) -> tuple[float, ...]:
        """Where the loss passes a level: there the integrands have corners."""
        grid = [self.low + (self.high - self.low) * i / 512 for i in range(513)]
        values = [self.log_ratio(y) - level for y in grid]
        found = []
        for (a, fa), (b, fb) in zip(
            zip(grid, values, strict=True), list(zip(grid, values, strict=True))[1:], strict=False
        ):
            if fa * fb < 0 and math.isfinite(fa) and math.isfinite(fb):
                found.append(float(brentq(lambda y: self.log_ratio(y) - level, a, b, xtol=1e-14)))
        return tuple(found)


def _integral(f: Function, low: float, high: float) -> float:
    value, *_ = quad(f, low, high, limit=200, epsabs=1e-15, epsrel=1e-11)
    return float(value)
