"""Names and texts that would like to be markup (attack 14): stored as they are, shown as text, on every page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from privloss.service.pages.site import PAGES, PREFIX
from tests.service.inside import Service
from tests.service.pages.person import SGD, Person

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
LINK = "javascript:alert(3)//{{7*7}}'"


def planted(service: Service) -> tuple[Person, Person]:
    """Hostile text wherever a text can stand; a steward and an analyst who look at it."""
    ledger = service.ledger
    for name in (HOSTILE, LINK):
        ledger.add_dataset(name, adjacency="add-remove", unit=HOSTILE, reason=HOSTILE)
        ledger.set_budget(name, currency="pure", cap="1", reason=LINK)
        ledger.set_budget(name, currency="pure", cap="0.5", analyst=HOSTILE.replace("/", "|"), reason=LINK)
    analyst = HOSTILE.replace("/", "|")[:60]
    ledger.set_budget(HOSTILE, currency="pure", cap="0.2", analyst=analyst)
    client = service.analyst(analyst, HOSTILE, LINK)
    for cost in ("0.001", "7"):
        body = {"datasets": [HOSTILE], "cost": cost, "reason": HOSTILE, "label": LINK, "labels": {"a": HOSTILE}}
        client.put(f"/v1/reservations/k{cost}", body)
    ledger.reserve(HOSTILE, cost="0.001", key=HOSTILE, analyst=analyst, reason=LINK)
    ledger.freeze(LINK, True, reason=HOSTILE)
    return Person.of(service, service.steward), Person.of(service, client)


class Read(HTMLParser):
    """The elements of a page, as a browser takes them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def harmless(text: str) -> None:
    """No markup but our own: one script by its address, no handler, no style, no address that runs."""
    for tag, attributes in Read(text).elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (tag, attributes)
        addresses = [str(attributes[name]) for name in ("href", "src", "action", "formaction") if name in attributes]
        assert all(each.startswith(("/ui/", "/openapi.json", "#")) for each in addresses), addresses
        assert tag != "script" or (attributes["type"], len(attributes)) == ("module", 2)
        assert tag != "img" or str(attributes["src"]).startswith("/ui/static/")
    assert "javascript:alert(3)//49" not in text


def test_on_every_page(sqlite: Service) -> None:
    steward, analyst = planted(sqlite)
    for person in (steward, analyst):
        for page in PAGES:
            if page.method == "GET" and not page.path.endswith(".csv"):
                for name in (HOSTILE, LINK):
                    found = person.get(f"{PREFIX}{page.path}?name={quote(name, safe='')}")
                    harmless(found.text)
        listed = person.get("/ui/ledger").text
        assert "&lt;script&gt;" in listed
        link = re.findall(r'<h2><a href="([^"]*)"', listed)
        assert len(link) >= 2
        assert all(each.startswith("/ui/dataset?name=") for each in link)
        for each in link:
            assert person.get(each).status_code == 200


@pytest.mark.parametrize(
    "field", [*SGD, "target", "what", "do", "text", "link", "key", "reason", "hours", "dataset", "part"]
)
def test_in_every_field(sqlite: Service, field: str) -> None:
    person = Person.of(sqlite, sqlite.alice)
    for said in (HOSTILE, LINK):
        found = person.post("/ui/calculator", {**SGD, "dataset": "taxes", field: said})
        harmless(found.text)
        harmless(person.post("/ui/reserve", {**SGD, "dataset": "taxes", "key": "k", "hours": "1", field: said}).text)


@pytest.mark.parametrize("where", ["next", "name", "kind", "analyst", "key", "from", "to", "page", "before", "done"])
def test_in_every_query(sqlite: Service, where: str) -> None:
    person = Person.of(sqlite, sqlite.steward)
    for path in ("/ui/dataset?name=census&", "/ui/freeze?", "/ui/ledger?", "/ui/nothing?"):
        harmless(person.get(f"{path}{where}={quote(HOSTILE)}").text)
    harmless(Person(sqlite).get(f"/ui/login?{where}={quote(HOSTILE)}").text)


def test_a_token_stands_nowhere(sqlite: Service) -> None:
    """Not in a page, an address, or what a mistake leads to."""
    person = Person.of(sqlite, sqlite.steward)
    secret = (sqlite.steward.token or "").split("_", 2)[2]
    for page in PAGES:
        if page.method == "GET":
            found = person.get(f"{PREFIX}{page.path}?name=census")
            assert secret not in found.text + str(found.headers)
            assert person.cookie not in found.text
