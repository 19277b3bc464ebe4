"""``privloss certify``, ``verify`` and ``selfcheck`` as people call them, and the refutations the docs print."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from privloss.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


FLAGS = ("--noise-multiplier", "1.1", "--sample-rate", "0.01", "--steps", "1000")


def test_certify_and_verify(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(tmp_path / "cert.json")
    code, out, _ = _run(capsys, "certify", *FLAGS, "--delta", "1e-6", "--out", file)
    assert code == 0
    assert "epsilon in [1.752976407509" in out
    assert _run(capsys, "verify", file)[0] == 0
    code, out, _ = _run(capsys, "verify", file, "--against", "1.7", "--json")
    assert (code, json.loads(out)["refuted"]) == (0, True)
    code, out, _ = _run(capsys, "verify", file, "--against", "1.8")
    assert "not below" in out
    Path(file).write_text(Path(file).read_text().replace('"upper": "1.', '"upper": "0.'))
    code, out, _ = _run(capsys, "verify", file)
    assert code == 1
    assert "hash" in out
    code, out, _ = _run(capsys, "certify", *FLAGS, "--epsilon", "1.0", "--json")
    assert code == 0
    assert set(json.loads(out)["claim"]["delta"]) == {"lower", "upper"}
    code, out, _ = _run(capsys, "epsilon", *FLAGS, "--delta", "1e-6", "--certify", "--json")
    assert json.loads(out)["certified"] is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("certify", *FLAGS), "exactly one"),
        (("certify", *FLAGS, "--delta", "0"), "delta"),
        (("certify", *FLAGS, "--delta", "x"), "must be a number"),
        (("certify", *FLAGS, "--delta", "1e-6", "--out", "/no/such/dir/c.json"), "directory does not exist"),
        (("certify", *FLAGS, "--delta", "1e-6", "--out", "/tmp"), "is a directory"),
        (("verify", "/no/such/file.json"), "readable"),
        (("selfcheck", "--settings", "0"), "--settings"),
        (("selfcheck", "--settings", "x"), "whole number"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str) -> None:
    code, _, err = _run(capsys, *arguments)
    assert code == 2
    assert says in err
    assert err.count("\n") == 1


def test_selfcheck_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "selfcheck", "--settings", "3", "--json")
    assert code == 0
    assert json.loads(out)["violations"] == []
    code, out, _ = _run(capsys, "selfcheck", "--settings", "2")
    assert "violations: 0" in out
    header = next(line for line in out.splitlines() if line.startswith("regime"))
    assert header.split() == ["regime", "settings", "wrong", "unproven", "median", "widest", "nearest"]
    assert max(map(len, out.splitlines())) <= 80
    assert "Poisson-sampled Gaussian " in out  # nothing is cut
    assert "…" not in out


def _shown(text: str) -> str:
    """Decimals to ten places: the last of their 24 digits follow the search, not the claim."""
    return re.sub(r"(\d\.\d{10})\d+", r"\1", text.strip().replace(" or ", " "))


def test_the_refutations_in_the_docs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run every command of docs/refutations.md; the figures printed there are those printed now."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "refutations.md").read_text()
    for name, content in re.findall(r"`(\w+\.json)` = `([^`]*)`", text):
        (tmp_path / name).write_text(content)
    blocks = [b.strip() for b in re.findall(r"```console\n(.*?)```", text, re.DOTALL)]
    refuted = 0
    for block in blocks[:-1]:
        for part in block.split("$ privloss ")[1:]:
            command, expected = part.split("\n", 1)
            _, out, _ = _run(capsys, *command.split())
            assert _shown(out) == _shown(expected)
            refuted += "REFUTED" in out
    assert refuted == 9


_STOPS = """
import os, signal, sys, time
from privloss.certificates import certificate
from privloss.cli.main import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs in the background

def stop(*_, **__):
    print("here", flush=True)
    while True:
        time.sleep(3600)

owner, name = {"search": (certificate.search, "candidates"), "write": (os, "fsync")}[sys.argv.pop(1)]
setattr(owner, name, stop)
main()
"""


@pytest.mark.parametrize(("phase", "there"), [("search", 0), ("write", 1)])
def test_interruption_leaves_no_file(tmp_path: Path, phase: str, there: int) -> None:
    """The command stops in its search, or with the file half written; then Ctrl-C."""
    arguments = [*FLAGS, "--delta", "1e-6", "--out", str(tmp_path / "cert.json")]
    with subprocess.Popen(
        [sys.executable, "-c", _STOPS, phase, "certify", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as run:
        try:
            assert run.stdout is not None
            assert run.stdout.readline() == "here\n"
            assert len(list(tmp_path.iterdir())) == there
            run.send_signal(signal.SIGINT)
            assert run.wait(600) != 0
        finally:
            run.kill()
    assert list(tmp_path.iterdir()) == []
