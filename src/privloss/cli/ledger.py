"""``privloss ledger ...``: budgets on the command line. A refusal exits with 3, bad input with 2, a failure with 1."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privloss.cli.arguments import AsJson, finite, load_plan, number
from privloss.errors import InvalidInput

if TYPE_CHECKING:
    from privloss.ledger.ledger import Ledger, Reservation
    from privloss.mechanisms.base import Plan

app = typer.Typer(help="Budgets that survive crashes, races and people.", no_args_is_help=True)
dataset_app = typer.Typer(help="Datasets.", no_args_is_help=True)
budget_app = typer.Typer(help="Budgets.", no_args_is_help=True)
app.add_typer(dataset_app, name="dataset")
app.add_typer(budget_app, name="budget")

Db = Annotated[
    str | None,
    typer.Option(
        "--db", help="A path, sqlite:///..., or postgresql://...  [default: $PRIVLOSS_LEDGER or ./privloss.db]"
    ),
]
Name = Annotated[str, typer.Argument(help="The dataset.")]
Names = Annotated[list[str], typer.Argument(help="The dataset, or several.")]
Key = Annotated[str, typer.Argument(help="The key of the reservation.")]
PlanFile = Annotated[Path | None, typer.Option("--plan", help="A plan file, priced in the budget's currency.")]
Cost = Annotated[str | None, typer.Option("--cost", help="A cost in the budget's currency: a decimal or p/q.")]
CostDelta = Annotated[str | None, typer.Option("--cost-delta", help="The delta of a cost, or to price a plan at.")]
Analyst = Annotated[str, typer.Option("--analyst", help="Who spends; a quota may apply.")]


def _open(db: str | None) -> Ledger:
    from privloss.ledger.ledger import Ledger

    return Ledger(db)


def _say(data: Any, as_json: bool, text: Callable[[], str] | str) -> None:
    print(json.dumps(data) if as_json else text if isinstance(text, str) else text())


def _plan(path: Path | None) -> Plan | None:
    return None if path is None else load_plan(path)


def _one(parts: Mapping[str, Mapping[str, str]]) -> Any:
    """One dataset with one component is shown as its amount."""
    if len(parts) != 1:
        return parts
    amounts = next(iter(parts.values()))
    return next(iter(amounts.values())) if len(amounts) == 1 else amounts


def _guarded(command: Callable[[], None], as_json: bool) -> None:
    from privloss.ledger.ledger import RefusedError

    try:
        command()
    except RefusedError as problem:
        refused = problem.refused
        short = None if refused.shortfall is None else _one({"": refused.shortfall})
        data = {
            "refused": refused.reason.code,
            "charged": None if refused.charged is None else _one(refused.charged),
            "remaining": _one(problem.remaining) if problem.remaining else None,
            "shortfall": short,
            "text": refused.text,
        }
        _say(
            data, as_json, f"refused ({refused.reason.code}): {refused.text}" + (f"; short by {short}" if short else "")
        )
        raise typer.Exit(3) from None


@app.command()
def init(db: Db = None, as_json: AsJson = False) -> None:
    """Create a ledger."""
    from privloss.ledger.ledger import Ledger
    from privloss.ledger.stores.address import address_of, shown

    Ledger.create(db).close()
    place = shown(address_of(db))
    _say({"db": place, "created": True}, as_json, f"ledger at {place}")


@dataset_app.command("add")
def dataset_add(
    name: Name,
    adjacency: Annotated[str, typer.Option("--adjacency", help="add-remove, replace-one or zero-out.")],
    unit: Annotated[str, typer.Option("--unit", help="Who is protected: record, user, ...")] = "record",
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Add a dataset."""

    def add() -> None:
        _open(db).add_dataset(name, adjacency=adjacency, unit=unit)
        data = {"dataset": name, "adjacency": adjacency, "unit": unit}
        _say(data, as_json, f"dataset {name}: {adjacency}, protects one {unit}")

    _guarded(add, as_json)


@budget_app.command("set")
def budget_set(
    name: Name,
    currency: Annotated[str, typer.Option("--currency", help="pure, approx, zcdp, rdp or gdp.")],
    cap: Annotated[str, typer.Option("--cap", help="The cap; for rdp the target epsilon.")],
    delta: Annotated[str | None, typer.Option("--delta", help="The delta of the guarantee.")] = None,
    rule: Annotated[str | None, typer.Option("--filter", help="For approx: basic or advanced.")] = None,
    analyst: Analyst = "",
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Fix a dataset's budget, or an analyst's quota beneath it."""

    def fix() -> None:
        from privloss.ledger.amounts import show
        from privloss.ledger.filters import CONDITIONS, Filter

        made = Filter.of(currency, cap, delta, rule)
        _open(db).set_budget(name, currency=currency, cap=cap, delta=delta, filter=rule, analyst=analyst)
        caps = {part: show(size) for part, size in made.caps.items()}
        data = {"dataset": name, "analyst": analyst or None, "caps": caps, "guarantee": made.guarantee()}
        data |= {"filter": made.theorem, "conditions": CONDITIONS}
        text = "\n".join([f"{name}: {made.theorem}", *(f"  {part} <= {size}" for part, size in caps.items())])
        _say(data, as_json, f"{text}\n  guarantees {json.dumps(made.guarantee())}; {CONDITIONS}")

    _guarded(fix, as_json)


@app.command()
def quote(
    names: Names, plan: PlanFile = None, cost: Cost = None, cost_delta: CostDelta = None, db: Db = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """What a request would be charged; spends nothing."""
    found = _open(db).quote(names, _plan(plan), cost=cost, cost_delta=cost_delta)

    def text() -> str:
        rows = []
        for name, row in found.items():
            fits = "fits" if row["fits"] else "does NOT fit"
            rows.append(
                f"{name}: charged {_one({'': row['charged']})}, would leave {_one({'': row['remaining']})}; {fits}"
            )
        return "\n".join(rows)

    _say(found, as_json, text)


@app.command()
def reserve(
    names: Names,
    key: Annotated[str, typer.Option("--key", help="An idempotency key: takes effect once.")],
    plan: PlanFile = None,
    cost: Cost = None,
    cost_delta: CostDelta = None,
    analyst: Analyst = "",
    lease: Annotated[
        str, typer.Option("--lease", help="Seconds until an unstarted reservation is given back.")
    ] = "3600",
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Hold a cost; exit code 3 if it is refused."""

    def hold() -> None:
        found = _open(db).reserve(
            names,
            _plan(plan),
            key=key,
            cost=cost,
            cost_delta=cost_delta,
            analyst=analyst,
            lease=number("--lease", lease),
        )
        _moved(found, as_json)

    _guarded(hold, as_json)


def _moved(found: Reservation, as_json: bool) -> None:
    charged, left = _one(found.charged), _one(found.remaining)
    data = {"key": found.key, "state": found.state, "charged": charged, "remaining": left}
    _say(data, as_json, f"{found.key}: {found.state}, charged {charged}, remaining {left}")


@app.command()
def start(
    key: Key,
    token: Annotated[
        str | None,
        typer.Option("--token", help="A random word for this one start: with it a lost reply can be asked again."),
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Say, durably, that the data is about to be read; exit code 3 if the key was started before."""
    _guarded(lambda: _moved(_open(db).start(key, token=token), as_json), as_json)


@app.command()
def commit(key: Key, db: Db = None, as_json: AsJson = False) -> None:
    """Say, durably, that the answer is about to be released."""
    _guarded(lambda: _moved(_open(db).commit(key), as_json), as_json)


@app.command()
def void(key: Key, db: Db = None, as_json: AsJson = False) -> None:
    """Give back a reservation that was not started."""
    _guarded(lambda: _moved(_open(db).void(key), as_json), as_json)


@app.command()
def status(name: Name, db: Db = None, as_json: AsJson = False) -> None:
    """What is committed, reserved and left, and what the cap guarantees."""
    found = _open(db).status(name)

    def text() -> str:
        width = max(len(k) for k in found)
        return "\n".join(f"{k:<{width}}  {v if not isinstance(v, dict) else json.dumps(v)}" for k, v in found.items())

    _say(found, as_json, text)


@app.command()
def odometer(
    name: Name,
    delta: Annotated[
        str | None, typer.Option("--delta", help="The chance of more; pure and basic approx budgets need none.")
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """What everything committed so far has lost, valid whenever one looks."""
    found = _open(db).odometer(name, None if delta is None else number("--delta", delta))
    data = {"dataset": name, "epsilon": found.epsilon, "delta": found.delta, "theorem": found.theorem}
    data["text"] = found.text
    _say(finite(data), as_json, f"{name}: {found.text} ({found.theorem})")


def _time(at: float) -> str:
    """Seconds since the epoch as people read them, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


@app.command()
def history(name: Name, db: Db = None, as_json: AsJson = False) -> None:
    """The events that concern a dataset."""
    found = _open(db).history(name)

    def text() -> str:
        keep = ("key", "analyst", "charges", "budget", "why", "frozen", "events")
        return "\n".join(
            f"{e['seq']:>6}  {_time(e['at'])}  {e['kind']:<10} "
            + " ".join(f"{k}={json.dumps(e[k])}" for k in keep if e.get(k))
            for e in found
        )

    _say(found, as_json, text)


@app.command()
def verify(
    db: Db = None,
    secret: Annotated[Path | None, typer.Option("--secret", help="A file with a secret: print a signed head.")] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the chain and all balances; exit code 1 names the first bad event."""
    found = _open(db).verify()
    data: dict[str, Any] = {
        "clean": found.clean,
        "events": found.events,
        "head": found.head,
        "problems": list(found.problems),
    }
    if secret is not None:
        from privloss.ledger.verify import signed_head

        try:
            data["signed"] = signed_head(found, secret.read_bytes().strip())
        except OSError as problem:
            raise InvalidInput(f"--secret = {str(secret)!r}: cannot be read ({problem.strerror}).") from None
    lines = [f"{found.events} events; head {found.head}", *([json.dumps(data["signed"])] if "signed" in data else [])]
    _say(
        data,
        as_json,
        "\n".join(["clean: " + lines[0], *lines[1:]] if found.clean else ["BAD: " + p for p in found.problems]),
    )
    if not found.clean:
        raise typer.Exit(1)


@app.command()
def freeze(name: Name, db: Db = None, as_json: AsJson = False) -> None:
    """Refuse every new reservation and start on a dataset."""
    _guarded(lambda: _frozen(name, True, db, as_json), as_json)


@app.command()
def unfreeze(name: Name, db: Db = None, as_json: AsJson = False) -> None:
    """Allow spending again, after a person has reconciled the ledger."""
    _guarded(lambda: _frozen(name, False, db, as_json), as_json)


def _frozen(name: str, frozen: bool, db: str | None, as_json: bool) -> None:
    _open(db).freeze(name, frozen)
    _say({"dataset": name, "frozen": frozen}, as_json, f"{name}: {'frozen' if frozen else 'open'}")


@app.command()
def export(db: Db = None, as_json: AsJson = False) -> None:
    """The history as canonical JSON lines."""
    for line in _open(db).export():
        print(line)


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="Where to.")], db: Db = None, as_json: AsJson = False) -> None:
    """Write the history to a file."""
    from privloss.ledger.maintenance import backup as write

    count = write(_open(db), file)
    _say({"file": str(file), "events": count}, as_json, f"{file}: {count} events")


@app.command()
def restore(file: Annotated[Path, typer.Argument(help="The backup.")], db: Db = None, as_json: AsJson = False) -> None:
    """Fill a new ledger from a backup; every dataset is frozen until a person unfreezes it."""
    from privloss.ledger.ledger import Ledger
    from privloss.ledger.maintenance import read_backup
    from privloss.ledger.maintenance import restore as fill

    read_backup(file)  # before a new ledger is made
    count = fill(file, Ledger.create(db))
    _say(
        {"events": count, "frozen": True},
        as_json,
        f"{count} events restored; all datasets are frozen (ledger unfreeze)",
    )


@app.command()
def doctor(db: Db = None, as_json: AsJson = False) -> None:
    """A check-up of the ledger; exit code 1 if something needs attention."""
    from privloss.ledger.maintenance import doctor as look

    found = look(_open(db))
    _say(
        found, as_json, "\n".join(f"{'ok ' if row['ok'] else 'BAD'}  {row['check']:<8} {row['text']}" for row in found)
    )
    if not all(row["ok"] for row in found):
        raise typer.Exit(1)
