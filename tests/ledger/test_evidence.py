"""Audits in a ledger: attached to datasets and keys, shown, counted, checked; no balance changes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.audit import record
from privloss.ledger import maintenance
from privloss.ledger.ledger import Ledger
from privloss.ledger.stores.base import LedgerError
from tests.ledger.forging import appended, edited, rewritten

DAY = "2026-11-17"


def audited(tp: int, claim: Any = 1.0) -> pl.audit.Audit:
    return pl.audit.counts(
        tp=tp, positives=20, fp=20 - tp, negatives=20, delta=0.0, trials="independent", claim=claim,
        method="clopper-pearson",
    )  # fmt: skip


REFUTED, HELD, BARE = audited(19), audited(12), audited(12, None)


def filled(place: str) -> Ledger:
    """d and e under g; key a is open on d, key c committed on both."""
    ledger = Ledger.create(place, actor="ann")
    ledger.add_group("g", adjacency="add-remove")
    ledger.set_budget("g", currency="pure", cap="2")
    for name in "de":
        ledger.add_dataset(name, adjacency="add-remove", parent="g")
        ledger.set_budget(name, currency="pure", cap="1")
    ledger.reserve("d", cost="0.25", key="a")
    with ledger.spend(["d", "e"], cost="0.5", key="c"):
        pass
    return ledger


def test_audits_stand_in_the_history_and_move_nothing(place: str) -> None:
    ledger = filled(place)
    before = {name: ledger.status(name) for name in "deg"}
    told = ledger.attach_audit(REFUTED, key="c", date=DAY, reason="the yearly review", labels={"by": "red team"})
    text = json.dumps(REFUTED.to_json(), sort_keys=True, separators=(",", ":"))
    assert told["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert (told["verdict"], told["date"], told["claim"]) == ("refuted", DAY, 1.0)
    assert told["epsilon"] == REFUTED.epsilon
    ledger.attach_audit(HELD.to_json(), key="a", date=DAY)
    ledger.attach_audit(BARE, dataset="d", date=DAY)
    for name, seen in {"d": (3, 1), "e": (1, 1), "g": (2, 1)}.items():  # c and a are charged to the group as well
        status = ledger.status(name)
        assert status.pop("audits") == dict(zip(("attached", "refuted"), seen, strict=True))
        assert status == before[name]
        assert len(ledger.history(name, kind="audited")) == seen[0]
    (event,) = ledger.history("e", kind="audited")
    assert (event["audit"], event["key"]) == (told, "c")
    assert (event["actor"], event["reason"]) == ("ann", "the yearly review")
    found = ledger.verify()
    assert (found.clean, found.attached, found.refuted) == (True, 3, 1)
    ledger.commit(ledger.start("a").key)  # one more after it was closed
    ledger.attach_audit(HELD, key="a")
    ledger.freeze("d")
    ledger.attach_audit(REFUTED, dataset="d")  # evidence is why it is frozen
    found = ledger.verify()
    assert (found.problems, found.attached, found.refuted) == ((), 5, 2)


def test_asked_twice_in_a_row_it_is_attached_once(place: str) -> None:
    ledger = filled(place)
    for _ in range(2):
        ledger.attach_audit(REFUTED, key="c", date=DAY)
    assert ledger.status("e")["audits"] == {"attached": 1, "refuted": 1}
    ledger.attach_audit(HELD, dataset="e")
    ledger.attach_audit(REFUTED, dataset="e")
    assert ledger.status("e")["audits"] == {"attached": 3, "refuted": 2}
    assert ledger.verify().clean


def test_a_backup_has_them(place: str, tmp_path: Path) -> None:
    ledger = filled(place)
    ledger.attach_audit(REFUTED, key="c")
    ledger.attach_audit(HELD, key="a")
    maintenance.backup(ledger, tmp_path / "backup")
    other = Ledger.create(str(tmp_path / "other.db"))
    maintenance.restore(tmp_path / "backup", other)
    assert other.status("g")["audits"] == {"attached": 2, "refuted": 1}
    found = other.verify()
    assert (found.clean, found.attached, found.refuted) == (True, 2, 1)
    assert other.history("e", kind="audited")[0]["audit"]["verdict"] == "refuted"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    ledger = filled(str(tmp_path / "privloss.db"))
    ledger.attach_audit(REFUTED, key="c", date=DAY)
    ledger.attach_audit(HELD, key="a", date=DAY)
    ledger.attach_audit(HELD, dataset="d", date=DAY)
    ledger.close()
    return tmp_path / "privloss.db"


def problem(path: Path) -> str:
    ledger = Ledger(str(path))
    found = ledger.verify()
    ledger.close()
    return "; ".join(found.problems)


def test_a_forged_verdict_is_noticed(file: Path) -> None:
    """The counts of the tables are those of the events; a verdict and its p-value must agree."""

    def milder(event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "audit": {**event["audit"], "verdict": "not refuted"}}

    rewritten(file, lambda rows: rows)
    assert problem(file) == ""
    rewritten(file, edited("c", "audited", milder))
    assert "contradict the verdict" in problem(file)


def test_a_verdict_forged_with_its_p_value_is_not_what_the_tables_say(file: Path) -> None:
    def milder(event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "audit": {**event["audit"], "verdict": "not refuted", "p_value": 0.5}}

    rewritten(file, edited("c", "audited", milder))
    assert "balances or settings" in problem(file)


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"accounts": ["d"], "key": "c"}, "chains of what key 'c' was charged to"),  # it was charged to e and g as well
        ({"accounts": ["d"], "key": "a"}, "is not what the rules decide"),  # and a to g
        ({"accounts": ["d", "g"], "key": "b"}, "key 'b' is audited, but it was unknown"),
        ({"accounts": ["d"], "dataset": "d"}, "is not what the rules decide"),  # attached twice in a row
        ({"accounts": ["d", "e"], "dataset": "e"}, "is not what the rules decide"),
        ({"accounts": ["d"], "dataset": "d", "audit": {}}, "its facts must be"),
    ],
)
def test_an_audit_where_it_cannot_stand(file: Path, event: dict[str, Any], says: str) -> None:
    ledger = Ledger(str(file))
    audit = ledger.history("d", kind="audited")[-1]["audit"]
    ledger.close()
    appended(file, {"kind": "audited", "audit": audit, **event})
    assert says in problem(file)


def test_a_backup_with_an_audit_astray_is_not_restored(file: Path, tmp_path: Path) -> None:
    ledger = Ledger(str(file))
    audit = ledger.history("d", kind="audited")[-1]["audit"]
    ledger.close()
    appended(file, {"kind": "audited", "audit": audit, "accounts": ["d"], "key": "c"})
    ledger = Ledger(str(file))
    maintenance.backup(ledger, tmp_path / "backup")
    other = Ledger.create(str(tmp_path / "other.db"))
    with pytest.raises(LedgerError, match="was charged to"):
        maintenance.restore(tmp_path / "backup", other)
    assert other.datasets() == []


def test_what_cannot_be_attached(tmp_path: Path) -> None:
    ledger = filled(str(tmp_path / "privloss.db"))
    good = REFUTED.to_json()
    for audit, said in (
        ({}, "must be a result"), ([1], "must be a result"), ({**good, "audit_version": 2}, "must be a result"),
        ({**good, "verdict": "true"}, "verdict"), ({**good, "epsilon": "1"}, "epsilon"),
        ({**good, "alpha": None}, "alpha"),
        ({**good, "verdict": "blind"}, "contradict"), ({**good, "verdict": None}, "needs a claim"),
        ({**good, "claim": {"upper": -1}}, "claim"), ({**good, "epsilon": float("nan")}, "no JSON"),
    ):  # fmt: skip
        with pytest.raises(pl.InvalidInput, match=said):
            ledger.attach_audit(audit, dataset="d")  # type: ignore[arg-type]
    for about in ({}, {"dataset": "d", "key": "a"}):
        with pytest.raises(pl.InvalidInput, match="exactly one"):
            ledger.attach_audit(REFUTED, **about)
    with pytest.raises(pl.InvalidInput, match="date"):
        ledger.attach_audit(REFUTED, dataset="d", date="18.11.2026")
    for about, code in (({"dataset": "x"}, "unknown-dataset"), ({"key": "x"}, "unknown-key")):
        with pytest.raises(pl.RefusedError) as refused:
            ledger.attach_audit(REFUTED, **about)
        assert refused.value.refused.reason.code == code
    assert ledger.verify().attached == 0


def test_facts_that_are_none() -> None:
    good = record.facts(REFUTED.to_json(), DAY)
    assert record.flaw(good) == ""
    for change in (
        {"sha256": "ab"}, {"sha256": "Z" * 64}, {"date": "2026-1-1"}, {"verdict": "fine"}, {"delta": True},
        {"epsilon": -1.0}, {"epsilon": float("inf")}, {"p_value": "0"}, {"claim_text": None}, {"claim": "2"},
        {"claim": None}, {"p_value": 0.5}, {"more": 1},
    ):  # fmt: skip
        assert record.flaw({**good, **change}), change
    assert record.day_of(None) == record.day_of(record.day_of(None))
