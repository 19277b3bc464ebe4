"""The code in docs/interop.md."""

from __future__ import annotations

import re
from pathlib import Path


def blocks(section: str) -> list[str]:
    """The Python blocks of the section whose title begins so."""
    page = (Path(__file__).parents[2] / "docs" / "interop.md").read_text()
    (text,) = [part for part in page.split("\n## ") if part.startswith(section)]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)
