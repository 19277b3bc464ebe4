"""The hammer's comparison: what a ledger holds against what its users were told, and against the pure model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from privloss.ledger.ledger import Ledger
from privloss.ledger.replay import exceeded
from privloss.ledger.state import COMMITTED, STARTED, VOIDED, Event, State, apply, chains
from privloss.ledger.verify import differences

Line = dict[str, Any]


def compare(ledger: Ledger, log: list[Line]) -> tuple[list[str], dict[str, Any]]:
    """Problems, and figures, of a ledger against what its users were told."""
    with ledger.store.reading() as cursor:
        entries = [(entry.chain, json.loads(entry.body)) for entry in ledger.store.entries(cursor)]
        tables = ledger.store.everything(cursor)
    events = [event for chain, event in entries if chain == chains(event)[0]]
    problems = [f"error: {entry['error']}" for entry in log if "error" in entry]
    problems += [f"tables: {text}" for text in exceeded(tables)]
    problems += _promises(tables, log) + _once(events) + _entered(tables, events, log) + _model(events, tables)
    problems += [f"verify: {text}" for text in ledger.verify().problems]
    refusals = Counter(entry["refused"] for entry in log if "refused" in entry)
    asked, told = (sum(kind in entry for entry in log) for kind in ("intent", "answer"))
    states = Counter(analysis.state for analysis in tables.analyses.values())
    figures = {
        "commands": asked,
        "interrupted": asked - told,
        "unknown": sum("unknown" in entry for entry in log),
        "events": len(events),
        "commits": states[COMMITTED],
        "entered": sum("entered" in entry for entry in log),
        "states": dict(sorted(states.items())),
        "expired": sum(event.get("why") == "lease expired" for event in events),
        "refusals": sum(refusals.values()),
        "reasons": dict(sorted(refusals.items())),
    }
    return problems, figures


def _promises(tables: State, log: list[Line]) -> list[str]:
    """What workers were told, and the ledger does not hold."""
    problems = []
    allowed = {COMMITTED: (COMMITTED,), VOIDED: (VOIDED,), STARTED: (STARTED, COMMITTED)}
    accepted, asked, told = set(), Counter[str](), Counter[str]()
    for entry in log:
        asked[entry.get("key", "")] += entry.get("intent") == "reserve"
        told[entry.get("key", "")] += entry.get("answer") == "reserve"
        if "state" not in entry:
            continue
        key, state = entry["key"], entry["state"]
        accepted.add(key)
        found = tables.analyses.get(key)
        if found is None:
            problems.append(f"key {key!r}: was answered with {state} and is not in the ledger")
        elif found.state not in allowed.get(state, (found.state,)):
            problems.append(f"key {key!r}: was answered with {state} and is {found.state}")
    for key in tables.analyses:
        if key not in accepted and asked[key] <= told[key]:
            problems.append(f"key {key!r}: is in the ledger, but was never asked for, or always refused")
    return problems


def _once(events: Iterable[Event]) -> list[str]:
    """Keys that took effect twice."""
    seen = Counter((event["kind"], event["key"]) for event in events if "key" in event and event["kind"] != "refused")
    return [f"key {key!r}: was {kind} {times} times" for (kind, key), times in seen.items() if times > 1]


def _entered(tables: State, events: Iterable[Event], log: Iterable[Line]) -> list[str]:
    """Answers must not exceed charges: each key lets one run in, and what was let in or out is charged."""
    entered = Counter(entry["entered"] for entry in log if "entered" in entry)
    released = {entry["released"] for entry in log if "released" in entry}
    problems = [f"key {key!r}: let {times} callers in" for key, times in entered.items() if times > 1]
    for keys, states in ((set(entered), (STARTED, COMMITTED)), (released, (COMMITTED,))):
        for key in sorted(keys):
            found = tables.analyses.get(key)
            if found is None or found.state not in states:
                problems.append(f"key {key!r}: the data was read, and it is {found.state if found else 'not charged'}")
    charged = sum(event["kind"] == "started" for event in events)
    counted = [analysis for analysis in tables.analyses.values() if analysis.state in (STARTED, COMMITTED)]
    if not entered.total() <= charged == len(counted):
        problems.append(f"{entered.total()} runs were let in, {charged} started, {len(counted)} are charged")
    return problems


def _model(events: Iterable[Event], tables: State) -> list[str]:
    """The history, replayed event by event."""
    state = State()
    for number, event in enumerate(events, start=1):
        apply(state, event)
        over = exceeded(state) if event["kind"] in ("reserved", "budget") else []
        if over:
            return [f"replay, event {number}: {over[0]}"]
    return [f"replay: {text}" for text in differences(state, tables)]
