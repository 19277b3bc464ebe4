"""Poisson samples of everything but the Gaussian, whose pair has an engine of its own."""

from __future__ import annotations

import math

from privloss.errors import Unsupported
from privloss.losses.bounded_range import two_point
from privloss.losses.collected import Collect, Collected
from privloss.losses.curve import WHOLE_ORDERS, least_gaussian, poisson_divergence
from privloss.losses.entries import poisson_row
from privloss.losses.tables import poisson
from privloss.mechanisms.base import Mechanism, refuse_sampling
from privloss.mechanisms.black_box import RDP, ZCDP
from privloss.mechanisms.exponential import Exponential, NoisyMax
from privloss.numerics.small import UNIT

_SAMPLE = "Poisson sample of a pair: (1-q) Q + q P against Q, both directions (Zhu, Dong, Wang 2022, Thm. 11)"


def collect_poisson(
    found: Collected, inner: Mechanism, rate: float, times: int, adjacency: str, collect: Collect
) -> None:
    """Poisson samples of everything but the Gaussian."""
    if rate == 0:
        return
    if rate == 1:
        collect(found, inner, times, adjacency)
        return
    what = f"{inner!r}: its guarantee holds under {adjacency}; sampler: Poisson, every record independently with "
    text = f"{what}probability {rate!r} at every step"
    if isinstance(inner, (ZCDP, RDP)):
        found.say("Renyi curve of a Poisson sample at whole orders (Thm. rdp_subsampling)", text)
        _sampled_curve(found, inner, rate, times)
        return
    if isinstance(inner, (Exponential, NoisyMax)) and inner.eps == 0:
        return
    row = poisson_row(inner, rate)
    if row is None:
        raise refuse_sampling(inner)
    if isinstance(inner, Exponential) or (isinstance(inner, NoisyMax) and inner.noise == "gumbel"):
        below = poisson(two_point(inner.eps, 0.5 * inner.eps), rate)
        found.rows_below.append((row, below, times))
        found.say(_SAMPLE, text)
        return
    found.say(
        "Poisson sample of a pair: (1-q) Q + q P against Q, both directions (Zhu, Dong, Wang 2022, Thm. 11)",
        text,
    )
    found.add_row(row, times)


def _sampled_curve(found: Collected, inner: ZCDP | RDP, rate: float, times: int) -> None:
    if isinstance(inner, ZCDP):
        rho, orders = inner.rho, WHOLE_ORDERS
        if inner.slack > 0:
            found.points.append((math.log1p(-rate * inner.slack), 0.0, rate * inner.slack, times))
        sigma = math.inf if rho == 0 else 1 / math.sqrt(2 * rho)

        def divergence(k: int) -> float:
            return rho * k * (1 + 2 * UNIT)
    else:
        given = list(zip(inner.orders, inner.epsilons, strict=True))
        orders = tuple(k for k in WHOLE_ORDERS if k <= inner.orders[-1])
        sigma = least_gaussian(inner.orders, inner.epsilons)

        def divergence(k: int) -> float:
            return next((e for a, e in given if a >= k), math.inf)

    if not orders:
        raise Unsupported(f"{inner!r} on a Poisson sample: needs an order of at least 2.")
    found.sampled.append(
        (tuple(map(float, orders)), tuple(poisson_divergence(k, rate, divergence) for k in orders), times)
    )
    if sigma < math.inf:
        found.sampled_attained.append((rate, sigma, times))
