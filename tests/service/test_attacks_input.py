"""Attacks by what is sent: SQL, sizes, depths, numbers, names, paths. Nothing is answered with 500, and nothing of it
has an effect that was not meant. (The numbers are those of docs/security.md.)"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
from httpx import Response

from tests.service.inside import GAUSSIAN, Service

SQL = ("'; DROP TABLE token; --", '"; DELETE FROM event; --', "x' OR '1'='1", "?) ; SELECT 1; --", "%s%(x)s\\")
MEGA = 2**20


def _body(text: bytes | str) -> dict[str, Any]:
    return {"content": text, "headers": {"content-type": "application/json"}}


def _tables(service: Service) -> list[Any]:
    """Names of tables and columns."""
    store = service.ledger.store
    if hasattr(store, "_inner") and type(store._inner).__name__ == "SqliteStore":
        return [tuple(row) for row in store.look("SELECT type, name, sql FROM sqlite_master ORDER BY name")]
    query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
    return [tuple(row) for row in store.look(query)]


# -- 6: SQL ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", SQL)
def test_6_sql_in_every_text(service: Service, text: str) -> None:
    """Refused, or kept as it is."""
    tables, path = _tables(service), quote(text, safe="")
    new = {"adjacency": "add-remove", "unit": text, "reason": text, "labels": {text: text}}
    assert service.steward.put(f"/v1/datasets/{path}", new).status_code == 200
    assert service.steward.get(f"/v1/datasets/{path}").json()["unit"] == text
    put = {"currency": "pure", "cap": "1", "reason": text}
    service.steward.put(f"/v1/datasets/{path}/budget", put)
    service.steward.put(f"/v1/datasets/{path}/quotas/{path}", put)
    service.steward.put(f"/v1/datasets/{path}/frozen", {"frozen": True, "reason": text})
    said = {"label": text, "reason": text, "labels": {text: text}}
    assert service.alice.reserve("k", **said).status_code == 201
    assert service.alice.start("k", run=text.ljust(16)).status_code == 200
    for field in ("cost", "cost_delta", "blocks"):
        assert service.alice.reserve("other", **{field: text}).status_code in (400, 409)
    for field in ("kind", "analyst", "key", "state"):
        found = service.auditor.get(f"/v1/datasets/census/history?{field}={path}")
        assert (found.status_code, found.json()["events"]) == (200, [])
    for field in ("after", "limit", "last", "since", "until"):
        assert service.auditor.get(f"/v1/datasets/census/history?{field}={path}").status_code == 400
    assert service.alice.get(f"/v1/reservations/{path}").status_code == 400
    assert service.steward.get(f"/v1/reservations/{path}").status_code == 404
    plan = {"steps": [{"mechanism": text}], text: text}
    assert service.alice.put("/v1/reservations/p", {"datasets": ["census"], "plan": plan}).status_code == 400
    assert service.tokens.authenticate(f"pl_{text}_") is None
    assert _tables(service) == tables
    assert service.ledger.verify().clean


# -- 8: sizes ----------------------------------------------------------------------------------------------------------


def test_8_a_body_that_is_too_large(sqlite: Service) -> None:
    whole = b'{"plan": {"steps": []}, "delta": 1e-6}'
    assert sqlite.alice.ask("POST", "/v1/answer", **_body(whole.ljust(MEGA))).status_code in (200, 400)
    answer = sqlite.alice.ask("POST", "/v1/answer", **_body(whole.ljust(MEGA + 1)))
    assert (answer.status_code, answer.json()["reason"]) == (413, "too-large")
    assert len(answer.content) < 1000


def test_8_a_body_without_a_length_is_counted_as_it_comes(sqlite: Service) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while taken < 4 * MEGA // 65536:  # as far as this test is concerned
            taken += 1
            yield b" " * 65536

    answer = sqlite.alice.ask("POST", "/v1/answer", content=endless(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["reason"]) == (413, "too-large")
    assert taken <= MEGA // 65536 + 2


def test_8_a_packed_body(sqlite: Service) -> None:
    for headers in ({"content-encoding": "gzip"}, {"content-encoding": "identity"}, {"content-type": "text/plain"}):
        given = {"content-type": "application/json", **headers}
        answer = sqlite.alice.ask("POST", "/v1/answer", content=b"{}", headers=given)
        assert (answer.status_code, answer.json()["reason"]) == (415, "not-json")


def test_26_a_length_that_is_said_twice(sqlite: Service) -> None:
    """Behind the parser that refuses it there is somebody else who does."""
    for other in (("content-length", "2"), ("transfer-encoding", "chunked")):
        headers = [("host", "localhost"), ("content-length", "2"), other]
        answer = sqlite.http.request("POST", "/v1/answer", content=b"{}", headers=headers)
        assert (answer.status_code, answer.json()["reason"]) == (400, "invalid")
        assert "in two ways" in answer.json()["text"]
        assert answer.headers["connection"] == "close"


def test_8_more_than_a_request_may_hold(sqlite: Service) -> None:
    step = GAUSSIAN["steps"][0]
    many = {"steps": [step] * 1001}
    assert "at most 1000" in sqlite.alice.post("/v1/answer", {"plan": many, "delta": 1e-6}).json()["text"]
    for more in (
        {"datasets": [f"d{number}" for number in range(17)]}, {"datasets": []}, {"datasets": ["x" * 201]},
        {"cost": "1" * 61}, {"label": "x" * 501}, {"labels": {f"l{n}": "" for n in range(21)}},
        {"blocks": ["2026"] * 1001},
    ):  # fmt: skip
        answer = sqlite.alice.put("/v1/reservations/k", {"datasets": ["census"], "cost": "1/11", **more})
        assert (answer.status_code, answer.json()["reason"]) == (400, "invalid"), more
    assert sqlite.alice.reserve("k" * 121).status_code == 400
    assert sqlite.alice.get("/v1/datasets/" + "x" * 901).status_code == 404
    headers = {"x-long": "x" * 16 * 1024}
    assert sqlite.alice.get("/v1/datasets", headers=headers).status_code == 431
    short = {f"x-{number}": "x" * 80 for number in range(200)}
    assert sqlite.alice.get("/v1/datasets", headers=short).status_code == 431


# -- 9, 10: JSON -------------------------------------------------------------------------------------------------------


def _plan(inside: bytes) -> bytes:
    return b'{"plan": {"x": ' + inside + b'}, "delta": 1e-6}'


@pytest.mark.parametrize(
    "text",
    [
        _plan(b"[" * 31 + b"]" * 31), _plan(b"[" * 900 + b"]" * 900), _plan(b"[" * 100_000 + b"]" * 100_000),
        b"[" * (MEGA - 1), b'{"a":' * 100_000, b'{"plan": ' * 33 + b"1" + b"}" * 33,
        b"[" * 33 + b'"' + b'\\"' * 500_000, b"[" * 33 + b'\\"' * 500_000, b"[" * 33 + b'"' * 1_000_000,
    ],
    ids=["33", "900", "100000", "1M", "objects", "just-33", "open-string", "escapes", "quotes"],
)  # fmt: skip
def test_9_depth(sqlite: Service, text: bytes) -> None:
    answer = sqlite.alice.ask("POST", "/v1/answer", **_body(text))
    assert (answer.status_code, answer.json()["reason"]) == (400, "too-deep")


def test_9_brackets_in_texts_are_no_depth(sqlite: Service) -> None:
    reason = "[{" * 100 + '\\"[' * 10 + "\\\\"
    text = f'{{"datasets": ["census"], "cost": "1/11", "reason": "{reason}"}}'
    answer = sqlite.alice.ask("PUT", "/v1/reservations/k", **_body(text))
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(
    "text",
    [
        b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1" * 5000, b"0." + b"1" * 5000, b"1e" + b"9" * 50,
        b'{"a": 1, "a": 2}', b'{"a": 1, "\\u0061": 2}', b'"\\ud800"', b'{"\\udfff": 1}', b'"\\u0000"', b'"\x00"',
        b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b"01", b"1.", b".5", b"+1", b"0x10", b"'a'", b"[1,]", b"",
        b"// x", b"tru", b"[1] [2]", b'"\t"',
    ],
)  # fmt: skip
def test_10_what_two_programs_read_differently(sqlite: Service, text: bytes) -> None:
    for whole in (text, _plan(text), b'{"plan": ' + text + b', "delta": ' + text + b"}"):
        answer = sqlite.alice.ask("POST", "/v1/answer", **_body(whole))
        assert (answer.status_code, answer.json()["reason"]) == (400, "invalid"), whole[:60]
        assert len(answer.content) < 1500


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (b', "cost": "1/11"', "twice"), (b', "c\\u006fst": "1/11"', "twice"),
        (b', "labels": {"a": "x", "a": "x"}', "twice"), (b', "label": "\xff"', "UTF-8"),
        (b', "lease": 60.' + b"0" * 40, "more than 40"), (b', "lease": 1e999', "too large"), (b', "lease": NaN', "NaN"),
        (b', "label": "a\\u0000b"', "NUL"), (b', "labels": {"a\\u0000": "x"}', "NUL"),
        (b', "label": "\\ud800"', "surrogate"), (b', "labels": {"\\ud800": "x"}', "surrogate"),
    ],
)  # fmt: skip
def test_10_nothing_else_is_wrong(sqlite: Service, more: bytes, says: str) -> None:
    """A request that would be taken, but for one thing that two programs might read differently."""
    before = sqlite.events()
    right = b'{"datasets": ["census"], "cost": "1/11"'
    answer = sqlite.alice.ask("PUT", "/v1/reservations/k", **_body(right + more + b"}"))
    assert (answer.status_code, answer.json()["reason"]) == (400, "invalid")
    assert says in answer.json()["text"]
    assert sqlite.events() == before
    assert sqlite.alice.ask("PUT", "/v1/reservations/k", **_body(right + b"}")).status_code == 201


@pytest.mark.parametrize("value", [0.1, 1, True, None, [], {}, "NaN", "inf", "1e5000", "-1", "1/0", "١", "", "1 1"])
def test_10_an_amount_is_a_text(sqlite: Service, value: Any) -> None:
    assert sqlite.alice.reserve("k", cost=value).status_code == 400


# -- 11: L1 ------------------------------------------------------------------------------------------------------------


def test_11_many_costs_with_random_denominators(sqlite: Service) -> None:
    """A dataset cannot be made unusable by fractions that have no common denominator."""
    rng = random.Random(1)
    for number in range(130):  # 113 once were enough
        cost = f"{rng.randrange(1, 10**17)}/{rng.randrange(10**39, 10**40)}"
        for analyst in (sqlite.alice, sqlite.bob):
            assert analyst.reserve(f"k{number}", cost=cost).status_code == 201
        sqlite.alice.start(f"k{number}")
    last = sqlite.alice.move("k0", "commit")
    found = [sqlite.steward.get(f"/v1/datasets/census{part}") for part in ("", "/history", "/odometer")]
    found += [last, sqlite.bob.reserve("last", cost="1/997"), sqlite.bob.reserve("much", cost="1")]
    assert [each.status_code for each in found] == [200, 200, 200, 200, 201, 409]
    assert max(len(each.content) for each in (found[0], *found[2:])) < 4000
    assert sqlite.ledger.verify().clean


# -- 13, 17: paths and headers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/..", "/../", "/v1/../v1/datasets", "/v1/%2e%2e/health/live", "//v1/datasets", "/v1//datasets",
        "/v1/datasets/", "/v1/export/../datasets", "/v1/export/%2e%2e%2fetc%2fpasswd", "/v1/export//etc/passwd",
        "/etc/passwd",
        "/v1%2Fdatasets", "/V1/datasets", "/v1/datasets%00", "/v1/export%00.csv", "/v1/export.csv/..", "/static/../x",
        "/static/%2e%2e/%2e%2e/etc/passwd", "/static//etc/passwd", "/static/%00", "/v1", "/v1/", "/v1/datasets/..%2f",
        "http://evil.example/v1/datasets",
    ],
)  # fmt: skip
def test_13_paths(sqlite: Service, path: str) -> None:
    """Nothing is resolved: a path is a route, letter by letter, or nothing."""
    request = _raw(sqlite, path)
    assert request.status_code in (400, 404), (path, request.text)
    assert "root:" not in request.text


def _raw(service: Service, path: str) -> Response:
    """The path as it is, not as a client would have tidied it."""
    from urllib.parse import unquote

    import httpx

    token = {"authorization": f"Bearer {service.steward.token}"}
    given = httpx.Request("GET", "http://localhost/", headers=token)
    answered: dict[str, Any] = {"body": b""}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": unquote(path), "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(name.lower(), value) for name, value in given.headers.raw], "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        answered["status"] = message.get("status", answered.get("status"))
        answered["body"] += message.get("body", b"")

    service.http._does(service.app(scope, receive, send))
    return Response(answered["status"], content=answered["body"])


def test_13_names_that_look_like_paths(sqlite: Service) -> None:
    for name in ("..", "a/b", "../../etc/passwd", "budget", "%2e%2e"):
        path = quote(name, safe="")
        assert sqlite.steward.put(f"/v1/datasets/{path.replace('.', '%2e')}", {"adjacency": "add-remove"}).is_success
        assert sqlite.ledger.status(name)["dataset"] == name


@pytest.mark.parametrize("text", ["a%0d%0aSet-Cookie:%20x=1", "a%0aB: c", "%00", "%C2%85", "a%E2%80%A8b"])
def test_17_line_breaks_in_names(sqlite: Service, text: str) -> None:
    for path in (f"/v1/reservations/{text}", f"/v1/datasets/{text}", f"/v1/datasets/{text}/history.csv"):
        answer = sqlite.steward.get(path)
        assert answer.status_code in (400, 404)
        assert "set-cookie" not in answer.headers
    assert sqlite.steward.get(f"/v1/datasets/census/history?key={text}").status_code == 400


# -- 16: spreadsheets --------------------------------------------------------------------------------------------------


def test_16_formulas_in_sheets(sqlite: Service) -> None:
    evil = ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://evil.example")', 'a",b\n"c', "\n=1"]
    for number, text in enumerate(evil):
        said = {"label": text, "reason": text, "labels": {"x": text}}
        assert sqlite.alice.reserve(f"k{number}", cost="1/1000", **said).status_code == 201
    for path in ("/v1/datasets/census/history.csv", "/v1/export.csv"):
        answer = sqlite.auditor.get(path)
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
        rows = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
        held = {row["key"]: row for row in rows if row["kind"] == "reserved"}
        for number, text in enumerate(evil):
            cell = held[f"alice/k{number}"]["reason"]
            assert cell == (text if text.startswith("a") else f"'{text}")
        assert not [cell for row in rows for cell in row.values() if cell[:1] in tuple("=+-@\t\r\n")]
        assert all(line.endswith("\r\n") for line in answer.content.decode().splitlines(keepends=True)[:1])


def test_16_a_sheet_says_where_it_goes_on(sqlite: Service) -> None:
    for number in range(4):
        sqlite.alice.reserve(f"k{number}", cost="1/1000")
    first = sqlite.alice.get("/v1/datasets/census/history.csv?limit=3&kind=reserved")
    assert len(first.content.splitlines()) == 4
    more = sqlite.alice.get(f"/v1/datasets/census/history.csv?kind=reserved&after={first.headers['x-next-after']}")
    assert len(more.content.splitlines()) == 2
    assert "x-next-after" not in more.headers
    assert b"alice/" not in first.content


# -- 29: extremes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lease", [1e308, -1, 0, "1e9", 1e10, True, None, [], 10**39, -0.0, 5e-324])
def test_29_leases(sqlite: Service, lease: Any) -> None:
    answer = sqlite.alice.reserve("k", lease=lease)
    assert answer.status_code == (201 if lease == 5e-324 else 400), answer.text


@pytest.mark.parametrize(
    "blocks",
    [
        "9999-12-31", "0001-01-01..9999-12-31", ["2000-01-01..2010-12-01"] * 1000, "2026-11-16..", "..", "x" * 100,
        ["2026-11-16"] * 1000, "2026-02-30", "٢٠٢٦-11-16", "2026-W01", "", [], [""], "2026-11-17..2026-11-16",
    ],
)  # fmt: skip
def test_29_blocks(sqlite: Service, blocks: Any) -> None:
    sqlite.steward.put("/v1/datasets/stream", {"adjacency": "add-remove", "blocks": "day"})
    sqlite.steward.put("/v1/datasets/stream/budget", {"currency": "pure", "cap": "1"})
    asked = {"datasets": ["stream"], "cost": "1/1000", "blocks": blocks}
    client = sqlite.analyst("carol", "stream")
    answers = [client.put("/v1/reservations/k", asked), client.post("/v1/quote", asked)]
    good = blocks in ("9999-12-31", ["2026-11-16"] * 1000)
    assert [each.status_code for each in answers] == ([201, 200] if good else [400, 400]), answers[0].text


@pytest.mark.parametrize(
    "query",
    [
        "since=1e308", "since=-1", "since=nan", "until=99999999999999", "limit=0", "limit=501", "limit=1e2", "limit=٣",
        "after=-1", f"after={'9' * 30}", "last=0", "last=5&limit=5", "limit=5&limit=6", "x=1", "kind=%00", "a" * 5000,
        "&".join(f"a{n}=1" for n in range(30)), "%ff=1", "kind=%ff", "kind", "=",
    ],
)  # fmt: skip
def test_29_queries(sqlite: Service, query: str) -> None:
    assert sqlite.steward.get(f"/v1/datasets/census/history?{query}").status_code == 400
    assert sqlite.steward.get(f"/v1/datasets/census/odometer?{query}").status_code == 400


@pytest.mark.parametrize("delta", ["nan", "inf", "1e-400", "-1", "2", "1_0", " 1", "0x1", "1" * 100, "1e999"])
def test_29_deltas(sqlite: Service, delta: str) -> None:
    """A chance that is none; one that is too small to be a double is 0."""
    answer = sqlite.steward.get(f"/v1/datasets/taxes/odometer?delta={quote(delta)}")
    assert answer.status_code == 400, answer.text


def test_problems_do_not_repeat_long_input(sqlite: Service) -> None:
    long = "x" * 500_000
    for body in ({"datasets": ["census"], "cost": long}, {"datasets": ["census"], "plan": {long: long}}, {long: 1}):
        answer = sqlite.alice.put("/v1/reservations/k", body)
        assert answer.status_code == 400
        assert len(answer.content) < 2500
        assert json.loads(answer.content)["status"] == 400
