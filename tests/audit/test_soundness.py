"""Roundings, corners and side doors: where an audit could say more than was proven."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import binom

import privloss as pl
from privloss.audit import rates
from privloss.audit.canaries import exact_tail, perfect
from privloss.audit.claim import Claim
from privloss.audit.events import canonical


def tail(a: float, b: float, x: arb) -> arb:
    """I_x(a, b) as a ball."""
    return x.beta_lower(a, b, regularized=True)


@pytest.fixture(autouse=True)
def _digits() -> Any:
    before, ctx.prec = ctx.prec, 400
    yield
    ctx.prec = before


@pytest.mark.parametrize("n", [100, 4000, 10**6, 10**8])
def test_limits_on_rates_are_never_too_narrow(n: int) -> None:
    """Also for levels such as 1e-12, where 1 - alpha has lost digits (the tail was 1.5e-5 too large then)."""
    rng = np.random.default_rng(n)
    for _ in range(12):
        k = int(rng.choice([1, 3, n // 7, n - 2]))
        alpha = float(10 ** rng.uniform(-15, -1.3))
        low, high = float(rates.least_rate(k, n, alpha)), float(rates.most_rate(k, n, alpha))
        assert tail(k, n - k + 1, arb(low)) <= alpha
        assert 1 - tail(k + 1, n - k, arb(high)) <= alpha
        assert tail(k, n - k + 1, arb(low * (1 + 1e-5))) > alpha * (1 + 1e-9)  # and not idle


@pytest.mark.parametrize("r", [1000, 10**6, 10**9])
def test_tails_of_one_run_where_guesses_are_nearly_certain(r: int) -> None:
    """q = e^eps/(1 + e^eps) next to 1 loses the digits of 1 - q."""
    for eps in (0.1, 0.9 * math.log(r / 4)):
        q = 1 / (1 + (-arb(eps)).exp())
        for away in (0.5, 2.0):
            v = min(r, round(r * float(q) + away * math.sqrt(r * float(q * (1 - q)))))
            truth = tail(v, r - v + 1, q)
            found = exact_tail(r, r, v, eps, 0.0)
            assert truth <= found
            assert found <= float(truth) * (1 + 1e-9)


@pytest.mark.parametrize("r", [100, 10**6, 10**9])
def test_ceilings_are_rounded_down_at_any_size(r: int) -> None:
    x = (arb(0.05).log() / r).exp()
    truth = (x / (1 - x)).log()
    for found in (perfect(r, r, 0.0, 0.05), rates.logit_of_power(0.05, 1 / r)):
        assert found <= truth
        assert found == pytest.approx(float(truth), rel=1e-11)


def test_a_threshold_is_given_in_scores_whatever_the_direction() -> None:
    members, others = [1.0, 2.0, 3.0] * 5, [5.0, 6.0, 7.0] * 5
    for direction in ("down", "both"):
        for threshold in (4.0, np.int64(4)):
            found = pl.audit.scores(
                members, others, delta=0.0, trials="independent", threshold=threshold, direction=direction
            )
            assert found.counts == {"tp": 15, "positives": 15, "fp": 0, "negatives": 15}
            assert found.threshold == 4


def test_either_direction_costs_half_of_alpha() -> None:
    """In the p-value as well."""
    members, others = [1.0, 2.0] * 10, [2.0, 3.0, 4.0] * 7
    common: dict[str, Any] = {"delta": 0.0, "trials": "independent", "threshold": 2.5, "claim": 0.1}
    found = [pl.audit.scores(members, others, direction=each, **common).p_value for each in ("up", "down", "both")]
    assert found[1] is not None
    assert found[2] == pytest.approx(2 * found[1], rel=1e-4)


def test_a_small_alpha_is_not_printed_as_certainty() -> None:
    said = {
        alpha: str(pl.audit.counts(tp=9, positives=9, fp=0, negatives=9, delta=0.0, trials="independent", alpha=alpha))
        for alpha in (0.05, 1e-4, 1e-6)
    }
    assert said[0.05].startswith("With 0.95 confidence")
    assert said[1e-4].startswith("With 0.9999 confidence")
    assert said[1e-6].startswith("With 1 - 1e-06 confidence")


def test_claims_that_nothing_can_break() -> None:
    common: dict[str, Any] = {"tp": 100, "positives": 100, "fp": 0, "negatives": 100, "delta": 0.0}
    for claim in (709.9, 800.0, (0.0, 1.0), (3.0, 1.0)):
        for method in ("joint", "clopper-pearson"):
            found = pl.audit.counts(**common, trials="independent", claim=claim, method=method)
            assert (found.verdict, found.p_value) == ("blind", 1.0)
        run = pl.audit.one_run(
            canaries=100, guesses=100, correct=100, delta=0.0, inclusion="coins", guesses_fixed=True, claim=claim
        )
        assert (run.verdict, run.p_value) == ("blind", 1.0)


def test_outputs_that_no_bin_can_hold() -> None:
    """Whole numbers beyond all doubles, infinite coordinates, vectors of two lengths."""
    assert canonical(10**400) == repr(10**400)

    def huge(x: int, rng: np.random.Generator) -> int:
        return 10**400 if rng.random() < 0.1 + 0.8 * x else int(rng.integers(10**9))

    def infinite(x: int, rng: np.random.Generator) -> list[float]:
        return [float(rng.normal()), math.inf if rng.random() < 0.4 * x else float(rng.normal())]

    def lengths(x: int, rng: np.random.Generator) -> list[float]:
        return rng.normal(size=2 + int(rng.random() < 0.4 * x)).tolist()

    for f in (huge, infinite, lengths):
        with np.errstate(invalid="raise", divide="raise"):
            assert pl.audit.mechanism(f, 0, 1, runs=600, seed=1).epsilon > 1.0


def test_what_a_program_does_to_its_arrays_is_no_violation() -> None:
    """The first output is changed in place after its release; the replay must return what was published."""

    def program(rec: pl.audit.Recorder, data: np.ndarray) -> None:
        noisy = rec.release("a", data, sensitivity=1.0, norm="l2", draw=lambda v: v + 3.0)
        seen = noisy.sum()
        noisy *= 100.0
        rec.release("b", np.array(seen), sensitivity=0.0, norm="l2", draw=lambda v: v)

    rec = pl.audit.Recorder()
    rec.run(program, np.zeros(3))
    for _ in range(2):
        rec.replay(program, np.array([0.0, 0.0, 1.0]))
    assert rec.violations == []


def test_budgets_that_could_have_refuted_are_not_blind() -> None:
    """One of two budgets cannot test the claim, the other can: the design is not blind."""
    rng = np.random.default_rng(1)
    found = pl.audit.one_run_scores(
        rng.random(200), rng.integers(0, 2, 200), budgets=[(1, 0), (100, 100)], delta=0.0, inclusion="coins", claim=1.0
    )
    assert found.verdict == "not refuted"


def test_ceilings_do_not_ignore_what_does_not_fit() -> None:
    for given in ({"canaries": 10, "negatives": 4}, {"positives": 10, "guesses": 4}):
        with pytest.raises(pl.InvalidInput, match="go with"):
            pl.audit.ceiling(**given, delta=0.0)


def test_deltas_next_to_one_keep_their_digits() -> None:
    """1 - FPR - delta in this order said 0.8 % too much next to delta = 1 - 1e-15."""
    rng = np.random.default_rng(3)
    for _ in range(400):
        left = 10 ** rng.uniform(-15, -0.1)
        delta = 1 - float(left)
        low, high = delta + left * float(rng.uniform(0, 1)), left * float(rng.uniform(0, 0.9))
        if not 0 < low < 1:
            continue
        truths = [((arb(low) - arb(delta)) / arb(high)).log(), ((1 - arb(high) - arb(delta)) / (1 - arb(low))).log()]
        truth = max(float(each.upper()) for each in truths if each.is_finite())
        shown, broken = float(rates.epsilon_of(low, high, delta)), float(Claim.pair(0.0, delta).excess(low, high))
        assert shown <= max(truth, 0.0)
        assert broken <= truth + 1e-13
        assert shown >= truth * (1 - 1e-12) - 1e-12


def test_equal_scores_of_canaries_that_are_listed_by_their_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that say nothing, members listed first: a permutation known beforehand would show epsilon > 0 in every
    run with 196 canaries."""
    source, rng = np.random.default_rng(5), np.random.default_rng(6)
    monkeypatch.setattr("secrets.randbits", lambda bits: int(source.integers(2**bits)))

    def shown(**more: int) -> float:
        coins = np.sort(rng.integers(0, 2, 196))[::-1]
        found = pl.audit.one_run_scores(np.ones(196), coins, budgets=[(98, 98)], delta=0.0, inclusion="coins", **more)
        assert any("equal scores" in note for note in found.notes)
        return found.epsilon

    assert sum(shown() > 0 for _ in range(100)) <= int(binom.isf(1e-3, 100, 0.05))
    assert sum(shown(seed=0) > 0 for _ in range(20)) == 20  # why it must not be known
    again = pl.audit.one_run_scores(np.arange(9.0), [0, 1, 1] * 3, budgets="confidence", delta=0.0, inclusion="coins")
    assert not again.notes  # nothing is drawn where nothing is equal
