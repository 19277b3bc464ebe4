"""The table of routes: method, path, action (see `access`), shape of the body, handler. Everything else is read from
it: dispatch, rights, the OpenAPI document, the tests.

Paths are matched segment by segment before percent-decoding, so a dataset may be called "a/b" or "..".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from privloss.ledger.commands import Command
from privloss.service import api_audit, api_calculator, api_datasets, api_spend, shapes
from privloss.service.calls import Answer, Call
from privloss.service.problems import Problem, bad

PREFIX = "/v1"
_MOST_SEGMENT = 900  # bytes of one segment, encoded


@dataclass(frozen=True)
class Route:
    """One method on one path; `covers` names the public methods of `Ledger` that it is the way to."""

    method: str
    path: str
    action: str
    handler: Callable[[Call], Answer]
    shape: type[shapes.Shape] | None = None
    query: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    media: str = "application/json"
    command: Callable[[Call], Command | None] | None = None  # that it is, if it may be decided together with others

    @functools.cached_property
    def template(self) -> str:
        return PREFIX + self.path

    @functools.cached_property
    def named(self) -> list[tuple[int, str]]:
        """The segments that are names, and what of."""
        return [(place, part[1:-1]) for place, part in enumerate(_parts(self.path)) if part[:1] == "{"]


_HISTORY = ("after", "limit", "last", "kind", "analyst", "key", "state", "since", "until")
_SHEET = tuple(name for name in _HISTORY if name != "last")
_D, _R = "/datasets/{dataset}", "/reservations/{key}"
ROUTES: tuple[Route, ...] = (
    Route("GET", "/datasets", "status", api_datasets.datasets, covers=("datasets",)),
    Route("GET", _D, "status", api_datasets.status, covers=("status",)),
    Route("PUT", _D, "set up", api_datasets.add, shapes.NewAccount, covers=("add_dataset", "add_group")),
    Route("PUT", f"{_D}/budget", "set up", api_datasets.budget, shapes.Budget, covers=("set_budget",)),
    Route("PUT", f"{_D}/quotas/{{analyst}}", "set up", api_datasets.quota, shapes.Quota, covers=("set_budget",)),
    Route("PUT", f"{_D}/frozen", "freeze", api_datasets.freeze, shapes.Frozen, covers=("freeze",)),
    Route("POST", f"{_D}/audits", "attach", api_datasets.attach, shapes.Evidence, covers=("attach_audit",)),
    Route("GET", f"{_D}/history", "history", api_datasets.history, query=_HISTORY, covers=("history", "page")),
    Route("GET", f"{_D}/history.csv", "history", api_datasets.history_csv, query=_SHEET, media="text/csv"),
    Route("GET", f"{_D}/refusals", "history", api_datasets.refusals, query=tuple(x for x in _HISTORY if x != "kind")),
    Route("GET", f"{_D}/odometer", "status", api_datasets.odometer, query=("delta",), covers=("odometer",)),
    Route("PUT", _R, "reserve", api_spend.reserve, shapes.Reserve, covers=("reserve",), command=api_spend.reserving),
    Route("GET", _R, "reservation", api_spend.reservation, query=("analyst",), covers=("reservation",)),
    Route("POST", f"{_R}/start", "start", api_spend.start, shapes.Start, covers=("start",), command=api_spend.starting),
    Route(
        "POST", f"{_R}/commit", "commit", api_spend.commit, shapes.Why, covers=("commit",), command=api_spend.committing
    ),
    Route("POST", f"{_R}/void", "void", api_spend.void, shapes.Why, query=("analyst",), covers=("void",)),
    Route("POST", f"{_R}/audits", "attach", api_spend.attach_to_key, shapes.Evidence, query=("analyst",)),
    Route("POST", "/quote", "quote", api_spend.quote, shapes.Quote, covers=("quote",)),
    Route("POST", "/price", "calculate", api_calculator.price, shapes.Price),
    Route("POST", "/answer", "calculate", api_calculator.answer, shapes.Question),
    Route("POST", "/calibrate", "calculate", api_calculator.calibrate, shapes.Calibrate),
    Route("POST", "/compare", "calculate", api_calculator.compare, shapes.Compare),
    Route("POST", "/certify", "calculate", api_calculator.certify, shapes.Question),
    Route("POST", "/verify", "verify", api_audit.verify_start, covers=("verify",)),
    Route("GET", "/verify", "verify", api_audit.verify_last),
    Route("GET", "/export", "export", api_audit.export, covers=("export",), media="application/x-ndjson"),
    Route("GET", "/export.csv", "export", api_audit.export_csv, media="text/csv"),
)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.strip("/").split("/"))


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._by_length: dict[int, dict[tuple[int, ...], dict[tuple[bytes, ...], dict[str, Route]]]] = {}
        for route in routes:
            parts = _parts(route.path)
            fixed = tuple(place for place, part in enumerate(parts) if part[:1] != "{")
            at = tuple(parts[place].encode() for place in fixed)
            of_its_kind = self._by_length.setdefault(len(parts), {}).setdefault(fixed, {})
            of_its_kind.setdefault(at, {})[route.method] = route

    def find(self, method: str, raw: bytes) -> tuple[Route, dict[str, str]]:
        """The route, and the names in its path."""
        segments = raw.split(b"?")[0].split(b"/")[2:]
        if len(raw) > _MOST_SEGMENT and any(len(each) > _MOST_SEGMENT for each in segments):
            raise _missing()
        there: set[str] = set()
        for fixed, kinds in self._by_length.get(len(segments), {}).items():
            methods = kinds.get(tuple([segments[place] for place in fixed]), {})
            route = methods.get(method)
            if route is not None:
                return route, {name: _text(segments[place]) for place, name in route.named}
            there.update(methods)
        if there:
            text = f"this path takes {', '.join(sorted(there))}"
            raise Problem(405, "method", text, {"Allow": ", ".join(sorted(there))})
        raise _missing()


def _text(segment: bytes) -> str:
    try:
        found = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise bad("the path is not UTF-8") from None
    if not found or not found.isprintable():
        raise bad("a name in the path is empty, or has characters that cannot be printed")
    return found


def _missing() -> Problem:
    return Problem(404, "unknown-path", "there is nothing at this path; /openapi.json lists what there is")
