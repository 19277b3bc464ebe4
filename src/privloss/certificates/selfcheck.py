"""Self-audit: random settings, each answered in floating point and certified, and compared.

The truth lies in the certified interval, so a floating-point interval that does not meet it is wrong.

>>> report = selfcheck(settings=4, seed=1)
>>> report.violations, report.settings
((), 4)
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from privloss.answers import exact
from privloss.certificates.certificate import certify
from privloss.errors import Unsupported
from privloss.mechanisms.approx_dp import ApproxDP
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.discrete_gaussian import DiscreteGaussian
from privloss.mechanisms.discrete_laplace import DiscreteLaplace
from privloss.mechanisms.exponential import Exponential
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.pure_dp import PureDP
from privloss.mechanisms.randomized_response import RandomizedResponse
from privloss.mechanisms.truncated_gaussian import TruncatedGaussian
from privloss.mechanisms.truncated_laplace import TruncatedLaplace
from privloss.mechanisms.unary_encoding import UnaryEncoding
from privloss.numerics.bound import Bound


@dataclass(frozen=True)
class Compared:
    """One setting."""

    regime: str
    plan: Plan
    delta: float
    floating: Bound
    certified: Bound | None  # None: no proof was found at an affordable cost

    @property
    def violated(self) -> bool:
        """The certified interval contains the truth; the other does not."""
        return self.certified is not None and not (
            self.floating.lower <= self.certified.upper and self.certified.lower <= self.floating.upper
        )

    @property
    def used(self) -> float | None:
        """How far the truth lies from the middle of the floating-point interval, in half widths (1 would be its end);
        None unless the certified interval is at least ten times narrower."""
        certified, width = self.certified, self.floating.width
        if certified is None or not 10 * certified.width < width < math.inf:
            return None
        truth, middle = certified.lower + certified.width / 2, self.floating.lower + width / 2
        return abs(truth - middle) / (width / 2)


@dataclass(frozen=True)
class Report:
    """What a self-audit found."""

    compared: tuple[Compared, ...] = field(repr=False)

    @property
    def settings(self) -> int:
        return len(self.compared)

    @property
    def violations(self) -> tuple[Compared, ...]:
        return tuple(c for c in self.compared if c.violated)

    @property
    def uncertified(self) -> int:
        return sum(c.certified is None for c in self.compared)

    @property
    def worst_width(self) -> float:
        """The largest relative width of a floating-point interval."""
        return max((c.floating.relative_width for c in self.compared), default=0.0)

    def by_regime(self) -> list[dict[str, Any]]:
        """One row for each kind of plan."""
        rows = []
        for regime in dict.fromkeys(c.regime for c in self.compared):
            here = [c for c in self.compared if c.regime == regime]
            used = [c.used for c in here if c.used is not None]
            widths = [c.floating.relative_width for c in here]
            row = {
                "regime": regime,
                "settings": len(here),
                "violations": sum(c.violated for c in here),
                "uncertified": sum(c.certified is None for c in here),
                "median_width": statistics.median(widths),
                "worst_width": max(widths),
                "used": max(used, default=None),
            }
            rows.append(row)
        return rows


def _log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _count(rng: random.Random, high: float) -> int:
    return int(_log_uniform(rng, 1, high))


def _gaussian(rng: random.Random) -> Plan:
    return Gaussian(_log_uniform(rng, 0.1, 100)) * _count(rng, 1e6)


def _poisson(rng: random.Random) -> Plan:
    rate = _log_uniform(rng, 1e-6, 0.9)
    return Gaussian(_log_uniform(rng, 0.35, 30)).poisson(rate) * _count(rng, 1e7)


def _few_hits(rng: random.Random) -> Plan:
    steps = _count(rng, 1e4)
    rate = min(_log_uniform(rng, 0.3, 30) / steps, 0.5)
    return Gaussian(_log_uniform(rng, 0.4, 2)).poisson(rate) * steps


def _poisson_replace(rng: random.Random) -> Plan:
    step = Gaussian(_log_uniform(rng, 0.6, 10)).poisson(_log_uniform(rng, 1e-3, 0.5))
    return Plan(((step, int(_log_uniform(rng, 30, 1e5))),), "replace-one")


def _fixed_size(rng: random.Random) -> Plan:
    n = int(_log_uniform(rng, 1e2, 1e6))
    step = Gaussian(_log_uniform(rng, 0.8, 10)).fixed_size(n, max(1, int(n * _log_uniform(rng, 1e-2, 0.3))))
    return Plan(((step, int(_log_uniform(rng, 200, 1e5))),), rng.choice(("add-remove", "replace-one")))


def _laplace(rng: random.Random) -> Plan:
    return Laplace(_log_uniform(rng, 0.3, 100)) * _count(rng, 3000)


def _sampled_laplace(rng: random.Random) -> Plan:
    return Laplace(_log_uniform(rng, 0.5, 5)).poisson(_log_uniform(rng, 0.003, 0.5)) * int(_log_uniform(rng, 30, 1e4))


def _box(rng: random.Random) -> Plan:
    slack = rng.choice((0.0, _log_uniform(rng, 1e-12, 1e-8)))
    return ApproxDP(round(rng.uniform(0.01, 1.5), 2), slack) * _count(rng, 1e4)


def _boxes(rng: random.Random) -> Plan:
    found: list[tuple[Mechanism, int]] = [
        (PureDP(rng.randint(1, 60) / 100), rng.randint(1, 40)) for _ in range(rng.randint(2, 8))
    ]
    return Plan(tuple(found))


def _answers(rng: random.Random) -> Plan:
    if rng.random() < 0.5:
        return RandomizedResponse(epsilon=rng.uniform(0.05, 2), answers=rng.randint(2, 9)) * _count(rng, 3000)
    q = rng.uniform(0.05, 0.45)
    return UnaryEncoding(rng.uniform(q + 0.02, 0.95), q) * _count(rng, 200)


def _discrete(rng: random.Random) -> Plan:
    if rng.random() < 0.5:
        return DiscreteGaussian(_log_uniform(rng, 0.7, 30), rng.randint(1, 4)) * _count(rng, 1e4)
    return DiscreteLaplace(_log_uniform(rng, 0.7, 30), rng.randint(1, 6)) * _count(rng, 1e4)


def _truncated(rng: random.Random) -> Plan:
    if rng.random() < 0.5:
        scale = _log_uniform(rng, 1, 20)
        return TruncatedLaplace(scale, scale * rng.uniform(28, 40)) * int(_log_uniform(rng, 200, 5000))
    sigma = _log_uniform(rng, 1, 20)
    return TruncatedGaussian(sigma, sigma * rng.uniform(7.5, 12)) * int(_log_uniform(rng, 10, 1000))


def _mixed(rng: random.Random) -> Plan:
    steps: list[tuple[Mechanism, int]] = [
        (Gaussian(_log_uniform(rng, 0.7, 5)).poisson(_log_uniform(rng, 1e-3, 0.2)), int(_log_uniform(rng, 100, 1e5))),
        (Laplace(_log_uniform(rng, 2, 50)), rng.randint(1, 20)),
        (RandomizedResponse(epsilon=rng.uniform(0.05, 1)), rng.randint(1, 20)),
        (Exponential(rng.uniform(0.05, 0.5)), rng.randint(1, 5)),
        (Gaussian(_log_uniform(rng, 2, 50)), rng.randint(1, 20)),
    ]
    return Plan((steps[0], *rng.sample(steps[1:], rng.randint(1, 3))))


REGIMES: dict[str, Callable[[random.Random], Plan]] = {
    "Gaussian": _gaussian,
    "Poisson-sampled Gaussian": _poisson,
    "few hits": _few_hits,
    "Poisson, replace-one": _poisson_replace,
    "fixed size": _fixed_size,
    "Laplace": _laplace,
    "Poisson-sampled Laplace": _sampled_laplace,
    "one black box": _box,
    "several black boxes": _boxes,
    "randomised response": _answers,
    "discrete noise": _discrete,
    "truncated noise": _truncated,
    "mixed plan": _mixed,
}


def setting(index: int, seed: int) -> tuple[str, Plan, float]:
    """The regime, the plan and the delta of one setting: regimes take turns."""
    regime = list(REGIMES)[index % len(REGIMES)]
    rng = random.Random(seed * 1_000_003 + index)
    plan = REGIMES[regime](rng)
    delta = _log_uniform(rng, 1e-15, 1e-2) if "truncated" not in regime else _log_uniform(rng, 1e-8, 1e-3)
    return regime, plan, delta


def compare(index: int, seed: int) -> Compared:
    """Answer one setting both ways."""
    regime, plan, delta = setting(index, seed)
    floating = exact.one_epsilon(plan, delta)
    try:
        certified = certify(plan, delta=delta).bound
    except Unsupported:
        certified = None
    return Compared(regime, plan, delta, floating, certified)


def selfcheck(settings: int = 65, seed: int = 0, progress: Callable[[int, int], None] | None = None) -> Report:
    """Compare `settings` random settings; the same seed gives the same settings."""
    found = []
    for index in range(settings):
        found.append(compare(index, seed))
        if progress is not None:
            progress(index + 1, settings)
    return Report(tuple(found))
