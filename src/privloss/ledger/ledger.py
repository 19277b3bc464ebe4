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

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from privloss.adjacency import ADJACENCIES
from privloss.errors import InvalidInput
from privloss.ledger import calendar, names, views
from privloss.ledger.answers import AlreadySpentError as AlreadySpentError
from privloss.ledger.answers import RefusedError as RefusedError
from privloss.ledger.answers import Reservation as Reservation
from privloss.ledger.answers import accepted, quoted
from privloss.ledger.commands import AddAccount, Command, Freeze, Move, Note, Reserve, SetBudget
from privloss.ledger.decide import Refusal, Refused, decide
from privloss.ledger.described import Described
from privloss.ledger.evidence import Evidence, attaching
from privloss.ledger.filters import Filter
from privloss.ledger.odometers import Reading, odometer
from privloss.ledger.requests import Request, repeatable, settings
from privloss.ledger.spending import Spending
from privloss.ledger.state import COMMITTED, EVERYONE, STARTED, VOIDED, Account, State, run_hash
from privloss.ledger.stores.address import address_of, is_service, open_store
from privloss.ledger.stores.base import LostReply, Outcome, Store
from privloss.ledger.stores.rows import ANALYSIS, analysis_from
from privloss.ledger.verify import Audit, Step, export, verify
from privloss.numerics import check

if TYPE_CHECKING:
    from privloss.mechanisms.questions import Questions

LEASE = 3600.0  # seconds
_SEEN_BEFORE = (Refusal.STALE, Refusal.UNKNOWN_DATASET, Refusal.BLOCKS, Refusal.NO_BUDGET, Refusal.CURRENCY)
_MOST_ASKED = 1000
_Asked = tuple[Any, ...]


class Ledger(Spending):
    """A ledger at a place: a path, sqlite:///relative, sqlite:////absolute, or postgresql://...

    With `group` the commands of many threads are made durable together: one sync of the disk for all that wait. `actor`
    is who acts, in every event ($PRIVLOSS_ACTOR, or the user's name). `clock` replaces the time of the place where the
    ledger is kept: for tests.

    The address of a service, https://..., gives a ledger that asks the service, with its `token` ($PRIVLOSS_TOKEN).
    """

    def __new__(cls, place: str | None = None, *, store: Store | None = None, **options: Any) -> Ledger:
        if cls is not Ledger or store is not None or not is_service(address_of(place)):
            return super().__new__(cls)
        # by name, as late as possible: it is a ledger too, and so imports this module
        elsewhere: type[Ledger] = import_module("privloss.client.ledger").RemoteLedger
        return super().__new__(elsewhere)

    def __init__(
        self,
        place: str | None = None,
        *,
        store: Store | None = None,
        clock: Callable[[], float] | None = None,
        group: bool = False,
        actor: str | None = None,
        token: str | None = None,
    ) -> None:
        if token is not None:
            raise InvalidInput("token = ...: is for a service, at an address that begins with https://.")
        if store is not None and (place is not None or group):
            raise InvalidInput(f"place = {place!r}, group = {group!r}: contradict a store that is open already.")
        self.actor = names.name("actor", actor if actor is not None else names.whoever())
        self.store = store if store is not None else open_store(place, create=False, group=group)
        self.clock = clock
        # settings as they were last seen; every command checks them again. Replaced, never changed: a lock might be
        # held for ever in a forked child
        self._known: dict[str, Account] = {}
        self._asked: dict[_Asked, Reserve] = {}  # requests all in text, priced for these settings
        self._nothing_said = Note(self.actor)

    @classmethod
    def create(
        cls,
        place: str | None = None,
        *,
        clock: Callable[[], float] | None = None,
        group: bool = False,
        actor: str | None = None,
    ) -> Ledger:
        """Open a ledger, making it first if there is none."""
        return cls(store=open_store(place, create=True, group=group), clock=clock, actor=actor)

    def close(self) -> None:
        self.store.close()

    def now(self) -> float:
        return (self.clock or time.time)()

    # -- setting up --

    def add_dataset(
        self,
        name: str,
        *,
        adjacency: str,
        unit: str = "record",
        parent: str | None = None,
        blocks: str | None = None,
        reason: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Add a dataset, under a group if it has a `parent`. With `blocks` ("day", "week", ...) its data arrives in
        blocks, each of which has a budget of its own."""
        every = None if blocks is None else check.choice("blocks", blocks, calendar.EVERY)
        self._add(name, adjacency, unit, parent, every, False, self._note(reason, labels))

    def add_group(
        self,
        name: str,
        *,
        adjacency: str,
        unit: str = "record",
        parent: str | None = None,
        reason: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Add a group (a department, a project), whose budget holds for all datasets below it together."""
        self._add(name, adjacency, unit, parent, None, True, self._note(reason, labels))

    def _add(
        self, name: str, adjacency: str, unit: str, parent: str | None, blocks: str | None, group: bool, note: Note
    ) -> None:
        chosen = check.choice("adjacency", adjacency, ADJACENCIES)
        above = None if parent is None else names.name("parent", parent)
        checked = names.name("dataset", name), chosen, names.name("unit", unit)
        self._run(AddAccount(*checked, group, above, blocks, note))

    def set_budget(
        self,
        dataset: str,
        *,
        currency: str,
        cap: Any,
        delta: Any = None,
        filter: str | None = None,
        analyst: str = EVERYONE,
        every: str | None = None,
        reason: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Fix the budget of a dataset (of each of its blocks) or group before the first spend; with `every` ("year",
        ...) what may be spent in each period beneath it; with `analyst` a quota, which may change later."""
        budget = Filter.of(currency, cap, delta, filter)
        owner = analyst if analyst == EVERYONE else names.person("analyst", analyst)
        period = None if every is None else check.choice("every", every, calendar.EVERY)
        if period is not None and owner != EVERYONE:
            raise InvalidInput(f"analyst = {analyst!r}, every = {every!r}: a quota has no periods; give one of them.")
        name = names.name("dataset", dataset)
        above = tuple(settings(self.store, [name]).above(name))
        self._run(SetBudget(name, budget, owner, period, above, self._note(reason, labels)))

    def freeze(
        self, dataset: str, frozen: bool = True, *, reason: str = "", labels: Mapping[str, str] | None = None
    ) -> None:
        self._run(Freeze(names.name("dataset", dataset), frozen, self._note(reason, labels)))

    def attach_audit(
        self, audit: Evidence, *, dataset: str | None = None, key: str | None = None, date: Any = None,
        reason: str = "", labels: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Put what an audit (`pl.audit`, or its JSON) has found into the history of a key, or of a dataset or group:
        verdict, figures, and the SHA-256 of its canonical JSON, which is returned with them. No balance changes. `date`
        is the day it was made (today)."""
        command = attaching(audit, dataset, key, date, self._note(reason, labels))
        self._run(command)
        return command.audit

    # -- spending --

    def quote(
        self,
        datasets: str | Sequence[str],
        plan: Questions | Described | None = None,
        *,
        cost: Any = None,
        cost_delta: Any = None,
        analyst: str = EVERYONE,
        blocks: Any = None,
    ) -> dict[str, Any]:
        """What a request would be charged, what would remain, and whether it would be accepted; spends nothing."""
        request = Request.of(datasets, plan, cost, cost_delta, blocks)
        owner = analyst if analyst == EVERYONE else names.person("analyst", analyst)
        found = settings(self.store, request.datasets)
        for name in request.datasets:
            if name not in found.accounts:
                raise InvalidInput(f"dataset = {name!r}: is not in this ledger.")
            if found.accounts[name].filter is None:
                raise InvalidInput(f"dataset = {name!r}: has no budget; set one with: privloss ledger budget set")
        charges = request.charges(found)
        blocks_read = request.block_names(found)
        command = Reserve("", "", charges, request.adjacency, owner, LEASE, request.datasets, blocks_read)
        with self.store.reading() as cursor:
            state = State({name: self._whole(cursor, name) for name in charges})
        decision = decide(state, command, self.now())
        why = decision if isinstance(decision, Refused) else None
        return {name: quoted(state.accounts[name], command, why, self.now()) for name in charges}

    def reserve(
        self,
        datasets: str | Sequence[str],
        plan: Questions | Described | None = None,
        *,
        key: str,
        cost: Any = None,
        cost_delta: Any = None,
        analyst: str = EVERYONE,
        blocks: Any = None,
        lease: float = LEASE,
        label: str = "",
        reason: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> Reservation:
        """Hold the cost of a plan (or mechanism, or training run), or a typed cost, on one dataset or several (all or
        nothing); `RefusedError` if a budget has no room. Of a dataset with blocks say which are read: "2026-11-01..
        2026-11-14". The same key with the same request is answered again, and charged once. To hold a key is no
        permission yet: only `start` gives that, and to one caller."""
        name = names.name("key", key)
        asked = datasets, cost, cost_delta, blocks, analyst, label, lease
        plain = plan is None and labels is None and type(lease) is float and repeatable(*asked[:-1], reason)
        known = self._asked.get((*asked, reason)) if plain else None
        if known is not None:
            outcome = self._tried(known.under(name))
            if not unsettled(outcome):
                return Reservation.of(name, accepted(outcome))
        request = Request.of(datasets, plan, cost, cost_delta, blocks)
        owner = analyst if analyst == EVERYONE else names.person("analyst", analyst)
        seconds = check.number("lease", lease, low=0, high=1e9, above=True)
        said = names.note("label", label), self._note(reason, labels)
        for _ in range(2):  # priced for settings seen before; if they have changed, once more
            command = self._priced(name, request, owner, seconds, *said)
            outcome = self._tried(command)
            if not unsettled(outcome):
                break
            self._known, self._asked = {}, {}
        if plain and outcome.refused is None:
            if len(self._asked) >= _MOST_ASKED:
                self._asked = {}
            self._asked[(*asked, reason)] = command
        return Reservation.of(name, accepted(outcome))

    def start(self, key: str, lease: float | None = None, *, token: str | None = None, reason: str = "") -> Reservation:
        """Durable before it returns: only now may the data be read, and only by this caller, once.

        Whoever starts the key again is refused (`AlreadySpentError`), also after a crash: an answer may be out. A
        caller that fears to lose the reply draws a `token` at random for this one start, and may ask again with it as
        long as it has not read the data. To run an analysis again is a new analysis: a new key, a new charge.
        """
        seconds = LEASE if lease is None else check.number("lease", lease, low=0, high=1e9, above=True)
        run = run_hash(secrets.token_hex(16) if token is None else names.token(token))
        return self._move(STARTED, key, seconds, run, reason)

    def commit(self, key: str, *, reason: str = "") -> Reservation:
        """Durable before it returns: only now may the answer be released."""
        return self._move(COMMITTED, key, reason=reason)

    def void(self, key: str, *, reason: str = "") -> Reservation:
        """Give a reservation back, if it was not started."""
        return self._move(VOIDED, key, reason=reason)

    def _move(self, to: str, key: str, lease: float | None = None, run: str = "", reason: str = "") -> Reservation:
        name = names.name("key", key)
        return Reservation.of(name, self._run(Move(to, name, lease, run, self._note(reason, None))))

    # -- looking --

    def status(self, name: str) -> dict[str, Any]:
        """What is committed, reserved and left, exactly, and the (epsilon, delta) the cap guarantees."""
        return views.status(self._dataset(name))

    def datasets(self) -> list[dict[str, Any]]:
        """The status of every dataset and group."""
        with self.store.reading() as cursor:
            return [views.status(self._whole(cursor, name)) for name in self.store.accounts(cursor)]

    def page(
        self, name: str, after: int = 0, limit: int = 500, **wanted: Any
    ) -> tuple[list[dict[str, Any]], int | None]:
        """A part of a dataset's own chain: events after `after` (a seq), at most `limit`, those that are wanted as for
        `history`; and after which the next part begins, None at the end. However long the chain, a part is short."""
        self._dataset(name)
        with self.store.reading() as cursor:
            return views.page(self.store, cursor, name, after, limit, views.Wanted(**wanted))

    def reservation(self, key: str) -> Reservation | None:
        """Where a key stands and what it was charged; None if it was never used."""
        name = names.name("key", key)
        rows = self.store.look(f"{ANALYSIS} WHERE key = ?", [name])
        found = analysis_from(rows[0]) if rows else None
        return None if found is None else Reservation(name, found.state, Outcome(None, found.state, found.charges, {}))

    def acting(self, actor: str) -> Ledger:
        """The same ledger for somebody else, in whose name it writes."""
        return Ledger(store=self.store, clock=self.clock, actor=actor)

    def history(self, name: str, **wanted: Any) -> list[dict[str, Any]]:
        """The events that concern a dataset, oldest first. Of them, if asked: the `last` so many, those of an
        `analyst`, of one `kind` or `key`, of keys that stand at `state` now, from `since` on, before `until` (seconds
        since the epoch); `looked`: at most among the last so many."""
        self._dataset(name)
        with self.store.reading() as cursor:
            return views.history(self.store, cursor, name, views.Wanted(**wanted))

    def odometer(self, name: str, delta: float | None = None) -> Reading:
        """What everything committed on a dataset so far has lost, valid also if the answers decide when to look.

        `delta` is the chance that it has lost more; pure budgets and basic approximate ones need none. `Reading` says
        what is bounded where (epsilon, delta)-DP answers are among those counted.
        """
        account = self._dataset(name)
        if account.filter is None:
            raise InvalidInput(f"dataset = {name!r}: has no budget; set one with: privloss ledger budget set")
        if account.blocks:
            raise InvalidInput(f"dataset = {name!r}: its blocks are accounted for one by one; status shows them.")
        spent = {part: b.committed for (owner, part), b in account.balances.items() if owner == EVERYONE}
        return odometer(account.filter.currency, spent, delta)

    def verify(self, step: Step | None = None) -> Audit:
        """Recompute the chains, every decision and all balances. `step` is told how much of how much is done."""
        return verify(self.store, step)

    def export(self) -> Iterator[str]:
        """The history as canonical JSON lines."""
        with self.store.reading() as cursor:
            yield from export(self.store.entries(cursor))

    # -- inside --

    def _note(self, reason: str, labels: Mapping[str, str] | None) -> Note:
        if reason == "" and labels is None:
            return self._nothing_said
        return Note(self.actor, names.note("reason", reason), names.labels(labels))

    def _tried(self, command: Command) -> Outcome:
        """A command may be asked again: it takes effect once, and a start knows its own run."""
        try:
            return self.store.run(command, self.clock)
        except LostReply:
            return self.store.run(command, self.clock)

    def _run(self, command: Command) -> Outcome:
        return accepted(self._tried(command))

    def _priced(self, key: str, request: Request, analyst: str, lease: float, label: str, note: Note) -> Reserve:
        """A request with what it is charged, by the settings seen before: charges, blocks, periods of its accounts."""
        found = self._settings(request.datasets)
        charges = request.charges(found)
        every = tuple({e for each in charges if each in found.accounts and (e := found.accounts[each].every)})
        what = key, request.digest(analyst), charges, request.adjacency, analyst, lease, request.datasets
        return Reserve(*what, request.block_names(found), every, request.body, label, note)

    def _settings(self, wanted: Sequence[str]) -> State:
        """Settings of accounts and of the groups above them, as they were last seen."""
        known = self._known
        if not all(name in known for name in wanted):
            known = known | settings(self.store, wanted).accounts
            self._known = {name: account for name, account in known.items() if account.filter is not None}
        return State(dict(known))

    def _dataset(self, name: str) -> Account:
        with self.store.reading() as cursor:
            return self._whole(cursor, name)

    def _whole(self, cursor: Any, name: str) -> Account:
        found = self.store.account(cursor, names.name("dataset", name))
        if found is None:
            raise InvalidInput(f"dataset = {name!r}: is not in this ledger.")
        return found


def repeated(ledger: Ledger, *asked: Any) -> Reserve | None:
    """The command of a request all in text that was made before; `asked` as in `reserve`."""
    return ledger._asked.get(asked)


def unsettled(outcome: Outcome) -> bool:
    """Whether it was refused for what may be otherwise by the settings of now."""
    return outcome.refused is not None and outcome.refused.reason in _SEEN_BEFORE
