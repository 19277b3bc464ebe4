"""Odometers: what has been lost so far, valid at any stopping time, even one chosen by looking at the answers.

A filter promises something only about its cap. A running total is no odometer, except for pure DP. The others run
filters of geometrically growing caps side by side, the k-th with failure probability delta / 2^(k+1): at whatever time
one stops, the smallest cap not yet exceeded bounds the privacy loss except with probability delta in all (union bound;
Rogers, Roth, Ullman, Vadhan 2016; Lecuyer 2021). Bounds on the loss itself come from Markov's inequality:
P[Z > rho + 2 sqrt(rho ln(1/d))] <= d under rho-zCDP, P[Z > e + ln(1/d)/(a-1)] <= d under Renyi divergence e of order a.

(epsilon, delta)-DP does not bound the loss Z like this: randomised response of epsilon 1 is (0.9, 0.07)-DP, and its
loss is 1 with probability 0.73. But whatever is (epsilon_i, delta_i)-DP can be computed from the answer of a mechanism
that fails, and tells all, with probability delta_i, and otherwise loses at most epsilon_i (Kairouz, Oh, Viswanath
2017). With deltas in play a reading bounds the loss of *those* answers: P[Z > epsilon] <= delta for them, so if a
stopping rule keeps readings within an (epsilon, delta) fixed beforehand, what was released is (epsilon, delta)-DP. That
is all a reading of an approximate budget claims. Gaussian noise of multiplier 1 is (4.38, 1e-5)-DP, and its loss is
larger than 4.38 with probability 5.3e-5.

>>> reading = odometer("pure", {"epsilon": Fraction(1, 4)})
>>> reading.epsilon, reading.delta
(0.25, 0.0)
>>> odometer("zcdp", {"rho": Fraction(1, 100)}, delta=1e-6).epsilon > 2 * (0.01 * 13.8) ** 0.5
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from privloss.errors import InvalidInput
from privloss.ledger.amounts import up
from privloss.ledger.filters import CURRENCIES, INFINITE, order_of

SMALLEST = Fraction(1, 1024)  # the first cap of the grid, in rho
_UP = 1 + 1e-12


@dataclass(frozen=True)
class Reading:
    """What was lost so far; `text` says it in words.

    Except with probability `delta` the privacy loss so far is at most `epsilon`. If (epsilon_i, delta_i)-DP answers
    with delta_i > 0 are among those counted (`dominated`), that holds only for answers they can be computed from, each
    of which fails with its delta_i: what is claimed then is (epsilon, delta)-DP of what was released.
    """

    epsilon: float
    delta: float
    theorem: str
    dominated: bool = False

    @property
    def text(self) -> str:
        if self.delta == 0:
            return f"the privacy loss so far is at most {self.epsilon!r}, surely"
        if not self.dominated:
            return f"the privacy loss so far is at most {self.epsilon!r}, except with probability {self.delta!r}"
        return (
            f"what was released so far is ({self.epsilon!r}, {self.delta!r})-DP, if the rule for stopping has kept to "
            "these numbers from the start; the privacy loss itself may exceed epsilon with a probability above delta"
        )


def odometer(currency: str, spent: Mapping[str, Fraction], delta: float | None = None) -> Reading:
    """Read what has been spent (components as a filter charges them) at a failure probability delta."""
    if currency not in CURRENCIES:
        raise InvalidInput(f"currency = {currency!r}: must be one of {', '.join(CURRENCIES)}.")
    if currency == "pure":
        return Reading(up(spent["epsilon"]), 0.0, "the sum of epsilons bounds the loss surely")
    lost = up(spent.get("delta", Fraction(0)))
    if currency == "approx" and "epsilon" in spent:
        text = "outside failures of probability delta_i each, dominating losses are at most epsilon_i"
        return Reading(up(spent["epsilon"]), lost, text, dominated=lost > 0)
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta < 1:
        raise InvalidInput(f"delta = {delta!r}: an odometer in {currency} needs a failure probability in (0, 1).")
    if currency == "rdp":
        found = min(_renyi(order_of(name), amount, delta / len(spent)) for name, amount in spent.items())
        return Reading(found, delta, "grid of Renyi filters at every order, union bound")
    rho = {"zcdp": "rho", "gdp": "mu_squared", "approx": "epsilon_squared"}[currency]
    # mu-GDP is mu^2/2-zCDP, epsilon-DP is epsilon^2/2-zCDP
    size = spent[rho] if currency == "zcdp" else spent[rho] / 2
    text = "grid of zCDP filters, union bound" + (", outside failures of probability delta_i each" if lost else "")
    chance = min(up(Fraction(delta) + spent.get("delta", Fraction(0))), 1.0)
    return Reading(_zcdp(size, delta), chance, text, dominated=lost > 0)


def _grid(spent: Fraction, first: Fraction) -> tuple[int, float]:
    """The smallest k with spent <= first 2^k, and that cap."""
    k = 0
    while first * 2**k < spent:
        k += 1
    return k, float(first) * 2.0**k


def _zcdp(rho: Fraction, delta: float) -> float:
    if rho == 0:
        return 0.0
    k, cap = _grid(rho, SMALLEST)
    return (cap + 2 * math.sqrt(cap * (math.log(1 / delta) + (k + 1) * math.log(2)))) * _UP


def _renyi(order: float, spent: Fraction, delta: float) -> float:
    if spent == 0:
        return 0.0
    if spent >= INFINITE:  # some plan's divergence was: nothing is known at this order
        return math.inf
    k, cap = _grid(spent, SMALLEST * Fraction(order))
    return (cap + (math.log(1 / delta) + (k + 1) * math.log(2)) / (order - 1)) * _UP
