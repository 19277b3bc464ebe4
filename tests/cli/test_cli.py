"""The command line as a user meets it; where the process itself matters, in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import privloss as pl
from privloss import Ledger, Plan, __version__
from tests.cli.inside import run

SGD = ["--noise-multiplier", "1.1", "--sample-rate", "0.01", "--steps", "10000"]
RELEASE = {
    "adjacency": "add-remove",
    "steps": [
        {"mechanism": "gaussian", "noise_multiplier": 1.1, "count": 10000,
         "sampling": {"scheme": "poisson", "rate": 0.01}},
        {"mechanism": "laplace", "scale": 10.0, "count": 50},
        {"mechanism": "approx-dp", "epsilon": 0.1, "delta": 1e-9, "count": 3},
    ],
}  # fmt: skip


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "privloss", *arguments], capture_output=True, text=True)


@pytest.fixture
def release(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(RELEASE))
    return str(path)


def test_epsilon_from_flags() -> None:
    done = run("epsilon", *SGD, "--delta", "1e-6", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert answer["epsilon"]["lower"] <= 5.806935026565456 <= answer["epsilon"]["upper"]
    assert answer["delta"] == 1e-6
    assert answer["adjacency"] == "add-remove"
    assert answer["certified"] is False
    assert "contour" in answer["method"]
    text = " ".join(answer["assumptions"])
    for word in ("Poisson", "add-remove", "sensitivity", "ideal real-valued noise"):
        assert word in text


def test_plan_file_and_python_agree(release: str) -> None:
    answer = json.loads(run("epsilon", release, "--delta", "1e-6", "--json").stdout)
    bound = Plan.from_dict(RELEASE).epsilon(1e-6)
    assert answer["epsilon"] == {"lower": bound.lower, "upper": bound.upper}
    back = json.loads(run("delta", release, "--epsilon", repr(bound.upper), "--json").stdout)
    assert back["delta"]["lower"] <= 1e-6 <= back["delta"]["upper"] * (1 + 1e-9)
    assert back["epsilon"] == bound.upper


def test_nothing_is_said_twice(release: str) -> None:
    calls = (
        ("epsilon", release, "--delta", "1e-6"),
        ("delta", release, "--epsilon", "9"),
        ("calibrate", "--target-epsilon", "3", "--delta", "1e-5", "--steps", "10"),
    )
    for call in calls:
        lines = run(*call).stdout.splitlines()
        assert sum("adjacency" in line for line in lines) == 1
        assert all(line == line.rstrip() for line in lines)


def test_the_help_begins_with_what_most_people_want() -> None:
    done = run()
    assert (done.returncode, "a command is missing" in done.stderr) == (2, True)
    places = [done.stdout.index(f" {name} ") for name in ("epsilon", "delta", "calibrate", "explain", "compare")]
    assert places == sorted(places)


def test_a_process_answers_and_refuses_alike() -> None:
    """What the other tests ask in this process."""
    for asked in (["epsilon", *SGD, "--delta", "1e-6", "--json"], ["epsilon", *SGD, "--delta", "2"], []):
        there, here = process(*asked), run(*asked)
        assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


def test_for_people(release: str) -> None:
    assert "5.806935026" in run("epsilon", *SGD, "--delta", "1e-6").stdout
    text = run("explain", release, "--delta", "1e-6").stdout
    for word in ("theorems:", "Kairouz", "Zhu, Dong, Wang", "assumed:", "contour"):
        assert word in text


def test_without_a_rate_the_steps_are_plain_gaussian() -> None:
    plain = json.loads(
        run("epsilon", "--noise-multiplier", "50", "--steps", "1000", "--delta", "1e-8", "--json").stdout
    )
    assert plain["epsilon"]["lower"] <= 3.4912550255634502 * (1 + 1e-13)
    assert plain["epsilon"]["upper"] >= 3.4912550255634502 * (1 - 1e-13)
    assert "no sampling" in " ".join(plain["assumptions"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--noise-multiplier", "0", "--delta", "1e-6"], "Infinity"),
        (["--noise-multiplier", "1", "--delta", "0"], "Infinity"),
        (["--noise-multiplier", "1", "--delta", "1"], 0.0),
        (["--noise-multiplier", "1", "--sample-rate", "0", "--delta", "1e-6"], 0.0),
        (["--noise-multiplier", "1", "--sample-rate", "0.00105", "--delta", "1e-3"], 0.0),
    ],
)
def test_boundaries(arguments: list[str], expected: object) -> None:
    answer = json.loads(run("epsilon", *arguments, "--json").stdout)
    assert answer["epsilon"] == {"lower": expected, "upper": expected}


def test_rate_one_is_no_sampling() -> None:
    one = json.loads(
        run("epsilon", "--noise-multiplier", "1", "--sample-rate", "1", "--delta", "1e-6", "--json").stdout
    )
    none = json.loads(run("epsilon", "--noise-multiplier", "1", "--delta", "1e-6", "--json").stdout)
    assert one["epsilon"] == none["epsilon"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["epsilon", *SGD], ["--delta", "missing"]),
        (["epsilon", "--delta", "1e-6"], ["--noise-multiplier", "missing"]),
        (["epsilon", *SGD, "--delta", "2"], ["--delta", "2.0", "between 0 and 1"]),
        (["epsilon", *SGD, "--delta", "nan"], ["--delta", "nan"]),
        (["epsilon", *SGD, "--delta", "tiny"], ["--delta", "'tiny'", "number"]),
        (["epsilon", "--noise-multiplier", "-1", "--delta", "0.1"], ["--noise-multiplier", "-1"]),
        (["epsilon", "--noise-multiplier", "inf", "--delta", "0.1"], ["--noise-multiplier", "inf"]),
        (["epsilon", "--noise-multiplier", "1", "--steps", "2.5", "--delta", "0.1"], ["--steps", "2.5", "whole"]),
        (["epsilon", "--noise-multiplier", "1", "--steps", "0", "--delta", "0.1"], ["--steps", "0"]),
        (["epsilon", "--noise-multiplier", "1", "--sample-rate", "1.5", "--delta", "0.1"], ["--sample-rate", "1.5"]),
        (["epsilon", "--noise-multiplier", "1", "--sampling", "poisson", "--delta", "0.1"], ["--sample-rate"]),
        (["epsilon", *SGD, "--sampling", "shuffle", "--delta", "0.1"], ["--dataset-size", "missing"]),
        (["epsilon", *SGD, "--sampling", "magic", "--delta", "0.1"], ["--sampling", "magic"]),
        (["epsilon", *SGD, "--adjacency", "swap", "--delta", "0.1"], ["adjacency", "swap"]),
        (["epsilon", *SGD, "--delta", "0.1", "--tolerance", "7"], ["--tolerance", "7"]),
        (["delta", *SGD], ["--epsilon", "missing"]),
        (["delta", *SGD, "--epsilon", "-1"], ["--epsilon", "-1"]),
        (["explain", *SGD], ["--delta", "--epsilon"]),
        (["epsilon", "missing.json", "--delta", "0.1"], ["missing.json"]),
        (["plan", "validate", "missing.json"], ["missing.json"]),
        (["calibrate"], ["--target-epsilon"]),
        (["calibrate", *SGD, "--target-epsilon", "1", "--delta", "1e-5"], ["--noise-multiplier", "sought"]),
        (
            ["calibrate", "--target-epsilon", "1", "--delta", "1e-5", "--find", "steps"],
            ["--noise-multiplier", "missing"],
        ),
        (["epsilon", *SGD, "--batch-size", "8", "--delta", "0.1"], ["--batch-size", "contradicts"]),
        (["epsilon", "--noise-multiplier", "1", "--dataset-size", "9", "--delta", "0.1"], ["--sampling", "missing"]),
        (["sweep", "--noise-multiplier", "1:0:3", "--delta", "1e-5"], ["--noise-multiplier", "low:high:count"]),
        (["sweep", "--noise-multiplier", "1", "--steps", "2.5", "--delta", "1e-5"], ["--steps", "2.5", "whole number"]),
        (["sweep", "--noise-multiplier", "1", "--steps", "1,2.5", "--delta", "1e-5"], ["--steps", "2.5", "whole"]),
        (["sweep", "--noise-multiplier", "1", "--steps", "2.5:10:3", "--delta", "1e-5"], ["--steps", "2.5", "whole"]),
        (["sweep", "--noise-multiplier", "1", "--steps", "nan", "--delta", "1e-5"], ["--steps", "nan", "whole number"]),
        (["sweep", "--noise-multiplier", "1", "--steps", "1:9:inf", "--delta", "1e-5"], ["--steps", "count"]),
        (["allocate", "--target-epsilon", "1", "--delta", "1e-5", "--weights", "1,x"], ["--weights"]),
        (["epsilon", "--colour", "red"], ["--colour"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[str], words: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in done.stderr


def test_flags_contradict_a_plan_file(release: str) -> None:
    done = run("epsilon", release, "--noise-multiplier", "1", "--delta", "0.1")
    assert done.returncode == 2
    assert "contradicts" in done.stderr


def test_plan_commands(release: str) -> None:
    assert json.loads(run("plan", "validate", release, "--json").stdout)["steps"] == 10053
    assert "valid" in run("plan", "validate", release).stdout
    assert json.loads(run("plan", "schema").stdout)["title"].startswith("privloss plan")


PROBE = """
import sys
from privloss.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print("loaded", sorted({"numpy", "scipy", "flint", "matplotlib"} & set(sys.modules)), "code", code, file=sys.stderr)
"""


def loaded(*arguments: str) -> str:
    """Which heavy packages a command loads, and how it ends."""
    done = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1]


def test_version_and_lazy_imports() -> None:
    assert process("--version").stdout.strip() == f"privloss {__version__}"
    assert loaded("--version") == "loaded [] code 0"
    assert loaded("--help") == "loaded [] code 0"
    assert loaded("epsilon", *SGD, "--delta", "1e-6") == "loaded ['numpy', 'scipy'] code 0"  # the probe can see


def test_the_module_itself_is_lazy() -> None:
    """``python -m privloss --version``, watched by the interpreter."""
    call = [sys.executable, "-X", "importtime", "-m", "privloss", "--version"]
    done = subprocess.run(call, capture_output=True, text=True)
    names = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "privloss" in names
    assert not names & {"numpy", "scipy", "flint", "matplotlib"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("status", "d"), 0),
        (("odometer", "d", "--delta", "1e-6"), 0),
        (("quote", "d", "--cost", "0.1"), 0),
        (("reserve", "d", "--cost", "0.1", "--key", "new"), 0),
        (("reserve", "d", "--cost", "9", "--key", "more"), 3),
        (("start", "k"), 0),
        (("commit", "s"), 0),
        (("void", "k"), 0),
        (("history", "d"), 0),
        (("verify",), 0),
        (("freeze", "d"), 0),
        (("unfreeze", "d"), 0),
        (("export",), 0),
        (("doctor",), 0),
        (("dataset", "add", "e", "--adjacency", "add-remove"), 0),
        (("budget", "set", "bare", "--currency", "gdp", "--cap", "1", "--delta", "1e-6"), 0),
        (("init",), 0),
    ],
    ids=lambda x: " ".join(x[:2]) if isinstance(x, tuple) else "",
)
def test_the_ledger_without_a_plan_loads_no_engine(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    db = str(tmp_path / "privloss.db")
    ledger = Ledger.create(db)
    for name in ("d", "bare"):
        ledger.add_dataset(name, adjacency="add-remove")
    ledger.set_budget("d", currency="zcdp", cap="1", delta="1e-6")
    for key in ("k", "s"):
        ledger.reserve("d", cost="0.1", key=key)
    ledger.start("s")
    ledger.close()
    assert loaded("ledger", *arguments, "--db", db) == f"loaded [] code {code}"


def test_shuffled_is_an_old_word_for_shuffle(tmp_path: Path) -> None:
    sizes = ["--dataset-size", "1000", "--batch-size", "100", "--adjacency", "replace-one"]
    trained = ["--noise-multiplier", "5", "--steps", "20", *sizes]
    for command in (
        ["epsilon", *trained, "--delta", "1e-5", "--json"],
        ["delta", *trained, "--epsilon", "1", "--json"],
        ["explain", *trained, "--delta", "1e-5", "--json"],
        ["plan", "write", *trained],
        ["calibrate", "--target-epsilon", "2", "--delta", "1e-5", "--steps", "20", *sizes, "--json"],
    ):
        new, old = (run(*command, "--sampling", word) for word in ("shuffle", "shuffled"))
        assert (new.returncode, new.stderr) == (0, "")
        assert json.loads(old.stdout) == json.loads(new.stdout)
        assert "shuffled" not in json.dumps(json.loads(old.stdout).get("plan", ""))
    plan = json.loads(run("plan", "write", *trained, "--sampling", "shuffled").stdout)
    assert plan["steps"][0]["sampling"] == {"scheme": "shuffle", "steps": 10}


def test_shell_completion_is_offered() -> None:
    assert "--show-completion" in run("--help").stdout


def test_planning_commands(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    flags = ["--sample-rate", "0.004266666666666667", "--steps", "14100", "--delta", "1e-5", "--json"]
    found = json.loads(run("calibrate", "--target-epsilon", "3", *flags, "--out", str(plan)).stdout)
    assert found["noise_multiplier"] == pytest.approx(0.9691482867362087, rel=1e-6)
    assert found["epsilon"]["upper"] <= 3
    assert json.loads(run("epsilon", str(plan), "--delta", "1e-5", "--json").stdout)["epsilon"] == found["epsilon"]
    steps = ["--find", "steps", "--noise-multiplier", "1.1", "--sample-rate", "0.01", "--delta", "1e-6", "--json"]
    assert json.loads(run("calibrate", "--target-epsilon", "2", *steps).stdout)["steps"] == 1312
    split = json.loads(
        run("allocate", "--target-epsilon", "1", "--delta", "1e-6", "--weights", "1,1,2", "--json").stdout
    )
    assert [row["accounting"] for row in split["rows"]] == ["basic", "advanced", "zCDP", "exact"]
    grid = ["--noise-multiplier", "1,2", "--steps", "1:100:3", "--delta", "1e-6"]
    points = json.loads(run("sweep", *grid, "--json", "--out", str(tmp_path / "map.png")).stdout)["points"]
    assert [p["steps"] for p in points] == [1, 10, 100] * 2
    assert (tmp_path / "map.png").stat().st_size > 10_000


def test_sizes_and_epochs_are_echoed() -> None:
    sizes = ["--dataset-size", "60000", "--batch-size", "256", "--epochs", "4", "--sampling", "poisson"]
    found = json.loads(run("epsilon", "--noise-multiplier", "1.1", *sizes, "--delta", "1e-6", "--json").stdout)
    assert "940 steps" in found["derived"][0]
    assert "0.00426667" in found["derived"][1]


def test_a_progress_bar_appears_on_a_terminal_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    from privloss.cli import progress

    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, says rich
    with progress.progress_bar("quick") as bar:
        bar.step(1, 2)
        assert not bar.shown
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress.progress_bar("slow") as bar:
        bar.timer.join()
        assert bar.shown
        bar.step(1, 2)
        assert bar.count == (1, 2)
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    with progress.progress_bar("no terminal") as bar:
        bar.step(1, 2)
    assert not bar.shown


COMMANDS = {
    "epsilon": ("--noise-multiplier", "1.1", "--delta", "1e-6"),
    "delta": ("--noise-multiplier", "1.1", "--epsilon", "1"),
    "explain": ("--noise-multiplier", "1.1", "--delta", "1e-6"),
    "calibrate": ("--target-epsilon", "1", "--delta", "1e-6"),
    "compare": ("--noise-multiplier", "9", "--delta", "1e-6"),
    "allocate": ("--target-epsilon", "1", "--delta", "1e-6", "--weights", "1,2"),
    "sweep": ("--noise-multiplier", "1,2", "--delta", "1e-6"),
    "certify": ("--noise-multiplier", "1.1", "--delta", "1e-6"),
    "verify": ("cert.json",),
    "selfcheck": ("--settings", "1"),
    "ledger": ("verify", "--db", "ledger.db"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_bar_that_is_gone_before_it_prints(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bar is there before the command runs (here: after no time at all), and nothing is printed beneath it."""
    from privloss.cli import progress
    from privloss.cli.main import app, main

    monkeypatch.chdir(tmp_path)
    certificate = pl.certify(pl.Gaussian(1.1) * 1, delta=1e-6)
    certificate.save(tmp_path / "cert.json")
    pl.Ledger.create("ledger.db").close()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    seen: list[progress.Bar] = []
    real = progress.Bar._show

    def shown(bar: progress.Bar) -> None:
        real(bar)
        seen.append(bar)

    monkeypatch.setattr(progress.Bar, "_show", shown)
    begin = app.__call__

    def after_the_bar(*given: object, **more: object) -> object:
        progress._current[-1].timer.join()
        assert progress._current[-1].shown
        return begin(*given, **more)

    monkeypatch.setattr("privloss.cli.main.app", after_the_bar)
    with pytest.raises(SystemExit):
        main([command, *COMMANDS[command]])
    out, err = capsys.readouterr()
    assert seen
    assert out
    assert "\x1b[?25l" not in out  # the bar never reaches standard output
    assert "\x1b[?25l" in err
    assert progress._current == []
