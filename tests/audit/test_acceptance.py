"""Known figures, floors under what audits show, and mistakes that others make."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

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


# -- power: medians, at least those of a second implementation less 5 % ------------------------------------------------


def medians(make: Any, audits: int) -> float:
    rng = np.random.default_rng(1)
    return float(np.median([make(rng).epsilon for _ in range(audits)]))


@pytest.mark.parametrize(
    ("way", "laplace", "gaussian"),
    [("band", 0.746, 1.21), ("dkw", 0.765, 0.95), ("bonferroni", 0.675, 1.02)],
)
def test_power_of_chosen_thresholds(way: str, laplace: float, gaussian: float) -> None:
    def scored(draw: Any, delta: float) -> Any:
        return lambda rng: pl.audit.scores(
            draw(size=1000) + 1, draw(size=1000), delta=delta, threshold=way, **INDEPENDENT
        )

    rng = np.random.default_rng(2)
    assert medians(scored(rng.laplace, 0.0), 40) >= 0.95 * laplace
    assert medians(scored(rng.normal, 0.01), 40) >= 0.95 * gaussian


@pytest.mark.parametrize(("mu", "all_guessed", "extremes"), [(1.0, 0.695, 1.63), (3.0, 2.42, 3.49)])
def test_power_of_one_run(mu: float, all_guessed: float, extremes: float) -> None:
    """1.63 is 90 right guesses of 100, the median of 3 000 runs; 91 or more, 1.72, come in 49 % of them."""
    for budgets, floor in (([(500, 500)], all_guessed), ([(50, 50)], extremes)):
        found = medians(
            lambda rng, b=budgets: pl.audit.one_run_scores(
                *gaussian_canaries(rng, 1000, mu), budgets=b, delta=1e-5, **COINS
            ),
            160,
        )
        assert found >= 0.95 * floor


def test_power_of_counts() -> None:
    """At the median outcome of randomised response and of a Laplace tail, eps = 1, a hundred runs a side."""
    for tp, fp, floor in ((73, 27, 0.729), (69, 31, 0.547)):
        found = pl.audit.counts(tp=tp, positives=100, fp=fp, negatives=100, delta=0.0, **INDEPENDENT)
        assert found.epsilon >= 0.95 * floor


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
