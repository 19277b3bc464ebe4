"""Mechanisms whose worst pair is a table: for each, the theorem, what is assumed, and the row.

A new mechanism with finitely many losses is one file in `mechanisms` and one entry here; see docs/extending.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privloss.errors import Unsupported
from privloss.losses import tables
from privloss.losses.bounded_range import two_point
from privloss.losses.exponentials import Exponentials
from privloss.losses.folding import fold
from privloss.losses.row import Row
from privloss.losses.truncated import TruncatedNormal
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.black_box import ApproxDP, PureDP
from privloss.mechanisms.custom import Custom, PrivacyProfile, Tabulated, TradeOff
from privloss.mechanisms.discrete_gaussian import DiscreteGaussian
from privloss.mechanisms.discrete_laplace import DiscreteLaplace
from privloss.mechanisms.exponential import Exponential, NoisyMax
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.randomized_response import RandomizedResponse
from privloss.mechanisms.truncated import TruncatedGaussian, TruncatedLaplace
from privloss.mechanisms.unary_encoding import UnaryEncoding

_LARGEST_RANGE = 500.0  # losses beyond which a density would need too many nodes


@dataclass(frozen=True)
class Entry:
    """Why the pair is worst, what is assumed (with {m} for the mechanism and {a} for the adjacency), and the pair."""

    theorem: str
    assumption: str
    row: Callable[[Any], Row]


def _discrete_gaussian(m: DiscreteGaussian) -> Row:
    return tables.discrete_gaussian(m.sigma, m.sensitivity) if m.sigma > 0 else tables.REVEALED


def _discrete_laplace(m: DiscreteLaplace) -> Row:
    return tables.discrete_laplace(m.scale, m.sensitivity) if m.scale > 0 else tables.REVEALED


def _laplace_range(name: str, value: float) -> float:
    if value > _LARGEST_RANGE:
        raise Unsupported(f"sensitivity / scale = {value:g}: {name} is supported up to {_LARGEST_RANGE:g}.")
    return value


def _truncated_laplace(m: TruncatedLaplace) -> Exponentials | None:
    lam = _laplace_range("truncated Laplace noise", m.sensitivity / m.scale)
    return Exponentials.truncated_laplace(lam, m.bound / m.scale)


def _truncated_gaussian(m: TruncatedGaussian) -> TruncatedNormal | None:
    bound = m.bound / m.sigma
    if bound > 40:
        raise Unsupported(f"bound / sigma = {bound:g}: truncated Gaussian noise is supported up to 40; use gaussian.")
    mu = _laplace_range("truncated Gaussian noise", m.sensitivity / m.sigma)
    return TruncatedNormal(mu, bound) if 2 * bound > mu else None


def _plain(pair: Exponentials | TruncatedNormal | None) -> Row:
    return tables.REVEALED if pair is None else pair.plain()


def _response(m: RandomizedResponse) -> Row:
    eps = m.local_epsilon
    return tables.symmetric_response(eps, m.answers - 2, 0.0) if eps < 700 else tables.REVEALED


def _box(m: PureDP | ApproxDP) -> Row:
    delta = m.slack if isinstance(m, ApproxDP) else 0.0
    return tables.symmetric_response(m.eps, 0, delta) if m.eps < 700 and delta < 1 else tables.REVEALED


# where the dominating pair may not be attained: a pair that is
BELOW: dict[type[Mechanism], Callable[[Any], Row]] = {Tabulated: lambda m: tables.from_vectors(m.p_below, m.q_below)}

ENTRIES: dict[type[Mechanism], Entry] = {
    DiscreteGaussian: Entry(
        "Discrete Gaussian pair, shifted by the sensitivity (monotone likelihood ratio)",
        "discrete-gaussian: whole-number query of sensitivity {m.sensitivity} under {a}, sigma {m.sigma:g}",
        _discrete_gaussian,
    ),
    DiscreteLaplace: Entry(
        "Discrete Laplace pair, shifted by the sensitivity (monotone likelihood ratio)",
        "discrete-laplace: whole-number query of sensitivity {m.sensitivity} under {a}, scale {m.scale:g}",
        _discrete_laplace,
    ),
    UnaryEncoding: Entry(
        "Unary encoding: the two bits in which two answers differ (explicit pair)",
        "unary-encoding: neighbours give different answers under {a}; an absent person's report is drawn as for some "
        "fixed answer",
        lambda m: tables.unary_encoding(m.p, m.q),
    ),
    TruncatedLaplace: Entry(
        "Truncated Laplace pair (monotone likelihood ratio, infinite loss where supports differ)",
        "truncated-laplace: sensitivity {m.sensitivity:g} under {a}, scale {m.scale:g}, bound {m.bound:g}",
        lambda m: _plain(_truncated_laplace(m)),
    ),
    TruncatedGaussian: Entry(
        "Truncated Gaussian pair (monotone likelihood ratio, infinite loss where supports differ)",
        "truncated-gaussian: sensitivity {m.sensitivity:g} under {a}, sigma {m.sigma:g}, bound {m.bound:g}",
        lambda m: _plain(_truncated_gaussian(m)),
    ),
    Custom: Entry(
        "The pair as given",
        "custom: the two vectors are the worst neighbours under {a}, in both directions; they are made to sum to one",
        lambda m: tables.from_vectors(m.p, m.q),
    ),
    Tabulated: Entry(
        "Bins: the likelihood ratio lies between its ends (dominating pair); which bin it is, post-processing (below)",
        "tabulated: monotone likelihood ratio, exact distribution functions, worst neighbours under {a}",
        lambda m: tables.from_vectors(m.p_above, m.q_above),
    ),
    TradeOff: Entry(
        "f-DP is dominated by the pair whose trade-off curve is f (Dong, Roth, Su 2022)",
        "trade-off: the curve holds under {a}",
        lambda m: tables.trade_off(m.fpr, m.fnr),
    ),
    PrivacyProfile: Entry(
        "(eps_i, delta_i)-DP for all i is f-DP with the largest of their curves (Dong, Roth, Su 2022)",
        "privacy-profile: the guarantees hold under {a}",
        lambda m: tables.privacy_profile(m.epsilons, m.deltas),
    ),
}

# mechanisms with an engine of their own, as rows: for sampling
SAMPLED: dict[type[Mechanism], Callable[[Any], Row]] = {
    RandomizedResponse: _response,
    PureDP: _box,
    ApproxDP: _box,
    **{kind: entry.row for kind, entry in ENTRIES.items()},
}


def fixed_size_rows(mechanism: Mechanism, rate: float) -> tuple[Row, Row]:
    """The symmetric pair of a mechanism on a fraction of the data, and a pair that is attained: the one it was made of,
    unless that itself only dominates."""
    if isinstance(mechanism, (Custom, Tabulated)):  # both orders must be bounded by one profile
        raise Unsupported(
            f"{type(mechanism).__name__} in batches of fixed size: its pair need not be the same in both directions; "
            "give a privacy profile or a trade-off curve instead."
        )
    pair = _density(mechanism)
    if isinstance(pair, TruncatedNormal):
        raise Unsupported(f"{mechanism!r}: batches of fixed size are not supported for truncated Gaussian noise.")
    if isinstance(mechanism, (Exponential, NoisyMax)) and pair is not None and mechanism.eps > 0:
        return pair.poisson(rate, folded=True), tables.poisson(two_point(mechanism.eps, 0.5 * mechanism.eps), rate)
    if pair is not None:
        return pair.poisson(rate, folded=True), pair.poisson(rate)
    row = poisson_row(mechanism, rate)
    if row is None or row.missing is not None:
        raise Unsupported(f"{mechanism!r}: batches of fixed size are not supported for this mechanism.")
    return fold(row), row


def _density(mechanism: Mechanism) -> Exponentials | TruncatedNormal | None:
    """The pair of a mechanism with a density; None if it has none, or nothing in common."""
    if isinstance(mechanism, Laplace) and mechanism.scale > 0:
        lam = _laplace_range("Laplace noise on a sample", mechanism.sensitivity / mechanism.scale)
        return Exponentials.laplace(lam)
    ranged = isinstance(mechanism, Exponential) or (isinstance(mechanism, NoisyMax) and mechanism.noise == "gumbel")
    if ranged and mechanism.eps > 0:  # type: ignore[attr-defined]
        return Exponentials.bounded_range(_laplace_range("a bounded range on a sample", mechanism.eps))  # type: ignore[attr-defined]
    if isinstance(mechanism, TruncatedLaplace):
        return _truncated_laplace(mechanism)
    return _truncated_gaussian(mechanism) if isinstance(mechanism, TruncatedGaussian) else None


def poisson_row(mechanism: Mechanism, rate: float) -> Row | None:
    """The row of a mechanism on a Poisson sample; None if it has no table."""
    pair = _density(mechanism)
    if pair is not None:
        return pair.poisson(rate)
    if isinstance(mechanism, Laplace):
        return tables.poisson(tables.REVEALED, rate)
    if isinstance(mechanism, (Exponential, NoisyMax)):
        return tables.poisson(_box(PureDP(mechanism.eps)), rate)
    make = SAMPLED.get(type(mechanism))
    return None if make is None else tables.poisson(make(mechanism), rate)
