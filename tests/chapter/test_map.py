"""docs/chapter.md leads from every result of the chapter to a function that exists and a test that runs."""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.chapter.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
LABELS = json.loads((ROOT / "tests" / "data" / "chapter_labels.json").read_text())
ROW = re.compile(
    r"^\| `(?P<label>[^`]+)` \| (?P<line>.+?) \| `(?P<function>[\w.]+)` \| (?P<tests>`[^`]+`(?:, `[^`]+`)*) \|$",
    re.MULTILINE,
)
ROWS = [m.groupdict() for m in ROW.finditer((ROOT / "docs" / "chapter.md").read_text())]


def resolve(path: str) -> Any:
    """A dotted name: as much of it as is a module, then attributes."""
    parts = path.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for name in parts[i:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(path)


def named(cell: str) -> list[str]:
    """The tests in the last column."""
    return re.findall(r"`([^`]+)`", cell)


def functions_in(path: Path) -> set[str]:
    return {n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("label", LABELS["labels"] + LABELS["named"])
def test_every_label_has_a_row(label: str) -> None:
    assert [r for r in ROWS if r["label"] == label], f"{label} has no row in docs/chapter.md"


def test_no_row_is_lost_to_the_pattern() -> None:
    lines = [x for x in (ROOT / "docs" / "chapter.md").read_text().splitlines() if x.startswith("| `")]
    assert len(lines) == len(ROWS) >= 60


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["label"])
def test_row(row: dict[str, str]) -> None:
    assert callable(resolve(row["function"]))
    for test in named(row["tests"]):
        file, _, name = test.partition("::")
        assert name.split("[")[0] in functions_in(ROOT / file), f"{test} does not exist"
    assert len(row["line"]) > 8


def test_the_checks_can_fail() -> None:
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        resolve("privloss.theorems.composition.no_such_function")
    assert "test_no_such" not in functions_in(Path(__file__))


def test_every_label_has_a_planted_error() -> None:
    """`python -m tests.chapter.mutations` runs them; here: there are enough, and each still fits the sources."""
    assert {m.label for m in MUTANTS} >= set(LABELS["labels"])
    assert {m.label for m in MUTANTS} <= {r["label"] for r in ROWS}
    assert len(MUTANTS) >= 60
    for mutant in MUTANTS:
        assert mutant.old in (ROOT / "src" / "privloss" / mutant.file).read_text(), f"{mutant.label}: {mutant.what}"


def test_errata_are_recorded() -> None:
    text = (ROOT / "docs" / "errata.md").read_text()
    for item in (
        "privloss_adp",
        "Cor. kov",
        "tight example",
        "Lem. decomposition",
        "Lem. fingerprinting",
        "1 < α < 2",
        "9.6836",
    ):
        assert item in text
