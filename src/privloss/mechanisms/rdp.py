"""A box of which only Renyi divergences are known, at finitely many orders.

>>> RDP(orders=[2, 4], epsilons=[0.1, 0.25])
RDP(orders=[2.0, 4.0], epsilons=[0.1, 0.25])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privloss.adjacency import REPLACE_ONE
from privloss.errors import InvalidInput, Unsupported
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.curve import WHOLE_ORDERS, RenyiCurve, gaussian_below
from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import numbers
from privloss.mechanisms.zcdp import BATCHES, batch_curve, sampled_curve


@dataclass(frozen=True, repr=False)
class RDP(Mechanism):
    """Any mechanism with Renyi divergence at most epsilons[i] at orders[i] > 1, in both directions."""

    kind: ClassVar[str] = "rdp"
    orders: Sequence[float] = numbers(low=1.0, above=True)
    epsilons: Sequence[float] = numbers()

    def __post_init__(self) -> None:
        for name in ("orders", "epsilons"):
            value = getattr(self, name)
            if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or not value:
                raise InvalidInput(f"{name} = {value!r}: must be a non-empty list of numbers.")
        if len(self.orders) != len(self.epsilons):
            raise InvalidInput(f"orders has {len(self.orders)} entries, epsilons {len(self.epsilons)}: must be equal.")
        super().__post_init__()
        if len(set(self.orders)) != len(self.orders):
            raise InvalidInput(f"orders = {list(self.orders)!r}: must be distinct.")
        pairs = sorted(zip(self.orders, self.epsilons, strict=True))
        set_field(self, "orders", tuple(a for a, _ in pairs))
        set_field(self, "epsilons", tuple(e for _, e in pairs))


def _step(m: RDP, adjacency: str) -> Step:
    mu_squared = gaussian_below(m.orders, m.epsilons)

    def divergence(k: int) -> float:
        """Divergences rise with the order: the next one given."""
        return next((e for a, e in zip(m.orders, m.epsilons, strict=True) if a >= k), math.inf)

    def on_poisson(rate: float) -> Step:
        orders = tuple(k for k in WHOLE_ORDERS if k <= m.orders[-1])
        return sampled_curve(rate, orders, divergence, mu_squared, repr(m))

    def on_batches(rate: float, text: str) -> Step:
        orders = tuple(k for k in WHOLE_ORDERS if k <= m.orders[-1])
        if not orders:
            raise Unsupported(f"{m!r} on batches of fixed size: needs an order of at least 2.")
        found = batch_curve(rate, orders, divergence, mu_squared)
        return found.saying(BATCHES, f"rdp: the curve of the box holds under {adjacency}; {text}")

    return Step(
        ("Renyi curves add (Lem. rdp_composition), then moments bound delta (Prop. cdp2adp)",),
        (f"rdp: the curve of the box holds under {adjacency}; lower end: the largest Gaussian below the curve",),
        mirrored=True,
        curve=RenyiCurve(tables=((tuple(m.orders), tuple(m.epsilons), 1),)),
        stand_in=GaussianLoss(mu_squared) if mu_squared > 0 else None,
        poisson=on_poisson,
        fixed_size=on_batches if adjacency == REPLACE_ONE else None,
    )


add_kind(Kind("rdp", RDP, _step, louder=lambda m, factor: RDP(m.orders, [e / factor**2 for e in m.epsilons])))
