"""The table in docs/mechanisms.md, made from the registry: `python -m tests.mechanisms.table` rewrites it."""

from __future__ import annotations

from pathlib import Path

from privloss.mechanisms.kinds import KINDS, SCHEMES, Kind
from privloss.mechanisms.plan_file import schema

PAGE = Path(__file__).parents[2] / "docs" / "mechanisms.md"
BEGIN, END = "<!-- table: made from the registry -->", "<!-- end of table -->"


def _forms(kind: Kind) -> str:
    """The sets of parameters of a plan file's step, optional ones in brackets."""
    steps = schema()["$defs"]["step"]["oneOf"]
    found = []
    for step in steps:
        name = step["properties"]["mechanism"]
        if name.get("const", name.get("enum", [None])[0]) == kind.name:
            own = [n for n in step["properties"] if n not in ("mechanism", "count", "sampling")]
            found.append(", ".join(f"`{n}`" if n in step["required"] else f"[`{n}`]" for n in own))
    return " or ".join(found)


def table() -> str:
    rows = [
        "| in plan files | in Python | parameters | noise | group | GDP price | certified |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS.values():
        if kind.description.__module__.startswith("privloss."):
            facts = ["yes" if x is not None else "-" for x in (kind.louder, kind.grouped, kind.mu_squared)]
            name = f"`pl.{kind.description.__name__}`"
            rows.append(f"| `{kind.name}` | {name} | {_forms(kind)} | {' | '.join(facts)} | {kind.certified or '-'} |")
    rows += ["", "| sampler | in Python | one count is | certified |", "|---|---|---|---|"]
    for scheme in SCHEMES.values():
        method = scheme.description.method
        unit = "an epoch" if scheme.epochs else "a step"
        called = f"`.{method}(...)`" if scheme.in_runs else "`pl.group.plan(...)`"
        rows.append(f"| `{scheme.name}` | {called} | {unit} | {scheme.certified or '-'} |")
    return "\n".join(rows)


def page_with_table(text: str) -> str:
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
