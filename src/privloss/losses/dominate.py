"""From a plan and an adjacency to the worst neighbours: the one registry, with the theorem behind every entry.

Dominating pairs compose: if (P_i, Q_i) dominates step i for all inputs, the product dominates the adaptive composition
(Zhu, Dong, Wang 2022, Thm. 10). Each entry below names why its pair dominates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privloss.errors import Unsupported
from privloss.losses.atoms import AtomsLoss
from privloss.losses.base import PrivacyLoss
from privloss.losses.composed import ComposedLoss
from privloss.losses.curve import RenyiCurve
from privloss.losses.gaussian import GaussianLoss
from privloss.losses.gaussian_mixture import GaussianMixtureLoss
from privloss.losses.laplace import LaplaceLoss
from privloss.losses.point import PointLoss
from privloss.mechanisms.base import Mechanism, refuse_sampling
from privloss.mechanisms.black_box import GDP, RDP, ZCDP, ApproxDP, PureDP
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.plan import Plan
from privloss.mechanisms.randomized_response import RandomizedResponse
from privloss.mechanisms.sampling import PoissonSampled
from privloss.numerics.small import Real

_REVEALED = (-math.inf, 0.0, 1.0, 1)  # a point loss without finite mass


@dataclass(frozen=True)
class WorstNeighbours:
    """What a plan can do to one person, under one adjacency."""

    adjacency: str
    loss: ComposedLoss  # direction "P against Q"; everything with an explicit pair
    curve: RenyiCurve  # what is known only through Renyi divergences
    stand_in: ComposedLoss  # `loss` plus a mechanism that satisfies the curve: for lower ends
    theorems: tuple[str, ...]
    assumptions: tuple[str, ...]


@dataclass
class _Collected:
    """Parameters gathered over the steps of a plan, kind by kind."""

    mu_squared: list[float] = field(default_factory=list)
    mixtures: list[tuple[float, float, int]] = field(default_factory=list)
    laplace: list[tuple[float, int]] = field(default_factory=list)
    atoms: list[tuple[float, float, float, int]] = field(default_factory=list)
    points: list[tuple[float, float, float, int]] = field(default_factory=list)  # log mass, value, delta, count
    rho: list[float] = field(default_factory=list)
    tables: list[tuple[tuple[float, ...], tuple[float, ...], int]] = field(default_factory=list)
    theorems: dict[str, None] = field(default_factory=dict)
    assumptions: dict[str, None] = field(default_factory=dict)

    def parts(self) -> list[PrivacyLoss]:
        parts: list[PrivacyLoss] = []
        if self.points:
            log_mass, value = (math.fsum(n * p[i] for *p, _, n in self.points) for i in (0, 1))
            single = self.points[0][2] if len(self.points) == 1 and self.points[0][3] == 1 else None
            parts.append(PointLoss(log_mass, value, single))
        if self.mixtures:
            rate, sigma, count = _columns(self.mixtures)
            parts.append(GaussianMixtureLoss(rate, sigma, count))
        if self.laplace:
            parts.append(LaplaceLoss(*_columns(self.laplace)))
        if self.atoms:
            parts.append(AtomsLoss(*_columns(self.atoms)))
        return parts


def _columns(rows: Sequence[tuple[float, ...]]) -> list[Real]:
    return [np.array(column, dtype=float) for column in zip(*rows, strict=True)]


def worst_neighbours(plan: Plan, adjacency: str) -> WorstNeighbours:
    """The losses of every step of the plan, composed."""
    found = _Collected()
    for mechanism, times in plan.steps:
        _collect(found, mechanism, times, adjacency)
    parts = found.parts()
    mu_squared = math.fsum(found.mu_squared)
    exact = (*parts, GaussianLoss(mu_squared)) if mu_squared > 0 else tuple(parts)
    curve = RenyiCurve(math.fsum(found.rho), tuple(found.tables))
    attained = mu_squared + curve.attained_mu_squared
    return WorstNeighbours(
        adjacency=adjacency,
        loss=ComposedLoss(exact),
        curve=curve,
        stand_in=ComposedLoss((*parts, GaussianLoss(attained)) if attained > 0 else tuple(parts)),
        theorems=tuple(found.theorems),
        assumptions=tuple(found.assumptions),
    )


def _collect(found: _Collected, mechanism: Mechanism, times: int, adjacency: str) -> None:
    entry = _REGISTRY.get(type(mechanism))
    if entry is None:
        raise Unsupported(f"{mechanism!r}: no proven worst pair is registered for {type(mechanism).__name__}.")
    entry(found, mechanism, times, adjacency)


def _say(found: _Collected, theorem: str, assumption: str) -> None:
    found.theorems[theorem] = None
    found.assumptions[assumption] = None


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


def _gaussian(found: _Collected, mechanism: Any, times: int, adjacency: str) -> None:
    sigma, text = relative_noise(mechanism, adjacency)
    _say(
        found,
        "Gaussian pair N(0) against N(sensitivity) (Cor. gauss_adp_exact_multi)",
        f"gaussian: {text}; no sampling",
    )
    mu_squared = times * _reciprocal_square(sigma)
    if math.isinf(mu_squared):
        found.points.append(_REVEALED)
    else:
        found.mu_squared.append(mu_squared)


def _poisson(found: _Collected, mechanism: Any, times: int, adjacency: str) -> None:
    rate, inner = mechanism.rate, mechanism.mechanism
    if not isinstance(inner, Gaussian):
        raise refuse_sampling(inner)
    if adjacency == "replace-one":
        raise Unsupported(
            "adjacency = 'replace-one': Poisson sampling under replace-one has no proven pair implemented yet; "
            "ask under add-remove or zero-out."
        )
    sigma, text = relative_noise(inner, adjacency)
    _say(
        found,
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


def _laplace(found: _Collected, mechanism: Any, times: int, adjacency: str) -> None:
    _say(
        found,
        "Laplace pair Lap(0) against Lap(sensitivity) (Zhu, Dong, Wang 2022, Prop. 14)",
        f"laplace: sensitivity {mechanism.sensitivity:g} under {adjacency}, scale {mechanism.scale:g}; no sampling",
    )
    ratio = mechanism.sensitivity / mechanism.scale if mechanism.scale > 0 else math.inf
    if math.isinf(ratio):
        found.points.append(_REVEALED)
    else:
        found.laplace.append((ratio, times))


def _randomized_response(found: _Collected, mechanism: Any, times: int, adjacency: str) -> None:
    _say(
        found,
        "Randomised response: the two answers that differ (explicit pair)",
        f"randomized-response: neighbours give different answers under {adjacency}; an absent person's report is drawn "
        "as for some fixed answer",
    )
    eps = mechanism.local_epsilon
    if math.isinf(eps):
        found.points.append(_REVEALED)
    elif eps > 0:
        found.atoms.append((eps, mechanism.answers - 2, 0.0, times))


def _approximate(found: _Collected, mechanism: Any, times: int, adjacency: str) -> None:
    delta = mechanism.slack if isinstance(mechanism, ApproxDP) else 0.0
    _say(
        found,
        "(eps, delta)-DP is dominated by randomised response with delta (Kairouz, Oh, Viswanath 2015)",
        f"{mechanism.kind}: the guarantee of the box holds under {adjacency}",
    )
    if delta == 1:
        found.points.append(_REVEALED)
    elif mechanism.eps > 0:
        found.atoms.append((mechanism.eps, 0.0, delta, times))
    elif delta > 0:
        found.points.append((math.log1p(-delta), 0.0, delta, times))


def _gdp(found: _Collected, mechanism: Any, times: int, adjacency: str) -> None:
    _say(
        found,
        "mu-GDP is dominated by N(0,1) against N(mu,1) (Dong, Roth, Su 2022)",
        f"gdp: the guarantee of the box holds under {adjacency}",
    )
    if mechanism.mu > 0:
        found.mu_squared.append(times * mechanism.mu**2)


def _zcdp(found: _Collected, mechanism: Any, times: int, adjacency: str) -> None:
    _say(
        found,
        "zCDP adds (Thm. cdp_composition), then Renyi moments bound delta (Prop. cdp2adp)",
        f"zcdp: the guarantee of the box holds under {adjacency}; lower end: the Gaussian with the same rho",
    )
    found.rho.append(times * mechanism.rho)


def _rdp(found: _Collected, mechanism: Any, times: int, adjacency: str) -> None:
    _say(
        found,
        "Renyi curves add (Lem. rdp_composition), then moments bound delta (Prop. cdp2adp)",
        f"rdp: the curve of the box holds under {adjacency}; lower end: the largest Gaussian below the curve",
    )
    found.tables.append((mechanism.orders, mechanism.epsilons, times))


_REGISTRY: dict[type[Mechanism], Callable[[_Collected, Any, int, str], None]] = {
    Gaussian: _gaussian,
    PoissonSampled: _poisson,
    Laplace: _laplace,
    RandomizedResponse: _randomized_response,
    PureDP: _approximate,
    ApproxDP: _approximate,
    GDP: _gdp,
    ZCDP: _zcdp,
    RDP: _rdp,
}
