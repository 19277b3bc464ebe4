"""Routes by which analysts spend: they name neither an analyst nor an actor; both are the token's."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from privloss.ledger.described import Described
from privloss.ledger.filters import Filter
from privloss.ledger.state import EVERYONE
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
    names = [call.dataset(name) for name in asked.datasets]
    if call.caller.is_analyst and asked.analyst is not None:
        raise bad("analyst: is the token's; leave it out")
    analyst = call.caller.analyst if call.caller.is_analyst else asked.analyst or EVERYONE
    found = call.ledger.quote(
        names, plan_of(call, asked.plan), cost=asked.cost, cost_delta=asked.cost_delta, analyst=analyst,
        blocks=asked.blocks,
    )  # fmt: skip
    return Answer({name: shown.quoted(row, call.caller) for name, row in found.items() if call.caller.sees(name)})


def reserve(call: Call) -> Answer:
    asked = call.given(shapes.Reserve)
    names = [call.seen(name) for name in asked.datasets]
    key = _key(call)
    known = call.ledger.reservation(key)
    plan = plan_of(call, asked.plan, known is not None)
    # one name as a text: the ledger knows requests all in text again, and decides those that repeat others together
    held = call.ledger.reserve(
        names[0] if len(names) == 1 else names, plan, key=key, cost=asked.cost, cost_delta=asked.cost_delta,
        analyst=call.caller.analyst, blocks=asked.blocks, lease=asked.lease, label=asked.label, reason=asked.reason,
        labels=asked.labels,
    )  # fmt: skip
    return Answer(shown.reservation(held, call.caller), 201 if known is None else 200)


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
