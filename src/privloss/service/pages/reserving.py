"""Reserving from the calculator, and giving a reservation back: the API's own handlers, asked by a form."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from privloss.service import access, api_datasets, api_spend, shapes
from privloss.service.pages.asked import Asked
from privloss.service.pages.fields import Wrong, number
from privloss.service.pages.rendering import page
from privloss.service.pages.visits import Visit
from privloss.service.problems import Problem, bad

_Shape = TypeVar("_Shape", bound=shapes.Shape)
_HOUR = 3600.0


def shaped(shape: type[_Shape], **values: Any) -> _Shape:
    """What the API would have read."""
    try:
        return shape(**values)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
        raise bad(f"{first['loc'][0]}: {first['msg']}") from None


def datasets(visit: Visit) -> list[dict[str, Any]]:
    """The datasets that a plan could be charged to."""
    if not access.allowed(visit.caller, "quote"):
        return []
    found = api_datasets.datasets(visit).body["datasets"]
    return [each for each in found if each["currency"] is not None and not each.get("group")]


def fresh_key(visit: Visit) -> str:
    """A name that nobody has used."""
    today = datetime.fromtimestamp(visit.services.clock(), UTC).strftime("%Y-%m-%d")
    return f"plan-{today}-{secrets.token_hex(3)}"


def reserve(visit: Visit) -> Response:
    """Hold what the plan costs."""
    asked = Asked.of(visit)
    try:
        plan, hours = asked.plan(), number("hours", visit.one("hours", "1"))
    except Wrong as problem:
        raise Problem(422, "form", str(problem)) from None
    key = visit.one("key").strip()
    if not visit.all("dataset"):
        raise bad("dataset: choose at least one that the plan reads")
    body = shaped(
        shapes.Reserve, datasets=visit.all("dataset"), plan=plan, lease=hours * _HOUR,
        reason=visit.one("reason").strip(),
    )  # fmt: skip
    held = api_spend.reserve(replace(visit, path={"key": key}, body=body)).body
    return page(visit, "reserved.html", held=held, hours=hours, datasets=visit.all("dataset"))


def give_back(visit: Visit) -> Response:
    """Void a reservation that was not started."""
    key, name = visit.one("key"), visit.one("name")
    body = shaped(shapes.Why, reason=visit.one("reason").strip())
    api_spend.void(replace(visit, path={"key": key}, query={}, body=body))
    return RedirectResponse(f"/ui/dataset?name={quote(name, safe='')}&done=void", 303)
