"""OpenDP's measurements and diffprivlib's budgets, on stand-ins that have the recorded signatures."""

from __future__ import annotations

import importlib
import math
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import privloss as pl
from privloss.interop.opendp import from_measurement
from tests.interop import standins
from tests.interop.environments import ENVIRONMENTS, ROOT
from tests.interop.signatures import recorded, signatures

NUMBERS = "AbsoluteDistance(f64)"
METHODS = ("__init__", "total", "check", "remaining", "spend", "slack", "spent_budget", "epsilon", "delta")


def test_stand_ins_have_the_recorded_signatures() -> None:
    known = recorded("diffprivlib")
    assert signatures(standins.BudgetAccountant, METHODS).items() <= known.items()
    assert known["Budget.__new__"] == "(cls, epsilon, delta)"
    assert standins.Budget._fields == ("epsilon", "delta")
    known = recorded("opendp")
    assert signatures(standins.Measurement, ("map", "input_metric", "output_measure")).items() <= known.items()
    assert signatures(standins.PrivacyProfile, ("delta", "epsilon")).items() <= known.items()


def test_every_environment_has_its_tests_and_its_signatures() -> None:
    for environment in ENVIRONMENTS:
        assert (ROOT / "tests" / "interop" / "real" / f"test_{environment.name}.py").exists()
        assert recorded(environment.name)


# -- OpenDP ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "found", "box"),
    [
        ("MaxDivergence", 0.5, pl.PureDP(0.5)),
        ("Approximate(MaxDivergence)", (0.5, 1e-7), pl.ApproxDP(0.5, 1e-7)),
        ("ZeroConcentratedDivergence", 0.1, pl.ZCDP(0.1)),
        ("Approximate(ZeroConcentratedDivergence)", (0.1, 1e-7), pl.ZCDP(0.1, delta=1e-7)),
    ],
)
def test_measures(measure: str, found: Any, box: pl.Mechanism) -> None:
    made = standins.Measurement(NUMBERS, measure, lambda d: found)
    assert measure in recorded("opendp")["measures"]
    for adjacency in ("add-remove", "replace-one"):
        assert from_measurement(made, 1.0, adjacency) == box.as_plan().under(adjacency)


def test_curves_cover_what_they_are_read_from() -> None:
    """Two hundred such boxes are dearer than any instance of them, and hardly dearer than the worst."""
    profile = from_measurement(
        standins.Measurement(NUMBERS, "SmoothedMaxDivergence", lambda d: standins.PrivacyProfile()),
        1.0, "add-remove",
    )  # fmt: skip
    instance = pl.ApproxDP(1.0, 1e-7)
    assert (instance * 5).epsilon(1e-6).lower <= (profile * 5).epsilon(1e-6).upper
    assert profile.epsilon(1.01e-7).upper == pytest.approx(1.0, abs=1e-6)
    curve = from_measurement(
        standins.Measurement(NUMBERS, "RenyiDivergence", lambda d: lambda a: 0.02 * a if a < 99 else math.inf),
        1.0, "add-remove",
    )  # fmt: skip
    gaussian = pl.Gaussian(5.0)  # has 0.02 alpha
    assert (gaussian * 200).epsilon(1e-6).lower <= (curve * 200).epsilon(1e-6).upper
    assert (curve * 200).epsilon(1e-6).upper <= 1.05 * (pl.ZCDP(0.02) * 200).epsilon(1e-6).upper


@pytest.mark.parametrize(
    ("metric", "adjacency", "least"),
    [
        ("SymmetricDistance()", "add-remove", 1),
        ("SymmetricDistance()", "replace-one", 2),
        ("InsertDeleteDistance()", "zero-out", 2),
        ("ChangeOneDistance()", "replace-one", 1),
        ("HammingDistance()", "zero-out", 1),
        ("HammingDistance()", "add-remove", None),
    ],
)
def test_metrics_between_data_sets(metric: str, adjacency: str, least: int | None) -> None:
    assert metric in recorded("opendp")["metrics"]
    made = standins.Measurement(metric, "MaxDivergence", lambda d: 0.5 * d)
    for d_in in (0, 1, 2):
        if least is not None and d_in >= least:
            assert from_measurement(made, d_in, adjacency).steps[0][0] == pl.PureDP(0.5 * d_in)
        else:
            with pytest.raises(pl.InvalidInput, match=metric.strip("()")):
                from_measurement(made, d_in, adjacency)


def test_what_opendp_cannot_promise_is_refused() -> None:
    with pytest.raises(pl.Unsupported, match="UserDivergence"):
        from_measurement(standins.Measurement(NUMBERS, "UserDivergence(tCDP)", lambda d: 1.0), 1.0, "add-remove")
    with pytest.raises(pl.InvalidInput, match="MaxDivergence at d_in"):
        from_measurement(standins.Measurement(NUMBERS, "MaxDivergence", lambda d: math.inf), 1.0, "add-remove")
    with pytest.raises(pl.InvalidInput, match="adjacency"):
        from_measurement(standins.Measurement(NUMBERS, "MaxDivergence", lambda d: 1.0), 1.0, "near")


# -- diffprivlib -------------------------------------------------------------------------------------------------------


@pytest.fixture
def accountant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class, made over the stand-in, and forgotten afterwards."""
    for name, module in standins.diffprivlib().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "privloss.interop.diffprivlib", raising=False)
    yield importlib.import_module("privloss.interop.diffprivlib").PrivlossBudgetAccountant
    sys.modules.pop("privloss.interop.diffprivlib", None)


def test_totals_are_the_exact_composition(accountant: Any) -> None:
    made = accountant(slack=1e-6, spent_budget=[(0.1, 0.0)] * 100)
    assert made.total() == ((pl.PureDP(0.1) * 100).epsilon(1e-6).upper, 1e-6)
    assert made.plan == pl.ApproxDP(0.1, 0.0) * 100
    boxes = accountant(spent_budget=[(0.1, 1e-7), (0.3, 1e-9)])
    epsilon, delta = boxes.total()
    assert Fraction(delta) >= 1 - (1 - Fraction(1e-7)) * (1 - Fraction(1e-9))
    assert delta == pytest.approx(1.01e-7, rel=1e-6)
    assert epsilon == pytest.approx(0.4)
    assert Fraction(epsilon) >= boxes.plan.epsilon(delta).lower
    assert boxes.total(slack=1e-6)[0] == (boxes.plan.epsilon(boxes.total(slack=1e-6)[1])).upper < 0.4


def test_a_whole_budget_can_be_spent(accountant: Any) -> None:
    made = accountant(epsilon=1.0, delta=1e-6)
    made.spend(0.5, 1e-6).spend(0.5, 0.0)
    assert made.total() == (1.0, 1e-6)
    with pytest.raises(ValueError, match="exceeds"):
        made.spend(1e-9, 0.0)
    assert len(made.spent_budget) == 2


def test_sums_are_rounded_up(accountant: Any) -> None:
    made = accountant(spent_budget=[(0.1, 0.0)] * 10)
    assert Fraction(made.total()[0]) >= 10 * Fraction(0.1) > 1


def test_nothing_and_everything(accountant: Any) -> None:
    assert accountant().total() == (0.0, 0.0)
    assert accountant().total(spent_budget=[(math.inf, 0.0)])[0] == math.inf
    with pytest.raises(ValueError, match="non-negative"):
        accountant().total(spent_budget=[(-1.0, 0.0)])


EXTRAS = {  # adapter: the package that is missing, and the extra that brings it
    "opacus": ("opacus", "opacus"),
    "dp_accounting": ("dp_accounting", "dp-accounting"),
    "jax_privacy": ("jax_privacy", "jax-privacy"),
    "tf_privacy": ("dp_accounting", "dp-accounting"),
    "flower": ("flwr", "flower"),
    "diffprivlib": ("diffprivlib", "diffprivlib"),
}
OFFERED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("adapter", EXTRAS)
def test_a_missing_package_is_named_with_its_extra(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, extra = EXTRAS[adapter]
    monkeypatch.setitem(sys.modules, package, None)
    held = {name: sys.modules.pop(f"privloss.interop.{name}", None) for name in {adapter, "dp_accounting"}}
    if adapter == "jax_privacy":  # dp-accounting itself is there
        importlib.import_module("privloss.interop.dp_accounting")
    with pytest.raises(pl.MissingExtra, match=rf"pip install 'privloss\[{extra}\]'"):
        importlib.import_module(f"privloss.interop.{adapter}")
    assert extra in OFFERED
    for name, module in held.items():
        sys.modules.pop(f"privloss.interop.{name}", None)
        if module is not None:
            sys.modules[f"privloss.interop.{name}"] = module


def test_every_extra_that_is_named_is_offered() -> None:
    texts = [
        path.read_text() for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md")
    ]
    named = {
        name for text in texts for group in re.findall(r"privloss\[([a-z,-]+)\]", text) for name in group.split(",")
    }
    assert named <= set(OFFERED)
    assert {extra for _, extra in EXTRAS.values()} | {"opendp", "tf-privacy"} <= set(OFFERED)


def test_adapters_are_loaded_only_when_they_are_imported() -> None:
    code = "import sys, privloss; privloss.Gaussian(1.0).epsilon(1e-6); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in loaded if name.split(".")[0] in {package for package, _ in EXTRAS.values()}]
    assert not [name for name in loaded if name.startswith("privloss.interop.")]
