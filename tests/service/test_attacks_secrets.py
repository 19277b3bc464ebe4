"""Attacks on what a service must not tell, and on where it may listen. (The numbers are those of docs/security.md.)"""

from __future__ import annotations

import io
import json
import logging
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from privloss.cli.main import main
from privloss.errors import InvalidInput
from privloss.ledger.ledger import Ledger
from privloss.ledger.stores.base import NoAnswer
from privloss.service.log import Lines
from privloss.service.observed import LOG
from privloss.service.serve import Server, check_exposed, config
from privloss.service.settings import Settings
from tests.ledger.postgres import PASSWORD
from tests.ledger.postgres import Server as Postgres
from tests.service.inside import Service
from tests.service.outside import Process, free_port, prepared
from tests.service.test_attacks_load import HOSTILE
from tests.service.wire import TLS

KNOWN = {"time", "level", "request", "method", "route", "status", "ms", "token", "reason", "error", "where"}


# -- 25: secrets -------------------------------------------------------------------------------------------------------


def _family(pid: int) -> Iterator[str]:
    """The command lines of a process and all below it."""
    yield Path(f"/proc/{pid}/cmdline").read_text()
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


def test_25_secrets_stay_where_they_are(process: Callable[..., Process], server: Postgres) -> None:
    """Token and password of the database: not in logs, events, export, metrics, errors, command lines."""
    place, port = server.fresh("secrets"), free_port()
    tokens = prepared(place)
    running = process(place, "--metrics-port", str(port))
    running.await_ready()
    said = []
    with running.client(tokens["alice"]) as alice, running.client(tokens["auditor"]) as auditor:
        secret = tokens["alice"]
        said += [alice.put("/v1/reservations/k", json={"datasets": ["census"], "cost": "1/11"})]
        said += [alice.get(f"/v1/datasets/{secret}"), alice.get(f"/v1/datasets/census?token={secret}")]
        said += [alice.get("/v1/datasets", headers={"host": secret}), alice.put(f"/v1/reservations/{secret}x")]
        said += [alice.get("/v1/export"), alice.get(f"/{secret}/x"), alice.post("/v1/answer", content=secret)]
        said += [auditor.get(path) for path in ("/v1/export", "/v1/export.csv", "/metrics", "/v1/datasets")]
        said += [auditor.get(f"http://127.0.0.1:{port}/metrics", headers={"authorization": ""})]
        assert said[-1].status_code == 200
        assert "privloss_requests_total" in said[-1].text
    lines = list(_family(running.process.pid))
    assert running.end() == 0
    hidden = [text.split("_", 2)[2] for text in tokens.values()]
    for text in (running.log(), *lines, *(each.text for each in said[3:4] + said[5:6] + said[8:])):
        assert not [each for each in (*hidden, PASSWORD) if each in text], text
    for line in running.log().splitlines():
        assert set(json.loads(line)) <= KNOWN
    assert f'"token": "{tokens["alice"].split("_")[1]}"' in running.log()


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the service writes into its log."""
    held = io.StringIO()
    handler = logging.StreamHandler(held)
    handler.setFormatter(Lines())
    before = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    yield held
    LOG.removeHandler(handler)
    LOG.setLevel(before)


def test_25_nobody_forges_a_line(sqlite: Service, logged: io.StringIO) -> None:
    forged = '"}\n{"time": "2026-01-01", "level": "info", "status": 200}'
    sqlite.alice.reserve("k", label=forged)
    sqlite.alice.get("/v1/datasets/" + "%0a%22%7d")
    sqlite.http.request("X" + "Y" * 10, "/v1/datasets")
    sqlite.http.request("GET", "/%0aX", headers={"x-request-id": "forged", "user-agent": forged})
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert len(lines) == 4
    assert all(set(line) <= KNOWN for line in lines)
    assert {line["route"] for line in lines} <= {"other", "/v1/reservations/{key}", "/v1/datasets/{dataset}"}


def test_25_failures_are_told_without_what_they_say(
    sqlite: Service, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "postgresql://privloss:p@ss word@db.example/ledger"

    def fails(*_: Any) -> Any:
        raise NoAnswer(f"db = {address!r}: does not answer")

    def breaks(*_: Any) -> Any:
        raise RuntimeError(address)

    for fault, status in ((fails, 503), (breaks, 500)):
        monkeypatch.setattr(sqlite.ledger.__class__, "status", fault)
        answer = sqlite.alice.get("/v1/datasets/census")
        assert answer.status_code == status
        assert "example" not in answer.text
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert [line["error"] for line in lines] == ["NoAnswer", "RuntimeError"]
    assert all(line["where"] for line in lines)
    assert "p@ss" not in logged.getvalue()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgresql://me:p@ss@host/db", "postgresql://...host/db"),
        ("Bearer pl_abcdefgh_" + "A" * 43, "Bearer ..."),
        ("a\nb", "a\nb"),
    ],
)
def test_25_the_log_blanks_what_looks_like_a_secret(text: str, kept: str) -> None:
    line = Lines().format(logging.LogRecord("x", logging.INFO, "", 0, text, (), None))
    assert "\n" not in line
    assert json.loads(line)["text"] == kept


# -- 27: where it may listen -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "options", "says"),
    [
        ("0.0.0.0", [], "--tls-cert"),
        ("::", [], "--tls-cert"),
        ("192.0.2.1", [], "--tls-cert"),
        ("0.0.0.0", ["--behind-proxy", "192.0.2.7"], "nobody has a token"),
        ("0.0.0.0", ["--behind-proxy", "*"], "address of a proxy"),
        ("0.0.0.0", ["--behind-proxy", "0.0.0.0/0"], "believe everybody"),
        ("127.0.0.1", ["--tls-cert", "cert.pem"], "neither"),
        ("127.0.0.1", ["--public-calculator", "--no-calculator"], "contradicts"),
    ],
)
def test_27_exposed_without_protection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    host: str, options: list[str], says: str,
) -> None:  # fmt: skip
    place = str(tmp_path / "privloss.db")
    Ledger.create(place).close()
    monkeypatch.setattr("sys.argv", ["privloss", "serve", "--db", place, "--host", host, "--port", "0", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_27_with_tokens_and_tls(sqlite: Service) -> None:
    for settings in (Settings(host="0.0.0.0", **TLS), Settings(host="::", behind_proxy=("192.0.2.7",)), Settings()):
        check_exposed(settings, sqlite.tokens)
    sqlite.clock.now += 91 * 86400  # all tokens have expired
    with pytest.raises(InvalidInput, match="nobody has a token"):
        check_exposed(Settings(host="0.0.0.0", **TLS), sqlite.tokens)
    check_exposed(Settings(), sqlite.tokens)


def test_27_a_certificate_that_is_none(sqlite: Service, tmp_path: Path) -> None:
    for cert in (tmp_path / "missing", Path(__file__)):
        with pytest.raises(InvalidInput, match="cannot be used"):
            config(Settings(tls_cert=cert, tls_key=cert), sqlite.app)


@pytest.mark.parametrize("settings", [{"tls": True}, {"behind_proxy": ("192.0.2.7",)}, {}])
def test_27_secure_headers(serving: Callable[..., Service], sqlite_place: str, settings: dict[str, Any]) -> None:
    more = TLS if settings.pop("tls", False) else settings
    service = serving(sqlite_place, **more)
    for path in ("/v1/datasets", "/health/live", "/nowhere", "/v1/nowhere", "/metrics"):
        headers = service.nobody.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
        assert ("strict-transport-security" in headers) == bool(more)
        assert not [name for name in headers if name.startswith("access-control") or name == "server"]


# -- the end -----------------------------------------------------------------------------------------------------------


def test_told_to_end_it_finishes_what_runs(process: Callable[..., Process], sqlite_place: str) -> None:
    tokens = prepared(sqlite_place)
    running = process(sqlite_place, "--price-seconds", "3")
    running.await_ready()
    with running.client(tokens["alice"]) as alice, httpx.Client(base_url=running.place) as other:
        body = {"plan": HOSTILE, "currency": "approx", "cap": "1", "delta": "1e-6"}
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(alice.post, "/v1/price", json=body)
            while not _begun(other, tokens["auditor"]):
                assert not asking.done()
            running.process.send_signal(signal.SIGTERM)
            found = asking.result()
    assert (found.status_code, found.json()["reason"]) == (422, "price-timeout")
    assert running.end() == 0
    _, *raised = running.log().split("Traceback (most recent call last):")
    # a worker that just begins in the place of the one that was killed says at length that its pool has ended
    assert not [text for text in raised if "multiprocessing/forkserver.py" not in text.splitlines()[1]]


def _begun(client: Any, token: str) -> bool:
    text = client.get("/metrics", headers={"authorization": f"Bearer {token}"}).text
    return "privloss_pricing 1.0" in text


def test_told_to_end_it_is_not_ready(sqlite: Service) -> None:
    sqlite.services.workers._first.result()  # it is ready when a worker is
    assert sqlite.nobody.get("/health/ready").json() == {"ready": True}
    Server(config(Settings(port=0), sqlite.app)).handle_exit(signal.SIGTERM, None)
    assert sqlite.nobody.get("/health/ready").status_code == 503
    assert sqlite.nobody.get("/health/live").status_code == 200
