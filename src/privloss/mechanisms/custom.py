"""A mechanism of one's own: two probability vectors, a trade-off curve, or a privacy profile.

>>> Custom(p=[0.75, 0.25], q=[0.25, 0.75])
Custom(p=[0.75, 0.25], q=[0.25, 0.75])
>>> PrivacyProfile(epsilons=[0.0, 1.0], deltas=[0.3, 1e-5])        # is (0, 0.3)-DP and (1, 1e-5)-DP
PrivacyProfile(epsilons=[0.0, 1.0], deltas=[0.3, 1e-05])
>>> TradeOff(fpr=[0.0, 0.2, 1.0], fnr=[1.0, 0.4, 0.0])
TradeOff(fpr=[0.0, 0.2, 1.0], fnr=[1.0, 0.4, 0.0])
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, set_field
from privloss.numerics import check

_SUM = 1e-9  # how far probabilities may be from summing to one


def _numbers(name: str, values: Any, high: float) -> tuple[float, ...]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InvalidInput(f"{name} = {values!r}: must be a list of numbers.")
    found = tuple(check.number(f"{name}[{i}]", v, low=0, high=high) for i, v in enumerate(values))
    if not found:
        raise InvalidInput(f"{name} = {values!r}: must not be empty.")
    return found


@dataclass(frozen=True, repr=False)
class Custom(Mechanism):
    """P and Q over the same outcomes: the mechanism's output with and without the record, worst case, both ways round.

    The vectors must sum to one up to 1e-9 and are made to sum to one.
    """

    kind: ClassVar[str] = "custom"
    p: Sequence[float]
    q: Sequence[float]

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            set_field(self, name, _numbers(name, getattr(self, name), 1.0))
            total = math.fsum(getattr(self, name))
            if abs(total - 1) > _SUM:
                raise InvalidInput(f"{name}: probabilities must sum to 1, not {total:.12g}.")
        if len(self.p) != len(self.q):
            raise InvalidInput(f"p has {len(self.p)} entries, q {len(self.q)}: must be equally many.")


@dataclass(frozen=True, repr=False)
class PrivacyProfile(Mechanism):
    """Any mechanism that is (epsilons[i], deltas[i])-DP for every i."""

    kind: ClassVar[str] = "privacy-profile"
    epsilons: Sequence[float]
    deltas: Sequence[float]

    def __post_init__(self) -> None:
        eps, deltas = _numbers("epsilons", self.epsilons, math.inf), _numbers("deltas", self.deltas, 1.0)
        if len(eps) != len(deltas):
            raise InvalidInput(f"epsilons has {len(eps)} entries, deltas {len(deltas)}: must be equally many.")
        pairs = sorted(zip(eps, deltas, strict=True))
        set_field(self, "epsilons", tuple(e for e, _ in pairs))
        set_field(self, "deltas", tuple(d for _, d in pairs))


@dataclass(frozen=True, repr=False)
class TradeOff(Mechanism):
    """Any mechanism that is f-DP, f the polygon through the points (fpr[i], fnr[i]); f must fall and be convex."""

    kind: ClassVar[str] = "trade-off"
    fpr: Sequence[float]
    fnr: Sequence[float]

    def __post_init__(self) -> None:
        a, b = _numbers("fpr", self.fpr, 1.0), _numbers("fnr", self.fnr, 1.0)
        if len(a) != len(b) or len(a) < 2:
            raise InvalidInput(f"fpr has {len(a)} entries, fnr {len(b)}: must be equally many, at least two.")
        set_field(self, "fpr", a)
        set_field(self, "fnr", b)
        if a[0] != 0 or a[-1] != 1 or b[-1] != 0 or any(x >= y for x, y in itertools.pairwise(a)):
            raise InvalidInput(f"fpr = {list(a)!r}: must rise from 0 to 1, where fnr is 0.")
        slopes = [(y2 - y1) / (x2 - x1) for x1, x2, y1, y2 in zip(a, a[1:], b, b[1:], strict=False)]
        if any(s > 1e-12 for s in slopes) or any(s > t + 1e-9 * (1 + abs(s)) for s, t in itertools.pairwise(slopes)):
            raise InvalidInput(f"fnr = {list(b)!r}: must fall and be convex in fpr.")
        if any(y > 1 - x + 1e-12 for x, y in zip(a, b, strict=True)):
            raise InvalidInput(f"fnr = {list(b)!r}: must not exceed 1 - fpr.")


@dataclass(frozen=True, repr=False)
class Tabulated(Mechanism):
    """A pair of distributions read at bins: one pair of vectors that dominates it, one that it dominates.

    Made by `pl.tabulate`; the interval for epsilon lies between the two.
    """

    kind: ClassVar[str] = "tabulated"
    p_above: Sequence[float]
    q_above: Sequence[float]
    p_below: Sequence[float]
    q_below: Sequence[float]

    def __post_init__(self) -> None:
        for pair in (("p_above", "q_above"), ("p_below", "q_below")):
            made = Custom(*(getattr(self, name) for name in pair))
            set_field(self, pair[0], made.p)
            set_field(self, pair[1], made.q)

    def __repr__(self) -> str:
        return f"Tabulated({len(self.p_above)} losses above, {len(self.p_below)} bins below)"
