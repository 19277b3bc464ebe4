"""What a ledger shows: status, list and history, as plain data. Amounts are exact texts; rounding is for display."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

from privloss.ledger.amounts import show
from privloss.ledger.names import normal
from privloss.ledger.state import EVERYONE, LEDGER, Account, Event
from privloss.ledger.stores.base import Store

_PAGE = 500
_MOST_LOOKED_AT = 5000


def signed(amount: Fraction) -> str:
    return show(amount) if amount.numerator >= 0 else f"-{show(-amount)}"


def shown(parts: Mapping[str, Fraction]) -> dict[str, str]:
    """Amounts by component, orders of Renyi divergence in order."""
    return {part: signed(parts[part]) for part in sorted(parts, key=order)}


def order(component: str) -> tuple[float, str]:
    """Sorts components: orders of Renyi divergence as numbers, delta last."""
    if component.startswith("order "):
        return float(component.split()[1]), ""
    return float(component == "delta"), component


def one(parts: Mapping[str, Any]) -> Any:
    """A single component is shown as its amount."""
    return next(iter(parts.values())) if len(parts) == 1 else dict(parts)


def status(account: Account) -> dict[str, Any]:
    """What is committed, reserved and left, exactly, and the (epsilon, delta) the cap guarantees."""
    budget = account.filter
    base: dict[str, Any] = {"dataset": account.name, "currency": None if budget is None else budget.currency}
    place = {"group": account.group, "parent": account.parent, "blocks": account.blocks, "audits": audits_of(account)}
    rest = {"adjacency": account.adjacency, "unit": account.unit, "frozen": account.frozen}
    rest |= {name: value for name, value in place.items() if value}
    if budget is None:
        return base | rest
    base["cap"] = one(shown(budget.caps))
    if not account.blocks:
        base |= _amounts(account, EVERYONE)
    found = base | {"guarantee": budget.guarantee()} | rest | {"filter": budget.theorem}
    owners = dict.fromkeys(who for who, _ in account.balances)
    if account.recurring is not None:
        periods = {who[1:]: _amounts(account, who) for who in sorted(owners) if who.startswith("@")}
        caps = one(shown(account.recurring.caps))
        found["period"] = {"every": account.every, "cap": caps, "spent": periods}
    if account.blocks:
        found["spent"] = {who[1:]: _amounts(account, who) for who in sorted(owners) if who.startswith("#")}
    people = {who for who in owners if who and who[0] not in "@#"} | set(account.quotas)
    if people:
        found["analysts"] = {who: _person(account, who) for who in sorted(people)}
    return found


def audits_of(account: Account) -> dict[str, int]:
    """How many audits are attached to it, and how many of them refute what was claimed; {} if there are none."""
    return {part: account.audits[part] for part in ("attached", "refuted") if account.audits}


def _amounts(account: Account, owner: str) -> dict[str, Any]:
    parts = {part: b for (who, part), b in account.balances.items() if who == owner}
    every = account.budget_of(owner)
    names = list(every.caps) if every is not None else list(parts)

    def amount(of: Callable[[Any], Fraction]) -> Any:
        return one(shown({part: of(parts[part]) if part in parts else Fraction(0) for part in names}))

    found = {"committed": amount(lambda b: b.committed), "reserved": amount(lambda b: b.reserved)}
    return found if every is None else found | {"remaining": one(shown(account.remaining(owner)))}


def _person(account: Account, owner: str) -> dict[str, Any]:
    quota, spent = account.quotas.get(owner), account.totals(owner)
    found: dict[str, Any] = {}
    for part in sorted({*spent, *(quota.caps if quota else ())}, key=order):
        found[part] = {"spent": show(spent.get(part, Fraction(0)))}
        if quota is not None and part in quota.caps:
            found[part] |= {"cap": show(quota.caps[part]), "remaining": show(account.remaining(owner)[part])}
    return found


@dataclass(frozen=True)
class Wanted:
    """Which events of a history are asked for; times in seconds since the epoch."""

    last: int | None = None
    analyst: str | None = None
    kind: str | None = None
    since: float | None = None
    until: float | None = None
    key: str | None = None
    state: str | None = None  # where the event's key stands now
    looked: int | None = None  # at most at so many events, wanted or not, from the last one on

    def has(self, event: Event, known: Mapping[str, tuple[str, str]]) -> bool:
        """Whether an event is wanted; who asked for a key, and where it stands, is known from its analysis."""
        analyst, state = known.get(event.get("key", ""), ("", ""))
        who = normal(event.get("analyst") or analyst)
        checks = (
            self.analyst is None or who == normal(self.analyst),
            self.kind is None or event["kind"] == self.kind,
            self.since is None or event["at"] >= self.since,
            self.until is None or event["at"] < self.until,
            self.key is None or event.get("key") == self.key,
            self.state is None or state == self.state,
        )
        return all(checks)


def history(store: Store, cursor: Any, name: str, wanted: Wanted) -> list[dict[str, Any]]:
    """The events that concern an account, oldest first; the last ones are found without reading the others."""
    found: list[dict[str, Any]] = []
    known: dict[str, tuple[str, str]] = {}
    for event in islice(_backwards(store, cursor, name), wanted.looked):
        if wanted.since is not None and event["at"] < wanted.since:
            continue
        if wanted.analyst is not None or wanted.state is not None:
            _look_up(store, cursor, event.get("key"), known)
        if wanted.has(event, known):
            found.append(event)
            if wanted.last is not None and len(found) >= wanted.last:
                break
    return found[::-1]


def page(
    store: Store, cursor: Any, name: str, after: int, limit: int, wanted: Wanted
) -> tuple[list[dict[str, Any]], int | None]:
    """At most `limit` wanted events of one chain, and after which to go on; looks at a few thousand at most."""
    found: list[dict[str, Any]] = []
    known: dict[str, tuple[str, str]] = {}
    rows = store.execute(
        cursor, f"{_entry(store)} AND seq > ? ORDER BY seq LIMIT {_MOST_LOOKED_AT}", [name, after]
    ).fetchall()
    for row in rows:
        seq, event = row[1], _event(row)[1]
        if wanted.analyst is not None or wanted.state is not None:
            _look_up(store, cursor, event.get("key"), known)
        if wanted.has(event, known):
            found.append(event)
            if len(found) >= limit:
                return found, seq
    return found, rows[-1][1] if len(rows) == _MOST_LOOKED_AT else None


def _entry(store: Store) -> str:
    return f"SELECT number, seq, body FROM {store.chained} WHERE chain = ?"


def _look_up(store: Store, cursor: Any, key: str | None, known: dict[str, tuple[str, str]]) -> None:
    if key is not None and key not in known:
        analysis = store.analysis(cursor, key)
        known[key] = ("", "") if analysis is None else (analysis.analyst, analysis.state)


def _backwards(store: Store, cursor: Any, name: str) -> Iterator[dict[str, Any]]:
    """From the newest to the oldest, a page at a time; then what releases before 0.3 wrote into one chain for all."""
    first = store.execute(cursor, f"{_entry(store)} AND seq = 1", [name]).fetchall()
    older = json.loads(first[0][2]).get("after", {}).get("seq", 0) if first else 0
    restored = store.execute(cursor, f"{_entry(store)} AND seq > ? ORDER BY seq DESC", [LEDGER, older]).fetchall()
    both = heapq.merge(
        _pages(store, cursor, name),
        (_event(row) for row in restored if json.loads(row[2])["kind"] == "restored"),
        key=lambda found: -found[0],
    )
    for _, event in both:
        yield event
    yield from _before_chains(store, cursor, name, older)


def _event(row: Any) -> tuple[int, dict[str, Any]]:
    return row[0], {"seq": row[1], **json.loads(row[2])}


def _pages(store: Store, cursor: Any, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    seq, query = 2**62, f"{_entry(store)} AND seq < ? ORDER BY seq DESC LIMIT {_PAGE}"
    while rows := store.execute(cursor, query, [name, seq]).fetchall():
        seq = rows[-1][1]
        yield from map(_event, rows)


def _before_chains(store: Store, cursor: Any, name: str, last: int) -> list[dict[str, Any]]:
    """Older events of one dataset, newest first: a key's later events do not say what it was charged to."""
    found: list[dict[str, Any]] = []
    keys: set[str] = set()
    for _, seq, body in store.stream(cursor, f"{_entry(store)} AND seq <= ? ORDER BY seq", [LEDGER, last]):
        event = json.loads(body)
        if name in event.get("charges", {}):
            keys.add(event["key"])
        if event["kind"] == "restored" or event.get("dataset") == name or event.get("key") in keys:
            found.append({"seq": seq, **event})
    return found[::-1]
