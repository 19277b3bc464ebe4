"""Questions that take several requests: a history in pages, a run of `verify` that is waited for."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from privloss.client.answers import exact
from privloss.client.asking import Question
from privloss.client.problems import NotThere
from privloss.client.questions import dataset
from privloss.ledger.views import Wanted

Ask = Callable[[Question], Any]
Page = tuple[list[dict[str, Any]], int | None]
MOST = 500  # events in one answer
_FILTERS = ("analyst", "kind", "since", "until", "key", "state")
_FIRST, _LONGEST = 0.05, 2.0  # seconds between two looks at a run


def page(ask: Ask, name: str, after: int, limit: int, wanted: Wanted) -> Page:
    found = ask(_asked(name, wanted, after=after, limit=min(limit, MOST)))
    return list(map(exact, found["events"])), found["next"]


def history(ask: Ask, name: str, wanted: Wanted) -> list[dict[str, Any]]:
    """The last so many at once, if they fit into an answer; else page by page (a service looks at the last few thousand
    for one answer, so one that is short may lack older ones). Pages are of the dataset's own chain: that a backup was
    restored stands in the ledger's, and is asked for and put where it belongs."""
    most = MOST if wanted.last is None else min(wanted.last, MOST)
    newest = _last(ask, name, wanted, most)
    whole = wanted == Wanted(last=wanted.last) and len(newest) < MOST
    if whole or len(newest) == wanted.last or wanted.kind == "restored":
        return newest
    restored = [] if wanted.kind is not None else _last(ask, name, replace(wanted, kind="restored"), MOST)
    both = list(heapq.merge(_all(ask, name, wanted), restored, key=itemgetter("at")))
    return both if wanted.last is None else both[-wanted.last :]


def _last(ask: Ask, name: str, wanted: Wanted, most: int) -> list[dict[str, Any]]:
    return list(map(exact, ask(_asked(name, wanted, last=most))["events"]))


def _all(ask: Ask, name: str, wanted: Wanted) -> Iterator[dict[str, Any]]:
    after: int | None = 0
    while after is not None:
        found, after = page(ask, name, after, MOST, wanted)
        yield from found


def _asked(name: str, wanted: Wanted, **more: Any) -> Question:
    facts = {part: value for part, value in vars(wanted).items() if part in _FILTERS and value is not None} | more
    times = {part: f"{facts[part]:.6f}" for part in ("since", "until") if part in facts}
    return Question("GET", f"{dataset(name, 'history')}?{urlencode(facts | times)}")


def verified(ask: Ask, sleep: Callable[[float], None]) -> Any:
    """The result of a run that began after this was called: one that was running already may not have seen what was
    written before. Behind a balancer each process has runs of its own; whichever has one that is new enough will do."""
    enough: dict[str, int] = {}
    pause, begin = _FIRST, True
    while True:
        if begin:
            asked = ask(Question("POST", "/v1/verify"))
            enough.setdefault(asked["process"], asked["run"] + asked["joined"])
        found = _result(ask)
        last, least = found.get("last"), enough.get(found.get("process", ""))
        if last is not None and least is not None and last["run"] >= least:
            return last
        begin = least is None or not found["running"]
        sleep(pause)
        pause = min(2 * pause, _LONGEST)


def _result(ask: Ask) -> Any:
    try:
        return ask(Question("GET", "/v1/verify"))
    except NotThere:
        return {}
