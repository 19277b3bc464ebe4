"""``privloss ledger ...``: budgets on the command line. A refusal exits with 3, bad input with 2, a failure with 1.

Here: what an analysis does. Setting up stands in `ledger_setup`, looking in `ledger_look`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privloss.cli import ledger_look as ledger_look
from privloss.cli import ledger_setup as ledger_setup
from privloss.cli.arguments import AsJson, json_of, load_plan, number
from privloss.cli.ledger_shared import (
    Actor,
    Analyst,
    Blocks,
    Db,
    Key,
    Names,
    Reason,
    blocks_given,
    command,
    labels_given,
    one,
    opened,
    say,
)
from privloss.cli.ledger_shared import app as app
from privloss.ledger.texts import rough_accounts, rough_parts

if TYPE_CHECKING:
    from privloss.ledger.ledger import Reservation
    from privloss.mechanisms.base import Plan

PlanFile = Annotated[Path | None, typer.Option("--plan", help="A plan file, priced in the budget's currency.")]
Cost = Annotated[str | None, typer.Option("--cost", help="A cost in the budget's currency: a decimal or p/q.")]
CostDelta = Annotated[str | None, typer.Option("--cost-delta", help="The delta of a cost, or to price a plan at.")]


def _plan(path: Path | None) -> Plan | None:
    return None if path is None else load_plan(path)


@command(app)
def quote(
    names: Names,
    plan: PlanFile = None,
    cost: Cost = None,
    cost_delta: CostDelta = None,
    analyst: Analyst = "",
    blocks: Blocks = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """What a request would be charged; spends nothing."""
    asked: dict[str, Any] = {"cost": cost, "cost_delta": cost_delta, "analyst": analyst, "blocks": blocks_given(blocks)}
    with opened(db) as ledger:
        found = ledger.quote(names, _plan(plan), **asked)

    def text() -> str:
        rows = []
        for name, row in found.items():
            fits = "fits" if row["fits"] else f"does NOT fit ({row['refused']}: {row['text']})"
            left = f", would leave {rough_parts(row['remaining'], up=False)}" if row["remaining"] else ""
            rows.append(f"{name}: charged {rough_parts(row['charged'], up=True)}{left}; {fits}")
        return "\n".join(rows)

    say(found, as_json, text)


@command(app)
def reserve(
    names: Names,
    key: Annotated[str, typer.Option("--key", help="An idempotency key: takes effect once.")],
    plan: PlanFile = None,
    cost: Cost = None,
    cost_delta: CostDelta = None,
    analyst: Analyst = "",
    blocks: Blocks = None,
    lease: Annotated[
        str, typer.Option("--lease", help="Seconds until an unstarted reservation is given back.")
    ] = "3600",
    label: Annotated[str, typer.Option("--label", help="What the analysis is, in a few words.")] = "",
    labels: Annotated[
        list[str] | None, typer.Option("--labels", help="name=text, for the history; may be given several times.")
    ] = None,
    reason: Reason = "",
    actor: Actor = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Hold a cost; exit code 3 if it is refused."""
    said: dict[str, Any] = {"label": label, "labels": labels_given(labels), "reason": reason}
    asked: dict[str, Any] = {"cost": cost, "cost_delta": cost_delta, "analyst": analyst, "blocks": blocks_given(blocks)}
    with opened(db, actor) as ledger:
        held = ledger.reserve(names, _plan(plan), key=key, lease=number("--lease", lease), **asked, **said)
    _moved(held, as_json)


def _moved(found: Reservation, as_json: bool) -> None:
    data = {
        "key": found.key,
        "state": found.state,
        "charged": one(found.charged),
        "remaining": one(found.remaining),
    }
    charged, left = rough_accounts(found.charged, up=True), rough_accounts(found.remaining, up=False)
    say(data, as_json, f"{found.key}: {found.state}, charged {charged}, remaining {left}")


@command(app)
def start(
    key: Key,
    token: Annotated[
        str | None,
        typer.Option("--token", help="A random word for this one start: with it a lost reply can be asked again."),
    ] = None,
    reason: Reason = "",
    actor: Actor = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Say, durably, that the data is about to be read; exit code 3 if the key was started before."""
    with opened(db, actor) as ledger:
        _moved(ledger.start(key, token=token, reason=reason), as_json)


@command(app)
def commit(key: Key, reason: Reason = "", actor: Actor = None, db: Db = None, as_json: AsJson = False) -> None:
    """Say, durably, that the answer is about to be released."""
    with opened(db, actor) as ledger:
        _moved(ledger.commit(key, reason=reason), as_json)


@command(app)
def void(key: Key, reason: Reason = "", actor: Actor = None, db: Db = None, as_json: AsJson = False) -> None:
    """Give back a reservation that was not started."""
    with opened(db, actor) as ledger:
        _moved(ledger.void(key, reason=reason), as_json)


@command(app)
def attach(
    file: Annotated[Path, typer.Argument(help="What `privloss audit ... --json` has printed.")],
    dataset: Annotated[str | None, typer.Option("--dataset", help="The dataset or group it is about.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Or the key.")] = None,
    date: Annotated[str | None, typer.Option("--date", help="The day it was made.  [default: today]")] = None,
    reason: Reason = "",
    actor: Actor = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Put what an audit has found into the history of a dataset or key; changes no balance."""
    from privloss.audit.record import line

    with opened(db, actor) as ledger:
        found = ledger.attach_audit(json_of(file), dataset=dataset, key=key, date=date, reason=reason)
    about = {"dataset": dataset} if key is None else {"key": key}
    say({**about, "audit": found}, as_json, f"attached to {dataset if key is None else key}: {line(found)}")


# the order of the help: first what most people came for
_ORDER = (
    "init", "quote", "reserve", "start", "commit", "void", "list", "status", "history", "odometer", "attach", "freeze",
    "unfreeze", "verify", "doctor", "export", "backup", "restore", "roles",
)  # fmt: skip
app.registered_commands.sort(key=lambda each: _ORDER.index(str(each.name)))
