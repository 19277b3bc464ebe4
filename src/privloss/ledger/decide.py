"""The ledger's rules: `decide(state, command)` returns events, or a refusal. Pure, and also the model of the tests.

Refusals are ordered: of several reasons the first in `Refusal` is given.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import IntEnum

from privloss.ledger.amounts import show
from privloss.ledger.commands import AddDataset, Command, Freeze, Move, Reserve, SetBudget
from privloss.ledger.filters import Filter
from privloss.ledger.state import (
    COMMITTED,
    EVERYONE,
    RESERVED,
    STARTED,
    VOIDED,
    Analysis,
    Dataset,
    Event,
    State,
    apply,
    charges_to_json,
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
    ALREADY_STARTED = 11
    WRONG_STATE = 12
    LEASE_EXPIRED = 13
    BUDGET_EXCEEDED = 14
    QUOTA_EXCEEDED = 15

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


Decision = list[Event] | Refused


def decide(state: State, command: Command) -> Decision:
    """The events a command causes ([] if it already took effect), or why it is refused."""
    return _decide(command, state)


@functools.singledispatch
def _decide(command: Command, state: State) -> Decision:
    """The rule of each command, below."""
    raise NotImplementedError(command)


@_decide.register
def _add_dataset(command: AddDataset, state: State) -> Decision:
    known = state.datasets.get(command.name)
    if known is None:
        return [{"kind": "dataset", "dataset": command.name, "adjacency": command.adjacency, "unit": command.unit}]
    if (known.adjacency, known.unit) == (command.adjacency, command.unit):
        return []
    text = f"dataset {command.name!r} exists with adjacency {known.adjacency} and unit {known.unit!r}"
    return Refused(Refusal.DATASET_EXISTS, text)


@_decide.register
def _freeze(command: Freeze, state: State) -> Decision:
    dataset = state.datasets.get(command.dataset)
    if dataset is None:
        return _unknown(command.dataset)
    if dataset.frozen == command.frozen:
        return []
    return [{"kind": "frozen", "dataset": dataset.name, "frozen": command.frozen}]


def _unknown(name: str) -> Refused:
    return Refused(Refusal.UNKNOWN_DATASET, f"dataset {name!r} is not in this ledger")


@_decide.register
def _set_budget(command: SetBudget, state: State) -> Decision:
    dataset = state.datasets.get(command.dataset)
    if dataset is None:
        return _unknown(command.dataset)
    known = dataset.filter if command.analyst == EVERYONE else dataset.quotas.get(command.analyst)
    if known == command.budget:
        return []
    refused = None if command.analyst == EVERYONE else _unfit_quota(dataset, command.budget)
    if refused is not None:
        return refused
    if dataset.used or (command.analyst == EVERYONE and dataset.quotas):
        text = f"dataset {dataset.name!r} has spends or quotas under its budget; a filter's cap is fixed beforehand"
        return Refused(Refusal.BUDGET_FIXED, text)
    event = {"kind": "budget", "dataset": dataset.name, "analyst": command.analyst, "budget": command.budget.to_dict()}
    return [event]


def _unfit_quota(dataset: Dataset, quota: Filter) -> Refused | None:
    """A quota lies beneath a budget, in its currency."""
    if dataset.filter is None:
        return Refused(Refusal.NO_BUDGET, f"dataset {dataset.name!r} has no budget; set that first")
    if set(quota.caps) != set(dataset.filter.caps):
        return Refused(Refusal.CURRENCY, f"dataset {dataset.name!r} is budgeted in {dataset.filter.name}")
    if any(size > dataset.filter.caps[part] for part, size in quota.caps.items()):
        return Refused(Refusal.QUOTA_ABOVE_CAP, "a quota must not exceed the dataset's cap")
    return None


def expired(state: State, command: Command) -> list[Event]:
    """Leases on its datasets that ran out: a reservation is given back, a started analysis counts as spent."""
    found: list[Event] = []
    if command.expires_before is None:
        return found
    for key, analysis in state.analyses.items():
        here = not set(analysis.charges).isdisjoint(command.datasets)
        if here and analysis.lease < command.expires_before and analysis.state in (RESERVED, STARTED):
            kind = "voided" if analysis.state == RESERVED else "committed"
            found.append({"kind": kind, "key": key, "why": "lease expired"})
    return found


@_decide.register
def _reserve(command: Reserve, state: State) -> Decision:
    for name in command.charges:
        if name not in state.datasets:
            return _unknown(name)
    known = state.analyses.get(command.key)
    datasets = [state.datasets[name] for name in sorted(command.charges)]
    if known is not None:
        if known.request == command.request:
            return _any_frozen(datasets) or []
        return Refused(Refusal.KEY_REUSED, f"key {command.key!r} was used for another request; keys never expire")
    refused = _any_frozen(datasets) or _no_room(datasets, command)
    if refused is not None:
        return refused
    event = {
        "kind": "reserved", "key": command.key, "request": command.request, "analyst": command.analyst,
        "lease": command.now + command.lease, "charges": charges_to_json(command.charges),
    }  # fmt: skip
    return [{**event, "plan": command.plan} if command.plan is not None else event]


def _no_room(datasets: list[Dataset], command: Reserve) -> Refused | None:
    """The first reason after frozen, over all datasets, in the order of `Refusal`."""
    for check in (_adjacency, _no_budget, _currency, _cap_exceeded, _quota_exceeded):
        for dataset in datasets:
            refused = check(dataset, command)
            if refused is not None:
                return refused
    return None


def _any_frozen(datasets: list[Dataset]) -> Refused | None:
    """Nothing enters a frozen dataset, also nothing that was reserved or started before."""
    frozen = next((dataset.name for dataset in datasets if dataset.frozen), None)
    return None if frozen is None else Refused(Refusal.FROZEN, f"dataset {frozen!r} is frozen")


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


def _cap_exceeded(dataset: Dataset, command: Reserve) -> Refused | None:
    return _exceeded(dataset, command, EVERYONE)


def _quota_exceeded(dataset: Dataset, command: Reserve) -> Refused | None:
    return _exceeded(dataset, command, command.analyst) if command.analyst in dataset.quotas else None


def _exceeded(dataset: Dataset, command: Reserve, owner: str) -> Refused | None:
    short: dict[str, str] = {}
    for component, amount in command.charges[dataset.name].items():
        over = amount - dataset.balances[(owner, component)].remaining
        if over > 0:
            short[component] = show(over)
    if not short:
        return None
    whose = f"dataset {dataset.name!r}" if owner == EVERYONE else f"{owner}'s quota on {dataset.name!r}"
    reason = Refusal.BUDGET_EXCEEDED if owner == EVERYONE else Refusal.QUOTA_EXCEEDED
    return Refused(reason, f"{whose} would be exceeded", charges_to_json(command.charges), short)


_ALLOWED = {COMMITTED: (STARTED,), VOIDED: (RESERVED,)}
_KIND = {COMMITTED: "committed", VOIDED: "voided"}


@_decide.register
def _move(command: Move, state: State) -> Decision:
    analysis = state.analyses.get(command.key)
    if analysis is None:
        return Refused(Refusal.UNKNOWN_KEY, f"key {command.key!r} is not in this ledger")
    if command.to == STARTED:
        return _start(analysis, command, state)
    if analysis.state == command.to:
        return []
    if analysis.state not in _ALLOWED[command.to]:
        advice = "; once started it counts as spent" if command.to == VOIDED and analysis.state != VOIDED else ""
        return Refused(Refusal.WRONG_STATE, f"key {command.key!r} is {analysis.state}{advice}")
    return [{"kind": _KIND[command.to], "key": command.key}]


def _start(analysis: Analysis, command: Move, state: State) -> Decision:
    """A key is started once; only the caller whose token is kept with the start is told so again (a lost reply)."""
    frozen = _any_frozen([state.datasets[name] for name in sorted(analysis.charges)])
    if frozen is not None:
        return frozen
    if analysis.state == STARTED and command.token and command.token == analysis.token:
        return []
    if analysis.state in (STARTED, COMMITTED):
        text = f"key {command.key!r} has been spent already: it was started once, and an answer may have been released"
        return Refused(Refusal.ALREADY_STARTED, f"{text}; use a new key")
    if analysis.state == VOIDED:
        return Refused(Refusal.WRONG_STATE, f"key {command.key!r} is {VOIDED}: given back; use a new key")
    if analysis.lease < command.now:
        text = f"the lease of key {command.key!r} has expired; reserve again, under a new key"
        return Refused(Refusal.LEASE_EXPIRED, text)
    event: Event = {"kind": "started", "key": command.key}
    if command.lease is not None:
        event["lease"] = command.now + command.lease
    return [{**event, "token": command.token} if command.token else event]


def step(state: State, command: Command) -> tuple[list[Event], Refused | None]:
    """Give back what has expired, then decide; applies the events to the state."""
    events = expired(state, command)
    for event in events:
        apply(state, event)
    decision = decide(state, command)
    if isinstance(decision, Refused):
        return events, decision
    for event in decision:
        apply(state, event)
    return events + decision, None
