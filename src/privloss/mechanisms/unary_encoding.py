"""Unary encoding (RAPPOR-style): one bit per possible answer, each flipped on its own.

>>> UnaryEncoding(p=0.75, q=0.25)            # a one stays one with p, a zero becomes one with q
UnaryEncoding(p=0.75, q=0.25)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check


@dataclass(frozen=True, repr=False)
class UnaryEncoding(Mechanism):
    """Two different answers differ in two bits; `p` is the chance that a one is reported as one, `q` that a zero is."""

    kind: ClassVar[str] = "unary-encoding"
    p: float
    q: float

    def __post_init__(self) -> None:
        set_field(self, "p", check.number("p", self.p, low=0, high=1))
        set_field(self, "q", check.number("q", self.q, low=0, high=1))
        if self.q > self.p:
            raise InvalidInput(f"q = {self.q!r}: must not exceed p = {self.p!r}.")
