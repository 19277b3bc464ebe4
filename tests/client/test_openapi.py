"""The OpenAPI document says what the service does: compared with its tables, and asked by schemathesis."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
import schemathesis

from privloss.ledger.ledger import Ledger
from privloss.service.access import MAY, NOBODY
from privloss.service.openapi import document
from privloss.service.openapi_answers import REASONS
from privloss.service.routes import ROUTES
from tests.client.contract import FEW, Contract, likely
from tests.client.real import Real
from tests.client.test_problems import PAGES, TOLD

DOCUMENT = document()
METHODS = {"get", "put", "post", "delete", "patch"}


def _operations() -> dict[tuple[str, str], Any]:
    return {
        (method.upper(), path): each
        for path, item in DOCUMENT["paths"].items()
        for method, each in item.items()
        if method in METHODS
    }


def test_every_route_is_there_and_nothing_else() -> None:
    routes = {(route.method, route.template) for route in ROUTES}
    assert set(_operations()) - routes == {("GET", "/health/live"), ("GET", "/health/ready")}
    assert routes <= set(_operations())
    names = [each["operationId"] for each in _operations().values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_an_operation_is_its_route(route: Any) -> None:
    found = _operations()[route.method, route.template]
    named = {(each["in"], each["name"]) for each in found["parameters"]}
    path = {("path", name) for name in re.findall(r"{(\w+)}", route.path)}
    assert named == path | {("query", name) for name in route.query}
    assert {each["name"] for each in found["parameters"] if each["required"]} == {name for _, name in path}
    assert set(found["x-roles"]) == MAY[route.action] - {NOBODY}
    assert ({} in found["security"]) == (NOBODY in MAY[route.action])
    assert {"token": []} in found["security"]
    assert {"401", "403", "429", "500", "503"} <= set(found["responses"])
    assert any(status.startswith("2") for status in found["responses"])
    body = found.get("requestBody")
    assert (body is None) == (route.shape is None)
    if body is not None:
        name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        whole = DOCUMENT["components"]["schemas"][name]
        assert set(whole["properties"]) == set(route.shape.model_fields)
        assert whole["additionalProperties"] is False


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name == "$ref":
                yield each
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def test_references_lead_somewhere_and_schemas_are_schemas() -> None:
    for reference in set(_references(DOCUMENT)):
        place: Any = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert DOCUMENT["openapi"] == "3.1.0"
    scheme = DOCUMENT["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_every_reason_of_the_code_is_declared() -> None:
    assert {reason for _, reason in TOLD} - PAGES <= set(REASONS) | {"unknown-key", "unknown-dataset"}


def test_routes_cover_every_public_method_of_the_ledger() -> None:
    """But those that are made of others, and those that only open or close it."""
    names = {name for name, _ in inspect.getmembers(Ledger, inspect.isfunction) if not name.startswith("_")}
    covered = {name for route in ROUTES for name in route.covers}
    assert names - covered == {"spend", "aspend", "spending", "acting", "close", "now"}


@pytest.fixture
def asked(sqlite_place: str, real: Callable[..., Real]) -> Contract:
    return Contract(real(sqlite_place))


def test_the_document_is_served_and_nothing_that_loads_from_elsewhere(asked: Contract) -> None:
    import httpx

    with httpx.Client(base_url=asked.service.place) as client:
        found = client.get("/openapi.json")
        assert (found.status_code, found.json()) == (200, DOCUMENT)
        assert "http" not in found.text.replace("http\\", "").replace('"type":"http"', "")
        for path in ("/docs", "/redoc", "/docs/oauth2-redirect", "/v1/openapi.json"):
            assert client.get(path).status_code == 404, path


@pytest.mark.parametrize("role", ["analyst", "steward", "auditor", "nobody"])
def test_answers_are_as_the_document_says(asked: Contract, role: str) -> None:
    """A few made-up requests to every route, right ones and wrong ones: no failure of the service, no status, header or
    body that is not declared."""
    for whole in (DOCUMENT, likely()):
        operations = list(schemathesis.openapi.from_dict(whole).get_all_operations())
        for operation in operations:
            asked.examine(operation.ok(), role, FEW)
        assert len(operations) == len(_operations())
    assert asked.asked >= 2 * len(_operations())
    expected = {"analyst": {200, 201, 400, 403, 404}, "nobody": {200, 400, 401}}
    assert expected.get(role, {200, 400, 403, 404}) <= asked.statuses.keys()
