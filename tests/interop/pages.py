"""The code in the pages of docs/."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, section: str = "") -> list[str]:
    """The Python blocks of a page, or of its section whose title begins so."""
    text = (DOCS / f"{page}.md").read_text()
    if section:
        (text,) = [part for part in text.split("\n## ") if part.startswith(section)]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(page: str, section: str = "") -> dict[str, object]:
    """All of them in a row, as a reader runs them; what they leave behind."""
    space: dict[str, object] = {}
    for code in blocks(page, section):
        exec(compile(code, f"{page}.md", "exec"), space)
    return space
