"""Forms are taken from this service's own pages, and only with the token of the session (attacks 19, 22)."""

from __future__ import annotations

import pytest

from privloss.service.pages.site import PAGES, PREFIX
from tests.service.inside import Service
from tests.service.pages.person import GAUSSIAN, OWN, Person

POSTS = [page.path for page in PAGES if page.method == "POST"]
FIELDS = {
    **GAUSSIAN, "name": "taxes", "frozen": "yes", "reason": "a reason", "key": "k1", "dataset": "taxes",
    "token": "pl_x", "hours": "1",
}  # fmt: skip


def everything(service: Service) -> tuple[list[str], int]:
    """What a form could change: the history, and who is logged in."""
    return service.events(), len(service.ledger.store.look("SELECT hash FROM session"))


@pytest.mark.parametrize("path", POSTS)
def test_no_form_of_another_site_is_taken(sqlite: Service, path: str, steward: Person, alice: Person) -> None:
    for person in (steward, alice):
        person.get("/ui/ledger")
        before = everything(sqlite)
        foreign = [
            {}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "none"},
            {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://localhost:81"},
            {"origin": "http://localhost", "sec-fetch-site": "cross-site"},
        ]  # fmt: skip
        for headers in foreign:
            found = person.post(PREFIX + path, FIELDS, headers)
            assert found.status_code == 403, headers
            assert "set-cookie" not in found.headers
        assert everything(sqlite) == before


@pytest.mark.parametrize("path", POSTS)
def test_no_form_without_the_sessions_own_token(sqlite: Service, path: str, steward: Person, alice: Person) -> None:
    steward.get("/ui/ledger")
    alice.get("/ui/ledger")
    assert steward.form_token != alice.form_token
    for person, other in ((steward, alice), (alice, steward)):
        before = everything(sqlite)
        for wrong in ("", other.form_token, person.form_token[:-1], person.cookie):
            assert person.post(PREFIX + path, {**FIELDS, "form_token": wrong}).status_code == 403
        assert everything(sqlite) == before


def test_a_browser_that_does_not_say_the_site_names_the_origin(sqlite: Service, steward: Person) -> None:
    fields = {"name": "taxes", "frozen": "yes", "reason": "a reason"}
    assert steward.post("/ui/freeze", fields, {"origin": "http://localhost"}).status_code == 303
    assert sqlite.ledger.status("taxes")["frozen"]
    assert steward.post("/ui/freeze", {**fields, "frozen": "no"}, OWN).status_code == 303
    assert not sqlite.ledger.status("taxes")["frozen"]


def test_what_is_not_a_form_is_refused(sqlite: Service, alice: Person) -> None:
    alice.get("/ui/ledger")
    for kind, body in (
        ("application/json", b"{}"),
        ("text/plain", b"a=b"),
        ("multipart/form-data", b"no boundary"),
        ("application/x-www-form-urlencoded", b"a=%ff"),
        ("application/x-www-form-urlencoded", "a=é".encode()),
        ("application/x-www-form-urlencoded", b"a=%00"),
        ("application/x-www-form-urlencoded", b"&".join([b"a=b"] * 3000)),
    ):
        headers = {**OWN, "content-type": kind, "cookie": f"__Host-privloss={alice.cookie}"}
        found = sqlite.http.request("POST", "/ui/calculator", content=body, headers=headers)
        assert found.status_code in (400, 415), (kind, body[:20])
    large = {**OWN, "content-type": "application/x-www-form-urlencoded"}
    assert sqlite.http.request("POST", "/ui/calculator", content=b"a" * (2**20 + 1), headers=large).status_code == 413


def test_pages_are_asked_for_in_one_way(sqlite: Service, steward: Person) -> None:
    for page in PAGES:
        both = {each.method for each in PAGES if each.path == page.path}
        if len(both) == 1:
            other = "GET" if page.method == "POST" else "POST"
            found = steward.get(PREFIX + page.path) if other == "GET" else steward.post(PREFIX + page.path, {})
            assert (found.status_code, found.headers["allow"]) == (405, page.method)
    for path in ("/ui", "/ui/nothing", "/ui//ledger", "/ui/static/../app.py", "/ui/static/page.css", "/ui/ledger/"):
        assert steward.get(path).status_code == 404, path
