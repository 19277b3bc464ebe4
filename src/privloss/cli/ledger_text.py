"""How ``privloss ledger`` sets out what it says: outlines and tables. The words are those of `ledger/texts.py`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from privloss.ledger.texts import rough

_UP = ("charged", "committed", "reserved", "spent", "shortfall", "guarantee")
_DOWN = ("cap", "remaining")


def outline(data: Mapping[str, Any], indent: int = 0, up: bool | None = None) -> list[str]:
    """A status: one line for each name, what holds more beneath it."""
    width = max((len(str(name)) for name in data), default=0)
    found = []
    for name, value in data.items():
        towards = True if name in _UP else False if name in _DOWN else up
        start = f"{'':{indent}}{name:<{width}}"
        if isinstance(value, Mapping) and any(isinstance(each, Mapping) for each in value.values()):
            found += [start.rstrip(), *outline(value, indent + 2, towards)]
        elif isinstance(value, Mapping):
            found.append(f"{start}  {', '.join(f'{k} {_leaf(k, v, towards)}' for k, v in value.items())}".rstrip())
        else:
            found.append(f"{start}  {_leaf(name, value, towards)}")
    return found


def _leaf(name: str, value: Any, up: bool | None) -> str:
    towards = True if name in _UP else False if name in _DOWN else up
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return str(value) if towards is None else rough(value, towards)


# -- tables ------------------------------------------------------------------------------------------------------------


def table(rows: Sequence[Mapping[str, str]], columns: Sequence[str], right: str = "") -> str:
    """Columns that say something, under their names; `right` is set to the right."""
    used = [column for column in columns if any(row[column] for row in rows)]
    widths = {column: max(len(column), *(len(row[column]) for row in rows)) for column in used}
    lines = []
    for row in [{column: column for column in used}, *rows]:
        cells = (row[c].rjust(max(widths[c], 6)) if c == right else row[c].ljust(widths[c]) for c in used)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def show_table(rows: Sequence[Mapping[str, str]], columns: Sequence[str], right: str = "") -> None:
    """A table that fits a terminal; lines as long as they are for a file or a pipe."""
    if not _on_terminal():
        print(table(rows, columns, right) if rows else "nothing")
        return
    from rich.table import Table
    from rich.text import Text

    from privloss.cli.arguments import print_table

    used = [column for column in columns if any(row[column] for row in rows)]
    made = Table(box=None, padding=(0, 2, 0, 0))
    for column in used:
        made.add_column(column, justify="right" if column == right else "left", no_wrap=column in ("at", "seq"))
    for row in rows:
        loud = any("REFUTED" in row.get(column, "") for column in ("detail", "audits"))
        style = "bold red" if loud else "red" if row.get("kind") == "refused" else ""
        made.add_row(*(Text(row[column]) for column in used), style=style)
    print_table(made)
