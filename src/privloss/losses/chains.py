"""Chains of neighbours: what k people, or k changes one after the other, make of a guarantee.

>>> approx(1.0, 1e-6, people=2)
(2.000000000000..., 3.71828182...e-06)
"""

from __future__ import annotations

import math
from typing import Any

from privloss.numerics import check
from privloss.numerics.arrays import numbers, plain
from privloss.numerics.floats import rounded_up


def pure(epsilon: Any, people: int) -> Any:
    """A group of k people: k epsilon."""
    return plain(rounded_up(check.count("people", people) * numbers("epsilon", epsilon, low=0), 1 if people > 1 else 0))


def approx(epsilon: float, delta: float, people: int) -> tuple[float, float]:
    """(k eps, delta (1 + e^eps + ... + e^((k-1) eps))): P <= e^eps P1 + delta <= e^2eps P2 + e^eps delta + delta ...

    For two people, which covers the replacement of one record by way of its removal, (2 eps, (1 + e^eps) delta).
    """
    eps, slack = check.number("epsilon", epsilon, low=0), check.number("delta", delta, low=0, high=1)
    k = check.count("people", people)
    if k == 1 or slack == 0:
        return float(pure(eps, k)), slack
    log_sum = math.log(k) if eps == 0 else (k - 1) * eps + math.log(-math.expm1(-k * eps) / -math.expm1(-eps))
    grown = math.exp(min(log_sum + math.log(slack), 0.0)) * (1 + 1e-14 * (1 + abs(log_sum) + abs(math.log(slack))))
    return float(pure(eps, k)), min(grown, 1.0)


def zcdp(rho: Any, people: int) -> Any:
    """k^2 rho: part 7 of Lem. rdp_properties, applied k - 1 times."""
    k = check.count("people", people)
    return plain(rounded_up(float(k) ** 2 * numbers("rho", rho, low=0), 2 if k > 1 else 0))
