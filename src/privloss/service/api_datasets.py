"""Routes of datasets and groups: setting up, freezing, looking."""

from __future__ import annotations

import re
from typing import Any

from privloss.ledger.views import status as status_of
from privloss.service import shapes, sheets, shown
from privloss.service.calls import Answer, Call
from privloss.service.problems import bad

_TIME = re.compile(r"[0-9]{1,11}(\.[0-9]{1,6})?", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_LOOKED = 5000  # events that one answer looks at, wanted or not
_FILTERS = ("kind", "key", "state", "analyst")


def _status(call: Call, name: str) -> dict[str, Any]:
    return shown.status(call.ledger.status(name), call.caller)


def datasets(call: Call) -> Answer:
    return Answer({"datasets": [shown.status(each, call.caller) for each in _seen(call)]})


def _seen(call: Call) -> list[dict[str, Any]]:
    store = call.ledger.store
    with store.reading() as cursor:
        found = [store.account(cursor, name) for name in store.accounts(cursor) if call.caller.sees(name)]
    return [status_of(each) for each in found if each is not None]


def status(call: Call) -> Answer:
    return Answer(_status(call, call.dataset(call.path["dataset"])))


def add(call: Call) -> Answer:
    asked, name = call.given(shapes.NewAccount), call.path["dataset"]
    said: dict[str, Any] = {"parent": asked.parent, "reason": asked.reason, "labels": asked.labels}
    if asked.group:
        if asked.blocks is not None:
            raise bad("blocks: a group has none; its datasets may")
        call.ledger.add_group(name, adjacency=asked.adjacency, unit=asked.unit, **said)
    else:
        call.ledger.add_dataset(name, adjacency=asked.adjacency, unit=asked.unit, blocks=asked.blocks, **said)
    return Answer(_status(call, name))


def budget(call: Call) -> Answer:
    asked, name = call.given(shapes.Budget), call.dataset(call.path["dataset"])
    call.ledger.set_budget(
        name, currency=asked.currency, cap=asked.cap, delta=asked.delta, filter=asked.filter, every=asked.every,
        reason=asked.reason, labels=asked.labels,
    )  # fmt: skip
    return Answer(_status(call, name))


def quota(call: Call) -> Answer:
    asked, name = call.given(shapes.Quota), call.dataset(call.path["dataset"])
    call.ledger.set_budget(
        name, currency=asked.currency, cap=asked.cap, delta=asked.delta, filter=asked.filter,
        analyst=call.path["analyst"], reason=asked.reason, labels=asked.labels,
    )  # fmt: skip
    return Answer(_status(call, name))


def freeze(call: Call) -> Answer:
    asked, name = call.given(shapes.Frozen), call.dataset(call.path["dataset"])
    if not asked.reason.strip():
        raise bad("reason: must be given; it stands in the history")
    call.ledger.freeze(name, asked.frozen, reason=asked.reason, labels=asked.labels)
    return Answer(_status(call, name))


def attach(call: Call) -> Answer:
    asked, name = call.given(shapes.Evidence), call.dataset(call.path["dataset"])
    said: dict[str, Any] = {"reason": asked.reason, "labels": asked.labels}
    return Answer(call.ledger.attach_audit(asked.audit, dataset=name, date=asked.date, **said))


def odometer(call: Call) -> Answer:
    name, text = call.dataset(call.path["dataset"]), call.query.get("delta")
    if text is not None and not _NUMBER.fullmatch(text):
        raise bad("delta must be a number")
    found = call.ledger.odometer(name, None if text is None else float(text))
    return Answer(dict(vars(found)))


def _wanted(call: Call) -> dict[str, Any]:
    wanted: dict[str, Any] = {name: call.query[name] for name in _FILTERS if name in call.query}
    for name in ("since", "until"):
        text = call.query.get(name)
        if text is not None and not _TIME.fullmatch(text):
            raise bad(f"{name} must be seconds since the epoch")
        wanted |= {} if text is None else {name: float(text)}
    if call.caller.is_analyst:  # what was done in its own name
        if "analyst" in wanted:
            raise bad("analyst: is the token's; leave it out")
        wanted["analyst"] = call.caller.analyst
        wanted |= {"key": call.caller.stored_key(wanted["key"])} if "key" in wanted else {}
    return wanted


def _page(call: Call, wanted: dict[str, Any]) -> Answer:
    name = call.dataset(call.path["dataset"])
    after, limit = call.number("after", 0, 0, 2**53), call.number("limit", 100, 1, 500)
    if "last" in call.query:
        if "after" in call.query or "limit" in call.query:
            raise bad("last: leaves no room for after and limit")
        found = call.ledger.history(name, last=call.number("last", 100, 1, 500), looked=_LOOKED, **wanted)
        return Answer({"events": [shown.event(each, call.caller) for each in found], "next": None})
    found, more = call.ledger.page(name, after, limit, **wanted)
    return Answer({"events": [shown.event(each, call.caller) for each in found], "next": more})


def history(call: Call) -> Answer:
    return _page(call, _wanted(call))


def history_csv(call: Call) -> Answer:
    """The same as a sheet, as much as one answer may look at; where more follows, a header says after which."""
    name, wanted = call.dataset(call.path["dataset"]), _wanted(call)
    after, limit = call.number("after", 0, 0, 2**53), call.number("limit", _LOOKED, 1, _LOOKED)
    found, more = call.ledger.page(name, after, limit, **wanted)
    rows = ((name, shown.event(each, call.caller)) for each in found)
    return sheets.answer(rows, "history.csv", {} if more is None else {"X-Next-After": str(more)})


def refusals(call: Call) -> Answer:
    return _page(call, _wanted(call) | {"kind": "refused"})
