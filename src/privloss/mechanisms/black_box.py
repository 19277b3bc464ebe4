"""Mechanisms of which only a guarantee is known.

>>> ApproxDP(0.1, 1e-9), PureDP(0.5), ZCDP(0.02), GDP(1.0)
(ApproxDP(epsilon=0.1, delta=1e-09), PureDP(epsilon=0.5), ZCDP(rho=0.02), GDP(mu=1.0))
>>> RDP(orders=[2, 4], epsilons=[0.1, 0.25])
RDP(orders=[2.0, 4.0], epsilons=[0.1, 0.25])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check


@dataclass(frozen=True, repr=False, init=False)
class PureDP(Mechanism):
    """Any eps-DP mechanism. The parameter is stored as `eps`, because `.epsilon(...)` is the question."""

    kind: ClassVar[str] = "pure-dp"
    renamed: ClassVar[dict[str, str]] = {"eps": "epsilon"}
    eps: float

    def __init__(self, epsilon: float) -> None:
        set_field(self, "eps", check.number("epsilon", epsilon, low=0))


@dataclass(frozen=True, repr=False, init=False)
class ApproxDP(Mechanism):
    """Any (eps, delta)-DP mechanism; delta = 0 is pure DP. Stored as `eps` and `slack`."""

    kind: ClassVar[str] = "approx-dp"
    renamed: ClassVar[dict[str, str]] = {"eps": "epsilon", "slack": "delta"}
    eps: float
    slack: float

    def __init__(self, epsilon: float, delta: float) -> None:
        set_field(self, "eps", check.number("epsilon", epsilon, low=0))
        set_field(self, "slack", check.number("delta", delta, low=0, high=1))


@dataclass(frozen=True, repr=False, init=False)
class ZCDP(Mechanism):
    """Any rho-zCDP mechanism; with delta, one that is rho-zCDP but for an event of that probability."""

    kind: ClassVar[str] = "zcdp"
    renamed: ClassVar[dict[str, str]] = {"slack": "delta"}
    rho: float
    slack: float = 0.0

    def __init__(self, rho: float, delta: float = 0.0) -> None:
        set_field(self, "rho", check.number("rho", rho, low=0))
        set_field(self, "slack", check.number("delta", delta, low=0, high=1))


@dataclass(frozen=True, repr=False)
class RDP(Mechanism):
    """Any mechanism with Renyi divergence at most epsilons[i] at orders[i] > 1, in both directions."""

    kind: ClassVar[str] = "rdp"
    orders: Sequence[float]
    epsilons: Sequence[float]

    def __post_init__(self) -> None:
        for name in ("orders", "epsilons"):
            value = getattr(self, name)
            if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or not value:
                raise InvalidInput(f"{name} = {value!r}: must be a non-empty list of numbers.")
        if len(self.orders) != len(self.epsilons):
            raise InvalidInput(f"orders has {len(self.orders)} entries, epsilons {len(self.epsilons)}: must be equal.")
        orders = tuple(check.number(f"orders[{i}]", a, low=1, above=True) for i, a in enumerate(self.orders))
        epsilons = tuple(check.number(f"epsilons[{i}]", e, low=0) for i, e in enumerate(self.epsilons))
        if len(set(orders)) != len(orders):
            raise InvalidInput(f"orders = {list(orders)!r}: must be distinct.")
        pairs = sorted(zip(orders, epsilons, strict=True))
        set_field(self, "orders", tuple(a for a, _ in pairs))
        set_field(self, "epsilons", tuple(e for _, e in pairs))


@dataclass(frozen=True, repr=False)
class GDP(Mechanism):
    """Any mu-Gaussian-DP mechanism."""

    kind: ClassVar[str] = "gdp"
    mu: float

    def __post_init__(self) -> None:
        set_field(self, "mu", check.number("mu", self.mu, low=0))
