"""The examples of audits, with few runs: planted bugs are caught, what is honest is not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "audit"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_all_examples_are_tested() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == ["samplers", "training"]


def test_samplers() -> None:
    samplers = example("samplers")
    for each in samplers.numpy_samplers():
        found = samplers.audit(each, 1200, 0.05)
        leaks = each.planted or each.name == "NumPy Laplace, low bits"
        assert (found.verdict == "refuted") == leaks, (each.name, str(found))


@pytest.mark.parametrize("bug", ["none", "no clipping", "noise halved", "batches shuffled", "seed reused"])
def test_training(bug: str) -> None:
    found = example("training").audit(bug, 600)
    assert (found.verdict == "refuted") == (bug != "none"), str(found)
