"""A box of which only pure DP is known.

>>> PureDP(0.5)
PureDP(epsilon=0.5)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.losses.chains import pure
from privloss.losses.step import Step
from privloss.mechanisms.approx_dp import box_step
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number


@dataclass(frozen=True, repr=False, init=False)
class PureDP(Mechanism):
    """Any eps-DP mechanism. The parameter is stored as `eps`, because `.epsilon(...)` is the question."""

    kind: ClassVar[str] = "pure-dp"
    eps: float = number(public="epsilon")

    def __init__(self, epsilon: float) -> None:
        set_field(self, "eps", epsilon)
        self.__post_init__()


def _step(m: PureDP, adjacency: str) -> Step:
    return box_step(m.kind, m.eps, 0.0, adjacency)


add_kind(
    Kind(
        "pure-dp",
        PureDP,
        _step,
        louder=lambda m, factor: PureDP(m.eps / factor),
        grouped=lambda m, people, adjacency: PureDP(float(pure(m.eps, people))),
        certified="lattice",
    )
)
