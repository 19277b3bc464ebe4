"""What a record declares is true, and every part of the house that reads it works for every kind, from inside or
outside."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import privloss as pl
from privloss.adjacency import ADJACENCIES
from privloss.cli.main import main
from privloss.ledger.filters import Filter
from privloss.ledger.pricing import price
from privloss.losses.composed import ComposedLoss
from privloss.mechanisms.kinds import KINDS, SCHEMES, kind_of, schemes
from privloss.mechanisms.plan_file import schema
from tests.conformance.examples import MECHANISMS, SAMPLED

ROOT = Path(pl.__file__).parents[2]
every = pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
everything = pytest.mark.parametrize("mechanism", [*MECHANISMS, *SAMPLED], ids=repr)


def test_every_kind_and_every_scheme_has_an_example() -> None:
    assert {m.kind for m in MECHANISMS} == set(KINDS)
    assert {m.kind for m in SAMPLED} == set(SCHEMES) == {*schemes(), "poisson-group"}


@everything
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_declared_mirror_images_are_mirror_images(mechanism: pl.Mechanism, adjacency: str) -> None:
    """K(z) = K(-1 - z), for the pair and for what it becomes on samples."""
    if not mechanism.supported(adjacency):
        return
    step = mechanism.step(adjacency)
    steps = [step] + [f(0.2) for f in (step.symmetric,) if f is not None and adjacency == "replace-one" and _works(f)]
    for one in steps:
        if one.loss is not None and one.mirrored:
            loss = ComposedLoss((one.loss,))
            points = np.array([0.4, 1.3, 2.0 + 1.0j])
            assert np.allclose(loss.log_mgf(points), loss.reversed().log_mgf(points), rtol=1e-9, atol=1e-11)
            assert loss.delta_inf == pytest.approx(loss.reversed().delta_inf, rel=1e-12)


def _works(change: object) -> bool:
    try:
        change(0.2)  # type: ignore[operator]
    except Exception:
        return False
    return True


@everything
def test_saved_and_reloaded(mechanism: pl.Mechanism) -> None:
    plan = mechanism * 3
    data = json.loads(plan.to_json())
    jsonschema.validate(data, schema())
    assert pl.Plan.from_dict(data) == plan
    assert pl.Plan.from_dict(data).to_json() == plan.to_json()


def test_the_published_schema_is_the_one_of_the_registry() -> None:
    probe = "import json; from privloss.mechanisms.plan_file import schema; print(json.dumps(schema(), indent=1))"
    made = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert (Path(pl.__file__).parent / "plan.schema.json").read_text().strip() == made.strip()


@everything
def test_the_command_line_answers_its_plan_file(
    mechanism: pl.Mechanism, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = mechanism.as_plan() if mechanism.supported("add-remove") else mechanism.as_plan().under("zero-out")
    file = tmp_path / "plan.json"
    file.write_text(plan.to_json())
    with pytest.raises(SystemExit) as done:
        main(["epsilon", str(file), "--delta", "1e-3", "--json"])
    assert done.value.code == 0
    assert json.loads(capsys.readouterr().out)["epsilon"]["upper"] == plan.epsilon(1e-3).upper


@every
def test_what_is_not_certified_is_listed(mechanism: pl.Mechanism) -> None:
    """In docs/certificates.md, section 11."""
    kind = kind_of(mechanism)
    (listed,) = re.findall(r"\*\*Refused:\*\* (.*?)\n\n", (ROOT / "docs" / "certificates.md").read_text(), re.DOTALL)
    if not kind.certified and kind.description.__module__.startswith("privloss."):
        assert f"`{kind.name}`" in listed
        with pytest.raises(pl.Unsupported, match="no certified pair"):
            pl.certify(mechanism.as_plan().under("zero-out"), delta=1e-3)


@every
def test_louder_is_more_private(mechanism: pl.Mechanism) -> None:
    if kind_of(mechanism).louder is None:
        with pytest.raises(pl.Unsupported):
            mechanism.louder(2.0)
        return
    assert mechanism.louder(2.0).epsilon(1e-3).lower <= mechanism.epsilon(1e-3).upper
    assert mechanism.louder(1.0).epsilon(1e-3).upper == pytest.approx(mechanism.epsilon(1e-3).upper, rel=1e-9)


@everything
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_group_loses_more_than_one(mechanism: pl.Mechanism, adjacency: str) -> None:
    try:
        plan = pl.group.plan(mechanism.as_plan().under(adjacency), people=3)
    except pl.Unsupported:
        return
    assert pl.group.plan(mechanism.as_plan(), people=1) == mechanism.as_plan()
    assert plan.epsilon(1e-3).upper >= mechanism.epsilon(1e-3, adjacency=adjacency).lower


@everything
@pytest.mark.parametrize("currency", ["pure", "approx", "zcdp", "gdp"])
def test_priced_or_refused(mechanism: pl.Mechanism, currency: str) -> None:
    budget = Filter.of(currency, "10", "0.1" if currency == "approx" else None)
    plan = mechanism.as_plan() if mechanism.supported("add-remove") else mechanism.as_plan().under("zero-out")
    try:
        cost = price(plan, budget)
    except pl.Unsupported:
        return
    assert all(amount > 0 for amount in cost.values())
    if currency == "gdp":  # a price in GDP is exact
        assert math.sqrt(cost["mu_squared"]) >= pl.GDP(math.sqrt(cost["mu_squared"])).mu * (1 - 1e-12)
        assert plan.epsilon(1e-4).lower <= pl.GDP(math.sqrt(cost["mu_squared"])).epsilon(1e-4).upper * (1 + 1e-9)


@every
@pytest.mark.parametrize("rate", [0.0, 0.1, 1.0])
def test_sampled_or_refused(mechanism: pl.Mechanism, rate: float) -> None:
    """A sample never loses more than the whole data; nothing is lost at rate 0, nothing gained at rate 1."""
    if kind_of(mechanism).not_on_a_sample:
        with pytest.raises(pl.Unsupported, match="on a sample"):
            mechanism.poisson(rate)
        return
    sampled = mechanism.poisson(rate)
    assert sampled.supported("add-remove")
    whole = mechanism.epsilon(1e-3)
    assert sampled.epsilon(1e-3).lower <= whole.upper
    if rate == 0:
        assert sampled.epsilon(1e-3).upper == 0
    if rate == 1:
        found = sampled.epsilon(1e-3)
        assert found == whole or (mechanism.parts() != ((mechanism, 1),) and found.upper >= whole.lower)


@every
def test_certified_as_declared(mechanism: pl.Mechanism) -> None:
    if kind_of(mechanism).certified:
        found = pl.certify(mechanism, delta=1e-3)
        assert pl.verify(found).holds
        answer = mechanism.epsilon(1e-3)
        assert max(answer.lower, found.bound.lower) <= min(answer.upper, found.bound.upper)
    else:
        with pytest.raises(pl.Unsupported):
            pl.certify(mechanism, delta=1e-3)


@pytest.mark.parametrize("mechanism", SAMPLED, ids=repr)
def test_samplers_certified_as_declared(mechanism: pl.Sampled) -> None:
    if not SCHEMES[mechanism.kind].certified:
        with pytest.raises(pl.Unsupported):
            pl.certify(mechanism, delta=1e-3)
        return
    adjacency = "add-remove" if mechanism.supported("add-remove") else "zero-out"
    assert pl.verify(pl.certify(mechanism, delta=1e-3, adjacency=adjacency)).holds


def test_what_cannot_be_registered() -> None:
    known = KINDS["gaussian"]
    for bad in ("gaussian", pl.Gaussian, known):
        with pytest.raises(pl.InvalidInput):
            pl.register(bad)  # type: ignore[arg-type]


class _Unregistered(pl.Gaussian):
    """A subclass nobody vouches for."""


def test_a_subclass_is_not_its_parent() -> None:
    with pytest.raises(pl.Unsupported, match="_Unregistered"):
        _Unregistered(1.0).epsilon(1e-6)


NEW_FILE = '''
"""A new mechanism: one coin that is shown with a bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privloss.losses.step import Step
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number


@dataclass(frozen=True, repr=False)
class Coin(Mechanism):
    """Shows the truth with probability p."""

    kind: ClassVar[str] = "coin"
    p: float = number(low=0.5, high=1.0)


def _step(m: Coin, adjacency: str) -> Step:
    return Step.from_vectors([m.p, 1 - m.p], [1 - m.p, m.p], theorem="explicit pair", assumption="coin")


add_kind(Kind("coin", Coin, _step, louder=lambda m, factor: Coin(0.5 + (m.p - 0.5) / factor)))
'''
USE = """
import json, privloss as pl
from privloss.mechanisms.coin import Coin
from privloss.mechanisms.plan_file import schema
plan = Coin(0.75).poisson(0.5) * 3 + Coin(0.9)
assert pl.Plan.from_json(plan.to_json()) == plan and '"coin"' in json.dumps(schema())
assert 0 < plan.epsilon(1e-2).upper < plan.epsilon(1e-2, adjacency="zero-out").upper + 1
assert Coin(0.75).fixed_size(10, 3).epsilon(1e-3, adjacency="replace-one").upper > 0
assert len((Coin(0.75) * 3).compare(1e-3)) > 3
print("works")
"""


def test_a_mechanism_inside_is_its_file_and_one_line(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    room = tmp_path / "src" / "privloss" / "mechanisms"
    (room / "coin.py").write_text(NEW_FILE)
    index = room / "__init__.py"
    index.write_text(index.read_text() + "from privloss.mechanisms import coin as coin\n")
    out = subprocess.run(
        [sys.executable, "-c", USE], env={"PYTHONPATH": str(tmp_path / "src")}, capture_output=True, text=True
    )
    assert out.stdout.strip() == "works", out.stderr
