"""What stewards and auditors do on pages: freeze and unfreeze, with the consequences said before; verify."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from privloss.service import api_audit, api_datasets, shapes
from privloss.service.pages.rendering import page
from privloss.service.pages.reserving import shaped
from privloss.service.pages.visits import Visit

_OPEN = (
    "SELECT a.state, count(*) FROM open_lease o JOIN analysis a ON a.key = o.key WHERE o.dataset = ? GROUP BY a.state"
)


def show_freeze(visit: Visit) -> Response:
    return _asked(visit, visit.query.get("name", ""))


def _asked(visit: Visit, name: str, problem: str = "") -> Response:
    """What freezing, or unfreezing, would do; a reason is asked for."""
    status = api_datasets.status(replace(visit, path={"dataset": name}, query={})).body
    open_now: dict[str, int] = dict(visit.services.ledger.store.look(_OPEN, [name]))
    return page(
        visit, "freeze.html", 422 if problem else 200, name=name, status=status, problem=problem,
        held=open_now.get("RESERVED", 0), started=open_now.get("STARTED", 0), restored=_restored(visit, name),
        reason=visit.one("reason"),
    )  # fmt: skip


def _restored(visit: Visit, name: str) -> bool:
    """Whether it is frozen because the ledger was restored from a backup."""
    last = visit.ledger.history(name, last=1, kind="restored")
    frozen = visit.ledger.history(name, last=1, kind="frozen")
    return bool(last) and (not frozen or last[0]["at"] >= frozen[0]["at"])


def freeze(visit: Visit) -> Response:
    name, reason = visit.one("name"), visit.one("reason").strip()
    wanted = visit.one("frozen") == "yes"
    if not reason:
        return _asked(visit, name, "Say why. The reason stands in the history, for those who ask later.")
    body: Any = shaped(shapes.Frozen, frozen=wanted, reason=reason)
    api_datasets.freeze(replace(visit, path={"dataset": name}, query={}, body=body))
    return RedirectResponse(f"/ui/dataset?name={quote(name, safe='')}&done={'frozen' if wanted else 'open'}", 303)


def verify(visit: Visit) -> Response:
    """Begin; the page of the ledger says what was found."""
    api_audit.verify_start(visit)
    return RedirectResponse("/ui/ledger#verified", 303)
