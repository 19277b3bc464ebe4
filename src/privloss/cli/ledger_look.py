"""``privloss ledger ...``: looking at a ledger, and checking it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from privloss.cli.arguments import AsJson, finite, number
from privloss.cli.ledger_shared import Db, Name, app, command, opened, say
from privloss.cli.ledger_text import outline, show_table
from privloss.cli.progress import progress_bar
from privloss.errors import InvalidInput
from privloss.ledger.texts import COLUMNS, as_csv, audits_text, event_row, rough_parts

KINDS = (
    "account", "budget", "frozen", "reserved", "started", "committed", "voided", "refused", "restored", "opened",
    "dataset", "audited",
)  # fmt: skip
_LIST = ("name", "kind", "under", "currency", "cap", "committed", "reserved", "remaining", "frozen", "audits")


@command(app, "list")
def list_all(db: Db = None, as_json: AsJson = False) -> None:
    """All datasets and groups, and what is left of each."""
    with opened(db) as ledger:
        found = ledger.datasets()
    if as_json:
        print(json.dumps(found))
    else:
        show_table([_listed(each) for each in found], _LIST)


def _listed(status: dict[str, Any]) -> dict[str, str]:
    blocks = status.get("blocks")
    row = {
        "name": status["dataset"],
        "kind": "group" if status.get("group") else f"by {blocks}" if blocks else "dataset",
        "under": status.get("parent") or "",
        "currency": status["currency"] or "no budget",
        "frozen": "frozen" if status["frozen"] else "",
        "audits": audits_text(**status.get("audits", {})),
    }
    for part in ("cap", "committed", "reserved", "remaining"):
        up = part in ("committed", "reserved")
        row[part] = rough_parts(status[part], up) if part in status else ""
    return row


@command(app)
def status(name: Name, db: Db = None, as_json: AsJson = False) -> None:
    """What is committed, reserved and left, and what the cap guarantees."""
    with opened(db) as ledger:
        found = ledger.status(name)
    shown = {**found, "audits": audits_text(**found["audits"])} if "audits" in found else found
    say(found, as_json, lambda: "\n".join(outline(shown)))


@command(app)
def odometer(
    name: Name,
    delta: Annotated[
        str | None, typer.Option("--delta", help="The chance of more; pure and basic approx budgets need none.")
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """What everything committed so far has lost, valid whenever one looks."""
    with opened(db) as ledger:
        found = ledger.odometer(name, None if delta is None else number("--delta", delta))
    data = {"dataset": name, "epsilon": found.epsilon, "delta": found.delta, "theorem": found.theorem}
    data["text"] = found.text
    say(finite(data), as_json, f"{name}: {found.text} ({found.theorem})")


@command(app)
def history(
    name: Name,
    last: Annotated[int | None, typer.Option("--last", help="Only the last so many.", min=1)] = None,
    analyst: Annotated[str | None, typer.Option("--analyst", help="Only what this analyst asked for.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only events of a kind: reserved, refused, ...")] = None,
    state: Annotated[
        str | None, typer.Option("--state", help="Only keys that stand there now: reserved, started, ...")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="From this date on: 2026-11-16 (UTC).")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Before this date.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Only this key.")] = None,
    with_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """The events that concern a dataset, refusals among them."""
    from privloss.ledger.state import COMMITTED, OPEN, VOIDED
    from privloss.numerics import check

    if with_csv and as_json:
        raise InvalidInput("--csv, --json: give one of them.")
    wanted: dict[str, Any] = {"last": last, "analyst": analyst, "key": key}
    wanted["kind"] = None if kind is None else check.choice("--kind", kind, KINDS)
    wanted["state"] = None if state is None else check.choice("--state", state.upper(), (*OPEN, COMMITTED, VOIDED))
    wanted |= {"since": _moment("--since", since), "until": _moment("--until", until)}
    with opened(db) as ledger:
        found = ledger.history(name, **wanted)
    if as_json:
        print(json.dumps(found))
        return
    rows = [event_row(event, name) for event in found]
    if with_csv:
        print(as_csv(rows, COLUMNS))
    else:
        show_table(rows, COLUMNS, right="seq")


def _moment(flag: str, text: str | None) -> float | None:
    """A date, or a date and time, as seconds since the epoch; in UTC unless it says otherwise."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{flag} = {text!r}: must be a date like 2026-11-16 or 2026-11-16T09:30.") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


@command(app)
def verify(
    secret: Annotated[Path | None, typer.Option("--secret", help="A file with a secret: print a signed head.")] = None,
    head: Annotated[
        Path | None, typer.Option("--head", help="A signed head kept elsewhere: does the history go on from it?")
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the chains, every decision and all balances; exit code 1 names the first bad event."""
    from privloss.ledger.verify import check_head, signed_head

    if head is not None and secret is None:
        raise InvalidInput(f"--head = {str(head)!r}: needs --secret, the file it was signed with.")
    word = b"" if secret is None else _read("--secret", secret).strip()
    kept = None if head is None else _head(head)
    with opened(db) as ledger, progress_bar("verifying events") as bar:
        found = ledger.verify(bar.step)
        missing = [] if kept is None else check_head(ledger.store, kept, word)
    problems = [*found.problems, *missing]
    data: dict[str, Any] = {"clean": found.clean, "events": found.events, "head": found.head, "problems": problems}
    data["audits"] = {"attached": found.attached, "refuted": found.refuted}
    lines = [f"clean: {found.events} events; head {found.head}"]
    if found.attached:
        lines.append(
            f"audits: {audits_text(found.attached, found.refuted)} (privloss ledger history NAME --kind audited)"
        )
    if kept is not None:
        data["goes_on_from_head"] = not missing
        lines.append(f"goes on from the head in {head}")
    if secret is not None:
        data["signed"] = signed_head(found, word)
        lines.append(json.dumps(data["signed"]))
    say(data, as_json, "\n".join(["BAD: " + problem for problem in problems] or lines))
    if problems:
        raise typer.Exit(1)


def _read(flag: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise InvalidInput(f"{flag} = {str(path)!r}: cannot be read ({problem.strerror}).") from None


def _head(path: Path) -> dict[str, Any]:
    """What `verify --secret FILE --json` printed, the whole or its part "signed"."""
    text = _read("--head", path)
    try:
        found = json.loads(text)
    except ValueError:
        raise InvalidInput(f"--head = {str(path)!r}: is not JSON.") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"--head = {str(path)!r}: holds no signed head.")
    signed = found.get("signed", found)
    return signed if isinstance(signed, dict) else found


@command(app)
def export(db: Db = None, as_json: AsJson = False) -> None:
    """The history as canonical JSON lines."""
    with opened(db) as ledger:
        for line in ledger.export():
            print(line)


@command(app)
def doctor(db: Db = None, as_json: AsJson = False) -> None:
    """A check-up of the ledger; exit code 1 if something needs attention."""
    from privloss.ledger.maintenance import doctor as look

    with opened(db) as ledger:
        found = look(ledger)
    lines = [f"{'ok ' if row['ok'] else 'BAD'}  {row['check']:<8} {row['text']}" for row in found]
    say(found, as_json, "\n".join(lines))
    if not all(row["ok"] for row in found):
        raise typer.Exit(1)
