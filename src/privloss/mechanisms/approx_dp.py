"""A box of which only approximate DP is known.

>>> ApproxDP(0.1, 1e-9)
ApproxDP(epsilon=0.1, delta=1e-09)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from privloss.losses.base import PrivacyLoss
from privloss.losses.chains import approx
from privloss.losses.closed.atoms import AtomsLoss
from privloss.losses.closed.point import PointLoss
from privloss.losses.step import REVEALED_LOSS, Step
from privloss.losses.table.build import REVEALED, symmetric_response
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number

_LARGEST = 700.0  # beyond, e^-eps is nothing


@dataclass(frozen=True, repr=False, init=False)
class ApproxDP(Mechanism):
    """Any (eps, delta)-DP mechanism; delta = 0 is pure DP. Stored as `eps` and `slack`."""

    kind: ClassVar[str] = "approx-dp"
    eps: float = number(public="epsilon")
    slack: float = number(high=1.0, public="delta")

    def __init__(self, epsilon: float, delta: float) -> None:
        set_field(self, "eps", epsilon)
        set_field(self, "slack", delta)
        self.__post_init__()


def box_step(kind: str, eps: float, delta: float, adjacency: str) -> Step:
    """(eps, delta)-DP, and nothing else known."""
    step = Step.of_table(
        symmetric_response(eps, 0, delta) if eps < _LARGEST and delta < 1 else REVEALED,
        "(eps, delta)-DP is dominated by randomised response with delta (Kairouz, Oh, Viswanath 2015)",
        f"{kind}: the guarantee of the box holds under {adjacency}",
        mirrored=True,
    )
    return replace(step, loss=_loss(eps, delta))


def _loss(eps: float, delta: float) -> PrivacyLoss | None:
    if delta == 1:
        return REVEALED_LOSS
    if eps > 0:
        return AtomsLoss.one(eps, 0.0, delta)
    return PointLoss(math.log1p(-delta), 0.0, delta) if delta > 0 else None


def _without(m: ApproxDP) -> tuple[float, ApproxDP]:
    return m.slack, ApproxDP(m.eps, 0.0)


add_kind(
    Kind(
        "approx-dp",
        ApproxDP,
        lambda m, adjacency: box_step(m.kind, m.eps, m.slack, adjacency),
        louder=lambda m, factor: ApproxDP(m.eps / factor, m.slack),
        grouped=lambda m, people, adjacency: ApproxDP(*approx(m.eps, m.slack, people)),
        without_delta=_without,
        certified="lattice",
    )
)
