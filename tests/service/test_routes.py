"""The table of routes: what it covers, and who may ask for what."""

from __future__ import annotations

import inspect

import pytest

from privloss.ledger.ledger import Ledger
from privloss.service.routes import ROUTES, Route
from tests.service.inside import GAUSSIAN, Service

# of the ledger, but not of a program elsewhere: where it is kept, how it is opened, code around code of one's own
HERE = {"create", "close", "now", "acting", "spend", "aspend", "spending"}
DATASETS, KEYS = "/v1/datasets", "/v1/reservations"
CALCULATOR = {f"POST /v1/{name}" for name in ("price", "answer", "calibrate", "compare", "certify")}
LOOKING = {
    f"GET {DATASETS}", f"GET {DATASETS}/{{dataset}}", f"GET {DATASETS}/{{dataset}}/history",
    f"GET {DATASETS}/{{dataset}}/history.csv", f"GET {DATASETS}/{{dataset}}/refusals",
    f"GET {DATASETS}/{{dataset}}/odometer", f"GET {KEYS}/{{key}}", "POST /v1/quote",
}  # fmt: skip
SPENDING = {f"PUT {KEYS}/{{key}}", f"POST {KEYS}/{{key}}/start", f"POST {KEYS}/{{key}}/commit"}
SETTING_UP = {
    f"PUT {DATASETS}/{{dataset}}", f"PUT {DATASETS}/{{dataset}}/budget",
    f"PUT {DATASETS}/{{dataset}}/quotas/{{analyst}}", f"PUT {DATASETS}/{{dataset}}/frozen",
}  # fmt: skip
AUDITING = {"POST /v1/verify", "GET /v1/verify", "GET /v1/export", "GET /v1/export.csv"}
ATTACHING = {f"POST {DATASETS}/{{dataset}}/audits", f"POST {KEYS}/{{key}}/audits"}
VOIDING = {f"POST {KEYS}/{{key}}/void"}
MAY = {
    "nobody": CALCULATOR,  # on this machine
    "alice": CALCULATOR | LOOKING | SPENDING | VOIDING,
    "steward": CALCULATOR | LOOKING | SETTING_UP | AUDITING | ATTACHING | VOIDING,
    "auditor": CALCULATOR | LOOKING | AUDITING | ATTACHING,
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def _name(route: Route) -> str:
    return f"{route.method} {route.template}"


def _at(route: Route) -> str:
    return route.template.format(dataset="census", key="k", analyst="ann")


def test_every_public_method_of_the_ledger_has_a_route() -> None:
    methods = {name for name, _ in inspect.getmembers(Ledger, callable) if not name.startswith("_")}
    covered = {name for route in ROUTES for name in route.covers}
    assert covered == methods - HERE
    assert methods >= HERE


@pytest.mark.parametrize(
    ("method", "shape", "query"),
    [
        ("add_dataset", ("adjacency", "unit", "parent", "blocks", "reason", "labels"), ()),
        ("set_budget", ("currency", "cap", "delta", "filter", "every", "reason", "labels"), ()),
        ("freeze", ("frozen", "reason", "labels"), ()),
        ("attach_audit", ("audit", "date", "reason", "labels"), ()),
        ("quote", ("datasets", "plan", "cost", "cost_delta", "analyst", "blocks"), ()),
        ("reserve", ("datasets", "plan", "cost", "cost_delta", "blocks", "lease", "label", "reason", "labels"), ()),
        ("start", ("lease", "reason"), ()),
        ("odometer", (), ("delta",)),
        ("page", (), ("after", "limit", "last", "analyst", "kind", "since", "until", "key", "state")),
    ],
)
def test_a_route_takes_what_the_method_takes(method: str, shape: tuple[str, ...], query: tuple[str, ...]) -> None:
    """Periods, blocks, parents and labels too; the analyst is the token's, names stand in the path."""
    route = next(each for each in ROUTES if method in each.covers)
    fields = set(route.shape.model_fields) if route.shape is not None else set()
    assert set(shape) <= fields
    assert set(query) <= set(route.query)
    if method != "page":
        taken = {name for name in inspect.signature(getattr(Ledger, method)).parameters if name in fields}
        assert taken == set(shape)


def test_the_table_of_rights_names_every_route() -> None:
    assert {_name(route) for route in ROUTES} == set.union(*MAY.values())


@pytest.mark.parametrize("who", list(MAY))
def test_roles(sqlite: Service, who: str) -> None:
    """Attack 4: whoever may not, is told so before anything else is looked at."""
    client = getattr(sqlite, who)
    before = sqlite.events()
    for route in ROUTES:
        if _name(route) in MAY[who]:
            continue
        answer = client.ask(route.method, _at(route), content=b"{not even JSON")
        assert answer.status_code == (401 if who == "nobody" else 403), _name(route)
        assert answer.json()["reason"] == ("token" if who == "nobody" else "role")
    assert sqlite.events() == before


@pytest.mark.parametrize("who", list(MAY))
def test_roles_that_may(sqlite: Service, who: str) -> None:
    for route in ROUTES:
        if _name(route) in MAY[who]:
            answer = getattr(sqlite, who).ask(route.method, _at(route), {} if route.shape is not None else None)
            assert answer.status_code not in (401, 403, 500), (_name(route), answer.text)


def test_other_methods(sqlite: Service) -> None:
    known = {(route.method, _at(route)) for route in ROUTES}
    for path in sorted({path for _, path in known}):
        for method in METHODS:
            if (method, path) not in known:
                answer = sqlite.steward.ask(method, path)
                assert answer.status_code == 405
                assert set(answer.headers["allow"].split(", ")) == {m for m, p in known if p == path}
                assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_calculator_without_a_token(sqlite: Service, serving: object, sqlite_place: str) -> None:
    body = {"plan": GAUSSIAN, "delta": 1e-6}
    assert sqlite.nobody.post("/v1/answer", body).status_code == 200
    for more in ({"calculator": "off"}, {"behind_proxy": ("127.0.0.1",)}):
        other = serving(sqlite_place, create=False, **more)  # type: ignore[operator]
        assert other.nobody.post("/v1/answer", body).status_code == 401
        assert other.alice.post("/v1/answer", body).status_code == 200


def test_an_audit_is_attached_by_those_who_may(sqlite: Service) -> None:
    sqlite.alice.reserve("k")
    path = "/v1/reservations/k/audits?analyst=alice"
    assert sqlite.steward.post(path, {"audit": {}}).json()["reason"] == "invalid"
    assert sqlite.alice.post("/v1/reservations/k/audits", {"audit": {}}).status_code == 403
