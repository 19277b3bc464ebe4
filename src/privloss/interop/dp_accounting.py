"""dp-accounting's events as plans, plans as its events, and an accountant that goes where its own go.

>>> import dp_accounting
>>> step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1))
>>> event = dp_accounting.SelfComposedDpEvent(step, 10_000)
>>> from_dp_event(event)
Plan(10000 * Gaussian(noise_multiplier=1.1).poisson(0.01))
>>> to_dp_event(from_dp_event(event)) == event
True
>>> PrivlossAccountant().compose(event).estimate(1e-6)
Bound(5.80693502656..., 5.80693502656...)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE, ZERO_OUT
from privloss.errors import MissingExtra, Unsupported
from privloss.interop import events
from privloss.mechanisms.base import Mechanism, Plan, Sampled
from privloss.numerics import check
from privloss.numerics.bound import Bound

try:
    from dp_accounting import dp_event as dpa
    from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant
except ImportError:
    raise MissingExtra("its events need dp-accounting: pip install 'privloss[dp-accounting]'.") from None

RELATIONS = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: REPLACE_ONE,
    NeighboringRelation.REPLACE_SPECIAL: ZERO_OUT,
}
_FURTHEST = 1e6  # delta falls: what holds at this epsilon holds at an infinite one


def from_dp_event(event: Any, adjacency: str = ADD_REMOVE) -> Plan:
    """The plan of an event. Events do not say what neighbouring means; noise multipliers are noise / C under every
    adjacency, as their docstrings say."""
    return events.read(event, adjacency)


# -- the other way -----------------------------------------------------------------------------------------------------


def to_dp_event(plan: Plan | Mechanism) -> Any:
    """The event of a plan, so that `from_dp_event(event, plan.adjacency) == plan`; refused where no event says it."""
    whole = plan.as_plan()
    return _composition(whole.steps, whole.adjacency)


def _repeated(event: Any, count: int) -> Any:
    return event if count == 1 else dpa.SelfComposedDpEvent(event, count)


def _event(mechanism: Mechanism, adjacency: str) -> Any:
    """Made, and read again: an event that would be read as something else is not handed out."""
    makers = _SAMPLERS if isinstance(mechanism, Sampled) else _RELEASES
    make = makers.get(mechanism.kind)
    try:
        made = None if make is None else make(mechanism, adjacency)
    except AttributeError as problem:  # a class that came with a later version
        raise Unsupported(f"{mechanism!r}: this version of dp-accounting has no {problem.name}.") from None
    if made is None or events.read(made, adjacency) != Plan(((mechanism, 1),), adjacency):
        raise Unsupported(
            f"{mechanism!r} under {adjacency}: no event class of dp-accounting says this; noise is said there by its "
            "noise_multiplier."
        )
    return made


def _gaussian(m: Any, adjacency: str) -> Any:
    if m.noise_multiplier is None:
        return None if adjacency == REPLACE_ONE else dpa.MixtureOfGaussiansDpEvent(m.sigma, [m.sensitivity], [1.0])
    return dpa.GaussianDpEvent(m.noise_multiplier) if m.noise_multiplier > 0 else dpa.NonPrivateDpEvent()


def _laplace(m: Any, adjacency: str) -> Any:
    return None if m.noise_multiplier is None else dpa.LaplaceDpEvent(m.noise_multiplier)


def _discrete_laplace(m: Any, adjacency: str) -> Any:
    scale = m.noise_multiplier or m.scale
    size = 1 if m.noise_multiplier else m.sensitivity // (2 if adjacency == REPLACE_ONE else 1)
    return dpa.DiscreteLaplaceDpEvent(1 / scale, size) if scale else None


def _randomized_response(m: Any, adjacency: str) -> Any:
    known = m.p is not None and adjacency != ADD_REMOVE
    return dpa.RandomizedResponseDpEvent(m.p, m.answers) if known else None


def _nothing(m: Any, adjacency: str) -> Any:
    return dpa.NoOpDpEvent()


def _discrete_gaussian(m: Any, adjacency: str) -> Any:
    return None if m.noise_multiplier is not None else dpa.DiscreteGaussianDpEvent(m.sigma, m.sensitivity, 1)


def _approx(m: Any, adjacency: str) -> Any:
    return dpa.EpsilonDeltaDpEvent(m.eps, m.slack)


def _exponential(m: Any, adjacency: str) -> Any:
    return dpa.ExponentialMechanismDpEvent(m.eps)


def _permute_and_flip(m: Any, adjacency: str) -> Any:
    return dpa.PermuteAndFlipDpEvent(m.eps)


def _zcdp(m: Any, adjacency: str) -> Any:
    return dpa.ZCDpEvent(m.rho)


def _composition(steps: Any, adjacency: str) -> Any:
    parts = [_repeated(_event(m, adjacency), n) for m, n in steps]
    return parts[0] if len(parts) == 1 else dpa.ComposedDpEvent(parts)


def _select_best(m: Any, adjacency: str) -> Any:
    if m.trials is not None:
        return None
    return dpa.RepeatAndSelectDpEvent(_composition(m.base, adjacency), m.mean, m.law.shape)


def _mixture(m: Any, adjacency: str) -> Any:
    known = abs(sum(m.probabilities) - 1) < 1e-12
    return dpa.MixtureOfGaussiansDpEvent(m.sigma, list(m.sensitivities), list(m.probabilities)) if known else None


def _tree(m: Any, adjacency: str) -> Any:
    known = m.trees == 1 and m.noise == "gaussian" and m.noise_multiplier is not None and adjacency == ZERO_OUT
    return dpa.SingleEpochTreeAggregationDpEvent(m.noise_multiplier, m.steps) if known else None


_RELEASES: dict[str, Callable[[Any, str], Any]] = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "discrete-laplace": _discrete_laplace,
    "randomized-response": _randomized_response,
    "pure-dp": _nothing,
    "select-best": _select_best,
    "zcdp": _zcdp,
    "discrete-gaussian": _discrete_gaussian,
    "approx-dp": _approx,
    "exponential": _exponential,
    "permute-and-flip": _permute_and_flip,
    "gaussian-mixture": _mixture,
    "tree-aggregation": _tree,
}


def _inside(m: Any, adjacency: str) -> Any:
    """What runs on a sample, which may be several releases."""
    return _composition(m.mechanism.parts(), adjacency)


def _on_poisson(m: Any, adjacency: str) -> Any:
    return dpa.PoissonSampledDpEvent(m.rate, _inside(m, adjacency))


def _on_batch(m: Any, adjacency: str) -> Any:
    return dpa.SampledWithoutReplacementDpEvent(m.n, m.m, _inside(m, adjacency))


def _on_draws(m: Any, adjacency: str) -> Any:
    return dpa.SampledWithReplacementDpEvent(m.n, m.m, _event(m.mechanism, adjacency))


def _on_truncated(m: Any, adjacency: str) -> Any:
    noise = getattr(m.mechanism, "noise_multiplier", None)
    return None if noise is None else dpa.TruncatedSubsampledGaussianDpEvent(m.n, m.rate, m.most, noise)


_SAMPLERS: dict[str, Callable[[Any, str], Any]] = {
    "poisson": _on_poisson,
    "fixed-size": _on_batch,
    "with-replacement": _on_draws,
    "truncated-poisson": _on_truncated,
}


# -- the accountant ----------------------------------------------------------------------------------------------------


class PrivlossAccountant(PrivacyAccountant):
    """A `PrivacyAccountant` whose answers are proven: `get_epsilon` and `get_delta` are upper ends, `estimate` is the
    whole interval. Usable in `dp_accounting.calibrate_dp_mechanism`."""

    def __init__(self, neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE) -> None:
        super().__init__(neighboring_relation)
        self._adjacency = RELATIONS[neighboring_relation]
        self._above: dict[Mechanism, int] = {}
        self._below: dict[Mechanism, int] = {}

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            ends = [events.read(event, self._adjacency, below=below) for below in (False, True)]
        except events.RefusedEvent as problem:
            return PrivacyAccountant.CompositionErrorDetails(problem.event, str(problem))
        if do_compose and count != 0:
            times = check.count("count", count)
            for kept, plan in zip((self._above, self._below), ends, strict=True):
                for mechanism, n in plan.steps:
                    if mechanism != events.NOTHING:
                        kept[mechanism] = kept.get(mechanism, 0) + n * times
        return None

    @property
    def plan(self) -> Plan:
        """What was composed, rounded to less privacy."""
        return self._plan(self._above)

    def _plan(self, kept: dict[Mechanism, int]) -> Plan:
        return Plan(tuple(kept.items()) or ((events.NOTHING, 1),), self._adjacency)

    def estimate(self, target_delta: float) -> Bound:
        """The least epsilon at a delta, as an interval."""
        above, below = self.plan, self._plan(self._below)
        found = above.epsilon(target_delta)
        return found if above == below else _between(below.epsilon(target_delta), found)

    def get_epsilon(self, target_delta: float) -> float:
        """An upper bound; infinite once something was disclosed, also at delta = 1, as their interface asks."""
        upper = self.plan.epsilon(target_delta).upper
        return math.inf if events.DISCLOSURE in self._above else upper

    def get_delta(self, target_epsilon: float) -> float:
        """An upper bound; 1 once something was disclosed."""
        return self.plan.delta(min(target_epsilon, _FURTHEST)).upper


def _between(below: Bound, above: Bound) -> Bound:
    """The lower end of the quieter plan, the upper end of the louder one."""
    return Bound(min(below.lower, above.upper), above.upper, above.method, above.notes)
