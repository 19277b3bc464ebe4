"""A box of which a trade-off curve is known.

>>> TradeOff(fpr=[0.0, 0.2, 1.0], fnr=[1.0, 0.4, 0.0])
TradeOff(fpr=[0.0, 0.2, 1.0], fnr=[1.0, 0.4, 0.0])
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privloss.errors import InvalidInput
from privloss.losses.step import Step
from privloss.losses.table.polygon import trade_off
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import numbers


@dataclass(frozen=True, repr=False)
class TradeOff(Mechanism):
    """Any mechanism that is f-DP, f the polygon through the points (fpr[i], fnr[i]); f must fall and be convex."""

    kind: ClassVar[str] = "trade-off"
    fpr: Sequence[float] = numbers(high=1.0)
    fnr: Sequence[float] = numbers(high=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        a, b = self.fpr, self.fnr
        if len(a) != len(b) or len(a) < 2:
            raise InvalidInput(f"fpr has {len(a)} entries, fnr {len(b)}: must be equally many, at least two.")
        if a[0] != 0 or a[-1] != 1 or b[-1] != 0 or any(x >= y for x, y in itertools.pairwise(a)):
            raise InvalidInput(f"fpr = {list(a)!r}: must rise from 0 to 1, where fnr is 0.")
        if not _falls_and_is_convex(a, b):
            raise InvalidInput(f"fnr = {list(b)!r}: must fall and be convex in fpr.")
        if any(y > 1 - x + 1e-12 for x, y in zip(a, b, strict=True)):
            raise InvalidInput(f"fnr = {list(b)!r}: must not exceed 1 - fpr.")


def _falls_and_is_convex(a: Sequence[float], b: Sequence[float]) -> bool:
    """Up to roundings."""
    slopes = [(y2 - y1) / (x2 - x1) for x1, x2, y1, y2 in zip(a, a[1:], b, b[1:], strict=False)]
    return all(s <= 1e-12 for s in slopes) and all(s <= t + 1e-9 * (1 + abs(s)) for s, t in itertools.pairwise(slopes))


def _step(m: TradeOff, adjacency: str) -> Step:
    return Step.of_table(
        trade_off(m.fpr, m.fnr),
        "f-DP is dominated by the pair whose trade-off curve is f (Dong, Roth, Su 2022)",
        f"trade-off: the curve holds under {adjacency}",
        mirrored=True,  # the larger of the curve and its inverse is its own inverse
    )


add_kind(Kind("trade-off", TradeOff, _step, certified="all outcomes"))
