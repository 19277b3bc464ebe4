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
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from privloss.answers import concentrated, renyi
from privloss.errors import Unsupported
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.questions import DEFAULT_TOLERANCE
from privloss.numerics import check
from privloss.numerics.contour.transform import log_kappa
from privloss.numerics.floats import Real
from privloss.theorems import composition, conversion, subsampling

ORDERS = tuple(float(a) for a in 1 + np.geomspace(0.05, 1024, 48))
_SHARES = (0.02, 0.2, 0.5, 0.8, 0.99)  # of delta that goes to the steps themselves; every share is valid
_MOST_NOISE = 1e4
_DIGITS = 1e-4  # of a price
_ROUGHLY = 5e-5  # tolerance of answers that decide a price or a split only
_FAR = 50.0  # logs beyond this only say which side it is
_FEW = 3  # orders that are asked to all digits
_NEAR = 3  # factors of noise that other bounds were asked at
_MOST_SECANTS = 60


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
    facts, prices = _Facts(chosen, target), _Prices(chosen, target, truth)
    rows = []
    for i, (bound, theorem, route) in enumerate(ROUTES):
        value = _value(route, facts)
        if math.isfinite(value):
            rows.append(ComparedBound(bound, theorem, value, prices.of(route, facts, value) if priced else None))
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
    tolerance: float = DEFAULT_TOLERANCE
    shares: tuple[float, ...] = _SHARES
    seen: dict[Any, Any] = field(default_factory=dict)  # what was asked, by mechanism and by share
    best: dict[Any, float] = field(default_factory=dict)  # the share that was best, by route

    @cached_property
    def counts(self) -> list[int]:
        return [n for _, n in self.plan.steps]

    def alone(self, mechanism: Mechanism) -> Plan:
        return Plan.of((mechanism, 1), adjacency=self.plan.adjacency)

    @cached_property
    def pure(self) -> list[float] | None:
        """The largest loss of each step; None if some step has none."""
        found = []
        for m, _ in self.plan.steps:
            found.append(self.alone(m).rdp(math.inf).upper)
            if math.isinf(found[-1]):
                return None
        return found

    def approx(
        self, share: float, ask: Callable[[Mechanism, float], tuple[float, float]]
    ) -> tuple[list[float], list[float]]:
        """(eps_j, delta_j) of each step with equal delta_j beyond what a box brings along, `share` of delta in all."""
        own = [m.without_delta()[0] for m, _ in self.plan.steps]
        left = share * self.delta - math.fsum(n * d for n, d in zip(self.counts, own, strict=True))
        if left <= 0:
            return [math.inf], [0.0]
        each = left / math.fsum(self.counts) * (1 - 1e-15)
        self.seen[ask.__name__, share] = None  # the steps have been asked
        found = [self.once(ask, m, d + each) for (m, _), d in zip(self.plan.steps, own, strict=True)]
        return [e for e, _ in found], [d for _, d in found]

    def once(self, ask: Callable[[Mechanism, float], tuple[float, float]], m: Mechanism, delta: float) -> Any:
        """Equal questions are asked once."""
        key = ask.__name__, m, delta
        if key not in self.seen:
            self.seen[key] = ask(m, delta)
        return self.seen[key]

    def exactly(self, mechanism: Mechanism, delta: float) -> tuple[float, float]:
        return self.alone(mechanism).epsilon(delta, tolerance=self.tolerance).upper, delta

    def amplified(self, mechanism: Mechanism, delta: float) -> tuple[float, float]:
        """Through Thm. subsampling_adp instead of the exact pair of the sampled mechanism."""
        sampled = mechanism.amplification()
        if sampled is None or sampled[1] in (0.0, 1.0):
            return self.exactly(mechanism, delta)
        inner, rate = sampled
        first = self.alone(inner).epsilon(min(delta / rate, 1.0), tolerance=self.tolerance).upper
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
        each = [concentrated.zcdp_upper(self.alone(m)) for m, _ in self.without_slack[0].steps]
        return float(composition.zcdp(each, count=self.counts)) if all(map(math.isfinite, each)) else math.inf

    @cached_property
    def curve(self) -> Real:
        """Upper bounds at all orders, to about seven digits."""
        return renyi.rdp_uppers(self.without_slack[0], np.array(ORDERS))

    def divergence(self, order: float) -> float:
        """The divergence at one order, to all digits."""
        if order not in self.seen:
            self.seen[order] = renyi.one_rdp(self.without_slack[0], order).upper
        return float(self.seen[order])


Route = Callable[[_Facts], float]
Bound = Callable[[_Facts, list[float], list[float] | float, float], tuple[float, float]]  # (lower, upper)


def _basic(f: _Facts) -> float:
    if f.pure is not None:
        return float(composition.basic(f.pure, count=f.counts)[0])
    eps, _ = f.approx(1.0, f.exactly)
    return float(composition.basic(eps, count=f.counts)[0]) if all(map(math.isfinite, eps)) else math.inf


def _from_steps(bound: Bound, ask: str = "exactly") -> Route:
    """A bound that starts from (eps_j, delta_j): pure where the steps are, otherwise at the best of a few splits."""

    def route(f: _Facts) -> float:
        if f.pure is not None and ask == "exactly":
            return bound(f, f.pure, 0.0, f.tolerance)[1]
        best: list[tuple[float, float, Any]] = []
        for share in f.shares:
            eps, deltas = f.approx(share, getattr(f, ask))
            if all(map(math.isfinite, eps)):
                best.append((*bound(f, eps, deltas, _ROUGHLY), (share, eps, deltas)))
        if not best:
            return math.inf
        f.best[bound, ask] = min(best, key=lambda b: b[1])[2][0]
        least = min(high for _, high, _ in best)
        if f.tolerance >= _ROUGHLY:
            return least
        # what may be the least is asked again, to all digits
        return min(bound(f, eps, deltas, f.tolerance)[1] for low, _, (_, eps, deltas) in best if low <= least)

    route.__dict__["key"] = (bound, ask)
    return route


def _optimal(f: _Facts, eps: list[float], deltas: list[float] | float, tolerance: float) -> tuple[float, float]:
    found = composition.boxes(eps, deltas, count=f.counts).epsilon(f.delta, tolerance=max(tolerance, f.tolerance))
    return found.lower, float(found.upper)


def _formula(theorem: Callable[..., float]) -> Bound:
    def bound(f: _Facts, eps: list[float], deltas: list[float] | float, tolerance: float) -> tuple[float, float]:
        value = float(theorem(eps, deltas, delta=f.delta, count=f.counts))
        return value, value

    return bound


_ADVANCED, _OLD = _formula(composition.advanced_approx), _formula(composition.advanced_2010)


def _amplified(f: _Facts) -> float:
    sampled = [m.amplification() for m, _ in f.plan.steps]
    if not any(s is not None and 0 < s[1] < 1 for s in sampled):
        return math.inf
    return _THROUGH_AMPLIFICATION(f)


_THROUGH_AMPLIFICATION = _from_steps(_ADVANCED, "amplified")
_amplified.__dict__["key"] = _THROUGH_AMPLIFICATION.__dict__["key"]


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
        left = f.without_slack[1]
        if not np.any(np.isfinite(f.curve)) or left <= 0:
            return math.inf
        c = np.array(ORDERS) - 1
        extra = 0.0 if form == "simple" else log_kappa(c) / c
        few = np.argsort(f.curve - math.log(left) / c + extra)[:_FEW]  # where the least is; every order is valid
        ask = f.divergence if f.tolerance < _ROUGHLY else lambda order: float(f.curve[ORDERS.index(order)])
        known = [(ORDERS[i], d) for i in few if math.isfinite(d := ask(ORDERS[i]))]
        if not known:
            return math.inf
        orders, values = zip(*known, strict=True)
        return conversion.renyi_to_epsilon(orders, values, delta=left, form=form)

    return route


ROUTES: tuple[tuple[str, str, Route], ...] = (
    ("basic composition", "Thm. basic_composition", _basic),
    ("advanced composition, form of 2010", "Dwork, Rothblum, Vadhan 2010", _from_steps(_OLD)),
    ("advanced composition", "Thm. advancedcomposition_approx", _from_steps(_ADVANCED)),
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


def _value(route: Route, facts: _Facts) -> float:
    try:
        return route(facts)
    except Unsupported:
        return math.inf


@dataclass
class _Prices:
    """For each bound the factor of noise at which it meets the truth, to about four digits.

    Facts are kept by factor, and each search starts from factors that others have asked at, so that bounds that ask the
    same of the steps ask once. Only one split of delta is followed, the best one; at the end its neighbours are looked
    at.
    """

    plan: Plan
    delta: float
    truth: float
    facts: dict[tuple[float, tuple[float, ...]], _Facts] = field(default_factory=dict)

    def at(self, log_factor: float, shares: tuple[float, ...]) -> _Facts:
        key = log_factor, shares
        if key not in self.facts:
            same = [f.seen for (x, _), f in self.facts.items() if x == log_factor]
            louder = with_noise(self.plan, math.exp(log_factor))
            self.facts[key] = _Facts(louder, self.delta, _ROUGHLY, shares, same[0] if same else {})
        return self.facts[key]

    def _tried(self, ask: str, share: float | None, near: float) -> list[float]:
        """Where the steps have answered already, next to a guess."""
        every = self.facts.items()
        known = {x for (x, shares), f in every if (shares == _SHARES if share is None else (ask, share) in f.seen)}
        return sorted(known, key=lambda x: abs(x - near))[:_NEAR]

    def of(self, route: Route, here: _Facts, value: float) -> float | None:
        key, limit = getattr(route, "key", (None, "")), math.log(_MOST_NOISE)
        share, start = here.best.get(key), math.log(value / self.truth)
        found = start
        for _ in range(len(_SHARES)):
            shares = _SHARES if share is None else (share,)

            def excess(x: float, shares: tuple[float, ...] = shares) -> float:
                value = _value(route, self.at(x, shares))
                return min(math.log(max(value, 1e-300) / self.truth) - 1e-9, _FAR)

            crossed = _crossing(excess, start - 1e-9, self._tried(key[1], share, found), limit)
            if crossed is None:
                return None
            found = limit = crossed
            if share is None:
                break
            place = _SHARES.index(share)
            around = self.at(found, _SHARES[max(place - 1, 0) : place + 2])
            if _value(route, around) > self.truth * (1 - 2 * _DIGITS):
                break
            share = around.best.get(key)
        return math.exp(found)


def _crossing(excess: Callable[[float], float], first: float, tried: list[float], limit: float) -> float | None:
    """Where a falling function of the log of noise, `first` at 0, is 0, to `_DIGITS`; None if beyond the limit.

    The points `tried` cost little and are asked first. Noise moves epsilon about in proportion, so that secants do
    well; a bracket sees to it that they end.
    """
    if first <= 0:
        return 0.0
    known = {0.0: first, **{x: excess(x) for x in tried if 0 < x < limit}}
    for _ in range(_MOST_SECANTS):
        low = max(x for x, y in known.items() if y > 0)
        high = min((x for x, y in known.items() if y <= 0 and x > low), default=math.inf)
        best = min(known, key=lambda x: abs(known[x]))
        if best > 0 and abs(known[best]) < 0.7 * _DIGITS:
            return best
        if high - low < _DIGITS:
            return high
        if low >= limit:
            return None
        x = min(_secant(known, low, high), limit)
        known[x] = excess(x)
    return min(high, limit)


def _secant(known: dict[float, float], low: float, high: float) -> float:
    """The next point between `low` and `high`: on the line through the two values next to 0, or in the middle."""
    finite = sorted((x for x in known if abs(known[x]) < _FAR), key=lambda x: abs(known[x]))[:2]
    slope = -1.0
    if len(finite) == 2 and finite[0] != finite[1]:
        slope = min((known[finite[1]] - known[finite[0]]) / (finite[1] - finite[0]), -0.1)
    x = finite[0] - known[finite[0]] / slope if finite else math.inf
    if low < x < high:
        return x
    if math.isinf(high):
        return low + 1.5 * min(known[low], 2.0) + 2e-3
    return 0.5 * (low + high)


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
