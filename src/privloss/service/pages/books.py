"""The ledger as pages: all datasets, one dataset, its history. What is shown is what the API would answer the same
caller; here it is only put into words and pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from privloss.ledger.names import normal
from privloss.ledger.texts import COLUMNS, as_csv, event_row, rough_parts
from privloss.service import api_datasets
from privloss.service.access import allowed
from privloss.service.pages import burndown, words
from privloss.service.pages.parts import called, parts, tightest
from privloss.service.pages.pictures import amount
from privloss.service.pages.rendering import page
from privloss.service.pages.visits import Visit
from privloss.service.problems import bad

_PAGE, _PAGES = 50, 9  # events of a page, and pages until a date must narrow them
_MOST_ROWS = 200  # of a CSV file, in parts of 500
_MOST_WAITING = 200
KINDS = (
    "reserved", "started", "committed", "voided", "refused", "budget", "frozen", "restored", "account", "audited",
)  # fmt: skip
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_WAITING = (
    "SELECT a.key, a.analyst, a.state, a.lease, a.charges FROM open_lease o JOIN analysis a ON a.key = o.key "
    "WHERE o.dataset = ?{} ORDER BY o.lease LIMIT " + str(_MOST_WAITING)
)
_DONE = {
    "frozen": "The dataset is frozen. Nothing new can begin.",
    "open": "The dataset is open again.",
    "void": "The reservation was given back.",
}


def _row(status: Mapping[str, Any]) -> dict[str, Any]:
    some = "some" in str(status.get("filter", ""))
    every = parts(status)
    return {
        "status": status, "name": status["dataset"], "guarantee": words.guarantee(status), "parts": every,
        "part": tightest(every, some), "state": "frozen" if status["frozen"] else "open",
        "kind": "group" if status.get("group") else f"by {status['blocks']}" if status.get("blocks") else "dataset",
    }  # fmt: skip


def ledger(visit: Visit) -> Response:
    """All datasets and groups that the visitor may see."""
    found = api_datasets.datasets(visit).body["datasets"]
    return page(visit, "ledger.html", rows=[_row(each) for each in found], verified=verified(visit))


def verified(visit: Visit) -> dict[str, Any] | None:
    """What the last check of the whole ledger has found, in words; None for who may not ask."""
    if not allowed(visit.caller, "verify"):
        return None
    found = visit.services.verifying.last() or {"running": False, "last": None}
    last = found["last"]
    shown: dict[str, Any] = {"running": found["running"], "last": last, "ago": ""}
    if last is not None:
        at = datetime.fromisoformat(last["at"]).timestamp()
        shown["ago"] = words.ago(max(visit.services.clock() - at, 0.0))
    return shown


# -- one dataset -------------------------------------------------------------------------------------------------------


def dataset(visit: Visit) -> Response:
    name = visit.query.get("name", "")
    asked = replace(visit, path={"dataset": name}, query={})
    status = api_datasets.status(asked).body
    row = _row(status)
    period, blocks = status.get("period"), status.get("spent", {})
    capped = {} if period is None else {**status, "cap": period["cap"]}
    periods = {} if period is None else {who: parts(capped, each) for who, each in period["spent"].items()}
    return page(
        visit, "dataset.html", name=name, row=row, status=status, told=_DONE.get(visit.query.get("done", ""), ""),
        periods=periods, blocks={who: parts(status, each) for who, each in blocks.items()},
        people=_people(status), waiting=_waiting(visit, name), history=_history(visit, name), kinds=KINDS,
        refused=_refused(visit, name), over_time=burndown.drawn(visit, name, row["part"], status),
    )  # fmt: skip


def _people(status: Mapping[str, Any]) -> list[dict[str, str]]:
    """What analysts have, and have spent."""
    found = []
    for who, each in status.get("analysts", {}).items():
        part, row = max(each.items(), key=lambda pair: _gone(pair[1])) if each else ("", {})
        if row:
            quota, rest = row.get("cap"), row.get("remaining")
            found.append(
                {
                    "who": who, "part": called(part), "spent": words.spent(row["spent"]),
                    "cap": "no quota" if quota is None else words.left(quota),
                    "left": "" if rest is None else words.left(rest),
                }
            )  # fmt: skip
    return found


def _gone(row: Mapping[str, str]) -> float:
    cap = amount(row["cap"]) if "cap" in row else 0.0
    return amount(row["spent"]) / cap if cap > 0 else 0.0


def _waiting(visit: Visit, name: str) -> list[dict[str, Any]]:
    """Reservations that are neither committed nor given back; an analyst's own."""
    own, values = "", [name]
    if visit.caller.is_analyst:
        own, values = " AND a.analyst = ?", [name, normal(visit.caller.analyst)]
    now = visit.services.clock()
    return [
        {
            "key": visit.caller.own_key(key), "who": who, "state": state, "ends": words.until(lease - now),
            "at": words.moment(lease), "held": rough_parts(json.loads(charges).get(name, {}), True),
            "may_end": state == "RESERVED" and allowed(visit.caller, "void"),
        }
        for key, who, state, lease, charges in visit.services.ledger.store.look(_WAITING.format(own), values)
    ]  # fmt: skip


def _refused(visit: Visit, name: str) -> list[dict[str, str]]:
    asked = replace(visit, path={"dataset": name}, query={"last": "10"})
    found = api_datasets.refusals(asked).body["events"]
    return [event_row(event, name) for event in reversed(found)]


# -- history -----------------------------------------------------------------------------------------------------------


def _time(visit: Visit, name: str, days: int = 0) -> float | None:
    """The beginning of a day that a form names, in UTC; or of one so many days later."""
    text = visit.query.get(name, "")
    if not text:
        return None
    try:
        if not _DATE.fullmatch(text):
            raise ValueError
        found = datetime.fromisoformat(text).replace(tzinfo=UTC) + timedelta(days=days)
    except (ValueError, OverflowError):
        raise bad(f"{name}: must be a date, such as 2026-11-19") from None
    return max(found.timestamp(), 0.0)


def _wanted(visit: Visit) -> dict[str, str]:
    """The filters of the page, as the API has them."""
    found = {part: visit.query[part] for part in ("kind", "key") if visit.query.get(part)}
    if visit.query.get("analyst") and not visit.caller.is_analyst:
        found["analyst"] = visit.query["analyst"]
    since, until = _time(visit, "from"), _time(visit, "to", days=1)
    before = visit.query.get("before", "")
    if before:
        if not re.fullmatch(r"[0-9]{1,11}(\.[0-9]{1,6})?", before, re.ASCII):
            raise bad("before: must be a time")
        until = min(float(before), until) if until is not None else float(before)
    found |= {} if since is None else {"since": f"{since:.0f}"}
    return found | ({} if until is None else {"until": f"{until:.6f}"})


def _history(visit: Visit, name: str) -> dict[str, Any]:
    """The newest events first, a page at a time; a page that is far down is reached by its time."""
    asked = replace(visit, path={"dataset": name}, query=visit.query)
    at = asked.number("page", 0, 0, _PAGES - 1) if visit.query.get("page") else 0
    wanted = _wanted(visit)
    last = {"last": str(min(_PAGE * (at + 1) + 1, 500))}
    found = api_datasets.history(replace(asked, query={**wanted, **last})).body["events"][::-1]
    shown = found[_PAGE * at : _PAGE * (at + 1)]
    kept = {part: value for part, value in visit.query.items() if part not in ("page", "before", "done") and value}
    older = ""
    if len(found) > _PAGE * (at + 1):
        place = {"page": str(at + 1)} if at + 1 < _PAGES else {"before": f"{shown[-1]['at'] + 1e-6:.6f}"}
        before = {"before": visit.query["before"]} if visit.query.get("before") and "page" in place else {}
        older = urlencode({**kept, **before, **place})
    newest = urlencode(kept) if at or visit.query.get("before") else ""
    filtered = any(visit.query.get(part) for part in ("kind", "analyst", "key", "from", "to"))
    return {
        "rows": [event_row(event, name) for event in shown], "older": older, "newest": newest, "filtered": filtered,
        "csv": urlencode(kept), "asked": {part: visit.query.get(part, "") for part in (*_ASKED,)},
    }  # fmt: skip


_ASKED = ("kind", "analyst", "key", "from", "to")


def history_csv(visit: Visit) -> Response:
    """All that the filters let through, oldest first, as a spreadsheet reads it."""
    name = visit.query.get("name", "")
    rows = [event_row(event, name) for event in _all(visit, name, _wanted(visit))]
    headers = {"content-disposition": 'attachment; filename="history.csv"'}
    text = as_csv(rows, COLUMNS, "\r\n") + "\r\n"
    return Response(text, headers=headers, media_type="text/csv; charset=utf-8")


def _all(visit: Visit, name: str, wanted: dict[str, str]) -> Iterator[dict[str, Any]]:
    after: int | None = 0
    for _ in range(_MOST_ROWS):
        part = {**wanted, "after": str(after), "limit": "500"}
        found = api_datasets.history(replace(visit, path={"dataset": name}, query=part)).body
        yield from found["events"]
        after = found["next"]
        if after is None:
            return
    raise bad("the history is too long for one file: narrow it by dates, or use GET /v1/export")
