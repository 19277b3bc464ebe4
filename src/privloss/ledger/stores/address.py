"""Where a ledger lives: `--db`, the environment variable PRIVLOSS_LEDGER, or ./privloss.db."""

from __future__ import annotations

import os
from pathlib import Path

from privloss.errors import InvalidInput
from privloss.ledger.stores.base import Store

VARIABLE, DEFAULT = "PRIVLOSS_LEDGER", "privloss.db"


def open_store(place: str | None, create: bool) -> Store:
    """The store at a place: a path, sqlite:///relative, sqlite:////absolute, or postgresql://..."""
    address = str(place) if place is not None else os.environ.get(VARIABLE) or DEFAULT
    if address.startswith(("postgresql://", "postgres://")):
        from privloss.ledger.stores.postgres import PostgresStore

        return PostgresStore(address, create)
    from privloss.ledger.stores.sqlite import SqliteStore

    return SqliteStore(sqlite_path(address), create)


def sqlite_path(address: str) -> Path:
    if not address.startswith("sqlite:"):
        if "://" in address:
            raise InvalidInput(f"db = {address.split('://')[0]!r}://...: must be a path, sqlite:/// or postgresql://.")
        return Path(address)
    path = address.removeprefix("sqlite:///")
    if path == address or not path:
        raise InvalidInput(f"db = {address!r}: write sqlite:///relative/path or sqlite:////absolute/path.")
    return Path(path)
