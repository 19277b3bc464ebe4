"""Arguments that commands share, and how they become a plan.

A command that works on a plan has one parameter `plan: Plan` and is wrapped by `takes_plan`, which replaces it by the
plan file and the flags, the same for every command.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from privloss.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from privloss.answers.explain import Explanation
    from privloss.mechanisms.base import Plan

PlanFile = Annotated[Path | None, typer.Argument(metavar="[PLAN]", help="A plan file (JSON); or use the flags.")]
Noise = Annotated[str | None, typer.Option("--noise-multiplier", help="Gaussian noise / clipping norm.")]
Rate = Annotated[str | None, typer.Option("--sample-rate", help="Poisson sampling rate; without it, no sampling.")]
Steps = Annotated[str | None, typer.Option("--steps", help="Number of steps.  [default: 1]")]
Sampling = Annotated[
    str | None,
    typer.Option(
        "--sampling",
        help="The sampler that really ran: poisson, fixed-size, with-replacement, truncated-poisson, shuffle or "
        "allocation.",
    ),
]
DatasetSize = Annotated[str | None, typer.Option("--dataset-size", help="Records; goes with --sampling.")]
BatchSize = Annotated[str | None, typer.Option("--batch-size", help="Records behind one noisy update.")]
Epochs = Annotated[str | None, typer.Option("--epochs", help="Passes over the data, instead of --steps.")]
MaxBatch = Annotated[str | None, typer.Option("--max-batch-size", help="For --sampling truncated-poisson.")]
Accumulation = Annotated[str | None, typer.Option("--accumulation", help="Micro-batches per update (no effect).")]
Adjacency = Annotated[
    str | None, typer.Option("--adjacency", help="add-remove, replace-one or zero-out.  [default: the plan's]")
]
Certify = Annotated[bool, typer.Option("--certify", help="Prove the answer in ball arithmetic.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Tolerance = Annotated[str, typer.Option("--tolerance", help="Relative width to aim for.")]

_FLAGS: dict[str, Any] = {
    "noise_multiplier": Noise,
    "sample_rate": Rate,
    "steps": Steps,
    "sampling": Sampling,
    "dataset_size": DatasetSize,
    "batch_size": BatchSize,
    "epochs": Epochs,
    "max_batch_size": MaxBatch,
    "accumulation": Accumulation,
}


def print_table(table: Table) -> None:
    """Without blanks at the ends of lines."""
    from rich.console import Console

    console = Console()
    with console.capture() as held:
        console.print(table)
    print("\n".join(line.rstrip() for line in held.get().splitlines()))


def add_assumptions(table: Table, explanation: Explanation) -> None:
    """What an answer assumes; the adjacency has a row of its own."""
    others = [text for text in explanation.assumptions if text != f"adjacency: {explanation.adjacency}"]
    for i, text in enumerate(others):
        table.add_row("assumed" if i == 0 else "", text)


def number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{flag} = {text!r}: must be a number.") from None


def takes_plan(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its parameter `plan` replaced by the plan file and the flags that describe one."""
    own = dict(inspect.signature(command).parameters)
    echoes = own.pop("derived", None) is not None  # wants to show what was derived from the sizes
    hints = get_type_hints(command, localns={"Plan": Any}, include_extras=True)  # the class is loaded with a plan only
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter("plan", keyword, default=None, annotation=PlanFile)]
    added += [inspect.Parameter(n, keyword, default=None, annotation=a) for n, a in _FLAGS.items() if n not in own]
    kept = [p.replace(kind=keyword, annotation=hints[n]) for n, p in own.items() if n != "plan"]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        flags = {name: given.pop(name) if name not in own else given[name] for name in _FLAGS}
        made, told = plan_from(given.pop("plan"), adjacency=given.get("adjacency"), **flags)
        command(plan=made, **({"derived": told} if echoes else {}), **given)

    wrapped.__dict__["__signature__"] = inspect.Signature([*added, *kept])
    wrapped.__annotations__ = {p.name: p.annotation for p in (*added, *kept)}
    return wrapped


def plan_from(path: Path | None, *, adjacency: str | None = None, **flags: str | None) -> tuple[Plan, tuple[str, ...]]:
    """The plan from a file or from flags, never from both, and what was derived on the way."""
    given = {"--" + name.replace("_", "-"): value for name, value in flags.items() if value is not None}
    if path is not None:
        for name, value in given.items():
            raise InvalidInput(f"{name} = {value!r}: contradicts the plan file {str(path)!r}; give one.")
        return load_plan(path), ()
    if flags.get("noise_multiplier") is None:
        raise InvalidInput("--noise-multiplier: is missing; give it or a plan file.")
    return plan_at(str(flags["noise_multiplier"]), given, adjacency)


def text_of(path: Path) -> str:
    """What a file holds."""
    try:
        return path.read_text(encoding="utf-8-sig")  # spreadsheets write a mark in front
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{path}: cannot be read ({problem}).") from None


def json_of(path: Path, text: str | None = None) -> Any:
    """What a JSON file holds; `text` if it was read already."""
    try:
        return json.loads(text_of(path) if text is None else text)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"{path}: is no JSON ({problem}).") from None


def load_plan(path: Path) -> Plan:
    """The plan in a file."""
    from privloss.mechanisms.base import Plan

    return Plan.load(path)


def plan_at(noise: str, given: dict[str, str], adjacency: str | None) -> tuple[Plan, tuple[str, ...]]:
    """The plan that the flags describe, at a noise multiplier, and what was derived."""
    from privloss.mechanisms.base import Plan
    from privloss.mechanisms.gaussian import Gaussian
    from privloss.mechanisms.kinds import scheme_named, schemes
    from privloss.numerics import check

    sigma = check.number("--noise-multiplier", number("--noise-multiplier", noise), low=0)
    sampling, rate = given.get("--sampling"), given.get("--sample-rate")
    if sampling is not None:
        sampling = check.choice("--sampling", scheme_named(sampling), schemes())
    data = [
        n for n in ("--dataset-size", "--batch-size", "--epochs", "--max-batch-size", "--accumulation") if n in given
    ]
    if data and rate is not None:
        raise InvalidInput(f"{data[0]} = {given[data[0]]!r}: contradicts --sample-rate = {rate!r}; give one.")
    if data or sampling not in (None, "poisson"):
        return _training(sigma, given, adjacency)
    if sampling == "poisson" and rate is None:
        raise InvalidInput(
            "--sample-rate: is missing; --sampling poisson needs it, or --dataset-size and --batch-size."
        )
    mechanism: Any = Gaussian(noise_multiplier=sigma)
    if rate is not None:
        mechanism = mechanism.poisson(check.number("--sample-rate", number("--sample-rate", rate), low=0, high=1))
    return Plan.of((mechanism, check.count("--steps", number("--steps", given.get("--steps", "1"))))), ()


def _training(sigma: float, given: dict[str, str], adjacency: str | None) -> tuple[Plan, tuple[str, ...]]:
    """--dataset-size, --batch-size and --epochs or --steps, with the sampler that ran."""
    from privloss.planning.dp_sgd import dp_sgd

    for needed in ("--sampling", "--dataset-size", "--batch-size"):
        if needed not in given:
            raise InvalidInput(f"{needed}: is missing; the sampler that really ran and both sizes are needed.")
    sizes: dict[str, Any] = {
        name: number("--" + name.replace("_", "-"), given["--" + name.replace("_", "-")])
        for name in ("dataset_size", "batch_size", "epochs", "steps", "max_batch_size", "accumulation")
        if "--" + name.replace("_", "-") in given
    }
    made = dp_sgd(noise_multiplier=sigma, sampling=given["--sampling"], adjacency=adjacency or "add-remove", **sizes)
    return made.plan, made.told


def finite(value: Any) -> Any:
    """JSON has no infinity: print the string."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return value
