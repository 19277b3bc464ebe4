"""Filters: when may the next analysis run, if each one's cost may depend on earlier answers?

A filter is fixed beforehand by its cap. Each currency below states its theorem; all hold for adaptively chosen costs
and for analyses that run concurrently, because a reservation counts from the moment it is made.

>>> budget = Filter.of("zcdp", "0.5", delta="1e-6")
>>> budget.caps
{'rho': Fraction(1, 2)}
>>> budget.charge("0.125")
{'rho': Fraction(1, 8)}
>>> Filter.of("exact", "1")
Traceback (most recent call last):
...
privloss.errors.Unsupported: currency = 'exact': composing exact curves and stopping at a target is not a valid filter \
(docs/ledger.md, "Why exact curves are no filter"); exact accounting belongs inside one plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privloss.errors import InvalidInput, Unsupported
from privloss.ledger.amounts import BITS, DELTA_BITS, cap, cost, down, read, round_down, show, up

CURRENCIES = ("pure", "approx", "zcdp", "rdp", "gdp")
EVERY, SOME = "every", "some"
FILTERS = {"approx": ("basic", "advanced"), "rdp": (EVERY, SOME)}  # the first is the usual one; others have no choice
ORDERS = (
    "1.25", "1.5", "1.75", "2", "2.5", "3", "4", "5", "6", "8", "10", "12", "16", "20", "24", "32", "48", "64", "128",
)  # fmt: skip
_NEARLY = Fraction(9, 10)
INFINITE = Fraction(2**20)  # what a plan is charged where its divergence is infinite: more than any cap
SMALLEST_DELTA = Fraction(1, 10**300)  # below, logarithms of doubles lose their digits
_SMALL, _TERMS = 1e-3, 200  # a mu whose R(a) and R(b) cancel; terms of a continued fraction, far more than it needs
THEOREMS = {
    "pure": "sum of epsilons <= cap (Rogers, Roth, Ullman, Vadhan 2016)",
    "approx basic": "sum of epsilons and sum of deltas <= caps (Rogers, Roth, Ullman, Vadhan 2016)",
    "approx advanced": "sqrt(2 ln(1/d') S) + S/2 <= epsilon with S the sum of squared epsilons, sum of deltas <= "
    "d''; gives (epsilon, d' + d'') (Whitehouse, Ramdas, Rogers, Wu 2023)",
    "zcdp": "sum of rho <= cap (Feldman, Zrnic 2021)",
    "rdp": "at every order of the budget, sum of Renyi epsilons <= that order's cap (Feldman, Zrnic 2021)",
    "rdp some": "at some order of the budget, sum of Renyi epsilons <= that order's cap, each for its share of delta "
    '(Feldman, Zrnic 2021; docs/ledger.md, "Budgets at some order")',
    "gdp": "sum of mu^2 <= cap^2 (Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023)",
}
CONDITIONS = "costs may be chosen adaptively and analyses may run concurrently; the cap is fixed beforehand"


@dataclass(frozen=True)
class Filter:
    """A currency, its caps by component, and the (epsilon, delta) the caps guarantee."""

    currency: str
    rule: str  # approx: "basic" or "advanced"; rdp: "every" or "some" order must hold; others: "basic"
    cap: Fraction
    delta: Fraction | None
    caps: Mapping[str, Fraction]

    @classmethod
    def of(cls, currency: Any, amount: Any, delta: Any = None, rule: Any = None) -> Filter:
        if currency == "exact":
            raise Unsupported(
                f"currency = {currency!r}: composing exact curves and stopping at a target is not a valid filter "
                '(docs/ledger.md, "Why exact curves are no filter"); exact accounting belongs inside one plan.'
            )
        if currency not in CURRENCIES:
            raise InvalidInput(f"currency = {currency!r}: must be one of {', '.join(CURRENCIES)}.")
        if rule is not None and rule not in FILTERS.get(currency, ()):
            raise InvalidInput(
                f"filter = {rule!r}: must be basic or advanced for approx, every or some for rdp; other currencies "
                "have no choice."
            )
        chance = None if delta is None else _delta(delta)
        if chance is not None and 0 < chance < SMALLEST_DELTA:
            raise InvalidInput(f"delta = {delta!r}: the delta of a budget must be 0 or at least 1e-300.")
        return cls._of(currency, cap("cap", amount), chance, rule)

    @classmethod
    def _of(cls, currency: str, size: Fraction, chance: Fraction | None, rule: str | None) -> Filter:
        delta = None if chance is None else show(chance)
        if currency in ("approx", "rdp") and not chance:
            raise InvalidInput(f"delta = {delta!r}: a budget in {currency} needs a delta > 0.")
        if currency == "pure" and chance is not None:
            raise InvalidInput(f"delta = {delta!r}: a pure budget has none.")
        chosen = rule or FILTERS.get(currency, ("basic",))[0]
        return cls(currency, chosen, size, chance, _caps(currency, chosen, size, chance))

    @property
    def name(self) -> str:
        return f"{self.currency} {self.rule}" if self.currency == "approx" or self.rule == SOME else self.currency

    @property
    def theorem(self) -> str:
        return THEOREMS[self.name]

    def fits(self, totals: Mapping[str, Fraction]) -> bool:
        """Whether totals by component (committed, reserved and new) are within the caps: all of them, or at least one
        where some order is enough."""
        within = [totals.get(part, 0) <= size for part, size in self.caps.items()]
        return any(within) if self.rule == SOME else all(within)

    def shortfall(self, totals: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """By how much totals exceed the caps; empty if they fit."""
        if self.fits(totals):
            return {}
        return {part: totals[part] - size for part, size in self.caps.items() if totals.get(part, 0) > size}

    def charge(self, amount: Any, delta: Any = None) -> dict[str, Fraction]:
        """The components of a typed cost."""
        if self.currency == "rdp":
            raise InvalidInput(f"cost = {amount!r}: a budget in rdp is charged by plans, order by order; give a plan.")
        size = cost("cost", amount)
        if self.currency != "approx":
            if delta is not None and read("cost-delta", delta) > 0:
                raise InvalidInput(f"cost-delta = {delta!r}: a budget in {self.currency} takes none.")
            return {"mu_squared": size * size} if self.currency == "gdp" else {_COMPONENT[self.currency]: size}
        first = {"epsilon": size} if self.rule == "basic" else {"epsilon_squared": size * size}
        chance = Fraction(0) if delta is None else read("cost-delta", delta)
        return {**first, "delta": cost("cost-delta", delta, DELTA_BITS) if chance > 0 else Fraction(0)}

    def guarantee(self) -> dict[str, str | None]:
        """The (epsilon, delta) that holds for everything this budget ever allows."""
        chance = None if self.delta is None else show(self.delta)
        if self.currency == "pure":
            return {"epsilon": show(self.cap), "delta": "0"}
        if self.currency in ("approx", "rdp"):
            return {"epsilon": show(self.cap), "delta": chance}
        if self.delta is None or self.delta == 0:
            return {"epsilon": None, "delta": None}
        find = _zcdp_epsilon if self.currency == "zcdp" else _gdp_epsilon
        return {"epsilon": repr(find(up(self.cap), down(self.delta))), "delta": chance}

    def to_dict(self) -> dict[str, Any]:
        return {
            "currency": self.currency,
            "filter": "basic" if self.rule == EVERY else self.rule,  # as it has always been written
            "cap": show(self.cap),
            "delta": None if self.delta is None else show(self.delta),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Filter:
        rule = data["filter"] if data["filter"] in FILTERS.get(data["currency"], ()) else None
        chance = None if data["delta"] is None else Fraction(data["delta"])
        return cls._of(data["currency"], Fraction(data["cap"]), chance, rule)  # also what older releases have written

    def beneath(self, budget: Filter) -> Filter:
        """The same as a quota beneath a budget: in Renyi DP it holds at the budget's orders that leave it room."""
        if self.currency != "rdp" or budget.currency != "rdp" or self.delta is None:
            return self
        room = {f"order {order}": size for order, size in _rooms(self.cap, self.delta).items() if size > 0}
        return replace(self, caps={part: room[part] for part in budget.caps if part in room})

    def each_period(self, budget: Filter, group: bool) -> Filter:
        """The same as the cap of each period beneath a budget. In Renyi DP a period's best orders are larger ones; a
        dataset's plans are charged at these too (`also`). A group takes what its datasets are charged, at orders of its
        own budget: its periods hold at those that leave room, unless they have no others.

        A Renyi filter holds at any order (Feldman, Zrnic 2021), and the cap at each one is what that order's conversion
        leaves of the target; so the target is guaranteed whichever orders are held, as long as there is one. Where
        *some* order is enough each has its share of delta, and every such budget has all orders.
        """
        return (
            self.beneath(budget) if group and self.rule != SOME and not self.caps.keys() <= budget.caps.keys() else self
        )

    def also(self, period: Filter | None) -> Filter:
        """The components that are charged under a budget and under that of each period."""
        more = {} if period is None or self.currency != "rdp" else period.caps
        return self if more.keys() <= self.caps.keys() else replace(self, caps={**more, **self.caps})

    def limit(self, component: str) -> Fraction | None:
        """The cap that the total of a component never exceeds; none where one of several components is enough."""
        return None if self.rule == SOME else self.caps.get(component)


_COMPONENT = {"pure": "epsilon", "zcdp": "rho"}


def bits_of(component: str) -> int:
    return DELTA_BITS if component == "delta" else BITS


def order_of(component: str) -> float:
    """The order that a component of a budget in rdp is named after."""
    return float(component.split()[1])


def _delta(value: Any) -> Fraction:
    found = read("delta", value)
    if found >= 1:
        raise InvalidInput(f"delta = {value!r}: must be below 1.")
    return found


def _caps(currency: str, rule: str, size: Fraction, delta: Fraction | None) -> dict[str, Fraction]:
    if currency in ("pure", "zcdp"):
        return {_COMPONENT[currency]: size}
    if currency == "gdp":
        return {"mu_squared": size * size}
    chance = delta or Fraction(0)
    if currency == "rdp":
        return _some_caps(size, chance) if rule == SOME else _every_caps(size, chance)
    if rule != "advanced":
        return {"epsilon": size, "delta": chance}
    # sqrt(2 l S) + S/2 <= E with l = ln(2/D): sqrt(S) <= sqrt(2 l + 2 E) - sqrt(2 l); rounded down
    half = float(chance) / 2
    log = math.log(1 / half) * (1 + 1e-12)
    root = 2 * float(size) / (math.sqrt(2 * log + 2 * float(size)) + math.sqrt(2 * log))
    squared = round_down(Fraction(root * root * (1 - 1e-9)), BITS)
    return {"epsilon_squared": squared, "delta": chance / 2}


def _rooms(size: Fraction, delta: Fraction) -> dict[str, Fraction]:
    """At order a: epsilon(a) + log((a-1)/a) - (log delta + log a)/(a-1) <= E (Canonne, Kamath, Steinke 2020); 0 where
    nothing is left."""
    found = {}
    for order in ORDERS:
        a = float(order)
        left = float(size) + (math.log(float(delta)) + math.log(a)) / (a - 1) - math.log1p(-1 / a)
        found[order] = round_down(Fraction(max(left - 1e-9 * (1 + abs(left)), 0.0)), BITS)
    if not any(found.values()):
        raise InvalidInput(f"cap = {show(size)}: no order of {', '.join(ORDERS)} leaves room at this delta.")
    return found


def _every_caps(size: Fraction, delta: Fraction) -> dict[str, Fraction]:
    """Every order of a budget must hold, so only those are kept at which Gaussian noise (epsilon(a) = rho a) may spend
    at least 90 % of what it may spend at the best one."""
    found = _rooms(size, delta)
    best = max(room / Fraction(order) for order, room in found.items())
    return {f"order {order}": room for order, room in found.items() if room / Fraction(order) >= best * _NEARLY}


def _some_caps(size: Fraction, delta: Fraction) -> dict[str, Fraction]:
    """One order must hold, each for an equal share of delta. Orders that leave no room at the smallest share get none
    and a cap of 0, which every charge exceeds."""
    alive = [order for order, room in _rooms(size, delta / len(ORDERS)).items() if room > 0]
    found = _rooms(size, delta / len(alive))
    return {f"order {order}": found[order] if order in alive else Fraction(0) for order in ORDERS}


# Both without the engine, so that looking at a ledger loads none of it; tests compare with the engine.


def _zcdp_epsilon(rho: float, delta: float) -> float:
    """min over a > 1 of rho a + log((a-1)/a) - (log delta + log a)/(a-1), rounded up (Canonne et al. 2020)."""

    def at(log_rest: float) -> float:
        a = 1 + math.exp(log_rest)
        return rho * a + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1)

    best = min((i / 50 for i in range(-500, 1000)), key=at)
    low, high = best - 1 / 50, best + 1 / 50
    for _ in range(60):  # every order gives a bound; this finds the best one near the best of the grid
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if at(first) <= at(second) else (first, high)
    return max(min(at(best), at(low)), 0.0) * (1 + 1e-9) + 1e-12


def _gdp_epsilon(mu: float, delta: float) -> float:
    """delta(e) = Phi(-a) - e^e Phi(-b), a = e/mu - mu/2, b = a + mu (Dong, Roth, Su 2022), solved and rounded up."""
    low, high = 0.0, 40 * mu + mu * mu
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _gdp_delta(mu, middle) <= delta else (middle, high)
    return high * (1 + 1e-9) + 1e-12


def _gdp_delta(mu: float, epsilon: float) -> float:
    """phi(a) (R(a) - R(b)), R the Mills ratio, which keeps its digits where Phi(-b) has none left. For small mu R(a)
    and R(b) cancel; -R' is convex, so that mu times the mean of its end values bounds their difference from above."""
    a, b = epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu
    density = math.exp(-0.5 * a * a) / math.sqrt(2 * math.pi)
    (far, far_slope), (near, near_slope) = _mills(b), _mills(max(a, -1.0))
    if mu < _SMALL:
        return density * mu * 0.5 * (near_slope + far_slope)
    return density * (near - far) if a >= -1 else 0.5 * math.erfc(a / math.sqrt(2)) - density * far


def _mills(x: float) -> tuple[float, float]:
    """R(x) = Phi(-x)/phi(x) and -R'(x) = 1 - x R(x), for x >= -1; from 3 on by R = 1/(x + 1/(x + 2/(x + 3/...)))."""
    if x < 3:
        ratio = 0.5 * math.erfc(x / math.sqrt(2)) * math.sqrt(2 * math.pi) * math.exp(0.5 * x * x)
        return ratio, 1 - x * ratio
    rest = 0.0
    for k in range(_TERMS, 0, -1):
        rest = k / (x + rest)
    return 1 / (x + rest), rest / (x + rest)
