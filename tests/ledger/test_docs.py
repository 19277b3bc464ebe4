"""docs/ledger.md: its examples run, in order, in one directory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privloss.cli.main import main

BLOCKS = re.findall(
    r"```(python|console)\n(.*?)```", (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(), re.DOTALL
)


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert [language for language, _ in BLOCKS] == ["python", "console", "python"]
    for language, text in BLOCKS:
        if language == "python":
            exec(compile(text, "ledger.md", "exec", dont_inherit=True), {})
            continue
        for line in text.strip().splitlines():
            with pytest.raises(SystemExit) as stop:
                main(line.split()[1:])
            assert stop.value.code == 0
            assert "at most 0.7277" in capsys.readouterr().out
