"""The ledger's rules: `decide(state, command)` returns events, or a refusal. Pure, and also the model of the tests.

Refusals are ordered: of several reasons the first in `Refusal` is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Any

from privloss.ledger.amounts import show
from privloss.ledger.filters import Filter
from privloss.ledger.state import (
    COMMITTED,
    EVERYONE,
    RESERVED,
    STARTED,
    VOIDED,
    Charges,
    Dataset,
    Event,
    State,
    apply,
    charges_to_json,
    owners,
)


class Refusal(IntEnum):
    """Why a command is refused, in order of precedence."""

    UNKNOWN_DATASET = 1
    DATASET_EXISTS = 2
    UNKNOWN_KEY = 3
    KEY_REUSED = 4
    FROZEN = 5
    ADJACENCY = 6
    NO_BUDGET = 7
    CURRENCY = 8
    BUDGET_FIXED = 9
    QUOTA_ABOVE_CAP = 10
    WRONG_STATE = 11
    LEASE_EXPIRED = 12
    BUDGET_EXCEEDED = 13
    QUOTA_EXCEEDED = 14

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Refused:
    """A refusal, with one sentence, and by how much the tightest component falls short."""

    reason: Refusal
    text: str
    charged: dict[str, dict[str, str]] | None = None
    shortfall: dict[str, str] | None = None


@dataclass(frozen=True)
class AddDataset:
    name: str
    adjacency: str
    unit: str


@dataclass(frozen=True)
class SetBudget:
    dataset: str
    budget: Filter
    analyst: str = EVERYONE


@dataclass(frozen=True)
class Freeze:
    dataset: str
    frozen: bool


@dataclass(frozen=True)
class Reserve:
    key: str
    request: str
    charges: Charges
    adjacency: str | None  # of the plan; None for a typed cost
    analyst: str
    lease: float  # seconds
    now: float
    plan: dict[str, Any] | None = None


@dataclass(frozen=True)
class Move:
    """start, commit or void a key."""

    to: str
    key: str
    now: float
    lease: float | None = None


Command = AddDataset | SetBudget | Freeze | Reserve | Move
Decision = list[Event] | Refused


def decide(state: State, command: Command) -> Decision:
    """The events a command causes ([] if it already took effect), or why it is refused."""
    if isinstance(command, AddDataset):
        if command.name in state.datasets:
            known = state.datasets[command.name]
            if (known.adjacency, known.unit) == (command.adjacency, command.unit):
                return []
            text = f"dataset {command.name!r} exists with adjacency {known.adjacency} and unit {known.unit!r}"
            return Refused(Refusal.DATASET_EXISTS, text)
        return [{"kind": "dataset", "dataset": command.name, "adjacency": command.adjacency, "unit": command.unit}]
    if isinstance(command, SetBudget):
        return _set_budget(state, command)
    if isinstance(command, Freeze):
        if command.dataset not in state.datasets:
            return _unknown(command.dataset)
        if state.datasets[command.dataset].frozen == command.frozen:
            return []
        return [{"kind": "frozen", "dataset": command.dataset, "frozen": command.frozen}]
    return _reserve(state, command) if isinstance(command, Reserve) else _move(state, command)


def _unknown(name: str) -> Refused:
    return Refused(Refusal.UNKNOWN_DATASET, f"dataset {name!r} is not in this ledger")


def _set_budget(state: State, command: SetBudget) -> Decision:
    dataset = state.datasets.get(command.dataset)
    if dataset is None:
        return _unknown(command.dataset)
    known = dataset.filter if command.analyst == EVERYONE else dataset.quotas.get(command.analyst)
    if known == command.budget:
        return []
    if command.analyst != EVERYONE:
        if dataset.filter is None:
            return Refused(Refusal.NO_BUDGET, f"dataset {dataset.name!r} has no budget; set that first")
        if set(command.budget.caps) != set(dataset.filter.caps):
            return Refused(Refusal.CURRENCY, f"dataset {dataset.name!r} is budgeted in {dataset.filter.name}")
        if any(size > dataset.filter.caps[part] for part, size in command.budget.caps.items()):
            return Refused(Refusal.QUOTA_ABOVE_CAP, "a quota must not exceed the dataset's cap")
    if dataset.used or (command.analyst == EVERYONE and dataset.quotas):
        text = f"dataset {dataset.name!r} has spends or quotas under its budget; a filter's cap is fixed beforehand"
        return Refused(Refusal.BUDGET_FIXED, text)
    event = {"kind": "budget", "dataset": dataset.name, "analyst": command.analyst, "budget": command.budget.to_dict()}
    return [event]


def expired(state: State, command: Reserve) -> list[Event]:
    """Leases on these datasets that ran out: a reservation is given back, a started analysis counts as spent."""
    found: list[Event] = []
    for key, analysis in state.analyses.items():
        here = not set(analysis.charges).isdisjoint(command.charges)
        if here and analysis.lease < command.now and analysis.state in (RESERVED, STARTED):
            kind = "voided" if analysis.state == RESERVED else "committed"
            found.append({"kind": kind, "key": key, "why": "lease expired"})
    return found


def _reserve(state: State, command: Reserve) -> Decision:
    for name in command.charges:
        if name not in state.datasets:
            return _unknown(name)
    known = state.analyses.get(command.key)
    if known is not None:
        if known.request == command.request:
            return []
        return Refused(Refusal.KEY_REUSED, f"key {command.key!r} was used for another request; keys never expire")
    datasets = [state.datasets[name] for name in sorted(command.charges)]
    for check in (_frozen, _adjacency, _no_budget, _currency):
        for dataset in datasets:
            refused = check(dataset, command)
            if refused is not None:
                return refused
    for owner_is_global in (True, False):
        for dataset in datasets:
            refused = _exceeded(dataset, command, owner_is_global)
            if refused is not None:
                return refused
    event = {
        "kind": "reserved", "key": command.key, "request": command.request, "analyst": command.analyst,
        "lease": command.now + command.lease, "charges": charges_to_json(command.charges),
    }  # fmt: skip
    return [{**event, "plan": command.plan} if command.plan is not None else event]


def _frozen(dataset: Dataset, command: Reserve) -> Refused | None:
    return Refused(Refusal.FROZEN, f"dataset {dataset.name!r} is frozen") if dataset.frozen else None


def _adjacency(dataset: Dataset, command: Reserve) -> Refused | None:
    if command.adjacency in (None, dataset.adjacency):
        return None
    text = f"the plan is for {command.adjacency}, dataset {dataset.name!r} for {dataset.adjacency}"
    return Refused(Refusal.ADJACENCY, text)


def _no_budget(dataset: Dataset, command: Reserve) -> Refused | None:
    return Refused(Refusal.NO_BUDGET, f"dataset {dataset.name!r} has no budget") if dataset.filter is None else None


def _currency(dataset: Dataset, command: Reserve) -> Refused | None:
    if dataset.filter is not None and set(command.charges[dataset.name]) == set(dataset.filter.caps):
        return None
    return Refused(Refusal.CURRENCY, f"the charge is not in the currency of dataset {dataset.name!r}")


def _exceeded(dataset: Dataset, command: Reserve, owner_is_global: bool) -> Refused | None:
    for owner in owners(dataset, command.analyst):
        if (owner == EVERYONE) != owner_is_global:
            continue
        short: dict[str, Fraction] = {}
        for component, amount in command.charges[dataset.name].items():
            over = amount - dataset.balances[(owner, component)].remaining
            if over > 0:
                short[component] = over
        if short:
            whose = f"dataset {dataset.name!r}" if owner == EVERYONE else f"{owner}'s quota on {dataset.name!r}"
            reason = Refusal.BUDGET_EXCEEDED if owner == EVERYONE else Refusal.QUOTA_EXCEEDED
            shown = {part: show(x) for part, x in short.items()}
            return Refused(reason, f"{whose} would be exceeded", charges_to_json(command.charges), shown)
    return None


_ALLOWED = {STARTED: (RESERVED,), COMMITTED: (STARTED,), VOIDED: (RESERVED,)}
_KIND = {STARTED: "started", COMMITTED: "committed", VOIDED: "voided"}


def _move(state: State, command: Move) -> Decision:
    analysis = state.analyses.get(command.key)
    if analysis is None:
        return Refused(Refusal.UNKNOWN_KEY, f"key {command.key!r} is not in this ledger")
    if analysis.state == command.to:
        return []
    if analysis.state not in _ALLOWED[command.to]:
        advice = "; once started it counts as spent" if command.to == VOIDED and analysis.state != VOIDED else ""
        return Refused(Refusal.WRONG_STATE, f"key {command.key!r} is {analysis.state}{advice}")
    if analysis.state == RESERVED and analysis.lease < command.now and command.to != VOIDED:
        return Refused(Refusal.LEASE_EXPIRED, f"the lease of key {command.key!r} has expired; reserve again")
    if command.to == STARTED and any(state.datasets[name].frozen for name in analysis.charges):
        return Refused(Refusal.FROZEN, f"a dataset of key {command.key!r} is frozen")
    event: Event = {"kind": _KIND[command.to], "key": command.key}
    return [{**event, "lease": command.now + command.lease} if command.lease is not None else event]


def step(state: State, command: Command) -> tuple[list[Event], Refused | None]:
    """Give back what has expired, then decide; applies the events to the state."""
    events = expired(state, command) if isinstance(command, Reserve) else []
    for event in events:
        apply(state, event)
    decision = decide(state, command)
    if isinstance(decision, Refused):
        return events, decision
    for event in decision:
        apply(state, event)
    return events + decision, None
