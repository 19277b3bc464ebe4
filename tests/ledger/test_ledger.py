"""The ledger from Python, on both stores: spending, refusing, auditing, backing up."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.ledger import maintenance
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.stores.base import LedgerError
from privloss.ledger.verify import check_head, signed_head


@pytest.fixture
def ledger(place: str) -> Ledger:
    made = Ledger.create(place)
    made.add_dataset("census", adjacency="add-remove", unit="person")
    made.set_budget("census", currency="pure", cap="1")
    return made


def _reason(refused: pytest.ExceptionInfo[RefusedError]) -> str:
    return refused.value.refused.reason.code


def test_eleven_elevenths(ledger: Ledger) -> None:
    for i in range(11):
        ledger.reserve("census", cost="1/11", key=f"k{i}")
    for tiny in ("1/11", "1e-9", "1e-320"):
        with pytest.raises(RefusedError) as refused:
            ledger.reserve("census", cost=tiny, key=f"more {tiny}")
        assert _reason(refused) == "budget-exceeded"
    assert ledger.status("census")["remaining"] == "0"
    assert ledger.verify().clean


def test_the_smallest_cost_is_one_unit(ledger: Ledger) -> None:
    held = ledger.reserve("census", cost="1e-320", key="tiny")
    assert Fraction(held.charged["census"]["epsilon"]) == Fraction(1, 2**40)


@pytest.mark.parametrize(
    "cost", ["nan", "inf", "-1", "1/0", "", "1e", "0", "one", "1e-9999999", "2000000", None, True, [1]]
)
def test_costs_that_make_no_sense(ledger: Ledger, cost: Any) -> None:
    with pytest.raises(pl.InvalidInput):
        ledger.reserve("census", cost=cost, key="k")
    assert ledger.status("census")["reserved"] == "0"


def test_states(ledger: Ledger) -> None:
    ledger.reserve("census", cost="0.25", key="a")
    with pytest.raises(RefusedError) as refused:
        ledger.commit("a")
    assert _reason(refused) == "wrong-state"  # data may be read only after start
    assert ledger.start("a").state == "STARTED"
    with pytest.raises(RefusedError) as refused:
        ledger.start("a")  # a second caller
    assert _reason(refused) == "already-started"
    with pytest.raises(RefusedError) as refused:
        ledger.void("a")
    assert "counts as spent" in refused.value.refused.text
    assert ledger.commit("a").state == "COMMITTED"
    assert ledger.commit("a").state == "COMMITTED"
    ledger.reserve("census", cost="0.25", key="b")
    assert ledger.void("b").state == "VOIDED"
    with pytest.raises(RefusedError):
        ledger.start("b")
    status = ledger.status("census")
    assert (status["committed"], status["reserved"], status["remaining"]) == ("0.25", "0", "0.75")
    assert status["guarantee"] == {"epsilon": "1", "delta": "0"}
    for command in (ledger.start, ledger.commit, ledger.void):
        with pytest.raises(RefusedError) as refused:
            command("unknown")
        assert _reason(refused) == "unknown-key"
    assert ledger.verify().clean


def test_keys_take_effect_once(ledger: Ledger) -> None:
    first = ledger.reserve("census", cost="0.5", key="k", analyst="ann")
    assert ledger.reserve("census", cost="0.5", key="k", analyst="ann") == first
    assert ledger.status("census")["reserved"] == "0.5"
    for cost, analyst in (("0.4", "ann"), ("0.5", "bob")):
        with pytest.raises(RefusedError) as refused:
            ledger.reserve("census", key="k", cost=cost, analyst=analyst)
        assert _reason(refused) == "key-reused"


def test_two_clients_at_once(place: str) -> None:
    """One key on different datasets, and one dataset added twice, at the same moment."""
    first = Ledger.create(place)
    for name in ("d", "e"):
        first.add_dataset(name, adjacency="add-remove")
        first.set_budget(name, currency="pure", cap="1")
    for attempt in range(8):
        outcomes: list[str] = []
        barrier = threading.Barrier(2)

        def ask(name: str, attempt: int = attempt, outcomes: list[str] = outcomes, barrier: Any = barrier) -> None:
            other = Ledger(place)
            barrier.wait()
            try:
                other.add_dataset(f"new{attempt}", adjacency="add-remove")
                outcomes.append(other.reserve(name, cost="1/100", key=f"k{attempt}").state)
            except RefusedError as problem:
                outcomes.append(problem.refused.reason.code)

        threads = [threading.Thread(target=ask, args=(name,)) for name in ("d", "e")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["RESERVED", "key-reused"]
    assert first.verify().clean
    made = [json.loads(line)["body"] for line in first.export()]
    assert sum(event["kind"] == "account" for event in made) == 2 * 10  # in the ledger's chain, and in its own


def test_quote_needs_a_budget(place: str) -> None:
    made = Ledger.create(place)
    made.add_dataset("bare", adjacency="add-remove")
    with pytest.raises(pl.InvalidInput, match="no budget"):
        made.quote("bare", cost="1")
    with pytest.raises(RefusedError) as refused:
        made.reserve("bare", cost="1", key="k")
    assert _reason(refused) == "no-budget"


def test_what_is_left_of_blocks(place: str) -> None:
    """Of several blocks that which has least is shown, not the whole cap."""
    ledger = Ledger.create(place)
    ledger.add_dataset("b", adjacency="add-remove", blocks="month")
    ledger.set_budget("b", currency="pure", cap="1")
    assert ledger.reserve("b", cost="0.3", key="k", blocks="2026-02").remaining == {"b": {"epsilon": "0.7"}}
    held = ledger.reserve("b", cost="0.3", key="l", blocks="2026-01..2026-03")
    assert held.remaining == ledger.start("l").remaining == {"b": {"epsilon": "0.4"}}
    with pytest.raises(RefusedError) as refused:
        ledger.reserve("b", cost="0.5", key="m", blocks="2026-01..2026-02")
    assert refused.value.remaining == {"b": {"epsilon": "0.4"}}


def test_a_quote_says_why_not(place: str) -> None:
    """Also where no budget is there to say what would be left."""
    ledger = Ledger.create(place)
    ledger.add_group("g", adjacency="add-remove")
    ledger.add_dataset("d", adjacency="add-remove", parent="g")
    ledger.add_dataset("b", adjacency="add-remove", blocks="month")
    for name in "db":
        ledger.set_budget(name, currency="pure", cap="1")
    found = ledger.quote("d", cost="0.1")
    assert [found[name]["refused"] for name in "dg"] == ["no-budget", "no-budget"]
    assert [found[name]["remaining"] for name in "dg"] == [{"epsilon": "0.9"}, {}]
    assert ledger.quote("b", cost="0.1")["b"]["refused"] == "blocks"
    assert ledger.quote("d", cost="0.1", blocks="2026-01")["d"]["refused"] == "blocks"


def test_leases(place: str) -> None:
    now = [1000.0]
    made = Ledger.create(place)
    made.clock = lambda: now[0]
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")
    made.reserve("d", cost="0.5", key="a", lease=10)
    made.reserve("d", cost="0.5", key="b", lease=10)
    made.start("b", lease=10)
    now[0] += 100
    with pytest.raises(RefusedError) as refused:
        made.start("a")
    assert _reason(refused) == "lease-expired"
    with pytest.raises(RefusedError):  # b was started: it counts as spent, a is given back
        made.reserve("d", cost="0.6", key="c")
    made.reserve("d", cost="0.5", key="c2")
    status = made.status("d")
    assert (status["committed"], status["reserved"]) == ("0.5", "0.5")
    assert made.verify().clean


def test_spend_commits_what_failed(ledger: Ledger) -> None:
    with ledger.spend("census", cost="0.25", key="good"):
        pass
    with pytest.raises(ZeroDivisionError), ledger.spend("census", cost="0.25", key="bad"):
        _ = 1 / 0
    assert ledger.status("census")["committed"] == "0.5"
    with pytest.raises(LedgerError, match="spent already"), ledger.spend("census", cost="0.25", key="good"):
        pytest.fail("must not run twice")

    @ledger.spending("census", cost="0.125")
    def count(rows: int) -> int:
        return rows + 1

    assert count(3, key="call-1") == 4
    assert ledger.status("census")["committed"] == "0.625"


def test_asyncio_and_threads(ledger: Ledger) -> None:
    async def ask(i: int) -> None:
        async with ledger.aspend("census", cost="1/40", key=f"async{i}"):
            await asyncio.sleep(0)

    async def all_of_them() -> None:
        await asyncio.gather(*(ask(i) for i in range(8)))

    asyncio.run(all_of_them())
    threads = [
        threading.Thread(target=lambda i=i: ledger.reserve("census", cost="1/40", key=f"t{i}")) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Fraction(ledger.status("census")["remaining"]) == 1 - Fraction(16, 40)
    assert ledger.verify().clean


def test_plans_are_priced_in_every_currency(place: str) -> None:
    made = Ledger.create(place)
    plan, laplace = pl.Gaussian(5.0) * 2, pl.Laplace(10.0) * 3
    budgets = {
        "pure": {"cap": "1"},
        "approx": {"cap": "3", "delta": "1e-5"},
        "zcdp": {"cap": "0.5", "delta": "1e-6"},
        "rdp": {"cap": "4", "delta": "1e-6"},
        "gdp": {"cap": "1", "delta": "1e-6"},
    }
    for currency, budget in budgets.items():
        made.add_dataset(currency, adjacency="add-remove")
        made.set_budget(currency, currency=currency, **budget)
        spent = laplace if currency == "pure" else plan
        quoted = made.quote(currency, spent)[currency]
        assert quoted["fits"]
        held = made.reserve(currency, spent, key=currency)
        assert held.charged[currency] == quoted["charged"]
    made.add_dataset("advanced", adjacency="add-remove")
    made.set_budget("advanced", currency="approx", cap="12", delta="1e-5", filter="advanced")
    made.reserve("advanced", plan, key="advanced")
    charged = made.reserve("zcdp", plan, key="again").charged["zcdp"]["rho"]
    assert 0 <= Fraction(charged) - Fraction(2, 50) < Fraction(1, 10**9)
    assert Fraction(made.reserve("gdp", plan, key="g2").charged["gdp"]["mu_squared"]) >= Fraction(2, 25)
    epsilon = Fraction(made.reserve("approx", plan, key="a2", cost_delta="1e-7").charged["approx"]["epsilon"])
    assert 0 <= epsilon - Fraction(plan.epsilon(1e-7).lower) < Fraction(1, 10**8)
    with pytest.raises(pl.Unsupported, match="infinite"):
        made.reserve("pure", plan, key="no")
    charged = Fraction(made.reserve("gdp", laplace, key="g3").charged["gdp"]["mu_squared"])
    assert Fraction(1, 50) < charged < Fraction(4, 25)  # three times 0.1-DP: between one and 0.4-GDP
    with pytest.raises(pl.InvalidInput, match="give a plan"):
        made.reserve("rdp", cost="0.1", key="no")
    with pytest.raises(RefusedError) as refused:
        made.reserve("zcdp", pl.Plan(((pl.Gaussian(5.0), 1),), "replace-one"), key="adj")
    assert _reason(refused) == "adjacency"
    assert made.verify().clean


def test_several_datasets_all_or_nothing(ledger: Ledger) -> None:
    ledger.add_dataset("small", adjacency="add-remove")
    ledger.set_budget("small", currency="pure", cap="0.1")
    with pytest.raises(RefusedError):
        ledger.reserve(["census", "small"], cost="0.5", key="both")
    assert ledger.status("census")["reserved"] == "0"
    held = ledger.reserve(["small", "census"], cost="0.1", key="both")
    assert set(held.charged) == {"census", "small"}
    assert ledger.status("small")["remaining"] == "0"
    with pytest.raises(pl.InvalidInput, match="different names"):
        ledger.reserve(["census", "census"], cost="0.1", key="twice")


def test_quotas_beneath_the_cap(ledger: Ledger) -> None:
    ledger.set_budget("census", currency="pure", cap="0.6", analyst="ann")
    ledger.set_budget("census", currency="pure", cap="0.6", analyst="bob")
    ledger.reserve("census", cost="0.6", key="a", analyst="ann")
    with pytest.raises(RefusedError) as refused:
        ledger.reserve("census", cost="0.1", key="a2", analyst="ann")
    assert _reason(refused) == "quota-exceeded"
    with pytest.raises(RefusedError) as refused:
        ledger.reserve("census", cost="0.6", key="b", analyst="bob")
    assert _reason(refused) == "budget-exceeded"
    ledger.reserve("census", cost="0.4", key="b2", analyst="bob")
    assert ledger.status("census")["analysts"]["bob"]["epsilon"]["remaining"] == "0.2"
    assert ledger.verify().clean


def test_freezing(ledger: Ledger) -> None:
    ledger.reserve("census", cost="0.1", key="before")
    ledger.freeze("census")
    attempts: list[Callable[[], object]] = [
        lambda: ledger.reserve("census", cost="0.1", key="k"),
        lambda: ledger.start("before"),
    ]
    for attempt in attempts:
        with pytest.raises(RefusedError) as refused:
            attempt()
        assert _reason(refused) == "frozen"
    ledger.freeze("census", False)
    assert ledger.start("before").state == "STARTED"


def test_backup_and_restore(ledger: Ledger, tmp_path: Path) -> None:
    ledger.reserve("census", cost="0.25", key="a")
    ledger.start("a")
    assert maintenance.backup(ledger, tmp_path / "backup.jsonl") == 5
    restored = Ledger.create(str(tmp_path / "restored.db"))
    assert maintenance.restore(tmp_path / "backup.jsonl", restored) == 5
    assert restored.status("census")["reserved"] == "0.25"
    assert restored.status("census")["frozen"]
    assert restored.verify().clean
    assert [row["check"] for row in maintenance.doctor(restored) if not row["ok"]] == ["frozen"]
    with pytest.raises(LedgerError, match="not empty"):
        maintenance.restore(tmp_path / "backup.jsonl", restored)
    text = (tmp_path / "backup.jsonl").read_text()
    (tmp_path / "forged.jsonl").write_text(text.replace("0.25", "0.20"))
    (tmp_path / "torn.jsonl").write_text(text[:-20])
    empty = Ledger.create(str(tmp_path / "empty.db"))
    with pytest.raises(LedgerError, match="event 3 of 'census'"):
        maintenance.restore(tmp_path / "forged.jsonl", empty)
    with pytest.raises(pl.InvalidInput, match="readable"):
        maintenance.restore(tmp_path / "torn.jsonl", empty)
    assert empty.verify().events == 0  # all or nothing


def test_export_and_signed_head(ledger: Ledger, tmp_path: Path) -> None:
    ledger.reserve("census", cost="0.25", key="a")
    lines = [json.loads(line) for line in ledger.export()]
    assert [row["body"]["kind"] for row in lines] == ["account", "account", "budget", "reserved"]
    assert [row.get("chain", "") for row in lines] == ["", "census", "census", "census"]
    audit = ledger.verify()
    assert audit.ends == {"": (1, lines[0]["hash"]), "census": (3, lines[-1]["hash"])}
    assert signed_head(audit, b"one")["hmac-sha256"] != signed_head(audit, b"two")["hmac-sha256"]
    assert [event["kind"] for event in ledger.history("census")] == ["account", "budget", "reserved"]
    signed = signed_head(audit, b"one")
    ledger.start("a")
    assert check_head(ledger.store, signed, b"one") == []  # it goes on from there
    for changed in ({"head": "0" * 64}, {"events": 3}, {"ends": {"census": [1, "0" * 64]}}, {"hmac-sha256": "0"}):
        assert check_head(ledger.store, signed | changed, b"one") != []
    later = signed_head(ledger.verify(), b"one")
    assert later["head"] != signed["head"]
    other = Ledger.create(str(tmp_path / "other.db"))
    assert check_head(other.store, signed, b"one") == [
        "event 1 of '', which the head has seen, is not there any more",
        "event 3 of 'census', which the head has seen, is not there any more",
    ]
