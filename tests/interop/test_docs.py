"""docs/interop.md: code of packages that are here runs (the others' in their own environments), the table is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privloss.interop.events import _COMPOSITIONS, READ
from tests.interop.pages import run
from tests.interop.test_accountant import DIFFERENT, RENYI

PAGE = (Path(__file__).parents[2] / "docs" / "interop.md").read_text()


@pytest.mark.parametrize("section", ["dp-accounting", "Packages", "For papers"])
def test_code_runs(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space = run("interop", section)
    if section == "dp-accounting":
        assert space["accountant"].get_epsilon(1e-6) == pytest.approx(5.80693502657)  # type: ignore[attr-defined]


def test_every_event_has_a_row() -> None:
    assert set(re.findall(r"`(\w+DpEvent|ZCDpEvent)", PAGE)) >= {*READ, *_COMPOSITIONS}


def test_the_counts_of_their_tests_are_the_counts() -> None:
    """Of version 0.6.0: the last column."""
    (pld,) = [line for line in PAGE.splitlines() if line.startswith("| for their PLD")]
    (renyi,) = [line for line in PAGE.splitlines() if line.startswith("| for their Renyi")]
    assert pld.endswith(f"| {68 - len(DIFFERENT)} of 68 |")
    assert renyi.endswith(f"| {142 - 56 - len(RENYI)} of 142 |")
