"""dp-accounting 0.4 to 0.6: what of their events exists is read and written, and their own tests run on our accountant.

The events themselves are compared with oracles in tests/interop/test_events.py, on the version that `make test` has.
"""

from __future__ import annotations

import inspect
import unittest
from importlib.metadata import version
from typing import Any

import dp_accounting as dpa
import pytest
from dp_accounting import dp_event, privacy_accountant_test
from dp_accounting.pld import pld_privacy_accountant, pld_privacy_accountant_test

import privloss as pl
from privloss.interop.dp_accounting import RELATIONS, PrivlossAccountant, from_dp_event, to_dp_event
from privloss.interop.events import _COMPOSITIONS, READ

CLASSES = {
    name: made
    for name, made in vars(dp_event).items()
    if inspect.isclass(made) and hasattr(made, "__attrs_attrs__") and name != "DpEvent"
}
GAUSSIAN, LAPLACE = dp_event.GaussianDpEvent(1.1), dp_event.LaplaceDpEvent(2.0)
NOISE = pl.Gaussian(1.1)
WRITTEN: dict[str, tuple[tuple[Any, ...], pl.Plan | pl.Mechanism | None]] = {  # arguments, plan; None: refused by name
    "NoOpDpEvent": ((), pl.PureDP(0.0)),
    "NonPrivateDpEvent": ((), pl.Gaussian(0.0)),
    "UnsupportedDpEvent": ((), None),
    "GaussianDpEvent": ((1.1,), pl.Gaussian(1.1)),
    "LaplaceDpEvent": ((2.0,), pl.Laplace(noise_multiplier=2.0)),
    "DiscreteLaplaceDpEvent": ((0.25, 3), pl.DiscreteLaplace(scale=4.0, sensitivity=3)),
    "SelfComposedDpEvent": ((GAUSSIAN, 5), pl.Gaussian(1.1) * 5),
    "ComposedDpEvent": (([GAUSSIAN, LAPLACE],), pl.Gaussian(1.1) + pl.Laplace(noise_multiplier=2.0)),
    "PoissonSampledDpEvent": ((0.01, GAUSSIAN), pl.Gaussian(1.1).poisson(0.01)),
    "SampledWithReplacementDpEvent": ((100, 7, GAUSSIAN), pl.Gaussian(1.1).with_replacement(n=100, m=7)),
    "SampledWithoutReplacementDpEvent": ((100, 7, GAUSSIAN), pl.Gaussian(1.1).fixed_size(n=100, m=7)),
    "TruncatedSubsampledGaussianDpEvent": ((100, 0.05, 7, 1.1), NOISE.truncated_poisson(0.05, n=100, most=7)),
    "MixtureOfGaussiansDpEvent": ((3.0, [0.0, 2.0], [0.9, 0.1]), pl.Gaussian(sigma=3.0, sensitivity=2.0).poisson(0.1)),
    "ZCDpEvent": ((0.1,), pl.ZCDP(0.1)),
    "RepeatAndSelectDpEvent": ((GAUSSIAN, 10.0, 1.0), pl.select_best(NOISE, mean=10.0, shape=1.0)),
    "RandomizedResponseDpEvent": ((0.5, 3), None),  # under add-remove
    "SingleEpochTreeAggregationDpEvent": ((1.1, [4, 1]), None),  # under add-remove
}  # fmt: skip


def test_every_class_of_this_version_is_known_with_its_fields() -> None:
    for name, made in CLASSES.items():
        entry = READ.get(name) or _COMPOSITIONS[name]
        fields = [field.name for field in made.__attrs_attrs__]
        assert set(entry.fields) <= set(fields) <= {*entry.fields, *entry.optional}, name


@pytest.mark.parametrize("name", CLASSES)
def test_events_are_read(name: str) -> None:
    arguments, plan = WRITTEN[name]
    event = CLASSES[name](*arguments)
    if plan is None:
        with pytest.raises(pl.Unsupported, match=f"^{name}: "):
            from_dp_event(event)
    else:
        assert from_dp_event(event) == plan.as_plan()
    if name == "RandomizedResponseDpEvent":
        assert from_dp_event(event, "replace-one") == pl.RandomizedResponse(p=0.5, answers=3).as_plan().under(
            "replace-one"
        )
    if name == "SingleEpochTreeAggregationDpEvent":
        tree = pl.TreeAggregation(steps=4, noise_multiplier=1.1)
        assert from_dp_event(event, "zero-out") == tree.as_plan().under("zero-out")


@pytest.mark.parametrize("name", [name for name, (_, plan) in WRITTEN.items() if plan is not None])
def test_plans_are_written_or_refused_if_the_class_came_later(name: str) -> None:
    plan = WRITTEN[name][1].as_plan()  # type: ignore[union-attr]
    if name in CLASSES:
        assert from_dp_event(to_dp_event(plan)) == plan
    else:
        with pytest.raises(pl.Unsupported, match=f"this version of dp-accounting has no {name}"):
            to_dp_event(plan)


@pytest.mark.parametrize(("relation", "adjacency"), list(RELATIONS.items()), ids=str)
def test_the_accountant_beside_theirs(relation: Any, adjacency: str) -> None:
    step = dp_event.PoissonSampledDpEvent(0.01, GAUSSIAN)
    ours = PrivlossAccountant(relation).compose(step, 100)
    assert ours.estimate(1e-6) == (pl.Gaussian(1.1).poisson(0.01) * 100).under(adjacency).epsilon(1e-6)
    theirs = pld_privacy_accountant.PLDAccountant(relation)
    if theirs.supports(step):
        found = theirs.compose(step, 100).get_epsilon(1e-6)
        assert ours.estimate(1e-6).lower <= found == pytest.approx(ours.get_epsilon(1e-6), rel=1e-2)
    with pytest.raises(dpa.UnsupportedEventError, match="stands for an operation"):
        ours.compose(dp_event.UnsupportedDpEvent())


def test_their_calibration() -> None:
    def event(noise: float) -> Any:
        return dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(noise)), 1000)

    bracket = dpa.ExplicitBracketInterval(0.5, 5.0)
    found = dpa.calibrate_dp_mechanism(PrivlossAccountant, event, 1.0, 1e-6, bracket, tol=1e-5)
    assert 0.999 < (pl.Gaussian(found).poisson(0.01) * 1000).epsilon(1e-6).upper <= 1.0


# -- their own tests ---------------------------------------------------------------------------------------------------


class _Instead(PrivlossAccountant):
    def __init__(self, neighboring_relation: Any = dpa.NeighboringRelation.ADD_OR_REMOVE_ONE, *_: Any, **__: Any):
        super().__init__(neighboring_relation)


class _Everywhere(privacy_accountant_test.PrivacyAccountantTest):  # type: ignore[misc]
    __test__ = False  # run below

    def _make_test_accountants(self) -> list[Any]:
        return [PrivlossAccountant(relation) for relation in RELATIONS]


def _run(case: Any) -> tuple[int, list[str]]:
    suite, result = unittest.TestLoader().loadTestsFromTestCase(case), unittest.TestResult()
    suite.run(result)
    failed = {str(test._testMethodName) for test, _ in result.failures + result.errors}
    return result.testsRun, sorted(failed)


ZERO = "test_additive_noise_mechanisms_with_zero_noise_multiplier"
RELATION = "test_composition_errors_for_neighboring_relation"
OLD = [f"{ZERO}2", f"{ZERO}3"]
RECENT = [
    *(f"{ZERO}{k}" for k in (2, 3, 4)),
    *(f"{RELATION}{k}" for k in range(5)),
    "test_randomized_response1",
    "test_randomized_response2",
]
DIFFERENT = {  # version: their tests of any accountant; of the PLD accountant, and those that differ (docs/interop.md)
    "0.4.2": (5, 25, OLD),
    "0.4.4": (5, 29, OLD),
    "0.5.0": (13, 67, RECENT),
    "0.5.1": (13, 68, [*RECENT, "test_truncated_subsampled_gaussian_basic"]),
    "0.6.0": (13, 68, [*RECENT, "test_truncated_subsampled_gaussian_basic"]),
}


def test_their_own_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere, of_pld, different = DIFFERENT[version("dp-accounting")]
    assert _run(_Everywhere) == (everywhere, [])
    monkeypatch.setattr(pld_privacy_accountant, "PLDAccountant", _Instead)
    assert _run(pld_privacy_accountant_test.PldPrivacyAccountantTest) == (of_pld, different)
