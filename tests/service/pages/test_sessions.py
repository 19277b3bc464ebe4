"""Sessions: what the browser keeps, how long it holds, and what ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.service.inside import DAY, Service
from tests.service.pages.person import OWN, Person

HOME = "/ui/ledger"
MINUTE = 60.0


def inside(person: Person) -> bool:
    found = person.get(HOME)
    assert found.status_code in (200, 303)
    return found.status_code == 200


def test_the_cookie_can_be_read_by_this_host_over_tls_only_and_by_no_script(sqlite: Service) -> None:
    found = Person(sqlite).login(sqlite.alice.token or "")
    name, *rest = found.headers["set-cookie"].split("; ")
    assert name.startswith("__Host-privloss=")
    assert len(name.partition("=")[2]) == 43  # 256 bits
    assert sorted(rest) == ["HttpOnly", "Path=/", "SameSite=Strict", "Secure"]  # no Domain, no Max-Age


def test_the_database_holds_no_session_that_could_be_used(service: Service) -> None:
    person = Person.of(service, service.alice)
    rows = service.ledger.store.look("SELECT hash, token, form, created, seen FROM session")
    assert len(rows) == 1
    assert person.cookie not in str(rows)
    assert inside(person)
    assert not inside(Person(service, rows[0][0]))


def test_it_ends_after_half_an_hour_without_a_request(service: Service) -> None:
    person = Person.of(service, service.alice)
    for _ in range(3):
        service.clock.now += 29.9 * MINUTE
        assert inside(person)
    service.clock.now += 30 * MINUTE
    assert not inside(person)


def test_it_ends_after_eight_hours_in_any_case(sqlite: Service) -> None:
    person = Person.of(sqlite, sqlite.alice)
    for _ in range(31):
        sqlite.clock.now += 15 * MINUTE
        assert inside(person)
    sqlite.clock.now += 15 * MINUTE
    assert not inside(person)


def test_it_ends_with_its_token(service: Service) -> None:
    revoked, expired = Person.of(service, service.alice), Person.of(service, service.token("steward", days=0.01))
    assert inside(revoked)
    service.tokens.revoke((service.alice.token or "").split("_")[1])
    assert not inside(revoked)
    assert inside(expired)
    service.clock.now += 0.01 * DAY
    assert not inside(expired)


def test_every_host_of_a_ledger_knows_it(
    serving: Callable[..., Service], request: pytest.FixtureRequest, place: str
) -> None:
    first = serving(place)
    second = serving(place, create=False)
    person = Person.of(first, first.alice)
    person.service = second
    assert inside(person)
    assert person.post("/ui/logout", {}).status_code == 303
    person.service = first
    assert not inside(person)


def test_logout_ends_this_session_and_empties_the_browser(sqlite: Service) -> None:
    person, elsewhere = Person.of(sqlite, sqlite.alice), Person.of(sqlite, sqlite.alice)
    old = person.cookie
    found = person.post("/ui/logout", {})
    assert (found.status_code, found.headers["location"]) == (303, "/ui/login")
    assert found.headers["clear-site-data"] == '"cookies", "storage"'
    assert "Max-Age=0" in found.headers["set-cookie"]
    assert not inside(Person(sqlite, old))
    assert inside(elsewhere)


def test_nobody_can_prepare_a_session_for_somebody_else(sqlite: Service) -> None:
    """Attack 22: a login always draws a new id, and the one that was there is dead."""
    attacker = Person.of(sqlite, sqlite.bob)
    planted = attacker.cookie
    attacker.get(HOME)
    victim = Person(sqlite, planted)
    answer = victim.service.http.request(
        "POST", "/ui/login", data={"token": sqlite.alice.token, "form_token": attacker.form_token},
        headers={**OWN, "cookie": f"__Host-privloss={planted}"},
    )  # fmt: skip
    assert answer.status_code == 303
    assert planted not in answer.headers["set-cookie"]
    assert not inside(Person(sqlite, planted))
    invented = Person(sqlite, "A" * 43)
    assert invented.login(sqlite.alice.token or "").status_code == 303
    assert invented.cookie != "A" * 43


def test_pages_take_the_cookie_and_the_api_the_header(sqlite: Service) -> None:
    person = Person.of(sqlite, sqlite.alice)
    cookie = {"cookie": f"__Host-privloss={person.cookie}"}
    assert sqlite.http.request("GET", "/v1/datasets", headers=cookie).status_code == 401
    assert sqlite.alice.get(HOME).status_code == 303  # to the login
    twice = {"cookie": f"__Host-privloss={person.cookie}; __Host-privloss={person.cookie}"}
    assert sqlite.http.request("GET", HOME, headers=twice).status_code == 303


def test_a_wrong_token_is_told_apart_from_nothing_and_counted(sqlite: Service) -> None:
    person = Person(sqlite)
    known = sqlite.alice.token or ""
    for wrong in ("", "pl_", known[:-1], known.swapcase(), "x" * 10_000):
        found = person.login(wrong)
        assert (found.status_code, "set-cookie" in found.headers) == (401, False)
        assert "This token is not known, was revoked or has expired." in found.text
        assert len(wrong) < 5 or wrong not in found.text
    for _ in range(5):
        assert person.login("pl_x").status_code == 401
    assert person.login("pl_x").status_code == 429
    assert person.login(known).status_code == 303  # addresses are shared: who knows a token is let in


@pytest.mark.parametrize(
    ("asked", "goes"),
    [
        ("/ui/dataset?name=census", "/ui/dataset?name=census"),
        ("https://evil.example/ui/ledger", HOME),
        ("//evil.example/ui/", HOME),
        ("/ui/\\evil.example", HOME),
        ("/v1/datasets", HOME),
        ("/ui/login?next=/ui/login", HOME),
        ("/ui/\r\nset-cookie: a=b", HOME),
    ],
)
def test_a_login_leads_to_pages_of_this_service_only(sqlite: Service, asked: str, goes: str) -> None:
    fields = {"token": sqlite.alice.token, "next": asked}
    found = sqlite.http.request("POST", "/ui/login", data=fields, headers=OWN)
    assert (found.status_code, found.headers["location"]) == (303, goes)


def test_who_is_not_logged_in_is_led_to_the_login_and_back(sqlite: Service, visitor: Person) -> None:
    found = visitor.get("/ui/dataset?name=a%26b")
    assert found.status_code == 303
    form = visitor.get(found.headers["location"])
    assert 'name="next" value="/ui/dataset?name=a%26b"' in form.text
