"""The examples of docs/matrix.md and docs/mechanisms.md run, and say what they say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import privloss as pl

DOCS = Path(__file__).parents[2] / "docs"


def examples(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["matrix.md", "mechanisms.md"])
def test_examples_run(page: str) -> None:
    """Where the last line is a question with a figure behind it, the figure is its answer."""
    space: dict[str, object] = {"pl": pl}
    answered = 0
    for text in examples(page):
        *before, last = ast.parse(text).body
        exec(compile(ast.Module(before, []), page, "exec"), space)
        found = eval(compile(ast.Expression(last.value), page, "eval"), space) if isinstance(last, ast.Expr) else None
        said = re.search(r"# (\d+\.\d+)", text.splitlines()[-1])
        if said is not None:
            assert isinstance(found, pl.Bound)
            assert found.upper == pytest.approx(float(said[1]), abs=1.01 * 10.0 ** -len(said[1].split(".")[1]))
            answered += 1
    assert answered >= 1
