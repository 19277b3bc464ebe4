"""Commands that go backwards: ``privloss calibrate``, ``allocate`` and ``plan write``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privloss.cli.arguments import (
    Accumulation,
    Adjacency,
    AsJson,
    BatchSize,
    DatasetSize,
    Epochs,
    MaxBatch,
    Noise,
    Rate,
    Sampling,
    Steps,
    add_assumptions,
    finite,
    number,
    plan_at,
    print_table,
    takes_plan,
)
from privloss.cli.progress import progress_bar
from privloss.errors import InvalidInput

if TYPE_CHECKING:
    from privloss.mechanisms.base import Plan
    from privloss.planning.calibrate import Calibrated

_FINDS = ("noise-multiplier", "steps", "sample-rate", "batch-size")
Out = Annotated[Path | None, typer.Option("--out", help="Also write the plan file.")]


def calibrate(
    target_epsilon: Annotated[str | None, typer.Option("--target-epsilon", help="The epsilon to keep.")] = None,
    delta: Annotated[str | None, typer.Option("--delta", help="At this delta.")] = None,
    target_tpr: Annotated[str | None, typer.Option("--target-tpr", help="Or: the attacker's success")] = None,
    target_fpr: Annotated[str | None, typer.Option("--target-fpr", help="at this false positive rate.")] = None,
    target_advantage: Annotated[str | None, typer.Option("--target-advantage", help="Or: tpr - fpr at most.")] = None,
    find: Annotated[
        str, typer.Option("--find", help="noise-multiplier (least), steps, sample-rate or batch-size (largest).")
    ] = "noise-multiplier",
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    sampling: Sampling = None,
    dataset_size: DatasetSize = None,
    batch_size: BatchSize = None,
    epochs: Epochs = None,
    max_batch_size: MaxBatch = None,
    accumulation: Accumulation = None,
    adjacency: Adjacency = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """The parameter that just keeps a promise, on the safe side."""
    from privloss.numerics import check

    flags = {
        "--noise-multiplier": noise_multiplier, "--sample-rate": sample_rate, "--steps": steps, "--sampling": sampling,
        "--dataset-size": dataset_size, "--batch-size": batch_size, "--epochs": epochs,
        "--max-batch-size": max_batch_size, "--accumulation": accumulation,
    }  # fmt: skip
    given = {name: value for name, value in flags.items() if value is not None}
    sought = "--" + check.choice("--find", find, _FINDS)
    if sought in given:
        raise InvalidInput(f"{sought} = {given[sought]!r}: is what is sought; leave it out.")
    if sought != "--noise-multiplier" and "--noise-multiplier" not in given:
        raise InvalidInput("--noise-multiplier: is missing.")
    targets = {
        "epsilon": ("--target-epsilon", target_epsilon), "delta": ("--delta", delta),
        "tpr": ("--target-tpr", target_tpr), "fpr": ("--target-fpr", target_fpr),
        "advantage": ("--target-advantage", target_advantage),
    }  # fmt: skip
    aims = {name: number(flag, text) for name, (flag, text) in targets.items() if text is not None}
    if not aims:
        raise InvalidInput("--target-epsilon: is missing; give it with --delta, or a target for tpr or advantage.")
    with progress_bar("calibrating"):
        found = _search(sought, given, aims, adjacency)
    if out is not None:
        out.write_text(found.plan.to_json() + "\n", encoding="utf-8")
    _print_calibrated(found, sought, aims, adjacency, as_json)


def _search(sought: str, given: dict[str, str], aims: dict[str, float], adjacency: str | None) -> Calibrated:
    from privloss.planning.calibrate import calibrate as search

    whole = sought in ("--steps", "--batch-size")
    limits: dict[str, Any] = {"whole": whole}
    if sought == "--sample-rate":
        limits |= {"high": 1.0, "start": 0.01}
    if sought == "--batch-size":
        limits |= {"high": number("--dataset-size", given.get("--dataset-size", "nan"))}
        if limits["high"] != limits["high"]:
            raise InvalidInput("--dataset-size: is missing; --find batch-size needs it and --sampling.")

    def family(value: float) -> Plan:
        if sought == "--noise-multiplier":
            return plan_at(repr(value), given, adjacency)[0]
        return plan_at(given["--noise-multiplier"], {**given, sought: repr(value)}, adjacency)[0]

    limits |= aims
    return search(family, adjacency=adjacency, **limits)


def _print_calibrated(
    found: Calibrated, sought: str, aims: dict[str, float], adjacency: str | None, as_json: bool
) -> None:
    from privloss.answers.explain import explain

    name = sought[2:].replace("-", "_")
    reason = explain(found.plan, delta=aims.get("delta", 1e-6), adjacency=adjacency)
    achieved = {"lower": found.achieved.lower, "upper": found.achieved.upper}
    what = "epsilon" if "epsilon" in aims else "tpr" if "tpr" in aims else "advantage"
    if as_json:
        answer = {
            name: found.value,
            what: achieved,
            **{("target_" + k if k not in ("delta", "fpr") else k): v for k, v in aims.items()},
            "adjacency": reason.adjacency,
            "method": found.achieved.method,
            "certified": False,
            "assumptions": list(reason.assumptions),
            "evaluations": found.evaluations,
            "plan": found.plan.to_dict(),
        }
        print(json.dumps(finite(answer)))
        return
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row(f"[bold]{sought[2:]}[/bold]", f"[bold]{found.value!r}[/bold]")
    table.add_row("target", found.target.describe())
    table.add_row(f"achieved {what}", str(found.achieved))
    if found.refused is not None:
        table.add_row("not enough", repr(found.refused))
    table.add_row("adjacency", reason.adjacency)
    add_assumptions(table, reason)
    print_table(table)


def allocate(
    target_epsilon: Annotated[str, typer.Option("--target-epsilon", help="The epsilon of all releases together.")],
    delta: Annotated[str, typer.Option("--delta", help="At this delta.")],
    weights: Annotated[str, typer.Option("--weights", help="Shares of the releases, such as 1,1,2.")],
    noise: Annotated[str, typer.Option("--noise", help="gaussian or laplace.")] = "gaussian",
    adjacency: Adjacency = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Split a budget over releases: the noise of each under basic, advanced, zCDP and exact accounting."""
    from privloss.planning.allocate import allocate as split

    shares = [number("--weights", part) for part in weights.split(",")]
    found = split(
        epsilon=number("--target-epsilon", target_epsilon),
        delta=number("--delta", delta),
        weights=shares,
        noise=noise,
        adjacency=adjacency or "add-remove",
    )
    if out is not None:
        out.write_text(found.best.plan.to_json() + "\n", encoding="utf-8")
    if as_json:
        rows = [
            {
                "accounting": row.accounting,
                "theorem": row.theorem,
                "noise": list(row.noise),
                "epsilon": {"lower": row.epsilon.lower, "upper": row.epsilon.upper},
            }
            for row in found.rows
        ]
        print(json.dumps(finite({"target_epsilon": found.target_epsilon, "delta": found.delta, "rows": rows})))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"noise / sensitivity for epsilon = {found.target_epsilon:g}, delta = {found.delta:g}")
    table.add_column("accounting")
    for i, share in enumerate(shares):
        table.add_column(f"release {i + 1} ({share:g})", justify="right")
    table.add_column("true epsilon", justify="right")
    for row in found.rows:
        style = "bold" if row is found.best else ""
        table.add_row(row.accounting, *(f"{s:.4f}" for s in row.noise), f"{row.epsilon.upper:.4f}", style=style)
    Console().print(table)


@takes_plan
def write(
    plan: Plan,
    out: Annotated[Path | None, typer.Option("--out", help="FILE.json  [default: print it]")] = None,
    adjacency: Adjacency = None,
) -> None:
    """Write the plan that the flags describe as a plan file."""
    made = plan if adjacency is None else plan.under(adjacency)
    if out is None:
        print(made.to_json())
        return
    out.write_text(made.to_json() + "\n", encoding="utf-8")
    print(f"{out}: {len(made):,} steps, adjacency {made.adjacency}")
