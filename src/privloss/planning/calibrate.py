"""The parameter that just keeps a promise: least noise, most steps, largest rate.

>>> import privloss as pl
>>> found = pl.calibrate(lambda s: pl.Gaussian(s).poisson(256 / 60_000) * 14_100, epsilon=3, delta=1e-5)
>>> round(found.value, 4), found.achieved.upper <= 3
(0.9691, True)
>>> pl.calibrate(lambda n: pl.Gaussian(1.1).poisson(0.01) * n, epsilon=2, delta=1e-6, whole=True).value
1312

Any family of plans with one parameter will do, as long as its privacy is monotone in it; which way is found out. The
value returned surely meets the target (its upper end does), and one that is `tolerance` better by the same measure does
not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scipy.optimize import brentq

from privloss.answers.tradeoff import total_variation
from privloss.errors import InvalidInput, Unreachable, Unsupported
from privloss.mechanisms.base import Mechanism, Plan
from privloss.numerics import check
from privloss.numerics.bound import Bound
from privloss.planning.target import Target

Family = Callable[[Any], Mechanism | Plan]
_SMALLEST, _LARGEST = 1e-9, 1e12
_CLOSE = 1e-3  # in the logarithm: how near to the end of what is supported a search goes
_CLIP = 50.0  # excesses beyond this only say which side it is


@dataclass(frozen=True)
class Calibrated:
    """`value` meets the target for certain; `refused`, next to it, is not known to (None: the value is a limit)."""

    value: float | int
    refused: float | int | None
    plan: Plan
    target: Target
    achieved: Bound
    evaluations: int

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return f"Calibrated({self.value!r}, {self.target.describe()}, achieved {self.achieved})"


def calibrate(
    family: Family,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    advantage: float | None = None,
    adjacency: str | None = None,
    low: float = _SMALLEST,
    high: float = _LARGEST,
    start: float | None = None,
    whole: bool = False,
    tolerance: float = 1e-7,
) -> Calibrated:
    """The parameter of a family, between `low` and `high`, that just meets the target; `whole` for whole numbers."""
    target = Target.of(epsilon=epsilon, delta=delta, tpr=tpr, fpr=fpr, advantage=advantage, adjacency=adjacency)
    if not callable(family):
        raise InvalidInput(f"family = {family!r}: must be a function from a number to a plan.")
    if whole:
        low, high = max(low, 1.0), min(high, float(check.MAX_COUNT))
    bottom = check.number("low", low, low=0, above=True)
    top = check.number("high", high, low=bottom)
    check.number("tolerance", tolerance, low=1e-13, high=0.1)
    first = 1.0 if start is None else check.number("start", start, low=bottom, high=top)
    search = _Search(family, target, bottom, top, whole, tolerance)
    return search.run(min(max(first, bottom), top))


class _Search:
    """Plans are asked for once per parameter; the search runs on its logarithm."""

    def __init__(self, family: Family, target: Target, low: float, high: float, whole: bool, tolerance: float) -> None:
        self.family, self.target, self.low, self.high, self.whole = family, target, low, high, whole
        self.tolerance = tolerance
        self.seen: dict[float, float] = {}

    def plan(self, value: float) -> Plan:
        made = self.family(int(value) if self.whole else value)
        if not isinstance(made, (Mechanism, Plan)):
            raise InvalidInput(f"family({value!r}) = {made!r}: must be a plan or a mechanism.")
        return made.as_plan()

    def excess(self, value: float) -> float:
        if value not in self.seen:
            self.seen[value] = self.target.excess(self.plan(value))
        return self.seen[value]

    def clipped(self, log: float) -> float:
        return min(max(self.excess(self.at(log)), -_CLIP), _CLIP)

    def at(self, log: float) -> float:
        value = min(max(math.exp(log), self.low), self.high)
        return float(math.floor(value)) if self.whole else value

    def run(self, start: float) -> Calibrated:
        safe, unsafe = self.bracket(float(math.floor(start)) if self.whole else start)
        if unsafe is None:
            return self.answer(safe, None)
        if self.whole:
            return self.answer(*self.bisect(safe, unsafe))
        a, b = math.log(safe), math.log(unsafe)
        for log, value in ((a, safe), (b, unsafe)):  # may be off by a rounding; what is returned is checked at the end
            self.seen.setdefault(self.at(log), self.seen[value])
        root = brentq(self.clipped, a, b, xtol=self.tolerance / 8, rtol=1e-15, disp=False)
        step = self.tolerance / 4
        for sign in (1.0, -1.0):  # a safe point and an unsafe one, next to the root
            moved, width = root, step
            while (self.excess(self.at(moved)) <= 0) != (sign > 0):
                moved = root + math.copysign(width, (a - b) * sign)
                width *= 2
                if (moved - a) * (a - b) >= 0 or (moved - b) * (b - a) >= 0:
                    moved = a if sign > 0 else b
                    break
            safe, unsafe = (self.at(moved), unsafe) if sign > 0 else (safe, self.at(moved))
        return self.answer(safe, unsafe)

    def bracket(self, start: float) -> tuple[float, float | None]:
        """A safe and an unsafe point. Looks both ways from the start, by ever longer strides in the logarithm, up to
        the limits given or to where plans are no longer supported."""
        here = self.roughly(start) <= 0
        stride, reached = math.log(2.0), {-1: math.log(start), 1: math.log(start)}
        ends = {-1: math.log(self.low), 1: math.log(self.high)}
        while any(not math.isclose(reached[sign], ends[sign], abs_tol=1e-12) for sign in (-1, 1)):
            for sign in (-1, 1):
                before, end = reached[sign], ends[sign]
                if math.isclose(before, end, abs_tol=1e-12):
                    continue
                after = max(before - stride, end) if sign < 0 else min(before + stride, end)
                there = self.known(after)
                if there is None:  # too far: the answer may still lie before the end of what is supported
                    ends[sign] = 0.5 * (before + after) if abs(after - before) > _CLOSE else before
                elif there != here:
                    found = self.at(before), self.at(after)
                    return found if here else found[::-1]
                else:
                    reached[sign] = after
            stride *= 1.6
        return self.limit(here, self.at(reached[-1]), self.at(reached[1]))

    def known(self, log: float) -> bool | None:
        """Whether the target is met there; None where the plan is not supported."""
        try:
            return self.roughly(self.at(log)) <= 0
        except Unsupported:
            return None

    def roughly(self, value: float) -> float:
        """The excess, or only its sign and size, if a short look tells them."""
        if value not in self.seen:
            glimpse = self.target.glimpse(self.plan(value))
            if glimpse is not None:
                self.seen[value] = glimpse
        return self.excess(value)

    def limit(self, here: bool, down: float, up: float) -> tuple[float, None]:
        """Where every parameter looks the same: the less private of the limits, if all will do."""
        ends_found = {v: self.excess(v) for v in (down, up)}
        best = min(ends_found, key=lambda v: ends_found[v])
        if here:  # every parameter will do: the less private of the limits
            return max(
                ends_found, key=lambda v: total_variation(self.plan(v), adjacency=self.target.adjacency).upper
            ), None
        reached = self.target.achieved(self.plan(best))
        raise Unreachable(
            f"target {self.target.describe()}: cannot be met with the parameter between {down:g} and "
            f"{up:g}; the best is {reached.upper:.6g}, at {best:g}."
        )

    def bisect(self, safe: float, unsafe: float) -> tuple[float, float]:
        """Whole numbers next to one another."""
        while abs(safe - unsafe) > 1:
            f, g = self.excess(safe), self.excess(unsafe)
            share = min(max(f / (f - g), 0.05), 0.95) if abs(f) < 30 and abs(g) < 30 else 0.5
            middle = float(round(safe + (unsafe - safe) * share))
            middle = min(max(middle, min(safe, unsafe) + 1), max(safe, unsafe) - 1)
            safe, unsafe = (middle, unsafe) if self.excess(middle) <= 0 else (safe, middle)
        return safe, unsafe

    def answer(self, safe: float, unsafe: float | None) -> Calibrated:
        plan = self.plan(safe)
        achieved = self.target.achieved(plan)
        step = 1.0 if self.whole else self.tolerance / 4
        # the search compared deltas; the epsilon that is told must meet the target as well
        while unsafe is not None and not self.target.met_by(achieved) and self.low < safe < self.high:
            away = math.copysign(1.0, safe - unsafe)
            safe = safe + away * step if self.whole else self.at(math.log(safe) + away * step)
            step *= 2.0
            plan = self.plan(safe)
            achieved = self.target.achieved(plan)
        shown = int(safe) if self.whole else safe
        refused = None if unsafe is None else int(unsafe) if self.whole else unsafe
        return Calibrated(shown, refused, plan, self.target, achieved, len(self.seen))
