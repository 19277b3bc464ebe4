"""What a role may see on pages is what the table of `access` says, and what the API would answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from privloss.service.access import MAY
from privloss.service.pages.site import PAGES, PREFIX, Page
from tests.service.inside import Service
from tests.service.pages.person import GAUSSIAN, OWN, SGD, Person

ROLES = ("alice", "steward", "auditor")


@pytest.mark.parametrize("page", [each for each in PAGES if each.action], ids=lambda each: f"{each.method} {each.path}")
def test_the_table_decides(request: pytest.FixtureRequest, sqlite: Service, page: Page) -> None:
    for name in ROLES:
        person: Person = request.getfixturevalue(name)
        role = "analyst" if name == "alice" else name
        path = f"{PREFIX}{page.path}"
        found = person.get(f"{path}?name=census") if page.method == "GET" else person.post(path, {"name": "census"})
        assert (found.status_code == 403) == (role not in MAY[page.action]), role
        if found.status_code == 403:
            assert "may not" in found.text


def test_a_refusal_does_not_name_a_group_that_is_not_ones_own(sqlite: Service) -> None:
    said = {"adjacency": "add-remove", "unit": "person"}
    sqlite.steward.put("/v1/datasets/topsecret", {**said, "group": True})
    sqlite.steward.put("/v1/datasets/north", {**said, "parent": "topsecret"})
    for name, cap in (("topsecret", "1/1000000"), ("north", "1")):
        sqlite.steward.put(f"/v1/datasets/{name}/budget", {"currency": "zcdp", "cap": cap})
    carol = Person.of(sqlite, sqlite.analyst("carol", "north"))
    asked = {**GAUSSIAN, "dataset": "north", "key": "k", "hours": "1"}
    found = [carol.post("/ui/reserve", asked), carol.post("/ui/calculator", {**asked, "part": "fit"})]
    assert found[0].status_code == 409
    assert "a group above the dataset would be exceeded" in found[0].text
    found += [carol.get(f"/ui/{path}?name=north") for path in ("dataset", "ledger")]
    assert not [each.text for each in found if "topsecret" in each.text]


def test_without_a_token_there_is_the_calculator_and_nothing_else(visitor: Person) -> None:
    for page in PAGES:
        if page.action and page.method == "GET":
            found = visitor.get(f"{PREFIX}{page.path}?name=census")
            assert found.status_code == (200 if page.action == "calculate" else 303), page.path
        elif page.action not in ("", "calculate"):
            assert visitor.post(PREFIX + page.path, {"name": "census"}).status_code == 401
    assert "Would it fit" not in visitor.get("/ui/calculator").text
    assert visitor.post("/ui/calculator", {**SGD, "dataset": "census", "part": "fit"}).text.strip() == ""


@pytest.mark.parametrize("settings", [{"calculator": "off"}, {"calculator": "loopback", "host": "0.0.0.0"}])
def test_where_the_calculator_needs_a_token_it_does(
    serving: Callable[..., Service], sqlite_place: str, settings: dict[str, str]
) -> None:
    service = serving(sqlite_place, **settings)
    visitor, alice = Person(service), Person.of(service, service.alice)
    assert visitor.get("/ui/calculator").headers["location"].startswith("/ui/login")
    assert visitor.get("/ui/").headers["location"] == "/ui/login"
    found = visitor.post("/ui/calculator", {**SGD, "part": "answer"})
    assert (found.status_code, "5.806936" in found.text, "Log in" in found.text) == (401, False, True)
    assert "5.806936" in alice.post("/ui/calculator", {**SGD, "part": "answer"}).text


def test_a_dataset_of_others_is_as_if_it_were_not_there(sqlite: Service, bob: Person) -> None:
    sqlite.alice.reserve("secret-study", "0.1", ("taxes",))
    assert "taxes" not in bob.get("/ui/ledger").text
    assert "taxes" not in bob.get("/ui/calculator").text
    for path in ("/ui/dataset", "/ui/history.csv"):
        hidden, missing = bob.get(f"{path}?name=taxes"), bob.get(f"{path}?name=other")
        assert (hidden.status_code, missing.status_code) == (404, 404)
        assert hidden.text.replace("taxes", "other") == missing.text
    for part in ("fit",):
        found = bob.post("/ui/calculator", {**SGD, "dataset": "taxes", "part": part})
        assert (found.status_code, "0.1" in found.text.replace("11.7", "")) == (404, False)
    bob.get("/ui/calculator")
    found = bob.post("/ui/reserve", {**SGD, "dataset": "taxes", "key": "k", "hours": "1"})
    assert found.status_code == 404
    assert len(sqlite.ledger.history("taxes", kind="reserved")) == 1


def test_an_analyst_sees_nothing_of_others(sqlite: Service, alice: Person, bob: Person) -> None:
    sqlite.ledger.set_budget("census", currency="pure", cap="0.6", analyst="alice")
    sqlite.ledger.set_budget("census", currency="pure", cap="0.3", analyst="bob")
    sqlite.alice.reserve("mean-age", "1/7")
    sqlite.alice.reserve("too-much", "5")
    sqlite.bob.reserve("a-count", "1/9")
    mine, yours = alice.get("/ui/dataset?name=census").text, bob.get("/ui/dataset?name=census").text
    assert "mean-age" in mine
    assert "too-much" in mine
    assert "alice" in mine
    assert "a-count" in yours
    for word in ("mean-age", "too-much", "alice", "0.6"):
        assert word not in yours, word
    assert "alice/" not in mine  # keys as their owner knows them
    for person in (alice, bob):
        assert "Left over time" not in person.get("/ui/dataset?name=census").text
    rows = bob.get("/ui/history.csv?name=census&analyst=alice&key=mean-age").text.splitlines()
    assert len(rows) == 1  # the header: filters narrow what is one's own


def test_stewards_and_auditors_see_all(sqlite: Service, steward: Person, auditor: Person) -> None:
    sqlite.alice.reserve("mean-age", "1/7")
    for person in (steward, auditor):
        found = person.get("/ui/dataset?name=census").text
        assert "alice/mean-age" in found
        assert "Left over time" in found
    assert "/ui/freeze?" in steward.get("/ui/dataset?name=census").text
    assert "/ui/freeze?" not in auditor.get("/ui/dataset?name=census").text


def test_how_often_one_may_ask(serving: Callable[..., Service], sqlite_place: str) -> None:
    service = serving(sqlite_place, rate=2)
    person = Person.of(service, service.alice)
    found = [person.get("/ui/ledger").status_code for _ in range(6)]
    assert found == [200, 200, 200, 200, 429, 429]
    assert "ask again" in person.get("/ui/ledger").text
    assert service.alice.get("/v1/datasets").status_code == 429  # the same token, the same bucket
    service.clock.now += 1
    assert person.get("/ui/ledger").status_code == 200


def test_every_page_has_the_headers_of_every_answer(sqlite: Service, steward: Person) -> None:
    for page in PAGES:
        if page.method == "GET":
            headers = steward.get(f"{PREFIX}{page.path}?name=census").headers
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in headers["content-security-policy"]
            assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")
            assert "access-control-allow-origin" not in headers
    assert sqlite.http.request("OPTIONS", "/ui/ledger", headers=OWN).status_code == 405
