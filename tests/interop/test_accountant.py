"""`PrivlossAccountant` among dp-accounting's own: in its calibration, its abstract tests and its PLD accountant's."""

from __future__ import annotations

import math
import unittest
from typing import Any

import dp_accounting as dpa
import pytest
from dp_accounting import dp_event, privacy_accountant_test
from dp_accounting.pld import pld_privacy_accountant, pld_privacy_accountant_test
from dp_accounting.rdp import rdp_privacy_accountant, rdp_privacy_accountant_test

import privloss as pl
from privloss.interop.dp_accounting import RELATIONS, PrivlossAccountant

RELATION = dpa.NeighboringRelation
SGD = dpa.PoissonSampledDpEvent(0.01, dpa.GaussianDpEvent(1.1))


def test_upper_ends_and_the_interval() -> None:
    accountant = PrivlossAccountant()
    assert accountant.supports(SGD)
    accountant.compose(SGD, 4000).compose(dpa.SelfComposedDpEvent(SGD, 6000)).compose(dpa.LaplaceDpEvent(10))
    plan = pl.Gaussian(1.1).poisson(0.01) * 10_000 + pl.Laplace(noise_multiplier=10.0)
    assert accountant.plan == plan
    assert accountant.get_epsilon(1e-6) == plan.epsilon(1e-6).upper == accountant.estimate(1e-6).upper
    assert accountant.get_delta(5.0) == plan.delta(5.0).upper
    assert accountant.get_delta(math.inf) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("relation", "adjacency"), list(RELATIONS.items()), ids=str)
def test_relations(relation: Any, adjacency: str) -> None:
    accountant = PrivlossAccountant(relation).compose(SGD, 100)
    assert accountant.neighboring_relation is relation
    assert (
        accountant.get_epsilon(1e-6) == (pl.Gaussian(1.1).poisson(0.01) * 100).epsilon(1e-6, adjacency=adjacency).upper
    )
    theirs = dpa.pld.PLDAccountant(relation).compose(SGD, 100).get_epsilon(1e-6)
    assert accountant.estimate(1e-6).lower <= theirs == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-2)


def test_both_ends_hold_where_a_number_is_rounded() -> None:
    """1/0.3 is no double: the interval covers the plans on either side of it."""
    event = dp_event.DiscreteLaplaceDpEvent(0.3, 2)
    found = PrivlossAccountant().compose(event, 10).estimate(1e-6)
    for scale in (math.nextafter(1 / 0.3, 0), 1 / 0.3, math.nextafter(1 / 0.3, 9)):
        inside = (pl.DiscreteLaplace(scale, 2) * 10).epsilon(1e-6)
        assert found.lower <= inside.upper
        assert inside.lower <= found.upper
    assert found.relative_width < 1e-9
    nothing_below = PrivlossAccountant(RELATION.REPLACE_SPECIAL).compose(dp_event.RandomizedResponseDpEvent(0.5, 2))
    assert nothing_below.estimate(0.0).lower == 0 < nothing_below.get_epsilon(0.0)


def test_their_calibration() -> None:
    def event(noise: float) -> Any:
        return dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(0.01, dpa.GaussianDpEvent(noise)), 1000)

    bracket = dpa.ExplicitBracketInterval(0.5, 5.0)
    found = dpa.calibrate_dp_mechanism(PrivlossAccountant, event, 1.0, 1e-6, bracket, tol=1e-5)
    assert (pl.Gaussian(found).poisson(0.01) * 1000).epsilon(1e-6).upper == pytest.approx(1.0, abs=1e-3)
    assert (pl.Gaussian(found).poisson(0.01) * 1000).epsilon(1e-6).upper <= 1.0


def test_a_refused_event_changes_nothing() -> None:
    accountant = PrivlossAccountant().compose(SGD, 10)
    before = accountant.plan
    with pytest.raises(dpa.UnsupportedEventError, match="RandomizedResponseDpEvent: a record that is absent"):
        accountant.compose(dpa.ComposedDpEvent([SGD, dp_event.RandomizedResponseDpEvent(0.5, 2)]))
    assert accountant.plan == before


def test_inputs_that_fail_open_elsewhere() -> None:
    accountant = PrivlossAccountant().compose(SGD, 10)
    for delta in (math.nan, 2.0, -1e-6):
        with pytest.raises(pl.InvalidInput, match="delta"):
            accountant.get_epsilon(delta)
    with pytest.raises(pl.InvalidInput, match="noise_multiplier = nan"):
        accountant.compose(dpa.GaussianDpEvent(math.nan))


# -- their own tests ---------------------------------------------------------------------------------------------------

WORDS, ANSWERED = "refused in other words", "answered here, under replace-one with 2 C"
DIFFERENT = {  # every test of theirs that does not pass, and why
    "test_composition_errors_for_neighboring_relation0": WORDS,
    "test_composition_errors_for_neighboring_relation1": ANSWERED,
    "test_composition_errors_for_neighboring_relation2": WORDS,
    "test_composition_errors_for_neighboring_relation3": ANSWERED,
    "test_composition_errors_for_neighboring_relation4": WORDS,
    "test_additive_noise_mechanisms_with_zero_noise_multiplier2": "no such noise exists (a = 0): bad input",
    "test_additive_noise_mechanisms_with_zero_noise_multiplier3": "delta is the sampling rate, not 1",
    "test_additive_noise_mechanisms_with_zero_noise_multiplier4": "delta is the sampling rate, not 1",
    "test_randomized_response1": "a bound for any null report, theirs is for a uniform one",
    "test_randomized_response2": "a bound for any null report, theirs is for a uniform one",
    "test_truncated_subsampled_gaussian_basic": "a smaller bound is proven",
}


class _Instead(PrivlossAccountant):
    """In the place of their PLD accountant."""

    def __init__(self, neighboring_relation: Any = RELATION.ADD_OR_REMOVE_ONE, value_discretization_interval: Any = 0):
        super().__init__(neighboring_relation)


class _Everywhere(privacy_accountant_test.PrivacyAccountantTest):  # type: ignore[misc]
    """Their tests of any accountant."""

    __test__ = False  # run below

    def _make_test_accountants(self) -> list[Any]:
        return [PrivlossAccountant(relation) for relation in RELATION]


def _run(case: Any, but: str = "nothing") -> tuple[int, dict[str, str]]:
    """How many there are, and those that do not pass with what they print; without those whose name begins so."""
    suite, result = unittest.TestSuite(), unittest.TestResult()
    for test in unittest.TestLoader().loadTestsFromTestCase(case):
        if not str(test._testMethodName).startswith(but):  # type: ignore[union-attr]
            suite.addTest(test)
    suite.run(result)
    return result.testsRun, {str(test._testMethodName): text for test, text in result.failures + result.errors}


def test_their_tests_of_any_accountant() -> None:
    assert _run(_Everywhere) == (13, {})


def test_their_tests_of_the_pld_accountant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pld_privacy_accountant, "PLDAccountant", _Instead)
    ran, failed = _run(pld_privacy_accountant_test.PldPrivacyAccountantTest)
    assert (ran, failed.keys()) == (68, DIFFERENT.keys())


class _WithOrders(PrivlossAccountant):
    def __init__(self, orders: Any = None, neighboring_relation: Any = RELATION.ADD_OR_REMOVE_ONE):
        super().__init__(neighboring_relation)


RENYI = {  # of the Renyi accountant's tests that differ, those not about its table of orders
    "test_compute_rdp_tree_restart_raise_negative_noise": WORDS,
    "test_compute_rdp_tree_restart_raise_negative_steps": WORDS,
    "test_raises_on_invalid_noise_multiplier": WORDS,
    "test_raises_on_invalid_sampling_rate_q_large": WORDS,
    "test_raises_on_invalid_sampling_rate_q_neg": WORDS,
    "test_supports": "answered here: Poisson samples under replace-one",
    "test_epsilon_delta_consistency": "no noise on a sample: delta is the sampling rate, not 1",
    "test_laplace_repetition": "a smaller bound is proven",
    "test_repeat_and_select_pure_poisson_mean10^10": "more than 1e9 runs in the mean are refused",
    "test_log_a_frac_early_termination": "expects a warning of its own code",
}


def test_the_renyi_accountants_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many of its tests call functions that no accountant is asked for; they pass whatever accountant is there. Three
    look up a table, after seconds in which the best of many runs with next to no noise is made (an event that
    tests/mechanisms/test_selection.py asks about)."""
    monkeypatch.setattr(rdp_privacy_accountant, "RdpAccountant", _WithOrders)
    nearly_no_noise = "test_repeat_and_select_gaussian_poisson_small"
    ran, failed = _run(rdp_privacy_accountant_test.RdpPrivacyAccountantTest, nearly_no_noise)
    table = {name for name, text in failed.items() if "has no attribute '_rdp'" in text or "'_orders'" in text}
    assert failed.keys() - table == RENYI.keys()
    assert (ran, len(table)) == (139, 53)
