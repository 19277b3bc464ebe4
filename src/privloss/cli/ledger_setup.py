"""``privloss ledger ...``: setting up and maintenance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from privloss.cli.arguments import AsJson
from privloss.cli.ledger_shared import Actor, Db, Name, Reason, app, command, opened, say
from privloss.cli.progress import progress_bar
from privloss.ledger.texts import rough

dataset_app = typer.Typer(help="Datasets.", no_args_is_help=True)
group_app = typer.Typer(help="Groups of datasets.", no_args_is_help=True)
budget_app = typer.Typer(help="Budgets.", no_args_is_help=True)
app.add_typer(dataset_app, name="dataset")
app.add_typer(group_app, name="group")
app.add_typer(budget_app, name="budget")

Adjacency = Annotated[str, typer.Option("--adjacency", help="add-remove, replace-one or zero-out.")]
Unit = Annotated[str, typer.Option("--unit", help="Who is protected: record, user, ...")]
Parent = Annotated[str | None, typer.Option("--parent", help="The group above it.")]
_PERIODS = "year, quarter, month, week or day"


@command(app)
def init(db: Db = None, as_json: AsJson = False) -> None:
    """Create a ledger."""
    from privloss.ledger.ledger import Ledger
    from privloss.ledger.stores.address import address_of, shown

    Ledger.create(db).close()
    place = shown(address_of(db))
    say({"db": place, "created": True}, as_json, f"ledger at {place}")


@command(dataset_app, "add")
def dataset_add(
    name: Name,
    adjacency: Adjacency,
    unit: Unit = "record",
    parent: Parent = None,
    blocks: Annotated[
        str | None, typer.Option("--blocks", help=f"Data arrives by {_PERIODS}: each block has the budget.")
    ] = None,
    reason: Reason = "",
    actor: Actor = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Add a dataset."""
    with opened(db, actor) as ledger:
        ledger.add_dataset(name, adjacency=adjacency, unit=unit, parent=parent, blocks=blocks, reason=reason)
    data = {"dataset": name, "adjacency": adjacency, "unit": unit, "parent": parent, "blocks": blocks}
    say(data, as_json, f"dataset {name}: {_promise(adjacency, unit, parent)}" + (f", by {blocks}" if blocks else ""))


def _promise(adjacency: str, unit: str, parent: str | None) -> str:
    return f"{adjacency}, protects one {unit}" + (f", under {parent}" if parent else "")


@command(group_app, "add")
def group_add(
    name: Name,
    adjacency: Adjacency,
    unit: Unit = "record",
    parent: Parent = None,
    reason: Reason = "",
    actor: Actor = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Add a group: its budget holds for all datasets below it together."""
    with opened(db, actor) as ledger:
        ledger.add_group(name, adjacency=adjacency, unit=unit, parent=parent, reason=reason)
    data = {"group": name, "adjacency": adjacency, "unit": unit, "parent": parent}
    say(data, as_json, f"group {name}: {_promise(adjacency, unit, parent)}")


@command(budget_app, "set")
def budget_set(
    name: Name,
    currency: Annotated[str, typer.Option("--currency", help="pure, approx, zcdp, rdp or gdp.")],
    cap: Annotated[str, typer.Option("--cap", help="The cap; for rdp the target epsilon.")],
    delta: Annotated[str | None, typer.Option("--delta", help="The delta of the guarantee.")] = None,
    rule: Annotated[str | None, typer.Option("--filter", help="approx: basic or advanced; rdp: every or some.")] = None,
    analyst: Annotated[str, typer.Option("--analyst", help="A quota for this analyst; may change later.")] = "",
    every: Annotated[str | None, typer.Option("--every", help=f"A cap for each {_PERIODS}.")] = None,
    reason: Reason = "",
    actor: Actor = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Fix a budget before the first spend; or, beneath it, a budget for each period, or an analyst's quota."""
    from privloss.ledger.amounts import show
    from privloss.ledger.filters import CONDITIONS, Filter

    made = Filter.of(currency, cap, delta, rule)
    with opened(db, actor) as ledger:
        ledger.set_budget(
            name, currency=currency, cap=cap, delta=delta, filter=rule, analyst=analyst, every=every, reason=reason
        )
    caps = {part: show(size) for part, size in made.caps.items()}
    data: dict[str, Any] = {"dataset": name, "analyst": analyst or None, "caps": caps, "guarantee": made.guarantee()}
    data |= {"filter": made.theorem, "conditions": CONDITIONS, "every": every}
    whose = f"{name}, {analyst}" if analyst else f"{name}, every {every}" if every else name
    text = "\n".join([f"{whose}: {made.theorem}", *(f"  {part} <= {rough(s, up=False)}" for part, s in caps.items())])
    if analyst:
        say(data, as_json, f"{text}\n  a quota: it may change as long as what was spent fits")
        return
    sure = {part: size and rough(size, up=True) for part, size in made.guarantee().items()}
    say(data, as_json, f"{text}\n  guarantees {json.dumps(sure)}; {CONDITIONS}")


@command(app)
def freeze(name: Name, reason: Reason = "", actor: Actor = None, db: Db = None, as_json: AsJson = False) -> None:
    """Refuse every new reservation and start on a dataset, or on all below a group."""
    _frozen(name, True, reason, actor, db, as_json)


@command(app)
def unfreeze(name: Name, reason: Reason = "", actor: Actor = None, db: Db = None, as_json: AsJson = False) -> None:
    """Allow spending again, after a person has reconciled the ledger."""
    _frozen(name, False, reason, actor, db, as_json)


def _frozen(name: str, frozen: bool, reason: str, actor: str | None, db: str | None, as_json: bool) -> None:
    with opened(db, actor) as ledger:
        ledger.freeze(name, frozen, reason=reason)
    say({"dataset": name, "frozen": frozen}, as_json, f"{name}: {'frozen' if frozen else 'open'}")


@command(app)
def backup(file: Annotated[Path, typer.Argument(help="Where to.")], db: Db = None, as_json: AsJson = False) -> None:
    """Write the history to a file."""
    from privloss.ledger.maintenance import backup as write

    with opened(db) as ledger, progress_bar("writing events") as bar:
        count = write(ledger, file, bar.step)
    say({"file": str(file), "events": count}, as_json, f"{file}: {count} events")


@command(app)
def restore(
    file: Annotated[Path, typer.Argument(help="The backup.")],
    actor: Actor = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Fill a new ledger from a backup; every dataset is frozen until a person unfreezes it."""
    from contextlib import closing

    from privloss.ledger.ledger import Ledger
    from privloss.ledger.maintenance import read_backup
    from privloss.ledger.maintenance import restore as fill

    next(read_backup(file), None)  # a file that is none is refused before a new ledger is made
    with closing(Ledger.create(db, actor=actor)) as ledger, progress_bar("restoring events") as bar:
        count = fill(file, ledger, bar.step)
    text = f"{count} events restored; all datasets are frozen (ledger unfreeze)"
    say({"events": count, "frozen": True}, as_json, text)


@command(app)
def roles(
    owner: Annotated[str, typer.Option("--owner", help="Owns the tables.")],
    writer: Annotated[str, typer.Option("--writer", help="Spends; cannot change events.")],
    auditor: Annotated[str, typer.Option("--auditor", help="Reads and verifies.")],
    schema: Annotated[str, typer.Option("--schema", help="Where the ledger's tables are.")] = "public",
    as_json: AsJson = False,
) -> None:
    """An SQL script that gives three roles on PostgreSQL what each needs."""
    from privloss.ledger.stores.roles import script

    text = script(owner, writer, auditor, schema)
    say({"sql": text}, as_json, text)
