"""docs/security.md: every test it names is there; and the small tests of items that no attack stands for."""

from __future__ import annotations

import ast
import json
import logging
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from privloss.ledger.stores.base import LedgerError
from privloss.service import api_datasets
from privloss.service.log import Lines
from privloss.service.observed import LOG
from privloss.service.settings import Settings
from privloss.service.tokens import digest
from tests.service.inside import Service

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text()
ATTACKS = re.findall(r"^\| (\d+) \| .+ \| .+ \| `(.+?)` \|$", TEXT, re.MULTILINE)
ROWS = re.findall(r"^\| (\d+\.\d+\.\d+) \| (.+) \| `(.+?)` \|$", TEXT, re.MULTILINE)
# of OWASP ASVS 5.0, levels 1 to 3: what applies to a service with tokens, pages with a session, no accounts, no files
ITEMS = re.findall(
    r"\S+",
    "1.2.1 1.2.4 1.2.10 1.5.3 2.3.1 2.3.3 2.3.4 2.4.1 3.2.1 3.3.1 3.3.2 3.3.3 3.3.4 3.4.1 3.4.2 3.4.3 3.4.4 3.4.5 "
    "3.4.6 3.4.8 3.5.1 3.5.2 3.5.3 3.6.1 4.1.1 4.1.3 4.1.4 4.2.1 5.2.1 5.4.1 5.4.2 6.5.2 6.5.3 6.5.6 7.2.3 7.2.4 "
    "7.3.1 7.4.1 8.1.1 8.2.1 8.2.2 8.2.3 8.3.1 11.2.4 11.4.1 11.5.1 12.1.1 12.2.1 13.1.3 13.2.1 14.2.1 14.3.1 "
    "14.3.2 15.1.3 15.2.2 15.3.1 15.3.3 15.4.1 15.4.2 15.4.3 15.4.4 16.2.5 16.3.1 16.3.2 16.3.3 16.3.4 16.4.1 "
    "16.5.1 16.5.2 16.5.3 16.5.4",
)


def test_one_line_for_each_item() -> None:
    assert [item for item, _, _ in ROWS] == ITEMS


def test_one_line_for_each_attack() -> None:
    """15 and 28 are about the report, which the service does not give."""
    assert [int(number) for number, _ in ATTACKS] == [n for n in range(1, 30) if n not in (15, 28)]
    files = (ROOT / "tests" / "service").glob("test_attacks_*.py")
    tried = {int(each) for file in files for each in re.findall(r"^def test_(\d+)_", file.read_text(), re.MULTILINE)}
    assert tried <= {int(number) for number, _ in ATTACKS}


@pytest.mark.parametrize("named", sorted({each[-1] for each in (*ATTACKS, *ROWS)}))
def test_every_named_test_is_there(named: str) -> None:
    path, _, name = named.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name.startswith("test_")


# -- headers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/datasets"), ("GET", "/v1/datasets/none"), ("PATCH", "/v1/datasets"), ("GET", "/openapi.json"),
     ("GET", "/health/live"), ("GET", "/nothing"), ("GET", "/metrics"), ("GET", "/v1/export")],
)  # fmt: skip
def test_headers_of_every_answer(sqlite: Service, method: str, path: str) -> None:
    """Right answers and wrong ones; nobody else's page may read them, frame them or keep them."""
    for who in (sqlite.auditor, sqlite.nobody):
        found = who.ask(method, path, headers={"origin": "https://evil.example"}).headers
        policy = dict(part.strip().split(" ", 1) for part in found["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
        assert found["x-content-type-options"] == "nosniff"
        assert found["referrer-policy"] == "no-referrer"
        assert found["cross-origin-opener-policy"] == found["cross-origin-resource-policy"] == "same-origin"
        assert found["cache-control"] == "no-store"
        assert not any(name.startswith("access-control-") for name in found)
        kind = found["content-type"]
        assert kind.split(";")[0] in (
            "application/json",
            "application/problem+json",
            "application/x-ndjson",
            "text/plain",
        )
        assert "json" in kind or "charset=" in kind


def test_hsts_where_there_is_tls(serving: Callable[..., Service], sqlite_place: str) -> None:
    found = serving(sqlite_place, behind_proxy=("10.0.0.1",)).nobody.get("/health/live").headers
    assert re.fullmatch(r"max-age=31536000; includeSubDomains", found["strict-transport-security"])


def test_a_safe_method_changes_nothing(sqlite: Service) -> None:
    before = sqlite.events()
    for who in (sqlite.alice, sqlite.steward, sqlite.auditor):
        for path in (
            "/v1/reservations/k",
            "/v1/reservations/k/start",
            "/v1/datasets/census/frozen",
            "/v1/datasets/new",
        ):
            assert who.get(path).status_code in (404, 405, 403)
            assert who.ask("HEAD", path).status_code in (404, 405)
    assert sqlite.events() == before


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_a_token_is_random_and_kept_as_a_hash(sqlite: Service, sqlite_place: str) -> None:
    """256 bits of the system's generator; in the database its SHA-256."""
    texts = [str(sqlite.token("auditor").token) for _ in range(50)]
    secrets = [text[12:] for text in texts]
    assert {len(each) for each in secrets} == {43}
    assert len({each[i : i + 8] for each in secrets for i in range(0, 40, 8)}) == 250
    rows = sqlite3.connect(sqlite_place)
    kept = {row[0] for row in rows.execute("SELECT hash FROM token")}
    rows.close()
    assert {digest(text) for text in texts} <= kept
    assert {len(each) for each in kept} == {64}


def test_a_token_in_the_address_or_a_cookie_is_none(sqlite: Service) -> None:
    token = sqlite.alice.token
    for path in (f"/v1/datasets?token={token}", f"/v1/datasets?access_token={token}"):
        assert sqlite.nobody.get(path).status_code == 401
    for headers in ({"cookie": f"token={token}; __Host-privloss={token}"}, {"x-api-key": str(token)}):
        assert sqlite.nobody.get("/v1/datasets", headers=headers).status_code == 401


# -- the log -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def logged() -> Iterator[list[dict[str, Any]]]:
    """Lines as they would be written."""
    lines: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(Lines().format(record)))

    keep, level = Keep(), LOG.level
    LOG.addHandler(keep)
    LOG.setLevel(logging.INFO)
    yield lines
    LOG.removeHandler(keep)
    LOG.setLevel(level)


def test_who_came_in_who_did_not_and_who_was_refused(sqlite: Service, logged: list[dict[str, Any]]) -> None:
    """Logins, failed ones, denied actions, broken rules, refusals by the ledger: each with its reason and token."""
    assert sqlite.alice.get("/v1/datasets").status_code == 200
    sqlite.client("pl_abcdefgh_" + "x" * 43).get("/v1/datasets")
    sqlite.alice.put("/v1/datasets/new", {"adjacency": "add-remove"})
    sqlite.alice.put("/v1/reservations/k", {"datasets": ["census"], "cost": "1", "analyst": "bob"})
    sqlite.alice.reserve("k", cost="2")
    told = [(line["status"], line.get("reason")) for line in logged]
    assert told == [(200, None), (401, "token"), (403, "role"), (400, "invalid"), (409, "budget-exceeded")]
    alice = str(sqlite.alice.token)[3:11]
    assert [line.get("token") for line in logged] == [alice, None, alice, alice, alice]
    assert {line["route"] for line in logged} == {"/v1/datasets", "/v1/datasets/{dataset}", "/v1/reservations/{key}"}


def test_nobody_forges_a_line(sqlite: Service, logged: list[dict[str, Any]]) -> None:
    """A line break in a name is an escape in the line, whatever is done with it."""
    record = logging.LogRecord(LOG.name, logging.INFO, "", 0, {"route": 'a\r\n{"forged": 1}\u2028x'}, None, None)
    text = Lines().format(record)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text)["route"].startswith("a")
    sqlite.alice.get("/v1/datasets/census%0A%7B%22forged%22%3A1%7D")
    assert [line["route"] for line in logged] == ["other"] or "forged" not in json.dumps(logged)


def test_what_nobody_foresaw_is_told_in_general_and_logged_with_its_place(
    sqlite: Service, logged: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("a secret in a message")

    monkeypatch.setattr(api_datasets, "_status", fails)
    found = sqlite.alice.get("/v1/datasets/census")
    assert (found.status_code, found.json()["reason"]) == (500, "failed")
    assert "secret" not in found.text
    assert "ZeroDivision" not in found.text
    (line,) = logged
    assert (line["level"], line["error"]) == ("error", "ZeroDivisionError")
    assert any("test_security.py" in place for place in line["where"])
    assert "secret" not in json.dumps(line)
    assert line["request"] == found.headers["x-request-id"]


def test_a_store_that_does_not_answer_lets_nobody_in(sqlite: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """503, without the address of the database; and so it is not ready."""

    def away(*_: object) -> None:
        raise LedgerError("db = 'postgresql://ann:secret@host/x': does not answer")

    monkeypatch.setattr(sqlite.services.tokens._store, "look", away)
    for path in ("/v1/datasets", "/v1/datasets/census", "/metrics"):
        found = sqlite.auditor.get(path)
        assert (found.status_code, found.json()["reason"]) == (503, "busy")
        assert "secret" not in found.text
    assert sqlite.nobody.get("/health/ready").status_code == 503
    monkeypatch.undo()
    assert sqlite.auditor.get("/v1/datasets").status_code == 200


# -- what is documented ------------------------------------------------------------------------------------------------


def test_limits_and_roles_are_as_documented() -> None:
    told = (ROOT / "docs" / "service.md").read_text()
    table = told[told.index("## Limits") : told.index("## Watching")]
    settings = Settings()
    for number in (
        settings.longest_headers // 1024, settings.longest_body // 2**20, settings.receive_seconds,
        settings.keep_alive_seconds, settings.connections, settings.rate, 2 * settings.rate, settings.failed_logins,
        settings.price_cpu, settings.price_each, settings.price_seconds,
    ):  # fmt: skip
        assert re.search(rf"(?<!\d){number:g}(?!\d)", table), number
    assert re.search(rf"at\s+most {settings.threads} connections", told)
    assert re.search(rf"within {settings.grace_seconds:g} seconds", told)
