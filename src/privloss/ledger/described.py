"""A plan that was read and priced elsewhere: in a process that can be ended, because a plan of a stranger may take a
minute to price. The ledger needs of it only what stands in events, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privloss.ledger.filters import Filter

Pricer = Callable[[dict[str, Any], Filter, Any], dict[str, Fraction]]


@dataclass(frozen=True)
class Described:
    """A plan as its file says it, its adjacency, and who prices it: `price(body, budget, delta)`."""

    body: dict[str, Any]
    adjacency: str
    price: Pricer = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        return self.body
