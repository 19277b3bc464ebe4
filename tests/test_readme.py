"""What the README and the examples say is true: the code runs, the commands run."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import privloss as pl
from privloss.mechanisms.plan_file import schema

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [[line for line in text.splitlines() if line.startswith("privloss ")] for _, text in BLOCKS]


def test_python_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for code in [text for language, text in BLOCKS if language == "python"]:
        exec(code, space)
    sgd = space["sgd"]
    assert isinstance(sgd, pl.Plan)
    assert repr(sgd.epsilon(delta=1e-6)).startswith("Bound(5.80693502656")


@pytest.mark.parametrize("commands", [block for block in COMMANDS if block])
def test_commands(commands: list[str], tmp_path: Path) -> None:
    """The commands of one block, in order, in one directory."""
    for command in commands:
        words = [word.replace("examples/", f"{ROOT}/examples/") for word in shlex.split(command, comments=True)[1:]]
        run = [sys.executable, "-m", "privloss", *words]
        done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_plan_file_in_the_readme_is_the_example() -> None:
    (text,) = [text for language, text in BLOCKS if language == "json"]
    assert pl.Plan.from_json(text) == pl.Plan.load(ROOT / "examples" / "release.json")


def test_examples_match_the_schema() -> None:
    for path in (ROOT / "examples").glob("*.json"):
        jsonschema.validate(pl.Plan.load(path).to_dict(), schema())


def test_there_are_commands() -> None:
    assert sum(map(len, COMMANDS)) >= 15


def test_extending_runs() -> None:
    """docs/extending.md: both examples run, and the new mechanism answers like its enumeration."""
    text = (ROOT / "docs" / "extending.md").read_text()
    space: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "extending.md", "exec", dont_inherit=True), space)
    made, pair = space["Wrapped"](scale=2.0, modulus=8), space["wrapped_pair"]  # type: ignore[operator]
    p, q = pair(made)  # type: ignore[operator]
    for eps in (0.0, 0.2):
        truth = sum(max(a - math.exp(eps) * b, 0.0) for a, b in zip(p, q, strict=True))
        assert made.delta(eps).upper == pytest.approx(truth, rel=1e-9)
    assert made.explain(delta=1e-6).theorems[0].startswith("Wrapped discrete Laplace")
    with pytest.raises(pl.InvalidInput, match="modulus = 0"):
        space["Wrapped"](scale=2.0, modulus=0)  # type: ignore[operator]
