"""Odometers: what has been lost so far, valid at any stopping time, even one chosen by looking at the answers.

A filter promises something only about its cap. A running total is no odometer, except for pure DP. The others run
filters of geometrically growing caps side by side, the k-th with failure probability delta / 2^(k+1): at whatever time
one stops, the smallest cap not yet exceeded bounds the privacy loss but with probability delta in all (union bound;
Rogers, Roth, Ullman, Vadhan 2016; Lecuyer 2021). Bounds on the loss itself come from Markov's inequality:
P[Z > rho + 2 sqrt(rho ln(1/d))] <= d under rho-zCDP, P[Z > e + ln(1/d)/(a-1)] <= d under Renyi divergence e of order a.

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
from privloss.ledger.filters import CURRENCIES

SMALLEST = Fraction(1, 1024)  # the first cap of the grid, in rho
_UP = 1 + 1e-12


@dataclass(frozen=True)
class Reading:
    """With probability at least 1 - delta the privacy loss so far is at most epsilon."""

    epsilon: float
    delta: float
    theorem: str


def odometer(currency: str, spent: Mapping[str, Fraction], delta: float | None = None) -> Reading:
    """Read what has been spent (components as a filter charges them) at a failure probability delta."""
    if currency not in CURRENCIES:
        raise InvalidInput(f"currency = {currency!r}: must be one of {', '.join(CURRENCIES)}.")
    if currency == "pure":
        return Reading(_up(spent["epsilon"]), 0.0, "the sum of epsilons bounds the loss surely")
    lost = _up(spent.get("delta", Fraction(0)))
    if currency == "approx" and "epsilon" in spent:
        text = "outside events of probability delta_i each, losses are at most epsilon_i"
        return Reading(_up(spent["epsilon"]), lost, text)
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta < 1:
        raise InvalidInput(f"delta = {delta!r}: an odometer in {currency} needs a failure probability in (0, 1).")
    if currency == "rdp":
        found = min(_renyi(float(name.split()[1]), amount, delta / len(spent)) for name, amount in spent.items())
        return Reading(found, delta, "grid of Renyi filters at every order, union bound")
    rho = {"zcdp": "rho", "gdp": "mu_squared", "approx": "epsilon_squared"}[currency]
    # mu-GDP is mu^2/2-zCDP, epsilon-DP is epsilon^2/2-zCDP
    size = spent[rho] if currency == "zcdp" else spent[rho] / 2
    return Reading(_zcdp(size, delta), min(delta + lost, 1.0), "grid of zCDP filters, union bound")


def _up(value: Fraction) -> float:
    """The least double that is not smaller."""
    found = float(value)
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


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
    k, cap = _grid(spent, SMALLEST * Fraction(order))
    return (cap + (math.log(1 / delta) + (k + 1) * math.log(2)) / (order - 1)) * _UP
