"""privloss audit: inputs in files, exit codes, JSON, the picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from privloss.cli.main import main

COUNTS = ["audit", "counts", "--tp", "95", "--positives", "100", "--fp", "3", "--negatives", "100", "--delta", "0"]


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out, said.err


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    rows = [f"{rng.normal() + 1.5},1" for _ in range(150)] + [f"{rng.normal()},0" for _ in range(150)]
    file = tmp_path / "scores.csv"
    file.write_text("\n".join(["score,member", *rows]))
    return file


def test_exit_codes_tell_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    counts = [*COUNTS, "--trials", "independent"]
    assert run(counts, capsys)[0] == 0
    code, said, _ = run([*counts, "--claim-epsilon", "1", "--json"], capsys)
    assert code == 1
    assert json.loads(said)["verdict"] == "refuted"
    assert run([*counts, "--claim-epsilon", "3.5"], capsys)[0] == 0
    assert run([*counts, "--claim-epsilon", "9"], capsys)[0] == 4
    code, _, problem = run(COUNTS, capsys)
    assert code == 2
    assert "trials" in problem


def test_scores_from_a_file_and_the_picture(scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"steps": [{"mechanism": "gaussian", "sigma": 5.0}]}')
    out = tmp_path / "roc.png"
    code, said, _ = run(
        ["audit", "scores", str(scores), "--delta", "1e-5", "--trials", "independent", "--plan", str(plan), "--out",
         str(out), "--log"], capsys,
    )  # fmt: skip
    assert code == 1
    assert "uniform band" in said
    assert out.read_bytes()[:4] == b"\x89PNG"


def test_guesses_and_scores_of_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["guess,included", *["in,1"] * 40, *["out,0"] * 40, *["out,1"] * 5, *[",1"] * 15]
    file = tmp_path / "guesses.csv"
    file.write_text("\n".join(rows))
    code, said, _ = run(["audit", "one-run", str(file), "--delta", "0", "--inclusion", "coins", "--json"], capsys)
    assert code == 0
    assert json.loads(said)["counts"] == {"canaries": 100, "guesses": 85, "correct": 80}
    both = tmp_path / "scores.json"
    both.write_text(json.dumps({"score": list(range(100)), "included": [0] * 50 + [1] * 50}))
    code, said, _ = run(
        ["audit", "one-run", str(both), "--budgets", "20:20", "--delta", "0", "--inclusion", "coins", "--json"], capsys
    )
    assert json.loads(said)["counts"]["correct"] == 40


def test_a_function_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noisy_for_audit.py").write_text("def f(x, rng):\n    return x + rng.laplace(scale=0.25)\n")
    for name, value in (("x", 0), ("y", 1)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    monkeypatch.chdir(tmp_path)
    code, said, _ = run(
        ["audit", "mechanism", "noisy_for_audit:f", "x.json", "y.json", "--delta", "0", "--runs", "600", "--seed", "1",
         "--claim-epsilon", "1"], capsys,
    )  # fmt: skip
    assert code == 1
    assert "event" in said
    code, _, problem = run(
        ["audit", "mechanism", "noisy_for_audit:g", "x.json", "y.json", "--delta", "0", "--seed", "1"], capsys
    )
    assert code == 2
    assert "module:function" in problem


def test_the_ceiling_before_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(["audit", "ceiling", "--canaries", "1000", "--delta", "1e-5", "--json"], capsys)
    assert code == 0
    assert json.loads(said)["ceiling"] == pytest.approx(5.809004815, abs=1e-8)
    assert run(["audit", "ceiling", "--delta", "1e-5"], capsys)[0] == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [("score\n1", "rows with"), ("score,member\nx,1", "no number"), ("score,member\n1,2", "0 or 1"), ("", "rows with")],
)
def test_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(content)
    code, _, problem = run(["audit", "scores", str(file), "--delta", "0", "--trials", "independent"], capsys)
    assert code == 2
    assert said in problem
