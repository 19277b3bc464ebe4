"""What the README and the examples say is true: the code runs, the commands run."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
import re
import shlex
from pathlib import Path

import jsonschema
import pytest

import privloss as pl
from privloss.mechanisms.plan_file import schema
from tests.cli.inside import run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [[line for line in text.splitlines() if line.startswith("privloss ")] for _, text in BLOCKS]


def test_python_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for code in [text for language, text in BLOCKS if language == "python"]:
        exec(code, space)
    assert space["release"] == pl.Plan.load(ROOT / "examples" / "release.json")  # what the shell is asked about
    sgd = space["sgd"]
    assert isinstance(sgd, pl.Plan)
    assert repr(sgd.epsilon(delta=1e-6)).startswith("Bound(5.80693502656")


@pytest.mark.parametrize("commands", [block for block in COMMANDS if block])
def test_commands(commands: list[str], tmp_path: Path) -> None:
    """The commands of one block, in order, in one directory."""
    for command in commands:
        words = [word.replace("examples/", f"{ROOT}/examples/") for word in shlex.split(command, comments=True)[1:]]
        with contextlib.chdir(tmp_path):
            done = run(*words)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_plan_file_in_the_readme_is_the_example() -> None:
    (text,) = [text for language, text in BLOCKS if language == "json"]
    assert pl.Plan.from_json(text) == pl.Plan.load(ROOT / "examples" / "release.json")


def test_examples_match_the_schema() -> None:
    for path in (ROOT / "examples").glob("*.json"):
        jsonschema.validate(pl.Plan.load(path).to_dict(), schema())


def test_blocks_share_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger of the Python block and that of the shell do not collide."""
    monkeypatch.chdir(tmp_path)
    (code,) = [text for language, text in BLOCKS if language == "python" and "pl.Ledger" in text]
    exec(code, {"pl": pl})
    (commands,) = [block for block in COMMANDS if any("ledger reserve" in line for line in block)]
    test_commands(commands, tmp_path)


@pytest.mark.parametrize(
    "page", [Path("README.md"), *(p.relative_to(ROOT) for p in (ROOT / "docs").glob("*.md"))], ids=str
)
def test_paths_lead_somewhere(page: Path) -> None:
    """Files and folders that a page names, from the repository or from src/privloss."""
    text = (ROOT / page).read_text()
    named = set(re.findall(r"`([a-z_0-9./]+(?:\.py|/))(?:::\w+)?`", text))
    lost = [path for path in named if not any((home / path).exists() for home in (ROOT, ROOT / "src" / "privloss"))]
    assert lost == []
    for module in re.findall(r"`(privloss(?:\.[a-z_]+)+)`", text):
        assert _there(module), module


def _there(name: str) -> bool:
    """Whether a dotted name can be imported, or is something in a module."""
    for depth in range(name.count(".") + 1):
        module, *rest = name.rsplit(".", depth)
        try:
            found: object = importlib.import_module(module)
        except ImportError:
            if depth == 0 and name.startswith("privloss.interop.") and importlib.util.find_spec(name) is not None:
                return True  # an adapter whose package is not installed here
            continue
        return all((found := getattr(found, part, None)) is not None for part in rest)
    return False


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
