"""Checking a ledger: the chains, every decision, the balances; exporting it, and signing its head.

Memory does not grow with the number of events, except for eight bytes a key: closed keys are compared with their table
through sums of keyed hashes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from privloss.ledger.replay import Replay
from privloss.ledger.state import LEDGER, State
from privloss.ledger.stores.base import Entry, Store
from privloss.ledger.stores.rows import (
    ACCOUNT,
    ANALYSIS,
    BALANCE,
    Row,
    account_row,
    analysis_from,
    analysis_row,
    balance_row,
    canonical,
)

Ends = dict[str, tuple[int, str]]
Step = Callable[[int, int], None]  # is told how much of how much is done
_OFTEN = 1000
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Audit:
    """The outcome of `verify`: problems (none: clean), the number of entries, the end of every chain, and how many
    audits are attached and how many of these refute what was claimed."""

    problems: tuple[str, ...]
    events: int
    ends: Ends
    attached: int = 0
    refuted: int = 0

    @property
    def clean(self) -> bool:
        return not self.problems

    @property
    def head(self) -> str:
        """One hash for the ends of all chains."""
        return head_of(self.ends)


class _Multiset:
    """A sum of keyed hashes: two collections have the same sum only if they are the same, whatever the order."""

    def __init__(self, key: bytes) -> None:
        self._key, self.total = key, 0

    def add(self, row: Iterable[Any]) -> None:
        text = canonical(list(row)).encode()
        self.total = (self.total + int.from_bytes(hmac.digest(self._key, text, "sha256"))) % 2**256


def watched(items: Iterable[_Item], of: int, step: Step | None) -> Iterator[_Item]:
    """The same items; `step` is told now and then how many have gone by."""
    for done, item in enumerate(items):
        if step is not None and done % _OFTEN == 0:
            step(done, of)
        yield item


def length(store: Store, cursor: Any) -> int:
    """About how many entries there are: their last number."""
    return int(store.execute(cursor, "SELECT coalesce(max(number), 0) FROM event").fetchone()[0])


def verify(store: Store, step: Step | None = None) -> Audit:
    """Recompute the chains and decide every event again; compare with every table. Names the first bad event."""
    key = secrets.token_bytes(32)
    told, kept = _Multiset(key), _Multiset(key)
    with store.reading() as cursor:
        replay = Replay(lambda analysis: told.add(analysis_row(analysis)))
        replay.run(watched(store.entries(cursor), length(store, cursor), step))
        problems = [replay.problem] if replay.problem else _differences(store, cursor, replay, told, kept)
    return Audit(tuple(problems), replay.events, replay.ends, *replay.audits)


def _differences(store: Store, cursor: Any, replay: Replay, told: _Multiset, kept: _Multiset) -> list[str]:
    """Where the tables are not what the events lead to."""
    for analysis in replay.state.analyses.values():
        told.add(analysis_row(analysis))
    for row in store.stream(cursor, ANALYSIS):
        kept.add(_as_read(row))
    found = _accounts(store, cursor, replay) + store.misplaced(cursor)
    found += astray(store, cursor, replay) if told.total == kept.total else _keys(store, cursor)
    query = "SELECT dataset, key, lease FROM open_lease"
    leases = sorted((row[0], row[1], float(row[2])) for row in store.execute(cursor, query).fetchall())
    wanted = [(name, a.key, a.lease) for a in replay.state.analyses.values() for name in a.charges]
    return found + (["the open leases are not those of the events"] if sorted(wanted) != leases else [])


def _as_read(row: Sequence[Any]) -> Row:
    """The row of a key as it would be written again; one that cannot be read, as it is."""
    try:
        return analysis_row(analysis_from(row))
    except (ValueError, TypeError, AttributeError):
        return tuple(row)


def astray(store: Store, cursor: Any, replay: Replay) -> list[str]:
    """Audits of closed keys that do not stand where their keys were charged."""
    found = []
    for place, key, names in replay.evidence:
        analysis = store.analysis(cursor, key)
        if analysis is None or sorted(analysis.charges) != names:
            found.append(f"{place}: does not stand in the chains of what key {key!r} was charged to")
    return found


def _accounts(store: Store, cursor: Any, replay: Replay) -> list[str]:
    rows = {row[0]: row for row in store.execute(cursor, ACCOUNT).fetchall()}
    state, found = replay.state, []
    if set(rows) - {LEDGER} != set(state.accounts):
        found.append("the datasets are not those of the events")
    kept: dict[str, dict[Any, Any]] = {}
    for row in store.execute(cursor, BALANCE).fetchall():
        kept.setdefault(row[0], {})[(row[1], row[2])] = tuple(row)
    for name in sorted(set(rows) & set(state.accounts)):
        account = state.accounts[name]
        wanted = {place: balance_row((name, *place), balance) for place, balance in account.balances.items()}
        if tuple(rows[name][:5]) != account_row(account) or kept.get(name, {}) != wanted:
            found.append(f"dataset {name!r}: balances or settings are not those of the events")
    for name in sorted(rows):
        if (rows[name][5], rows[name][6]) != replay.ends.get(name, (0, rows[name][6])):
            found.append(f"dataset {name!r}: its chain does not end as the table says")
    return found


def _keys(store: Store, cursor: Any) -> list[str]:
    """Which keys differ: a second reading that keeps them all, for a ledger that is known to be wrong."""
    every: dict[str, Row] = {}
    replay = Replay(lambda analysis: every.update({analysis.key: analysis_row(analysis)}))
    replay.run(store.entries(cursor))
    every |= {key: analysis_row(analysis) for key, analysis in replay.state.analyses.items()}
    kept = {row[0]: _as_read(row) for row in store.stream(cursor, ANALYSIS)}
    names = sorted(key for key in set(every) | set(kept) if every.get(key) != kept.get(key))
    return [f"key {key!r}: is not as the events have it" for key in names[:100]]


def differences(folded: State, tables: State) -> list[str]:
    """Where one whole state is not the other."""
    found = []
    for name in sorted(set(folded.accounts) | set(tables.accounts)):
        if folded.accounts.get(name) != tables.accounts.get(name):
            found.append(f"dataset {name!r}: balances or settings are not those of the events")
    for key in sorted(set(folded.analyses) | set(tables.analyses)):
        if folded.analyses.get(key) != tables.analyses.get(key):
            found.append(f"key {key!r}: is not as the events have it")
    return found


def export(entries: Iterable[Entry]) -> Iterator[str]:
    """Canonical JSON lines, one event in one chain each."""
    for entry in entries:
        row = {"body": json.loads(entry.body), "hash": entry.hash, "previous": entry.previous, "seq": entry.seq}
        yield canonical(row if entry.chain == LEDGER else {**row, "chain": entry.chain})


def head_of(ends: Ends) -> str:
    lines = [f"{name}\t{seq}\t{link}" for name, (seq, link) in sorted(ends.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def signed_head(audit: Audit, secret: bytes) -> dict[str, Any]:
    """The ends of all chains with a keyed hash: kept elsewhere, it proves later that the ledger had this history."""
    ends = {name: list(end) for name, end in sorted(audit.ends.items())}
    return {
        "events": audit.events,
        "head": audit.head,
        "ends": ends,
        "hmac-sha256": _signature(audit.head, audit.events, secret),
    }


def _signature(head: str, events: int, secret: bytes) -> str:
    return hmac.new(secret, f"{events}:{head}".encode(), hashlib.sha256).hexdigest()


def check_head(store: Store, head: dict[str, Any], secret: bytes) -> list[str]:
    """Why a ledger does not go on from a signed head; [] if all that the head has seen is still there.

    A head of a release before 0.3 names the end of one chain.
    """
    try:
        events, said, signature = head["events"], head["head"], head["hmac-sha256"]
        ends = (
            {name: (end[0], end[1]) for name, end in head["ends"].items()}
            if "ends" in head
            else {LEDGER: (events, said)}
        )
    except (KeyError, TypeError, IndexError):
        return ["the file holds no signed head (privloss ledger verify --secret FILE --json prints one)"]
    if not hmac.compare_digest(_signature(said, events, secret), str(signature)):
        return ["the head was not signed with this secret"]
    if "ends" in head and head_of(ends) != said:
        return ["the ends of the head are not those that were signed"]
    found = []
    with store.reading() as cursor:
        for name, (seq, link) in sorted(ends.items()):
            query = f"SELECT hash FROM {store.chained} WHERE chain = ? AND seq = ?"
            row = store.execute(cursor, query, [name, seq]).fetchone()
            if seq > 0 and (row is None or row[0] != link):
                what = "is not there any more" if row is None else "is another one"
                found.append(f"event {seq} of {name!r}, which the head has seen, {what}")
    return found
