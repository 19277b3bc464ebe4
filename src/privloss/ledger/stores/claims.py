"""Keys of an SQLite ledger: a row that names the event which reserved the key, from which everything else is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privloss.ledger.state import RESERVED, Event, chains
from privloss.ledger.stores.writing import INSERT_ANALYSIS, INSERT_LEASE, SET_END, Change

LEASES = "noted_lease"
INSERT_CLAIM = "INSERT INTO claim VALUES (?, ?, ?, ?, ?)"
_KEY_AT = {INSERT_ANALYSIS: 0, INSERT_LEASE.format(leases=LEASES): 2}


def numbered(events: Sequence[Event], last: int) -> tuple[dict[str, int], int]:
    """Of keys that are reserved, the numbers that their events will have after the last one; and the last of these."""
    found: dict[str, int] = {}
    for event in events:
        if event["kind"] == "reserved":
            found[event["key"]] = last + 1
        last += len(chains(event))
    return found, last


def claim(row: Sequence[Any], numbers: Mapping[str, int]) -> Change:
    """The row of a key that was just reserved, as one that names its event."""
    key, _, _, state, lease, _, _, run = row
    return INSERT_CLAIM, (key, numbers[key], lease, None if state == RESERVED else state, run or None)


def settled(statement: str, values: Sequence[Any], numbers: Mapping[str, int]) -> bool:
    """Whether claims and events have done it already: keys just reserved have their rows, and their leases are found
    through these until they are noted."""
    at = _KEY_AT.get(statement)
    return statement == SET_END if at is None else values[at] in numbers
