"""What a caller asks for, checked and priced: names, plans, charges on datasets and on the groups above them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privloss.errors import InvalidInput
from privloss.ledger import calendar
from privloss.ledger.amounts import read, show
from privloss.ledger.decide import with_groups
from privloss.ledger.described import Described
from privloss.ledger.names import name
from privloss.ledger.pricing import price
from privloss.ledger.state import Account, Charges, State
from privloss.ledger.stores.base import Store
from privloss.ledger.stores.rows import canonical

if TYPE_CHECKING:
    from privloss.mechanisms.base import Plan
    from privloss.mechanisms.questions import Questions

_WORDS = frozenset((str, type(None)))


@dataclass(frozen=True)
class Request:
    """Datasets, what is to be run on them, and the blocks it reads."""

    datasets: tuple[str, ...]
    plan: Plan | Described | None
    cost: Any
    cost_delta: Any
    blocks: Any

    @classmethod
    def of(
        cls, datasets: str | Sequence[str], plan: Questions | Described | None, cost: Any, cost_delta: Any, blocks: Any
    ) -> Request:
        names = [datasets] if isinstance(datasets, str) else list(datasets)
        if not names or len(set(names)) != len(names):
            raise InvalidInput(f"datasets = {names!r}: must be one or several different names.")
        if (plan is None) == (cost is None):
            raise InvalidInput(f"plan = {plan!r}, cost = {cost!r}: give exactly one of them.")
        if not isinstance(blocks, (str, list, tuple, type(None))):
            raise InvalidInput(f"blocks = {blocks!r}: must be a range first..last, or a list of them.")
        checked = tuple(sorted(name("dataset", each) for each in names))
        return cls(checked, _plan(plan), cost, cost_delta, blocks)

    @property
    def adjacency(self) -> str | None:
        return None if self.plan is None else self.plan.adjacency

    @property
    def body(self) -> dict[str, Any] | None:
        return None if self.plan is None else self.plan.to_dict()

    def digest(self, analyst: str) -> str:
        """What was asked, not what it was priced at: prices may become sharper in later releases."""
        asked = {
            "datasets": list(self.datasets),
            "plan": self.body,
            "analyst": analyst,
            "cost": None if self.cost is None else show(read("cost", self.cost)),
            "cost_delta": None if self.cost_delta is None else show(read("cost-delta", self.cost_delta)),
        }
        if self.blocks is not None:
            asked["blocks"] = self.blocks if isinstance(self.blocks, str) else list(self.blocks)
        return hashlib.sha256(canonical(asked).encode()).hexdigest()

    def block_names(self, state: State) -> dict[str, tuple[str, ...]]:
        """The blocks of every dataset that has some."""
        if self.blocks is None:
            return {}
        every = {each: state.accounts[each].blocks for each in self.datasets if each in state.accounts}
        found = {each: calendar.blocks(kind, self.blocks) for each, kind in every.items() if kind is not None}
        return found or dict.fromkeys(self.datasets, ("?",))

    def charges(self, state: State) -> Charges:
        """The price on each dataset in its currency, and the sums on the groups above."""
        found: Charges = {}
        for each in self.datasets:
            account = state.accounts.get(each)
            budget = None if account is None else account.priced
            if budget is None:
                found[each] = {}
            elif self.plan is None:
                found[each] = budget.charge(self.cost, self.cost_delta)
            elif isinstance(self.plan, Described):
                found[each] = self.plan.price(self.plan.body, budget, self.cost_delta)
            else:
                found[each] = price(self.plan, budget, self.cost_delta)
        return with_groups(found, state)


def repeatable(*words: Any) -> bool:
    """Whether a request is all text, so that it can be recognised when it comes again under another key."""
    return _WORDS.issuperset(map(type, words))


def settings(store: Store, names: Sequence[str]) -> State:
    """The accounts of some names, and the groups above them, without balances."""
    found: dict[str, Account] = {}
    with store.reading() as cursor:
        wanted = list(names)
        while wanted:
            each = wanted.pop()
            account = store.settings(cursor, each)
            if account is not None:
                found[each] = account
                wanted += [account.parent] if account.parent is not None and account.parent not in found else []
    return State(found)


def _plan(given: Questions | Described | None) -> Plan | Described | None:
    """A plan, or what can be asked like one, as a plan."""
    if given is None or isinstance(given, Described):
        return given
    from privloss.mechanisms.questions import Questions

    if not isinstance(given, Questions):
        raise InvalidInput(f"plan = {given!r}: must be a plan, a mechanism or a training run (pl.dp_sgd).")
    return given.as_plan()
