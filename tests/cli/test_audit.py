"""privloss audit: inputs in files, exit codes, JSON, the picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import privloss as pl
from privloss.cli.audit_picture import sign_of
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


def test_the_picture_shows_the_direction_that_is_reported() -> None:
    low, high = [0.0, 1.0, 2.0] * 20, [7.0, 8.0, 9.0] * 20
    for members, others, sign in ((high, low, 1.0), (low, high, -1.0)):
        found = pl.audit.scores(members, others, delta=0.0, trials="independent", direction="both")
        assert sign_of(found, members, others, "both") == sign
    assert sign_of(found, low, high, "down") == -1.0


def test_guesses_and_scores_of_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["guess,included", *["in,1"] * 40, *["out,0"] * 40, *["out,1"] * 5, *[",1"] * 15]
    file = tmp_path / "guesses.csv"
    file.write_text("\n".join(rows))
    code, said, _ = run(["audit", "one-run", str(file), "--delta", "0", "--inclusion", "coins", "--json"], capsys)
    assert code == 0
    assert json.loads(said)["counts"] == {"canaries": 100, "guesses": 85, "correct": 80}
    with_delta = ["audit", "one-run", str(file), "--delta", "1e-4", "--inclusion", "coins", "--json"]
    code, _, problem = run(with_delta, capsys)  # nothing in the file says who decided that 85 are guessed
    assert code == 2
    assert "85 of 100" in problem
    bounds = {}
    for said_so in ("--guesses-fixed", "--guesses-decided-by-data"):
        code, said, _ = run([*with_delta, said_so], capsys)
        assert code == 0
        bounds[said_so] = json.loads(said)["epsilon"]
    assert 0 < bounds["--guesses-decided-by-data"] < bounds["--guesses-fixed"]
    both = tmp_path / "scores.json"
    both.write_text(json.dumps({"score": list(range(100)), "included": [0] * 50 + [1] * 50}))
    code, said, _ = run(
        ["audit", "one-run", str(both), "--budgets", "20:20", "--delta", "0", "--inclusion", "coins", "--json"], capsys
    )
    assert json.loads(said)["counts"]["correct"] == 40


def test_arguments_of_the_python_calls_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is in the file need not be typed, and must not be typed as well."""
    given: dict[str, dict[str, object]] = {
        "counts": {"tp": 95, "positives": 100, "fp": 3, "negatives": 100, "delta": 0, "trials": "independent",
                   "claim": 1, "alpha": 0.01, "method": "clopper-pearson"},
        "scores": {"members": [2.0] * 30 + [1.0], "others": [0.0] * 30, "delta": 0, "trials": "independent",
                   "threshold": "dkw", "direction": "both", "claim": [0.5, 0]},
        "one-run": {"canaries": 1000, "guesses": 100, "correct": 92, "delta": 1e-5, "inclusion": "coins",
                    "guesses_fixed": False, "claim": [9.0, 1e-5]},
        "runs": {"scores": list(range(100)), "included": [0] * 50 + [1] * 50, "budgets": [[20, 20], [5, 5]],
                 "delta": 0, "inclusion": "coins"},
    }  # fmt: skip
    files, made = {}, {}
    for name, content in given.items():
        files[name] = str(tmp_path / f"{name}.json")
        Path(files[name]).write_text(json.dumps(content))
        code, said, problem = run(["audit", name.replace("runs", "one-run"), files[name], "--json"], capsys)
        assert (code, problem) == ({"counts": 1, "scores": 1, "one-run": 4, "runs": 0}[name], "")
        made[name] = json.loads(said)
    assert made["counts"]["epsilon"] == pytest.approx(
        pl.audit.counts(tp=95, positives=100, fp=3, negatives=100, delta=0.0, trials="independent", alpha=0.01,
                        method="clopper-pearson").epsilon
    )  # fmt: skip
    assert made["scores"]["counts"]["tp"] in (30, 31)
    assert made["one-run"]["assumptions"][2] == "the data decided how many guesses were made"
    assert any("2 budgets" in note for note in made["runs"]["notes"])
    for name, more, match in (
        ("counts", ["--alpha", "0.05"], "--alpha = '0.05': is in"),
        ("counts", ["--claim-epsilon", "2"], "contradict"),
        ("one-run", ["--guesses-fixed"], "say it once"),
        ("runs", ["--budgets", "1:1"], "say it once"),
        ("scores", ["--delta", "0"], "say it once"),
    ):
        code, _, problem = run(["audit", name.replace("runs", "one-run"), files[name], *more], capsys)
        assert (code, match in problem) == (2, True), problem
    for content, match in (
        ({"tp": 1, "positive": 2}, "has 'positive'"),
        ([1], "an object"),
        ({"tp": 1}, "--positives"),
    ):
        Path(files["counts"]).write_text(json.dumps(content))
        code, _, problem = run(["audit", "counts", files["counts"]], capsys)
        assert (code, match in problem) == (2, True), problem


def test_coins_that_are_not_fair_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "guesses.csv"
    file.write_text("\n".join(["guess,included", *["in,1"] * 150, *["in,0"] * 50]))
    said = run(["audit", "one-run", str(file), "--delta", "0", "--inclusion", "coins"], capsys)[1]
    assert "fair coins" in " ".join(said.split())
    code, _, problem = run(
        ["audit", "one-run", str(file), "--delta", "0", "--inclusion", "coins", "--canaries", "9"], capsys
    )
    assert (code, "counted in" in problem) == (2, True)


def test_a_function_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noisy_for_audit.py").write_text("def f(x, rng):\n    return x + rng.laplace(scale=0.25)\n")
    for name, value in (("x", 0), ("y", 1)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    monkeypatch.chdir(tmp_path)
    code, said, _ = run(
        ["audit", "mechanism", "noisy_for_audit:f", "x.json", "y.json", "--delta", "0", "--runs", "600", "--seed", "1",
         "--claim-epsilon", "1", "--out", "roc.png"], capsys,
    )  # fmt: skip
    assert code == 1
    assert "event" in said
    assert (tmp_path / "roc.png").read_bytes()[:4] == b"\x89PNG"
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


@pytest.fixture
def audits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Files with a refuted and a standing audit of four releases of Gaussian noise, and their plan."""
    plan = tmp_path / "plan.json"
    plan.write_text('{"steps": [{"mechanism": "gaussian", "noise_multiplier": 2.0, "count": 4}]}')
    found = {"plan": str(plan)}
    for name, tp, code in (("refuted", "180", 1), ("held", "138", 0)):
        counts = ["--tp", tp, "--positives", "200", "--fp", str(200 - int(tp)), "--negatives", "200", "--delta", "1e-5"]
        ended, said, _ = run(
            ["audit", "counts", *counts, "--trials", "independent", "--plan", str(plan), "--json"], capsys
        )
        assert ended == code
        (tmp_path / f"{name}.json").write_text(said)
        found[name] = str(tmp_path / f"{name}.json")
    return found


def test_audits_on_a_certificate(audits: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "cert.json")
    certify = ["certify", audits["plan"], "--delta", "1e-5", "--out", file]
    assert run([*certify, "--audit", audits["held"]], capsys)[0] == 0
    code, said, _ = run(["verify", file, "--json"], capsys)
    assert code == 0
    assert (json.loads(said)["refuted_by_audit"], json.loads(said)["audits"][0]["verdict"]) == (False, "not refuted")
    code, said, _ = run([*certify, "--audit", audits["held"], "--audit", audits["refuted"]], capsys)
    assert code == 0
    assert "REFUTED: claim" in said
    code, said, _ = run(["verify", file, "--json"], capsys)
    assert (code, json.loads(said)["holds"], json.loads(said)["refuted_by_audit"]) == (1, True, True)
    code, said, _ = run(["verify", file], capsys)
    assert code == 1
    assert "proven" in said
    assert "REFUTED: claim 4.3" in said
    code, _, problem = run(["certify", audits["plan"], "--delta", "1e-6", "--audit", audits["plan"]], capsys)
    assert code == 2
    assert "cannot be attached" in problem
    code, _, problem = run([*certify, "--audit", str(tmp_path / "missing.json")], capsys)
    assert code == 2
    assert "cannot be read" in problem


def test_audits_in_a_ledger(audits: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = ["--db", str(tmp_path / "privloss.db")]
    ledger = lambda *words: run(["ledger", *words, *db], capsys)  # noqa: E731
    ledger("init")
    ledger("dataset", "add", "census", "--adjacency", "add-remove")
    ledger("budget", "set", "census", "--currency", "pure", "--cap", "1")
    ledger("reserve", "census", "--key", "k", "--cost", "0.5")
    code, said, _ = ledger("attach", audits["refuted"], "--key", "k", "--date", "2026-11-17")
    assert code == 0
    assert "attached to k: REFUTED: claim 4.37" in said
    assert ledger("attach", audits["held"], "--dataset", "census", "--reason", "yearly", "--json")[0] == 0
    code, said, _ = ledger("history", "census", "--kind", "audited")
    assert "REFUTED" in said
    assert "2026-11-17" in said
    assert "yearly" in said
    assert ledger("history", "census", "--kind", "audited", "--csv")[1].count("REFUTED") == 1
    events = json.loads(ledger("history", "census", "--kind", "audited", "--json")[1])
    assert [event["audit"]["verdict"] for event in events] == ["refuted", "not refuted"]
    assert "1 REFUTED of 2" in ledger("list")[1]
    assert "1 REFUTED of 2" in ledger("status", "census")[1]
    assert "1 REFUTED of 2" in ledger("verify")[1]
    assert json.loads(ledger("verify", "--json")[1])["audits"] == {"attached": 2, "refuted": 1}
    assert ledger("attach", audits["held"], "--key", "nobody")[0] == 3
    assert ledger("attach", audits["held"])[0] == 2
    assert ledger("attach", audits["plan"], "--dataset", "census")[0] == 2
    assert ledger("attach", audits["plan"] + ".missing", "--dataset", "census")[0] == 2


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
