"""Bringing an empty or older database to this release's schema, by numbered scripts.

From version 3 on each dataset has its own chain. What older releases wrote stays as it is, in the chain of the ledger
itself; the chain of each dataset then begins with an event that names the end of that one. Tables are written anew from
the events, but only if they were what the events say: damage must not be healed unseen.
"""

from __future__ import annotations

import json
from fractions import Fraction
from importlib import resources
from typing import Any

from privloss.ledger.filters import Filter
from privloss.ledger.state import EVERYONE, LEDGER, State, apply, run_hash
from privloss.ledger.stores.base import LedgerError, Loaded, Store

VERSION = 8
_OTHER_TABLES = "has tables of another program (meta, event, ...); a ledger needs a database or schema of its own"


def migrate(store: Store, cursor: Any, dialect: str, found: int, now: float) -> None:
    if found > VERSION:
        raise LedgerError(f"the ledger has schema version {found}, this release knows {VERSION}: upgrade privloss.")
    before = None
    for number in range(found + 1, VERSION + 1):
        if number == 3 and found > 0:
            before = _older(store, cursor)
        path = resources.files("privloss.ledger.stores").joinpath("migrations", dialect, f"{number:04d}.sql")
        for statement in statements(path.read_text(encoding="utf-8")):
            store.execute(cursor, statement)
        store.execute(cursor, "DELETE FROM meta WHERE name = 'version'")
        store.execute(cursor, "INSERT INTO meta (name, value) VALUES ('version', ?)", [str(number)])
    if before is not None:
        open_chains(store, cursor, before, now)


def open_chains(store: Store, cursor: Any, state: State, now: float) -> None:
    """Write a whole state that older events have led to, and let the chain of every dataset begin."""
    end = store.ends(cursor).get(LEDGER, (0, ""))
    after = {"seq": end[0], "hash": end[1]}
    held = Loaded(now, state)
    events = [{"kind": "opened", "dataset": name, "after": after, "at": now} for name in sorted(state.accounts)]
    store.write(cursor, held, events)


def _older(store: Store, cursor: Any) -> State:
    """What the events of an older release have led to; its tables must say the same."""
    state = State()
    for (body,) in store.execute(cursor, "SELECT body FROM event ORDER BY seq").fetchall():
        apply(state, json.loads(body))
    problem = _differs(store, cursor, state)
    if problem:
        raise LedgerError(f"the ledger cannot be upgraded: {problem}; restore a backup (privloss ledger restore).")
    return state


def _differs(store: Store, cursor: Any, state: State) -> str:
    rows = store.execute(cursor, "SELECT name, frozen, budgets FROM dataset").fetchall()
    if {row[0] for row in rows} != set(state.accounts):
        return "its datasets are not those of its events"
    for name, frozen, budgets in rows:
        account, said = state.accounts[name], json.loads(budgets)
        known = {who: quota.to_dict() for who, quota in account.quotas.items()}
        known |= {} if account.filter is None else {EVERYONE: account.filter.to_dict()}
        same = {who: Filter.from_dict(data).to_dict() for who, data in said.items()} == known
        if bool(frozen) != account.frozen or not same:
            return f"dataset {name!r} is not as its events have it"
    return _other_sums(store, cursor, state)


def _other_sums(store: Store, cursor: Any, state: State) -> str:
    query = "SELECT dataset, owner, component, committed, reserved FROM balance"
    for name, owner, component, *amounts in store.execute(cursor, query).fetchall():
        balance = state.accounts[name].balances.get((owner, component))
        if balance is None or [balance.committed, balance.reserved] != [Fraction(x) for x in amounts]:
            return f"balances of {name!r} are not those of its events"
    tokens = "token" if store.version(cursor) >= 2 else "''"
    for key, said, token in store.execute(cursor, f"SELECT key, state, {tokens} FROM analysis").fetchall():
        found = state.analyses.get(key)
        if found is None or found.state != said or found.run != run_hash(token):
            return f"key {key!r} is not as its events have it"
    return ""


def foreign(tables: set[str]) -> str:
    """Why a database with such tables cannot become a ledger; empty if it can."""
    clash = {"event", "dataset", "balance", "analysis", "open_lease", "token", "session"} & tables
    return _OTHER_TABLES if clash and "meta" not in tables else ""


def statements(script: str) -> list[str]:
    """The statements of a migration; bodies of triggers and functions hold semicolons of their own."""
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    found, held = [], ""
    for line in lines:
        held += line + "\n"
        if line.rstrip().endswith(";") and held.count("$$") % 2 == 0:
            found.append(held.strip().rstrip(";") if "TRIGGER" not in held or "BEGIN" not in held else held.strip())
            held = ""
    return found
