"""From a plan and an adjacency to the worst neighbours: the one registry, with the theorem behind every entry.

Dominating pairs compose: if (P_i, Q_i) dominates step i for all inputs, the product dominates the adaptive composition
(Zhu, Dong, Wang 2022, Thm. 10). Each entry below names why its pair dominates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privloss.errors import InvalidInput, Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.collected import REVEALED_POINT, Collected
from privloss.losses.composed import ComposedLoss
from privloss.losses.curve import RenyiCurve
from privloss.losses.discrete_gaussian import LEAST_SIGMA
from privloss.losses.distances import Distances
from privloss.losses.entries import BELOW, ENTRIES
from privloss.losses.gaussian import GaussianLoss
from privloss.losses.poisson_sample import collect_poisson
from privloss.losses.samplers import collect_sampler, poisson_replace_one
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.black_box import GDP, RDP, ZCDP, ApproxDP, PureDP
from privloss.mechanisms.custom import Custom, Tabulated
from privloss.mechanisms.discrete_gaussian import DiscreteGaussian
from privloss.mechanisms.exponential import Exponential, NoisyMax
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.groups import PoissonGroup
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.plan import Plan
from privloss.mechanisms.randomized_response import RandomizedResponse
from privloss.mechanisms.sampling import (
    Allocated,
    FixedSize,
    PoissonSampled,
    Sampled,
    Shuffled,
    TruncatedPoisson,
    WithReplacement,
)

_MOST_NOISE = 1e50
_SHARES = (0.0, 0.05, 0.15, 0.3, 0.6, 0.9)  # places in a bounded range that a lower end tries


@dataclass(frozen=True)
class WorstNeighbours:
    """What a plan can do to one person, under one adjacency."""

    adjacency: str
    loss: ComposedLoss  # direction "P against Q"; everything with an explicit pair
    curve: RenyiCurve  # what is known only through Renyi divergences
    stand_in: ComposedLoss  # `loss` plus a mechanism that satisfies the curve: for lower ends
    attained: tuple[ComposedLoss, ...]  # where `loss` itself may not be attained: members that are, for lower ends
    unsampled: ComposedLoss | None  # a second bound from above: the same without the samplers of which bounds are known
    theorems: tuple[str, ...]
    assumptions: tuple[str, ...]


def worst_neighbours(plan: Plan, adjacency: str) -> WorstNeighbours:
    """The losses of every step of the plan, composed."""
    found = Collected()
    _refuse_swapped_roles(plan, adjacency)
    for mechanism, times in plan.steps:
        _collect(found, mechanism, times, adjacency)
    parts = found.parts()
    mu_squared = math.fsum(found.mu_squared)

    def with_gaussian(losses: list[PrivacyLoss], squared: float) -> ComposedLoss:
        return ComposedLoss((*losses, GaussianLoss(squared)) if squared > 0 else tuple(losses))

    curve = RenyiCurve(math.fsum(found.rho), tuple(found.tables), tuple(found.sampled))
    attained = mu_squared + curve.attained_mu_squared
    bounded = bool(found.rows_below or found.above)
    shares = _SHARES if found.ranges and len(plan) > 1 else _SHARES[:1] if bounded else ()
    members = tuple(with_gaussian(found.parts(share, stand_in=True), attained) for share in shares)
    return WorstNeighbours(
        adjacency=adjacency,
        loss=with_gaussian(parts, mu_squared),
        curve=curve,
        stand_in=members[0] if members else with_gaussian(found.parts(stand_in=True), attained),
        attained=members,
        unsampled=_unsampled(plan, adjacency) if found.above else None,
        theorems=tuple(found.theorems),
        assumptions=tuple(found.assumptions),
    )


def _refuse_swapped_roles(plan: Plan, adjacency: str) -> None:
    """When a record is replaced, the worst order of the two neighbours may change from step to step. Composing all
    steps in one order, then all in the other, covers that only if all pairs but one use are their own mirror images."""
    if adjacency != "replace-one":
        return
    uneven = [(m, n) for m, n in plan.steps if isinstance(m, (Custom, Tabulated)) and not _mirrored(m)]
    if sum(n for _, n in uneven) > 1:
        raise Unsupported(
            f"{uneven[0][0]!r} under replace-one: neighbours may swap roles from step to step, so several uses need a "
            "pair that is its own mirror image; give a privacy profile or a trade-off curve, or ask under add-remove."
        )


def _mirrored(mechanism: Custom | Tabulated) -> bool:
    p, q = (mechanism.p, mechanism.q) if isinstance(mechanism, Custom) else (mechanism.p_above, mechanism.q_above)
    return sorted(zip(p, q, strict=True)) == sorted(zip(q, p, strict=True))


def _unsampled(plan: Plan, adjacency: str) -> ComposedLoss | None:
    """The plan with every sample known (divergences are quasi-convex, so that only helps the adversary), if that has a
    pair for every step. Given the samples of two neighbours, a record that enters a batch of fixed size, or one that is
    cut off, takes the place of another: the distance of a replacement."""
    steps: list[tuple[Mechanism, int]] = []
    for m, n in plan.steps:
        if not isinstance(m, Sampled) or isinstance(m, PoissonSampled):
            steps.append((m, n))
        elif isinstance(m, (Shuffled, Allocated)):
            steps.append((m.mechanism, n * m.k if isinstance(m, Allocated) else n))
        elif isinstance(m, (FixedSize, TruncatedPoisson)) and isinstance(
            m.mechanism, Gaussian
        ):  # others: no second bound
            distance = Distances.of(m.mechanism, adjacency).replace
            steps.append((Gaussian(sigma=1 / distance if distance < math.inf else 0.0, sensitivity=1.0), n))
        else:
            return None
    if tuple(steps) == plan.steps:
        return None
    worst = worst_neighbours(Plan(tuple(steps)), adjacency)
    return worst.loss if worst.curve.empty else None


def _collect(found: Collected, mechanism: Mechanism, times: int, adjacency: str) -> None:
    entry = _REGISTRY.get(type(mechanism))
    if entry is None:
        raise Unsupported(f"{mechanism!r}: no proven worst pair is registered for {type(mechanism).__name__}.")
    entry(found, mechanism, times, adjacency)


def relative_noise(mechanism: Gaussian, adjacency: str) -> tuple[float, str]:
    """noise / sensitivity under the adjacency, and how the sensitivity was found."""
    if mechanism.noise_multiplier is not None:
        if adjacency == "replace-one":
            text = "sensitivity 2 C (replace-one swaps two contributions), noise_multiplier = noise / C given"
            return 0.5 * mechanism.noise_multiplier, text
        return mechanism.noise_multiplier, f"sensitivity C ({adjacency}), noise_multiplier = noise / C given"
    sensitivity = 1.0 if mechanism.sensitivity is None else mechanism.sensitivity
    sigma = mechanism.sigma or 0.0
    return sigma / sensitivity, f"sensitivity {sensitivity:g} under {adjacency}, sigma = {sigma:g} given"


def _reciprocal_square(sigma: float) -> float:
    """1/sigma^2, inf where that overflows."""
    return 1 / (sigma * sigma) if sigma * sigma > 0 else math.inf


def _gaussian(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    sigma, text = relative_noise(mechanism, adjacency)
    found.say(
        "Gaussian pair N(0) against N(sensitivity) (Cor. gauss_adp_exact_multi)",
        f"gaussian: {text}; no sampling",
    )
    mu_squared = times * _reciprocal_square(sigma)
    if math.isinf(mu_squared):
        found.points.append(REVEALED_POINT)
    else:
        found.mu_squared.append(mu_squared)


def _poisson(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    rate, inner = mechanism.rate, mechanism.mechanism
    if adjacency == "replace-one" and 0 < rate < 1:
        if not isinstance(inner, Gaussian):
            raise Unsupported(
                f"{mechanism!r} under replace-one: needs the guarantee for added records as well as for replaced ones; "
                "ask under add-remove or zero-out."
            )
        poisson_replace_one(found, inner, rate, times)
        return
    if isinstance(inner, GDP) and inner.mu > 0:
        inner = Gaussian(noise_multiplier=1 / inner.mu)
    if not isinstance(inner, Gaussian):
        collect_poisson(found, inner, rate, times, adjacency, _collect)
        return
    sigma, text = relative_noise(inner, adjacency)
    found.say(
        "Poisson-sampled Gaussian: (1-q) N(0) + q N(1) against N(0), both directions (Zhu, Dong, Wang 2022, Thm. 11)",
        f"gaussian: {text}; sampler: Poisson, every record independently with probability {rate!r} at every step",
    )
    if rate == 0:
        return
    if rate == 1:
        _gaussian(found, inner, times, adjacency)
    elif math.isinf(_reciprocal_square(sigma)):
        found.points.append((math.log1p(-rate), math.log1p(-rate), rate, times))
    else:
        found.mixtures.append((rate, sigma, times))


def _sampler(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    collect_sampler(found, mechanism, times, adjacency, _collect)


def _table(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    entry = ENTRIES[type(mechanism)]
    found.say(entry.theorem, entry.assumption.format(m=mechanism, a=adjacency))
    if isinstance(mechanism, DiscreteGaussian) and mechanism.sigma > _MOST_NOISE * mechanism.sensitivity:
        raise Unsupported(f"{mechanism!r}: sigma / sensitivity is supported up to {_MOST_NOISE:g}.")
    if isinstance(mechanism, DiscreteGaussian) and mechanism.sigma >= LEAST_SIGMA:
        found.discrete_gaussians.append((mechanism.sigma, mechanism.sensitivity, times))
        return
    below = BELOW.get(type(mechanism))
    if below is not None:
        found.rows_below.append((entry.row(mechanism), below(mechanism), times))
    else:
        found.add_row(entry.row(mechanism), times)


def _exponential(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    if isinstance(mechanism, NoisyMax) and mechanism.noise != "gumbel":
        _approximate(found, PureDP(mechanism.eps), times, adjacency)
        return
    found.say(
        "Bounded range: dominated by the density e^(z/2) on [-eps, eps]; below: two-point mechanisms "
        "(Dong, Durfee, Rogers 2020)",
        f"{mechanism.kind}: scores have the stated sensitivity under {adjacency}",
    )
    if mechanism.eps > 0:
        found.ranges.append((mechanism.eps, times))


def _laplace(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    found.say(
        "Laplace pair Lap(0) against Lap(sensitivity) (Zhu, Dong, Wang 2022, Prop. 14)",
        f"laplace: sensitivity {mechanism.sensitivity:g} under {adjacency}, scale {mechanism.scale:g}; no sampling",
    )
    ratio = mechanism.sensitivity / mechanism.scale if mechanism.scale > 0 else math.inf
    if math.isinf(ratio):
        found.points.append(REVEALED_POINT)
    else:
        found.laplace.append((ratio, times))


def _randomized_response(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    found.say(
        "Randomised response: the two answers that differ (explicit pair)",
        f"randomized-response: neighbours give different answers under {adjacency}; an absent person's report is drawn "
        "as for some fixed answer",
    )
    eps = mechanism.local_epsilon
    if math.isinf(eps):
        found.points.append(REVEALED_POINT)
    elif eps > 0:
        found.atoms.append((eps, mechanism.answers - 2, 0.0, times))


def _approximate(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    delta = mechanism.slack if isinstance(mechanism, ApproxDP) else 0.0
    found.say(
        "(eps, delta)-DP is dominated by randomised response with delta (Kairouz, Oh, Viswanath 2015)",
        f"{mechanism.kind}: the guarantee of the box holds under {adjacency}",
    )
    if delta == 1:
        found.points.append(REVEALED_POINT)
    elif mechanism.eps > 0:
        found.atoms.append((mechanism.eps, 0.0, delta, times))
    elif delta > 0:
        found.points.append((math.log1p(-delta), 0.0, delta, times))


def _gdp(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    found.say(
        "mu-GDP is dominated by N(0,1) against N(mu,1) (Dong, Roth, Su 2022)",
        f"gdp: the guarantee of the box holds under {adjacency}",
    )
    if mechanism.mu > 0:
        found.mu_squared.append(times * mechanism.mu**2)


def _zcdp(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    found.say(
        "zCDP adds (Thm. cdp_composition), then Renyi moments bound delta (Prop. cdp2adp)",
        f"zcdp: the guarantee of the box holds under {adjacency}; lower end: the Gaussian with the same rho",
    )
    found.rho.append(times * mechanism.rho)
    if mechanism.slack == 1:
        found.points.append(REVEALED_POINT)
    elif mechanism.slack > 0:
        found.points.append((math.log1p(-mechanism.slack), 0.0, mechanism.slack, times))


def _rdp(found: Collected, mechanism: Any, times: int, adjacency: str) -> None:
    found.say(
        "Renyi curves add (Lem. rdp_composition), then moments bound delta (Prop. cdp2adp)",
        f"rdp: the curve of the box holds under {adjacency}; lower end: the largest Gaussian below the curve",
    )
    found.tables.append((mechanism.orders, mechanism.epsilons, times))


_REGISTRY: dict[type[Mechanism], Callable[[Collected, Any, int, str], None]] = {
    Gaussian: _gaussian,
    PoissonSampled: _poisson,
    **dict.fromkeys((FixedSize, WithReplacement, TruncatedPoisson, Shuffled, Allocated, PoissonGroup), _sampler),
    Laplace: _laplace,
    RandomizedResponse: _randomized_response,
    PureDP: _approximate,
    ApproxDP: _approximate,
    GDP: _gdp,
    ZCDP: _zcdp,
    RDP: _rdp,
    Exponential: _exponential,
    NoisyMax: _exponential,
    **dict.fromkeys(ENTRIES, _table),
}


def register(kind: type[Mechanism], entry: Callable[[Collected, Any, int, str], None]) -> None:
    """Teach the registry a mechanism of one's own; see docs/extending.md."""
    if not (isinstance(kind, type) and issubclass(kind, Mechanism)) or not callable(entry):
        raise InvalidInput(f"kind = {kind!r}, entry = {entry!r}: need a subclass of Mechanism and a function.")
    if kind in _REGISTRY:
        raise InvalidInput(f"kind = {kind.__name__}: is registered already.")
    _REGISTRY[kind] = entry
