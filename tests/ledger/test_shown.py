"""Amounts as people see them are never on the wrong side, and near the truth."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privloss.cli.ledger_text import outline, table
from privloss.ledger.texts import as_csv, plan_text, rough, rough_accounts, rough_parts
from privloss.ledger.views import signed

AMOUNTS = st.one_of(
    st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**30),
    st.builds(lambda m, e: Fraction(m, 10**e), st.integers(-(10**8), 10**8), st.integers(0, 40)),
)


@given(AMOUNTS, st.booleans())
def test_rounded_to_the_safe_side(value: Fraction, up: bool) -> None:
    text = rough(signed(value), up)
    found = Fraction(text)
    assert found >= value if up else found <= value
    assert abs(found - value) <= abs(value) / 10**5
    if abs(value) < 10**6:
        assert len(text.strip("-").split("e")[0].replace(".", "").lstrip("0").rstrip("0")) <= 6
    assert rough(text, up) == rough(text, not up) == text  # short ones are exact


@pytest.mark.parametrize(
    ("name", "up"),
    [("cap", False), ("remaining", False), ("committed", True), ("reserved", True), ("guarantee", True)],
)
def test_directions_in_a_status(name: str, up: bool) -> None:
    shown = "0.0909091" if up else "0.090909"
    assert outline({name: "1/11"}) == [f"{name}  {shown}"]
    parts = {"order 10": "1/11", "order 2": "2"}
    for nested in ({name: parts}, {"period": {"spent": {"2026": {name: parts}}}}):
        assert outline(nested)[-1].endswith(f"order 10 {shown}, order 2 2")
    assert outline({"analysts": {"cap": {"rho": {name: "1/11"}}}})[-1].endswith(shown)


def test_what_is_no_amount_stays() -> None:
    data: dict[str, Any] = {
        "dataset": "1/11",
        "frozen": False,
        "period": {"every": "year"},
        "guarantee": {"epsilon": None},
    }
    assert outline(data) == ["dataset    1/11", "frozen     no", "period     every year", "guarantee  epsilon -"]


def test_orders_are_in_order() -> None:
    parts = {"order 10": "0.1", "order 2": "1/3", "order 1.5": "1"}
    assert rough_parts(parts, up=True) == "order 1.5 1, order 2 0.333334, order 10 0.1"
    assert rough_accounts({"a": parts}, up=False) == "order 1.5 1, order 2 0.333333, order 10 0.1"
    assert rough_accounts({"a": {"rho": "1"}, "b": {"rho": "2"}}, up=False) == "a 1; b 2"


def test_plans_in_a_few_words() -> None:
    steps = [{"mechanism": "custom", "p": [0.9, 0.1], "q": [0.5, 0.5], "count": 100}, {"mechanism": "gdp", "mu": 0.5}]
    assert plan_text({"steps": steps}) == "100 x custom(..., ...) + gdp(0.5)"
    assert len(plan_text({"steps": steps * 9})) == 60


def test_columns_without_a_word_are_left_out() -> None:
    rows = [{"a": "1", "b": "", "c": "long"}, {"a": "22", "b": "", "c": ""}]
    assert table(rows, ("a", "b", "c"), right="a").splitlines() == ["     a  c", "     1  long", "    22"]
    assert as_csv(rows, ("a", "b", "c")) == "a,b,c\n1,,long\n22,,"
    assert as_csv([{"a": "@SUM(1)"}, {"a": "-1"}, {"a": "x"}], ("a",)) == "a\n'@SUM(1)\n'-1\nx"
