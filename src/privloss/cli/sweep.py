"""``privloss sweep``: one question over a grid of parameters."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privloss.adjacency import ADD_REMOVE
from privloss.cli.arguments import Adjacency, AsJson, finite, number
from privloss.cli.progress import progress_bar
from privloss.errors import InvalidInput

if TYPE_CHECKING:
    from privloss.mechanisms.base import Plan
    from privloss.planning.sweep import Sweep

Values = Annotated[str, typer.Option(help="Values, as for the noise.")]


def sweep(
    noise_multiplier: Annotated[
        str | None, typer.Option("--noise-multiplier", help="Values: 1,2,4 or low:high:count.")
    ] = None,
    delta: Annotated[str | None, typer.Option("--delta", help="Target delta, or several, as for the noise.")] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="Instead: delta at this epsilon.")] = None,
    target_epsilon: Annotated[
        str | None, typer.Option("--target-epsilon", help="Instead: the least noise multiplier for this epsilon.")
    ] = None,
    sample_rate: Values = "1",
    steps: Values = "1",
    adjacency: Adjacency = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            help="A heat map: FILE.png, .svg, .pdf; or FILE.csv or .parquet, kept as answers come and resumed from.",
        ),
    ] = None,
    processes: Annotated[int | None, typer.Option("--processes", help="Workers.  [default: one per core]")] = None,
    as_json: AsJson = False,
) -> None:
    """Epsilon over a grid of parameters, on all cores, as a table or a heat map; or delta; or the least noise."""
    from privloss.cli import plots

    asked = _asked(delta, epsilon, target_epsilon)
    if (target_epsilon is None) == (noise_multiplier is None):
        raise InvalidInput("--noise-multiplier: give it, or --target-epsilon to find it, and not both.")
    texts = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate, "steps": steps}
    every: dict[str, list[Any]] = {n: values("--" + n.replace("_", "-"), t) for n, t in texts.items() if t is not None}
    every["steps"] = counts("--steps", steps)
    grid = {name: seen for name, seen in every.items() if len(seen) > 1}
    axes = len(grid) + sum(isinstance(v, list) for v in asked.values())
    path, picture = _output(out, axes)
    first = next(iter(every))
    find = None if target_epsilon is None else "noise_multiplier"
    found = _run(
        grid if axes else {first: every[first]},  # something must have values
        {name: seen[0] for name, seen in every.items()},
        {**asked, "find": find, "adjacency": adjacency, "processes": processes, "file": None if picture else path},
    )
    ran = _ran({name: None if name in grid else seen[0] for name, seen in every.items()}, adjacency)
    if picture and path is not None:
        plots.save_sweep(found, path, ran)
    _print_sweep(found, ran, as_json)


def _ran(same: dict[str, Any], adjacency: str | None) -> str:
    """What is the same at every point: noise, sampler, steps and adjacency."""
    noise, rate, steps = (same.get(name) for name in ("noise_multiplier", "sample_rate", "steps"))
    sampler = "Poisson samples" if rate is None else f"Poisson samples of rate {rate:g}"
    parts = [
        "Gaussian noise" if noise is None else f"Gaussian noise {noise:g}",
        "no sampling" if rate == 1 else sampler,
        "" if steps is None else f"{steps:,} step{'s' * (steps != 1)}".replace(",", " "),
        adjacency or ADD_REMOVE,
    ]
    return ", ".join(part for part in parts if part)


def _output(out: str | None, axes: int) -> tuple[Path | None, bool]:
    """The file, and whether it is a picture; checked before anything is computed."""
    from privloss.cli import plots
    from privloss.papers.canvas import PICTURES
    from privloss.planning.sweep_file import FORMATS, format_of

    if out is None:
        return None, False
    path = plots.output_path(out, (*PICTURES, *FORMATS))
    if path.suffix.lower() not in PICTURES:
        format_of(path)
        return path, False
    if axes != 2:
        raise InvalidInput(f"--out = {out!r}: a heat map needs exactly two parameters with several values.")
    return path, True


def _run(grid: dict[str, Any], fixed: dict[str, Any], asked: dict[str, Any]) -> Sweep:
    from privloss.mechanisms.gaussian import Gaussian
    from privloss.planning.sweep import sweep as over

    def family(**point: Any) -> Plan:
        at = fixed | point
        return Gaussian(noise_multiplier=at["noise_multiplier"]).poisson(at["sample_rate"]) * int(at["steps"])

    with progress_bar("sweeping") as bar:
        try:
            return over(family, progress=bar.step, **asked, **grid)
        except KeyboardInterrupt:
            if asked["file"] is not None:
                bar.end()
                print(f"what was answered is in {asked['file']}; the same command goes on from there", file=sys.stderr)
            raise


def _asked(delta: str | None, epsilon: str | None, target: str | None) -> dict[str, Any]:
    """What is asked for: one number each, or several."""
    given = {"--delta": delta, "--epsilon": epsilon, "--target-epsilon": target}
    if (delta is None) == (epsilon is None):
        raise InvalidInput("--delta: is missing." if delta is None else "--epsilon: contradicts --delta; give one.")
    if target is not None and delta is None:
        raise InvalidInput("--delta: is missing; --target-epsilon needs it.")
    found: dict[str, Any] = {}
    for flag, text in given.items():
        if text is not None:
            numbers = values(flag, text)
            found[flag.removeprefix("--").removeprefix("target-")] = numbers if len(numbers) > 1 else numbers[0]
    return found


def _print_sweep(found: Sweep, ran: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(finite({**found.given, "points": [_plain(p) for p in found.points()]})))
        return
    from rich.console import Console
    from rich.table import Table

    shown = [*found.names, *([found.find] if found.find is not None else []), found.answer]
    table = Table(title=f"{found.describe()}\n{ran}")
    for name in shown:
        table.add_column(name.replace("_", " "), justify="right")
    for point in found.points():
        cells = [point[name] for name in shown]
        texts = ["" if c is None else f"{c:g}" if isinstance(c, (int, float)) else str(c) for c in cells]
        table.add_row(*texts[:-1], texts[-1] or point["problem"])
    Console().print(table)


def _plain(point: dict[str, Any]) -> dict[str, Any]:
    from privloss.numerics.bound import Bound

    return {k: {"lower": v.lower, "upper": v.upper} if isinstance(v, Bound) else v for k, v in point.items()}


def values(flag: str, text: str) -> list[float]:
    """`1,2,4` or `low:high:count`, geometric.

    >>> values("--steps", "10:1000:3"), values("--steps", "5")
    ([10.0, 100.0, 1000.0], [5.0])
    """
    if ":" not in text:
        return [number(flag, part) for part in text.split(",")]
    parts = [number(flag, part) for part in text.split(":")]
    if len(parts) != 3 or not 0 < parts[0] <= parts[1] or not 2 <= parts[2] <= 1000 or parts[2] != int(parts[2]):
        raise InvalidInput(f"{flag} = {text!r}: must be low:high:count with 0 < low <= high and 2 <= count <= 1000.")
    low, high, count = parts[0], parts[1], int(parts[2])
    found = [low * (high / low) ** (i / (count - 1)) for i in range(count)]
    return [low, *(float(f"{v:.12g}") for v in found[1:-1]), high]


def counts(flag: str, text: str) -> list[int]:
    """The same in whole numbers: what is named must be one, between the ends of a range the nearest ones are taken.

    >>> counts("--steps", "10:1000:4"), counts("--steps", "1e3,5")
    ([10, 46, 215, 1000], [1000, 5])
    """
    from privloss.numerics import check

    found = values(flag, text)
    for named in (found[0], found[-1]) if ":" in text else found:
        check.count(flag, named)
    return [round(v) for v in found]
