"""docs/ledger.md: its examples run, in order, in one directory, and print what stands beneath them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from privloss.cli.main import main

TEXT = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
BLOCKS = re.findall(r"```(python|console|text)\n(.*?)```", TEXT, re.DOTALL)


def _console(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints; `> file` is the shell's."""
    words, _, target = line.partition(" > ")
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(words)[1:])
    assert stop.value.code == 0, line
    out = capsys.readouterr().out
    if target:
        Path(target).write_text(out)
    return "" if target else out


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    printed: dict[str, str] = {}
    out = ""
    for language, text in BLOCKS:
        if language == "text":
            assert out == text
        elif language == "python":
            exec(compile(text, "ledger.md", "exec", dont_inherit=True), {})
            out = capsys.readouterr().out
        else:
            (line,) = text.strip().splitlines()
            printed[line] = out = _console(line, capsys)
    (odometer,) = [said for line, said in printed.items() if " odometer " in line]
    assert "at most 0.7277" in odometer
    (verified,) = [json.loads(said) for line, said in printed.items() if " --head " in line]
    assert verified["clean"]
    assert verified["goes_on_from_head"]
    assert [language for language, _ in BLOCKS].count("text") == 4


def test_the_year_of_the_steward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """188 refusals, for five reasons, before and after the change of year."""
    monkeypatch.chdir(tmp_path)
    (code,) = [text for language, text in BLOCKS if language == "python" and "hospital.db" in text]
    space: dict[str, object] = {}
    exec(compile(code, "ledger.md", "exec", dont_inherit=True), space)
    why, quarters = space["why"], space["quarters"]
    assert isinstance(why, dict)
    assert isinstance(quarters, dict)
    assert sum(why.values()) == 188
    assert len(why) == 5
    assert list(quarters) == ["2026-Q3", "2026-Q4", "2027-Q1", "2027-Q2"]
