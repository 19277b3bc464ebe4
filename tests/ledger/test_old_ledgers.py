"""A ledger written by privloss 0.1.0 goes on under this release: the same history, balances, keys and hashes."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.ledger import maintenance
from privloss.ledger.ledger import Ledger, RefusedError
from tests.ledger.old_ledger import BUDGETS, NAME, NOW, REQUESTS, asked, fill, said

DATA = Path(__file__).parents[1] / "data"
SAID: dict[str, Any] = json.loads((DATA / f"{NAME}.json").read_text())


@pytest.fixture
def old(tmp_path: Path) -> Ledger:
    """A copy of the file, as 0.1.0 left it."""
    shutil.copy(DATA / f"{NAME}.sqlite", tmp_path / "privloss.db")
    return Ledger(str(tmp_path / "privloss.db"), clock=lambda: NOW + 60)


def test_it_says_what_it_said(old: Ledger) -> None:
    assert SAID["problems"] == []
    found, then = json.loads(json.dumps(said(old))), json.loads(json.dumps(SAID))
    for name, status in found["status"].items():  # guarantees may become sharper, nothing else
        now, before = (each.pop("guarantee") for each in (status, then["status"][name]))
        assert now["delta"] == before["delta"]
        assert float(Fraction(now["epsilon"])) <= float(Fraction(before["epsilon"])) * (1 + 1e-12)
    assert found == then
    assert old.verify().head == SAID["head"]


def test_every_state_is_there(old: Ledger) -> None:
    with old.store.reading() as cursor:
        states = {key: found.state for key, found in old.store.everything(cursor).analyses.items()}
    last = {(): "RESERVED", ("start",): "STARTED", ("start", "commit"): "COMMITTED", ("void",): "VOIDED"}
    assert states == {key: last[moves] for key, (_, moves) in REQUESTS.items()}
    assert set(states.values()) == set(last.values())
    assert {old.status(name)["currency"] for name in BUDGETS} == {"pure", "approx", "zcdp", "rdp", "gdp"}


@pytest.mark.parametrize("key", REQUESTS)
def test_keys_are_known(old: Ledger, key: str) -> None:
    """The same request is answered again, and charged as it was then; another one is refused."""
    request = asked(REQUESTS[key][0])
    (event,) = [row["body"] for row in SAID["export"] if row["body"].get("key") == key and "charges" in row["body"]]
    if "traffic" in request["datasets"]:
        old.freeze("traffic", False)
    before = old.verify().events
    assert old.reserve(**request, key=key).charged == event["charges"]
    assert old.verify().events == before
    with pytest.raises(RefusedError, match="key-reused"):
        old.reserve(**{**request, "analyst": "somebody else"}, key=key)


def test_it_goes_on(old: Ledger) -> None:
    """New spends, and moves of what was open, follow on the old chain."""
    remaining = Fraction(old.status("census")["remaining"])
    charged = old.reserve("census", pl.Laplace(20), key="new", analyst="ann").charged["census"]["epsilon"]
    assert Fraction(old.status("census")["remaining"]) == remaining - Fraction(charged)
    with old.spend("clinic", pl.Gaussian(10), key="another"):
        pass
    for key, (_, moves) in REQUESTS.items():
        if "void" not in moves:
            old.start(key) if "start" not in moves else None
            assert old.commit(key).state == "COMMITTED"
    with pytest.raises(RefusedError, match="budget-exceeded"):
        old.reserve("census", cost="1.9", key="too much")
    with pytest.raises(RefusedError, match="frozen"):
        old.reserve("traffic", cost="0.1", key="frozen")
    audit = old.verify()
    assert audit.clean
    assert [json.loads(line) for line in old.export()][: SAID["events"]] == SAID["export"]


def test_a_backup_of_then_is_restored(tmp_path: Path) -> None:
    lines = [json.dumps(row, sort_keys=True, separators=(",", ":")) for row in SAID["export"]]
    (tmp_path / "backup.jsonl").write_text("\n".join(lines) + "\n")
    made = Ledger.create(str(tmp_path / "restored.db"))
    assert maintenance.restore(tmp_path / "backup.jsonl", made) == SAID["events"]
    assert made.verify().clean
    assert made.status("census") == {**SAID["status"]["census"], "frozen": True}


def test_the_same_requests_write_the_same_events(tmp_path: Path) -> None:
    """What is hashed has not changed: prices may have become sharper, nothing else."""
    made = Ledger.create(str(tmp_path / "again.db"), clock=lambda: NOW)
    fill(made)
    for row, line in zip(SAID["export"], made.export(), strict=True):
        then, now = row["body"], json.loads(line)["body"]
        for name, parts in then.pop("charges", {}).items():
            for part, amount in parts.items():
                charged = float(Fraction(now["charges"][name][part]))
                assert charged == pytest.approx(float(Fraction(amount)), rel=1e-6)
        now.pop("charges", None)
        assert (now.pop("token", None) is not None) == (then["kind"] == "started")  # new: who started
        assert now == then
