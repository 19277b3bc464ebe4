"""Quotas: whoever spends under them is one of the people listed, however the name is written; they may change."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.ledger.ledger import Ledger, RefusedError
from privloss.ledger.names import normal, person

SPELLINGS = ["ann", "Ann", " ANN ", "ａｎｎ", "ＡＮＮ", "aNN\u2003"]


@pytest.fixture
def ledger(place: str) -> Ledger:
    made = Ledger.create(place)
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")
    return made


def _reason(ledger: Ledger, cost: str, key: str, **options: Any) -> str:
    try:
        return ledger.reserve("d", cost=cost, key=key, **options).state
    except RefusedError as refused:
        return refused.refused.reason.code


def _quota(ledger: Ledger, cap: str, analyst: str = "ann") -> None:
    ledger.set_budget("d", currency="pure", cap=cap, analyst=analyst)


@pytest.mark.parametrize("text", SPELLINGS)
def test_one_person_has_one_name(text: str) -> None:
    assert person("analyst", text.replace("\u2003", " ")) == normal(text) == "ann"


@pytest.mark.parametrize("text", ["", " ", "@2026", "#2026-01-01", "＠2026", "a\nb", "x" * 201, None, 5])
def test_names_that_nobody_has(ledger: Ledger, text: Any) -> None:
    """Periods and blocks have owners that begin with a mark: no analyst is taken for one."""
    with pytest.raises(pl.InvalidInput):
        person("analyst", text)
    if text != "":
        with pytest.raises(pl.InvalidInput):
            ledger.reserve("d", cost="0.1", key="k", analyst=text)


def test_a_quota_cannot_be_passed_by_another_spelling(ledger: Ledger) -> None:
    _quota(ledger, "0.5", " Ann")
    for number, name in enumerate(SPELLINGS[:5]):
        assert _reason(ledger, "0.1", f"k{number}", analyst=name) == "RESERVED"
    for number, name in enumerate(SPELLINGS[:5]):
        assert _reason(ledger, "0.1", f"more{number}", analyst=name) == "quota-exceeded"
    assert ledger.status("d")["analysts"] == {"ann": {"epsilon": {"spent": "0.5", "cap": "0.5", "remaining": "0"}}}
    assert _reason(ledger, "0.1", "k0", analyst="ANN") == "RESERVED"  # the same request again
    assert len(ledger.history("d", analyst="ａＮｎ", kind="reserved")) == 5
    assert ledger.verify().clean


def test_nobody_spends_without_a_quota_where_there_are_some(ledger: Ledger) -> None:
    _quota(ledger, "0.5")
    assert _reason(ledger, "0.1", "nobody") == "analyst"
    assert _reason(ledger, "0.1", "bob", analyst="bob") == "analyst"
    with pytest.raises(RefusedError, match="say who spends"):
        ledger.reserve("d", cost="0.1", key="nobody")
    with pytest.raises(RefusedError, match="'bob' has none"):
        ledger.reserve("d", cost="0.1", key="bob", analyst="Bob")
    assert ledger.status("d")["reserved"] == "0"
    ledger.add_dataset("free", adjacency="add-remove")
    ledger.set_budget("free", currency="pure", cap="1")
    assert ledger.reserve("free", cost="0.1", key="free").state == "RESERVED"
    with pytest.raises(RefusedError, match="analyst"):  # one of its datasets has quotas
        ledger.reserve(["free", "d"], cost="0.1", key="both")


def test_quotas_come_and_change_after_spends(ledger: Ledger) -> None:
    """What was spent before there was a quota counts in it; no quota is set below what was spent."""
    assert _reason(ledger, "0.3", "early", analyst="Ann") == "RESERVED"
    for cap in ("0.29", "0.2999999"):
        with pytest.raises(RefusedError, match="has spent more than that") as refused:
            _quota(ledger, cap)
        assert refused.value.refused.reason.code == "budget-fixed"
    _quota(ledger, "0.4")
    assert _reason(ledger, "0.2", "a", analyst="ann") == "quota-exceeded"
    _quota(ledger, "0.6", "ANN")
    assert _reason(ledger, "0.2", "a", analyst="ann") == "RESERVED"
    _quota(ledger, "0.5")
    assert _reason(ledger, "1e-9", "b", analyst="ann") == "quota-exceeded"
    with pytest.raises(RefusedError, match="quota-above-cap"):
        _quota(ledger, "1.1")
    with pytest.raises(RefusedError, match="budget-fixed"):  # the dataset's own cap is a filter's
        ledger.set_budget("d", currency="pure", cap="2")
    ledger.void("early")
    _quota(ledger, "0.2")
    assert ledger.status("d")["analysts"]["ann"]["epsilon"] == {"spent": "0.2", "cap": "0.2", "remaining": "0"}
    assert ledger.verify().clean


@pytest.mark.parametrize("end", ["commit", "void"])
def test_what_a_quota_counts_is_moved_and_given_back(ledger: Ledger, end: str) -> None:
    _quota(ledger, "0.5")
    ledger.reserve("d", cost="0.5", key="k", analyst="ann")
    if end == "commit":
        ledger.start("k")
    getattr(ledger, end)("k")
    assert _reason(ledger, "0.5", "again", analyst="ann") == {"commit": "quota-exceeded", "void": "RESERVED"}[end]
    assert ledger.verify().clean


def test_quote_knows_quotas(ledger: Ledger) -> None:
    _quota(ledger, "0.5")
    assert ledger.quote("d", cost="0.4", analyst="Ann")["d"] == {
        "charged": {"epsilon": "0.4"}, "remaining": {"epsilon": "0.1"}, "fits": True,
    }  # fmt: skip
    found = ledger.quote("d", cost="0.6", analyst="ann")["d"]
    assert (found["fits"], found["refused"], found["remaining"]) == (False, "quota-exceeded", {"epsilon": "-0.1"})
    assert ledger.quote("d", cost="0.1")["d"]["refused"] == "analyst"
    assert ledger.quote("d", cost="0.1", analyst="bob")["d"]["refused"] == "analyst"


def _orders(ledger: Ledger, who: str) -> dict[str, Fraction]:
    found = ledger.status("images")["analysts"][who]
    return {part: Fraction(amounts["spent"]) for part, amounts in found.items()}


def test_a_quota_beneath_a_renyi_budget(place: str) -> None:
    """It holds at the budget's orders that leave it room; where it has no cap yet, spends count all the same."""
    made = Ledger.create(place)
    made.add_dataset("images", adjacency="add-remove")
    made.set_budget("images", currency="rdp", cap="8", delta="1e-5")
    plan = pl.Gaussian(20.0)
    made.reserve("images", plan, key="early", analyst="ann")
    spent = _orders(made, "ann")
    with pytest.raises(RefusedError, match=r"no room at the orders.*order 4, order 5"):  # it would bind nobody
        made.set_budget("images", currency="rdp", cap="1.5", delta="1e-5", analyst="ann")
    made.set_budget("images", currency="rdp", cap="2.5", delta="1e-5", analyst="ann")
    caps = made.status("images")["analysts"]["ann"]
    assert {part for part, amounts in caps.items() if "cap" in amounts} < set(spent)  # some orders leave no room
    assert _orders(made, "ann") == spent
    made.reserve("images", plan, key="beneath", analyst="ann")
    with pytest.raises(RefusedError) as refused:
        made.reserve("images", pl.Gaussian(3.0), key="too much", analyst="ann")
    assert refused.value.refused.reason.code == "quota-exceeded"
    made.set_budget("images", currency="rdp", cap="7", delta="1e-5", analyst="ann")
    assert _orders(made, "ann") == {part: 2 * amount for part, amount in spent.items()}  # nothing was forgotten
    made.void("early")
    assert _orders(made, "ann") == spent
    assert made.verify().clean


def test_quotas_of_older_ledgers_hold_for_every_spelling(tmp_path: Path) -> None:
    """Releases before 0.3 compared names letter by letter: a quota of `Ann` binds `ann` now."""
    from privloss.ledger.commands import AddAccount, Reserve, SetBudget
    from privloss.ledger.decide import step
    from privloss.ledger.filters import Filter
    from privloss.ledger.state import State

    state = State()
    half, tenth = Filter.of("pure", "1/2"), {"d": {"epsilon": Fraction(3, 10)}}
    for command in (
        AddAccount("d", "add-remove", "record"),
        SetBudget("d", Filter.of("pure", "1")),
        SetBudget("d", half, "Ann"),
        Reserve("a", "a", tenth, None, "ann", 1.0),
    ):
        assert step(state, command, 0.0)[1] is None
    refused = step(state, Reserve("b", "b", tenth, None, "ann", 1.0), 0.0)[1]
    assert refused is not None
    assert refused.reason.code == "quota-exceeded"


@pytest.mark.parametrize("spelled", ["a\u00df\u0301", "\u03aa\u0301", "\u0130\u0327", "\u1e9e\u0327x"])
def test_names_are_normal_once_and_for_all(place: str, spelled: str) -> None:
    """Letters that lose their case as two, with an accent: normalised again they were others, so that their quotas let
    nobody in, and `verify` accused a ledger in order."""
    assert normal(normal(spelled)) == normal(spelled)
    ledger = Ledger.create(place)
    ledger.add_dataset("d", adjacency="add-remove")
    ledger.set_budget("d", currency="pure", cap="1")
    ledger.reserve("d", cost="0.1", key="before", analyst=spelled)
    ledger.set_budget("d", currency="pure", cap="0.5", analyst=spelled)
    ledger.reserve("d", cost="0.4", key="within", analyst=spelled)
    with pytest.raises(RefusedError, match="quota-exceeded"):
        ledger.reserve("d", cost="0.1", key="above", analyst=normal(spelled))
    assert ledger.verify().problems == ()


def test_every_letter_is_normal_once() -> None:
    letters = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    spelled = [letter + mark for letter in letters if letter.casefold() != letter for mark in ("", "\u0301", "\u0327")]
    assert len(spelled) > 4000
    assert [each for each in spelled if normal(normal(each)) != normal(each)] == []
