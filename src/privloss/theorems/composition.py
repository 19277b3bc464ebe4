"""The composition theorems, each a function that takes what the theorem takes and returns what it promises.

Give each mechanism's own parameters (one number, or an array for a heterogeneous composition) and how often it runs:

>>> round(advanced_pure(0.1, count=100, delta=1e-6), 6)       # a hundred 0.1-DP mechanisms
5.756522
>>> round(advanced_pure([0.1, 0.2], count=[100, 10], delta=1e-6), 6)
6.9196
>>> advanced_pure(0.1, count=[1, 10, 100], delta=1e-6).round(4)      # one epsilon, many counts: an answer for each
array([0.5307, 1.7123, 5.7565])
>>> optimal_epsilon(0.1, count=100, delta=1e-6)
Bound(4.774567588107..., 4.774567588108...)

All hold for adaptive composition (outcomes may steer later queries, the parameters are fixed) and for concurrent access
to interactive mechanisms (Vadhan and Zhang 2022, Lyu 2022). Parameters chosen adaptively need a filter: for zCDP and
Renyi DP the plain sum is one (Feldman and Zrnic 2021), for the others see the ledger.
Results are rounded up, so that a printed bound is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from privloss.errors import InvalidInput
from privloss.mechanisms.approx_dp import ApproxDP
from privloss.mechanisms.base import Mechanism, Plan
from privloss.mechanisms.pure_dp import PureDP
from privloss.numerics import check
from privloss.numerics.arrays import counts, numbers, plain, together
from privloss.numerics.bound import Bound, Bounds
from privloss.numerics.floats import Real, padded_down, rounded_up


@dataclass(frozen=True)
class _Steps:
    """Parameters of the steps, and how to add them up: a list of epsilons is one composition; one epsilon with a list
    of counts is one composition per count."""

    epsilons: Real
    deltas: Real
    count: Real

    @classmethod
    def read(cls, epsilons: Any, deltas: Any, count: Any) -> _Steps:
        eps = numbers("epsilons", epsilons, low=0)
        slack = numbers("deltas", deltas, low=0, high=1)
        times = counts("count", count)
        if eps.ndim == 0 and slack.ndim == 1:
            eps = np.full_like(slack, float(eps))
        if eps.ndim == 1:
            for name, array in (("deltas", slack), ("count", times)):
                if array.ndim == 1 and len(array) != len(eps):
                    raise InvalidInput(f"{name} has {len(array)} entries, epsilons {len(eps)}: must be equally many.")
        return cls(eps, slack, times)

    def total(self, each: Real) -> Real:
        """The sum of `each` over all steps; math.fsum, so that only the products are rounded."""
        products = self.count * each
        return np.asarray(_sum(products)) if self.epsilons.ndim == 1 else np.asarray(products)

    @property
    def roundings(self) -> int:
        """More roundings than any of the formulas below makes."""
        return 16


def _sum(values: Real) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def basic(epsilons: Any, deltas: Any = 0.0, *, count: Any = 1) -> tuple[Any, Any]:
    """Thm. basic_composition: epsilons add up, and deltas do. Returns (epsilon, delta)."""
    steps = _Steps.read(epsilons, deltas, count)
    zero = np.zeros_like(steps.epsilons)
    total = steps.total(steps.epsilons), steps.total(zero + steps.deltas)
    # products and their sum are rounded once each; a single step is returned as it is
    epsilon, delta = (t if _single(steps) else rounded_up(t, 2) for t in total)
    return plain(epsilon), plain(np.minimum(delta, 1.0))


def _single(steps: _Steps) -> bool:
    return steps.count.ndim == 0 and float(steps.count) == 1 and steps.epsilons.size == 1


@dataclass(frozen=True)
class Attained:
    """An event of the composed mechanism and the privacy loss that it certainly causes."""

    loss: float
    log_probability: float


def basic_attained(epsilon: float, count: int) -> Attained:
    """Why basic composition cannot be improved for delta = 0: k releases with Laplace(k/epsilon) noise.

    Each is epsilon/k-DP. If all k outputs exceed both true values, which happens with probability 2^-k, every loss
    is epsilon/k, so the total is epsilon: attained, but rarely.
    """
    total, k = check.number("epsilon", epsilon, low=0), check.count("count", count)
    return Attained(total, -k * math.log(2.0))


def advanced_pure(epsilons: Any, *, delta: Any, count: Any = 1) -> Any:
    """Thm. advancedcomposition_pure: 1/2 sum eps^2 + sqrt(2 log(1/delta) sum eps^2), for any delta > 0."""
    steps = _Steps.read(epsilons, 0.0, count)
    target = numbers("delta", delta, low=0, high=1, above=True)
    squares = _squares(steps)
    return plain(rounded_up(0.5 * squares + _spread(squares, target), steps.roundings))


def advanced_approx(epsilons: Any, deltas: Any = 0.0, *, delta: Any, count: Any = 1) -> Any:
    """Thm. advancedcomposition_approx: the smaller of basic and advanced, with delta' = delta - sum delta_j > 0."""
    steps = _Steps.read(epsilons, deltas, count)
    rest = _rest(steps, delta)
    squares = _squares(steps)
    advanced = rounded_up(0.5 * squares + _spread(squares, rest), steps.roundings)
    return plain(np.minimum(rounded_up(steps.total(steps.epsilons), 2), advanced))


def advanced_2010(epsilons: Any, deltas: Any = 0.0, *, delta: Any, count: Any = 1) -> Any:
    """The original form (Dwork, Rothblum, Vadhan 2010): sum eps (e^eps - 1) + sqrt(2 log(1/delta') sum eps^2)."""
    steps = _Steps.read(epsilons, deltas, count)
    rest = _rest(steps, delta)
    with np.errstate(over="ignore"):
        drift = steps.total(steps.epsilons * np.expm1(steps.epsilons))
        return plain(rounded_up(drift + _spread(_squares(steps), rest), steps.roundings))


def _squares(steps: _Steps) -> Real:
    with np.errstate(over="ignore"):
        return steps.total(steps.epsilons**2)


def _spread(squares: Real, delta: Real) -> Real:
    """sqrt(2 log(1/delta) * squares); log(1/delta) is -log(delta), exact near 1 too."""
    many, target = together(count=squares, delta=delta)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.isinf(many), np.inf, np.sqrt(-2 * np.log(target) * many)))


def _rest(steps: _Steps, delta: Any) -> Real:
    """delta' = delta - sum delta_j, rounded down."""
    target = numbers("delta", delta, low=0, high=1, above=True)
    used = rounded_up(steps.total(np.zeros_like(steps.epsilons) + steps.deltas), 2)
    rest = np.where(used > 0, padded_down(target - used, 1e-15), target)
    if np.any(rest <= 0):
        raise InvalidInput(f"delta = {delta!r}: must exceed the sum of the deltas, {float(np.max(used)):g}.")
    return np.asarray(rest)


def boxes(epsilons: Any, deltas: Any = 0.0, *, count: Any = 1) -> Plan:
    """The plan of black boxes of which nothing but (eps_j, delta_j) is known."""
    steps = _Steps.read(epsilons, deltas, count)
    if steps.epsilons.ndim == 0 and steps.count.ndim == 1:
        raise InvalidInput(f"count = {count!r}: one composition at a time here; give one number.")
    shape = np.broadcast_shapes(steps.epsilons.shape, steps.deltas.shape, steps.count.shape, (1,))
    eps, slack, times = (np.broadcast_to(a, shape) for a in (steps.epsilons, steps.deltas, steps.count))
    return Plan.of(*((_box(float(e), float(d)), int(n)) for e, d, n in zip(eps, slack, times, strict=True)))


def _box(eps: float, delta: float) -> Mechanism:
    return PureDP(eps) if delta == 0 else ApproxDP(eps, delta)


@overload
def optimal_epsilon(epsilons: Any, deltas: Any = 0.0, *, delta: float, count: int = 1) -> Bound: ...
@overload
def optimal_epsilon(epsilons: Any, deltas: Any = 0.0, *, delta: Any, count: Any = 1) -> Bound | Bounds: ...
def optimal_epsilon(epsilons: Any, deltas: Any = 0.0, *, delta: Any, count: Any = 1) -> Bound | Bounds:
    """The optimal composition theorem (Kairouz, Oh, Viswanath 2015): the least epsilon at this delta, no less is true
    of every such composition. Heterogeneous compositions too (Murtagh, Vadhan 2016), to the digits of the interval."""
    return _each_count(epsilons, deltas, count, lambda plan: plan.epsilon(delta))


@overload
def optimal_delta(epsilons: Any, deltas: Any = 0.0, *, epsilon: float, count: int = 1) -> Bound: ...
@overload
def optimal_delta(epsilons: Any, deltas: Any = 0.0, *, epsilon: Any, count: Any = 1) -> Bound | Bounds: ...
def optimal_delta(epsilons: Any, deltas: Any = 0.0, *, epsilon: Any, count: Any = 1) -> Bound | Bounds:
    """The same theorem the other way: the least delta at this epsilon."""
    return _each_count(epsilons, deltas, count, lambda plan: plan.delta(epsilon))


def _each_count(epsilons: Any, deltas: Any, count: Any, ask: Any) -> Bound | Bounds:
    steps = _Steps.read(epsilons, deltas, count)
    if steps.epsilons.ndim == 0 and steps.count.ndim == 1:
        found = [ask(boxes(float(steps.epsilons), float(steps.deltas), count=int(n))) for n in steps.count]
        if not all(isinstance(b, Bound) for b in found):
            raise InvalidInput("count and the target are both arrays: give one of them as a number.")
        return Bounds(found)
    answer: Bound | Bounds = ask(boxes(epsilons, deltas, count=count))
    return answer


def zcdp(rhos: Any, *, count: Any = 1) -> Any:
    """Thm. cdp_composition, adaptive by Prop. adaptivecomp: rhos add up, also when they are chosen adaptively as long
    as their sum stays bounded (Feldman, Zrnic 2021)."""
    steps = _Steps.read(rhos, 0.0, count)
    total = steps.total(steps.epsilons)
    return plain(total if _single(steps) else rounded_up(total, 2))


def rdp(curves: Any, *, count: Any = 1) -> Any:
    """Lem. rdp_composition: at each order epsilons add up. `curves` has one row per mechanism, one column per order."""
    if isinstance(curves, (str, bytes)) or not isinstance(curves, Iterable):
        raise InvalidInput(f"curves = {curves!r}: must have one row per mechanism.")
    rows = [numbers(f"curves[{i}]", row, low=0) for i, row in enumerate(curves)]
    if not rows or any(r.shape != rows[0].shape for r in rows):
        raise InvalidInput("curves: need one row per mechanism, all with the same orders.")
    (times, _) = together(count=counts("count", count), curves=np.zeros(len(rows)))
    table = np.array(rows) * times.reshape(-1, *[1] * rows[0].ndim)
    return plain(rounded_up(table.sum(axis=0), len(rows)))
