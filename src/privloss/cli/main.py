"""The command line: ``privloss epsilon|delta|explain|compare|calibrate|allocate|sweep|certify|verify|selfcheck|...``.

Heavy imports happen inside the commands, so that ``privloss --version`` starts in a blink.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privloss import __version__
from privloss.cli import audit, certificates, ledger, planning, token
from privloss.cli import check as checking
from privloss.cli import serve as serving
from privloss.cli import statement as stating
from privloss.cli import sweep as sweeping
from privloss.cli import theorems as chapter
from privloss.cli.arguments import (
    Adjacency,
    AsJson,
    Certify,
    Tolerance,
    add_assumptions,
    finite,
    load_plan,
    number,
    print_table,
    takes_plan,
)
from privloss.cli.progress import waiting
from privloss.errors import InvalidInput, MissingExtra, PrivlossError

if TYPE_CHECKING:
    from privloss.answers.explain import Explanation
    from privloss.mechanisms.base import Plan
    from privloss.numerics.bound import Bound

app = typer.Typer(
    name="privloss",
    help="What have we promised, exactly? Differential-privacy accounting with proven intervals.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
plan_app = typer.Typer(help="Plan files.", no_args_is_help=True)
app.add_typer(plan_app, name="plan")
app.add_typer(ledger.app, name="ledger")
app.add_typer(audit.app, name="audit")
app.add_typer(token.app, name="token")
app.command("serve")(serving.serve)
plan_app.command("write")(planning.write)


def _explain(plan: Plan, question: str, at: str, adjacency: str | None, tolerance: str, certify: bool) -> Explanation:
    from privloss.answers.explain import explain
    from privloss.numerics import check

    width = check.number("--tolerance", number("--tolerance", tolerance), low=1e-15, high=0.1)
    if question == "epsilon":
        delta = check.number("--delta", number("--delta", at), low=0, high=1)
        return explain(plan, delta=delta, adjacency=adjacency, tolerance=width, answer=_proof(plan, certify, adjacency))
    epsilon = check.number("--epsilon", number("--epsilon", at), low=0)
    found = _proof(plan, certify, adjacency, of_delta=True)
    return explain(plan, epsilon=epsilon, adjacency=adjacency, tolerance=width, answer=found)


def _proof(plan: Plan, certify: bool, adjacency: str | None, of_delta: bool = False) -> Callable[[float], Bound] | None:
    """The certified answer, if one is asked for."""
    if not certify:
        return None
    from privloss.certificates.certificate import certify as prove

    if of_delta:
        return lambda at: prove(plan, epsilon=at, adjacency=adjacency).bound
    return lambda at: prove(plan, delta=at, adjacency=adjacency).bound


def _print(explanation: Explanation, derived: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        print(json.dumps(finite({**explanation.to_dict(), **({"derived": list(derived)} if derived else {})})))
        return
    from rich.table import Table

    answer, question = explanation.answer, explanation.question
    other = "delta" if question == "epsilon" else "epsilon"
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row(f"[bold]{question}[/bold]", f"[bold]{answer}[/bold]")
    table.add_row(other, f"{explanation.given:g}")
    for i, text in enumerate(derived):
        table.add_row("derived" if i == 0 else "", text)
    table.add_row("adjacency", explanation.adjacency)
    table.add_row("method", answer.method)
    for note in answer.notes:
        table.add_row("note", note)
    add_assumptions(table, explanation)
    print_table(table)


@app.command()
@takes_plan
def epsilon(
    plan: Plan,
    derived: tuple[str, ...],
    delta: Annotated[str | None, typer.Option("--delta", help="Target delta.")] = None,
    adjacency: Adjacency = None,
    tolerance: Tolerance = "1e-10",
    certify: Certify = False,
    as_json: AsJson = False,
) -> None:
    """The least epsilon at a delta, as an interval."""
    if delta is None:
        raise InvalidInput("--delta: is missing.")
    _print(_explain(plan, "epsilon", delta, adjacency, tolerance, certify), derived, as_json)


@app.command()
@takes_plan
def delta(
    plan: Plan,
    derived: tuple[str, ...],
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="Target epsilon.")] = None,
    adjacency: Adjacency = None,
    tolerance: Tolerance = "1e-10",
    certify: Certify = False,
    as_json: AsJson = False,
) -> None:
    """The least delta at an epsilon, as an interval."""
    if epsilon is None:
        raise InvalidInput("--epsilon: is missing.")
    _print(_explain(plan, "delta", epsilon, adjacency, tolerance, certify), derived, as_json)


# the order of the help: first what most people came for
app.command("calibrate")(planning.calibrate)


@app.command()
@takes_plan
def explain(
    plan: Plan,
    delta: Annotated[str | None, typer.Option("--delta", help="Explain epsilon at this delta.")] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="Explain delta at this epsilon.")] = None,
    adjacency: Adjacency = None,
    tolerance: Tolerance = "1e-10",
    as_json: AsJson = False,
) -> None:
    """Which theorem and engine give the number, and what it assumes."""
    if (delta is None) == (epsilon is None):
        raise InvalidInput(f"--delta = {delta!r}, --epsilon = {epsilon!r}: give exactly one of them.")
    question, at = ("epsilon", delta) if delta is not None else ("delta", epsilon)
    explanation = _explain(plan, question, str(at), adjacency, tolerance, False)
    print(json.dumps(finite(explanation.to_dict())) if as_json else explanation)


app.command("compare")(chapter.compare)
app.command("allocate")(planning.allocate)
app.command("statement")(stating.statement)
app.command("sweep")(sweeping.sweep)
app.command("certify")(certificates.certify)
app.command("verify")(certificates.verify)
app.command("check")(checking.check)
app.command("selfcheck")(certificates.selfcheck)
app.command("figure")(chapter.figure)


@plan_app.command("validate")
def plan_validate(
    file: Annotated[Path, typer.Argument(help="The plan file.")],
    as_json: AsJson = False,
) -> None:
    """Check a plan file."""
    plan = load_plan(file)
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
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with waiting(next((word for word in given if not word.startswith("-")), "working")):
            code = app(given, standalone_mode=False, prog_name="privloss")
        sys.exit(code if isinstance(code, int) else 0)
    except MissingExtra as problem:
        _fail(str(problem), 1)
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
