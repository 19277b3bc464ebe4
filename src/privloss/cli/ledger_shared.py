"""What the commands of ``privloss ledger`` share: their arguments, how a ledger is opened, and how they end."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privloss.errors import InvalidInput
from privloss.ledger.texts import rough_parts

if TYPE_CHECKING:
    from privloss.ledger.ledger import Ledger, RefusedError

app = typer.Typer(help="Budgets that survive crashes, races and people.", no_args_is_help=True)

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        help="A path, sqlite:///..., postgresql://..., or a service: https://... with $PRIVLOSS_TOKEN "
        "(default: $PRIVLOSS_LEDGER or ./privloss.db)",
    ),
]
Name = Annotated[str, typer.Argument(help="The dataset or group.")]
Names = Annotated[list[str], typer.Argument(help="The dataset, or several.")]
Key = Annotated[str, typer.Argument(help="The key of the reservation.")]
Analyst = Annotated[str, typer.Option("--analyst", help="Who spends; a quota may apply.")]
Blocks = Annotated[
    list[str] | None,
    typer.Option("--blocks", help="The blocks that are read: one, or FIRST..LAST; may be given several times."),
]
Actor = Annotated[
    str | None, typer.Option("--actor", help="Who gives this command (default: $PRIVLOSS_ACTOR or your user name).")
]
Reason = Annotated[str, typer.Option("--reason", help="Why; it stands in the history.")]


def opened(db: str | None, actor: str | None = None) -> AbstractContextManager[Ledger]:
    from privloss.ledger.ledger import Ledger

    return closing(Ledger(db, actor=actor))


def say(data: Any, as_json: bool, text: Callable[[], str] | str) -> None:
    print(json.dumps(data) if as_json else text if isinstance(text, str) else text())


def one(parts: Mapping[str, Mapping[str, str]]) -> Any:
    """One dataset with one component is shown as its amount; orders in order."""
    from privloss.ledger.views import one as single
    from privloss.ledger.views import order

    ordered = {name: {part: each[part] for part in sorted(each, key=order)} for name, each in parts.items()}
    return single(next(iter(ordered.values()))) if len(ordered) == 1 else ordered


def blocks_given(blocks: list[str] | None) -> str | list[str] | None:
    """One range as it is, so that a key asked from Python and from here is the same request."""
    return None if not blocks else blocks[0] if len(blocks) == 1 else blocks


def labels_given(labels: list[str] | None) -> dict[str, str] | None:
    found = {}
    for text in labels or []:
        label, sign, value = text.partition("=")
        if not sign or label in found:
            raise InvalidInput(f"--labels = {text!r}: must be written name=text, each name once.")
        found[label] = value
    return found or None


def command(group: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command: a refusal ends with 3, a database that does not answer with 1."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(**given: Any) -> None:
            from privloss.ledger.answers import RefusedError
            from privloss.ledger.stores.base import LedgerError, LostReply, NoAnswer

            try:
                function(**given)
            except RefusedError as problem:
                _refused(problem, given["as_json"])
                raise typer.Exit(3) from None
            except LedgerError as problem:
                if not isinstance(problem, (NoAnswer, LostReply)):
                    raise
                print("privloss: " + " ".join(str(problem).split()), file=sys.stderr)
                raise typer.Exit(1) from None

        group.command(name or function.__name__)(run)
        return function

    return register


def _refused(problem: RefusedError, as_json: bool) -> None:
    refused = problem.refused
    short = None if refused.shortfall is None else one({"": refused.shortfall})
    data = {
        "refused": refused.reason.code,
        "charged": None if refused.charged is None else one(refused.charged),
        "remaining": one(problem.remaining) if problem.remaining else None,
        "shortfall": short,
        "text": refused.text,
    }
    by = f"; short by {rough_parts(short, up=True)}" if short else ""
    say(data, as_json, f"refused ({refused.reason.code}): {refused.text}{by}")
