"""Splitting a budget over several releases, under every accounting side by side.

>>> import privloss as pl
>>> for row in pl.allocate(epsilon=1.0, delta=1e-6, weights=[1, 1, 2]).rows:
...     print(f"{row.accounting:10} {[round(x, 3) for x in row.noise]}  true epsilon {row.epsilon.upper:.4f}")
basic      [16.594, 16.594, 8.348]  true epsilon 0.5994
advanced   [17.163, 17.163, 8.632]  true epsilon 0.5783
zCDP       [9.062, 9.062, 6.408]  true epsilon 0.9274
exact      [8.449, 8.449, 5.975]  true epsilon 1.0000

A weight is a share of the budget: of epsilon and delta under basic and advanced composition, of rho under zCDP; the
exact accounting keeps the proportions of zCDP (for Laplace noise those of basic composition) and finds the common
factor. `noise` is relative to each release's sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from privloss.answers import exact
from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.laplace import Laplace
from privloss.numerics import check
from privloss.numerics.bound import Bound
from privloss.planning.calibrate import calibrate
from privloss.theorems import composition, conversion

NOISES = ("gaussian", "laplace")


@dataclass(frozen=True)
class Accounting:
    """One accounting: the noise of each release, and what is exactly true of it."""

    accounting: str
    theorem: str
    noise: tuple[float, ...]
    plan: Plan
    epsilon: Bound


@dataclass(frozen=True)
class Allocation:
    """The same budget under every accounting, from the most wasteful to the exact one (the last row)."""

    target_epsilon: float
    delta: float
    weights: tuple[float, ...]
    rows: tuple[Accounting, ...]

    @property
    def best(self) -> Accounting:
        return self.rows[-1]


def allocate(
    *, epsilon: float, delta: float, weights: Sequence[float], noise: str = "gaussian", adjacency: str = "add-remove"
) -> Allocation:
    """Noise for releases that share (epsilon, delta) in proportion to `weights`."""
    total = check.number("epsilon", epsilon, low=0, above=True)
    level = check.number("delta", delta, low=0, high=1, above=True)
    if level == 1:
        raise InvalidInput("delta = 1: promises nothing; give a delta below 1.")
    given = [check.number(f"weights[{i}]", w, low=0, above=True) for i, w in enumerate(weights)]
    if not given:
        raise InvalidInput("weights = []: needs at least one release.")
    release = _RELEASES[check.choice("noise", noise, NOISES)]
    shares = [w / math.fsum(given) for w in given]
    rows = []
    for accounting, theorem, noises in _accountings(release, shares, total, level, adjacency):
        plan = Plan.of(*((release.make(s), 1) for s in noises), adjacency=adjacency)
        rows.append(Accounting(accounting, theorem, tuple(noises), plan, exact.one_epsilon(plan, level)))
    return Allocation(total, level, tuple(given), tuple(rows))


def _accountings(
    release: _Release, shares: list[float], total: float, level: float, adjacency: str
) -> Iterator[tuple[str, str, list[float]]]:
    """Name, theorem and the noise of each release, from the most wasteful accounting to the exact one."""
    text = "epsilons and deltas add (Thm. basic composition)"
    yield "basic", text, [release.alone(w * total, w * level) for w in shares]
    factor = _advanced_factor(shares, total, level)
    if factor is not None:
        text = "advanced composition, half of delta for its slack (Thm. advancedcomposition_approx)"
        yield "advanced", text, [release.alone(w * factor, w * level / 2) for w in shares]
    rho = _largest_rho(total, level)
    yield "zCDP", "rho adds, then the best conversion (Prop. cdp2adp)", [release.for_rho(w * rho) for w in shares]
    base = [release.shape(w) for w in shares]

    def scaled(scale: float) -> Plan:
        return Plan.of(*((release.make(scale * b), 1) for b in base), adjacency=adjacency)

    best = float(calibrate(scaled, epsilon=total, delta=level).value)
    yield "exact", "privacy loss distribution", [best * b for b in base]


def _gaussian(epsilon: float, delta: float) -> float:
    return float(calibrate(lambda s: Gaussian(sigma=s, sensitivity=1.0), epsilon=epsilon, delta=delta).value)


def _laplace(epsilon: float, delta: float) -> float:
    return 1 / epsilon  # pure: the share of delta is left over


def _advanced_factor(shares: list[float], epsilon: float, delta: float) -> float | None:
    """The largest x such that epsilons x w_i compose to `epsilon` by advanced composition."""

    def total(x: float) -> float:
        return float(composition.advanced_approx([x * w for w in shares], 0.0, delta=delta / 2))

    low, high = 0.0, epsilon * len(shares)
    if not total(1e-12 * epsilon) < epsilon:
        return None
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if total(middle) <= epsilon else (low, middle)
    return low


def _largest_rho(epsilon: float, delta: float) -> float:
    low, high = 0.0, epsilon
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if float(conversion.zcdp_to_epsilon(middle, delta=delta)) <= epsilon else (low, middle)
        )
    return low


def _scale_for(rho: float) -> float:
    """The least scale at which Laplace noise is rho-zCDP."""
    low, high = 1e-6, 1e9
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if Laplace(middle).zcdp().upper <= rho else (middle, high)
    return high


@dataclass(frozen=True)
class _Release:
    """A kind of noise, by its size relative to the sensitivity."""

    make: Callable[[float], Mechanism]
    alone: Callable[[float, float], float]  # the noise that is (epsilon, delta)-DP
    for_rho: Callable[[float], float]  # the noise that is rho-zCDP
    shape: Callable[[float], float]  # how noise depends on a release's share, up to a common factor


_RELEASES = {
    "gaussian": _Release(
        lambda s: Gaussian(sigma=s, sensitivity=1.0), _gaussian, lambda rho: 1 / math.sqrt(2 * rho),
        lambda share: 1 / math.sqrt(share),
    ),
    "laplace": _Release(lambda s: Laplace(scale=s), _laplace, _scale_for, lambda share: 1 / share),
}  # fmt: skip
