"""Checking a ledger: the chain, the balances, the invariants; exporting it, and signing its head."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from privloss.ledger.state import COMMITTED, RESERVED, STARTED, Event, State, apply, owners
from privloss.ledger.stores.base import GENESIS, Store, chain


@dataclass(frozen=True)
class Audit:
    """The outcome of `verify`: problems (none: clean), the number of events and the head of the chain."""

    problems: tuple[str, ...]
    events: int
    head: str

    @property
    def clean(self) -> bool:
        return not self.problems


def verify(store: Store) -> Audit:
    """Recompute the chain and fold all events; compare with every table. Names the first bad event."""
    with store.reading() as cursor:
        rows = list(store.events(cursor))
        tables, leases = store.everything(cursor), store.open_leases(cursor)
    problems, state, previous = [], State(), GENESIS
    for number, (seq, before, body, link) in enumerate(rows, start=1):
        if seq != number:
            problems.append(f"event {number}: is missing (the next has number {seq})")
            break
        if before != previous or chain(before, body) != link:
            problems.append(f"event {seq}: its hash does not follow from the event before")
            break
        try:
            event = json.loads(body)
            wrong = out_of_turn(state, event)
            if wrong:
                problems.append(f"event {seq}: {wrong}")
                break
            apply(state, event)
        except (KeyError, ValueError, TypeError, AttributeError) as problem:
            problems.append(f"event {seq}: cannot be applied ({type(problem).__name__}: {problem})")
            break
        over = exceeded(state)
        if over:
            problems.append(f"event {seq}: {over[0]}")
            break
        previous = link
    if not problems:
        problems += differences(state, tables)
        wanted = [
            (name, a.key, a.lease)
            for a in state.analyses.values()
            if a.state in (RESERVED, STARTED)
            for name in a.charges
        ]
        problems += ["the open leases are not those of the events"] if sorted(wanted) != leases else []
    return Audit(tuple(problems), len(rows), previous)


_BEFORE = {"reserved": None, "started": RESERVED, "committed": STARTED, "voided": RESERVED}


def out_of_turn(state: State, event: Event) -> str:
    """Why an event may not follow (a key started twice, entered while frozen, ...); empty if it may."""
    kind, key = event["kind"], event.get("key")
    if kind not in _BEFORE:
        return ""
    known = state.analyses.get(event["key"])
    if (None if known is None else known.state) != _BEFORE[kind]:
        twice = known is not None and kind == "started" and known.state in (STARTED, COMMITTED)
        was = "was unknown" if known is None else f"was {known.state}"
        return f"key {key!r} is started twice" if twice else f"key {key!r} is {kind}, but it {was}"
    charged = event["charges"] if known is None else known.charges
    frozen = [name for name in sorted(charged) if kind in ("reserved", "started") and state.datasets[name].frozen]
    return f"key {key!r} is {kind} while dataset {frozen[0]!r} is frozen" if frozen else ""


def exceeded(state: State) -> list[str]:
    """Budgets with more committed and reserved than their cap."""
    return [
        f"{owner or 'everyone'} on {name!r} exceeds the cap in {component}"
        for name, dataset in state.datasets.items()
        for (owner, component), balance in dataset.balances.items()
        if balance.total > balance.cap or balance.committed < 0 or balance.reserved < 0
    ]


def differences(folded: State, tables: State) -> list[str]:
    """Where the tables are not the fold of the events; and balances that are not the sum of their analyses."""
    found = []
    if set(folded.datasets) != set(tables.datasets):
        found.append("the datasets are not those of the events")
    for name in sorted(set(folded.datasets) & set(tables.datasets)):
        if folded.datasets[name] != tables.datasets[name]:
            found.append(f"dataset {name!r}: balances or settings are not those of the events")
    for key in sorted(set(folded.analyses) | set(tables.analyses)):
        if folded.analyses.get(key) != tables.analyses.get(key):
            found.append(f"key {key!r}: is not as the events have it")
    return found + sums(tables)


def sums(state: State) -> list[str]:
    """Balances that are not the sums of the analyses under them."""
    totals: dict[tuple[str, str, str], list[Any]] = {}
    for name, dataset in state.datasets.items():
        for owner, component in dataset.balances:
            totals[(name, owner, component)] = [0, 0]
    for analysis in state.analyses.values():
        place = {COMMITTED: 0, RESERVED: 1, STARTED: 1}.get(analysis.state)
        if place is None:
            continue
        for name, parts in analysis.charges.items():
            for owner in owners(state.datasets[name], analysis.analyst):
                for component, amount in parts.items():
                    totals[(name, owner, component)][place] += amount
    return [
        f"{owner or 'everyone'} on {name!r}: {component} is not the sum of its analyses"
        for (name, owner, component), (committed, reserved) in totals.items()
        if (balance := state.datasets[name].balances[(owner, component)]).committed != committed
        or balance.reserved != reserved
    ]


def export(rows: Iterable[tuple[int, str, str, str]]) -> Iterator[str]:
    """Canonical JSON lines, one event each."""
    for seq, previous, body, link in rows:
        yield json.dumps(
            {"body": json.loads(body), "hash": link, "previous": previous, "seq": seq},
            sort_keys=True,
            separators=(",", ":"),
        )


def signed_head(audit: Audit, secret: bytes) -> dict[str, Any]:
    """The head of the chain with a keyed hash: proof to the holder of the secret that the ledger had this history."""
    text = f"{audit.events}:{audit.head}"
    return {
        "events": audit.events,
        "head": audit.head,
        "hmac-sha256": hmac.new(secret, text.encode(), hashlib.sha256).hexdigest(),
    }
