"""Known figures, floors under what audits show, and mistakes that others make."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import privloss as pl
from privloss.audit import rates
from privloss.audit.canaries import exact_tail, perfect
from privloss.audit.claim import Claim, read_claim
from privloss.audit.curve import recursion_tail
from privloss.audit.joint import JointTest, critical
from privloss.audit.trial_scores import Cuts
from privloss.audit.trials import _order
from tests.audit.test_canary_scores import COINS, gaussian_canaries
from tests.audit.test_one_run import best_mechanism

INDEPENDENT: dict[str, Any] = {"trials": "independent"}


# -- exactness ---------------------------------------------------------------------------------------------------------


def test_the_tail_over_all_mechanisms_of_four_canaries() -> None:
    """A linear programme over 16 laws of 16 guesses each."""
    for v, eps, delta in ((3, 0.7, 0.01), (4, 0.2, 0.03)):
        assert exact_tail(4, 4, v, eps, delta) == pytest.approx(best_mechanism(4, v, eps, delta), abs=1e-9)


def test_the_ceiling_solves_its_equation() -> None:
    found = perfect(1000, 1000, 1e-5, 0.05)
    assert found == pytest.approx(5.809004815, abs=1e-9)
    assert exact_tail(1000, 1000, 1000, found, 1e-5) == pytest.approx(0.05, rel=1e-9)
    fewer = pl.audit.ceiling(canaries=1000, guesses=100, delta=1e-4)
    assert exact_tail(1000, 100, 100, fewer, 1e-4) == pytest.approx(0.05, rel=1e-9)


def circulated(m: int, r: int, v: int, eps: float, delta: float) -> float:
    """beta + 2 m delta max_i P[v > Bin >= v - i]/i: what most auditors of one run use."""
    q = 1 / (1 + math.exp(-eps))
    i = np.arange(1, v + 1)
    below = binom.cdf(v - 1, r, q) - binom.cdf(v - 1 - i, r, q)
    return float(binom.sf(v - 1, r, q) + 2 * m * delta * np.max(below / i))


@pytest.mark.parametrize(
    ("guesses", "correct", "levels", "ours", "theirs"),
    [
        (3376, 2807, 386, 1.42530, 1.13346),
        (4666, 4499, 374, 3.01246, 2.31195),
        (8233, 8223, 140, 5.76308, 4.39557),
    ],
)
def test_what_others_print(guesses: int, correct: int, levels: int, ours: float, theirs: float) -> None:
    """20 000 canaries, delta = 1e-6: settings from another auditor's own tests."""
    common: dict[str, Any] = {"canaries": 20_000, "guesses": guesses, "correct": correct, "delta": 1e-6}
    found = pl.audit.one_run(**common, alpha=0.05 / levels, guesses_fixed=True, **COINS).epsilon
    assert found == pytest.approx(ours, abs=2e-5)
    assert circulated(20_000, guesses, correct, theirs, 1e-6) == pytest.approx(0.05 / levels, rel=1e-3)


def test_the_exact_tail_is_below_the_circulated_one_where_audits_reject() -> None:
    rng, seen, smallest = np.random.default_rng(4), 0, 1.0
    for _ in range(600):
        m = int(rng.integers(2, 2000))
        r = int(rng.integers(1, m + 1))
        v = int(rng.integers(max(1, r // 2), r + 1))
        eps, delta = float(rng.uniform(0, 4)), float(10 ** rng.uniform(-7, -2))
        theirs = circulated(m, r, v, eps, delta)
        if theirs <= 0.05:
            found = exact_tail(m, r, v, eps, delta)
            assert found <= theirs * (1 + 1e-9) + 1e-12
            seen, smallest = seen + 1, min(smallest, found / theirs)
    assert seen > 50
    assert smallest < 0.1
    assert circulated(2, 2, 1, math.log(9), 0.01) < 0.991  # attained at 0.9911: theirs is no bound everywhere


def test_rates_by_hand() -> None:
    """Both inequalities, each with its delta: the second is that of the complement."""
    assert float(rates.epsilon_of(0.5, 0.1, 0.1)) == pytest.approx(math.log(4), rel=1e-12)
    assert float(rates.epsilon_of(0.9, 0.5, 0.1)) == pytest.approx(math.log(4), rel=1e-12)
    assert float(rates.epsilon_of(0.1, 0.5, 0.0)) == 0
    assert float(Claim.pair(1.0, 0.1).excess(0.5, 0.1)) == pytest.approx(math.log(4) - 1, rel=1e-12)
    assert float(Claim.pair(1.0, 0.1).excess(0.9, 0.5)) == pytest.approx(math.log(4) - 1, rel=1e-12)
    assert float(Claim.pair(1.0, 0.1).most_true(0.1)) == pytest.approx(0.1 + 0.1 * math.e, rel=1e-12)
    assert float(Claim.pair(1.0, 0.1).most_true(0.6)) == pytest.approx(1 - 0.3 / math.e, rel=1e-12)
    assert Claim.pair(1.0, 0.1).least_false(0.5) == pytest.approx(0.4 / math.e, rel=1e-12)
    assert Claim.pair(1.0, 0.1).least_false(0.95) == pytest.approx(0.9 - 0.05 * math.e, rel=1e-12)


def test_the_joint_test_at_every_outcome_shows_what_two_limits_show() -> None:
    n, order = 30, _order(30, 30, 0.0, 0.05)
    low = rates.least_rate(np.arange(n + 1), n, 0.025)[:, None]
    simple = rates.epsilon_of(low, rates.most_rate(np.arange(n + 1), n, 0.025)[None, :], 0.0)
    seen = set()
    for tp, fp in zip(*np.nonzero(simple > 0.005), strict=True):
        if (value := float(order[tp, fp])) not in seen:
            seen.add(value)
            null = Claim.pair(float(simple[tp, fp]) - 0.005, 0.0).most_true
            assert JointTest(n, n, critical(order, value)).p_value(null, 0.05) <= 0.05
    assert len(seen) > 100


def test_tails_rise_with_the_number_of_canaries() -> None:
    """More canaries have more delta in all; the recursion sees as many right guesses among more of them."""
    tails = [exact_tail(m, 100, 80, 1.0, 1e-4) for m in (100, 200, 1000, 10**5)]
    assert all(a <= b for a, b in itertools.pairwise(tails))
    claim = read_claim(pl.Gaussian(1.5), 1e-5)
    assert claim is not None
    tails = [recursion_tail(m, 100, 80, claim.least_false) for m in (100, 200, 1000, 10**4)]
    assert all(a <= b * (1 + 1e-8) for a, b in itertools.pairwise(tails))
    tails = [recursion_tail(1000, 100, v, claim.least_false) for v in range(50, 101, 10)]
    assert all(a >= b for a, b in itertools.pairwise(tails))


# -- mistakes of others ------------------------------------------------------------------------------------------------


def test_chance_level_against_a_curve_shows_nothing() -> None:
    """An auditor that reports the last candidate where none is rejected has printed 0.397 here."""
    found = pl.audit.one_run(
        canaries=1000, guesses=1000, correct=500, delta=1e-5, guesses_fixed=True, claim=pl.Gaussian(9.991), **COINS
    )
    assert (found.epsilon, found.verdict) == (0.0, "not refuted")


def test_bonferroni_counts_all_thresholds_whatever_the_scores_look_like() -> None:
    """Not those on the hull of the scores seen: their number is data."""
    members, others = np.repeat([0.0, 1.0], [20, 80]), np.repeat([0.0, 1.0], [80, 20])
    low, high = Cuts.of(members, others).limits("bonferroni", 0.05)
    assert low[1] == float(rates.least_rate(80, 100, 0.025 / 100))
    assert high[1] == float(rates.most_rate(20, 100, 0.025 / 100))
    low, high = Cuts.of(members, others).limits("dkw", 0.05)
    assert low[1] == pytest.approx(0.8 - math.sqrt(math.log(2 / 0.05) / 200), rel=1e-9)
    assert high[1] == pytest.approx(0.2 + math.sqrt(math.log(2 / 0.05) / 200), rel=1e-9)


def test_budgets_pay_for_their_number() -> None:
    """K budgets that are all the same show what one shows at alpha/K."""
    scores, coins = gaussian_canaries(np.random.default_rng(1), 400, 2.0)
    many = pl.audit.one_run_scores(scores, coins, budgets=[(50, 50)] * 5, delta=1e-5, claim=(1.0, 1e-5), **COINS)
    alone = pl.audit.one_run_scores(
        scores, coins, budgets=[(50, 50)], delta=1e-5, alpha=0.01, claim=(1.0, 1e-5), **COINS
    )
    assert many.epsilon == alone.epsilon
    assert many.p_value == pytest.approx(5 * alone.p_value, rel=1e-12)
    single = pl.audit.one_run_scores(scores, coins, budgets=[(50, 50)], delta=1e-5, **COINS)
    assert many.epsilon < single.epsilon


def test_an_epsilon_of_a_family_is_not_called_epsilon() -> None:
    """Randomised response with eps = 1 and 10 000 runs a side looks like a Gaussian mechanism of epsilon 5.30."""
    found = pl.audit.counts(
        tp=7311, positives=10_000, fp=2689, negatives=10_000, delta=1e-5, method="clopper-pearson", **INDEPENDENT
    )
    assert found.mu == pytest.approx(1.179, abs=0.005)
    assert found.epsilon_if_gaussian == pytest.approx(5.30, abs=0.02)
    assert found.epsilon == pytest.approx(0.956, abs=0.005)
    assert found.epsilon <= 1
    assert "5.3" not in str(found)


def test_all_or_nothing_is_no_evidence_in_one_run() -> None:
    """What reveals everything with probability 0.2 is (0, 0.2)-DP: canaries are no independent trials, and one run
    shows nothing at that delta, while limits on both rates would claim epsilon > 3."""
    found = pl.audit.one_run(canaries=200, guesses=200, correct=200, delta=0.2, guesses_fixed=True, **COINS)
    assert (found.epsilon, found.ceiling) == (0.0, 0.0)
    with pytest.raises(pl.InvalidInput, match="one_run"):
        pl.audit.scores([1.0, 2.0], [0.0, 1.0], delta=0.2, trials="one-run")
    wrong = pl.audit.counts(
        tp=100, positives=100, fp=0, negatives=100, delta=0.2, method="clopper-pearson", **INDEPENDENT
    )
    assert wrong.epsilon > 3


def test_no_false_positives_are_not_infinity() -> None:
    for method in ("joint", "clopper-pearson"):
        found = pl.audit.counts(tp=20, positives=20, fp=0, negatives=20, delta=0.0, method=method, **INDEPENDENT)
        assert 0 < found.epsilon <= found.ceiling < 3


def test_the_split_counts_the_half_it_did_not_choose_on() -> None:
    """Scores of the first half say one threshold, those of the second another."""
    rng = np.random.default_rng(5)
    members, others = rng.normal(size=41), rng.normal(size=30)
    found = pl.audit.scores(members, others, delta=0.0, threshold="split", seed=7, **INDEPENDENT)
    again = np.random.default_rng(7)
    first, second = again.permutation(members)[20:], again.permutation(others)[15:]
    at = found.threshold
    assert found.counts == {
        "tp": int(np.sum(first >= at)), "positives": 21, "fp": int(np.sum(second >= at)), "negatives": 15,
    }  # fmt: skip


def test_a_claim_has_a_delta_of_its_own() -> None:
    found = pl.audit.one_run(
        canaries=1000, guesses=1000, correct=800, delta=0.0, guesses_fixed=True, claim=(1.0, 1e-6), **COINS
    )
    assert found.claim_delta == 1e-6
    assert "Claim 1 at delta = 1e-06: refuted" in str(found)
    plain = pl.audit.one_run(
        canaries=1000, guesses=1000, correct=800, delta=1e-6, guesses_fixed=True, claim=(1.0, 1e-6), **COINS
    )
    assert "Claim 1: refuted" in str(plain)
