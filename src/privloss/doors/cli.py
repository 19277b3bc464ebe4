"""The command line: ``privloss epsilon|delta|explain|plan``.

Heavy imports happen inside the commands, so that ``privloss --version`` starts in a blink.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privloss import InvalidInput, Plan, PrivlossError, Unsupported, __version__

if TYPE_CHECKING:
    from privloss.guarantees.explain import Explanation

app = typer.Typer(
    name="privloss",
    help="What have we promised, exactly? Differential-privacy accounting with proven intervals.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
plan_app = typer.Typer(help="Plan files.", no_args_is_help=True)
app.add_typer(plan_app, name="plan")

PlanFile = Annotated[Path | None, typer.Argument(metavar="[PLAN]", help="A plan file (JSON); or use the flags.")]
Noise = Annotated[str | None, typer.Option("--noise-multiplier", help="Gaussian noise / clipping norm.")]
Rate = Annotated[str | None, typer.Option("--sample-rate", help="Poisson sampling rate; without it, no sampling.")]
Steps = Annotated[str | None, typer.Option("--steps", help="Number of steps.  [default: 1]")]
Sampling = Annotated[str | None, typer.Option("--sampling", help="The sampler that really ran: poisson.")]
Adjacency = Annotated[
    str | None, typer.Option("--adjacency", help="add-remove, replace-one or zero-out.  [default: the plan's]")
]
Certify = Annotated[bool, typer.Option("--certify", help="Prove the answer in ball arithmetic.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Tolerance = Annotated[str, typer.Option("--tolerance", help="Relative width to aim for.")]


def _number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{flag} = {text!r}: must be a number.") from None


def _plan(path: Path | None, noise: str | None, rate: str | None, steps: str | None, sampling: str | None) -> Plan:
    """The plan from a file or from flags, never from both."""
    flags = {"--noise-multiplier": noise, "--sample-rate": rate, "--steps": steps, "--sampling": sampling}
    given = [name for name, value in flags.items() if value is not None]
    if path is not None:
        if given:
            raise InvalidInput(f"{given[0]} = {flags[given[0]]!r}: contradicts the plan file {str(path)!r}; give one.")
        return Plan.load(path)
    if noise is None:
        raise InvalidInput("--noise-multiplier: is missing; give it or a plan file.")
    from privloss.mechanisms.gaussian import Gaussian
    from privloss.mechanisms.sampling import SCHEMES
    from privloss.numerics import check

    if sampling is not None:
        check.choice("--sampling", sampling, SCHEMES)
        if sampling != "poisson":
            raise Unsupported(f"--sampling = {sampling!r}: is not supported by this release yet; supported: poisson.")
        if rate is None:
            raise InvalidInput("--sample-rate: is missing; --sampling poisson needs it.")
    sigma = check.number("--noise-multiplier", _number("--noise-multiplier", noise), low=0)
    mechanism: Any = Gaussian(noise_multiplier=sigma)
    if rate is not None:
        mechanism = mechanism.poisson(check.number("--sample-rate", _number("--sample-rate", rate), low=0, high=1))
    return Plan.of((mechanism, check.count("--steps", _number("--steps", "1" if steps is None else steps))))


def _explain(plan: Plan, question: str, at: str, adjacency: str | None, tolerance: str, certify: bool) -> Explanation:
    from privloss.guarantees.explain import explain
    from privloss.numerics import check

    if certify:
        raise Unsupported("--certify: certified answers are not supported by this release yet.")
    width = check.number("--tolerance", _number("--tolerance", tolerance), low=1e-15, high=0.1)
    if question == "epsilon":
        delta = check.number("--delta", _number("--delta", at), low=0, high=1)
        return explain(plan, delta=delta, adjacency=adjacency, tolerance=width)
    epsilon = check.number("--epsilon", _number("--epsilon", at), low=0)
    return explain(plan, epsilon=epsilon, adjacency=adjacency, tolerance=width)


def _finite(value: Any) -> Any:
    """JSON has no infinity: print the string."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return value


def _print(explanation: Explanation, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_finite(explanation.to_dict())))
        return
    from rich.console import Console
    from rich.table import Table

    answer, question = explanation.answer, explanation.question
    other = "delta" if question == "epsilon" else "epsilon"
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row(f"[bold]{question}[/bold]", f"[bold]{answer}[/bold]")
    table.add_row(other, f"{explanation.given:g}")
    table.add_row("adjacency", explanation.adjacency)
    table.add_row("method", answer.method)
    for note in answer.notes:
        table.add_row("note", note)
    for i, text in enumerate(explanation.assumptions):
        table.add_row("assumed" if i == 0 else "", text)
    Console().print(table)


@app.command()
def epsilon(
    plan: PlanFile = None,
    delta: Annotated[str | None, typer.Option("--delta", help="Target delta.")] = None,
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    sampling: Sampling = None,
    adjacency: Adjacency = None,
    tolerance: Tolerance = "1e-10",
    certify: Certify = False,
    as_json: AsJson = False,
) -> None:
    """The least epsilon at a delta, as an interval."""
    if delta is None:
        raise InvalidInput("--delta: is missing.")
    made = _plan(plan, noise_multiplier, sample_rate, steps, sampling)
    _print(_explain(made, "epsilon", delta, adjacency, tolerance, certify), as_json)


@app.command()
def delta(
    plan: PlanFile = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="Target epsilon.")] = None,
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    sampling: Sampling = None,
    adjacency: Adjacency = None,
    tolerance: Tolerance = "1e-10",
    certify: Certify = False,
    as_json: AsJson = False,
) -> None:
    """The least delta at an epsilon, as an interval."""
    if epsilon is None:
        raise InvalidInput("--epsilon: is missing.")
    made = _plan(plan, noise_multiplier, sample_rate, steps, sampling)
    _print(_explain(made, "delta", epsilon, adjacency, tolerance, certify), as_json)


@app.command()
def explain(
    plan: PlanFile = None,
    delta: Annotated[str | None, typer.Option("--delta", help="Explain epsilon at this delta.")] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="Explain delta at this epsilon.")] = None,
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    sampling: Sampling = None,
    adjacency: Adjacency = None,
    tolerance: Tolerance = "1e-10",
    as_json: AsJson = False,
) -> None:
    """Which theorem and engine give the number, and what it assumes."""
    if (delta is None) == (epsilon is None):
        raise InvalidInput(f"--delta = {delta!r}, --epsilon = {epsilon!r}: give exactly one of them.")
    made = _plan(plan, noise_multiplier, sample_rate, steps, sampling)
    question, at = ("epsilon", delta) if delta is not None else ("delta", epsilon)
    explanation = _explain(made, question, str(at), adjacency, tolerance, False)
    print(json.dumps(_finite(explanation.to_dict())) if as_json else explanation)


@plan_app.command("validate")
def plan_validate(
    file: Annotated[Path, typer.Argument(help="The plan file.")],
    as_json: AsJson = False,
) -> None:
    """Check a plan file."""
    plan = Plan.load(file)
    if as_json:
        print(json.dumps({"valid": True, "adjacency": plan.adjacency, "kinds": len(plan.steps), "steps": len(plan)}))
        return
    print(f"{file}: valid; {len(plan.steps)} kinds of step, {len(plan):,} steps, adjacency {plan.adjacency}")


@plan_app.command("schema")
def plan_schema() -> None:
    """Print the JSON Schema of plan files."""
    from privloss.mechanisms.plan_file import schema

    print(json.dumps(schema(), indent=1))


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        print(f"privloss {__version__}")
        raise typer.Exit()


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input ends with exit code 2 and one line, any other failure with 1."""
    try:
        code = app(sys.argv[1:] if arguments is None else arguments, standalone_mode=False, prog_name="privloss")
        sys.exit(code if isinstance(code, int) else 0)
    except PrivlossError as problem:
        _fail(str(problem), 2)
    except (typer.Abort, KeyboardInterrupt):
        _fail("interrupted", 1)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as problem:
        # the parser's own errors know how to say themselves in one line (and, for a bare group, its help)
        if hasattr(problem, "format_message"):
            _fail(problem.format_message() or "a command is missing", 2)
        _fail(f"{type(problem).__name__}: {problem}", 1)


def _fail(message: str, code: int) -> None:
    print("privloss: " + " ".join(str(message).split()), file=sys.stderr)
    sys.exit(code)
