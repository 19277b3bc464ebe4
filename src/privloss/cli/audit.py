"""``privloss audit counts|scores|one-run|mechanism|ceiling``: evidence against a claim.

Exit codes: 0 not refuted (or no claim), 1 refuted, 2 bad input, 4 blind: not even a perfect result could have refuted
it.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privloss.cli.arguments import AsJson, finite, json_of, load_plan, number, print_table
from privloss.cli.audit_files import (
    bit,
    budgets_of,
    guessed,
    holds_arguments,
    rows_of,
    scored,
    told,
    whole,
    word,
)
from privloss.cli.progress import progress_bar
from privloss.errors import InvalidInput

if TYPE_CHECKING:
    from privloss.audit.result import Audit

app = typer.Typer(help="Audits: exact tests of a claim, with what they could have shown at best.", no_args_is_help=True)
_CODES = {"refuted": 1, "blind": 4}

PlanClaim = Annotated[Path | None, typer.Option("--plan", help="The plan that is claimed.")]
Claimed = Annotated[str | None, typer.Option("--claim-epsilon", help="Or the epsilon that is claimed, at --delta.")]
Delta = Annotated[str | None, typer.Option("--delta", help="Fixed before looking.")]
Alpha = Annotated[str | None, typer.Option("--alpha", help="How often a true claim may be refuted.  [default: 0.05]")]
Out = Annotated[str | None, typer.Option("--out", help="The picture: a .png, .svg or .pdf file.")]
LogScale = Annotated[bool, typer.Option("--log", help="The picture's false positive rate in logarithms.")]
Trials = Annotated[str | None, typer.Option("--trials", help='"independent": each a run of its own.')]
Inclusion = Annotated[str | None, typer.Option("--inclusion", help='"coins" (in or out) or "pairs" (one of two).')]


@app.command()
def counts(
    file: Annotated[Path | None, typer.Argument(help="JSON of the arguments, or the flags below.")] = None,
    tp: Annotated[str | None, typer.Option("--tp", help="Members called members.")] = None,
    positives: Annotated[str | None, typer.Option("--positives", help="Trials with the member.")] = None,
    fp: Annotated[str | None, typer.Option("--fp", help="Others called members.")] = None,
    negatives: Annotated[str | None, typer.Option("--negatives", help="Trials without.")] = None,
    delta: Delta = None,
    trials: Trials = None,
    plan: PlanClaim = None,
    claim_epsilon: Claimed = None,
    alpha: Alpha = None,
    out: Out = None,
    log: LogScale = False,
    as_json: AsJson = False,
) -> None:
    """Counts at a threshold fixed in advance."""
    from privloss.audit.trials import counts as audit_counts

    path = _picture(out)
    numbers = {"tp": (tp, whole), "positives": (positives, whole), "fp": (fp, whole), "negatives": (negatives, whole)}
    given = told(
        file, {**numbers, "trials": (trials, word), "delta": (delta, number), "alpha": (alpha, number)},
        (*numbers, "delta", "trials"), ("method",),
    )  # fmt: skip
    given["claim"] = _claim(plan, claim_epsilon, given)
    found = audit_counts(**given)
    _say(found, as_json, path, log, given["claim"])


@app.command()
def scores(
    file: Annotated[Path, typer.Argument(help='CSV with the header "score,member", or JSON of the arguments.')],
    delta: Delta = None,
    trials: Trials = None,
    threshold: Annotated[
        str | None, typer.Option("--threshold", help="band, split, bonferroni, dkw, or a number.  [default: band]")
    ] = None,
    direction: Annotated[str | None, typer.Option("--direction", help="up, down or both.  [default: up]")] = None,
    seed: Annotated[str | None, typer.Option("--seed", help="For --threshold split; drawn at random.")] = None,
    plan: PlanClaim = None,
    claim_epsilon: Claimed = None,
    alpha: Alpha = None,
    out: Out = None,
    log: LogScale = False,
    as_json: AsJson = False,
) -> None:
    """Scores of independent runs, where the threshold is chosen on them."""
    from privloss.audit.trial_scores import WAYS
    from privloss.audit.trial_scores import scores as audit_scores

    path = _picture(out)
    flags = {
        "trials": (trials, word), "delta": (delta, number), "alpha": (alpha, number), "seed": (seed, whole),
        "direction": (direction, word), "threshold": (threshold, word if threshold in WAYS else number),
    }  # fmt: skip
    if holds_arguments(file, ("members", "others")):
        given = told(file, flags, ("members", "others", "delta", "trials"), ("members", "others"))
        members, others = given.pop("members"), given.pop("others")
    else:
        given = told(None, flags, ("delta", "trials"))
        rows = rows_of(file, ("score", "member"))
        members = [row["score"] for row in rows if bit("member", row["member"])]
        others = [row["score"] for row in rows if not bit("member", row["member"])]
    given["claim"] = _claim(plan, claim_epsilon, given)
    found = audit_scores(members, others, **given)
    _say(found, as_json, path, log, given["claim"], (members, others, given.get("direction", "up")))


@app.command("one-run")
def one_run(
    file: Annotated[
        Path | None, typer.Argument(help='CSV with "guess,included" or "score,included", or JSON of the arguments.')
    ] = None,
    delta: Delta = None,
    inclusion: Inclusion = None,
    canaries: Annotated[str | None, typer.Option("--canaries", help="Instead of a file.")] = None,
    guesses: Annotated[str | None, typer.Option("--guesses", help="Instead of a file.")] = None,
    correct: Annotated[str | None, typer.Option("--correct", help="Instead of a file.")] = None,
    budgets: Annotated[str | None, typer.Option("--budgets", help='For scores: "50:50,100:0", or confidence.')] = None,
    seed: Annotated[
        str | None, typer.Option("--seed", help="Of the order of equal scores, drawn at random.  [default: a new one]")
    ] = None,
    guesses_fixed: Annotated[
        bool | None,
        typer.Option(
            "--guesses-fixed/--guesses-decided-by-data", help="Whether their number was fixed before looking."
        ),
    ] = None,
    plan: PlanClaim = None,
    claim_epsilon: Claimed = None,
    alpha: Alpha = None,
    as_json: AsJson = False,
) -> None:
    """One training run with many canaries."""
    from privloss.audit.canaries import one_run as audit_run
    from privloss.audit.canary_scores import one_run_scores

    flags = {"inclusion": (inclusion, word), "delta": (delta, number), "alpha": (alpha, number)}
    numbers = {"canaries": (canaries, whole), "guesses": (guesses, whole), "correct": (correct, whole)}
    by_scores = budgets is not None or (file is not None and holds_arguments(file, ("scores",)))
    if by_scores:
        given = scored(file, {**flags, "budgets": (budgets, budgets_of), "seed": (seed, whole)}, guesses_fixed)
        scores, coins = given.pop("scores"), given.pop("included")
        given["claim"] = _claim(plan, claim_epsilon, given)
        found = one_run_scores(scores, coins, **given)
    else:
        given, note = guessed(file, {**flags, **numbers}, guesses_fixed, plan is None)
        given["claim"] = _claim(plan, claim_epsilon, given)
        found = audit_run(**given)
        found = replace(found, notes=(*found.notes, *note))
    _say(found, as_json)


@app.command()
def mechanism(
    function: Annotated[str, typer.Argument(help="package.module:function")],
    x: Annotated[Path, typer.Argument(help="One input (JSON).")],
    y: Annotated[Path, typer.Argument(help="Its neighbour (JSON).")],
    seed: Annotated[str, typer.Option("--seed", help="Of f's generator.")],
    delta: Delta = None,
    runs: Annotated[str, typer.Option("--runs", help="Of each input.")] = "20000",
    plan: PlanClaim = None,
    claim_epsilon: Claimed = None,
    alpha: Alpha = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """A mechanism given as a function, on two neighbouring inputs."""
    from privloss.audit.black_box import mechanism as audit_mechanism

    path = _picture(out)
    given = told(None, {"delta": (delta, number), "alpha": (alpha, number)}, ("delta",))
    claim = _claim(plan, claim_epsilon, given)
    with progress_bar("running") as bar:
        found = audit_mechanism(
            _function(function), json_of(x), json_of(y),
            runs=whole("--runs", runs), seed=whole("--seed", seed), claim=claim, progress=bar.step, **given,
        )  # fmt: skip
    _say(found, as_json, path, claim=claim)


@app.command()
def ceiling(
    delta: Delta = None,
    canaries: Annotated[str | None, typer.Option("--canaries", help="Of one run.")] = None,
    guesses: Annotated[str | None, typer.Option("--guesses", help="Of them.  [default: all]")] = None,
    positives: Annotated[str | None, typer.Option("--positives", help="Independent trials with the member.")] = None,
    negatives: Annotated[str | None, typer.Option("--negatives", help="And without.  [default: as many]")] = None,
    alpha: Alpha = None,
    as_json: AsJson = False,
) -> None:
    """What an audit could show at best, before it is run."""
    from privloss.audit.ceilings import ceiling as audit_ceiling

    sizes = {"canaries": canaries, "guesses": guesses, "positives": positives, "negatives": negatives}
    flags = {name: (text, whole) for name, text in sizes.items()}
    given = {"alpha": 0.05, **told(None, {**flags, "delta": (delta, number), "alpha": (alpha, number)}, ("delta",))}
    found = audit_ceiling(**given)
    if as_json:
        print(json.dumps(finite({"ceiling": found, **given})))
    else:
        at = f"delta = {given['delta']:g}, alpha = {given['alpha']:g}"
        print(f"No result can show more than epsilon = {found:.4g} at {at}.")


def _say(
    found: Audit,
    as_json: bool,
    path: Path | None = None,
    log: bool = False,
    claim: Any = None,
    raw: tuple[list[float], list[float], str] | None = None,
) -> None:
    if path is not None:
        from privloss.cli.audit_picture import draw

        draw(found, path, claim, log, raw)
    if as_json:
        print(json.dumps(finite(found.to_json())))
    else:
        from rich.table import Table

        print(found)
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_row("method", found.method)
        if found.region is not None:
            table.add_row("rates", f"TPR >= {found.region[0]:.4g}, FPR <= {found.region[1]:.4g}")
        if found.event:
            table.add_row("event", found.event)
        for i, text in enumerate(found.assumptions):
            table.add_row("assumed" if not i else "", text)
        for note in found.notes:
            table.add_row("note", note)
        if path is not None:
            table.add_row("picture", str(path))
        print_table(table)
    raise typer.Exit(_CODES.get(found.verdict or "", 0))


def _picture(out: str | None) -> Path | None:
    if out is None:
        return None
    from privloss.cli.plots import output_path

    return output_path(out, (".png", ".svg", ".pdf"))


def _claim(plan: Path | None, epsilon: str | None, given: dict[str, Any]) -> Any:
    """What is claimed: by a flag, or in a file of arguments, which it is taken out of."""
    claims = [each for each in (plan, epsilon, given.pop("claim", None)) if each is not None]
    if len(claims) > 1:
        raise InvalidInput(f"claim: {claims[0]} and {claims[1]} contradict each other; give one.")
    if plan is not None:
        return load_plan(plan)
    return claims[0] if epsilon is None and claims else _pair(epsilon, given)


def _pair(epsilon: str | None, given: dict[str, Any]) -> tuple[float, float] | None:
    return None if epsilon is None else (number("--claim-epsilon", epsilon), given["delta"])


def _function(text: str) -> Any:
    module, _, name = text.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as problem:
        raise InvalidInput(f"function = {text!r}: must be package.module:function ({problem}).") from None
