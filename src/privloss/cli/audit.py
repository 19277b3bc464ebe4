"""``privloss audit counts|scores|one-run|mechanism|ceiling``: evidence against a claim.

Exit codes: 0 not refuted (or no claim), 1 refuted, 2 bad input, 4 blind: not even a perfect result could have refuted
it.
"""

from __future__ import annotations

import csv
import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privloss.cli.arguments import AsJson, finite, json_of, load_plan, number, print_table, text_of
from privloss.cli.progress import progress_bar
from privloss.errors import InvalidInput

if TYPE_CHECKING:
    from privloss.audit.result import Audit

app = typer.Typer(help="Audits: exact tests of a claim, with what they could have shown at best.", no_args_is_help=True)
_CODES = {"refuted": 1, "blind": 4}

PlanClaim = Annotated[Path | None, typer.Option("--plan", help="The plan that is claimed.")]
Claimed = Annotated[str | None, typer.Option("--claim-epsilon", help="Or the epsilon that is claimed, at --delta.")]
Delta = Annotated[str, typer.Option("--delta", help="Fixed before looking.")]
Alpha = Annotated[str, typer.Option("--alpha", help="How often a true claim may be refuted.")]
Out = Annotated[str | None, typer.Option("--out", help="The picture: a .png, .svg or .pdf file.")]
LogScale = Annotated[bool, typer.Option("--log", help="The picture's false positive rate in logarithms.")]
Trials = Annotated[str | None, typer.Option("--trials", help='"independent": each a run of its own.')]
Inclusion = Annotated[str | None, typer.Option("--inclusion", help='"coins" (in or out) or "pairs" (one of two).')]


@app.command()
def counts(
    tp: Annotated[str, typer.Option("--tp", help="Members called members.")],
    positives: Annotated[str, typer.Option("--positives", help="Trials with the member.")],
    fp: Annotated[str, typer.Option("--fp", help="Others called members.")],
    negatives: Annotated[str, typer.Option("--negatives", help="Trials without.")],
    delta: Delta,
    trials: Trials = None,
    plan: PlanClaim = None,
    claim_epsilon: Claimed = None,
    alpha: Alpha = "0.05",
    out: Out = None,
    log: LogScale = False,
    as_json: AsJson = False,
) -> None:
    """Counts at a threshold fixed in advance."""
    from privloss.audit.trials import counts as audit_counts

    path = _picture(out)
    claim = _claim(plan, claim_epsilon, delta)
    found = audit_counts(
        tp=_whole("--tp", tp),
        positives=_whole("--positives", positives),
        fp=_whole("--fp", fp),
        negatives=_whole("--negatives", negatives),
        delta=number("--delta", delta),
        trials=trials or "",
        alpha=number("--alpha", alpha),
        claim=claim,
    )
    _say(found, as_json, path, log, claim)


@app.command()
def scores(
    file: Annotated[Path, typer.Argument(help='CSV with the header "score,member", or JSON of the arguments.')],
    delta: Delta,
    trials: Trials = None,
    threshold: Annotated[str, typer.Option("--threshold", help="band, split, bonferroni, dkw, or a number.")] = "band",
    direction: Annotated[str, typer.Option("--direction", help="up, down or both.")] = "up",
    seed: Annotated[str | None, typer.Option("--seed", help="For --threshold split.")] = None,
    plan: PlanClaim = None,
    claim_epsilon: Claimed = None,
    alpha: Alpha = "0.05",
    out: Out = None,
    log: LogScale = False,
    as_json: AsJson = False,
) -> None:
    """Scores of independent runs, where the threshold is chosen on them."""
    from privloss.audit.trial_scores import WAYS
    from privloss.audit.trial_scores import scores as audit_scores

    path = _picture(out)
    rows = _rows(file, ("score", "member"))
    members = [row["score"] for row in rows if _bit("member", row["member"])]
    others = [row["score"] for row in rows if not _bit("member", row["member"])]
    claim = _claim(plan, claim_epsilon, delta)
    found = audit_scores(
        members,
        others,
        delta=number("--delta", delta),
        trials=trials or "",
        threshold=threshold if threshold in WAYS else number("--threshold", threshold),
        direction=direction,
        seed=None if seed is None else _whole("--seed", seed),
        alpha=number("--alpha", alpha),
        claim=claim,
    )
    _say(found, as_json, path, log, claim, (members, others, direction))


@app.command("one-run")
def one_run(
    file: Annotated[
        Path | None, typer.Argument(help='CSV with the header "guess,included" or "score,included".')
    ] = None,
    delta: Delta = "",
    inclusion: Inclusion = None,
    canaries: Annotated[str | None, typer.Option("--canaries", help="Instead of a file.")] = None,
    guesses: Annotated[str | None, typer.Option("--guesses", help="Instead of a file.")] = None,
    correct: Annotated[str | None, typer.Option("--correct", help="Instead of a file.")] = None,
    budgets: Annotated[str | None, typer.Option("--budgets", help='For scores: "50:50,100:0", or confidence.')] = None,
    guesses_fixed: Annotated[
        bool | None,
        typer.Option(
            "--guesses-fixed/--guesses-decided-by-data", help="Whether their number was fixed before looking."
        ),
    ] = None,
    plan: PlanClaim = None,
    claim_epsilon: Claimed = None,
    alpha: Alpha = "0.05",
    as_json: AsJson = False,
) -> None:
    """One training run with many canaries."""
    from privloss.audit.canaries import one_run as audit_run
    from privloss.audit.canary_scores import one_run_scores

    if not delta:
        raise InvalidInput("--delta: is missing.")
    common: dict[str, Any] = {
        "delta": number("--delta", delta),
        "inclusion": inclusion,
        "alpha": number("--alpha", alpha),
        "claim": _claim(plan, claim_epsilon, delta),
    }
    if budgets is not None:
        scores, coins = _scored(file, budgets, guesses_fixed)
        found = one_run_scores(scores, coins, budgets=_budgets(budgets), **common)
    else:
        m, r, v = _guessed(file) if file is not None else _given(canaries, guesses, correct)
        fixed = _fixed(guesses_fixed, r == m or (plan is None and common["delta"] == 0), f"{r} of {m}")
        found = audit_run(canaries=m, guesses=r, correct=v, guesses_fixed=fixed, **common)
    _say(found, as_json)


@app.command()
def mechanism(
    function: Annotated[str, typer.Argument(help="package.module:function")],
    x: Annotated[Path, typer.Argument(help="One input (JSON).")],
    y: Annotated[Path, typer.Argument(help="Its neighbour (JSON).")],
    delta: Delta,
    seed: Annotated[str, typer.Option("--seed", help="Of f's generator.")],
    runs: Annotated[str, typer.Option("--runs", help="Of each input.")] = "20000",
    plan: PlanClaim = None,
    claim_epsilon: Claimed = None,
    alpha: Alpha = "0.05",
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """A mechanism given as a function, on two neighbouring inputs."""
    from privloss.audit.black_box import mechanism as audit_mechanism

    path, claim = _picture(out), _claim(plan, claim_epsilon, delta)
    with progress_bar("running") as bar:
        found = audit_mechanism(
            _function(function), json_of(x), json_of(y),
            runs=_whole("--runs", runs), delta=number("--delta", delta), seed=_whole("--seed", seed),
            alpha=number("--alpha", alpha), claim=claim, progress=bar.step,
        )  # fmt: skip
    _say(found, as_json, path, claim=claim)


@app.command()
def ceiling(
    delta: Delta,
    canaries: Annotated[str | None, typer.Option("--canaries", help="Of one run.")] = None,
    guesses: Annotated[str | None, typer.Option("--guesses", help="Of them.  [default: all]")] = None,
    positives: Annotated[str | None, typer.Option("--positives", help="Independent trials with the member.")] = None,
    negatives: Annotated[str | None, typer.Option("--negatives", help="And without.  [default: as many]")] = None,
    alpha: Alpha = "0.05",
    as_json: AsJson = False,
) -> None:
    """What an audit could show at best, before it is run."""
    from privloss.audit.ceilings import ceiling as audit_ceiling

    sizes = {"canaries": canaries, "guesses": guesses, "positives": positives, "negatives": negatives}
    given: dict[str, Any] = {k: _whole(f"--{k}", v) for k, v in sizes.items() if v is not None}
    level = number("--alpha", alpha)
    found = audit_ceiling(**given, delta=number("--delta", delta), alpha=level)
    if as_json:
        print(json.dumps(finite({"ceiling": found, "delta": float(delta), "alpha": level, **given})))
    else:
        print(f"No result can show more than epsilon = {found:.4g} at delta = {float(delta):g}, alpha = {level:g}.")


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


def _claim(plan: Path | None, epsilon: str | None, delta: str) -> Any:
    if plan is not None and epsilon is not None:
        raise InvalidInput(f"--claim-epsilon = {epsilon!r}: contradicts --plan; give one.")
    if plan is not None:
        return load_plan(plan)
    return None if epsilon is None else (number("--claim-epsilon", epsilon), number("--delta", delta))


def _whole(flag: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{flag} = {text!r}: must be a whole number.") from None


def _bit(name: str, value: Any) -> bool:
    if value not in (0, 1, "0", "1"):
        raise InvalidInput(f"{name} = {value!r}: must be 0 or 1.")
    return str(int(value)) == "1"


def _rows(file: Path, columns: tuple[str, str]) -> list[dict[str, Any]]:
    """The rows of a CSV file or of a JSON list of objects, or an object of two lists; numbers in the first column."""
    text = text_of(file)
    if file.suffix.lower() == ".json":
        content = json_of(file, text)
        rows = _from_json(content, columns, file)
    else:
        rows = list(csv.DictReader(text.splitlines()))
    if not rows or any(not isinstance(r, dict) or not set(columns) <= set(r) for r in rows):
        raise InvalidInput(f"{file}: must have rows with {columns[0]} and {columns[1]}.")
    if columns[0] != "guess":
        for row in rows:
            try:
                row[columns[0]] = float(row[columns[0]])
            except (TypeError, ValueError):
                raise InvalidInput(f"{file}: {columns[0]} = {row[columns[0]]!r} is no number.") from None
    return rows


def _from_json(content: Any, columns: tuple[str, str], file: Path) -> list[dict[str, Any]]:
    if isinstance(content, dict) and set(columns) <= set(content):
        first, second = content[columns[0]], content[columns[1]]
        if not isinstance(first, list) or not isinstance(second, list) or len(first) != len(second):
            raise InvalidInput(f"{file}: {columns[0]} and {columns[1]} must be lists of equal length.")
        return [dict(zip(columns, pair, strict=True)) for pair in zip(first, second, strict=True)]
    return content if isinstance(content, list) else []


def _given(canaries: str | None, guesses: str | None, correct: str | None) -> list[int]:
    """The same from flags."""
    found = []
    for flag, text in {"--canaries": canaries, "--guesses": guesses, "--correct": correct}.items():
        if text is None:
            raise InvalidInput(f"{flag}: is missing; give it or a file.")
        found.append(_whole(flag, text))
    return found


def _scored(file: Path | None, budgets: str, guesses_fixed: bool | None) -> tuple[list[float], list[bool]]:
    """Scores and coins of canaries."""
    if file is None or guesses_fixed is False:
        raise InvalidInput(f"--budgets = {budgets!r}: are fixed numbers of guesses from scores in a file.")
    rows = _rows(file, ("score", "included"))
    return [row["score"] for row in rows], [_bit("included", row["included"]) for row in rows]


def _fixed(said: bool | None, same: bool, guessed: str) -> bool:
    """Whether the number of guesses was fixed in advance: it must be said unless it is all the same."""
    if said is None and not same:
        raise InvalidInput(
            f"--guesses-fixed or --guesses-decided-by-data: is missing; {guessed} canaries were guessed."
        )
    return said is not False


def _guessed(file: Path) -> tuple[int, int, int]:
    """Canaries, guesses and right ones: a guess is in, out or empty."""
    rows = _rows(file, ("guess", "included"))
    right = made = 0
    for row in rows:
        guess = str(row["guess"] or "").strip().lower()
        if guess not in ("in", "out", ""):
            raise InvalidInput(f"{file}: guess = {row['guess']!r}: must be in, out or empty.")
        if guess:
            made += 1
            right += (guess == "in") == _bit("included", row["included"])
    return len(rows), made, right


def _budgets(text: str) -> Any:
    if text == "confidence":
        return text
    try:
        return [tuple(int(part) for part in pair.split(":")) for pair in text.split(",")]
    except ValueError:
        raise InvalidInput(f'--budgets = {text!r}: must be pairs like "50:50,100:0", or confidence.') from None


def _function(text: str) -> Any:
    module, _, name = text.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as problem:
        raise InvalidInput(f"function = {text!r}: must be package.module:function ({problem}).") from None
