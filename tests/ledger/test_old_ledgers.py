"""A ledger written by privloss 0.1.0 goes on under this release: the same history, balances, keys and hashes."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.ledger import maintenance
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.stores.base import LedgerError
from privloss.ledger.stores.rows import GENESIS, canonical, chain
from privloss.ledger.verify import check_head, signed_head
from tests.ledger.forging import edited, rewritten
from tests.ledger.old_ledger import BUDGETS, NAME, NOW, REQUESTS, asked, fill, said

DATA = Path(__file__).parents[1] / "data"
SAID: dict[str, Any] = json.loads((DATA / f"{NAME}.json").read_text())


@pytest.fixture
def old(tmp_path: Path) -> Ledger:
    """A copy of the file, as 0.1.0 left it."""
    shutil.copy(DATA / f"{NAME}.sqlite", tmp_path / "privloss.db")
    return Ledger(str(tmp_path / "privloss.db"), clock=lambda: NOW + 60)


def _then(status: dict[str, Any]) -> dict[str, Any]:
    """A status as 0.1.0 wrote it: without what analysts have spent."""
    people: dict[str, dict[str, dict[str, str]]] = status.get("analysts", {})
    for parts in people.values():
        for amounts in parts.values():
            assert Fraction(amounts.pop("spent")) == Fraction(amounts["cap"]) - Fraction(amounts["remaining"])
    return status


def test_it_says_what_it_said(old: Ledger) -> None:
    assert SAID["problems"] == []
    found, then = json.loads(json.dumps(said(old))), json.loads(json.dumps(SAID))
    for name, status in found["status"].items():  # guarantees may become sharper, nothing else
        now, before = (each.pop("guarantee") for each in (status, then["status"][name]))
        assert now["delta"] == before["delta"]
        assert float(Fraction(now["epsilon"])) <= float(Fraction(before["epsilon"])) * (1 + 1e-12)
        assert _then(status) == then["status"][name]
    assert found["problems"] == []
    assert found["export"][: SAID["events"]] == SAID["export"]
    opened = found["export"][SAID["events"] :]  # the chain of each dataset begins at the end of the old one
    assert [row["chain"] for row in opened] == sorted(BUDGETS)
    after = {"seq": SAID["events"], "hash": SAID["head"]}
    assert all(row["body"]["after"] == after for row in opened)
    assert old.verify().ends[""] == (SAID["events"], SAID["head"])


SECRET = b"kept elsewhere"


def _old_head() -> dict[str, Any]:
    """As 0.1.0 signed it."""
    text = f"{SAID['events']}:{SAID['head']}".encode()
    signature = hmac.new(SECRET, text, hashlib.sha256).hexdigest()
    return {"events": SAID["events"], "head": SAID["head"], "hmac-sha256": signature}


def test_its_signed_head_checks(old: Ledger) -> None:
    assert check_head(old.store, _old_head(), SECRET) == []
    old.freeze("census")  # what came later does not matter
    assert check_head(old.store, _old_head(), SECRET) == []
    assert check_head(old.store, _old_head(), b"another") == ["the head was not signed with this secret"]
    assert check_head(old.store, {"events": 1}, SECRET)[0].startswith("the file holds no signed head")
    with old.store.transaction() as cursor:
        cursor.execute("DROP TRIGGER event_no_update")
        cursor.execute("UPDATE event SET hash = ? WHERE chain = '' AND seq = ?", ["0" * 64, SAID["events"]])
    assert "is another one" in check_head(old.store, _old_head(), SECRET)[0]


def test_a_head_of_then_checks_on_a_restored_backup(old: Ledger, tmp_path: Path) -> None:
    maintenance.backup(old, tmp_path / "backup.jsonl")
    made = Ledger.create(str(tmp_path / "restored.db"))
    maintenance.restore(tmp_path / "backup.jsonl", made)
    assert check_head(made.store, _old_head(), SECRET) == []
    assert check_head(made.store, signed_head(old.verify(), SECRET), SECRET) == []
    assert made.verify().clean


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("UPDATE balance SET reserved = '0/1', committed = '0/1', total_units = 0", "balances of"),
        ("UPDATE analysis SET state = 'VOIDED' WHERE key = 'two at once'", "key 'two at once' is not"),
        ("UPDATE dataset SET frozen = 0", "'traffic' is not as its events have it"),
    ],
)
def test_damage_is_not_healed_by_the_upgrade(tmp_path: Path, sql: str, says: str) -> None:
    shutil.copy(DATA / f"{NAME}.sqlite", tmp_path / "privloss.db")
    with sqlite3.connect(tmp_path / "privloss.db") as raw:
        raw.execute(sql)
    for _ in range(2):  # nothing was changed by the first attempt
        with pytest.raises(LedgerError, match=f"cannot be upgraded: .*{says}"):
            Ledger(str(tmp_path / "privloss.db"))


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
    if REQUESTS[key][1] == ("void",):  # given back: its key is used up
        with pytest.raises(RefusedError, match="VOIDED"):
            old.reserve(**request, key=key)
    else:
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
        old.reserve("census", cost="1.9", key="too much", analyst="ann")
    with pytest.raises(RefusedError, match="quota-exceeded"):
        old.reserve("census", cost="0.4", key="too much", analyst=" ANN ")
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
    assert _then(made.status("census")) == {**SAID["status"]["census"], "frozen": True}
    assert check_head(made.store, _old_head(), SECRET) == []
    maintenance.backup(made, tmp_path / "again.jsonl")
    assert maintenance.check_backup(tmp_path / "again.jsonl") == made.verify().events


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"census":{"epsilon":"1/11"}', '"census":{"epsilon":"3"}', "exceeds the cap in epsilon"),
        ('"kind":"voided"', '"kind":"opened"', "event"),
        ('"key":"given back","kind":"voided"', '"key":"typed","kind":"voided"', "key 'typed' is voided, but it was"),
    ],
)
def test_a_backup_of_then_that_was_rewritten(tmp_path: Path, old: str, new: str, says: str) -> None:
    """Its rules about quotas were others, and are not decided again; its caps and the order of its events are."""
    previous, lines = GENESIS, []
    for row in SAID["export"]:
        body = canonical(row["body"]).replace(old, new)
        link = chain(previous, body)
        lines.append(canonical({**row, "body": json.loads(body), "previous": previous, "hash": link}))
        previous = link
    (tmp_path / "backup.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(LedgerError, match=says):
        maintenance.restore(tmp_path / "backup.jsonl", Ledger.create(str(tmp_path / "restored.db")))


def test_a_chain_begins_at_the_end_of_the_old_one(old: Ledger, tmp_path: Path) -> None:
    old.close()
    after = {"seq": SAID["events"], "hash": "0" * 64}
    rewritten(tmp_path / "privloss.db", edited("letters", "opened", lambda event: {**event, "after": after}))
    problem = Ledger(str(tmp_path / "privloss.db")).verify().problems[0]
    assert problem == "event 1 of 'letters': does not begin at the end of the older chain"


def test_the_same_requests_are_hashed_the_same(tmp_path: Path) -> None:
    """What a key was used for is still known: prices may have become sharper, nothing else."""
    made = Ledger.create(str(tmp_path / "again.db"), clock=lambda: NOW)
    fill(made, quotas={})  # beneath quotas everybody must be named today
    lines = [json.loads(line)["body"] for line in made.export()]
    events = {(e["kind"], e["key"]): e for e in lines if "key" in e}
    for row in SAID["export"]:
        then = row["body"]
        if "key" not in then:
            continue
        now = events[(then["kind"], then["key"])]
        for name, parts in then.pop("charges", {}).items():
            for part, amount in parts.items():
                charged = float(Fraction(now["charges"][name][part]))
                assert charged == pytest.approx(float(Fraction(amount)), rel=1e-6)
        assert then.items() <= now.items()
        assert ("run" in now) == (then["kind"] == "started")  # new: who started
