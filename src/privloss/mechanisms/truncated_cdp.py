"""A box of which only truncated concentrated DP is known: zCDP up to an order omega.

>>> TruncatedCDP(rho=0.1, omega=20.0)
TruncatedCDP(rho=0.1, omega=20.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privloss.adjacency import REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.curve import WHOLE_ORDERS, RenyiCurve
from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number
from privloss.mechanisms.zcdp import BATCHES, batch_curve, sampled_curve
from privloss.numerics.floats import lowered, raised

_ORDERS, _LEAST = 160, 1e-3  # orders at which the curve is told, from 1 + _LEAST on; between them it lies below chords


@dataclass(frozen=True, repr=False)
class TruncatedCDP(Mechanism):
    """Any (rho, omega)-tCDP mechanism: D_alpha <= rho alpha for 1 < alpha < omega, in both directions (Bun, Dwork,
    Rothblum, Steinke 2018)."""

    kind: ClassVar[str] = "truncated-cdp"
    rho: float = number()
    omega: float = number(low=1.0, above=True)


def _orders(omega: float) -> tuple[float, ...]:
    """omega itself is one: log E[e^((alpha-1) Z)] is continuous from below there (monotone convergence)."""
    inner = 1 + np.geomspace(min(_LEAST, (omega - 1) / 2), omega - 1, _ORDERS)
    return tuple(sorted({*(float(a) for a in inner if 1 < a < omega), *map(float, _whole(omega)), omega}))


def _whole(omega: float) -> tuple[int, ...]:
    return tuple(k for k in WHOLE_ORDERS if k <= omega)


def _step(m: TruncatedCDP, adjacency: str) -> Step:
    orders, mu_squared = _orders(m.omega), 2 * m.rho

    def divergence(k: int) -> float:
        return raised(m.rho * k, 2)

    def on_poisson(rate: float) -> Step:
        return sampled_curve(rate, _whole(m.omega), divergence, mu_squared, repr(m))

    def on_batches(rate: float, text: str) -> Step:
        if not _whole(m.omega):
            raise Unsupported(f"{m!r} on batches of fixed size: needs omega of at least 2.")
        found = batch_curve(rate, _whole(m.omega), divergence, mu_squared)
        return found.saying(BATCHES, f"truncated-cdp: the guarantee of the box holds under {adjacency}; {text}")

    return Step(
        ("truncated CDP adds up to the least omega, then Renyi moments bound delta (Prop. cdp2adp)",),
        (f"truncated-cdp: the guarantee of the box holds under {adjacency}; lower end: the Gaussian of the same rho",),
        mirrored=True,
        curve=RenyiCurve(tables=((orders, tuple(raised(m.rho * a, 2) for a in orders), 1),)),
        stand_in=GaussianLoss(lowered(mu_squared, 8)) if m.rho > 0 else None,
        poisson=on_poisson,
        fixed_size=on_batches if adjacency == REPLACE_ONE else None,
    )


add_kind(Kind("truncated-cdp", TruncatedCDP, _step))
