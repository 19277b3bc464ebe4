"""Commands that put the chapter's bounds side by side: ``privloss compare`` and ``privloss figure``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from privloss.cli.arguments import Adjacency, AsJson, finite, number, takes_plan
from privloss.cli.progress import progress_bar
from privloss.errors import InvalidInput

if TYPE_CHECKING:
    from privloss.mechanisms.base import Plan


@takes_plan
def compare(
    plan: Plan,
    delta: Annotated[str | None, typer.Option("--delta", help="Target delta.")] = None,
    adjacency: Adjacency = None,
    noise: Annotated[bool, typer.Option("--noise/--no-noise", help="Also find what each bound costs in noise.")] = True,
    as_json: AsJson = False,
) -> None:
    """Every applicable bound for a plan, from loosest to exact."""
    if delta is None:
        raise InvalidInput("--delta: is missing.")
    from privloss.numerics import check
    from privloss.theorems.compare import compare as all_bounds

    target = check.number("--delta", number("--delta", delta), low=0, high=1, above=True)
    with progress_bar("bounds") as bar:
        rows = all_bounds(plan, target, adjacency=adjacency, noise=noise, progress=bar.step)
    if as_json:
        found = [{"bound": r.bound, "theorem": r.theorem, "epsilon": r.epsilon, "noise": r.noise} for r in rows]
        print(json.dumps(finite({"delta": target, "adjacency": adjacency or plan.adjacency, "bounds": found})))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"epsilon at delta = {target:g}, {adjacency or plan.adjacency}", title_justify="left")
    for name in ("epsilon", "noise it costs", "bound", "theorem"):
        table.add_column(name, justify="left" if name in ("bound", "theorem") else "right")
    for row in rows:
        cost = "" if row.noise is None else f"x {row.noise:.3f}"
        style = "bold" if row is rows[-1] else ""
        table.add_row(f"{row.epsilon:.6f}", cost, row.bound, row.theorem, style=style)
    Console().print(table)


def figure(
    name: Annotated[str, typer.Argument(help="composition, subsampling, tracing, central-limit, sgd or sgd-delta.")],
    out: Annotated[str | None, typer.Option("--out", help="FILE.png, .svg, .pdf or .csv.  [default: NAME.png]")] = None,
    as_json: AsJson = False,
) -> None:
    """The chapter's figures, with the exact curve added, as a picture or as numbers."""
    from privloss.cli import plots
    from privloss.numerics import check
    from privloss.theorems.figures import FIGURES

    check.choice("name", name, tuple(FIGURES))
    path = None if as_json and out is None else plots.output_path(out if out is not None else f"{name}.png")
    with progress_bar(name) as bar:
        drawn = FIGURES[name](progress=bar.step)
    if path is not None:
        plots.save(drawn, path)
    if as_json:
        columns = {drawn.x_label: list(drawn.x), **{k: list(v) for k, v in drawn.curves.items()}}
        clean = {k: [None if v != v else v for v in column] for k, column in columns.items()}
        print(json.dumps(finite({"figure": name, "columns": clean})))
    else:
        print(path)
