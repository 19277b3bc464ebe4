"""The same walk of calls, in a ledger that is kept here and in one at a service: the same answers, method by method."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import privloss as pl
from privloss.client.ledger import RemoteLedger
from privloss.errors import InvalidInput, PrivlossError
from privloss.ledger.answers import RefusedError
from privloss.ledger.ledger import Ledger
from tests.client.real import Real

GAUSSIAN = pl.Gaussian(noise_multiplier=10)
AUDIT = pl.audit.counts(
    tp=12, positives=20, fp=8, negatives=20, delta=0.0, trials="independent", claim=1.0, method="clopper-pearson"
)
SHOWN = {"at", "actor", "hash", "lease", "was", "until", "expires", "run"}  # of events: when, who, and which run


class Roles:
    """A ledger as three people have it. Here they are one object; at a service three, each with a token."""

    def __init__(self, steward: Ledger, analyst: Ledger, auditor: Ledger, owner: str) -> None:
        self.steward, self.analyst, self.auditor = steward, analyst, auditor
        self._owner = owner

    def key(self, key: str) -> str:
        """A key as its analyst gives it: a service puts the analyst's name before it."""
        return f"{self._owner}{key}"

    @property
    def who(self) -> dict[str, Any]:
        return {"analyst": "alice"} if self._owner else {}


Step = Callable[[Roles], Any]


def _budgets(at: Roles) -> None:
    at.steward.add_group("hospital", adjacency="add-remove", unit="person", reason="a house", labels={"floor": "3"})
    at.steward.set_budget("hospital", currency="zcdp", cap="1", delta="1e-6")
    at.steward.add_dataset("ward", adjacency="add-remove", unit="person", parent="hospital")
    at.steward.set_budget("ward", currency="zcdp", cap="0.8", delta="1e-6", reason="rule 7")
    at.steward.set_budget("ward", currency="zcdp", cap="0.5", delta="1e-6", every="year")
    at.steward.set_budget("ward", currency="zcdp", cap="0.3", delta="1e-6", analyst="Alice")
    at.steward.add_dataset("census/2026 %", adjacency="add-remove", unit="person")
    at.steward.set_budget("census/2026 %", currency="pure", cap=1)
    at.steward.add_dataset("log", adjacency="replace-one", blocks="day")
    at.steward.set_budget("log", currency="approx", cap="2", delta="1e-5", filter="basic")
    at.steward.add_dataset("empty", adjacency="add-remove")


def _spent(at: Roles) -> list[object]:
    seen: list[object] = []
    with at.analyst.spend("census/2026 %", cost="1/11", key=at.key("k1"), **at.who) as run:
        seen.append(run)
    with (
        contextlib.suppress(ZeroDivisionError),
        at.analyst.spend("ward", GAUSSIAN, key=at.key("k2"), **at.who) as run,
    ):
        seen.append(run)
        raise ZeroDivisionError
    return seen


def _decorated(at: Roles) -> object:
    @at.analyst.spending("census/2026 %", cost="1/11", **at.who)
    def mean(x: int) -> int:
        return x + 1

    return mean(41, key=at.key("k3"))


def _both(at: Roles) -> object:
    return at.analyst.reserve(
        ["ward", "log"], pl.Laplace(scale=20), key=at.key("k4"), cost_delta="1e-9", blocks="2026-11-01..2026-11-03",
        lease=1e6, label="both", reason="because", labels={"team": "a"}, **at.who,
    )  # fmt: skip


# in this order, each once; a step that raises is compared by its exception
STEPS: dict[str, Step] = {
    "add_dataset, add_group, set_budget": _budgets,
    "add_dataset again": lambda at: at.steward.add_dataset("ward", adjacency="add-remove"),
    "add_dataset badly": lambda at: at.steward.add_dataset("x", adjacency="neighbours"),
    "set_budget where there is none": lambda at: at.steward.set_budget("nowhere", currency="pure", cap=1),
    "set_budget above the cap": lambda at: at.steward.set_budget("ward", currency="zcdp", cap=9, analyst="alice"),
    "set_budget of nothing": lambda at: at.steward.set_budget("empty", currency="pure", cap=0),
    "quote": lambda at: at.analyst.quote(["ward", "hospital"][:1], GAUSSIAN, **at.who),
    "quote a cost": lambda at: at.analyst.quote("census/2026 %", cost="1/11", **at.who),
    "quote blocks": lambda at: at.analyst.quote("log", cost=1, cost_delta=1e-7, blocks="2026-11-01", **at.who),
    "quote too much": lambda at: at.analyst.quote("ward", cost="0.4", **at.who),
    "quote as somebody": lambda at: at.steward.quote("ward", cost="0.4", analyst=" ALICE "),
    "quote where there is none": lambda at: at.analyst.quote("nowhere", cost=1, **at.who),
    "quote without a budget": lambda at: at.analyst.quote("empty", cost=1, **at.who),
    "spend": _spent,
    "spend again": lambda at: _decorated(at),
    "spend a third time": lambda at: _decorated(at),
    "reserve both": _both,
    "reserve the same": _both,
    "reserve another under the key": lambda at: at.analyst.reserve("ward", cost="0.1", key=at.key("k4"), **at.who),
    "reserve too much": lambda at: at.analyst.reserve("ward", cost="0.4", key=at.key("k5"), **at.who),
    "reserve for no time": lambda at: at.analyst.reserve("ward", cost=1, key=at.key("k6"), lease=0, **at.who),
    "reserve nothing": lambda at: at.analyst.reserve("ward", cost="0", key=at.key("k6"), **at.who),
    "reserve both ways": lambda at: at.analyst.reserve("ward", GAUSSIAN, cost=1, key=at.key("k6"), **at.who),
    "reserve what has no bound": lambda at: at.analyst.reserve(
        "log", pl.GDP(mu=1), key=at.key("k6"), blocks="2026-11-01", **at.who
    ),
    "reserve another unit": lambda at: at.analyst.reserve(
        "ward", pl.Plan([(GAUSSIAN, 1)], adjacency="replace-one"), key=at.key("k6"), **at.who
    ),
    "start": lambda at: at.analyst.start(at.key("k4"), 60.0, token="x" * 16, reason="now"),
    "start again with the token": lambda at: at.analyst.start(at.key("k4"), token="x" * 16),
    "start again": lambda at: at.analyst.start(at.key("k4")),
    "void what is started": lambda at: at.analyst.void(at.key("k4")),
    "commit": lambda at: at.analyst.commit(at.key("k4"), reason="done"),
    "commit again": lambda at: at.analyst.commit(at.key("k4")),
    "hold": lambda at: at.analyst.reserve("census/2026 %", cost=0.125, key=at.key("k7"), **at.who),
    "hold more": lambda at: at.analyst.reserve("census/2026 %", cost="0.1", key=at.key("k10"), **at.who),
    "void": lambda at: at.analyst.void(at.key("k7"), reason="not now"),
    "commit what is void": lambda at: at.analyst.commit(at.key("k7")),
    "start what is not there": lambda at: at.analyst.start(at.key("k8")),
    "reservation": lambda at: at.analyst.reservation(at.key("k4")),
    "reservation of somebody": lambda at: at.auditor.reservation("alice/k4"),
    "void of somebody": lambda at: at.steward.void("alice/k10"),
    "reservation that is not there": lambda at: at.analyst.reservation(at.key("k8")),
    "freeze": lambda at: at.steward.freeze("census/2026 %", reason="an incident", labels={"ticket": "9"}),
    "reserve where it is frozen": lambda at: at.analyst.reserve("census/2026 %", cost=1, key=at.key("k9"), **at.who),
    "status": lambda at: [at.steward.status(name) for name in ("hospital", "ward", "census/2026 %", "log", "empty")],
    "status where there is none": lambda at: at.steward.status("nowhere"),
    "status of no name": lambda at: at.steward.status(""),
    "datasets": lambda at: at.auditor.datasets(),
    "unfreeze": lambda at: at.steward.freeze("census/2026 %", False, reason="it is over"),
    "attach_audit": lambda at: at.auditor.attach_audit(AUDIT, dataset="ward", date="2026-11-17", reason="yearly"),
    "attach_audit to a key": lambda at: at.steward.attach_audit(AUDIT.to_json(), key="alice/k4", date="2026-11-18"),
    "attach_audit badly": lambda at: at.auditor.attach_audit({"not": "one"}, dataset="ward"),
    "attach_audit to nothing": lambda at: at.auditor.attach_audit(AUDIT, key="alice/k8", date="2026-11-18"),
    "odometer": lambda at: [
        at.auditor.odometer("census/2026 %"), at.auditor.odometer("ward", 1e-6), at.auditor.odometer("ward", delta=0.5)
    ],
    "odometer without a delta": lambda at: at.auditor.odometer("ward"),
    "odometer of a delta of 2": lambda at: at.auditor.odometer("ward", 2.0),
    "odometer without a budget": lambda at: at.auditor.odometer("empty"),
    "history": lambda at: [at.auditor.history(name) for name in ("hospital", "ward", "census/2026 %", "log")],
    "history, the last": lambda at: at.auditor.history("ward", last=3),
    "history of a kind": lambda at: at.auditor.history("ward", kind="refused"),
    "history of a key": lambda at: at.auditor.history("ward", key=f"alice/{'k4'}"),
    "history of a state": lambda at: at.auditor.history("ward", state="COMMITTED", analyst="ALICE"),
    "history of a time": lambda at: at.auditor.history("ward", since=0, until=1),
    "history where there is none": lambda at: at.auditor.history("nowhere"),
    "page": lambda at: [at.auditor.page("ward", 0, 2), at.auditor.page("ward", 2, 500, kind="committed")],
    "verify": lambda at: _audited(at.auditor.verify()),
    "export": lambda at: len([line for line in at.auditor.export() if '"chain"' in line]),
}  # fmt: skip


def _audited(found: Any) -> object:
    """A service's own chain also says who was given a token."""
    return found.clean, {name: seq for name, (seq, _) in found.ends.items() if name}, found.attached


def _plain(value: Any, owner: str) -> Any:
    """What is compared: not when, not who; keys as their analyst knows them."""
    if isinstance(value, Mapping):
        return {name: _plain(each, owner) for name, each in value.items() if name not in SHOWN}
    if isinstance(value, (list, tuple)):
        return [_plain(each, owner) for each in value]
    if hasattr(value, "charged") and hasattr(value, "remaining"):
        return _plain([value.key, value.state, value.charged, value.remaining], owner)
    return value.removeprefix("alice/") if isinstance(value, str) else value


def _answer(step: Step, at: Roles) -> Any:
    try:
        return _plain(step(at), "")
    except RefusedError as no:
        refused = no.refused
        facts = [refused.reason, refused.text.replace("alice/", ""), refused.charged, refused.shortfall, no.remaining]
        return [type(no), _plain(facts, "")]
    except PrivlossError as problem:
        return [type(problem), str(problem).replace("alice/", "").replace("alice", "ALICE")]


def _pairs(here: Any, far: Any) -> list[tuple[Any, Any]]:
    """The two answers in parts as small as can be set side by side."""
    if isinstance(here, list) and isinstance(far, list) and len(here) == len(far):
        return [pair for each in zip(here, far, strict=True) for pair in _pairs(*each)]
    return [(here, far)]


def test_the_same_walk_gives_the_same_answers(place: str, real: Callable[..., Real], tmp_path: Any) -> None:
    service = real(place)
    steward, auditor = service.remote(service.token("steward")), service.remote(service.token("auditor"))
    remote = Roles(steward, service.remote(service.analyst()), auditor, "")
    kept = Ledger.create(str(tmp_path / "here.db"))
    here = Roles(kept, kept, kept, "alice/")
    differ = []
    for name, step in STEPS.items():
        local, far = _answer(step, here), _answer(step, remote)
        if local != far:
            lines = [f"  here   {a}\n  remote {b}" for a, b in _pairs(local, far) if a != b]
            differ.append("\n".join([f"{name}:", *lines]))
    kept.close()
    assert "\n".join(differ) == ""
    assert list(auditor.export()) == list(service.ledger.export())
    assert auditor.verify() == service.ledger.verify()


def test_every_public_method_is_in_the_walk_or_refused() -> None:
    """`close`, `now` and the other two ways to spend need nothing but what is compared."""
    names = {name for name, _ in inspect.getmembers(Ledger, inspect.isfunction) if not name.startswith("_")}
    told = " ".join([*STEPS, *(inspect.getsource(step) for step in (_budgets, _spent, _decorated, _both))])
    assert {name for name in names if name not in told} == {"acting", "aspend", "close", "now"}


def test_what_cannot_be_done_from_elsewhere_is_refused_with_a_reason(sqlite_place: str) -> None:
    ledger = pl.Ledger("https://localhost", token="pl_x")
    assert isinstance(ledger, RemoteLedger)
    with pytest.raises(InvalidInput, match="the token says who acts"):
        ledger.acting("somebody")
    with pytest.raises(InvalidInput, match="where its ledger is kept"):
        _ = ledger.store
    with pytest.raises(InvalidInput, match="the token says who asks"):
        ledger.reserve("d", cost=1, key="k", analyst="bob")
    with pytest.raises(InvalidInput, match="a service takes"):
        ledger.reserve("d", cost=1, key="a/b")
    with pytest.raises(AttributeError, match="no 'stor'"):
        _ = ledger.stor  # type: ignore[attr-defined]


def test_the_signatures_are_the_same() -> None:
    """Whoever has learned one knows the other; only where it is opened do they differ."""
    for name, method in inspect.getmembers(Ledger, inspect.isfunction):
        if not name.startswith("_"):
            other = getattr(RemoteLedger, name)
            assert inspect.signature(method).parameters.keys() == inspect.signature(other).parameters.keys(), name
