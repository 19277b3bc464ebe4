"""A ledger that a service keeps, with the interface of one that is kept here.

::

    ledger = pl.Ledger("https://budget.example.org", token="pl_...")  # or $PRIVLOSS_TOKEN
    with ledger.spend("census", pl.Gaussian(noise_multiplier=10), key="mean-age") as run:
        answer = 42  # touch the data here

Arguments are checked here first, with the same sentences; prices, budgets and names of analysts are the service's.
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from privloss.client import answers, looking, questions
from privloss.client.address import Address
from privloss.client.asking import Asking, Patience, Question
from privloss.client.connection import Connections
from privloss.errors import InvalidInput
from privloss.ledger import calendar, names
from privloss.ledger.answers import RefusedError, Reservation
from privloss.ledger.commands import Command, Note
from privloss.ledger.described import Described
from privloss.ledger.evidence import Evidence, attaching
from privloss.ledger.filters import Filter
from privloss.ledger.ledger import LEASE, Ledger
from privloss.ledger.odometers import Reading
from privloss.ledger.refusals import Refusal
from privloss.ledger.requests import Request
from privloss.ledger.state import EVERYONE
from privloss.ledger.stores.address import address_of
from privloss.ledger.stores.base import Outcome, Store
from privloss.ledger.verify import Audit, Step
from privloss.ledger.views import Wanted
from privloss.numerics import check

if TYPE_CHECKING:
    from privloss.mechanisms.questions import Questions

VARIABLE = "PRIVLOSS_TOKEN"
_TOKEN = re.compile(r"[\x21-\x7e]{1,500}")  # nothing that could end a header


class RemoteLedger(Ledger):
    """A ledger at a service. Threads may share it; a forked process opens connections of its own."""

    def __init__(
        self,
        place: str | None = None,
        *,
        store: Store | None = None,
        clock: Callable[[], float] | None = None,
        group: bool = False,
        actor: str | None = None,
        token: str | None = None,
        seconds: float = 30.0,
        patience: Patience | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`seconds`: for an answer to begin; `patience`: how long to go on asking; `context`: another trust in
        certificates than the machine's."""
        if store is not None or clock is not None or group or actor is not None:
            raise InvalidInput("store, clock, group, actor: are the service's own; give the address and a token.")
        self.address = Address.of(address_of(place))
        self._asking = Asking(
            Connections(self.address, check.number("seconds", seconds, low=0, high=3600, above=True), context),
            self.address.shown,
            _token(token),
            patience or Patience(),
        )
        self.clock, self.actor = None, "token"  # the service knows whose
        self._nothing_said = Note()

    def __repr__(self) -> str:
        return f"Ledger({self.address.shown!r})"

    def close(self) -> None:
        self._asking.close()

    # -- setting up --

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
        Filter.of(currency, cap, delta, filter)
        period = None if every is None else check.choice("every", every, calendar.EVERY)
        if period is not None and analyst != EVERYONE:
            raise InvalidInput(f"analyst = {analyst!r}, every = {every!r}: a quota has no periods; give one of them.")
        quota = () if analyst == EVERYONE else (names.person("analyst", analyst),)
        place = questions.dataset(names.name("dataset", dataset), *(("quotas", *quota) if quota else ("budget",)))
        sizes = {"cap": questions.amount("cap", cap), "delta": questions.amount("delta", delta)}
        more = questions.told(self._note(reason, labels))
        body = questions.given(currency=currency, filter=filter, every=period, **sizes, **more)
        self._asking.ask(Question("PUT", place, body))

    def attach_audit(
        self, audit: Evidence, *, dataset: str | None = None, key: str | None = None, date: Any = None,
        reason: str = "", labels: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        command = attaching(audit, dataset, key, date, self._note(reason, labels))
        whole = audit if isinstance(audit, Mapping) else audit.to_json()
        self._asking.ask(questions.attached(command, whole))
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
        owner = {} if analyst == EVERYONE else {"analyst": names.person("analyst", analyst)}
        body = questions.asked(Request.of(datasets, plan, cost, cost_delta, blocks)) | owner
        found = self._seen(Question("POST", "/v1/quote", body))
        return {name: answers.exact(row) for name, row in found.items()}

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
        questions.whose(analyst)
        body = questions.asked(Request.of(datasets, plan, cost, cost_delta, blocks))
        seconds = check.number("lease", lease, low=0, high=1e9, above=True)
        said = questions.told(self._note(reason, labels)) | questions.given(label=names.note("label", label))
        place = questions.reservation(questions.new_key(key))
        return answers.reservation(key, self._asking.ask(Question("PUT", place, {**body, "lease": seconds, **said})))

    def start(self, key: str, lease: float | None = None, *, token: str | None = None, reason: str = "") -> Reservation:
        seconds = LEASE if lease is None else check.number("lease", lease, low=0, high=1e9, above=True)
        run = secrets.token_hex(16) if token is None else names.token(token)  # one for all attempts of this start
        body = {"run": run, "lease": seconds, **questions.given(reason=names.note("reason", reason))}
        return answers.reservation(key, self._asking.ask(Question("POST", questions.reservation(key, "start"), body)))

    # -- looking --

    def status(self, name: str) -> dict[str, Any]:
        return answers.exact(self._seen(Question("GET", questions.dataset(names.name("dataset", name)))))

    def datasets(self) -> list[dict[str, Any]]:
        """Those that the token may see."""
        return [answers.exact(each) for each in self._asking.ask(Question("GET", "/v1/datasets"))["datasets"]]

    def page(
        self, name: str, after: int = 0, limit: int = 500, **wanted: Any
    ) -> tuple[list[dict[str, Any]], int | None]:
        return looking.page(self._seen, names.name("dataset", name), after, limit, Wanted(**wanted))

    def history(self, name: str, **wanted: Any) -> list[dict[str, Any]]:
        return looking.history(self._seen, names.name("dataset", name), Wanted(**wanted))

    def reservation(self, key: str) -> Reservation | None:
        try:
            return answers.reservation(key, self._asking.ask(Question("GET", questions.reservation(key))))
        except RefusedError as no:
            if no.refused.reason is Refusal.UNKNOWN_KEY:
                return None
            raise

    def odometer(self, name: str, delta: float | None = None) -> Reading:
        return answers.reading(self._seen(questions.odometer(names.name("dataset", name), delta)))

    def verify(self, step: Step | None = None) -> Audit:
        """At the service; what was written before it is called, is in it. How far it is, is not known here."""
        return answers.audit(looking.verified(self._asking.ask, self._asking.sleep))

    def export(self) -> Iterator[str]:
        for line in self._asking.lines("/v1/export"):
            yield line.decode()

    # -- what is done elsewhere --

    def acting(self, actor: str) -> Ledger:
        raise InvalidInput(f"actor = {actor!r}: at a service the token says who acts; open it with another token.")

    def __getattr__(self, name: str) -> Any:
        """The store, for whoever would reach around the routes: maintenance, the making of tokens."""
        if name == "store":
            raise InvalidInput(
                f"db = {self.address.shown!r}: is a service; this is done where its ledger is kept. (A backup may also "
                "be an export.)"
            )
        raise AttributeError(f"a ledger at a service has no {name!r}")

    # -- inside --

    def _run(self, command: Command) -> Outcome:
        """The ledger's own commands, as it has checked them."""
        return answers.outcome(self._asking.ask(questions.question(command)))

    def _seen(self, question: Question) -> Any:
        """Looking at a dataset that is not there is bad input, as it is here."""
        try:
            return self._asking.ask(question)
        except RefusedError as no:
            if no.refused.reason is Refusal.UNKNOWN_DATASET:
                name = no.refused.text.removeprefix("dataset ").removesuffix(" is not in this ledger")
                raise InvalidInput(f"dataset = {name}: is not in this ledger.") from None
            raise


def _token(given: str | None) -> str:
    """It is never shown, not even a wrong one."""
    found = given if given is not None else os.environ.get(VARIABLE, "")
    if not isinstance(found, str) or not _TOKEN.fullmatch(found):
        raise InvalidInput(f"token: give the token of the service, as token=... or in ${VARIABLE}.")
    return found
