"""Whether an event may follow on a state: the rules of `decide`, read backwards by an auditor.

A log can be rewritten and hashed again. What it says must then still be what the rules would have decided: a started
key that is given back, a charge that did not fit, a budget changed after a spend are named.
"""

from __future__ import annotations

from collections.abc import Callable

from privloss.audit.record import flaw
from privloss.ledger.commands import AddAccount, Attach, Command, Expire, Freeze, Move, Reserve, SetBudget
from privloss.ledger.decide import Refused, decide
from privloss.ledger.filters import Filter
from privloss.ledger.names import normal
from privloss.ledger.state import (
    COMMITTED,
    OF_THE_LEDGER,
    RESERVED,
    STARTED,
    VOIDED,
    Event,
    State,
    charges_from_json,
)

_SAID = ("at", "actor", "reason", "labels", "plan", "label", "lease")  # decide nothing; a sum of doubles is rounded
_OLD = ("dataset", "budget", "frozen", "restored", "reserved", "started", "committed", "voided")
_BEFORE = {"reserved": None, "started": RESERVED, "committed": STARTED, "voided": RESERVED}


def unlawful(state: State, event: Event) -> str:
    """Why an event may not follow; empty if it may."""
    if event["kind"] in ("refused", "opened", *OF_THE_LEDGER):
        return ""
    turn = _odd_audit(state, event) if event["kind"] == "audited" else _out_of_turn(state, event)
    if turn:
        return turn
    decision = decide(state, _COMMANDS[event["kind"]](event), event["at"])
    if isinstance(decision, Refused):
        return f"{event['kind']} though it should have been refused: {decision.text}"
    bare = {part: value for part, value in event.items() if part not in _SAID}
    made = [{part: value for part, value in each.items() if part not in _SAID} for each in decision]
    return "" if made == [bare] else f"{event['kind']} is not what the rules decide"


def _odd_audit(state: State, event: Event) -> str:
    """An audit without its facts, or about a key that is not known."""
    wrong = flaw(event["audit"])
    unknown = "key" in event and event["key"] not in state.analyses
    return f"key {event['key']!r} is audited, but it was unknown" if unknown and not wrong else wrong


def _out_of_turn(state: State, event: Event) -> str:
    """A key moved in the wrong order, or entered while frozen; in words of its own."""
    kind, key = event["kind"], event.get("key")
    if kind not in _BEFORE:
        return ""
    known = state.analyses.get(event["key"])
    if (None if known is None else known.state) != _BEFORE[kind]:
        twice = known is not None and kind == "started" and known.state in (STARTED, COMMITTED)
        was = "was unknown" if known is None else f"was {known.state}"
        return f"key {key!r} is started twice" if twice else f"key {key!r} is {kind}, but it {was}"
    charged = event["charges"] if known is None else known.charges
    enters = kind in ("reserved", "started")
    frozen = [name for name in sorted(charged) if enters and name in state.accounts and state.accounts[name].frozen]
    return f"key {key!r} is {kind} while dataset {frozen[0]!r} is frozen" if frozen else ""


def unlawful_before_chains(state: State, event: Event) -> str:
    """The same for events of releases before 0.3, whose rules about quotas and budgets were others."""
    if event["kind"] not in _OLD:
        return f"no event called {event['kind']!r} was known then"
    return _out_of_turn(state, event)


def _account(event: Event) -> Command:
    return AddAccount(
        event["dataset"], event["adjacency"], event["unit"],
        event.get("group", False), event.get("parent"), event.get("blocks"),
    )  # fmt: skip


def _budget(event: Event) -> Command:
    return SetBudget(event["dataset"], Filter.from_dict(event["budget"]), event["analyst"], event.get("every"))


def _reserved(event: Event) -> Command:
    """The blocks are those it is counted on; everything else it says must be what follows from the rest."""
    blocks = {
        name: tuple(owner[1:] for owner in owners if owner.startswith("#")) for name, owners in event["on"].items()
    }
    return Reserve(
        key=event["key"],
        request=event["request"],
        charges=charges_from_json(event["charges"]),
        adjacency=event["plan"].get("adjacency", "add-remove") if "plan" in event else None,
        analyst=normal(event["analyst"]),
        lease=event["lease"] - event["at"],
        datasets=tuple(event["datasets"]),
        blocks={name: found for name, found in blocks.items() if found},
    )


def _moved(event: Event) -> Command:
    if event.get("why") == "lease expired":
        return Expire((event["key"],))
    to = {"started": STARTED, "committed": COMMITTED, "voided": VOIDED}[event["kind"]]
    lease = event["lease"] - event["at"] if "lease" in event else None
    return Move(to, event["key"], lease, event.get("run", ""))


_COMMANDS: dict[str, Callable[[Event], Command]] = {
    "account": _account,
    "budget": _budget,
    "frozen": lambda event: Freeze(event["dataset"], event["frozen"]),
    "reserved": _reserved,
    "started": _moved,
    "committed": _moved,
    "voided": _moved,
    "audited": lambda event: Attach(event["audit"], event.get("dataset", ""), event.get("key", "")),
}
