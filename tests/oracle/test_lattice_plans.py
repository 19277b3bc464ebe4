"""Random plans on a lattice against products of polynomials in ball arithmetic: at least 200 of them, three ways."""

from __future__ import annotations

import random

import flint
import pytest

import privloss as pl

PRECISION = 200


def power_series(plan: list[tuple[int, int, float, int]], unit: str) -> tuple[flint.arb_poly, int, flint.arb]:
    """P-masses of the summed loss as a polynomial in x, exponents shifted by `offset`; and the finite mass.

    A step (k, others, delta, n) has losses +-k units and 0, n times.
    """
    flint.ctx.prec = PRECISION
    h = flint.arb(unit)
    product, offset, kept = flint.arb_poly([1]), 0, flint.arb(1)
    for k, others, delta, n in plan:
        d = flint.arb(delta)
        small = (-k * h).exp()
        share = (1 - d) / (1 + (others + 1) * small)
        coefficients = [flint.arb(0)] * (2 * k + 1)
        coefficients[2 * k] += share
        coefficients[0] += share * small
        coefficients[k] += others * share * small
        product *= flint.arb_poly(coefficients) ** n
        offset += k * n
        kept *= (1 - d) ** n
    return product, offset, kept


def delta_of(product: flint.arb_poly, offset: int, kept: flint.arb, unit: str, eps: float) -> flint.arb:
    """delta(eps), infinite losses included."""
    flint.ctx.prec = PRECISION
    h, e, total = flint.arb(unit), flint.arb(eps), flint.arb(0)
    for i in range(product.length()):
        gain = 1 - (e - (i - offset) * h).exp()
        if gain > 0:
            total += product[i] * gain
    return total + 1 - kept


def draw(rng: random.Random) -> tuple[str, list[tuple[int, int, float, int]], pl.Plan]:
    unit = rng.choice(["0.1", "0.01", "0.05", "0.001", "0.25"])
    kinds = rng.randint(1, 6)
    ks = rng.sample(range(1, 40), kinds)
    steps = [(k, rng.choice([0, 0, 0, 1, 4]), rng.choice([0.0, 0.0, 1e-9, 1e-4]), rng.randint(1, 25)) for k in ks]
    made = []
    for k, others, delta, n in steps:
        eps = round(k * float(unit), 6)
        box: pl.Plan | object = (
            pl.ApproxDP(eps, delta) if others == 0 else pl.RandomizedResponse(eps, answers=others + 2)
        )
        made.append((box, n))
    steps = [(k, o, d if o == 0 else 0.0, n) for k, o, d, n in steps]
    return unit, steps, pl.Plan.of(*made)  # type: ignore[arg-type]


@pytest.mark.parametrize("block", range(8))
def test_random_lattice_plans(block: int) -> None:
    rng = random.Random(1000 + block)
    for _ in range(28):
        unit, steps, plan = draw(rng)
        product, offset, kept = power_series(steps, unit)
        top = offset * float(unit)
        for share in (0.02, 0.3):
            eps = share * top
            truth = delta_of(product, offset, kept, unit, eps)
            found = plan.delta(eps)
            # decimals of epsilon are not doubles: the plan's losses differ from the lattice by a few roundings
            nearby = [delta_of(product, offset, kept, unit, eps + s * 1e-15 * (1 + top)) for s in (-1, 1)]
            assert found.lower <= nearby[0], (unit, steps, eps)
            assert found.upper == 1 or found.upper >= nearby[1], (unit, steps, eps)
            if truth > 1e-250:
                assert found.upper <= float(truth) * (1 + 1e-7) + 1e-300
        target = 10.0 ** -rng.uniform(2, 30)
        if target <= float(1 - kept) * 1.000001:
            continue
        bound = plan.epsilon(target)
        slack = 1e-15 * (1 + top)
        assert delta_of(product, offset, kept, unit, bound.upper + slack) <= target * (1 + 1e-14)
        if bound.lower > 0:
            assert delta_of(product, offset, kept, unit, bound.lower - slack) >= target * (1 - 1e-14)
        assert bound.relative_width < 1e-7


def test_the_oracle_knows_the_binomial() -> None:
    product, offset, kept = power_series([(1, 0, 0.0, 100)], "0.1")
    assert abs(float(delta_of(product, offset, kept, "0.1", 4.7745675881079865)) / 1e-6 - 1) < 1e-12
