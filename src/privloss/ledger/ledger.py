"""The ledger: says before each analysis whether it may run, and proves afterwards that the promise was kept.

>>> import tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "privloss.db")
>>> ledger = Ledger.create(path)
>>> ledger.add_dataset("census", adjacency="add-remove")
>>> ledger.set_budget("census", currency="pure", cap="1")
>>> with ledger.spend("census", cost="1/11", key="count-2026") as run:
...     answer = 42                      # touch the data here
>>> ledger.status("census")["committed"], ledger.status("census")["remaining"]
('1/11', '10/11')
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from privloss.adjacency import ADJACENCIES
from privloss.errors import InvalidInput, PrivlossError
from privloss.ledger.amounts import read, show
from privloss.ledger.commands import AddDataset, Command, Freeze, Move, Reserve, SetBudget
from privloss.ledger.decide import Refusal, Refused
from privloss.ledger.filters import Filter
from privloss.ledger.odometers import Reading, odometer
from privloss.ledger.pricing import price
from privloss.ledger.state import COMMITTED, EVERYONE, STARTED, VOIDED, Charges, Dataset, charges_to_json
from privloss.ledger.stores.address import open_store
from privloss.ledger.stores.base import LedgerError, Outcome, Store, canonical
from privloss.ledger.verify import Audit, export, verify
from privloss.numerics import check

if TYPE_CHECKING:
    from privloss.mechanisms.base import Plan
    from privloss.mechanisms.questions import Questions

LEASE = 3600.0  # seconds
_Result = TypeVar("_Result")


class RefusedError(PrivlossError):
    """The ledger says no; nothing was charged."""

    def __init__(self, refused: Refused, remaining: Mapping[str, Mapping[str, str]] | None = None) -> None:
        super().__init__(f"refused: {refused.text} ({refused.reason.code}).")
        self.refused, self.remaining = refused, remaining


class AlreadySpentError(RefusedError, LedgerError):
    """The key was started before: by another caller, or by one that has ended. What it was charged stays charged."""


@dataclass(frozen=True)
class Reservation:
    """A key and where it stands."""

    key: str
    state: str
    charged: dict[str, dict[str, str]]
    remaining: dict[str, dict[str, str]]


class Ledger:
    """A ledger at a place: a path, sqlite:///relative, sqlite:////absolute, or postgresql://...

    With `grouped` the commands of many threads are made durable together: one sync of the disk for all that wait.
    """

    def __init__(
        self,
        place: str | None = None,
        *,
        store: Store | None = None,
        clock: Callable[[], float] = time.time,
        grouped: bool = False,
    ) -> None:
        if store is not None and (place is not None or grouped):
            raise InvalidInput(f"place = {place!r}, grouped = {grouped!r}: contradict a store that is open already.")
        self.store = store if store is not None else open_store(place, create=False, grouped=grouped)
        self.clock = clock

    @classmethod
    def create(
        cls, place: str | None = None, *, clock: Callable[[], float] = time.time, grouped: bool = False
    ) -> Ledger:
        """Open a ledger, making it first if there is none."""
        return cls(store=open_store(place, create=True, grouped=grouped), clock=clock)

    def close(self) -> None:
        self.store.close()

    # -- setting up --

    def add_dataset(self, name: str, *, adjacency: str, unit: str = "record") -> None:
        chosen = check.choice("adjacency", adjacency, ADJACENCIES)
        self._run(AddDataset(_name("dataset", name), chosen, _name("unit", unit)))

    def set_budget(
        self,
        dataset: str,
        *,
        currency: str,
        cap: Any,
        delta: Any = None,
        filter: str | None = None,
        analyst: str = EVERYONE,
    ) -> None:
        """Fix a dataset's budget, or an analyst's quota beneath it, before the first spend."""
        budget = Filter.of(currency, cap, delta, filter)
        owner = analyst if analyst == EVERYONE else _name("analyst", analyst)
        self._run(SetBudget(_name("dataset", dataset), budget, owner))

    def freeze(self, dataset: str, frozen: bool = True) -> None:
        self._run(Freeze(_name("dataset", dataset), frozen))

    # -- spending --

    def quote(
        self, datasets: str | Sequence[str], plan: Questions | None = None, *, cost: Any = None, cost_delta: Any = None
    ) -> dict[str, Any]:
        """What a request would be charged, what would remain, and whether it would be accepted; spends nothing."""
        priced = _plan(plan)
        charges = self._charges(datasets, priced, cost, cost_delta)
        adjacency = None if priced is None else priced.adjacency
        found = {}
        for name, parts in charges.items():
            dataset = self._dataset(name)
            if dataset.filter is None:
                raise InvalidInput(f"dataset = {name!r}: has no budget; set one with: privloss ledger budget set")
            left = {part: dataset.balances[(EVERYONE, part)].remaining - amount for part, amount in parts.items()}
            fits = not dataset.frozen and adjacency in (None, dataset.adjacency) and min(left.values()) >= 0
            found[name] = {"charged": _shown(parts), "remaining": _shown(left), "fits": fits}
        return found

    def reserve(
        self,
        datasets: str | Sequence[str],
        plan: Questions | None = None,
        *,
        key: str,
        cost: Any = None,
        cost_delta: Any = None,
        analyst: str = EVERYONE,
        lease: float = LEASE,
    ) -> Reservation:
        """Hold the cost of a plan (or mechanism, or training run), or a typed cost, on one dataset or several (all or
        nothing); `RefusedError` if the budget has no room. The same key with the same request is answered again, and
        charged once. To hold a key is no permission yet: only `start` gives that, and to one caller."""
        name = _name("key", key)
        owner = analyst if analyst == EVERYONE else _name("analyst", analyst)
        seconds = check.number("lease", lease, low=0, high=1e9, above=True)
        priced = _plan(plan)
        charges = self._charges(datasets, priced, cost, cost_delta)
        body = None if priced is None else priced.to_dict()
        # what was asked, not what it was priced at: prices may become sharper in later releases
        asked = {
            "datasets": sorted(charges),
            "plan": body,
            "analyst": owner,
            "cost": None if cost is None else show(read("cost", cost)),
        }
        asked["cost_delta"] = None if cost_delta is None else show(read("cost-delta", cost_delta))
        digest = hashlib.sha256(canonical(asked).encode()).hexdigest()
        adjacency = None if priced is None else priced.adjacency
        command = Reserve(name, digest, charges, adjacency, owner, seconds, self.clock(), body)
        return self._reservation(self._run(command), name)

    def start(self, key: str, lease: float | None = None, *, token: str | None = None) -> Reservation:
        """Durable before it returns: only now may the data be read, and only by this caller, once.

        Whoever starts the key again is refused (`AlreadySpentError`), also after a crash: an answer may be out. A
        caller that fears to lose the reply draws a `token` at random for this one start, and may ask again with it as
        long as it has not read the data.
        """
        seconds = LEASE if lease is None else check.number("lease", lease, low=0, high=1e9, above=True)
        return self._move(STARTED, key, seconds, secrets.token_hex(16) if token is None else _token(token))

    def commit(self, key: str) -> Reservation:
        """Durable before it returns: only now may the answer be released."""
        return self._move(COMMITTED, key)

    def void(self, key: str) -> Reservation:
        """Give a reservation back, if it was not started."""
        return self._move(VOIDED, key)

    def _move(self, to: str, key: str, lease: float | None = None, token: str = "") -> Reservation:
        name = _name("key", key)
        return self._reservation(self._run(Move(to, name, self.clock(), lease, token)), name)

    def _enter(self, key: str) -> Reservation:
        """Start a key for one block; where the reply is lost, ask once more whether it was this call that did it."""
        token = secrets.token_hex(16)
        try:
            return self.start(key, token=token)
        except RefusedError:
            raise
        except LedgerError:
            return self.start(key, token=token)

    @contextmanager
    def spend(
        self, datasets: str | Sequence[str], plan: Questions | None = None, *, key: str, **options: Any
    ) -> Iterator[Reservation]:
        """Reserve and start before the block, commit after it. A block that fails has touched the data: it is committed
        too, because failures are outputs. Of all callers with one key one enters the block, once; the others, and any
        after a crash, are refused with `AlreadySpentError`."""
        self.reserve(datasets, plan, key=key, **options)
        started = self._enter(key)
        try:
            yield started
        finally:
            self.commit(key)

    @asynccontextmanager
    async def aspend(
        self, datasets: str | Sequence[str], plan: Questions | None = None, *, key: str, **options: Any
    ) -> AsyncIterator[Reservation]:
        """`spend` for asyncio: the ledger's work runs in a thread."""
        await asyncio.to_thread(self.reserve, datasets, plan, key=key, **options)
        started = await asyncio.to_thread(self._enter, key)
        try:
            yield started
        finally:
            await asyncio.shield(asyncio.to_thread(self.commit, key))

    def spending(
        self, datasets: str | Sequence[str], plan: Questions | None = None, **options: Any
    ) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
        """A decorator: every call spends, under the key given as the keyword argument `key`. A key runs the function
        once, whatever its arguments; a second call under it is refused."""

        def wrap(function: Callable[..., _Result]) -> Callable[..., _Result]:
            @functools.wraps(function)
            def spent(*arguments: Any, key: str, **keywords: Any) -> _Result:
                with self.spend(datasets, plan, key=key, **options):
                    return function(*arguments, **keywords)

            return spent

        return wrap

    # -- looking --

    def status(self, name: str) -> dict[str, Any]:
        """What is committed, reserved and left, exactly, and the (epsilon, delta) the cap guarantees."""
        dataset = self._dataset(name)
        budget = dataset.filter
        if budget is None:
            return {"dataset": name, "currency": None, "adjacency": dataset.adjacency, "frozen": dataset.frozen}
        parts = {c: b for (owner, c), b in dataset.balances.items() if owner == EVERYONE}

        def amount(of: Callable[[Any], Fraction]) -> Any:
            shown = {c: show(of(b)) for c, b in parts.items()}
            return next(iter(shown.values())) if len(shown) == 1 else shown

        found = {
            "dataset": name,
            "currency": budget.currency,
            "cap": amount(lambda b: b.cap),
            "committed": amount(lambda b: b.committed),
            "reserved": amount(lambda b: b.reserved),
            "remaining": amount(lambda b: b.remaining),
            "guarantee": budget.guarantee(),
            "adjacency": dataset.adjacency,
            "unit": dataset.unit,
            "frozen": dataset.frozen,
            "filter": budget.theorem,
        }
        if dataset.quotas:
            found["analysts"] = {
                who: {
                    c: {"cap": show(b.cap), "remaining": show(b.remaining)}
                    for (o, c), b in dataset.balances.items()
                    if o == who
                }
                for who in sorted(dataset.quotas)
            }
        return found

    def history(self, name: str) -> list[dict[str, Any]]:
        """The events that concern a dataset."""
        self._dataset(name)
        keys, found = set(), []
        with self.store.reading() as cursor:
            for seq, _, body, _ in self.store.events(cursor):
                event = json.loads(body)
                if name in event.get("charges", {}):
                    keys.add(event["key"])
                if event.get("dataset") == name or event.get("key") in keys or event["kind"] == "restored":
                    found.append({"seq": seq, **event})
        return found

    def odometer(self, name: str, delta: float | None = None) -> Reading:
        """What everything committed on a dataset so far has lost, valid also if the answers decide when to look.

        `delta` is the chance that it has lost more; pure budgets and basic approximate ones need none. `Reading` says
        what is bounded where (epsilon, delta)-DP answers are among those counted.
        """
        dataset = self._dataset(name)
        if dataset.filter is None:
            raise InvalidInput(f"dataset = {name!r}: has no budget; set one with: privloss ledger budget set")
        spent = {part: b.committed for (owner, part), b in dataset.balances.items() if owner == EVERYONE}
        return odometer(dataset.filter.currency, spent, delta)

    def verify(self) -> Audit:
        """Recompute the chain of events and all balances."""
        return verify(self.store)

    def export(self) -> Iterator[str]:
        """The history as canonical JSON lines."""
        with self.store.reading() as cursor:
            yield from export(self.store.events(cursor))

    # -- inside --

    def _run(self, command: Command) -> Outcome:
        outcome = self.store.run(command, self.clock())
        if outcome.refused is not None:
            again = outcome.refused.reason is Refusal.ALREADY_STARTED
            made = AlreadySpentError if again else RefusedError
            raise made(outcome.refused, _remaining(outcome.state.datasets))
        return outcome

    def _reservation(self, outcome: Outcome, key: str) -> Reservation:
        found = outcome.state.analyses[key]
        return Reservation(key, found.state, charges_to_json(found.charges), _remaining(outcome.state.datasets) or {})

    def _dataset(self, name: str) -> Dataset:
        with self.store.reading() as cursor:
            found = self.store.dataset(cursor, _name("dataset", name))
        if found is None:
            raise InvalidInput(f"dataset = {name!r}: is not in this ledger.")
        return found

    def _charges(self, datasets: str | Sequence[str], plan: Plan | None, cost: Any, cost_delta: Any) -> Charges:
        names = [datasets] if isinstance(datasets, str) else list(datasets)
        if not names or len(set(names)) != len(names):
            raise InvalidInput(f"datasets = {names!r}: must be one or several different names.")
        if (plan is None) == (cost is None):
            raise InvalidInput(f"plan = {plan!r}, cost = {cost!r}: give exactly one of them.")
        charges: Charges = {}
        with self.store.reading() as cursor:
            found = {name: self.store.dataset(cursor, _name("dataset", name)) for name in names}
        for name in sorted(names):
            dataset = found[name]
            budget = dataset.filter if dataset is not None else None
            if budget is None:
                charges[name] = {}
            elif plan is None:
                charges[name] = budget.charge(cost, cost_delta)
            else:
                charges[name] = price(plan, budget, cost_delta)
        return charges


def _remaining(datasets: Mapping[str, Dataset]) -> dict[str, dict[str, str]]:
    return {
        name: {c: show(b.remaining) for (owner, c), b in dataset.balances.items() if owner == EVERYONE}
        for name, dataset in datasets.items()
    }


def _shown(parts: Mapping[str, Fraction]) -> dict[str, str]:
    return {part: show(x) if x >= 0 else f"-{show(-x)}" for part, x in parts.items()}


def _plan(given: Questions | None) -> Plan | None:
    """A plan, or what can be asked like one, as a plan."""
    if given is None:
        return None
    from privloss.mechanisms.questions import Questions

    if not isinstance(given, Questions):
        raise InvalidInput(f"plan = {given!r}: must be a plan, a mechanism or a training run (pl.dp_sgd).")
    return given.as_plan()


def _token(value: Any) -> str:
    if not isinstance(value, str) or not 16 <= len(value) <= 200 or not value.isprintable():
        raise InvalidInput(f"token = {value!r}: must be 16 to 200 printable characters, drawn at random for one start.")
    return value


def _name(what: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
        raise InvalidInput(f"{what} = {value!r}: must be a name of 1 to 200 printable characters.")
    return value
