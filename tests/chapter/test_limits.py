"""What no algorithm can beat: the lower bound, the fingerprinting lemma by enumeration, a tracing attack that runs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privloss as pl
from privloss.theorems import limits, tracing
from privloss.theorems.pairs.discrete import DiscretePair
from tests.chapter.test_pairs import pairs


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fingerprinting_for_every_zero_one_function(n: int) -> None:
    values = [limits.fingerprinting(list(f), n) for f in itertools.product((0, 1), repeat=2**n)]
    assert min(values) >= Fraction(1, 12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.data())
def test_fingerprinting(n: int, data: st.DataObject) -> None:
    f = data.draw(st.lists(st.fractions(0, 1, max_denominator=30), min_size=n + 1, max_size=n + 1))
    assert limits.fingerprinting(f, n) >= Fraction(1, 12)


def test_fingerprinting_examples() -> None:
    """The chapter's two examples: the mean gives 1/6, a constant attains 1/12."""
    for n in (1, 4, 10):
        assert limits.fingerprinting([Fraction(s, n) for s in range(n + 1)], n) == Fraction(1, 6)
        assert limits.fingerprinting([Fraction(1, 2)] * (n + 1), n) == Fraction(1, 12)
    # both ways to give f agree
    assert limits.fingerprinting([0, 1, 1, 1], 2) == limits.fingerprinting([0, 1, 1], 2)


@settings(max_examples=80, deadline=None)
@given(pairs(), st.floats(0, 2), st.data())
def test_indistinguishable_expectation(pair: DiscretePair, eps: float, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(-3, 3), min_size=len(pair.p), max_size=len(pair.p)))
    delta = max(pair.hockey_stick(eps), pair.reversed().hockey_stick(eps))
    mean_x = math.fsum(a * v for a, v in zip(pair.p, values, strict=True))
    mean_y = math.fsum(b * v for b, v in zip(pair.q, values, strict=True))
    size_y = math.fsum(b * abs(v) for b, v in zip(pair.q, values, strict=True))
    assert mean_x <= limits.indistinguishable_mean(mean_y, size_y, 3.0, eps, min(delta, 1.0)) + 1e-12


def test_lower_bound() -> None:
    # the Gaussian mechanism has to obey it: noise sigma per coordinate at (eps, delta)
    n, k, eps, delta = 1000, 10**6, 1.0, 1e-6
    bound = limits.mean_error_lower(n, k, eps, delta)
    assert bound == pytest.approx(math.sqrt(k) / (16 * n * math.expm1(eps)), rel=1e-12)
    needed = next(
        s for s in (0.05 * 1.05**i for i in range(200)) if pl.GDP(math.sqrt(k) / (n * s)).epsilon(delta).upper <= eps
    )
    assert needed >= bound
    assert limits.mean_error_lower(100, 10**8, 1.0, 1e-5) == 0.1


def test_lower_bound_conditions() -> None:
    with pytest.raises(pl.InvalidInput, match=r"must be at most 1/\(100 n\)"):
        limits.mean_error_lower(1000, 10**6, 1.0, 1e-4)
    with pytest.raises(pl.InvalidInput, match=r"must be at least 200 \(e\^eps - 1\)\^2 n"):
        limits.mean_error_lower(1000, 1000, 1.0, 1e-6)
    for bad in (-1e-300, -1.0, math.nan, "1"):
        with pytest.raises(pl.InvalidInput, match="epsilon = "):
            limits.mean_error_lower(1000, 10**6, bad, 1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.2, 0.6, 2.0])
def test_tracing_attack(sigma: float) -> None:
    seen: list[int] = []
    found = tracing.attack(people=50, dimensions=600, sigma=sigma, trials=10_000, seed=7, progress=seen.append)
    assert found.within_bound
    assert seen[-1] == 10_000
    assert found.error == pytest.approx(sigma, rel=0.01, abs=1e-12)
    if sigma == 0:
        assert found.power > 0.9  # the exact mean gives its members away
        assert found.mu == math.inf
    if sigma == 2.0:
        assert found.power < 0.12  # almost the false positive rate


def test_attack_bound_is_the_trade_off_curve() -> None:
    for mu, fpr in ((0.3, 0.05), (2.0, 0.01)):
        assert tracing.largest_power(mu, fpr) == pytest.approx(1 - pl.GDP(mu).tradeoff(fpr).lower, abs=1e-6)
    with pytest.raises(pl.InvalidInput, match="sigma = -1"):
        tracing.attack(10, 10, -1.0)
    with pytest.raises(pl.InvalidInput, match="values has 2 entries"):
        limits.fingerprinting([0, 1], 3)
    with pytest.raises(pl.InvalidInput, match="between 0 and 1"):
        limits.fingerprinting([0, 2], 1)
