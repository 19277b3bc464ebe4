"""The OpenAPI document of the programs' routes, made from what the service itself goes by: the table of routes, the
table of rights, the shapes of bodies. What answers look like stands in `openapi_answers`."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from privloss import __version__
from privloss.service.access import MAY, NOBODY
from privloss.service.callers import note
from privloss.service.openapi_answers import ANSWERS, SCHEMAS
from privloss.service.problems import TYPE
from privloss.service.routes import ROUTES, Route

_ABOUT = (
    "A ledger of privacy budgets. Amounts are texts (\"1/11\", \"0.5\"), exact; `approx` beside them are doubles for "
    "display. A refusal is a problem document (RFC 9457) with a `reason` for programs and a sentence for people. What "
    "takes effect under a key takes effect once: the same request may be sent again after a lost answer."
)  # fmt: skip
_NAME = {"type": "string", "minLength": 1, "maxLength": 200}
_PATH: dict[str, Any] = {
    "dataset": {**_NAME, "description": "A dataset or group, percent-encoded."},
    "analyst": {**_NAME, "description": "Whose quota."},
    "key": {**_NAME, "description": "Of an analyst: [A-Za-z0-9][A-Za-z0-9._~:-]{0,119}. Others: analyst/key."},
}
_SECONDS = {"type": "string", "pattern": r"^[0-9]{1,11}(\.[0-9]{1,6})?$"}
_QUERY: dict[str, Any] = {
    "after": {"type": "integer", "minimum": 0, "maximum": 2**53, "description": "The page begins after this seq."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 500},
    "last": {"type": "integer", "minimum": 1, "maximum": 500, "description": "Only the last so many, in one page."},
    "kind": {**_NAME, "description": "Events of a kind: reserved, refused, ..."},
    "analyst": {**_NAME, "description": "Of this analyst; an analyst's own is known, and must be left out."},
    "key": {**_NAME, "description": "Events of this key."},
    "state": {**_NAME, "description": "Events of keys that stand there now: RESERVED, STARTED, COMMITTED, VOIDED."},
    "since": {**_SECONDS, "description": "Seconds since the epoch."},
    "until": {**_SECONDS, "description": "Before this time."},
    "delta": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
}
_ALWAYS = {
    400: "Not understood.", 401: "No token, or one that is not known, was revoked or has expired.",
    403: "Not for this role.", 421: "Not a name of this service (--host-name).",
    429: "Too often; Retry-After says when.", 431: "Headers too large.", 500: "Failed.",
    502: "Not known whether it took effect; the same request again gives the answer.",
    503: "Busy; Retry-After says when.",
}  # fmt: skip
_WITH_BODY = {413: "The body is too large.", 415: "The body is not application/json."}
_WITH_NAMES = {404: "Not there, or not for this token to see."}
_COMMANDS = {409: "Refused by the ledger; nothing was charged."}
_PRICED = {422: "No bound is known for this plan, or it takes too much time or memory to find."}
_PROBLEMS = dict(sorted({**_ALWAYS, **_WITH_BODY, **_WITH_NAMES, **_COMMANDS, **_PRICED}.items()))
_PRICES = ("/quote", "/price", "/answer", "/calibrate", "/compare", "/certify", "/reservations/{key}")


async def openapi(request: Request) -> Response:
    """Anybody may read how to ask."""
    note(request.scope, route="/openapi.json")
    return JSONResponse(document())


@cache
def document() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    bodies: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, bodies)
    for path, name in (("/health/live", "Live"), ("/health/ready", "Ready")):
        paths[path] = {"get": _health(path, name)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "privloss", "version": __version__, "description": _ABOUT, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": {**SCHEMAS, **dict(sorted(bodies.items()))},
            "responses": {f"Problem{status}": _problem(text) for status, text in _PROBLEMS.items()},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "pl_...: privloss token create"}
            },
        },
    }


def _operation(route: Route, bodies: dict[str, Any]) -> dict[str, Any]:
    roles = sorted(MAY[route.action] - {NOBODY})
    who = f"For the roles {', '.join(roles)}."
    open_to_all = NOBODY in MAY[route.action]
    if open_to_all:
        who += " Without a token too, where the service is set to it."
    found: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub('[^a-z]+', '_', route.path)}".rstrip("_"),
        "summary": route.action.capitalize(),
        "description": who,
        "x-roles": roles,
        "security": [*([{}] if open_to_all else []), {"token": []}],
        "parameters": [*_path(route), *_query(route)],
        "responses": _responses(route),
    }
    if route.shape is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _body(route, bodies)}}}
    return found


def _path(route: Route) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", route.path)
    return [{"name": name, "in": "path", "required": True, "schema": _PATH[name]} for name in names]


def _query(route: Route) -> list[dict[str, Any]]:
    return [{"name": name, "in": "query", "required": False, "schema": _QUERY[name]} for name in route.query]


def _body(route: Route, bodies: dict[str, Any]) -> dict[str, str]:
    """A reference to the shape; shapes within it stand beside it."""
    assert route.shape is not None
    made = route.shape.model_json_schema(ref_template="#/components/schemas/{model}")
    bodies |= made.pop("$defs", {})
    bodies[route.shape.__name__] = made
    return {"$ref": f"#/components/schemas/{route.shape.__name__}"}


def _responses(route: Route) -> dict[str, Any]:
    problems = {*_ALWAYS, *_WITH_BODY}
    problems |= _WITH_NAMES.keys() if "{" in route.path or route.path in ("/quote", "/verify") else set()
    problems |= _COMMANDS.keys() if route.method in ("PUT", "POST") else set()
    problems |= _PRICED.keys() if route.path in _PRICES else set()
    good = {str(status): _good(text, schema, route.media) for status, text, schema in ANSWERS[route.method, route.path]}
    return {**good, **_refused(*sorted(problems))}


def _refused(*statuses: int) -> dict[str, Any]:
    return {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in statuses}


def _good(text: str, schema: str, media: str) -> dict[str, Any]:
    return {"description": text, "content": {media: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}


def _problem(text: str) -> dict[str, Any]:
    return {"description": text, "content": {TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def _health(path: str, name: str) -> dict[str, Any]:
    answers = {"200": _good("Yes.", name, "application/json")}
    if name == "Ready":
        answers["503"] = _good("Not yet, or not any more.", name, "application/json")
    found = {"operationId": path.strip("/").replace("/", "_"), "summary": name, "security": [{}], "responses": answers}
    return {**found, "responses": {**answers, **_refused(421, 431)}}
