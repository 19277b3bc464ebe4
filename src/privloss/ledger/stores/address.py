"""Where a ledger lives: `--db`, the environment variable PRIVLOSS_LEDGER, or ./privloss.db."""

from __future__ import annotations

import os
from pathlib import Path

from privloss.errors import InvalidInput
from privloss.ledger.stores.base import Store

VARIABLE, DEFAULT = "PRIVLOSS_LEDGER", "privloss.db"


def open_store(place: str | None, create: bool, grouped: bool = False) -> Store:
    """The store at a place: a path, sqlite:///relative, sqlite:////absolute, or postgresql://...; `grouped`: with group
    commit."""
    address = str(place) if place is not None else os.environ.get(VARIABLE) or DEFAULT
    if address.startswith(("postgresql://", "postgres://")):
        from privloss.ledger.stores.postgres import PostgresStore

        if grouped:
            raise InvalidInput(
                f"grouped = {grouped!r}: goes with SQLite; PostgreSQL groups the commits of its clients."
            )
        return PostgresStore(address, create)
    from privloss.ledger.stores.sqlite import SqliteStore

    plain = SqliteStore(sqlite_path(address), create)
    if not grouped:
        return plain
    from privloss.ledger.stores.grouped import GroupedStore

    return GroupedStore(plain)


def sqlite_path(address: str) -> Path:
    if not address.startswith("sqlite:"):
        if "://" in address:
            raise InvalidInput(f"db = {address.split('://')[0]!r}://...: must be a path, sqlite:/// or postgresql://.")
        return Path(address)
    path = address.removeprefix("sqlite:///")
    if path == address or not path:
        raise InvalidInput(f"db = {address!r}: write sqlite:///relative/path or sqlite:////absolute/path.")
    return Path(path)
