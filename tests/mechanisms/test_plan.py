"""The algebra of plans and the plan file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import privloss as pl
from privloss.mechanisms.plan_file import schema

ALL = [
    pl.Gaussian(1.1),
    pl.Gaussian(sigma=2.0, sensitivity=3.0),
    pl.Gaussian(sigma=2.0),
    pl.Gaussian(1.1).poisson(0.01),
    pl.Laplace(10.0),
    pl.Laplace(10.0, sensitivity=2.0),
    pl.RandomizedResponse(1.0),
    pl.RandomizedResponse(p=0.25, answers=5),
    pl.PureDP(0.1),
    pl.ApproxDP(0.1, 1e-9),
    pl.ZCDP(0.5),
    pl.RDP([2, 4], [0.1, 0.3]),
    pl.GDP(1.5),
]


def test_plus_and_times() -> None:
    g, lap = pl.Gaussian(1.0), pl.Laplace(2.0)
    plan = g * 3 + lap + 2 * g
    assert plan.steps == ((g, 5), (lap, 1))
    assert plan == lap + g * 5
    assert hash(plan) == hash(lap + g * 5)
    assert plan != g * 4 + lap
    assert (plan * 2).steps == ((g, 10), (lap, 2))
    assert len(plan) == 6
    assert sum([g, lap, g]) == g * 2 + lap
    assert g + lap == lap + g


def test_large_counts_are_exact() -> None:
    assert (pl.Gaussian(1.0) * 10**12).steps[0][1] == 10**12
    with pytest.raises(pl.InvalidInput, match="count"):
        _ = pl.Gaussian(1.0) * (10**12 + 1)
    with pytest.raises(pl.InvalidInput, match="count of Gaussian"):
        _ = pl.Gaussian(1.0) * 10**12 + pl.Gaussian(1.0)


def test_descriptions_are_frozen_and_hashable() -> None:
    assert len(set(ALL)) == len(ALL)
    with pytest.raises(AttributeError):
        ALL[0].noise_multiplier = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_json_round_trip_and_schema(mechanism: Any) -> None:
    plan = mechanism * 7
    data = json.loads(plan.to_json())
    jsonschema.validate(data, schema())
    assert pl.Plan.from_dict(data) == plan
    assert pl.Plan.from_json(plan.to_json()) == plan
    assert eval(repr(mechanism), {name: getattr(pl, name) for name in pl.__all__}) == mechanism


def test_adjacency_travels() -> None:
    plan = (pl.Gaussian(1.0) * 2).under("replace-one")
    assert pl.Plan.from_json(plan.to_json()).adjacency == "replace-one"
    assert plan != plan.under("add-remove")
    with pytest.raises(pl.InvalidInput, match="one adjacency"):
        _ = plan + pl.Gaussian(1.0).as_plan()


def test_defaults_of_the_file() -> None:
    plan = pl.Plan.from_dict({"steps": [{"mechanism": "gaussian", "noise_multiplier": 1}]})
    assert plan == pl.Plan.of((pl.Gaussian(1.0), 1))


def test_load(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text((pl.Gaussian(1.0) * 2).to_json())
    assert pl.Plan.load(path) == pl.Gaussian(1.0) * 2
    with pytest.raises(pl.InvalidPlan, match="cannot be read"):
        pl.Plan.load(tmp_path / "missing.json")


STEP = {"mechanism": "gaussian", "noise_multiplier": 1.0}
BAD = [
    ({"steps": []}, "non-empty"),
    ({}, "missing"),
    ([], "object"),
    ({"steps": [STEP], "extra": 1}, "unknown"),
    ({"steps": [STEP], "version": 2}, "version"),
    ({"steps": [STEP], "version": True}, "version"),
    ({"steps": [STEP], "adjacency": "swap"}, "adjacency"),
    ({"steps": [{**STEP, "count": 0}]}, "count"),
    ({"steps": [{**STEP, "count": 2.5}]}, "count"),
    ({"steps": [{**STEP, "count": True}]}, "count"),
    ({"steps": [{**STEP, "count": "3"}]}, "count"),
    ({"steps": [{**STEP, "colour": 1}]}, "colour"),
    ({"steps": [{"mechanism": "gauss"}]}, "must be one of"),
    ({"steps": [{"mechanism": None}]}, "must be one of"),
    ({"steps": [{"noise_multiplier": 1}]}, "mechanism"),
    ({"steps": [{"mechanism": "laplace"}]}, "scale"),
    ({"steps": [{"mechanism": "gaussian", "noise_multiplier": None}]}, "null"),
    ({"steps": [{"mechanism": "gaussian", "noise_multiplier": -1}]}, "noise_multiplier"),
    ({"steps": [{"mechanism": "gaussian", "noise_multiplier": "1"}]}, "noise_multiplier"),
    ({"steps": [{"mechanism": "gaussian", "noise_multiplier": True}]}, "noise_multiplier"),
    ({"steps": [{"mechanism": "gaussian", "noise_multiplier": 1, "sigma": 1}]}, "exactly one"),
    ({"steps": [{"mechanism": "gaussian", "noise_multiplier": 1, "sensitivity": 1}]}, "sensitivity"),
    ({"steps": [{"mechanism": "gaussian"}]}, "exactly one"),
    ({"steps": [{**STEP, "sampling": {"scheme": "poisson"}}]}, "rate"),
    ({"steps": [{**STEP, "sampling": {"scheme": "poisson", "rate": 1.5}}]}, "rate"),
    ({"steps": [{**STEP, "sampling": {"scheme": "dice", "rate": 0.5}}]}, "scheme"),
    ({"steps": [{**STEP, "sampling": 3}]}, "object"),
    ({"steps": [{"mechanism": "approx-dp", "epsilon": 1}]}, "delta"),
    ({"steps": [{"mechanism": "approx-dp", "epsilon": 1, "delta": 2}]}, "delta"),
    ({"steps": [{"mechanism": "rdp", "orders": [1], "epsilons": [1]}]}, "orders"),
    ({"steps": [{"mechanism": "rdp", "orders": [2, 2], "epsilons": [1, 1]}]}, "distinct"),
    ({"steps": [{"mechanism": "rdp", "orders": [2, 3], "epsilons": [1]}]}, "equal"),
    ({"steps": [{"mechanism": "randomized-response", "epsilon": 1, "p": 0.5}]}, "exactly one"),
    ({"steps": [{"mechanism": "randomized-response", "p": 0.5, "answers": 1}]}, "answers"),
    ({"steps": [3]}, "object"),
]


@pytest.mark.parametrize(("data", "words"), BAD, ids=lambda x: str(x)[:60])
def test_bad_plans_get_one_sentence(data: Any, words: str) -> None:
    with pytest.raises(pl.InvalidPlan, match=words) as caught:
        pl.Plan.from_dict(data)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        '{"steps": [NaN]}',
        '{"steps": 1, "steps": 2}',
        '{"steps": [{"mechanism": "gaussian", "noise_multiplier": Infinity}]}',
        "[" * 100_000,
    ],
    ids=range(7),
)
def test_bad_text(text: str) -> None:
    with pytest.raises(pl.InvalidPlan):
        pl.Plan.from_json(text)


def test_what_is_not_there_yet_is_refused_by_name() -> None:
    with pytest.raises(pl.Unsupported, match="no proven worst pair"):
        (pl.Gaussian(1.0) + pl.ZCDP(0.1)).poisson(0.1).epsilon(1e-6)
    with pytest.raises(pl.Unsupported, match="Gaussian noise only"):
        (pl.Gaussian(1.0) + pl.Laplace(1.0)).allocated(10).epsilon(1e-6)
    with pytest.raises(pl.Unsupported, match="replace-one"):
        pl.Gaussian(sigma=1.0).poisson(0.1).epsilon(1e-6, adjacency="replace-one")
    with pytest.raises(pl.Unsupported, match="add-remove"):
        pl.Gaussian(1.0).shuffled(10).epsilon(1e-6)


def test_a_group_on_a_sample_is_saved_and_reloaded() -> None:
    plan = pl.group.plan(pl.Gaussian(1.3).poisson(0.1) * 3, people=2)
    again = pl.Plan.from_json(plan.to_json())
    assert again == plan
    assert again.delta(1.0) == plan.delta(1.0)
    assert again != pl.Gaussian(1.3).poisson(0.1) * 3
    bad = plan.to_json().replace('"people": 2', '"people": 0')
    with pytest.raises(pl.InvalidPlan, match="people"):
        pl.Plan.from_json(bad)
    with pytest.raises(pl.InvalidInput, match="sampling"):  # no training run is one of a group
        pl.dp_sgd(dataset_size=100, batch_size=10, steps=5, noise_multiplier=1.0, sampling="poisson-group")
