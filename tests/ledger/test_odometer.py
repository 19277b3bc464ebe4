"""The odometer of a ledger reads what is committed, in every currency."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import privloss as pl
from privloss.ledger.ledger import Ledger

BUDGETS: dict[str, dict[str, Any]] = {
    "pure": {"currency": "pure", "cap": "1"},
    "basic": {"currency": "approx", "cap": "3", "delta": "1e-5"},
    "advanced": {"currency": "approx", "cap": "12", "delta": "1e-5", "filter": "advanced"},
    "zcdp": {"currency": "zcdp", "cap": "0.5"},
    "rdp": {"currency": "rdp", "cap": "8", "delta": "1e-5"},
    "gdp": {"currency": "gdp", "cap": "1"},
}


@pytest.mark.parametrize("name", BUDGETS)
def test_reads_what_is_committed(place: str, name: str) -> None:
    ledger = Ledger.create(place)
    ledger.add_dataset("d", adjacency="add-remove")
    with pytest.raises(pl.InvalidInput, match="no budget"):
        ledger.odometer("d", 1e-6)
    ledger.set_budget("d", **BUDGETS[name])
    plan = pl.Laplace(20) if name == "pure" else pl.Gaussian(20)
    ledger.reserve("d", plan, key="open")
    assert ledger.odometer("d", delta=1e-6).epsilon == 0
    readings = []
    for i in range(3):
        with ledger.spend("d", plan, key=f"k{i}"):
            pass
        readings.append(ledger.odometer("d", delta=1e-6))
    assert readings == sorted(readings, key=lambda reading: reading.epsilon)
    assert 0 < readings[0].epsilon <= readings[-1].epsilon
    charged = {part: 3 * Fraction(x) for part, x in ledger.reserve("d", plan, key="open").charged["d"].items()}
    assert readings[-1] == pl.odometers.odometer(BUDGETS[name]["currency"], charged, 1e-6)
    if name in ("pure", "basic"):
        assert ledger.odometer("d") == readings[-1]
    else:
        for delta in (None, 0, 1.5, "1e-6", True):
            with pytest.raises(pl.InvalidInput, match="failure probability"):
                ledger.odometer("d", delta=delta)  # type: ignore[arg-type]


def test_unknown_dataset(place: str) -> None:
    with pytest.raises(pl.InvalidInput, match="not in this ledger"):
        Ledger.create(place).odometer("nope")
