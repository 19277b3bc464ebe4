"""Reading a whole history in little memory: links, order, lawfulness, and the state it leads to.

Only keys that are still open are kept; of the others a fingerprint each, so that no key can come twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from privloss.audit.record import REFUTED
from privloss.ledger.lawful import unlawful, unlawful_before_chains
from privloss.ledger.state import COMMITTED, LEDGER, OF_THE_LEDGER, OPEN, Analysis, Event, State, apply, chains
from privloss.ledger.stores.base import Entry
from privloss.ledger.stores.rows import GENESIS, chain

_KINDS = (
    "account",
    "opened",
    *OF_THE_LEDGER,
)  # events of the ledger's own chain since 0.3, and of the end of the older


@dataclass
class Replay:
    """Takes the entries of all chains in order; stops at the first problem. `closed` is told of every closed key."""

    closed: Callable[[Analysis], None] = lambda analysis: None
    state: State = field(default_factory=State)
    ends: dict[str, tuple[int, str]] = field(default_factory=dict)
    problem: str = ""
    events: int = 0
    audits: list[int] = field(default_factory=lambda: [0, 0])  # attached, and of these refuting
    evidence: list[tuple[str, str, list[str]]] = field(default_factory=list)  # about closed keys, and where it stands
    _seen: set[int] = field(default_factory=set)
    _waiting: dict[str, list[str]] = field(default_factory=dict)  # body -> chains it must still appear in
    _modern: bool = False

    def run(self, entries: Iterable[Entry], last: bool = True) -> Replay:
        """Read on; `last`: nothing comes after these."""
        for entry in entries:
            self.problem = self._linked(entry) or self._followed(entry)
            if self.problem:
                return self
            self.ends[entry.chain] = (entry.seq, entry.hash)
            self.events += 1
        if last and self._waiting:
            body, missing = next(iter(self._waiting.items()))
            self.problem = f"an event stands in some of its chains only (not in {missing[0]!r}): {body[:80]}"
        return self

    def _linked(self, entry: Entry) -> str:
        seq, previous = self.ends.get(entry.chain, (0, GENESIS))
        place = _place(entry)
        if entry.seq != seq + 1:
            return f"{_place(entry, seq + 1)}: is missing (the next has number {entry.seq})"
        if entry.previous != previous or chain(entry.previous, entry.body) != entry.hash:
            return f"{place}: its hash does not follow from the event before"
        return ""

    def _followed(self, entry: Entry) -> str:
        try:
            event = json.loads(entry.body)
            text = self._taken(entry, event)
        except (KeyError, ValueError, TypeError, AttributeError) as problem:
            text = f"cannot be applied ({type(problem).__name__}: {problem})"
        return f"{_place(entry)}: {text}" if text else ""

    def _taken(self, entry: Entry, event: Event) -> str:
        old = entry.chain == LEDGER and event["kind"] not in _KINDS
        if old and self._modern:
            return "an older release's event after the chains of datasets had begun"
        self._modern |= event["kind"] in ("account", "opened")
        wrong = "" if old else self._misplaced(entry, event)
        if wrong or entry.body in self._waiting:
            return wrong
        wrong = self._unlawful(entry, event, old)
        if not wrong and event["kind"] == "reserved":
            wrong = self._twice(event["key"])
        if wrong:
            return wrong
        apply(self.state, event)
        self._close(event)
        return self._exceeded(event) if old else ""

    def _unlawful(self, entry: Entry, event: Event, old: bool) -> str:
        """Closed keys are not kept: only that they were there."""
        wrong = (unlawful_before_chains if old else unlawful)(self.state, event)
        gone = wrong.endswith("was unknown") and _fingerprint(event["key"]) in self._seen
        if gone and event["kind"] == "audited":
            return self._about_closed(entry, event)
        return wrong.replace("was unknown", "was closed") if gone else wrong

    def _about_closed(self, entry: Entry, event: Event) -> str:
        """An audit of a closed key: what it was charged to is to be looked up in the table, when that is known to be
        what the events have led to."""
        self.evidence.append((_place(entry), event["key"], event["accounts"]))
        said = Analysis(event["key"], "", "", COMMITTED, 0.0, {name: {} for name in event["accounts"]}, {})
        return unlawful(State(self.state.accounts, {said.key: said}), event)

    def _misplaced(self, entry: Entry, event: Event) -> str:
        """Why an event may not stand where it does; notes in which of its chains it has still to appear."""
        if event["kind"] == "opened":
            seq, link = self.ends.get(LEDGER, (0, GENESIS))
            if event["after"] != {"seq": seq, "hash": link}:
                return "does not begin at the end of the older chain"
        places = chains(event)
        if entry.chain not in places:
            return f"stands in the chain of {entry.chain!r}, which it does not concern"
        if any(entry.chain in missing for body, missing in self._waiting.items() if body != entry.body):
            return "stands before an event that began earlier"
        left = [name for name in self._waiting.pop(entry.body, places) if name != entry.chain]
        if left:
            self._waiting[entry.body] = left
        return ""

    def _twice(self, key: str) -> str:
        mark = _fingerprint(key)
        if mark in self._seen:
            return f"key {key!r} is reserved, but it was known"
        self._seen.add(mark)
        return ""

    def _close(self, event: Event) -> None:
        """Forget a closed key; count an audit."""
        if event["kind"] == "audited":
            self.audits[0] += 1
            self.audits[1] += event["audit"]["verdict"] == REFUTED
        found = self.state.analyses.get(event.get("key", ""))
        if found is not None and found.state not in OPEN:
            self.closed(found)
            del self.state.analyses[found.key]

    def _exceeded(self, event: Event) -> str:
        """Older events are not decided again, but no cap was ever to be exceeded."""
        for name in event.get("charges", {}):
            over = exceeded(State({name: self.state.accounts[name]}))
            if over:
                return over[0]
        return ""


def exceeded(state: State) -> list[str]:
    """Budgets with more committed and reserved than their caps allow."""
    found = []
    for name, account in state.accounts.items():
        for owner in dict.fromkeys(who for who, _ in account.balances):
            budget, totals = account.budget_of(owner), account.totals(owner)
            short = (
                {}
                if budget is None
                else budget.shortfall({part: totals[part] for part in budget.caps if part in totals})
            )
            found += [f"{owner or 'everyone'} on {name!r} exceeds the cap in {part}" for part in short]
    return found


def _place(entry: Entry, seq: int | None = None) -> str:
    """How an auditor finds it."""
    number = entry.seq if seq is None else seq
    return f"event {number}" if entry.chain == LEDGER else f"event {number} of {entry.chain!r}"


def _fingerprint(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
