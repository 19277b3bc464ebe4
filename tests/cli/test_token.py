"""``privloss token`` and ``privloss serve`` on the command line; and the ledger's commands with a service's address."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from privloss.cli.main import main
from privloss.ledger.ledger import Ledger
from privloss.service.settings import Settings
from privloss.service.tokens import Tokens
from privloss.service.workers import Workers
from tests.client.real import Real

TOKEN = re.compile(r"pl_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")
Said = tuple[int, str, str]
Run = Callable[..., Said]


@pytest.fixture
def db(tmp_path: Path) -> str:
    place = str(tmp_path / "privloss.db")
    with_one = Ledger.create(place)
    with_one.add_dataset("census", adjacency="add-remove")
    with_one.set_budget("census", currency="pure", cap="1")
    with_one.close()
    return place


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> Said:
        with pytest.raises(SystemExit) as stop:
            main(list(words))
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return call


def _tokens(db: str) -> Any:
    ledger = Ledger(db)
    try:
        return Tokens(ledger.store).all()
    finally:
        ledger.close()


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_create_prints_a_token_once_and_keeps_a_hash(db: str, run: Run) -> None:
    said = run("token", "create", "--role", "steward", "--db", db)
    assert said[0] == 0
    assert TOKEN.fullmatch(said[1].strip())
    words = ("--role", "analyst", "--analyst", "Alice", "--dataset", "taxes", "--dataset", "census", "--days", "3")
    made = json.loads(run("token", "create", *words, "--note", "nightly job", "--json", "--db", db)[1])
    assert TOKEN.fullmatch(made["token"])
    assert made["id"] == made["token"][3:11]
    assert {name: made[name] for name in ("role", "analyst", "datasets", "note", "revoked")} == {
        "role": "analyst", "analyst": "alice", "datasets": ["census", "taxes"], "note": "nightly job", "revoked": None
    }  # fmt: skip
    listed = run("token", "list", "--db", db)[1] + run("token", "list", "--json", "--db", db)[1]
    secret = made["token"].rpartition("_")[2] if made["token"].count("_") == 2 else made["token"][12:]
    assert secret not in listed
    assert secret.encode() not in b"".join(path.read_bytes() for path in Path(db).parent.iterdir())


def test_days_are_counted_from_now(db: str, run: Run) -> None:
    run("token", "create", "--role", "auditor", "--db", db)
    run("token", "create", "--role", "auditor", "--days", "0.5", "--db", db)
    lives = sorted((each.expires - each.created) / 86400 for each in _tokens(db))
    assert lives == pytest.approx([0.5, 90])


def test_list_and_revoke(db: str, run: Run) -> None:
    made = json.loads(run("token", "create", "--role", "auditor", "--json", "--db", db)[1])
    assert re.search(rf"{made['id']} +auditor .* active", run("token", "list", "--db", db)[1])
    assert run("token", "revoke", made["id"], "--db", db)[:2] == (0, f"{made['id']}: revoked\n")
    (row,) = json.loads(run("token", "list", "--json", "--db", db)[1])
    assert row["id"] == made["id"]
    assert row["revoked"] is not None
    assert "revoked" in run("token", "list", "--db", db)[1]
    ledger = Ledger(db)
    assert Tokens(ledger.store).authenticate(made["token"]) is None
    ledger.close()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("create",), "--role"),
        (("create", "--role", "root"), "role"),
        (("create", "--role", "analyst"), "analyst"),
        (("create", "--role", "analyst", "--analyst", "alice"), "datasets: name those"),
        (("create", "--role", "steward", "--analyst", "alice"), "analyst"),
        (("create", "--role", "steward", "--dataset", "census"), "sees all"),
        (("create", "--role", "analyst", "--analyst", "a/b", "--all-datasets"), "'/'"),
        (("create", "--role", "auditor", "--days", "0"), "days"),
        (("create", "--role", "auditor", "--days", "nan"), "days"),
        (("revoke", "nobody"), "no such token"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(words: tuple[str, ...], says: str, db: str, run: Run) -> None:
    code, out, err = run("token", *words, "--db", db)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert _tokens(db) == []


@pytest.mark.parametrize("words", [("token", "list"), ("token", "create", "--role", "auditor"), ("serve",)])
def test_not_over_the_network(words: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVLOSS_TOKEN", "pl_x")
    monkeypatch.setattr("privloss.service.serve.to_stderr", lambda: None)
    code, _, err = run(*words, "--db", "https://localhost:1")
    assert code == 2
    assert "is kept" in err


# -- serve -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--host", "0.0.0.0"), "--tls-cert"),
        (("--host", "0.0.0.0", "--behind-proxy", "10.0.0.1"), "nobody has a token"),
        (("--tls-cert", "c.pem"), "certificate and its key"),
        (("--public-calculator", "--no-calculator"), "contradicts"),
        (("--port", "99999"), "port"),
        (("--rate", "0"), "rate"),
        (("--price-workers", "0"), "price_workers"),
        (("--price-seconds", "-1"), "price_seconds"),
    ],
)
def test_serve_refuses_what_would_not_be_safe(
    words: tuple[str, ...], says: str, db: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privloss.service.serve.to_stderr", lambda: None)
    code, out, err = run("serve", "--db", db, *words)
    assert (code, out) == (2, "")
    assert says in err


def test_serve_takes_every_flag(db: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []
    monkeypatch.setattr("privloss.service.serve.run", lambda *given: taken.append(given))
    flags = "--host 127.0.0.2 --port 0 --host-name a.org --host-name b.org --behind-proxy 10.0.0.1 --price-seconds 3"
    more = "--price-workers 1 --rate 5 --no-calculator --metrics-port 0"
    assert run("serve", "--db", db, *flags.split(), *more.split())[0] == 0
    ((place, settings, init),) = taken
    assert (place, init) == (db, False)
    assert settings == Settings(
        host="127.0.0.2", port=0, host_names=("a.org", "b.org"), behind_proxy=("10.0.0.1",), price_seconds=3.0,
        price_workers=1, rate=5.0, calculator="off", metrics_port=0,
    )  # fmt: skip
    monkeypatch.delenv("PRIVLOSS_LEDGER", raising=False)
    run("serve")
    assert taken[1][2] is True  # with no configuration at all a ledger is made where one would be looked for


# -- the ledger's commands ---------------------------------------------------------------------------------------------


@pytest.fixture
def service(db: str) -> Iterator[Real]:
    made = Real(Ledger(db, group=True), Workers(Settings()))
    yield made
    made.close()


def test_the_ledgers_commands_at_a_service(
    service: Real, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same words, another --db; the token comes from the environment and is printed by nothing."""
    tokens = {"steward": service.token("steward"), "alice": service.analyst(), "auditor": service.token("auditor")}
    printed = ""

    def at(who: str, *words: str) -> Said:
        nonlocal printed
        monkeypatch.setenv("PRIVLOSS_TOKEN", tokens[who])
        found = run("ledger", *words, "--db", service.place)
        printed += found[1] + found[2]
        return found

    assert at("steward", "dataset", "add", "taxes", "--adjacency", "add-remove", "--reason", "new")[0] == 0
    assert at("steward", "budget", "set", "taxes", "--currency", "pure", "--cap", "0.5")[0] == 0
    assert at("alice", "reserve", "census", "--cost", "1/11", "--key", "k")[1].startswith("k: RESERVED")
    assert at("alice", "reserve", "census", "--cost", "1", "--key", "more")[0] == 3
    assert at("alice", "start", "k")[0] == 0
    assert at("alice", "start", "k")[0] == 3
    assert at("alice", "commit", "k")[0] == 0
    assert at("alice", "quote", "taxes", "--cost", "0.1")[1].endswith("fits\n")
    assert "taxes" in at("auditor", "list")[1]
    assert json.loads(at("auditor", "status", "census", "--json")[1])["committed"] == "1/11"
    assert "alice/k" in at("auditor", "history", "census")[1]
    assert at("auditor", "odometer", "census")[0] == 0
    assert at("steward", "freeze", "taxes", "--reason", "an incident")[0] == 0
    code, out, _ = at("auditor", "verify")
    assert (code, out.startswith("clean: ")) == (0, True)
    lines = at("auditor", "export")[1].splitlines()
    (tmp_path / "backup").write_text("\n".join(lines) + "\n")  # an export is a backup
    restored = str(tmp_path / "restored.db")
    assert run("ledger", "restore", str(tmp_path / "backup"), "--db", restored)[0] == 0
    kept = Ledger(restored)
    assert kept.status("census")["committed"] == "1/11"
    kept.close()
    for words in (("doctor",), ("backup", "x"), ("init",)):
        code, _, err = at("steward", *words)
        assert (code, "is kept" in err) == (2, True), words
    code, _, err = at("alice", "freeze", "taxes", "--reason", "no")
    assert code == 2
    assert "may not freeze" in err
    assert not any(token in printed for token in tokens.values())
