"""JAX Privacy, TF Privacy and Flower, on stand-ins."""

from __future__ import annotations

import json
import math
from typing import Any

import dp_accounting
import pytest

import privloss as pl
from privloss.interop.tf_privacy import PRIVLOSS
from tests.interop import training_standins as standins
from tests.interop.training_signatures import described, recorded
from tests.interop.training_standins import FLOWER, JAX, DpParams, FlowerSampling, SamplingMethod, installed

DELTA = 1e-5


@pytest.fixture
def jp(monkeypatch: pytest.MonkeyPatch) -> Any:
    return installed(monkeypatch, "jax_privacy", JAX)


@pytest.fixture
def fl(monkeypatch: pytest.MonkeyPatch) -> Any:
    return installed(monkeypatch, "flower", FLOWER)


def test_the_stand_ins_have_the_signatures_of_the_real_classes(jp: Any, fl: Any) -> None:
    for package in ("jax-privacy", "flwr"):
        for place, parameters in recorded(package).items():
            if "PrivacyAccountant." not in place:
                assert described(place) == parameters, place


# -- JAX Privacy -------------------------------------------------------------------------------------------------------


def test_the_config_is_a_pld_config_with_our_accountant(jp: Any) -> None:
    made = jp.PrivlossAccountantConfig()
    assert isinstance(made, standins.PldAccountantConfig)
    event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    found = made.create_accountant().compose(event, 100).get_epsilon(DELTA)
    assert found == (pl.Gaussian(1.0).poisson(0.01) * 100).epsilon(DELTA).upper


def run(**more: Any) -> DpParams:
    return DpParams(**{"noise_multipliers": 1.0, "num_samples": 1000, "delta": DELTA, "batch_size": 10, **more})


@pytest.mark.parametrize(
    ("more", "plan"),
    [
        ({}, pl.Gaussian(1.0).poisson(0.01) * 100),
        ({"truncated_batch_size": 20}, pl.Gaussian(1.0).truncated_poisson(0.01, 1000, 20) * 100),
        ({"examples_per_user": 3}, pl.group.plan(pl.Gaussian(1.0).poisson(0.01) * 100, people=3)),
        (
            {"sampling_method": SamplingMethod.FIXED_BATCH_SIZE},
            (pl.Gaussian(1.0).fixed_size(1000, 10) * 100).under("replace-one"),
        ),
    ],
)
def test_runs_are_plans(jp: Any, more: dict[str, Any], plan: pl.Plan) -> None:
    made = jp.TrainingAccountant()
    assert made.can_calibrate_steps()
    assert made.can_calibrate_batch_size()
    assert made.can_calibrate_noise_multipliers()
    assert made.plan(100, run(**more)) == plan
    if not more:
        assert made.estimate(100, run()) == plan.epsilon(DELTA)
        assert made.compute_epsilon(100, run()) == plan.epsilon(DELTA).upper


def test_batches_of_fixed_size_cost_more_than_jax_privacy_says(jp: Any) -> None:
    """Replaced records: the pair JAX Privacy composes is attained, and lies below what is proven."""
    fixed = run(sampling_method=SamplingMethod.FIXED_BATCH_SIZE)
    theirs = (pl.Gaussian(0.5).poisson(0.01) * 100).epsilon(DELTA)
    assert jp.TrainingAccountant().compute_epsilon(100, fixed) > theirs.upper


def test_no_noise_promises_nothing_and_the_rest_is_refused_by_name(jp: Any) -> None:
    made = jp.TrainingAccountant()
    assert made.compute_epsilon(10, run(noise_multipliers=0.0, examples_per_user=3)) == math.inf
    with pytest.raises(pl.Unsupported, match="cycle_length = 4"):
        made.plan(10, run(cycle_length=4, truncated_batch_size=300))
    banded = made.plan(1000, run(cycle_length=4))
    product = pl.Gaussian(1.0).poisson(10 / (1000 // 4)) * 250
    assert banded.epsilon(DELTA).upper == pytest.approx(product.epsilon(DELTA).upper)
    with pytest.raises(pl.Unsupported, match="truncated_batch_size"):
        made.plan(10, run(truncated_batch_size=20, sampling_method=SamplingMethod.FIXED_BATCH_SIZE))
    with pytest.raises(pl.Unsupported, match="group of 2"):
        made.plan(10, run(examples_per_user=2, sampling_method=SamplingMethod.FIXED_BATCH_SIZE))


# -- TF Privacy --------------------------------------------------------------------------------------------------------


def test_a_type_of_accountant() -> None:
    assert PRIVLOSS.value == "privloss"
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(1.1), 10)
    found = PRIVLOSS.get_accountant().compose(event).get_epsilon(DELTA)
    assert found == (pl.Gaussian(1.1) * 10).epsilon(DELTA).upper
    assert PRIVLOSS.get_accountant() is not PRIVLOSS.get_accountant()


# -- Flower ------------------------------------------------------------------------------------------------------------


def config(sampling: FlowerSampling, max_epsilon: float | None = None) -> Any:
    replaced = sampling is FlowerSampling.WITHOUT_REPLACEMENT
    relation = list(standins.NeighboringRelation)[replaced]
    return standins.PrivacyConfig(DELTA, 1000, relation, sampling, max_epsilon)


EVENT = standins.GaussianPrivacyEvent(1.0, 10, 1000)


@pytest.mark.parametrize(
    ("sampling", "plan"),
    [
        (FlowerSampling.POISSON, pl.Gaussian(1.0).poisson(0.01) * 100),
        (FlowerSampling.WITHOUT_REPLACEMENT, (pl.Gaussian(1.0).fixed_size(1000, 10) * 100).under("replace-one")),
        (FlowerSampling.NO_AMPLIFICATION, (pl.Gaussian(1.0) * 100).under("zero-out")),
    ],
)
def test_releases(fl: Any, sampling: FlowerSampling, plan: pl.Plan) -> None:
    made = fl.PrivlossAccountant(config(sampling))
    assert (made.get_epsilon(DELTA), made.get_delta(1.0), made.num_releases) == (0.0, 0.0, 0)
    made.compose(EVENT, 60)
    made.compose(EVENT, 40)
    assert made.epsilon(DELTA) == plan.epsilon(DELTA)
    assert made.get_delta(2.0) == plan.delta(2.0).upper
    spent = made.get_privacy_spent()
    assert (spent.epsilon, spent.delta, spent.num_releases) == (plan.epsilon(DELTA).upper, DELTA, 100)
    assert plan.adjacency in spent.accounting_method


def test_flowers_protocol(fl: Any) -> None:
    for place, parameters in recorded("flwr").items():
        if "PrivacyAccountant." in place:
            name = place.rpartition(".")[2]
            assert described(f"privloss.interop.flower:PrivlossAccountant.{name}") == parameters


def test_the_budget_stops_before_the_release_that_exceeds_it(fl: Any) -> None:
    made = fl.PrivlossAccountant(config(FlowerSampling.NO_AMPLIFICATION, 8.0))
    most = pl.calibrate(lambda n: pl.Gaussian(1.0) * n, epsilon=8.0, delta=DELTA, whole=True).value
    made.compose(EVENT, int(most))
    assert made.would_exceed(EVENT)
    assert not made.would_exceed(EVENT, max_epsilon=100.0)
    assert made.num_releases == most
    with pytest.raises(pl.InvalidInput, match="max_epsilon"):
        fl.PrivlossAccountant(config(FlowerSampling.POISSON)).would_exceed(EVENT)
    with pytest.raises(pl.InvalidInput, match="population_size"):
        made.compose(standins.GaussianPrivacyEvent(1.0, 10, 999))


def test_state(fl: Any) -> None:
    made = fl.PrivlossAccountant(config(FlowerSampling.POISSON))
    made.compose(EVENT, 7)
    state = json.loads(json.dumps(made.state_dict()))
    again = fl.PrivlossAccountant(config(FlowerSampling.POISSON))
    again.load_state_dict(state)
    assert again.get_privacy_spent() == made.get_privacy_spent()
    for wrong in ({}, {**state, "backend": "rdp"}, {**state, "config": {}}, {**state, "compositions": [{}]}):
        with pytest.raises(pl.InvalidInput):
            again.load_state_dict(wrong)
    assert again.num_releases == 7
