"""The table of what other accountants have, read from docs/mechanisms.md."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "mechanisms.md"
TITLE = "## What other accountants have"


def rows() -> list[dict[str, str]]:
    """One for every mechanism: its name under "", what each package calls it, and what it is `here`."""
    section = PAGE.read_text().split(TITLE)[1].split("\n## ")[0]
    head, _, *lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")
    ]
    return [dict(zip(head, line, strict=True)) for line in lines]


def column(package: str) -> set[str]:
    """Every name that a package has in the table."""
    return {name for row in rows() for name in re.findall(r"`([\w.]+)`", row[package])}
