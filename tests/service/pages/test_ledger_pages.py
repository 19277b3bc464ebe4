"""The ledger's pages: amounts on the safe side, states in words, freezing, history, files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import privloss as pl
from privloss.ledger.ledger import Ledger
from privloss.ledger.maintenance import backup, restore
from tests.service.inside import DAY, Service
from tests.service.pages.person import Person


def plain(text: str) -> str:
    """A page as it is read."""
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def spent(service: Service, key: str, cost: str, dataset: str = "census") -> None:
    assert service.alice.reserve(key, cost, (dataset,)).status_code == 201
    service.alice.start(key)
    service.alice.move(key, "commit")


def test_what_is_spent_held_and_left(sqlite: Service, steward: Person) -> None:
    spent(sqlite, "a", "1/7")
    sqlite.alice.reserve("b", "1/11")
    text = steward.get("/ui/ledger").text
    assert "0.142858 spent , 0.0909091 held , 0.766233 left of 1 in epsilon" in plain(text)
    assert 'title="1/7"' in text
    assert 'title="59/77"' in text
    assert "To each person the cap guarantees epsilon 1 and delta 0" in plain(text)
    assert text.count('class="bar"') == 2


def test_every_kind_of_budget_is_told(sqlite: Service, steward: Person) -> None:
    ledger = sqlite.ledger
    ledger.add_group("all", adjacency="add-remove", unit="person")
    ledger.set_budget("all", currency="gdp", cap="1", delta="1e-6")
    for name, currency, more in (
        ("approx", "approx", {"cap": "1", "delta": "1e-6"}),
        ("advanced", "approx", {"cap": "1", "delta": "1e-6", "filter": "advanced"}),
        ("renyi", "rdp", {"cap": "3", "delta": "1e-6"}),
        ("some", "rdp", {"cap": "3", "delta": "1e-6", "filter": "some"}),
        ("yearly", "zcdp", {"cap": "1", "delta": "1e-6"}),
        ("blocked", "zcdp", {"cap": "1", "delta": "1e-6"}),
    ):
        ledger.add_dataset(name, adjacency="add-remove", unit="person", blocks="month" if name == "blocked" else None)
        ledger.set_budget(name, currency=currency, **more)
    ledger.set_budget("yearly", currency="zcdp", cap="0.5", every="year")
    ledger.add_dataset("new", adjacency="replace-one", unit="household")
    ledger.reserve("yearly", cost="0.1", key="y")
    ledger.reserve("blocked", cost="0.1", key="m", blocks="2027-01")
    ledger.reserve("renyi", pl.Gaussian(20.0), key="r")
    listed = plain(steward.get("/ui/ledger").text)
    for words in (
        "mu squared",
        "the tightest of 2 limits",
        "Each month has a budget of its own",
        "nothing may be spent",
    ):
        assert words in listed, words
    for name in ("all", "approx", "advanced", "renyi", "some", "yearly", "blocked", "new"):
        found = steward.get(f"/ui/dataset?name={name}")
        assert found.status_code == 200, name
        assert "nan" not in found.text
    assert "2027" in plain(steward.get("/ui/dataset?name=yearly").text)
    assert "2027-01 0 spent, 0.1 held, 0.9 left" in plain(steward.get("/ui/dataset?name=blocked").text)


def test_freezing_says_what_it_does_and_wants_a_reason(sqlite: Service, steward: Person) -> None:
    for key in ("a", "b", "c"):
        sqlite.alice.reserve(key, "1/11")
    sqlite.alice.start("c")
    page = plain(steward.get("/ui/freeze?name=census").text)
    assert "2 held reservations cannot start" in page
    assert "1 started analysis can still be committed" in page
    fields = {"name": "census", "frozen": "yes", "reason": "  "}
    refused = steward.post("/ui/freeze", fields)
    assert refused.status_code == 422
    assert "Say why" in refused.text
    assert not sqlite.ledger.status("census")["frozen"]
    done = steward.post("/ui/freeze", {**fields, "reason": "a consent form"})
    assert (done.status_code, done.headers["location"]) == (303, "/ui/dataset?name=census&done=frozen")
    after = plain(steward.get(done.headers["location"]).text)
    assert "The dataset is frozen." in after
    assert "FROZEN : nothing new can begin" in after
    assert "a consent form" in after
    assert "FROZEN" in steward.get("/ui/ledger").text
    assert sqlite.alice.start("a").status_code == 409
    steward.get("/ui/freeze?name=census")
    steward.post("/ui/freeze", {"name": "census", "frozen": "no", "reason": "it holds"})
    assert [each["actor"] for each in sqlite.ledger.history("census", kind="frozen")] == [
        f"token:{(sqlite.steward.token or '').split('_')[1]}"
    ] * 2


def test_after_a_restore_the_reconciliation_is_asked_for(serving: Callable[..., Service], tmp_path: Path) -> None:
    first = serving(f"{tmp_path}/first.db")
    backup(first.ledger, f"{tmp_path}/backup.jsonl")
    with closing(Ledger.create(f"{tmp_path}/second.db")) as empty:
        restore(f"{tmp_path}/backup.jsonl", empty)
    service = serving(f"{tmp_path}/second.db", create=False)
    page = Person.of(service, service.steward).get("/ui/freeze?name=census").text
    assert "restored from a backup" in page
    assert "How was it reconciled?" in page


def test_history_by_filters_and_pages(sqlite: Service, steward: Person) -> None:
    for number in range(60):
        sqlite.clock.now += DAY / 2
        spent(sqlite, f"k{number:02}", "0.001")
    sqlite.bob.reserve("other", "0.01")
    steward.login(sqlite.steward.token or "")

    def shown(query: str) -> list[str]:
        text = steward.get(f"/ui/dataset?name=census&{query}").text
        rows = text.partition('aria-label="Events"')[2]
        return re.findall(r'<tr><td class="digits">(\d+)</td>', rows)

    everything = [str(each["seq"]) for each in reversed(sqlite.ledger.history("census"))]
    assert shown("") == everything[:50]
    assert shown("page=1") == everything[50:100]
    assert shown("page=3") == everything[150:]
    assert len(shown("kind=committed&page=1")) == 10
    assert len(shown("key=alice/k07")) == 3
    assert len(shown("analyst=bob")) == 1
    assert len(shown("from=2027-01-16&to=2027-01-16")) == 6  # both days included, in UTC
    assert shown("from=2090-01-01") == []
    text = steward.get("/ui/dataset?name=census&kind=committed").text
    older = re.search(r'href="(/ui/dataset\?[^"]*)#history">Older', text)
    assert older is not None
    assert len(shown(older[1].replace("&amp;", "&").partition("name=census&")[2])) == 10
    for wrong in ("from=yesterday", "to=2027-13-01", "page=-1", "page=9", "before=x", "state=x&kind=" + "x" * 201):
        assert steward.get(f"/ui/dataset?name=census&{wrong}").status_code == 400, wrong


def test_older_events_than_pages_reach_are_reached_by_time(
    sqlite: Service, steward: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privloss.service.pages.books._PAGE", 5)
    monkeypatch.setattr("privloss.service.pages.books._PAGES", 2)
    for number in range(8):
        sqlite.clock.now += 60
        spent(sqlite, f"k{number}", "0.001")
    seen: list[str] = []
    address = "/ui/dataset?name=census"
    for _ in range(12):
        text = steward.get(address).text
        seen += re.findall(r'<tr><td class="digits">(\d+)</td>', text.partition('aria-label="Events"')[2])
        older = re.search(r'href="(/ui/dataset\?[^"]*)#history">Older', text)
        if older is None:
            break
        address = older[1].replace("&amp;", "&")
    assert sorted(set(map(int, seen))) == [each["seq"] for each in sqlite.ledger.history("census")]


def test_the_file_for_spreadsheets_runs_no_formula(sqlite: Service, steward: Person) -> None:
    """Attack 16."""
    for number, reason in enumerate(("=1+1", "+1", "-1", "@a", "\tx", 'a "quote", and a comma', "two\nlines")):
        body = {"datasets": ["census"], "cost": "0.001", "reason": reason}
        assert sqlite.alice.put(f"/v1/reservations/k{number}", body).status_code in (201, 400)
    found = steward.get("/ui/history.csv?name=census&kind=reserved")
    assert found.headers["content-type"] == "text/csv; charset=utf-8"
    assert found.headers["content-disposition"] == 'attachment; filename="history.csv"'
    rows = list(csv.DictReader(io.StringIO(found.text, newline="")))
    said = [row["reason"] for row in rows]
    assert said[:4] == ["'=1+1", "'+1", "'-1", "'@a"]
    assert 'a "quote", and a comma' in said
    assert "\r\n" in found.text
    assert all(not cell or cell[0] not in "=+-@\t\r" for row in rows for cell in row.values())


def test_long_histories_are_read_in_parts(sqlite: Service, steward: Person) -> None:
    for number in range(200):
        spent(sqlite, f"k{number}", "0.001")
    rows = steward.get("/ui/history.csv?name=census").text.splitlines()
    assert len(rows) == 1 + len(sqlite.ledger.history("census")) == 603


def test_verifying_and_what_was_found(sqlite: Service, steward: Person, auditor: Person) -> None:
    assert "Nothing was verified since the service started" in auditor.get("/ui/ledger").text
    assert auditor.post("/ui/verify", {}).headers["location"] == "/ui/ledger#verified"
    sqlite.services.verifying.wait()
    sqlite.clock.now += 200
    said = plain(steward.get("/ui/ledger").text)
    assert "Verified 3 minutes ago: 4 events" in said or "nothing wrong" in said
    store = sqlite.ledger.store
    with store.transaction() as cursor:
        store.execute(cursor, "UPDATE standing SET committed = '1/2' WHERE dataset = 'census' AND component <> ''")
    auditor.post("/ui/verify", {})
    sqlite.services.verifying.wait()
    said = plain(auditor.get("/ui/ledger").text)
    assert "NOT CLEAN" in said
    assert "Freeze what is concerned" in said


def test_what_was_left_over_time(sqlite: Service, auditor: Person) -> None:
    assert "Left over time" not in auditor.get("/ui/dataset?name=census").text  # nothing happened yet
    for number in range(4):
        sqlite.clock.now += DAY
        spent(sqlite, f"k{number}", "0.125")
    sqlite.alice.reserve("held", "0.25")
    sqlite.alice.reserve("back", "0.0625")
    sqlite.alice.move("back", "void")
    auditor.login(sqlite.auditor.token or "")
    page = auditor.get("/ui/dataset?name=census").text
    table = page.partition("Left over time")[2].partition("</section>")[0]
    rows = [re.findall(r"<td>([^<]*)</td>", row) for row in re.findall(r"<tr>(<td>.*?)</tr>", table, re.DOTALL)]
    left = [row[3] for row in rows]
    assert left[0] in ("1", "0.875")
    assert left[-1] == "0.25"
    assert rows[-1][1:3] == ["0.5", "0.25"]
    assert all(float(a) + float(b) + float(c) <= 1 for _, a, b, c in rows)
    assert "FROZEN" not in page


def test_giving_back(sqlite: Service, alice: Person, bob: Person, steward: Person) -> None:
    for key in ("a", "b"):
        sqlite.alice.reserve(key, "1/11")
    assert bob.post("/ui/void", {"key": "a", "name": "census"}).status_code == 404
    found = alice.post("/ui/void", {"key": "a", "name": "census"})
    assert found.headers["location"] == "/ui/dataset?name=census&done=void"
    assert "given back" in alice.get(found.headers["location"]).text
    assert steward.post("/ui/void", {"key": "alice/b", "name": "census"}).status_code == 303
    assert sqlite.ledger.status("census")["reserved"] == "0"
    sqlite.alice.reserve("c", "1/11")
    sqlite.alice.start("c")
    assert alice.post("/ui/void", {"key": "c", "name": "census"}).status_code == 409


def test_a_ledger_without_datasets_says_how_to_begin(serving: Callable[..., Service], tmp_path: Path) -> None:
    service = serving(f"{tmp_path}/one.db")
    nobody_yet = Person.of(service, service.analyst("carol", "not there yet"))
    assert "There is no dataset that this token may see" in nobody_yet.get("/ui/ledger").text


def test_pages_are_the_same_on_both_stores(service: Service) -> None:
    spent(service, "a", "1/7")
    service.alice.reserve("b", "5")
    person = Person.of(service, service.steward)
    for path in ("/ui/ledger", "/ui/dataset?name=census", "/ui/freeze?name=census", "/ui/history.csv?name=census"):
        assert person.get(path).status_code == 200
    assert "alice/b" in person.get("/ui/dataset?name=census").text
