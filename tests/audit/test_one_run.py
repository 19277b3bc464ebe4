"""Canaries of one run: the tail equals a programme over all mechanisms, bounds are those of the formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

import privloss as pl
from privloss.audit.canaries import claim_p, decided_by_data, exact_tail, perfect
from privloss.audit.claim import Claim, read_claim
from privloss.audit.curve import recursion_tail
from privloss.numerics.bound import exactly


def best_mechanism(m: int, v: int, eps: float, delta: float) -> float:
    """max P[V >= v] over all (eps, delta)-DP laws of m guesses given m fair coins: one linear programme."""
    words = list(itertools.product((0, 1), repeat=m))
    n = len(words)
    pairs = [
        (i, j) for i in range(n) for j in range(n) if sum(a != b for a, b in zip(words[i], words[j], strict=True)) == 1
    ]
    laws, slacks = n * n, len(pairs) * n
    goal = np.zeros(laws + slacks)
    for i, coins in enumerate(words):
        for o, guess in enumerate(words):
            goal[i * n + o] = -(sum(a == b for a, b in zip(coins, guess, strict=True)) >= v) / n
    rows, ends = [], []
    for k, (i, j) in enumerate(pairs):
        for o in range(n):  # slack >= P[o | i] - e^eps P[o | j]
            row = np.zeros(laws + slacks)
            row[i * n + o], row[j * n + o], row[laws + k * n + o] = 1.0, -math.exp(eps), -1.0
            rows.append(row)
            ends.append(0.0)
        row = np.zeros(laws + slacks)
        row[laws + k * n : laws + (k + 1) * n] = 1.0
        rows.append(row)
        ends.append(delta)
    whole = np.zeros((n, laws + slacks))
    for i in range(n):
        whole[i, i * n : (i + 1) * n] = 1.0
    found = linprog(goal, np.array(rows), ends, whole, np.ones(n), bounds=(0, 1), method="highs")
    return float(-found.fun)


@pytest.mark.parametrize(
    ("m", "v", "eps", "delta"),
    [(1, 1, 1.0, 0.1), (2, 1, math.log(9), 0.01), (2, 2, 0.5, 0.05), (3, 3, 1.0, 0.01), (3, 2, 0.3, 0.02)],
)
def test_the_tail_is_attained_by_some_mechanism(m: int, v: int, eps: float, delta: float) -> None:
    truth, found = best_mechanism(m, v, eps, delta), exact_tail(m, m, v, eps, delta)
    assert found == pytest.approx(truth, abs=2e-10)  # tails are rounded up by 1e-10 of themselves


def symmetric_programme(m: int, r: int, v: int, eps: float, delta: float) -> float:
    """The same for any size: laws of V alone, under the averaged constraint of the proof."""
    goal = np.concatenate([-(np.arange(r + 1) >= v).astype(float), np.zeros(r + 1)])
    rows = np.zeros((r + 2, 2 * r + 2))
    for j in range(r + 1):
        rows[j, j] = j
        if j:
            rows[j, j - 1] = -math.exp(eps) * (r - j + 1)
        rows[j, r + 1 + j] = -1.0
    rows[r + 1, r + 1 :] = 1.0
    whole = np.concatenate([np.ones(r + 1), np.zeros(r + 1)])[None, :]
    ends = np.append(np.zeros(r + 1), m * delta)
    return float(-linprog(goal, rows, ends, whole, [1.0], bounds=(0, None), method="highs").fun)


@pytest.mark.parametrize("seed", range(12))
def test_the_tail_is_that_of_the_symmetric_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 40))
    r = int(rng.integers(1, m + 1))
    v, eps, delta = int(rng.integers(1, r + 1)), float(rng.uniform(0, 2)), float(10 ** rng.uniform(-5, -1.5))
    assert exact_tail(m, r, v, eps, delta) == pytest.approx(symmetric_programme(m, r, v, eps, delta), abs=2e-7)


@pytest.mark.parametrize(
    ("setting", "tail"),
    [
        ((20, 20, 18, 1.0, 1e-3), 0.06615556984),
        ((100, 100, 85, 1.0, 1e-3), 0.00560533847),
        ((1000, 100, 92, 2.0, 1e-5), 0.14408119048),
        ((2, 2, 1, math.log(9), 0.01), 0.9911),
    ],
)
def test_tails_known_to_ten_digits(setting: tuple[int, int, int, float, float], tail: float) -> None:
    assert exact_tail(*setting) == pytest.approx(tail, rel=1e-9)


def run(canaries: int, guesses: int, correct: int, delta: float, fixed: bool = True) -> pl.audit.Audit:
    return pl.audit.one_run(
        canaries=canaries, guesses=guesses, correct=correct, delta=delta, inclusion="coins", guesses_fixed=fixed
    )


@pytest.mark.parametrize(
    ("setting", "epsilon"),
    [
        ((1000, 1000, 800, 0.0), 1.254330359),
        ((1000, 1000, 800, 1e-5), 1.254271585),
        ((1000, 100, 92, 1e-5), 1.817056693),
        ((1000, 100, 100, 1e-3), 3.42318),
        ((100_000, 1500, 1429, 1e-5), 2.79580),
    ],
)
def test_bounds_known_before(setting: tuple[int, int, int, float], epsilon: float) -> None:
    assert run(*setting).epsilon == pytest.approx(epsilon, abs=1e-5 if epsilon > 2 else 1e-8)


def test_the_refuted_end_is_quoted() -> None:
    for setting in ((1000, 1000, 800, 1e-5), (1000, 100, 92, 1e-5)):
        found = run(*setting).epsilon
        m, r, v, delta = setting
        assert exact_tail(m, r, v, found, delta) <= 0.05 < exact_tail(m, r, v, found * (1 + 1e-9), delta)


def test_a_perfect_result_is_the_ceiling() -> None:
    found = run(1000, 1000, 1000, 1e-5)
    assert found.ceiling == pytest.approx(5.809004815, abs=1e-9)
    assert found.epsilon <= found.ceiling <= found.epsilon * (1 + 1e-9)
    assert perfect(100, 1, 1e-2, 0.05) == 0  # m delta >= alpha r: nothing can be shown
    blind = run(100, 1, 1, 1e-2)
    assert blind.epsilon == 0
    assert any("no result" in note for note in blind.notes)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_tails_rise_with_epsilon_and_delta_and_fall_with_right_guesses(delta: float) -> None:
    tails = [exact_tail(500, 200, 150, eps, delta) for eps in np.linspace(0, 3, 31)]
    assert all(a <= b for a, b in itertools.pairwise(tails))
    tails = [exact_tail(500, 200, v, 0.7, delta) for v in range(0, 201, 5)]
    assert all(a >= b for a, b in itertools.pairwise(tails))
    assert exact_tail(500, 200, 150, 0.7, delta) <= exact_tail(500, 200, 150, 0.7, delta + 1e-4)


def test_random_numbers_of_guesses_cost_something_only_with_delta() -> None:
    assert run(1000, 100, 92, 0.0, fixed=False).epsilon == run(1000, 100, 92, 0.0).epsilon
    free, fixed = run(1000, 100, 92, 1e-5, fixed=False), run(1000, 100, 92, 1e-5)
    assert 0 < free.epsilon < fixed.epsilon
    claimed = [
        pl.audit.one_run(
            canaries=1000, guesses=100, correct=70, delta=1e-5, inclusion="coins", guesses_fixed=fixed,
            claim=(0.5, 1e-5),
        ).p_value or 0.0
        for fixed in (True, False)
    ]  # fmt: skip
    assert 0 < claimed[0] < claimed[1] < 1
    grid = np.linspace(0, 3, 200)
    refuted = [decided_by_data(1000, 100, 100, eps, 5.1e-4, 0.05) for eps in grid]
    assert refuted == sorted(refuted, reverse=True)


def adversary_of_random_guesses(m: int, eps: float, delta: float, refutes: dict[int, int]) -> float:
    """max P[refuted] where the number of guesses may depend on the output: refutes[r] = least v refuted with r guesses.
    Laws of (r, v); the averaged constraint holds over all r together."""
    sizes = sorted(refutes)
    places = [(r, j) for r in sizes for j in range(r + 1)]
    index = {place: k for k, place in enumerate(places)}
    n = len(places)
    goal = np.zeros(2 * n)
    rows = np.zeros((n + 1, 2 * n))
    for (r, j), k in index.items():
        goal[k] = -float(j >= refutes[r])
        rows[k, k] = j
        if j:
            rows[k, index[r, j - 1]] = -math.exp(eps) * (r - j + 1)
        rows[k, n + k] = -1.0
    rows[n, n:] = 1.0
    whole = np.concatenate([np.ones(n), np.zeros(n)])[None, :]
    return float(
        -linprog(goal, rows, np.append(np.zeros(n), m * delta), whole, [1.0], bounds=(0, None), method="highs").fun
    )


def test_the_rule_for_random_guesses_is_valid_and_the_fixed_one_is_not() -> None:
    m, eps, delta, alpha = 30, 0.5, 3e-3, 0.05
    fixed = {
        r: next((v for v in range(r + 1) if exact_tail(m, r, v, eps, delta) <= alpha), r + 1) for r in range(1, m + 1)
    }
    safe = {
        r: next((v for v in range(r + 1) if decided_by_data(m, r, v, eps, delta, alpha)), r + 1)
        for r in range(1, m + 1)
    }
    assert adversary_of_random_guesses(m, eps, delta, fixed) > alpha + 1e-3
    assert adversary_of_random_guesses(m, eps, delta, safe) <= alpha + 1e-9


def test_the_rule_for_random_guesses_leaves_nine_tenths_to_chance() -> None:
    """Even where delta is next to nothing: its proof needs beta <= 0.9 alpha."""
    for level, refuted in ((0.0475, False), (0.0449, True)):
        low, high = 0.0, 3.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if exact_tail(1000, 1000, 800, middle, 0.0) <= level else (low, middle)
        assert decided_by_data(1000, 1000, 800, low, 1e-12, 0.05) is refuted


@pytest.mark.parametrize(("setting", "mu"), [((1000, 1000, 700), 0.357210787), ((1000, 100, 95), 0.786811815)])
def test_the_recursion_against_gaussian_curves(setting: tuple[int, int, int], mu: float) -> None:
    def tail(at: float) -> float:
        return recursion_tail(*setting, lambda tpr: float(ndtr(ndtri(tpr) - at)) if 0 < tpr < 1 else max(tpr, 0.0))

    assert tail(mu - 2e-9) <= 0.05 < tail(mu + 2e-9)


@pytest.mark.parametrize("seed", range(100))
def test_profile_and_recursion_bound_the_programme_of_a_curve(seed: int) -> None:
    """max P[V >= v] under all tangents of a curve at once is below either bound."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(5, 41))
    r = int(rng.integers(2, m + 1))
    v = int(rng.integers(max(1, r // 2), r + 1))
    claim = read_claim(pl.Gaussian(float(rng.uniform(0.7, 3))), 1e-5)
    assert claim is not None
    some = list(zip(claim.eps, claim.deltas, strict=True))[::6]
    blocks, size = len(some), r + 1
    width = size * (1 + blocks)
    rows, ends = [], []
    for k, (eps, delta) in enumerate(some):
        for j in range(size):
            row = np.zeros(width)
            row[j] = j
            if j:
                row[j - 1] = -math.exp(eps) * (r - j + 1)
            row[size * (1 + k) + j] = -1.0
            rows.append(row)
            ends.append(0.0)
        row = np.zeros(width)
        row[size * (1 + k) : size * (2 + k)] = 1.0
        rows.append(row)
        ends.append(m * delta)
    goal = np.concatenate([-(np.arange(size) >= v).astype(float), np.zeros(width - size)])
    whole = np.concatenate([np.ones(size), np.zeros(width - size)])[None, :]
    truth = -linprog(goal, np.array(rows), ends, whole, [1.0], bounds=(0, None), method="highs").fun
    exact = [exact_tail(m, r, v, e, d) for e, d in some]
    assert truth <= min(exact) + 1e-7
    thin = type(claim)(tuple(e for e, _ in some), tuple(d for _, d in some), claim.epsilon, claim.text)
    assert truth <= recursion_tail(m, r, v, thin.least_false) + 1e-7


def test_halved_noise_is_refuted_by_one_run() -> None:
    plan = pl.Gaussian(1.1).poisson(0.01) * 10_000
    found = pl.audit.one_run(
        canaries=1000, guesses=1000, correct=974, delta=1e-5, inclusion="coins", guesses_fixed=True, claim=plan
    )
    assert found.verdict == "refuted"
    assert found.p_value == pytest.approx(0.0112, abs=0.0003)
    points = [0.0, *np.geomspace(0.02, 12.0, 47).tolist()]  # fewer points of the curve: a weaker null
    deltas = tuple(float(each.upper) for each in plan.delta(points, tolerance=1e-4))
    fewer = Claim(tuple(points), deltas, found.claim or exactly(0.0), "fewer points")
    assert claim_p(1000, 1000, 974, fewer, True, 0.05) == pytest.approx(0.013, abs=0.001)
    honest = pl.audit.one_run(
        canaries=1000, guesses=1000, correct=700, delta=1e-5, inclusion="coins", guesses_fixed=True, claim=plan
    )
    assert honest.verdict == "not refuted"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"correct": 101}, "correct"), ({"guesses": 1001}, "guesses"), ({"canaries": 0}, "canaries"),
        ({"canaries": 2.5}, "canaries"), ({"correct": True}, "correct"), ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"), ({"alpha": 0.5}, "alpha"), ({"alpha": 0.0}, "alpha"),
        ({"inclusion": ""}, "inclusion"), ({"guesses_fixed": 1}, "guesses_fixed"),
        ({"guesses_fixed": None}, "guesses_fixed = None"),
        ({"inclusion": None}, "inclusion = None: must be said"), ({"claim": -1.0}, "claim"),
        ({"claim": (1.0, 2.0)}, "claim"), ({"claim": "one"}, "claim"), ({"claim": (1.0,)}, "claim"),
    ],
)  # fmt: skip
def test_bad_input(change: dict[str, object], match: str) -> None:
    good: dict[str, object] = {
        "canaries": 1000, "guesses": 100, "correct": 90, "delta": 1e-5, "inclusion": "coins", "guesses_fixed": True,
    }  # fmt: skip
    with pytest.raises(pl.InvalidInput, match=match):
        pl.audit.one_run(**{**good, **change})


def test_what_has_no_proof_is_refused() -> None:
    plan = pl.Gaussian(1.0) * 3
    common = {"canaries": 100, "guesses": 50, "correct": 40, "delta": 1e-5}
    with pytest.raises(pl.Unsupported, match="exactly-half"):
        pl.audit.one_run(**common, inclusion="exactly-half", guesses_fixed=True)
    with pytest.raises(pl.Unsupported, match="data decided"):
        pl.audit.one_run(**common, inclusion="coins", guesses_fixed=False, claim=plan)
    with pytest.raises(pl.InvalidInput, match="replace-one"):
        pl.audit.one_run(**common, inclusion="pairs", guesses_fixed=True, claim=plan)
    with pytest.raises(pl.InvalidInput, match="add-remove"):
        pl.audit.one_run(**common, inclusion="coins", guesses_fixed=True, claim=plan.under("replace-one"))
