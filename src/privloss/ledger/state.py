"""The ledger's state, and how an event changes it: a plain fold, without any I/O.

An event is a JSON object with a `kind`. Balances hold, for every budget and component, what is committed and what is
reserved (and not yet committed or voided), as exact rationals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privloss.ledger.amounts import show, units
from privloss.ledger.filters import Filter, bits_of

RESERVED, STARTED, COMMITTED, VOIDED = "RESERVED", "STARTED", "COMMITTED", "VOIDED"
EVERYONE = ""  # the owner of a dataset's global budget
Event = dict[str, Any]
Charges = dict[str, dict[str, Fraction]]  # dataset -> component -> amount


@dataclass
class Balance:
    """One component of one budget."""

    cap: Fraction
    committed: Fraction = Fraction(0)
    reserved: Fraction = Fraction(0)

    @property
    def total(self) -> Fraction:
        return self.committed + self.reserved

    @property
    def remaining(self) -> Fraction:
        return self.cap - self.total

    def units(self, component: str) -> tuple[int, int]:
        """Total and cap as whole units, each rounded up once: what the store's CHECK compares."""
        bits = bits_of(component)
        return units(self.total, bits), units(self.cap, bits)


@dataclass
class Dataset:
    """A dataset with its adjacency, its filter and its balances by (owner, component)."""

    name: str
    adjacency: str
    unit: str
    frozen: bool = False
    filter: Filter | None = None
    quotas: dict[str, Filter] = field(default_factory=dict)
    balances: dict[tuple[str, str], Balance] = field(default_factory=dict)

    @property
    def used(self) -> bool:
        return any(b.total > 0 for b in self.balances.values())


@dataclass
class Analysis:
    """One idempotency key: what was asked, and where it stands."""

    key: str
    request: str  # hash of the request
    analyst: str
    state: str
    lease: float  # until when, in seconds since the epoch
    charges: Charges
    token: str = ""  # of the caller that started it


@dataclass
class State:
    """Everything, or the part of it a command needs."""

    datasets: dict[str, Dataset] = field(default_factory=dict)
    analyses: dict[str, Analysis] = field(default_factory=dict)


def charges_to_json(charges: Charges) -> dict[str, dict[str, str]]:
    return {name: {part: show(x) for part, x in parts.items()} for name, parts in charges.items()}


def charges_from_json(data: Mapping[str, Mapping[str, str]]) -> Charges:
    return {name: {part: Fraction(x) for part, x in parts.items()} for name, parts in data.items()}


def owners(dataset: Dataset, analyst: str) -> list[str]:
    """The budgets an analyst's spend counts against: the dataset's, and a quota if there is one."""
    return [EVERYONE, analyst] if analyst != EVERYONE and analyst in dataset.quotas else [EVERYONE]


def apply(state: State, event: Event) -> None:
    """Change the state as the event says."""
    kind = event["kind"]
    if kind == "dataset":
        name = event["dataset"]
        state.datasets[name] = Dataset(name, event["adjacency"], event["unit"])
    elif kind == "budget":
        _budget(state.datasets[event["dataset"]], event)
    elif kind == "frozen":
        state.datasets[event["dataset"]].frozen = event["frozen"]
    elif kind == "restored":
        for dataset in state.datasets.values():
            dataset.frozen = True
    elif kind == "reserved":
        charges = charges_from_json(event["charges"])
        state.analyses[event["key"]] = Analysis(
            event["key"], event["request"], event["analyst"], RESERVED, event["lease"], charges
        )
        _move(state, charges, event["analyst"], reserved=1)
    else:
        analysis = state.analyses[event["key"]]
        if kind == "committed":
            _move(state, analysis.charges, analysis.analyst, reserved=-1, committed=1)
        elif kind == "voided":
            _move(state, analysis.charges, analysis.analyst, reserved=-1)
        analysis.state = {"started": STARTED, "committed": COMMITTED, "voided": VOIDED}[kind]
        analysis.lease = event.get("lease", analysis.lease)
        analysis.token = event.get("token", analysis.token)


def _budget(dataset: Dataset, event: Event) -> None:
    made, owner = Filter.from_dict(event["budget"]), event["analyst"]
    if owner == EVERYONE:
        dataset.filter = made
    else:
        dataset.quotas[owner] = made
    for old in [key for key in dataset.balances if key[0] == owner]:
        del dataset.balances[old]
    for component, amount in made.caps.items():
        dataset.balances[(owner, component)] = Balance(amount)


def _move(state: State, charges: Charges, analyst: str, reserved: int = 0, committed: int = 0) -> None:
    for name, parts in charges.items():
        dataset = state.datasets[name]
        for owner in owners(dataset, analyst):
            for component, amount in parts.items():
                balance = dataset.balances[(owner, component)]
                balance.reserved += reserved * amount
                balance.committed += committed * amount
