"""``privloss ledger ...`` as people call it."""

from __future__ import annotations

import csv
import hmac
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from privloss.cli.main import main
from privloss.ledger import maintenance
from privloss.ledger.ledger import Ledger
from privloss.ledger.verify import verify
from tests.ledger.old_ledger import NAME
from tests.ledger.postgres import PASSWORD, USER, Server

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def run(place: str, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str, db: str | None = place) -> tuple[int, Any, str]:
        """Exit code, the JSON printed (or text), and what went to stderr."""
        where = ["--db", db] if db else []
        with pytest.raises(SystemExit) as stop:
            main(["ledger", *arguments, *where])
        out, err = capsys.readouterr()
        code = int(stop.value.code or 0)
        return code, json.loads(out) if "--json" in arguments and out else out, err

    return call


def test_a_whole_story(run: Any, tmp_path: Path) -> None:
    assert run("init", "--json")[1]["created"]
    assert run("dataset", "add", "census", "--adjacency", "add-remove", "--unit", "person", "--json")[0] == 0
    code, caps, _ = run("budget", "set", "census", "--currency", "pure", "--cap", "1", "--json")
    assert (code, caps["caps"], caps["guarantee"]) == (0, {"epsilon": "1"}, {"epsilon": "1", "delta": "0"})
    for i in range(11):
        code, found, _ = run("reserve", "census", "--cost", "1/11", "--key", f"k{i}", "--json")
        assert code == 0
        assert found["state"] == "RESERVED"
        assert found["charged"] == "1/11"
    assert found == {"key": "k10", "state": "RESERVED", "charged": "1/11", "remaining": "0"}
    code, found, _ = run("reserve", "census", "--cost", "1e-320", "--key", "more", "--json")
    assert code == 3
    assert found["refused"] == "budget-exceeded"
    assert (found["remaining"], found["shortfall"]) == ("0", found["charged"])
    assert run("start", "k0", "--json")[1]["state"] == "STARTED"
    assert run("commit", "k0", "--json")[1]["state"] == "COMMITTED"
    assert run("void", "k1", "--json")[1]["state"] == "VOIDED"
    assert run("void", "k0", "--json")[0] == 3
    status = run("status", "census", "--json")[1]
    assert {k: status[k] for k in ("dataset", "currency", "cap", "committed", "reserved", "remaining")} == {
        "dataset": "census", "currency": "pure", "cap": "1",
        "committed": "1/11", "reserved": "9/11", "remaining": "1/11",
    }  # fmt: skip
    assert status["guarantee"] == {"epsilon": "1", "delta": "0"}
    plan = tmp_path / "plan.json"
    plan.write_text('{"steps": [{"mechanism": "laplace", "scale": 100.0, "count": 2}]}')
    quoted = run("quote", "census", "--plan", str(plan), "--json")[1]
    assert quoted["census"]["fits"]
    code, found, _ = run("reserve", "census", "--plan", str(plan), "--key", "plan", "--json")
    assert (code, found["charged"]) == (0, quoted["census"]["charged"]["epsilon"])
    assert [e["kind"] for e in run("history", "census", "--json")[1]][:3] == ["account", "budget", "reserved"]
    assert run("freeze", "census", "--json")[1] == {"dataset": "census", "frozen": True}
    assert run("reserve", "census", "--cost", "0.01", "--key", "f", "--json")[1]["refused"] == "frozen"
    assert run("doctor", "--json")[0] == 1
    assert run("unfreeze", "census", "--json")[0] == 0
    assert run("doctor")[0] == 0
    (tmp_path / "secret").write_text("s")
    code, found, _ = run("verify", "--json", "--secret", str(tmp_path / "secret"))
    assert (code, found["clean"]) == (0, True)
    assert len(found["signed"]["hmac-sha256"]) == 64
    lines = run("export")[1].splitlines()
    last = json.loads(lines[-1])
    assert found["signed"]["ends"][last["chain"]] == [last["seq"], last["hash"]]
    assert run("backup", str(tmp_path / "b.jsonl"), "--json")[1]["events"] == len(lines)
    other = f"sqlite:///{tmp_path}/other.db"
    assert run("restore", str(tmp_path / "b.jsonl"), "--json", db=other)[1] == {"events": len(lines), "frozen": True}
    assert run("status", "census", "--json", db=other)[1]["frozen"] is True


def test_odometer(run: Any) -> None:
    run("init")
    for name, budget in (("p", ("pure", "--cap", "1")), ("z", ("zcdp", "--cap", "0.5", "--delta", "1e-6"))):
        run("dataset", "add", name, "--adjacency", "add-remove")
        run("budget", "set", name, "--currency", *budget)
        for command in (("reserve", name, "--cost", "0.25", "--key", name), ("start", name), ("commit", name)):
            assert run(*command)[0] == 0
    code, found, _ = run("odometer", "p", "--json")
    assert (code, found["dataset"], found["epsilon"], found["delta"]) == (0, "p", 0.25, 0.0)
    assert "at most 0.25, surely" in run("odometer", "p")[1]
    code, found, _ = run("odometer", "z", "--delta", "1e-6", "--json")
    assert (code, found["delta"]) == (0, 1e-6)
    assert 0.25 + 2 * (0.25 * 13.8) ** 0.5 < found["epsilon"] < 6
    code, _, err = run("odometer", "z")
    assert (code, "failure probability" in err) == (2, True)


def test_texts_for_people(run: Any) -> None:
    run("init")
    run("dataset", "add", "d", "--adjacency", "add-remove")
    code, out, _ = run("budget", "set", "d", "--currency", "rdp", "--cap", "3", "--delta", "1e-6")
    assert code == 0
    assert "order 10 <=" in out  # the derived caps are shown
    assert "Feldman" in out
    run("dataset", "add", "z", "--adjacency", "add-remove")
    assert "guarantees" in run("budget", "set", "z", "--currency", "zcdp", "--cap", "0.5", "--delta", "1e-6")[1]
    assert "fits" in run("quote", "z", "--cost", "0.1")[1]
    assert "RESERVED" in run("reserve", "z", "--cost", "0.1", "--key", "a")[1]
    code, out, _ = run("reserve", "z", "--cost", "0.45", "--key", "b")
    assert (code, "short by 0.05" in out) == (3, True)
    assert "remaining" in run("status", "z")[1]
    assert re.search(r"\n +\d+  20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ  reserved ", run("history", "z")[1])
    assert "clean" in run("verify")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("status", "nope"), 2, "not in this ledger"),
        (("reserve", "d", "--key", "k"), 2, "exactly one"),
        (("reserve", "d", "--key", "k", "--cost", "1", "--plan", "/no/plan.json"), 2, "cannot be read"),
        (("reserve", "d", "--key", "k", "--cost", "nan"), 2, "cost = 'nan'"),
        (("reserve", "d", "--key", "k", "--cost", "-1"), 2, "cost"),
        (("reserve", "d", "--key", "k", "--cost", "1/0"), 2, "denominator 0"),
        (("reserve", "d", "--key", "", "--cost", "1"), 2, "key"),
        (("reserve", "d", "--key", "k", "--cost", "1", "--lease", "0"), 2, "lease"),
        (("dataset", "add", "x", "--adjacency", "swap"), 2, "adjacency"),
        (("budget", "set", "d", "--currency", "gold", "--cap", "1"), 2, "currency"),
        (("budget", "set", "d", "--currency", "exact", "--cap", "1"), 2, "not a valid filter"),
        (("restore", "/no/backup"), 2, "readable"),
        (("verify", "--secret", "/no/secret"), 2, "--secret"),
        (("verify", "--head", "/no/head"), 2, "needs --secret"),
        (("verify", "--secret", __file__, "--head", "/no/head"), 2, "cannot be read"),
        (("verify", "--secret", __file__, "--head", __file__), 2, "--head"),
        (("reserve", "d", "--key", "k", "--cost", "1", "--labels", "grant"), 2, "name=text"),
        (("reserve", "d", "--key", "k", "--cost", "1", "--actor", ""), 2, "actor"),
        (("dataset", "add", "x", "--adjacency", "add-remove", "--blocks", "hour"), 2, "blocks"),
        (("budget", "set", "d", "--currency", "pure", "--cap", "1", "--every", "hour"), 2, "every"),
        (("history", "d", "--since", "yesterday"), 2, "--since"),
        (("history", "d", "--kind", "gone"), 2, "--kind"),
        (("history", "d", "--state", "gone"), 2, "--state"),
        (("history", "d", "--csv", "--json"), 2, "one of them"),
        (("history", "d", "--last", "0"), 2, "last"),
    ],
)
def test_bad_input(run: Any, arguments: tuple[str, ...], code: int, says: str) -> None:
    run("init")
    run("dataset", "add", "d", "--adjacency", "add-remove")
    run("budget", "set", "d", "--currency", "pure", "--cap", "1")
    found, _, err = run(*arguments)
    assert found == code
    assert says in err
    assert err.count("\n") == 1


def test_no_ledger_and_the_environment(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run("status", "d", db=None)
    assert code == 2
    assert "ledger init" in err
    monkeypatch.setenv("PRIVLOSS_LEDGER", str(tmp_path / "mine.db"))
    assert run("init", db=None)[0] == 0
    assert (tmp_path / "mine.db").exists()


# -- groups, periods, blocks, quotas -----------------------------------------------------------------------------------

_HOSPITAL = (
    ("init",),
    ("group", "add", "hospital", "--adjacency", "add-remove", "--unit", "person", "--reason", "one promise"),
    ("dataset", "add", "clinic", "--adjacency", "add-remove", "--unit", "person", "--parent", "hospital"),
    ("dataset", "add", "visits", "--adjacency", "add-remove", "--unit", "person", "--blocks", "month"),
    ("budget", "set", "hospital", "--currency", "pure", "--cap", "2"),
    ("budget", "set", "clinic", "--currency", "pure", "--cap", "1", "--reason", "the board's decision"),
    ("budget", "set", "clinic", "--currency", "pure", "--cap", "0.9", "--every", "year"),
    ("budget", "set", "clinic", "--currency", "pure", "--cap", "0.8", "--analyst", "Ann Lee"),
    ("budget", "set", "visits", "--currency", "pure", "--cap", "1/3"),
)  # fmt: skip


@pytest.fixture
def hospital(run: Any) -> Any:
    for command in _HOSPITAL:
        code, out, err = run(*command)
        assert (code, err) == (0, ""), out
    return run


def test_a_hospital(hospital: Any) -> None:
    run = hospital
    ann = ("--analyst", "ann  LEE")
    code, found, _ = run("reserve", "clinic", "--cost", "1/11", "--key", "a", *ann, "--json")
    assert (code, found["charged"]) == (0, {"clinic": {"epsilon": "1/11"}, "hospital": {"epsilon": "1/11"}})
    assert run("reserve", "clinic", "--cost", "0.1", "--key", "x", "--json")[1]["refused"] == "analyst"
    assert run("reserve", "clinic", "--cost", "0.75", "--key", "x", *ann, "--json")[1]["refused"] == "quota-exceeded"
    assert run("reserve", "clinic", "--cost", "0.85", "--key", "x", *ann, "--json")[1]["refused"] == "period-exceeded"
    assert run("reserve", "visits", "--cost", "0.1", "--key", "x", "--json")[1]["refused"] == "blocks"
    months = ("--blocks", "2026-01..2026-03")
    code, found, _ = run("reserve", "visits", "--cost", "0.1", "--key", "v", *months, "--json")
    assert (code, found["charged"], found["remaining"]) == (0, "0.1", "7/30")
    more = ("--blocks", "2026-03", "--blocks", "2026-05..2026-06")
    assert run("reserve", "visits", "--cost", "0.1", "--key", "w", *more, "--json")[1]["remaining"] == "2/15"
    quoted = run("quote", "visits", "--cost", "0.1", "--blocks", "2026-03", "--json")[1]["visits"]
    assert (quoted["fits"], quoted["remaining"]) == (True, {"epsilon": "1/30"})
    assert not run("quote", "clinic", "--cost", "0.1", "--json")[1]["clinic"]["fits"]
    assert "does NOT fit (analyst" in run("quote", "clinic", "--cost", "0.1")[1]
    assert run("quote", "clinic", "--cost", "0.1", *ann, "--json")[1]["clinic"]["fits"]
    found = run("list", "--json")[1]
    assert [row["dataset"] for row in found] == ["clinic", "hospital", "visits"]
    listed = run("list")[1].splitlines()
    assert listed[1].split() == ["clinic", "dataset", "hospital", "pure", "1", "0", "0.0909091", "0.90909"]
    assert listed[2].split()[:2] == ["hospital", "group"]
    assert run("freeze", "hospital", "--reason", "an audit")[0] == 0
    assert run("reserve", "clinic", "--cost", "0.1", "--key", "f", *ann, "--json")[1]["refused"] == "frozen"
    assert run("list")[1].splitlines()[2].endswith("frozen")
    assert run("verify")[0] == 0


def test_one_request_from_python_and_from_here(hospital: Any, place: str) -> None:
    """A key asked for on the command line is the same request in Python."""
    assert hospital("reserve", "visits", "--cost", "0.1", "--key", "v", "--blocks", "2026-01..2026-03")[0] == 0
    Ledger(place).reserve("visits", cost="0.1", key="v", blocks="2026-01..2026-03")


def test_amounts_for_people_are_on_the_safe_side(hospital: Any) -> None:
    hospital("reserve", "visits", "--cost", "1/11", "--key", "v", "--blocks", "2026-01")
    text = hospital("status", "visits")[1]
    assert re.search(r"^cap +0\.333333$", text, re.MULTILINE)
    assert "2026-01  committed 0, reserved 0.0909091, remaining 0.242424" in text  # 0.09090909..., 0.24242424...
    out = hospital("reserve", "clinic", "--cost", "1/11", "--key", "a", "--analyst", "ann lee")[1]
    charged, left = "clinic 0.0909091; hospital 0.0909091", "clinic 0.90909; hospital 1.9090"
    assert out.startswith(f"a: RESERVED, charged {charged}, remaining {left}")
    assert "rho" not in hospital("status", "clinic")[1]
    assert "spent 0.0909091, cap 0.8, remaining 0.70909" in hospital("status", "clinic")[1]


# -- who and why; histories --------------------------------------------------------------------------------------------


def test_history_says_who_why_and_what(hospital: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = hospital
    plan = tmp_path / "plan.json"
    plan.write_text('{"steps": [{"mechanism": "laplace", "scale": 100.0, "count": 2}]}')
    said = ("--label", "=cmd()", "--labels", "grant=R01", "--labels", "site=north", "--reason", "asked by mail")
    asked = ("--plan", str(plan), "--key", "a", "--analyst", "ann lee", "--actor", "steward")
    assert run("reserve", "clinic", *asked, *said)[0] == 0
    monkeypatch.setenv("PRIVLOSS_ACTOR", "the night job")
    for move in ("start", "commit"):
        assert run(move, "a", "--reason", f"{move} it")[0] == 0
    assert run("reserve", "clinic", "--cost", "2", "--key", "b", "--analyst", "ann lee")[0] == 3
    assert run("reserve", "clinic", "--cost", "0.1", "--key", "c", "--analyst", "ann lee")[0] == 0
    found = run("history", "clinic", "--json")[1]
    assert [e["kind"] for e in found[-5:]] == ["reserved", "started", "committed", "refused", "reserved"]
    assert [e["actor"] for e in found[-5:]] == ["steward", *["the night job"] * 4]
    assert found[-5]["labels"] == {"grant": "R01", "site": "north"}
    assert [e["reason"] for e in found[-4:-2]] == ["start it", "commit it"]
    text = run("history", "clinic")[1]
    assert text.splitlines()[0].split()[:4] == ["seq", "at", "kind", "key"]
    assert re.search(r"reserved +a +ann lee +0\.0200001 +2 x laplace\(100\) +=cmd\(\) +grant=R01, site=north", text)
    assert re.search(r"refused +b +ann lee +2 +reserve: budget-exceeded, short by 1\.02001 ", text)
    rows = list(csv.DictReader(io.StringIO(run("history", "clinic", "--csv")[1])))
    assert len(rows) == len(found)
    assert (rows[-5]["label"], rows[-5]["actor"], rows[-5]["reason"]) == ("'=cmd()", "steward", "asked by mail")


def test_history_can_be_narrowed(hospital: Any) -> None:
    run = hospital
    for key, moves in (("a", ("start", "commit")), ("b", ("void",)), ("c", ())):
        assert run("reserve", "clinic", "--cost", "0.1", "--key", key, "--analyst", "ann lee")[0] == 0
        for move in moves:
            assert run(move, key)[0] == 0
    run("reserve", "clinic", "--cost", "5", "--key", "d", "--analyst", "bob")

    def keys(*wanted: str) -> list[str]:
        return [e.get("key", e["kind"]) for e in run("history", "clinic", *wanted, "--json")[1]]

    assert keys("--last", "3") == ["b", "c", "d"]
    assert keys("--kind", "refused") == ["d"]
    assert keys("--analyst", "ANN lee", "--kind", "voided") == ["b"]
    assert keys("--analyst", "bob") == ["d"]
    assert keys("--key", "a") == ["a"] * 3
    assert keys("--state", "reserved") == ["c"]
    assert keys("--state", "COMMITTED", "--kind", "reserved") == ["a"]
    assert keys("--since", "2999-01-01") == []
    assert len(keys("--until", "2999-01-01")) == len(keys())
    assert keys("--until", "2000-01-01T00:00") == []
    assert run("history", "clinic", "--since", "2999-01-01")[1] == "nothing\n"


def test_a_table_on_a_terminal(hospital: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same cells; what people have typed is no markup."""
    hospital("reserve", "clinic", "--cost", "2", "--key", "b", "--analyst", "ann lee", "--reason", "[red]x[/red]")
    monkeypatch.setattr("privloss.cli.ledger_text._on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "300")
    text = hospital("history", "clinic", "--kind", "refused")[1]
    assert "reserve: budget-exceeded, short by 1" in text
    assert "seq" in text.splitlines()[0]
    monkeypatch.setenv("COLUMNS", "60")
    assert max(len(line) for line in hospital("history", "clinic")[1].splitlines()) <= 60


# -- heads -------------------------------------------------------------------------------------------------------------


def test_a_head_kept_elsewhere(hospital: Any, tmp_path: Path) -> None:
    run, secret, head = hospital, tmp_path / "secret", tmp_path / "head.json"
    secret.write_text("s\n")
    backup = tmp_path / "before.jsonl"
    assert run("backup", str(backup))[0] == 0
    assert run("reserve", "clinic", "--cost", "0.1", "--key", "a", "--analyst", "ann lee")[0] == 0
    code, found, _ = run("verify", "--secret", str(secret), "--json")
    check = ("verify", "--secret", str(secret), "--head", str(head))
    run("void", "a")  # history goes on
    for kept in (found, found["signed"]):
        head.write_text(json.dumps(kept))
        code, answer, _ = run(*check, "--json")
        assert (code, answer["clean"], answer["goes_on_from_head"], answer["problems"]) == (0, True, True, [])
        assert answer["signed"]["events"] > kept["events"]
    assert "goes on from the head" in run(*check)[1]
    older = f"sqlite:///{tmp_path}/older.db"  # a ledger that is clean, and has forgotten
    assert run("restore", str(backup), db=older)[0] == 0
    code, answer, _ = run(*check, "--json", db=older)
    assert (code, answer["clean"], answer["goes_on_from_head"]) == (1, True, False)
    assert run(*check, db=older)[:2] == (1, "".join(f"BAD: {text}\n" for text in answer["problems"]))
    secret.write_text("another")
    assert "not signed with this secret" in run(*check)[1]
    head.write_text(json.dumps({**found["signed"], "ends": {}}))
    secret.write_text("s")
    assert run(*check)[0] == 1


def test_a_head_of_the_first_release(run: Any, tmp_path: Path) -> None:
    said = json.loads((DATA / f"{NAME}.json").read_text())
    shutil.copy(DATA / f"{NAME}.sqlite", tmp_path / "old.db")
    (tmp_path / "secret").write_text("s")
    check = ("verify", "--secret", str(tmp_path / "secret"), "--head", str(tmp_path / "head.json"))

    def kept(head: str) -> None:
        signature = hmac.new(b"s", f"{said['events']}:{head}".encode(), "sha256").hexdigest()
        signed = {"events": said["events"], "head": head, "hmac-sha256": signature}
        (tmp_path / "head.json").write_text(json.dumps({"clean": True, "head": head, "signed": signed}))

    kept(said["head"])
    assert run(*check, db=str(tmp_path / "old.db"))[0] == 0
    kept("0" * 64)
    code, out, _ = run(*check, db=str(tmp_path / "old.db"))
    assert (code, "which the head has seen, is another one" in out) == (1, True)


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_database_that_does_not_answer(run: Any, server: Server) -> None:
    for address in (
        "postgresql://zoe:s3cret@127.0.0.1:1/none",
        "host=127.0.0.1 port=1 user=zoe password=s3cret dbname=none",
    ):
        code, _, err = run("status", "d", db=address)
        assert code == 1
        assert "cannot be reached" in err
        assert "postgresql://127.0.0.1:1/none" in err
        assert "s3cret" not in err
        assert "zoe" not in err
        assert err.count("\n") == 1
    code, _, err = run("status", "d", db=server.url(password="wr0ng"))
    assert (code, "wrong user or password" in err, "wr0ng" in err) == (1, True, False)


def test_init_says_where_without_a_password(run: Any, place: str) -> None:
    for out in (run("init")[1], json.dumps(run("init", "--json")[1])):
        assert PASSWORD not in out
        assert f"{USER}:" not in out
        assert place.rsplit("/", 1)[1] in out


def test_a_file_that_is_no_backup_makes_no_ledger(run: Any, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    assert run("restore", str(tmp_path / "text"), db=str(tmp_path / "new.db"))[0] == 2
    assert not (tmp_path / "new.db").exists()


def test_long_work_says_how_far_it_is(hospital: Any, place: str, tmp_path: Path) -> None:
    ledger, seen = Ledger(place), []

    def step(done: int, of: int) -> None:
        seen.append((done, of))

    events = verify(ledger.store, step).events
    maintenance.backup(ledger, tmp_path / "b.jsonl", step)
    maintenance.restore(tmp_path / "b.jsonl", Ledger.create(str(tmp_path / "new.db")), step)
    assert seen == [(0, events), (0, events), (0, 0), (0, events)]


def test_a_budget_at_some_order(run: Any) -> None:
    """`--filter` of the command line: what it may be, and what it then promises."""
    run("init")
    run("dataset", "add", "d", "--adjacency", "add-remove")
    asked = ("budget", "set", "d", "--currency", "rdp", "--cap", "3", "--delta", "1e-6")
    code, found, _ = run(*asked, "--filter", "some", "--json")
    assert code == 0
    assert len(found["caps"]) == 19
    assert found["caps"]["order 1.25"] == "0"
    status = run("status", "d", "--json")[1]
    assert status["filter"].startswith("at some order of the budget")
    assert status["guarantee"] == {"epsilon": "3", "delta": "0.000001"}
    assert "some order" in run("status", "d")[1]
    assert run("budget", "set", "d", "--currency", "pure", "--cap", "3", "--filter", "some")[0] == 2
    assert run(*asked, "--filter", "any")[0] == 2
