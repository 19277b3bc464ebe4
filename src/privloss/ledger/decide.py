"""The ledger's rules: `decide(state, command, now)` returns events, or a refusal. Pure; also the model of the tests.

Refusals are ordered: of several reasons the first in `Refusal` is given.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from privloss.ledger.amounts import show
from privloss.ledger.commands import AddAccount, Attach, Command, Expire, Freeze, Move, Reserve, SetBudget, Token
from privloss.ledger.filters import Filter
from privloss.ledger.names import normal
from privloss.ledger.refusals import Refusal as Refusal
from privloss.ledger.refusals import Refused as Refused
from privloss.ledger.state import (
    COMMITTED,
    EVERYONE,
    OPEN,
    RESERVED,
    STARTED,
    TOKENS,
    VOIDED,
    ZERO,
    Account,
    Analysis,
    Charges,
    Event,
    State,
    apply,
    evidence_mark,
)

Decision = list[Event] | Refused


def decide(state: State, command: Command, now: float) -> Decision:
    """The events a command causes ([] if it already took effect), or why it is refused."""
    return _decide(command, state, now)


@functools.singledispatch
def _decide(command: Command, state: State, now: float) -> Decision:
    """The rule of each command, below."""
    raise NotImplementedError(command)


# -- setting up --------------------------------------------------------------------------------------------------------


@_decide.register
def _add_account(command: AddAccount, state: State, now: float) -> Decision:
    known = state.accounts.get(command.name)
    if known is not None:
        if all(getattr(known, part) == getattr(command, part) for part in _FIXED):
            return []
        text = f"{command.name!r} exists with adjacency {known.adjacency} and unit {known.unit!r}"
        return Refused(Refusal.DATASET_EXISTS, f"{text}, or under another group, or with other blocks")
    refused = None if command.parent is None else _unfit_parent(state.accounts.get(command.parent), command)
    if refused is not None:
        return refused
    event = {"kind": "account", "dataset": command.name, "adjacency": command.adjacency, "unit": command.unit}
    extra = {"group": command.group, "parent": command.parent, "blocks": command.blocks}
    return [event | {part: value for part, value in extra.items() if value}]


_FIXED = ("adjacency", "unit", "group", "parent", "blocks")


def _unfit_parent(parent: Account | None, command: AddAccount) -> Refused | None:
    """A group holds accounts of one unit and adjacency: its budget is a promise to the same person."""
    if parent is None:
        return _unknown(command.parent or "")
    if not parent.group:
        return Refused(Refusal.GROUP, f"{parent.name!r} is a dataset; only a group stands above others")
    if (parent.adjacency, parent.unit) != (command.adjacency, command.unit):
        text = f"group {parent.name!r} protects one {parent.unit} under {parent.adjacency}"
        return Refused(Refusal.ADJACENCY, f"{text}, {command.name!r} would not")
    return None


@_decide.register
def _freeze(command: Freeze, state: State, now: float) -> Decision:
    account = state.accounts.get(command.account)
    if account is None:
        return _unknown(command.account)
    if account.frozen == command.frozen:
        return []
    return [{"kind": "frozen", "dataset": account.name, "frozen": command.frozen}]


def _unknown(name: str) -> Refused:
    return Refused(Refusal.UNKNOWN_DATASET, f"dataset {name!r} is not in this ledger")


@_decide.register
def _set_budget(command: SetBudget, state: State, now: float) -> Decision:
    account = state.accounts.get(command.account)
    if account is None:
        return _unknown(command.account)
    budget, is_quota = _beneath(account, command), command.analyst != EVERYONE
    known = account.recurring if command.every is not None else account.budget_of(command.analyst)
    if known == budget and command.every in (None, account.every):
        return []
    refused = _unfit(account, command, budget)
    if refused is not None:
        return refused
    for name in state.above(account.name):
        if name not in state.accounts:
            return Refused(Refusal.STALE, "the groups above it have changed; ask again")
        above = state.accounts[name].filter
        whole = not is_quota and command.every is None
        if whole and above is not None and not set(above.caps) <= set(budget.caps):
            return Refused(Refusal.CURRENCY, f"group {name!r} above it is budgeted in other components ({above.name})")
    event = {"kind": "budget", "dataset": account.name, "analyst": command.analyst, "budget": command.budget.to_dict()}
    return [event if command.every is None else {**event, "every": command.every}]


@_decide.register
def _token(command: Token, state: State, now: float) -> Decision:
    """Balances know nothing of tokens."""
    return [{"kind": TOKENS[command.revoked], **command.facts}]


def _beneath(account: Account, command: SetBudget) -> Filter:
    """What a quota or a period's cap is beneath the account's budget."""
    if account.filter is None:
        return command.budget
    if command.analyst != EVERYONE:
        return command.budget.beneath(account.filter)
    return command.budget.each_period(account.filter, account.group) if command.every is not None else command.budget


def _unfit(account: Account, command: SetBudget, budget: Filter) -> Refused | None:
    """Quotas and periods lie beneath a budget, in its currency. Quotas may change as long as what was spent fits them;
    the others are filters, whose caps are fixed before the first spend."""
    beneath = command.analyst != EVERYONE or command.every is not None
    refused = _unfit_beneath(account, budget, command.every is not None) if beneath else None
    if refused is not None:
        return refused
    if command.every is not None and account.blocks:
        return Refused(Refusal.BLOCKS, f"the blocks of {account.name!r} have budgets of their own; it has no periods")
    if command.analyst != EVERYONE:
        if budget.shortfall({part: account.spent(command.analyst, part) for part in budget.caps}):
            return Refused(Refusal.BUDGET_FIXED, f"{command.analyst!r} has spent more than that already")
        return None
    if account.used or (command.every is None and (account.quotas or account.recurring)):
        text = f"dataset {account.name!r} has spends, quotas or periods under its budget; a filter's cap is fixed"
        return Refused(Refusal.BUDGET_FIXED, f"{text} beforehand")
    return None


def _unfit_beneath(account: Account, budget: Filter, period: bool) -> Refused | None:
    """What lies beneath a budget is in its currency, and no larger."""
    above = account.filter
    if above is None:
        return Refused(Refusal.NO_BUDGET, f"dataset {account.name!r} has no budget; set that first")
    counted = above.also(budget) if period and not account.group else above
    if not set(budget.caps) <= set(counted.caps) or budget.name != above.name:
        return Refused(Refusal.CURRENCY, f"dataset {account.name!r} is budgeted in {above.name}")
    if not budget.caps:  # Renyi DP: it would hold nowhere
        text = f"so small a cap has no room at the orders of the budget of {account.name!r}"
        return Refused(Refusal.CURRENCY, f"{text} ({', '.join(above.caps)})")
    if budget.cap > above.cap or any(size > above.caps.get(part, size) for part, size in budget.caps.items()):
        return Refused(Refusal.QUOTA_ABOVE_CAP, "a quota or period's budget must not exceed the dataset's cap")
    return None


@_decide.register
def _attach(command: Attach, state: State, now: float) -> Decision:
    """Evidence moves no balance, and may concern what is frozen. What was attached last is not attached again: the
    reply to it may have been lost."""
    if command.key:
        analysis = state.analyses.get(command.key)
        if analysis is None:
            return _unknown_key(command.key)
        names, about = sorted(analysis.charges), {"key": command.key}
    elif command.account in state.accounts:
        names, about = [command.account], {"dataset": command.account}
    else:
        return _unknown(command.account)
    event = {"kind": "audited", "accounts": names, "audit": command.audit, **about}
    return [] if all(state.accounts[name].audits.get("last") == evidence_mark(event) for name in names) else [event]


def _unknown_key(key: str) -> Refused:
    return Refused(Refusal.UNKNOWN_KEY, f"key {key!r} is not in this ledger")


# -- spending ----------------------------------------------------------------------------------------------------------


@_decide.register
def _reserve(command: Reserve, state: State, now: float) -> Decision:
    for name in command.charges:
        if name not in state.accounts:
            return _unknown(name)
    asked = command.datasets or tuple(command.charges)
    known = state.analyses.get(command.key)
    accounts = [state.accounts[name] for name in sorted(command.charges)]
    if known is not None:
        return _again(known, command, accounts)
    own = {name: command.charges[name] for name in asked}
    if with_groups(own, state) != command.charges and not any(state.accounts[name].group for name in own):
        return Refused(Refusal.STALE, "the groups above its datasets have changed")
    refused = _any_frozen(accounts) or _no_room(accounts, command, now)
    if refused is not None:
        return refused
    event = {
        "kind": "reserved", "key": command.key, "request": command.request, "analyst": command.analyst,
        "lease": now + command.lease, "charges": command.shown, "datasets": sorted(asked),
        "on": {account.name: list(command.owners(account, now)) for account in accounts},
        "accounts": sorted(command.charges),
    }  # fmt: skip
    extra = {"plan": command.plan, "label": command.label}
    return [event | {part: value for part, value in extra.items() if value}]


def with_groups(charges: Charges, state: State) -> Charges:
    """Charges on datasets, and their sums on the groups above them, in the components of each group's budget."""
    found = {name: dict(parts) for name, parts in charges.items()}
    for name, parts in charges.items():
        for group in state.above(name):
            budget = state.accounts[group].filter if group in state.accounts else None
            held = found.setdefault(group, {})
            for part, amount in parts.items():
                if budget is None or part in budget.caps:
                    held[part] = held.get(part, ZERO) + amount
    return found


def _again(known: Analysis, command: Reserve, accounts: list[Account]) -> Decision:
    """The same key again: the same request is answered again, unless it was given back meanwhile."""
    if known.request != command.request:
        return Refused(Refusal.KEY_REUSED, f"key {command.key!r} was used for another request; keys never expire")
    frozen = _any_frozen(accounts)
    if frozen is None and known.state == VOIDED:
        return Refused(Refusal.WRONG_STATE, f"key {command.key!r} is {VOIDED}: it was given back; use a new key")
    return frozen or []


def _no_room(accounts: list[Account], command: Reserve, now: float) -> Refused | None:
    """The first reason after frozen, over all accounts, in the order of `Refusal`."""
    for check in (_adjacency, _group, _blocks, _analyst, _no_budget, _currency):
        for account in accounts:
            refused = check(account, command)
            if refused is not None:
                return refused
    over = [refused for account in accounts for refused in exceeded(account, command, now)]
    return min(over, key=lambda refused: refused.reason, default=None)


def _any_frozen(accounts: list[Account]) -> Refused | None:
    """Nothing enters a frozen dataset, also nothing that was reserved or started before."""
    frozen = next((account.name for account in accounts if account.frozen), None)
    return None if frozen is None else Refused(Refusal.FROZEN, f"dataset {frozen!r} is frozen")


def _adjacency(account: Account, command: Reserve) -> Refused | None:
    if command.adjacency in (None, account.adjacency):
        return None
    text = f"the plan is for {command.adjacency}, dataset {account.name!r} for {account.adjacency}"
    return Refused(Refusal.ADJACENCY, text)


def _group(account: Account, command: Reserve) -> Refused | None:
    if account.group == (account.name not in (command.datasets or command.charges)):
        return None
    return Refused(Refusal.GROUP, f"{account.name!r} is a group: spend on the datasets below it")


def _blocks(account: Account, command: Reserve) -> Refused | None:
    given = bool(command.blocks.get(account.name))
    if given == (account.blocks is not None):
        return None
    says = f"holds one block for each {account.blocks}: say which are read" if not given else "has no blocks"
    return Refused(Refusal.BLOCKS, f"dataset {account.name!r} {says}")


def _analyst(account: Account, command: Reserve) -> Refused | None:
    """Where a dataset has quotas, nobody spends without one."""
    if not account.quotas or command.analyst in {normal(quota) for quota in account.quotas}:
        return None
    who = f"{command.analyst!r} has none" if command.analyst else "say who spends (analyst)"
    return Refused(Refusal.ANALYST, f"dataset {account.name!r} has quotas, and {who}")


def _no_budget(account: Account, command: Reserve) -> Refused | None:
    return Refused(Refusal.NO_BUDGET, f"dataset {account.name!r} has no budget") if account.filter is None else None


def _currency(account: Account, command: Reserve) -> Refused | None:
    if account.priced is not None and set(command.charges[account.name]) == set(account.priced.caps):
        return None
    return Refused(Refusal.CURRENCY, f"the charge is not in the currency of dataset {account.name!r}")


def exceeded(account: Account, command: Reserve, now: float) -> Iterator[Refused]:
    """The budgets of an account that a reservation would exceed."""
    parts = command.charges[account.name]
    for owner in command.owners(account, now):
        budget = account.budget_of(owner)
        if budget is None:
            continue
        short = budget.shortfall({part: account.spent(owner, part) + parts[part] for part in budget.caps})
        if short:
            reason, whose = _whose(account, owner, command)
            shown = {part: show(amount) for part, amount in short.items()}
            yield Refused(reason, f"{whose} would be exceeded", command.shown, shown)


def _whose(account: Account, owner: str, command: Reserve) -> tuple[Refusal, str]:
    name = f"dataset {account.name!r}"
    if account.group:
        return Refusal.PARENT_EXCEEDED, f"group {account.name!r}" + (f" in {owner[1:]}" if owner[:1] == "@" else "")
    if owner == EVERYONE or owner[0] == "#":
        return Refusal.BUDGET_EXCEEDED, name + (f", block {owner[1:]}," if owner else "")
    if owner[0] == "@":
        return Refusal.PERIOD_EXCEEDED, f"{name} in {owner[1:]}"
    return Refusal.QUOTA_EXCEEDED, f"{owner}'s quota on {account.name!r}"


_ALLOWED = {COMMITTED: (STARTED,), VOIDED: (RESERVED,)}
_KIND = {STARTED: "started", COMMITTED: "committed", VOIDED: "voided"}


@_decide.register
def _move(command: Move, state: State, now: float) -> Decision:
    analysis = state.analyses.get(command.key)
    if analysis is None:
        return _unknown_key(command.key)
    if command.to == STARTED:
        return _start(analysis, command, state, now)
    if analysis.state == command.to:
        return []
    if analysis.state not in _ALLOWED[command.to]:
        advice = "; once started it counts as spent" if command.to == VOIDED and analysis.state != VOIDED else ""
        return Refused(Refusal.WRONG_STATE, f"key {command.key!r} is {analysis.state}{advice}")
    return [moved(analysis, command.to)]


def moved(analysis: Analysis, to: str) -> Event:
    return {"kind": _KIND[to], "key": analysis.key, "accounts": sorted(analysis.charges)}


def _start(analysis: Analysis, command: Move, state: State, now: float) -> Decision:
    """A key is started once; only the run whose token's hash stands with the start is told so again (a lost reply)."""
    frozen = _any_frozen([state.accounts[name] for name in sorted(analysis.charges)])
    if frozen is not None:
        return frozen
    if analysis.state == STARTED and command.run and command.run == analysis.run:
        return []
    if analysis.state in (STARTED, COMMITTED):
        text = f"key {command.key!r} has been spent already: it was started once, and an answer may have been released"
        return Refused(Refusal.ALREADY_STARTED, f"{text}; use a new key")
    if analysis.state == VOIDED:
        return Refused(Refusal.WRONG_STATE, f"key {command.key!r} is {VOIDED}: given back; use a new key")
    if analysis.lease < now:
        text = f"the lease of key {command.key!r} has expired; reserve under a new key"
        return Refused(Refusal.LEASE_EXPIRED, text)
    event = moved(analysis, STARTED)
    if command.lease is not None:
        event["lease"] = now + command.lease
    return [{**event, "run": command.run} if command.run else event]


@_decide.register
def _expire(command: Expire, state: State, now: float) -> Decision:
    late = [state.analyses[key] for key in command.keys if key in state.analyses]
    late = [analysis for analysis in late if analysis.state in OPEN and analysis.lease < now]
    ends = {RESERVED: VOIDED, STARTED: COMMITTED}
    return [{**moved(analysis, ends[analysis.state]), "why": "lease expired"} for analysis in late]


def step(state: State, command: Command, now: float) -> tuple[list[Event], Refused | None]:
    """Decide, and apply the events to the state. A refusal that concerns known datasets is an event too."""
    decision = decide(state, command, now)
    refused = decision if isinstance(decision, Refused) else None
    events = _recorded(state, command, refused) if refused is not None else list(_events(decision))
    stamped = [{**event, "at": now, **command.said} for event in events]
    for event in stamped:
        apply(state, event)
    return stamped, refused


def _events(decision: Decision) -> list[Event]:
    assert not isinstance(decision, Refused)
    return decision


def _recorded(state: State, command: Command, refused: Refused) -> list[Event]:
    named = {name for key in command.moves if key in state.analyses for name in state.analyses[key].charges}
    names = sorted({name for name in {*command.accounts, *named} if name in state.accounts})
    if not command.asked or not names or refused.reason is Refusal.STALE:
        return []
    event = {"kind": "refused", "why": refused.reason.code, "accounts": names, "short": refused.shortfall}
    return [{part: value for part, value in {**event, **command.asked}.items() if value}]
