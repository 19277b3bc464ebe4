"""Where to put the line: the saddle of the integrand on the real axis. A guess throughout; no bound depends on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privloss.numerics.contour.transform import TooExpensive, Transform

CLOSE = 1.0  # nats of delta: a line this far from its saddle is at most 65 % higher, usually 2 %
_TAME = 15.0  # nats within which log delta is taken as it is, beyond by its logarithm


@dataclass(frozen=True)
class Saddle:
    """The real point c where (e^K(z) - w e^K(0)) e^(-eps z)/(z(z+1)) is least on the axis, and the shape there.

    The mass that stays at Z = 0 adds nothing to delta but would drown a few rare hits in e^K, so it is taken out where
    rare hits are what matters: w = 1 if the tilt has multiplied the variance by five, w = 0 if it has not changed it
    (then the sum is nearly Gaussian and has no mass that stays). A guess, never used in a bound.
    """

    c: float
    eps: float
    k: float
    log_share: float  # log of delta / e^(K(c) - c eps) in the saddle point approximation
    curvature: float  # G'' + 1/c^2 + 1/(c+1)^2

    @classmethod
    def at(cls, transform: Transform, c: float, k_zero: float, variance: float) -> Saddle:
        k, k1, k2 = transform.moments(c)
        if not (k2 >= 0 and k > -math.inf):
            raise TooExpensive("moments out of range")
        ratio = math.log(k2 / variance) / math.log(5.0) if k2 > 0 and variance > 0 else 0.0
        stays = min(max(ratio, 0.0), 1.0) * math.exp(min(k_zero - k, 0.0))
        rest = max(1 - stays, -math.expm1(min(k_zero - k, -1e-300)))
        slope = k1 / rest
        spread = k2 / rest - slope**2 * stays
        curvature = max(spread, 0.0) + 1 / c**2 + 1 / (c + 1) ** 2
        share = math.log(rest) - math.log(c) - math.log1p(c) - 0.5 * math.log(2 * math.pi * curvature)
        return cls(c, slope - 1 / c - 1 / (c + 1), k, share, curvature)

    @property
    def log_delta(self) -> float:
        return self.k - self.c * self.eps + self.log_share


def find_saddle(
    transform: Transform,
    miss: Callable[[Saddle], float],
    rising: bool,
    required: bool = True,
    start: tuple[float, float, float] | None = None,
    reach: float = 5.0,
) -> Saddle:
    """The saddle where `miss` (in nats of delta), monotone in c, vanishes to within CLOSE, which is plenty.

    `reach` is a first guess at c in standard deviations. Secant steps in log c, kept inside the bracket found so far;
    asinh tames the super-exponential growth of K.
    """
    lattice = transform.lattice
    ceiling = min(60.0 / lattice.spacing if lattice is not None else 1e16, transform.tilt_limit)
    low, top = math.log(1e-14), math.log(ceiling)
    high = top
    k_zero, _, variance = start or transform.moments(0.0)
    guess = min(reach / math.sqrt(max(variance, 1e-300)), transform.tilt_guess)
    x = min(max(math.log(guess), low + 1), high - 1)
    before: tuple[float, float] | None = None
    found: Saddle | None = None
    for _ in range(80):
        saddle, error = _tried(transform, miss if rising else lambda s: -miss(s), math.exp(x), k_zero, variance)
        found = saddle or found
        if abs(error) < CLOSE:
            break
        low, high = (low, x) if error > 0 else (x, high)
        tame = math.asinh(error / _TAME) if math.isfinite(error) else math.inf
        step = min(max(_step(x, tame, before, saddle, error), -4.0), 4.0)
        before = (x, tame)
        step = _inside(x, step, low, high, top)
        if abs(step) < 1e-7:
            break
        x += step
    if found is None or (required and found.c < 1e-13):
        raise TooExpensive("no saddle found")
    return found


def _inside(x: float, step: float, low: float, high: float, top: float) -> float:
    """The step if it stays inside the bracket, of which x is one end; else half-way to the other, or all the way to a
    ceiling that was not tried yet."""
    if low < x + step < high:
        return step
    if x == high:
        return 0.5 * (low - x)
    return (1.0 if high == top else 0.5) * (high - x)


def _tried(
    transform: Transform, miss: Callable[[Saddle], float], c: float, k_zero: float, variance: float
) -> tuple[Saddle | None, float]:
    """The saddle at c and its miss; so far out that K cannot even be evaluated: none, and inf, to come back."""
    try:
        saddle = Saddle.at(transform, c, k_zero, variance)
        error = miss(saddle)
    except (TooExpensive, OverflowError):
        return None, math.inf
    return (None, math.inf) if math.isnan(error) else (saddle, error)


def _step(x: float, tame: float, before: tuple[float, float] | None, saddle: Saddle | None, error: float) -> float:
    """A secant step in log c or, with one point only, d log_delta / d log c = -c^2 curvature."""
    if before is not None and tame != before[1] and math.isfinite(tame) and math.isfinite(before[1]):
        return -tame * (x - before[0]) / (tame - before[1])
    if saddle is None or not math.isfinite(error):
        return -2.0
    return -tame * math.hypot(_TAME, error) / (saddle.c**2 * saddle.curvature)
