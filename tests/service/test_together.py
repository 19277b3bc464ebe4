"""Requests that are handled together: which they are, that each is answered as if it were alone, and that what is not
plain is left without an effect."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from httpx import Response

from privloss.ledger.answers import Reservation
from privloss.ledger.commands import Command
from privloss.ledger.stores.base import Outcome
from privloss.ledger.stores.grouped import Found, GroupedStore
from privloss.ledger.stores.sqlite import SqliteStore
from privloss.service import shown, together
from privloss.service.access import Caller
from privloss.service.exchange import Exchange
from privloss.service.routes import Router
from privloss.service.tokens import Tokens
from tests.service.inside import DAY, GAUSSIAN, Client, Service

COST = {"datasets": ["census"], "cost": "1/11"}


@pytest.fixture
def alone(sqlite: Service, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests were not handled together, one entry for each of those that might have been."""
    found: list[int] = []
    handle = Exchange.handle

    def handled(self: Exchange) -> Any:
        if self.route.command is not None:
            found.append(1)
        return handle(self)

    monkeypatch.setattr(Exchange, "handle", handled)
    return found


def _plain(service: Service, client: Client, path: str, body: Any, method: str = "PUT", **more: Any) -> bool:
    """Whether a request would be handled together; nothing is decided."""
    headers = {"authorization": f"Bearer {client.token}", "content-type": "application/json", **more}
    raw = f"/v1/reservations/{path}".encode()
    scope: dict[str, Any] = {"type": "http", "method": method, "query_string": b"", "raw_path": raw}
    scope["headers"] = [(name.lower().encode(), text.encode()) for name, text in headers.items() if text]
    exchange = Exchange(service.services, scope)
    exchange.matched(*Router().find(method, raw))
    exchange.body = body if isinstance(body, bytes) else json.dumps(body).encode()
    gathered = together.Together(service.services)
    if not gathered.takes(exchange):
        return False
    return bool(together._Batch(service.services, (exchange, None)).commands())  # type: ignore[arg-type]


def test_what_is_plain(sqlite: Service) -> None:
    """A request that repeats one but for its key, and what moves a key; everything else is looked at alone."""
    alice, bob = sqlite.alice, sqlite.bob
    assert not _plain(sqlite, alice, "k", COST)  # the first time
    for client in (alice, bob):
        assert client.reserve("first").status_code == 201
    assert [each.get("/v1/datasets").status_code for each in (sqlite.steward, sqlite.auditor)] == [200, 200]
    before = sqlite.events()
    assert _plain(sqlite, alice, "k", COST)
    assert _plain(sqlite, alice, "k/start", {"run": "r" * 16}, "POST")
    assert _plain(sqlite, alice, "k/commit", b"", "POST")
    others: tuple[Any, ...] = (
        {**COST, "cost": "1/12"}, {**COST, "lease": 60.0}, {**COST, "label": "x"}, {**COST, "labels": {}},
        {"datasets": ["census"], "plan": GAUSSIAN}, {**COST, "plan": GAUSSIAN},
        {**COST, "datasets": ["census", "taxes"]}, {**COST, "blocks": []},
        {**COST, "analyst": "bob"}, {**COST, "cost": 1}, b"{", b"[]", b"", b" " * 5000 + json.dumps(COST).encode(),
    )  # fmt: skip
    assert not [body for body in others if _plain(sqlite, alice, "k", body)]
    assert not _plain(sqlite, bob, "k", {**COST, "datasets": ["taxes"]})
    assert not _plain(sqlite, alice, "k%20k", COST)
    assert not _plain(sqlite, alice, "k", COST, **{"content-type": "text/plain"})
    assert not _plain(sqlite, sqlite.steward, "k", COST)
    assert not _plain(sqlite, sqlite.auditor, "k/commit", b"", "POST")
    assert sqlite.events() == before


def test_whose_token_is_plain(serving: Callable[..., Service], sqlite_place: str) -> None:
    service = serving(sqlite_place, rate=2)
    alice = service.alice
    assert alice.reserve("first").status_code == 201
    for token in ("", "pl_", alice.token[:-1] + "_", alice.token.upper(), service.bob.token):  # type: ignore[index, union-attr]
        assert not _plain(service, service.client(token), "k", COST)
    assert not _plain(service, alice, "k", COST, authorization="")
    assert not _plain(service, alice, "k", COST, Authorization="Bearer x")  # which of the two?
    assert [_plain(service, alice, "k", COST) for _ in range(4)] == [True] * 3 + [False]  # the bucket is empty
    service.clock.now += 1
    assert _plain(service, alice, "k", COST)
    service.clock.now += DAY
    assert not _plain(service, alice, "k", COST)  # the day of its last use is noted by whoever handles it alone
    assert alice.reserve("next").status_code == 201
    assert _plain(service, alice, "k", COST)
    service.tokens.revoke(alice.token.split("_")[1])  # type: ignore[union-attr]
    assert not _plain(service, alice, "k", COST)


def test_each_is_answered_as_if_it_were_alone(sqlite: Service, alone: list[int]) -> None:
    """Many at once, good and bad ones; a second service answers the same requests one after the other."""
    alice, bob = sqlite.alice, sqlite.bob
    for client in (alice, bob):
        client.reserve("first", cost="1/100")
    before = len(alone)
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda n: (alice, bob)[n % 2].reserve(f"k{n}", cost="1/100"), range(40)))
    assert [each.status_code for each in made] == [201] * 40
    assert len(alone) == before
    assert {each.json()["key"] for each in made} == {f"k{n}" for n in range(40)}
    again = alice.reserve("k0", cost="1/100")
    assert (again.status_code, again.json()["state"]) == (200, "RESERVED")
    assert sqlite.ledger.status("census")["reserved"] == "0.42"
    moved = [alice.start("k0"), alice.start("k0"), alice.start("k0", "s" * 16), alice.move("k0", "commit")]
    assert [each.status_code for each in moved] == [200, 200, 409, 200]
    assert moved[2].json()["reason"] == "already-started"
    assert [bob.start("k0").json()["reason"], bob.move("k2", "commit").json()["reason"]] == ["unknown-key"] * 2
    assert len(alone) == before
    last = [alice.reserve(f"more{n}", cost="1/100") for n in range(59)][-2:]
    assert [each.status_code for each in last] == [201, 409]
    assert last[1].json()["reason"] == "budget-exceeded"
    assert sqlite.ledger.verify().clean


def test_settings_that_change_hold_for_the_next(sqlite: Service, alone: list[int]) -> None:
    """A freeze, a quota and a revocation, also those of another process."""
    for client in (sqlite.alice, sqlite.bob):
        assert client.reserve("first").status_code == 201
    before = len(alone)
    for frozen, status in ((True, 409), (False, 201)):
        sqlite.steward.put("/v1/datasets/census/frozen", {"frozen": frozen, "reason": "a drill"})
        assert sqlite.alice.reserve(f"frozen-{frozen}").status_code == status
    assert len(alone) == before
    sqlite.steward.put("/v1/datasets/census/quotas/bob", {"currency": "pure", "cap": "2/11"})
    asked = [sqlite.alice.reserve("a"), sqlite.bob.reserve("b"), sqlite.bob.reserve("c")]
    assert [each.json().get("reason") for each in asked] == ["analyst", None, "quota-exceeded"]
    Tokens(SqliteStore(sqlite.ledger.store._inner.path)).revoke(str(sqlite.bob.token).split("_")[1])  # type: ignore[attr-defined]
    assert sqlite.bob.reserve("first").status_code == 401


def test_an_answer_says_what_it_would_say_alone(sqlite: Service) -> None:
    for key, charges in (("a", {"cost": "1/11"}), ("b", {"cost": "1/100"})):
        sqlite.alice.reserve(key, **charges)
        fresh, same = sqlite.alice.reserve(f"{key}2", **charges), sqlite.alice.reserve(f"{key}2", **charges)
        assert (fresh.status_code, same.status_code) == (201, 200)
        assert fresh.json() == same.json()
        assert fresh.headers["content-type"] == "application/json"


def test_the_text_of_an_answer(sqlite: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the JSON of what is answered otherwise, also where an account is another's, or has several components."""
    texts: list[tuple[str, str]] = []
    text = shown.reservation_text

    def both(held: Any, caller: Any) -> str:
        texts.append((text(held, caller), json.dumps(shown.reservation(held, caller), separators=(",", ":"))))
        return texts[-1][0]

    monkeypatch.setattr(shown, "reservation_text", both)
    sqlite.ledger.add_group("über", adjacency="add-remove", unit="person")
    sqlite.ledger.set_budget("über", currency="pure", cap="1")
    for name, currency in (("d", "approx"), ("p", "pure")):
        sqlite.ledger.add_dataset(name, adjacency="add-remove", unit="person", parent="über")
        sqlite.ledger.set_budget(name, currency=currency, cap="1", delta="1e-6" if name == "d" else None)
    carol = sqlite.analyst("carol", "d", "p")
    for name, more in (("d", {"cost_delta": "1e-9"}), ("p", {})):
        made = [carol.reserve(f"{name}{n}", "1/1000", (name,), **more) for n in range(3)]
        assert [each.status_code for each in made] == [201] * 3, made[0].text
        assert carol.start(f"{name}1").status_code == 200
    assert len(texts) == 6
    assert [exact for exact, _ in texts] == [other for _, other in texts]
    assert "über" not in "".join(exact for exact, _ in texts)


def test_one_commit_for_those_that_wait(sqlite: Service) -> None:
    """While one commit is held up others gather, and become durable together."""
    store = sqlite.ledger.store
    assert isinstance(store, GroupedStore)
    sqlite.alice.reserve("first")
    held, goes_on, groups = threading.Event(), threading.Event(), []
    decided = store._decided

    def slowly(commands: Any, clock: Any) -> Any:
        groups.append(len(commands))
        if len(groups) == 1:
            held.set()
            goes_on.wait()
        return decided(commands, clock)

    store._decided = slowly  # type: ignore[method-assign]
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(sqlite.alice.reserve, "k0", "1/11")]
        assert held.wait()
        asked += [pool.submit(sqlite.alice.reserve, f"k{n}", "1/11") for n in range(1, 8)]
        gathered: together.Together = sqlite.app.api._together  # type: ignore[attr-defined]
        while len(gathered._open) < 7:  # what has been handed over takes more, until the writer has time for it
            goes_on.wait(0.01)
        goes_on.set()
        answers: list[Response] = [each.result() for each in asked]
    assert [each.status_code for each in answers] == [201] * 8
    assert groups == [1, 7]


def test_who_comes_too_late_is_in_the_next(sqlite: Service) -> None:
    batch = together._Batch(sqlite.services, (None, None))  # type: ignore[arg-type]
    assert batch.joined((None, None))  # type: ignore[arg-type]
    assert len(batch.close()) == 2
    assert not batch.joined((None, None))  # type: ignore[arg-type]
    assert len(batch) == 2
    full = together._Batch(sqlite.services, *[(None, None)] * together._MOST)  # type: ignore[list-item]
    assert not full.joined((None, None))  # type: ignore[arg-type]


def test_a_body_is_remembered_for_its_own_route_only(sqlite: Service) -> None:
    """The same bytes are something else elsewhere; and what is refused is refused again."""
    sqlite.alice.reserve("k")
    for _ in range(2):
        assert sqlite.alice.post("/v1/reservations/k/start", {"reason": "x"}).status_code == 400
        assert sqlite.alice.post("/v1/reservations/k/commit", {"reason": "x"}).json()["reason"] == "wrong-state"
        assert sqlite.alice.put("/v1/reservations/l", {"reason": "x"}).status_code == 400


def test_what_was_charged_is_told_to_each_as_far_as_it_may_see() -> None:
    """Also where it is the very same object."""
    charges = {"census": {"epsilon": Fraction(1, 11)}, "taxes": {"rho": Fraction(1, 3)}}
    held = Reservation.of("alice/k", Outcome(None, "RESERVED", charges, {}))
    all_of_it, narrow = Caller("analyst", "alice", None, "a"), Caller("analyst", "alice", frozenset({"census"}), "b")
    for _ in range(2):
        for caller in (all_of_it, narrow):
            text = shown.reservation_text(held, caller)
            assert json.loads(text) == shown.reservation(held, caller)
            assert ("taxes" in text) == (caller is all_of_it)


class _Bad(Command):
    """None that the rules know."""


def test_a_group_with_a_bad_command(sqlite: Service) -> None:
    """Whoever handed it over is told; the others, and those that wait for the writer, do not notice."""
    store, told, known = sqlite.ledger.store, threading.Event(), []
    assert isinstance(store, GroupedStore)
    sqlite.alice.reserve("first")
    (token,) = sqlite.services.tokens.plain([str(sqlite.alice.token)])
    assert token is not None
    (good,) = sqlite.services.ledger_of(token.caller)._asked.values()

    class Work:
        clock = sqlite.ledger.clock

        def commands(self) -> list[Command]:
            return [good.under("alice/a"), _Bad(), good.under("alice/b")]

        def done(self, found: Any) -> None:
            known.extend(found)
            told.set()

    store.hand_over(Work())
    assert told.wait()
    states: list[Found] = known
    assert [isinstance(each, BaseException) for each in states] == [False, True, False]
    assert sqlite.alice.reserve("c").status_code == 201
