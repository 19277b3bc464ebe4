"""Where a ledger lives: `--db`, the environment variable PRIVLOSS_LEDGER, or ./privloss.db."""

from __future__ import annotations

import os
import re
from pathlib import Path

from privloss.errors import InvalidInput
from privloss.ledger.stores.base import Store

VARIABLE, DEFAULT = "PRIVLOSS_LEDGER", "privloss.db"
# PostgreSQL's other way to write an address: keyword = value ...
_CONNINFO = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|service|passfile|sslmode)\s*=")


def address_of(place: str | None) -> str:
    return str(place) if place is not None else os.environ.get(VARIABLE) or DEFAULT


def is_postgres(address: str) -> bool:
    return address.startswith(("postgresql://", "postgres://")) or _CONNINFO.match(address) is not None


def is_service(address: str) -> bool:
    """Whether it is asked over HTTP (`client/`), and kept by a service."""
    return address.startswith(("https://", "http://"))


def shown(address: str) -> str:
    """An address as it may be printed: without user and password."""
    if not is_postgres(address):
        return address
    from privloss.ledger.stores.postgres import shown_address

    return shown_address(address)


def open_store(place: str | None, create: bool, group: bool = False) -> Store:
    """The store at a place: a path, sqlite:///relative, sqlite:////absolute, or postgresql://...; `group`: with group
    commit (PostgreSQL groups the commits of its clients by itself)."""
    address = address_of(place)
    if is_postgres(address):
        from privloss.ledger.stores.postgres import PostgresStore

        return PostgresStore(address, create)
    from privloss.ledger.stores.sqlite import SqliteStore

    plain = SqliteStore(sqlite_path(address), create)
    if not group:
        return plain
    from privloss.ledger.stores.grouped import GroupedStore

    return GroupedStore(plain)


def sqlite_path(address: str) -> Path:
    if not address.startswith("sqlite:"):
        if is_service(address):
            raise InvalidInput("db = 'https'://...: is a service; its ledger is opened where it is kept.")
        if "://" in address:
            raise InvalidInput(f"db = {address.split('://')[0]!r}://...: must be a path, sqlite:/// or postgresql://.")
        return Path(address)
    path = address.removeprefix("sqlite:///")
    if path == address or not path:
        raise InvalidInput(f"db = {address!r}: write sqlite:///relative/path or sqlite:////absolute/path.")
    return Path(path)
