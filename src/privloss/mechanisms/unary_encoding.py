"""Unary encoding (RAPPOR-style): one bit per possible answer, each flipped on its own.

>>> UnaryEncoding(p=0.75, q=0.25)            # a one stays one with p, a zero becomes one with q
UnaryEncoding(p=0.75, q=0.25)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.step import Step
from privloss.losses.table.build import unary_encoding
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number


@dataclass(frozen=True, repr=False)
class UnaryEncoding(Mechanism):
    """Two different answers differ in two bits; `p` is the chance that a one is reported as one, `q` that a zero is."""

    kind: ClassVar[str] = "unary-encoding"
    p: float = number(high=1.0)
    q: float = number(high=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.q > self.p:
            raise InvalidInput(f"q = {self.q!r}: must not exceed p = {self.p!r}.")


def _step(m: UnaryEncoding, adjacency: str) -> Step:
    return Step.of_table(
        unary_encoding(m.p, m.q),
        "Unary encoding: the two bits in which two answers differ (explicit pair)",
        f"unary-encoding: neighbours give different answers under {adjacency}; an absent person's report is drawn as "
        "for some fixed answer",
        mirrored=True,  # the two bits change places
    )


add_kind(Kind("unary-encoding", UnaryEncoding, _step, certified="all outcomes"))
