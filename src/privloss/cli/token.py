"""``privloss token ...``: who may use a service. Only where the database can be reached: not over the network."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from privloss.cli.arguments import AsJson, print_table
from privloss.cli.ledger_shared import Db, opened, say
from privloss.errors import MissingExtra

if TYPE_CHECKING:
    from privloss.service.tokens import Token, Tokens

app = typer.Typer(help="Tokens for a service.", no_args_is_help=True)


@contextmanager
def _tokens(db: str | None) -> Iterator[Tokens]:
    try:
        from privloss.service.tokens import Tokens
    except ImportError as problem:
        raise MissingExtra(f"a service needs {problem.name}: pip install 'privloss[serve]'") from None
    with opened(db) as ledger:
        yield Tokens(ledger.store, actor=ledger.actor)


@app.command()
def create(
    role: Annotated[str, typer.Option("--role", help="analyst, steward or auditor.")],
    analyst: Annotated[str | None, typer.Option("--analyst", help="Whose it is, for the role analyst.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="One that the analyst may see; may be given several times.")
    ] = None,
    all_datasets: Annotated[bool, typer.Option("--all-datasets", help="The analyst may see all.")] = False,
    days: Annotated[float, typer.Option("--days", help="Until it expires.")] = 90.0,
    note: Annotated[str, typer.Option("--note", help="What it is for.")] = "",
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is printed once and cannot be shown again."""
    named = None if all_datasets and not dataset else dataset or ()
    with _tokens(db) as tokens:
        token, text = tokens.create(role, analyst=analyst, datasets=named, days=days, note=note)
    say({**token.to_dict(), "token": text}, as_json, text)


@app.command("list")
def show(db: Db = None, as_json: AsJson = False) -> None:
    """All tokens, without their secrets."""
    with _tokens(db) as tokens:
        found = tokens.all()
    if as_json:
        say([token.to_dict() for token in found], True, "")
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("id", "role", "analyst", "datasets", "expires", "state", "last used", "note"):
        table.add_column(name, justify="left")
    now = time.time()
    for token in found:
        facts = token.to_dict()
        seen = "all" if token.datasets is None else ", ".join(token.datasets)
        row = token.id, token.role, token.analyst, seen, facts["expires"], _state(token, now), token.used, token.note
        table.add_row(*row)
    print_table(table)


def _state(token: Token, now: float) -> str:
    return "active" if token.active(now) else "revoked" if token.revoked is not None else "expired"


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="Its id, as `list` shows it.")],
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """End a token, and the sessions begun with it, from the next request on."""
    with _tokens(db) as tokens:
        token = tokens.revoke(token_id)
    say(token.to_dict(), as_json, f"{token.id}: revoked")
