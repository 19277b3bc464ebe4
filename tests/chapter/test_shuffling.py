"""Shuffled reports: upper ends above every real mechanism, lower ends attained, closed forms above the pair."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import privloss as pl
from privloss.numerics.solve import decreasing_root
from privloss.theorems.shuffle_pair import Law, blanket, held, log_delta

Counts = dict[tuple[int, ...], float]
shuffling = pl.shuffling


def added(counts: Counts, report: list[float]) -> Counts:
    """The count vectors after one more report."""
    found: Counts = defaultdict(float)
    for h, weight in counts.items():
        for j, q in enumerate(report):
            found[(*h[:j], h[j] + 1, *h[j + 1 :])] += weight * q
    return found


def hockey_stick(p: Counts, q: Counts, eps: float) -> float:
    return math.fsum(max(w - math.exp(eps) * q.get(h, 0.0), 0.0) for h, w in p.items())


def worst_deltas(randomiser: list[list[float]], n: int, eps: list[float]) -> list[float]:
    """delta of the real shuffled reports: all values of the others, all pairs of values of the one, all counts."""
    worst = [0.0] * len(eps)
    for others in itertools.combinations_with_replacement(randomiser, n - 1):
        base: Counts = {(0,) * len(randomiser[0]): 1.0}
        for report in others:
            base = added(base, report)
        outputs = [added(base, report) for report in randomiser]
        for p, q in itertools.permutations(outputs, 2):
            worst = [max(w, hockey_stick(p, q, e)) for w, e in zip(worst, eps, strict=True)]
    return worst


def response(eps0: float, k: int) -> list[list[float]]:
    e = math.exp(eps0)
    return [[(e if i == j else 1) / (e + k - 1) for j in range(k)] for i in range(k)]


SHARES = [0.0, 0.1, 0.5, 0.99]


@pytest.mark.parametrize("eps0", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 2), (2, 8), (3, 2), (3, 5), (4, 2), (4, 4), (5, 3)])
def test_real_randomised_response_lies_inside(eps0: float, k: int, n: int) -> None:
    eps = [share * eps0 for share in SHARES]
    for e, true in zip(eps, worst_deltas(response(eps0, k), n, eps), strict=True):
        found = shuffling.numerical_delta(eps0, n, e, k)
        assert found.lower <= true * (1 + 1e-12)
        assert true * (1 - 1e-12) <= found.upper


def test_hiding_the_other_answers_would_be_unsound() -> None:
    """Counting only the two answers that matter, among Bin(n-1, 2p) reports, is below the truth for 3 answers."""
    eps0, eps, k, n = 2.0, 1.9, 3, 4
    p = 1 / (math.exp(eps0) + k - 1)
    base: Counts = {(0, 0, 0): 1.0}
    for _ in range(n - 1):
        base = added(base, [p, p, 1 - 2 * p])
    large = math.exp(eps0) * p
    hidden = hockey_stick(added(base, [large, p, 1 - p - large]), added(base, [p, large, 1 - p - large]), eps)
    true = worst_deltas(response(eps0, k), n, [eps])[0]
    assert hidden < 0.1 * true <= 0.1 * shuffling.numerical_delta(eps0, n, eps, k).upper


@st.composite
def randomisers(draw: st.DrawFn) -> list[list[float]]:
    """Two or three values, up to four outputs, ratios anywhere or at the ends of what eps0 allows."""
    size, values = draw(st.integers(2, 4)), draw(st.integers(2, 3))
    eps0 = draw(st.sampled_from([0.3, 1.0, 2.5]))
    power = st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.0]) | st.floats(0, 1)
    common = [10 ** draw(st.floats(-2, 0)) for _ in range(size)]
    rows = [[c * math.exp(eps0 * draw(power)) for c in common] for _ in range(values)]
    return [[x / math.fsum(row) for x in row] for row in rows]


@settings(max_examples=15, deadline=None)
@given(randomisers(), st.integers(1, 4))
def test_any_local_randomiser_lies_below(randomiser: list[list[float]], n: int) -> None:
    columns = list(zip(*randomiser, strict=True))
    eps0 = max(math.log(max(c) / min(c)) for c in columns) * (1 + 1e-14) + 1e-14
    eps = [share * eps0 for share in (0.0, 0.2, 0.8)]
    for e, true in zip(eps, worst_deltas(randomiser, n, eps), strict=True):
        assert true - 1e-14 <= shuffling.numerical_delta(eps0, n, e).upper


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 6), st.floats(0, 0.99), st.floats(0, 1))
def test_binary_response_is_largest_in_convex_order(eps0: float, share: float, less: float) -> None:
    """Why no randomiser is worse: fewer extreme outcomes, the rest at ratio 1, make X smaller in convex order."""
    e, grown = math.exp(eps0), math.exp(share * eps0)
    values = [e - grown, 1 - e * grown, e * (1 - grown), 0.0]

    def masses(q: float) -> list[float]:
        middle = (1 - (e + 1) * q) / e
        return [q, q, middle, 1 - 2 * q - middle]

    def beyond(mass: list[float], at: float) -> float:
        return math.fsum(m * max(v - at, 0.0) for m, v in zip(mass, values, strict=True))

    most, fewer = masses(1 / (e + 1)), masses(less / (e + 1))
    for at in values:
        assert beyond(fewer, at) <= beyond(most, at) + 1e-12 * e * e
    assert beyond(fewer, -2 * e * e) == pytest.approx(beyond(most, -2 * e * e), rel=1e-12)  # equal means
    law = blanket(eps0, share * eps0, 2)
    assert sorted(v * e for v in law.values) == pytest.approx(sorted({values[0], values[1], 0.0}), rel=1e-9, abs=1e-9)


def exact_log_delta(eps0: float, eps: float, k: int, n: int, which: str) -> Any:
    """E[(X_1 + ... + X_n)_+]/n term by term with 40 digits, from the definition (R(x0) - e^eps R(x1)) / w."""
    with mpmath.workdps(40):
        e, grown = mpmath.exp(mpmath.mpf(eps0)), mpmath.exp(mpmath.mpf(eps))
        p = 1 / (e + k - 1)
        zero, one = [e * p, p, p, p], [p, e * p, p, p]
        sizes = [1, 1, 1, k - 3] if k > 2 else [1, 1, 0, 0]  # x0, x1, a third answer, the others
        under = {"blanket": [p, p, p, p], "x0": [e * p, p, p, p], "third": [p, p, e * p, p]}[which]
        values = [(a - grown * b) / w for a, b, w in zip(zero, one, under, strict=True)] + [mpmath.mpf(0)]
        masses = [w * size for w, size in zip(under, sizes, strict=True)]
        masses.append(1 - mpmath.fsum(masses))
        total = mpmath.mpf(0)
        for counts in itertools.product(range(n + 1), repeat=4):
            left = n - sum(counts)
            if left >= 0:
                every = (*counts, left)
                ways = math.factorial(n) // math.prod(math.factorial(c) for c in every)
                chance = mpmath.fprod(m**c if c else 1 for m, c in zip(masses, every, strict=True))
                total += ways * chance * max(mpmath.fsum(c * v for c, v in zip(every, values, strict=True)), 0)
        return mpmath.log(total / n)


@pytest.mark.parametrize("which", ["blanket", "x0", "third"])
@pytest.mark.parametrize(
    ("eps0", "share", "k", "n"),
    [(1e-6, 0.1, 3, 6), (0.3, 0.0, 4, 6), (1.0, 0.5, 2, 7), (1.0, 0.3, 3, 1), (4.0, 0.9, 5, 5), (9.0, 0.5, 1000, 6),
     (2.0, 1 - 1e-12, 3, 6), (15.0, 0.7, 3, 5)],
)  # fmt: skip
def test_sums_contain_the_exact_value(eps0: float, share: float, k: int, n: int, which: str) -> None:
    eps, target = share * eps0, {"blanket": blanket, "x0": held, "third": held}[which]
    if which == "third" and k == 2:
        assert len(held(eps0, eps, 2)) == 1
        return
    law = target(eps0, eps, k)
    chosen: Law = law if isinstance(law, Law) else law[["x0", "third"].index(which)]
    low, high = log_delta(chosen, eps0, n)
    true = exact_log_delta(eps0, eps, k, n, which)
    assert mpmath.mpf(low) <= true <= mpmath.mpf(high)
    assert high - low < 1e-3


def pair_delta(eps0: float, n: int, eps: float) -> float:
    """The 2023 pair by its definition: C ~ Bin(n-1, 2p), A ~ Bin(C, 1/2), and one more report of either kind."""
    e, total = math.exp(eps0), 0.0
    for c in range(n):
        weight = binom.pmf(c, n - 1, 2 / (e + 1))
        if weight > 1e-18:
            a = np.arange(c + 2)
            more, fewer = binom.pmf(a - 1, c, 0.5), binom.pmf(a, c, 0.5)
            gap = (e * more + fewer - math.exp(eps) * (more + e * fewer)) / (e + 1)
            total += weight * np.maximum(gap, 0.0).sum()
    return total


@pytest.mark.parametrize(("eps0", "n", "eps"), [(1.0, 300, 0.1), (3.0, 2000, 0.3), (5.0, 1000, 2.0), (0.2, 500, 0.02)])
def test_the_explicit_pair(eps0: float, n: int, eps: float) -> None:
    found = shuffling.numerical_delta(eps0, n, eps).upper
    assert found == pytest.approx(pair_delta(eps0, n, eps), rel=2e-5)
    assert found >= pair_delta(eps0, n, eps) * (1 - 1e-11)


def test_the_published_figure() -> None:
    """apple/ml-shuffling-amplification prints 0.16753... to 0.17279... for its pair of 2021, C ~ Bin(n-1, e^-eps0)."""
    eps0, n, delta = 4.0, 100_000, 1e-6

    def log_upper(eps: float) -> float:
        rare = math.exp(-eps0)
        up, down = -2 * math.expm1(eps - eps0) / (1 + rare), 2 * (rare - math.exp(eps)) / (1 + rare)
        return log_delta(Law((0.0, up, down), (1 - rare, rare / 2, rare / 2)), eps0, n)[1]

    upper = decreasing_root(lambda eps: (math.inf, log_upper(eps)), (math.log(delta),) * 2, 0.2)[1]
    assert 0.1675385583317841 <= upper <= 0.172790550755978
    assert shuffling.numerical_epsilon(eps0, n, delta).upper < upper < shuffling.clones(eps0, n, delta)


@pytest.mark.parametrize("delta", [1.0, 1e-6, 1e-60])
@pytest.mark.parametrize("eps0", [1e-3, 1.0, 6.0])
def test_the_closed_form_is_above_the_pair(eps0: float, delta: float) -> None:
    least = math.ceil((math.exp(eps0) + 1) * 8 * math.log(2 / delta)) + 1  # the fewest people that it allows
    for n in (least, 100 * least):
        eps = shuffling.stronger(eps0, n, delta)
        assert eps <= eps0
        assert shuffling.numerical_delta(eps0, n, eps).upper <= delta
    with pytest.raises(pl.InvalidInput, match="not proven"):
        shuffling.stronger(eps0, max(least // 2, 1), delta)


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 10), st.integers(10**7, 10**12), st.floats(-12, -0.01))
def test_stronger_is_stronger(eps0: float, n: int, log_delta: float) -> None:
    delta = 10**log_delta
    e = math.exp(eps0)
    printed = math.log(1 + (e - 1) * (4 * math.sqrt(2 * math.log(4 / delta) / ((e + 1) * n)) + 4 / n))
    found = shuffling.stronger(eps0, n, delta)
    assert found == pytest.approx(min(printed, eps0), rel=1e-6, abs=1e-15)
    assert found >= min(printed, eps0) - 1e-15
    try:
        assert found <= shuffling.clones(eps0, n, delta) * (1 + 1e-12)
    except pl.InvalidInput:  # the older theorem asks for more people
        assert eps0 > math.log(n / (16 * math.log(2 / delta)))


ANSWERS = st.sampled_from([None, 2, 3, 10, 1000])
CLOSE = 1 + 1e-4  # the pairs are monotone, the intervals around them have a width


@settings(max_examples=12, deadline=None)
@given(st.floats(0.01, 8), st.integers(1, 10**7), st.floats(0, 0.9), ANSWERS, st.floats(1.01, 3))
def test_delta_is_monotone(eps0: float, n: int, share: float, k: int | None, factor: float) -> None:
    eps = share * eps0 / math.sqrt(n)
    here = shuffling.numerical_delta(eps0, n, eps, k)
    assert 0 < here.lower <= here.upper <= 1
    assert shuffling.numerical_delta(eps0, math.ceil(n * factor), eps, k).upper <= here.upper * CLOSE
    assert shuffling.numerical_delta(eps0, n, eps * factor, k).upper <= here.upper * CLOSE
    assert here.upper <= shuffling.numerical_delta(eps0 * factor, n, eps, k).upper * CLOSE
    assert here.upper <= shuffling.numerical_delta(eps0, n, eps).upper * CLOSE  # one of all local randomisers


@settings(max_examples=3, deadline=None, phases=(Phase.explicit, Phase.generate))  # shrinking would take minutes
@example(1.0, 1000, -6.0, None)
@given(st.floats(0.01, 8), st.integers(1, 10**7), st.floats(-12, -1), ANSWERS)
def test_epsilon_solves_delta(eps0: float, n: int, log_delta: float, k: int | None) -> None:
    delta = 10**log_delta
    found = shuffling.numerical_epsilon(eps0, n, delta, k)
    assert 0 <= found.lower <= found.upper <= eps0
    assert shuffling.numerical_delta(eps0, n, found.upper, k).upper <= delta * (1 + 1e-12)
    assert found.lower == 0 or shuffling.numerical_delta(eps0, n, found.lower, k).lower >= delta * (1 - 1e-12)
    assert found.upper >= shuffling.numerical_epsilon(eps0, n, min(2 * delta, 1.0), k).upper * (1 - 1e-6)


@pytest.mark.parametrize(("eps0", "n"), [(1.0, 10**5), (10.0, 10**7), (2.0, 10**12)])
def test_intervals_are_narrow(eps0: float, n: int) -> None:
    assert shuffling.numerical_epsilon(eps0, n, 1e-9, 10).relative_width < 1e-4
    assert shuffling.numerical_epsilon(eps0, n, 1e-9).relative_width < 0.2


def test_at_the_ends() -> None:
    assert shuffling.numerical_delta(1.0, 10, 1.0) == pl.Bound(0.0, 0.0)
    assert shuffling.numerical_delta(0.0, 10, 0.0) == pl.Bound(0.0, 0.0)
    assert shuffling.numerical_epsilon(0.0, 10, 0.1) == pl.Bound(0.0, 0.0)
    assert shuffling.numerical_epsilon(1.0, 10, 1.0) == pl.Bound(0.0, 0.0)
    assert shuffling.stronger(0.0, 1000, 0.1) == 0.0
    alone = (math.e - math.exp(0.5)) / (math.e + 1)  # one person: nothing to hide among
    assert shuffling.numerical_delta(1.0, 1, 0.5).upper == pytest.approx(alone, rel=1e-13)
    assert shuffling.numerical_delta(1.0, 1, 0.5).relative_width < 1e-10
    assert 0 < shuffling.numerical_delta(1e-200, 10, 0.0).upper <= 1e-200
    assert 1e-92 < shuffling.numerical_delta(1e-90, 10, 0.0).lower < 1e-90
    assert shuffling.numerical_delta(100.0, 10**6, 1.0).lower > 1 - 1e-9
    assert shuffling.numerical_delta(1.0, 10**12, 0.5).upper <= 1e-300


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, True, [1.0], -1.0, 1j, 1000.0], ids=repr)
def test_bad_numbers(value: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: shuffling.stronger(value, 10**6, 1e-6),
        lambda: shuffling.stronger(1.0, 10**6, value),
        lambda: shuffling.numerical_delta(value, 100, 0.1),
        lambda: shuffling.numerical_epsilon(value, 100, 0.1),
        lambda: shuffling.numerical_epsilon(1.0, 100, value),
    ]
    if value != 1000.0:
        calls.append(lambda: shuffling.numerical_delta(1.0, 100, value))
    for call in calls:
        with pytest.raises(pl.InvalidInput, match=r"local_epsilon = |delta = |epsilon = "):
            call()


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", True, [1], 0, -3, 2.5, 10**13], ids=repr)
def test_bad_counts(value: Any) -> None:
    for call, name in [
        (lambda: shuffling.stronger(1.0, value, 1e-6), "people"),
        (lambda: shuffling.numerical_delta(1.0, value, 0.1), "people"),
        (lambda: shuffling.numerical_epsilon(1.0, value, 0.1), "people"),
        (lambda: shuffling.numerical_delta(1.0, 10, 0.1, value), "answers"),
        (lambda: shuffling.numerical_epsilon(1.0, 10, 0.1, value), "answers"),
    ]:
        with pytest.raises(pl.InvalidInput, match=f"{name} = "):
            call()


def test_other_refusals() -> None:
    with pytest.raises(pl.InvalidInput, match="answers = 1: must be at least 2"):
        shuffling.numerical_delta(1.0, 10, 0.1, answers=1)
    with pytest.raises(pl.InvalidInput, match="delta = 0"):
        shuffling.numerical_epsilon(1.0, 10, 0)
    with pytest.raises(pl.InvalidInput, match="people = None"):
        shuffling.numerical_epsilon(1.0, None, 0.1)  # type: ignore[arg-type]
    with pytest.raises(
        pl.InvalidInput, match=r"local_epsilon = 9.0: must be at most log\(n / \(8 log\(2/delta\)\) - 1\)"
    ):
        shuffling.stronger(9.0, 10**5, 1e-6)
    with pytest.raises(pl.InvalidInput, match="-inf"):
        shuffling.stronger(0.1, 1, 1e-6)
