"""Routes by which analysts spend: they name neither an analyst nor an actor; both are the token's."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from privloss.ledger import names
from privloss.ledger.answers import Reservation, accepted
from privloss.ledger.commands import Command, Move, Note
from privloss.ledger.described import Described
from privloss.ledger.filters import Filter
from privloss.ledger.ledger import LEASE, repeated
from privloss.ledger.state import COMMITTED, EVERYONE, STARTED, run_hash
from privloss.ledger.stores.base import Outcome
from privloss.service import jobs, shapes, shown
from privloss.service.calls import Answer, Call
from privloss.service.problems import Problem, bad

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:-]{0,119}", re.ASCII)


def _key(call: Call) -> str:
    """The key as the ledger has it."""
    key = call.path["key"]
    owner = call.query.get("analyst")
    if (call.caller.is_analyst or owner) and not _KEY.fullmatch(key):
        raise bad(f"a key is written {_KEY.pattern}")
    if call.caller.is_analyst and owner:
        raise bad("analyst: is the token's; leave it out")
    return call.caller.stored_key(key, owner)


def plan_of(call: Call, body: dict[str, Any] | None, known: bool = False) -> Described | None:
    """A plan, read by a worker, and priced by one if its key is not known."""
    if body is None:
        return None
    found = call.worked(jobs.describe, body)
    if known:  # it was priced before: the answer follows from the key and what was asked
        return Described(found["body"], found["adjacency"], lambda *_: {})

    def price(plan: dict[str, Any], budget: Filter, delta: Any) -> dict[str, Fraction]:
        return {part: Fraction(x) for part, x in call.worked(jobs.price, plan, budget.to_dict(), delta).items()}

    return Described(found["body"], found["adjacency"], price)


def quote(call: Call) -> Answer:
    asked = call.given(shapes.Quote)
    datasets = [call.dataset(name) for name in asked.datasets]
    if call.caller.is_analyst and asked.analyst is not None:
        raise bad("analyst: is the token's; leave it out")
    analyst = call.caller.analyst if call.caller.is_analyst else asked.analyst or EVERYONE
    found = call.ledger.quote(
        datasets, plan_of(call, asked.plan), cost=asked.cost, cost_delta=asked.cost_delta, analyst=analyst,
        blocks=asked.blocks,
    )  # fmt: skip
    return Answer({name: shown.quoted(row, call.caller) for name, row in found.items() if call.caller.sees(name)})


def reserve(call: Call) -> Answer:
    asked = call.given(shapes.Reserve)
    datasets = [call.seen(name) for name in asked.datasets]
    key = _key(call)
    known = call.ledger.reservation(key)
    plan = plan_of(call, asked.plan, known is not None)
    # one name as a text: the ledger knows requests all in text again, and decides those that repeat others together
    held = call.ledger.reserve(
        datasets[0] if len(datasets) == 1 else datasets, plan, key=key, cost=asked.cost, cost_delta=asked.cost_delta,
        analyst=call.caller.analyst, blocks=asked.blocks, lease=asked.lease, label=asked.label, reason=asked.reason,
        labels=asked.labels,
    )  # fmt: skip
    return Answer(shown.reservation(held, call.caller), 201 if held.outcome.made else 200)


def reserving(call: Call) -> Command | None:
    """A reservation as a command, if it is one that the caller has made before, but for its key."""
    asked = call.given(shapes.Reserve)
    if len(asked.datasets) != 1 or asked.plan is not None or asked.labels is not None or type(asked.blocks) is list:
        return None
    name = call.seen(asked.datasets[0])
    same = name, asked.cost, asked.cost_delta, asked.blocks, call.caller.analyst, asked.label, asked.lease, asked.reason
    known = repeated(call.ledger, *same)
    return None if known is None else known.under(names.name("key", _key(call)))


def starting(call: Call) -> Command | None:
    asked = call.given(shapes.Start)
    if asked.lease is not None:
        return None
    return _moving(call, STARTED, asked.reason, LEASE, run_hash(names.token(asked.run)))


def committing(call: Call) -> Command | None:
    return _moving(call, COMMITTED, call.given(shapes.Why).reason)


def _moving(call: Call, to: str, reason: str, lease: float | None = None, run: str = "") -> Command:
    note = Note(call.caller.actor, names.note("reason", reason))
    return Move(to, names.name("key", _key(call)), lease, run, note)


def done(call: Call, command: Command, outcome: Outcome) -> Answer:
    """What is answered to such a command."""
    (key,) = command.claims or command.moves
    held = Reservation.of(key, accepted(outcome))
    return Answer(shown.reservation_text(held, call.caller).encode(), 201 if command.claims and outcome.made else 200)


def start(call: Call) -> Answer:
    asked = call.given(shapes.Start)
    held = call.ledger.start(_key(call), asked.lease, token=asked.run, reason=asked.reason)
    return Answer(shown.reservation(held, call.caller))


def commit(call: Call) -> Answer:
    held = call.ledger.commit(_key(call), reason=call.given(shapes.Why).reason)
    return Answer(shown.reservation(held, call.caller))


def void(call: Call) -> Answer:
    held = call.ledger.void(_key(call), reason=call.given(shapes.Why).reason)
    return Answer(shown.reservation(held, call.caller))


def reservation(call: Call) -> Answer:
    key = _key(call)
    held = call.ledger.reservation(key)
    if held is None:
        raise Problem(404, "unknown-key", f"key {call.caller.own_key(key)!r} is not in this ledger")
    return Answer(shown.reservation(held, call.caller))


def attach_to_key(call: Call) -> Answer:
    asked = call.given(shapes.Evidence)
    said: dict[str, Any] = {"reason": asked.reason, "labels": asked.labels}
    return Answer(call.ledger.attach_audit(asked.audit, key=_key(call), date=asked.date, **said))
