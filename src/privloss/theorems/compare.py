"""Every bound of the chapter that applies to a plan, side by side, from loosest to exact.

>>> import privloss as pl
>>> for row in compare(pl.PureDP(0.1) * 100, delta=1e-6, noise=False):
...     print(f"{row.epsilon:9.5f}  {row.bound}")
 10.00000  basic composition
  6.30823  advanced composition, form of 2010
  5.75652  advanced composition
  5.75392  zCDP, simple conversion
  5.59867  Renyi DP, simple conversion
  5.21908  zCDP, best t
  5.07404  Renyi DP, best order
  5.07404  Renyi DP, optimal conversion
  4.77457  optimal composition of the steps' (epsilon, delta)
  4.77457  exact

What each bound costs is told in noise: by what factor all noise would have to grow for this bound to promise what is
exactly true of the plan as it is. (The epsilon of a black box falls in proportion to its noise.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from privloss.errors import Unsupported
from privloss.mechanisms.base import Mechanism, Plan
from privloss.numerics import check
from privloss.theorems import composition, conversion, subsampling

ORDERS = tuple(float(a) for a in 1 + np.geomspace(0.05, 1024, 48))
_SHARES = (0.02, 0.2, 0.5, 0.8, 0.99)  # of delta that goes to the steps themselves; every share is valid
_MOST_NOISE = 1e4


@dataclass(frozen=True)
class ComparedBound:
    """One bound: its epsilon at the delta asked for, and what it costs in noise (None: not asked, or hopeless)."""

    bound: str
    theorem: str
    epsilon: float
    noise: float | None = None


def compare(
    plan: Plan,
    delta: float,
    *,
    adjacency: str | None = None,
    noise: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> list[ComparedBound]:
    """All rows, loosest first, the exact answer last; `progress(done, of)` is called after each."""
    target = check.number("delta", delta, low=0, high=1, above=True)
    chosen = plan if adjacency is None else plan.under(adjacency)
    truth = chosen.epsilon(target).upper
    priced = noise and 0 < truth < math.inf and _has_noise(chosen)
    rows = []
    for i, (bound, theorem, route) in enumerate(ROUTES):
        value = _value(route, chosen, target)
        if math.isfinite(value):
            factor = _noise_for(route, chosen, target, truth) if priced else None
            rows.append(ComparedBound(bound, theorem, value, factor))
        if progress is not None:
            progress(i + 1, len(ROUTES))
    rows.sort(key=lambda r: -r.epsilon)
    return [
        *rows,
        ComparedBound("exact", "Thm. privloss_composition, Prop. privloss_adp", truth, 1.0 if priced else None),
    ]


@dataclass(frozen=True)
class _Facts:
    """What the theorems need to know about the steps of a plan."""

    plan: Plan
    delta: float

    @cached_property
    def counts(self) -> list[int]:
        return [n for _, n in self.plan.steps]

    def alone(self, mechanism: Mechanism) -> Plan:
        return Plan.of((mechanism, 1), adjacency=self.plan.adjacency)

    @cached_property
    def pure(self) -> list[float]:
        """The largest loss of each step (inf where it is not pure)."""
        return [self.alone(m).rdp(math.inf).upper for m, _ in self.plan.steps]

    def approx(
        self, share: float, ask: Callable[[Mechanism, float], tuple[float, float]]
    ) -> tuple[list[float], list[float]]:
        """(eps_j, delta_j) of each step with equal delta_j beyond what a box brings along, `share` of delta in all."""
        own = [m.without_delta()[0] for m, _ in self.plan.steps]
        left = share * self.delta - math.fsum(n * d for n, d in zip(self.counts, own, strict=True))
        if left <= 0:
            return [math.inf], [0.0]
        each = left / math.fsum(self.counts) * (1 - 1e-15)
        found = [ask(m, d + each) for (m, _), d in zip(self.plan.steps, own, strict=True)]
        return [e for e, _ in found], [d for _, d in found]

    def exactly(self, mechanism: Mechanism, delta: float) -> tuple[float, float]:
        return self.alone(mechanism).epsilon(delta).upper, delta

    def amplified(self, mechanism: Mechanism, delta: float) -> tuple[float, float]:
        """Through Thm. subsampling_adp instead of the exact pair of the sampled mechanism."""
        sampled = mechanism.amplification()
        if sampled is None or sampled[1] in (0.0, 1.0):
            return self.exactly(mechanism, delta)
        inner, rate = sampled
        first = self.alone(inner).epsilon(min(delta / rate, 1.0)).upper
        if math.isinf(first):
            return math.inf, delta
        return float(subsampling.approx(first, 0.0, rate)[0]), delta

    @cached_property
    def without_slack(self) -> tuple[Plan, float]:
        """Boxes with their delta taken out, and what is left of delta (Lem. decomposition: a union bound)."""
        used = math.fsum(n * m.without_delta()[0] for m, n in self.plan.steps)
        steps = [(m.without_delta()[1], n) for m, n in self.plan.steps]
        return Plan.of(*steps, adjacency=self.plan.adjacency), (self.delta - used) * (1 - 1e-15) if used else self.delta

    @cached_property
    def rho(self) -> float:
        """The sum of the steps' rho, each step alone."""
        each = [self.alone(m).zcdp().upper for m, _ in self.without_slack[0].steps]
        return float(composition.zcdp(each, count=self.counts)) if all(map(math.isfinite, each)) else math.inf

    @cached_property
    def curve(self) -> list[float]:
        return [self.without_slack[0].rdp(a).upper for a in ORDERS]


Route = Callable[[_Facts], float]


def _basic(f: _Facts) -> float:
    if all(map(math.isfinite, f.pure)):
        return float(composition.basic(f.pure, count=f.counts)[0])
    eps, _ = f.approx(1.0, f.exactly)
    return float(composition.basic(eps, count=f.counts)[0]) if all(map(math.isfinite, eps)) else math.inf


def _from_steps(bound: Callable[..., float], ask: str = "exactly") -> Route:
    """A bound that starts from (eps_j, delta_j): pure where the steps are, otherwise at the best of a few splits."""

    def route(f: _Facts) -> float:
        if all(map(math.isfinite, f.pure)) and ask == "exactly":
            return bound(f.pure, 0.0, delta=f.delta, count=f.counts)
        found = [math.inf]
        for share in _SHARES:
            eps, deltas = f.approx(share, getattr(f, ask))
            if all(map(math.isfinite, eps)):
                found.append(bound(eps, deltas, delta=f.delta, count=f.counts))
        return min(found)

    return route


def _optimal(eps: list[float], deltas: list[float] | float, *, delta: float, count: list[int]) -> float:
    return float(composition.optimal_epsilon(eps, deltas, delta=delta, count=count))  # type: ignore[arg-type]


def _amplified(f: _Facts) -> float:
    sampled = [m.amplification() for m, _ in f.plan.steps]
    if not any(s is not None and 0 < s[1] < 1 for s in sampled):
        return math.inf
    return _from_steps(composition.advanced_approx, "amplified")(f)


def _zcdp(form: str) -> Route:
    def route(f: _Facts) -> float:
        left = f.without_slack[1]
        return (
            float(conversion.zcdp_to_epsilon(f.rho, delta=left, form=form))
            if left > 0 and f.rho < math.inf
            else math.inf
        )

    return route


def _renyi(form: str) -> Route:
    def route(f: _Facts) -> float:
        finite = [(a, d) for a, d in zip(ORDERS, f.curve, strict=True) if math.isfinite(d)]
        left = f.without_slack[1]
        if not finite or left <= 0:
            return math.inf
        orders, values = zip(*finite, strict=True)
        return conversion.renyi_to_epsilon(orders, values, delta=left, form=form)

    return route


ROUTES: tuple[tuple[str, str, Route], ...] = (
    ("basic composition", "Thm. basic_composition", _basic),
    ("advanced composition, form of 2010", "Dwork, Rothblum, Vadhan 2010", _from_steps(composition.advanced_2010)),
    ("advanced composition", "Thm. advancedcomposition_approx", _from_steps(composition.advanced_approx)),
    ("amplification by sampling, then advanced composition", "Thm. subsampling_adp, Thm. advancedcomposition_approx",
     _amplified),
    ("optimal composition of the steps' (epsilon, delta)", "Kairouz, Oh, Viswanath 2015; Cor. kov",
     _from_steps(_optimal)),
    ("zCDP, simple conversion", "Thm. cdp_composition, Rem. rho", _zcdp("simple")),
    ("zCDP, best t", "Thm. cdp_composition, Prop. cdp2adp", _zcdp("infimum")),
    ("Renyi DP, simple conversion", "Lem. rdp_composition, Lem. rdp_properties part 8", _renyi("simple")),
    ("Renyi DP, best order", "Lem. rdp_composition, Prop. cdp2adp", _renyi("infimum")),
    ("Renyi DP, optimal conversion", "Lem. rdp_composition, Asoodeh et al. 2020", _renyi("optimal")),
)  # fmt: skip


def _value(route: Route, plan: Plan, delta: float) -> float:
    try:
        return route(_Facts(plan, delta))
    except Unsupported:
        return math.inf


def _noise_for(route: Route, plan: Plan, delta: float, truth: float) -> float | None:
    """The factor of noise at which the bound meets the truth, to about four digits."""

    def excess(log_factor: float) -> float:
        value = _value(route, with_noise(plan, math.exp(log_factor)), delta)
        return math.log(max(value, 1e-300) / truth) - 1e-9

    high, before = 0.0, 0.0
    while excess(high) > 0:
        high, before = 2 * high + 0.25, high
        if high > math.log(_MOST_NOISE):
            return None
    return math.exp(brentq(excess, before, high, xtol=1e-4)) if high > 0 else 1.0


def _has_noise(plan: Plan) -> bool:
    """Whether every step can be made noisier (tables cannot)."""
    try:
        with_noise(plan, 1.0)
    except Unsupported:
        return False
    return True


def with_noise(plan: Plan, factor: float) -> Plan:
    """The plan with all noise multiplied by a factor."""
    return Plan.of(*((m.louder(factor), n) for m, n in plan.steps), adjacency=plan.adjacency)
