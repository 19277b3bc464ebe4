"""Composition theorems: the figures they give, and that none of them ever lies below the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privloss as pl
from privloss.theorems import composition as comp
from privloss.theorems import conversion
from privloss.theorems.pairs.discrete import DiscretePair

EPS = st.floats(1e-4, 3.0)
DELTA = st.floats(-30.0, -0.7).map(math.exp)


def response(eps: float) -> DiscretePair:
    """Randomised response."""
    likely = 1 / (1 + math.exp(-eps))
    return DiscretePair([likely, 1 - likely], [1 - likely, likely])


def test_figure_at_a_hundred() -> None:
    """k = 100 mechanisms, each 0.1-DP, delta = 1e-6: the figures of the documentation."""
    assert comp.basic(0.1, count=100)[0] == pytest.approx(10, abs=1e-12)
    assert float(comp.optimal_epsilon(0.1, count=100, delta=1e-6)) == pytest.approx(4.774567588, abs=5e-10)
    assert comp.advanced_pure(0.1, count=100, delta=1e-6) == pytest.approx(5.756522, abs=5e-7)
    assert comp.advanced_2010(0.1, count=100, delta=1e-6) == pytest.approx(6.308231, abs=5e-7)
    rho = comp.zcdp(conversion.pure_to_zcdp(0.1), count=100)
    assert conversion.zcdp_to_epsilon(rho, delta=1e-6) == pytest.approx(5.221534, abs=5e-7)


@settings(max_examples=40, deadline=None)
@given(EPS, st.integers(1, 3000), DELTA)
def test_never_below_the_exact_answer(eps: float, k: int, delta: float) -> None:
    exact = (pl.PureDP(eps) * k).epsilon(delta)
    assert comp.basic(eps, count=k)[0] >= exact.lower
    for bound in (comp.advanced_pure, comp.advanced_approx, comp.advanced_2010):
        assert bound(eps, delta=delta, count=k) >= exact.lower
    assert comp.advanced_2010(eps, delta=delta, count=k) >= comp.advanced_approx(eps, delta=delta, count=k)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.01, 0.02, 0.05, 0.3, 1.0]), st.integers(1, 20)),
        min_size=1,
        max_size=3,
        unique_by=lambda t: t[0],
    ),
    st.sampled_from([0.0, 1e-9, 1e-7]),
    DELTA,
)
def test_heterogeneous_with_deltas(steps: list[tuple[float, int]], slack: float, delta: float) -> None:
    eps, count = [e for e, _ in steps], [n for _, n in steps]
    used = slack * sum(count)
    if delta <= used * (1 + 1e-9):
        with pytest.raises(pl.InvalidInput, match="must exceed the sum of the deltas"):
            comp.advanced_approx(eps, slack, delta=delta, count=count)
        return
    exact = comp.boxes(eps, slack, count=count).epsilon(delta)
    assert comp.advanced_approx(eps, slack, delta=delta, count=count) >= exact.lower
    assert comp.advanced_2010(eps, slack, delta=delta, count=count) >= exact.lower
    total = comp.basic(eps, slack, count=count)
    assert comp.boxes(eps, slack, count=count).delta(total[0]).lower <= total[1]


def kov(eps: float, delta: float, k: int, target: float) -> float:
    """delta' of the optimal composition theorem, as printed, summed with mpmath."""
    import mpmath

    with mpmath.workdps(50):
        e = mpmath.mpf(eps)
        total = mpmath.mpf(0)
        for hits in range(k + 1):
            gain = max(mpmath.mpf(0), 1 - mpmath.exp(target - (2 * hits - k) * e))
            total += mpmath.binomial(k, hits) * mpmath.exp(hits * e) * gain
        inner = total / (1 + mpmath.exp(e)) ** k
        return float(1 - (1 - mpmath.mpf(delta)) ** k * (1 - inner))


@pytest.mark.parametrize(
    ("eps", "slack", "k", "at"),
    [(0.1, 0.0, 100, 4.0), (1.0, 1e-6, 30, 12.0), (0.01, 1e-9, 500, 0.3), (3.0, 1e-3, 7, 9.0)],
)
def test_optimal_is_the_printed_formula(eps: float, slack: float, k: int, at: float) -> None:
    found = comp.optimal_delta(eps, slack, epsilon=at, count=k)
    truth = kov(eps, slack, k, at)
    assert found.lower <= truth * (1 + 1e-13)
    assert found.upper >= truth * (1 - 1e-13)
    assert found.upper / found.lower - 1 < 1e-9
    back = comp.optimal_epsilon(eps, slack, delta=found.upper, count=k)
    assert back.lower <= at * (1 + 1e-9)
    assert back.upper >= at * (1 - 1e-9)


@pytest.mark.parametrize("eps", [1e-12, 1e-6, 0.1, 30.0, 700.0])
@pytest.mark.parametrize("k", [1, 1000, 10**9])
def test_extreme_parameters_stay_finite_and_ordered(eps: float, k: int) -> None:
    optimal = comp.optimal_epsilon(eps, count=k, delta=1e-6)
    # both round k eps up, each in its own way
    assert 0 <= optimal.lower <= optimal.upper <= comp.basic(eps, count=k)[0] * (1 + 4e-15)
    advanced = comp.advanced_approx(eps, delta=1e-6, count=k)
    assert optimal.lower <= advanced < math.inf
    assert comp.advanced_2010(eps, delta=1e-6, count=k) >= advanced


def test_vectors() -> None:
    many = comp.advanced_pure(0.1, count=[1, 10, 100], delta=1e-6)
    assert list(many) == [comp.advanced_pure(0.1, count=k, delta=1e-6) for k in (1, 10, 100)]
    deltas = comp.advanced_pure([0.1, 0.2], count=[3, 4], delta=[1e-3, 1e-6])
    assert list(deltas) == [comp.advanced_pure([0.1, 0.2], count=[3, 4], delta=d) for d in (1e-3, 1e-6)]
    bounds = comp.optimal_epsilon(0.1, count=[10, 100], delta=1e-6)
    assert [b.upper for b in bounds] == [float(comp.optimal_epsilon(0.1, count=k, delta=1e-6)) for k in (10, 100)]
    assert comp.rdp([[0.1, 0.2], [0.3, 0.4]], count=[2, 1]) == pytest.approx([0.5, 0.8])
    assert np.all(comp.rdp([[0.1, 0.2]], count=3) >= [0.3, 0.6])


def test_basic_is_tight() -> None:
    found = comp.basic_attained(1.0, count=5)
    assert found.loss == 1.0
    # five releases with Laplace(5) noise: the largest loss is attained with probability 2^-5, so delta just below 1 is
    exact = (pl.Laplace(5.0) * 5).delta(1.0 - 1e-9)
    assert exact.lower == pytest.approx(math.exp(found.log_probability) * -math.expm1(-1e-9), rel=1e-6)
    assert (pl.Laplace(5.0) * 5).delta(1.0).upper < 1e-15  # 5 * 0.2 is 1 up to a rounding


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: comp.basic(-1.0), "epsilons = -1.0"),
        (lambda: comp.basic([0.1, math.nan]), "epsilons[1] = nan"),
        (lambda: comp.basic(0.1, 2.0), "deltas = 2.0"),
        (lambda: comp.basic(0.1, count=0), "count = 0"),
        (lambda: comp.basic(0.1, count=2.5), "count = 2.5"),
        (lambda: comp.basic("0.1"), "epsilons = '0.1'"),
        (lambda: comp.basic([]), "must not be empty"),
        (lambda: comp.basic([0.1, 0.2], count=[1, 2, 3]), "count has 3 entries, epsilons 2"),
        (lambda: comp.advanced_pure(0.1, delta=0), "delta = 0"),
        (lambda: comp.advanced_pure(0.1, delta=1.5), "delta = 1.5"),
        (lambda: comp.advanced_approx(0.1, 1e-6, delta=1e-6), "must exceed the sum"),
        (lambda: comp.optimal_epsilon(0.1, delta=True), "delta = True"),
        (lambda: comp.rdp([[0.1], [0.1, 0.2]]), "same orders"),
    ],
)
def test_bad_input(call: object, words: str) -> None:
    with pytest.raises(pl.InvalidInput) as caught:
        call()  # type: ignore[operator]
    assert words in str(caught.value)
