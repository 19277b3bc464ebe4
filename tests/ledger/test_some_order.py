"""Renyi budgets that spend at some order: the theorem by brute force over adaptive strategies, and what is recorded."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

import privloss as pl
from privloss.ledger.filters import INFINITE, ORDERS, Filter, order_of
from privloss.ledger.odometers import odometer
from privloss.ledger.pricing import price

Pairs = tuple[tuple[float, float], ...]  # probabilities of the outcomes under either neighbour
BUDGET = Filter.of("rdp", "3", "1e-6", "some")
DEPTH = 4


def response(eps: float) -> Pairs:
    p = 1 / (1 + math.exp(-eps))
    return (p, 1 - p), (1 - p, p)


def rare(chance: float, loss: float) -> Pairs:
    """Loses much, seldom."""
    low = chance * math.exp(-loss)
    return (chance, low), (low, chance), (1 - chance - low, 1 - chance - low)


def divergence(pairs: Pairs, a: float) -> float:
    """The larger of both directions."""
    found = []
    for each in (pairs, _swapped(pairs)):
        logs = [a * math.log(p) + (1 - a) * math.log(q) for p, q in each]
        found.append(max(logs) + math.log(sum(math.exp(x - max(logs)) for x in logs)))
    return max(found) / (a - 1)


def _swapped(pairs: Pairs) -> Pairs:
    return tuple((q, p) for p, q in pairs)


Rule = Callable[[list[bool]], bool]


def worst(steps: Sequence[Pairs], orders: Sequence[float], caps: Sequence[float], eps: float, rule: Rule) -> float:
    """delta(eps) of the best adaptive strategy that a filter lets through: a next step may depend on all outcomes."""
    costs = [[divergence(step, a) for a in orders] for step in steps]

    def value(p: float, q: float, totals: tuple[float, ...], left: int) -> float:
        best = max(p - math.exp(eps) * q, 0.0)
        for step, cost in zip(steps, costs, strict=True) if left else ():
            new = tuple(t + c for t, c in zip(totals, cost, strict=True))
            if rule([t <= k * (1 + 1e-12) for t, k in zip(new, caps, strict=True)]):
                best = max(best, sum(value(p * a, q * b, new, left - 1) for a, b in step))
        return best

    return value(1.0, 1.0, (0.0,) * len(orders), DEPTH)


def random_case(seed: int) -> tuple[list[Pairs], tuple[float, float], tuple[float, float], float]:
    """A small step, and two large ones: one order lets the first of them through, the other the second."""
    draw = random.Random(seed)
    small, large = response(draw.uniform(0.05, 1)), response(draw.uniform(1, 4))
    steps = [small, large, rare(draw.uniform(0.02, 0.3), draw.uniform(3, 8))]
    orders = (1.25, 32.0)
    low, high = ([divergence(step, a) for step in steps] for a in orders)
    return steps, orders, (low[0] + low[2], high[0] + high[1]), draw.uniform(1, 4)


@pytest.mark.parametrize("seed", range(150))
def test_the_sum_over_the_orders_bounds_every_strategy(seed: int) -> None:
    """delta of "some" is at most the sum of what each order's own filter lets through, in many adaptive games."""
    steps, orders, caps, eps = random_case(seed)
    alone = [worst(steps, (a,), (cap,), eps, all) for a, cap in zip(orders, caps, strict=True)]
    together = worst(steps, orders, caps, eps, any)
    assert max(alone) * (1 - 1e-12) <= together <= sum(alone) * (1 + 1e-12)
    assert worst(steps, orders, caps, eps, all) <= min(alone) * (1 + 1e-12)


def test_one_orders_delta_for_all_would_be_wrong() -> None:
    """Planted: caps at delta instead of delta/m. Which order survives depends on the answers, and delta is larger than
    that of any single order's filter."""
    steps = [response(0.5), response(2.5), rare(0.2, 6.0)]
    orders = (1.25, 32.0)
    low, high = ([divergence(step, a) for step in steps] for a in orders)
    caps = low[0] + low[2], high[0] + high[1]
    gain = []
    for eps in (2.0, 2.3, 2.6):
        alone = [worst(steps, (a,), (cap,), eps, all) for a, cap in zip(orders, caps, strict=True)]
        gain.append(worst(steps, orders, caps, eps, any) / max(alone))
    assert max(gain) > 1.2


@pytest.mark.parametrize("seed", range(20))
def test_what_it_promises_holds_for_adaptive_strategies(seed: int) -> None:
    budget, (steps, _, _, _) = Filter.of("rdp", "2", "0.05", "some"), random_case(seed)
    orders, caps = [order_of(name) for name in budget.caps], [float(cap) for cap in budget.caps.values()]
    assert worst(steps, orders, caps, 2.0, any) <= 0.05


def test_caps_are_those_of_a_share_of_delta() -> None:
    """Every order alone gives (3, 1e-6/m), m the number of orders that leave room."""
    assert list(BUDGET.caps) == [f"order {order}" for order in ORDERS]
    alive = [name for name, cap in BUDGET.caps.items() if cap > 0]
    assert 2 < len(alive) < len(ORDERS)
    for name in alive:
        box = pl.RDP(orders=[order_of(name)], epsilons=[float(BUDGET.caps[name])])
        found = box.epsilon(1e-6 / len(alive)).upper
        assert 3 * (1 - 1e-6) <= found <= 3 * (1 + 1e-12)
    with pytest.raises(pl.InvalidInput, match="leaves room"):
        Filter.of("rdp", "0.001", "1e-9", "some")


def test_how_it_is_written() -> None:
    assert BUDGET.to_dict()["filter"] == "some"
    assert Filter.from_dict(BUDGET.to_dict()) == BUDGET
    assert BUDGET.name == "rdp some"
    assert "some order" in BUDGET.theorem
    every = Filter.of("rdp", "3", "1e-6")
    assert every == Filter.of("rdp", "3", "1e-6", "every")
    assert every.to_dict()["filter"] == "basic"  # as older releases have written it
    assert Filter.from_dict(every.to_dict()) == every
    assert every.guarantee() == BUDGET.guarantee() == {"epsilon": "3", "delta": "0.000001"}


def test_some_order_is_enough() -> None:
    caps = dict(BUDGET.caps)
    over = {name: cap + Fraction(1, 100) for name, cap in caps.items()}
    assert BUDGET.fits(caps)
    assert BUDGET.shortfall(caps) == {}
    assert not BUDGET.fits(over)
    assert BUDGET.shortfall(over) == dict.fromkeys(caps, Fraction(1, 100))
    for name, cap in caps.items():
        one = {**over, name: cap}
        assert BUDGET.fits(one)
        assert BUDGET.shortfall(one) == {}


@pytest.mark.parametrize(
    "budget",
    [
        Filter.of("pure", "1"), Filter.of("approx", "1", "1e-6"), Filter.of("approx", "1", "1e-6", "advanced"),
        Filter.of("zcdp", "1"), Filter.of("gdp", "1"), Filter.of("rdp", "3", "1e-6"),
    ],
)  # fmt: skip
def test_all_other_budgets_need_every_component(budget: Filter) -> None:
    caps = dict(budget.caps)
    assert budget.fits(caps)
    assert budget.shortfall(caps) == {}
    for name, cap in caps.items():
        over = {**caps, name: cap + Fraction(1, 2**62)}
        assert not budget.fits(over)
        assert budget.shortfall(over) == {name: Fraction(1, 2**62)}


def test_infinite_divergences_are_recorded() -> None:
    """A box that is known up to order 16 is charged there, and gives up the orders beyond."""
    box = pl.RDP([4, 16], [0.01, 0.05])
    charge = price(box.as_plan(), BUDGET)
    assert {name for name, amount in charge.items() if amount == INFINITE} == {
        f"order {order}" for order in ORDERS if float(order) > 16
    }
    assert charge["order 16"] == pytest.approx(0.05)
    assert BUDGET.fits(charge)
    assert all(cap < INFINITE for cap in Filter.of("rdp", "1000000", "0.5", "some").caps.values())
    with pytest.raises(pl.Unsupported, match="infinite"):
        price(box.as_plan(), Filter.of("rdp", "0.5", "1e-6"))  # every order must hold
    with pytest.raises(pl.Unsupported, match="infinite"):
        price(pl.ApproxDP(0.1, 1e-9).as_plan(), BUDGET)  # no order is finite


def test_an_odometer_reads_no_order_that_was_given_up() -> None:
    charge = price(pl.RDP([4, 16], [0.01, 0.05]).as_plan(), BUDGET)
    found = odometer("rdp", charge, 1e-6)
    finite = {name: amount for name, amount in charge.items() if amount < INFINITE}
    fewer = odometer("rdp", finite, 1e-6 * len(finite) / len(charge))  # the same share of delta for each
    assert found.epsilon == pytest.approx(fewer.epsilon, rel=1e-9)
    assert odometer("rdp", dict.fromkeys(charge, INFINITE), 1e-6).epsilon == math.inf
    assert odometer("rdp", dict.fromkeys(charge, 3 * INFINITE), 1e-6).epsilon == math.inf


def test_what_it_gains() -> None:
    """Analyses that are cheap at other orders than those of Gaussian noise."""
    every = Filter.of("rdp", "3", "1e-6")
    counts = {}
    for budget in (every, BUDGET):
        charge, count = price(pl.RandomizedResponse(0.2).as_plan(), budget), 0
        while budget.fits({name: (count + 1) * amount for name, amount in charge.items()}):
            count += 1
        counts[budget.rule] = count
    assert counts["some"] > counts["every"] > 0
