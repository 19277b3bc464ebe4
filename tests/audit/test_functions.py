"""Mechanisms given as functions, streams of outputs, declared sensitivities."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import privloss as pl
from privloss.audit.betting import GRID
from privloss.audit.events import canonical


def laplace(scale: float) -> Any:
    return lambda x, rng: x + rng.laplace(scale=scale)


def test_halved_noise_is_found_and_honest_noise_is_not() -> None:
    honest = pl.audit.mechanism(laplace(1.0), 0.0, 1.0, runs=2000, seed=1, claim=1.0)
    assert honest.verdict == "not refuted"
    assert 0.4 < honest.epsilon <= 1.0
    false = pl.audit.mechanism(laplace(0.5), 0.0, 1.0, runs=2000, seed=1, claim=1.0)
    assert false.verdict == "refuted"
    assert 1.0 < false.epsilon <= 2.0


def test_leaks_that_are_no_numbers_are_found() -> None:
    def fails(x: float, rng: np.random.Generator) -> float:
        if x and rng.random() < 0.3:
            raise KeyError("gone")
        return float(rng.normal())

    def infinite(x: float, rng: np.random.Generator) -> Any:
        return math.nan if x and rng.random() < 0.3 else float(rng.normal())

    def none(x: float, rng: np.random.Generator) -> Any:
        return None if x and rng.random() < 0.3 else np.array([rng.normal(), 1.0])

    for f in (fails, infinite, none):
        found = pl.audit.mechanism(f, 0.0, 1.0, runs=600, seed=3)
        assert found.epsilon > 2.5
        assert "y" in found.event


def test_vectors_and_symbols() -> None:
    def vector(x: float, rng: np.random.Generator) -> np.ndarray:
        return np.array([0.0, x, -x]) + rng.normal(size=3)

    assert pl.audit.mechanism(vector, 0.0, 2.0, runs=1500, seed=1, delta=0.01).epsilon > 1.5

    def coin(x: int, rng: np.random.Generator) -> str:
        return "ab"[x if rng.random() < 0.9 else 1 - x]

    found = pl.audit.mechanism(coin, 0, 1, runs=2000, seed=1, claim=pl.PureDP(math.log(9)))
    assert found.verdict == "not refuted"
    assert 1.8 < found.epsilon <= math.log(9)


def test_a_classifier_is_anything_that_fits_and_predicts() -> None:
    class Mean:
        def fit(self, rows: np.ndarray, labels: np.ndarray) -> None:
            self.apart = rows[labels == 1].mean(axis=0) - rows[labels == 0].mean(axis=0)

        def predict_proba(self, rows: np.ndarray) -> np.ndarray:
            p = 1 / (1 + np.exp(-rows @ self.apart))
            return np.stack([1 - p, p], axis=1)

    f = lambda x, rng: np.array([x, x]) + rng.normal(size=2)  # noqa: E731
    found = pl.audit.mechanism(f, 0.0, 2.0, runs=600, seed=1, delta=0.01, classifier=Mean())
    assert found.epsilon > 1.5
    assert "classifier" in found.event


def test_a_function_that_reseeds_itself_is_noticed() -> None:
    state = {"k": 0}

    def stale(x: float) -> float:
        state["k"] += 1
        return float(np.random.default_rng((state["k"] // 2) % 64).normal()) + x

    with pytest.raises(pl.InvalidInput, match="reseed"):
        pl.audit.mechanism(stale, 0.0, 0.0, runs=500, seed=1)


def test_whatever_the_period_a_repetition_is_noticed() -> None:
    noise = np.random.default_rng(1).normal(size=70)
    count = iter(range(10**6))
    with pytest.raises(pl.InvalidInput, match="reseed"):
        pl.audit.mechanism(lambda x: x + noise[(next(count) // 2) % 70], 0.0, 0.0, runs=200, seed=1)


def test_an_input_that_is_changed_is_not_blamed_on_the_claim() -> None:
    """Later runs would be on data that are no neighbours any more."""

    def grows(data: list[float], rng: np.random.Generator) -> float:
        data.append(data[-1])
        return sum(data) + float(rng.laplace())

    with pytest.raises(pl.InvalidInput, match="changed its input"):
        pl.audit.mechanism(grows, [0.0], [1.0], runs=200, seed=1, claim=1.0)


def test_nothing_is_learned_from_the_half_that_is_tested() -> None:
    """The first half of the runs tells the inputs apart, the second says nothing, or the other way round."""

    def turning(early: str, late: str) -> Any:
        count = iter(range(10**6))
        return lambda x: (early if next(count) < 200 else late)[x]

    found = pl.audit.mechanism(turning("ab", "cc"), 0, 1, runs=200, seed=1)
    assert found.counts == {"tp": 0, "positives": 100, "fp": 0, "negatives": 100}
    assert found.epsilon == 0
    found = pl.audit.mechanism(turning("cc", "ab"), 0, 1, runs=200, seed=1)
    assert found.epsilon == 0


def test_outputs_that_are_equal_are_one() -> None:
    assert canonical(math.nan) == canonical(np.float64("nan"))
    assert canonical(np.int64(3)) == canonical(3)
    assert canonical(ValueError("a")) == canonical(ValueError("b")) != canonical(KeyError())
    assert canonical([np.array([1.0]), {"a": 1}]) == ((1.0,), "{'a': 1}")


@pytest.mark.parametrize(
    ("change", "match"),
    [({"runs": 99}, "runs"), ({"f": 3}, "f = 3"), ({"seed": -1}, "seed"), ({"classifier": 3}, "classifier")],
)
def test_bad_functions(change: dict[str, Any], match: str) -> None:
    with pytest.raises(pl.InvalidInput, match=match):
        pl.audit.mechanism(**{"f": laplace(1.0), "x": 0.0, "y": 1.0, "runs": 100, "seed": 1, **change})


# -- streams -----------------------------------------------------------------------------------------------------------


def test_wealth_never_gains_under_the_null() -> None:
    """E[1 + kappa z] <= 1 for every bet, event and law on the edge of (eps, delta)-DP, both orders."""
    for eps, delta in [(0.5, 0.0), (1.0, 0.01), (0.0, 0.1)]:
        factors = {}
        for likely, unlikely in ((0, 0), (0, 1), (1, 0), (1, 1)):
            audit = pl.audit.stream(epsilon=eps, delta=delta)
            audit._bet(0, bool(likely), bool(unlikely))
            factors[likely, unlikely] = np.exp(audit._logs[0, :, -1])
            assert np.all(factors[likely, unlikely] > 0)
        for p0 in np.linspace(0.001, 1, 50):
            p1 = min(1.0, math.exp(eps) * p0 + delta, 1 - (1 - delta - p0) * math.exp(-eps))
            mean = sum(
                (p1 if likely else 1 - p1) * (p0 if unlikely else 1 - p0) * found
                for (likely, unlikely), found in factors.items()
            )
            assert np.all(mean <= 1 + 1e-12)


def test_wealth_is_the_mean_of_all_bets() -> None:
    """Of both orders: the best of them would not be a fair bet."""
    audit = pl.audit.stream(epsilon=1.0, delta=0.0)
    for _ in range(9):
        audit._bet(0, True, False)
    assert audit.wealth == pytest.approx(float(np.mean(np.exp(audit._logs[:, :, -1]))), rel=1e-6)
    assert audit.wealth < 0.4 * float(np.exp(audit._logs[:, :, -1].max()))


def test_levels_of_a_stream() -> None:
    """Refuted exactly where a wealth has reached 1/alpha, the claim and the grid alike."""
    audit = pl.audit.stream(epsilon=1.0, delta=0.0)
    for wealth, refuted in ((19.9, False), (20.1, True)):
        audit._highest[:] = math.log(wealth)
        assert audit.refuted is refuted
        assert (audit.epsilon > 0) is refuted
        assert audit.p_value == pytest.approx(1 / wealth)


def test_streams_refute_what_is_false_and_not_what_is_true() -> None:
    rng, rounds = np.random.default_rng(1), []
    for _ in range(8):
        audit = pl.audit.stream(epsilon=1.0, delta=0.0)
        while not audit.refuted and audit.rounds < 3000:
            audit.observe(rng.laplace(0.0, 0.5), rng.laplace(1.0, 0.5))
        rounds.append(audit.rounds)
    assert np.median(rounds) < 400
    wrong = 0
    for _ in range(40):
        audit = pl.audit.stream(epsilon=1.0, delta=0.0)
        for _ in range(300):
            audit.observe(rng.laplace(0.0), rng.laplace(1.0))
        wrong += audit.refuted or audit.epsilon > 1.0
    assert wrong / 40 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 40)


def test_the_prefix_rule() -> None:
    audit = pl.audit.stream(epsilon=1.0, delta=0.0)
    audit._highest[:3] = [5.0, 5.0, 0.0]
    audit._highest[3:10] = 5.0  # later grid points do not count
    assert audit.epsilon == GRID[1]
    assert audit.ceiling(200) == pytest.approx(3.600, abs=1e-3)


def test_a_saved_stream_goes_on_as_if_nothing_had_happened() -> None:
    rng = np.random.default_rng(3)
    outputs = [(float(rng.laplace(0, 0.7)), float(rng.laplace(1, 0.7))) for _ in range(150)]
    whole, first = (pl.audit.stream(epsilon=1.0, delta=0.0) for _ in range(2))
    for pair in outputs:
        whole.observe(*pair)
    for pair in outputs[:77]:
        first.observe(*pair)
    state = json.loads(json.dumps(first.state_dict()))
    second = pl.audit.stream(epsilon=1.0, delta=0.0)
    second.load_state_dict(state)
    for pair in outputs[77:]:
        second.observe(*pair)
    assert second.wealth == pytest.approx(whole.wealth, rel=1e-9)
    assert second.epsilon == whole.epsilon
    with pytest.raises(pl.InvalidInput, match="going back"):
        whole.load_state_dict(state)
    with pytest.raises(pl.InvalidInput, match="another audit"):
        pl.audit.stream(epsilon=2.0, delta=0.0).load_state_dict(state)
    for broken in ({}, {key: value for key, value in state.items() if key != "logs"}):
        with pytest.raises(pl.InvalidInput, match="state_dict"):
            whole.load_state_dict(broken)
    with pytest.raises(pl.InvalidInput, match="going back"):  # also into a new object
        pl.audit.stream(epsilon=1.0, delta=0.0).load_state_dict(state)
    third = pl.audit.stream(epsilon=1.0, delta=0.0)
    third.observe(0.0, 1.0)
    with pytest.raises(pl.InvalidInput, match="another audit"):  # what it has seen would be forgotten
        third.load_state_dict(second.state_dict())


def test_no_two_ways_on_from_one_state() -> None:
    """Each would be an audit, the better of them is none."""
    rng = np.random.default_rng(3)
    first, second, third = (pl.audit.stream(epsilon=1.0, delta=0.0) for _ in range(3))
    for _ in range(40):
        first.observe(float(rng.laplace(0)), float(rng.laplace(1)))
    state = first.state_dict()
    second.load_state_dict(state)
    second.observe(0.0, 1.0)
    with pytest.raises(pl.InvalidInput, match="gone on elsewhere"):
        first.observe(0.0, 1.0)
    with pytest.raises(pl.InvalidInput, match="going back"):
        third.load_state_dict(state)
    for part, value in (
        ("logs", [0.0]), ("highest", [math.nan] * 10), ("seen", [[], []]), ("seen", 3), ("rounds", 10**6),
        ("rounds", 2.5), ("logs", "x"),
    ):  # fmt: skip
        with pytest.raises(pl.InvalidInput, match=r"damaged|whole number"):
            third.load_state_dict({**second.state_dict(), part: value})
    third.load_state_dict(second.state_dict())
    assert third.rounds == 41


# -- recorder ----------------------------------------------------------------------------------------------------------


def mean_with_a_private_count(rec: pl.audit.Recorder, data: list[float]) -> float:
    rng = np.random.default_rng(1)
    draw = lambda v: v + rng.laplace(scale=1.0)  # noqa: E731
    return float(
        rec.release("mean", sum(data) / len(data), sensitivity=1 / len(data), norm="l1", draw=draw, mechanism="laplace")
    )


def test_a_scale_that_reads_the_data_is_a_divergence() -> None:
    rec = pl.audit.Recorder()
    rec.run(mean_with_a_private_count, [0.0, 1.0, 1.0])
    with pytest.raises(pl.audit.Diverged, match="sensitivity"):
        rec.replay(mean_with_a_private_count, [0.0, 1.0])


@pytest.mark.parametrize(
    ("program", "match"),
    [
        (lambda rec, d: [rec.release("a", x, sensitivity=1, norm="l1", draw=lambda v: 0.0) for x in d], "releases"),
        (lambda rec, d: (rec.release("a", 0.0, sensitivity=1, norm="l1", draw=lambda v: 0.0), max(d)), "returned"),
        (lambda rec, d: rec.release("ab"[len(d) % 2], 0.0, sensitivity=1, norm="l1", draw=lambda v: 0.0), "name"),
        (lambda rec, d: rec.release("a", d, sensitivity=9, norm="l2", draw=lambda v: 0.0), "shape"),
        (lambda rec, d: rec.release("a", 0.0, sensitivity=1, norm="l1", draw=lambda v: 0.0, scale=len(d)), "public"),
        (lambda rec, d: (rec.release("a", 0.0, sensitivity=1, norm="l1", draw=lambda v: 0.0), d[2])[0], "raised"),
    ],
)
def test_divergences(program: Any, match: str) -> None:
    rec = pl.audit.Recorder()
    rec.run(program, [1.0, 2.0, 3.0])
    with pytest.raises(pl.audit.Diverged, match=match):
        rec.replay(program, [1.0, 2.0])


def test_distances_and_nan() -> None:
    def program(rec: pl.audit.Recorder, data: np.ndarray) -> Any:
        return rec.release("x", data, sensitivity=5.0, norm="l2", draw=lambda v: 0.0, mechanism="gaussian", sigma=2.0)

    rec = pl.audit.Recorder()
    rec.run(program, np.zeros(2))
    rec.replay(program, np.array([3.0, 4.0]))
    assert rec.violations == []
    rec.replay(program, np.array([3.0, 4.1]))
    rec.replay(program, np.array([math.nan, 0.0]))
    assert len(rec.violations) == 2
    assert str(rec.violations[0]).startswith("release 0 (x): l2 distance 5.08")
    assert rec.plan().epsilon(1e-5).upper == pytest.approx(pl.Gaussian(sigma=2.0, sensitivity=5.0).epsilon(1e-5).upper)
    with pytest.raises(pl.InvalidInput, match="first run"):
        pl.audit.Recorder().replay(program, np.zeros(2))


def test_violations_are_of_numbers_as_they_are() -> None:
    """Whole numbers that doubles cannot hold, squares that would be infinite, infinities and NaN that are the same."""

    def program(rec: pl.audit.Recorder, data: Any) -> Any:
        values, sensitivity = data
        rec.release("x", values, sensitivity=sensitivity, norm="l2", draw=lambda v: 0.0)
        return {"a": (np.zeros(2), [np.zeros(3), math.nan])}

    def broken(first: Any, second: Any, sensitivity: float) -> int:
        rec = pl.audit.Recorder()
        rec.run(program, (first, sensitivity))
        rec.replay(program, (second, sensitivity))
        return len(rec.violations)

    assert broken(2**53 + 1, 2**53 + 2, 1.0) == 0
    assert broken(2**60, 2**60 + 2, 1.0) == 1
    assert broken(np.array([1], np.uint8), np.array([2], np.uint8), 1.0) == 0
    assert broken([1e200, 0.0], [0.0, 0.0], 1e200) == 0
    assert broken([1e-200, 0.0], [0.0, 0.0], 0.0) == 1
    assert broken([math.inf, 1.0], [math.inf, 1.5], 1.0) == 0
    assert broken([math.inf, 1.0], [1.0, 1.0], 1.0) == 1
    with pytest.raises(pl.InvalidInput, match="real numbers"):
        broken(np.array([1j]), np.array([2j]), 1.0)
