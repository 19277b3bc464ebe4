"""Words that people look for, and plan files in YAML."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest

import privloss as pl
from privloss.mechanisms.plan_file import schema


def test_noise_by_what_it_promises() -> None:
    assert pl.Laplace(epsilon=0.7).epsilon(0.0) == pl.Laplace(1.0, 0.7).epsilon(0.0)
    assert pl.Laplace(epsilon=0.7).delta(0.2) == pl.Laplace(1.0, 0.7).delta(0.2)
    assert pl.Gaussian(mu=0.7).delta(0.3) == pl.GDP(0.7).delta(0.3)
    made = pl.Gaussian(rho=0.3)
    assert Fraction(made.sensitivity or 0.0) ** 2 / 2 >= Fraction(0.3)
    assert made.zcdp().upper == pytest.approx(0.3, rel=1e-14)
    assert pl.Geometric(epsilon=0.7).epsilon(0.0).upper == pytest.approx(0.7)
    assert pl.Geometric(epsilon=0.7).epsilon(0.0).upper >= 0.7
    assert pl.Geometric is pl.DiscreteLaplace


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (pl.Laplace, {"epsilon": 1.0, "scale": 1.0}),
        (pl.Laplace, {"epsilon": 0.0}),
        (pl.Laplace, {"epsilon": math.nan}),
        (pl.DiscreteLaplace, {"epsilon": 1.0, "sensitivity": 2}),
        (pl.Gaussian, {"mu": 1.0, "rho": 0.5}),
        (pl.Gaussian, {"mu": 1.0, "sigma": 0.5}),
        (pl.Gaussian, {"rho": -1.0}),
        (pl.Gaussian, {"mu": "1"}),
    ],
)
def test_noise_said_twice_or_badly(make: type, given: dict[str, object]) -> None:
    with pytest.raises(pl.InvalidInput):
        make(**given)


FILES = [
    {"mechanism": "geometric", "scale": 3.0},
    {"mechanism": "geometric", "epsilon": 0.5},
    {"mechanism": "laplace", "epsilon": 0.5},
    {"mechanism": "gaussian", "mu": 0.5},
    {"mechanism": "gaussian", "rho": 0.5},
    {"mechanism": "select-best", "base": [{"mechanism": "laplace", "epsilon": 1.0, "count": 2}], "mean": 3.0},
    {"mechanism": "select-best", "base": [{"mechanism": "pure-dp", "epsilon": 1.0}], "mean": 3, "shape": "poisson"},
    {"mechanism": "select-best", "base": [{"mechanism": "pure-dp", "epsilon": 1.0}], "trials": 3},
    {
        "mechanism": "together",
        "releases": [{"mechanism": "gaussian", "mu": 0.5}, {"mechanism": "geometric", "scale": 2.0}],
        "sampling": {"scheme": "poisson", "rate": 0.1},
    },
]


@pytest.mark.parametrize("step", FILES, ids=json.dumps)
def test_in_plan_files(step: dict[str, object]) -> None:
    data = {"steps": [step]}
    jsonschema.validate(data, schema())
    plan = pl.Plan.from_dict(data)
    assert pl.Plan.from_json(plan.to_json()) == plan
    jsonschema.validate(json.loads(plan.to_json()), schema())


def test_nested_steps_are_read_as_strictly() -> None:
    inside = {"mechanism": "gaussian", "noise_multiplier": 1.0}
    sampled = {**inside, "sampling": {"scheme": "poisson", "rate": 0.1}}
    for bad, word in (
        ({"mechanism": "together", "releases": []}, "non-empty"),
        ({"mechanism": "together", "releases": {}}, "non-empty"),
        ({"mechanism": "together", "releases": [{**inside, "sigmas": 1}]}, r"releases\[0\].*'sigmas' is unknown"),
        ({"mechanism": "together", "releases": [sampled]}, "its own"),
        ({"mechanism": "select-best", "base": [inside], "mean": 0.5}, "at least 1"),
        ({"mechanism": "select-best", "base": [inside], "mean": 5, "shape": "normal"}, "shape"),
    ):
        with pytest.raises(pl.InvalidPlan, match=word):
            pl.Plan.from_dict({"steps": [bad]})
    deep: dict[str, object] = inside
    for _ in range(40):
        deep = {"mechanism": "select-best", "base": [deep], "mean": 2.0}
    with pytest.raises(pl.InvalidPlan, match="too deeply"):
        pl.Plan.from_dict({"steps": [deep]})


# -- YAML --------------------------------------------------------------------------------------------------------------

TEXT = """
# a training run and what was tuned
adjacency: zero-out
steps:
  - mechanism: select-best
    mean: 10
    base:
      - {mechanism: gaussian, noise_multiplier: 1.1, count: 100, sampling: {scheme: poisson, rate: 1e-2}}
  - mechanism: approx-dp
    epsilon: 1e-1
    delta: 1e-9
"""


def test_the_same_plan_in_yaml(tmp_path: Path) -> None:
    base = pl.Gaussian(1.1).poisson(0.01) * 100
    plan = (pl.select_best(base, mean=10) + pl.ApproxDP(0.1, 1e-9)).under("zero-out")
    assert pl.Plan.from_yaml(TEXT) == plan
    for name in ("plan.yaml", "plan.yml"):
        (tmp_path / name).write_text(TEXT)
        assert pl.Plan.load(tmp_path / name) == plan
    (tmp_path / "plan.json").write_text(plan.to_json())
    assert pl.Plan.load(tmp_path / "plan.json") == plan
    assert pl.Plan.from_yaml(plan.to_json()) == plan  # JSON is YAML


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("steps: [", "is not YAML"),
        ("steps: 3", "non-empty list"),
        ("- 1", "must be an object"),
        ("steps:\n - {mechanism: gdp, mu: 1, mu: 2}", "given twice"),
        ("steps: &a\n - {mechanism: gdp, mu: 1}\nadjacency: *a", "references"),
        ("steps:\n - {mechanism: gdp, mu: yes}", "mu"),
        ("steps:\n - {mechanism: gdp, mu: .inf}", "mu"),
        ("steps:\n - !!python/object:os.system {}", "is not YAML"),
        ("steps:\n - {mechanism: gdp, mu: 2001-01-01}", "mu"),
    ],
)
def test_bad_yaml(text: str, word: str) -> None:
    with pytest.raises(pl.InvalidPlan, match=word):
        pl.Plan.from_yaml(text)


def test_without_the_package_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(pl.MissingExtra, match=r"pip install 'privloss\[yaml\]'"):
        pl.Plan.from_yaml(TEXT)
