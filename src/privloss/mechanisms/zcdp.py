"""A box of which only zCDP is known, perhaps but for an event of small probability.

>>> ZCDP(0.02), ZCDP(0.02, delta=1e-9)
(ZCDP(rho=0.02), ZCDP(rho=0.02, delta=1e-09))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from privloss.adjacency import REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.chains import zcdp
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.closed.point import PointLoss
from privloss.losses.curve import WHOLE_ORDERS, RenyiCurve, fixed_size_divergence, poisson_divergence
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.step import REVEALED_LOSS, Step
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number
from privloss.numerics.floats import lowered, raised

BATCHES = "Renyi curve of batches of fixed size at whole orders (Wang, Balle, Kasiviswanathan 2019, Thm. 9)"


@dataclass(frozen=True, repr=False, init=False)
class ZCDP(Mechanism):
    """Any rho-zCDP mechanism; with delta, one that is rho-zCDP but for an event of that probability."""

    kind: ClassVar[str] = "zcdp"
    rho: float = number()
    slack: float = number(high=1.0, public="delta", default=0.0, plain=0.0)

    def __init__(self, rho: float, delta: float = 0.0) -> None:
        set_field(self, "rho", rho)
        set_field(self, "slack", delta)
        self.__post_init__()


def _step(m: ZCDP, adjacency: str) -> Step:
    lost: PrivacyLoss | None = None
    if m.slack > 0:
        lost = REVEALED_LOSS if m.slack == 1 else PointLoss(math.log1p(-m.slack), 0.0, m.slack)

    def on_poisson(rate: float) -> Step:
        loss = PointLoss(math.log1p(-rate * m.slack), 0.0, rate * m.slack) if m.slack > 0 else None
        mu_squared = 2 * m.rho
        return sampled_curve(rate, WHOLE_ORDERS, lambda k: raised(m.rho * k, 2), mu_squared, repr(m), loss)

    def on_batches(rate: float, text: str) -> Step:
        found = batch_curve(rate, WHOLE_ORDERS, lambda k: raised(m.rho * k, 2), 2 * m.rho)
        return found.saying(BATCHES, f"zcdp: the guarantee of the box holds under {adjacency}; {text}")

    return Step(
        ("zCDP adds (Thm. cdp_composition), then Renyi moments bound delta (Prop. cdp2adp)",),
        (f"zcdp: the guarantee of the box holds under {adjacency}; lower end: the Gaussian with the same rho",),
        lost,
        mirrored=True,
        curve=RenyiCurve(rho=m.rho),
        stand_in=GaussianLoss(lowered(2 * m.rho, 8)) if m.rho > 0 else None,
        poisson=on_poisson,
        fixed_size=on_batches if adjacency == REPLACE_ONE and m.slack == 0 else None,
    )


def batch_curve(rate: float, orders: Sequence[int], divergence: Callable[[int], float], mu_squared: float) -> Step:
    """A Renyi curve under replace-one on batches of fixed size; a sampled Gaussian below the curve stands in for it."""
    table = tuple(map(float, orders)), tuple(fixed_size_divergence(k, rate, divergence, math.inf) for k in orders), 1
    below = GaussianMixtureLoss.one(rate, 1 / math.sqrt(mu_squared)) if mu_squared > 0 else None
    return Step((), (), curve=RenyiCurve(sampled=(table,)), stand_in=below)


def sampled_curve(
    rate: float,
    orders: Sequence[int],
    divergence: Callable[[int], float],
    mu_squared: float,
    name: str,
    loss: PrivacyLoss | None = None,
) -> Step:
    """A Renyi curve on a Poisson sample, at whole orders; a sampled Gaussian below the curve stands in for it."""
    if not orders:
        raise Unsupported(f"{name} on a Poisson sample: needs an order of at least 2.")
    table = tuple(map(float, orders)), tuple(poisson_divergence(k, rate, divergence) for k in orders), 1
    return Step(
        ("Renyi curve of a Poisson sample at whole orders (Thm. rdp_subsampling)",),
        (),
        loss,
        curve=RenyiCurve(sampled=(table,)),
        stand_in=GaussianMixtureLoss.one(rate, 1 / math.sqrt(mu_squared)) if mu_squared > 0 else None,
    )


def _without(m: ZCDP) -> tuple[float, ZCDP]:
    return m.slack, ZCDP(m.rho)


add_kind(
    Kind(
        "zcdp",
        ZCDP,
        _step,
        louder=lambda m, factor: ZCDP(m.rho / factor**2, m.slack),
        grouped=lambda m, people, adjacency: ZCDP(float(zcdp(m.rho, people))) if m.slack == 0 else None,
        without_delta=_without,
        certified="Chernoff above, a Gaussian below",
    )
)
