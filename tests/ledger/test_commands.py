"""``privloss ledger ...`` as people call it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from privloss.cli.main import main


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
