"""Every public function of the textbook has an example that runs: in docs/examples.md, or in its own docstring."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

import pytest

import privloss as pl

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "examples.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = (
    "central_limit", "composition", "conversion", "figures", "gaussian_dp", "group", "inequalities", "limits",
    "optimal_conversion", "pipelines", "remarks", "saddle_point", "shuffling", "subsampling", "tracing", "tradeoff",
)  # fmt: skip


def test_the_examples_run() -> None:
    code = "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    found = doctest.DocTestParser().get_doctest(code, {}, "examples", str(PAGE), 0)
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(found, out=said.append)
    assert result.failed == 0, "".join(said)
    assert result.attempted >= 80


def public(module: str) -> list[str]:
    """Its functions, as the module itself names them."""
    tree = ast.parse(Path(getattr(pl, module).__file__).read_text())
    names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
    return [*names, *(n for n in getattr(getattr(pl, module), "__all__", ()) if n not in names)]


@pytest.mark.parametrize("module", MODULES)
def test_every_function_has_one(module: str) -> None:
    page = PAGE.read_text()
    missing = [name for name in public(module) if f"pl.{module}.{name}(" not in page]
    assert not missing


@pytest.mark.parametrize("name", [n for n in pl.__all__ if n.islower() and callable(getattr(pl, n))])
def test_every_function_at_the_top_has_one(name: str) -> None:
    source = Path(getattr(pl, name).__code__.co_filename).read_text()
    examples = re.findall(r"^\s*(?:>>>|\.\.\.) .*$", source, re.MULTILINE)
    pages = [PAGE, ROOT / "docs" / "extending.md"]  # the second is run by tests/test_readme.py
    lines = [line for page in pages for line in page.read_text().splitlines()]
    assert any(f"{name}(" in line for line in [*examples, *lines])
