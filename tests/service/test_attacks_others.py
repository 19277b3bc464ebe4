"""Attacks on what is another's: keys, datasets, balances, tokens. (The numbers are those of docs/security.md.)"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest

from privloss.service import tokens
from tests.service.inside import DAY, START, Client, Service

LIFE = 90 * DAY


# -- 1, 2: keys --------------------------------------------------------------------------------------------------------


def test_1_the_key_of_another(service: Service) -> None:
    service.alice.reserve("k")
    service.alice.start("k")
    before = service.events()
    for answer in (
        service.bob.start("k"), service.bob.move("k", "commit"), service.bob.move("k", "void"),
        service.bob.get("/v1/reservations/k"), service.bob.start("k", run="s" * 16),
    ):  # fmt: skip
        assert (answer.status_code, answer.json()["reason"]) == (404, "unknown-key")
        assert answer.json()["text"] == "key 'k' is not in this ledger"
    assert service.events() == before


@pytest.mark.parametrize("key", ["alice/k", "alice%2Fk", "../alice/k", "%2E%2E%2Falice%2Fk", "alice%2fk"])
def test_1_a_key_that_looks_like_the_key_of_another(sqlite: Service, key: str) -> None:
    sqlite.alice.reserve("k")
    before = sqlite.events()
    for answer in (sqlite.bob.get(f"/v1/reservations/{key}"), sqlite.bob.reserve(key), sqlite.bob.move(key, "void")):
        assert answer.status_code in (400, 404)
        assert "RESERVED" not in answer.text
    assert sqlite.events() == before


def test_2_in_the_name_of_another(sqlite: Service) -> None:
    sqlite.alice.reserve("k")
    before = sqlite.events()
    assert sqlite.bob.reserve("x", analyst="alice").status_code == 400
    for path in ("/v1/reservations/k?analyst=alice", "/v1/datasets/census/history?analyst=alice"):
        assert sqlite.bob.get(path).status_code == 400
    assert sqlite.bob.post("/v1/quote", {"datasets": ["census"], "cost": "1", "analyst": "alice"}).status_code == 400
    assert sqlite.bob.post("/v1/reservations/k/void?analyst=alice", {}).status_code == 400
    assert sqlite.events() == before


def test_2_the_same_name_is_another_key(sqlite: Service) -> None:
    assert sqlite.alice.reserve("k", cost="1/11").status_code == 201
    assert sqlite.bob.reserve("k", cost="1/7").status_code == 201
    assert sqlite.bob.get("/v1/reservations/k").json()["charged"] == {"census": {"epsilon": "1/7"}}
    again = sqlite.bob.reserve("k", cost="1/11")
    assert (again.status_code, again.json()["reason"]) == (409, "key-reused")
    assert "bob/k" not in again.text


def test_2_one_person_under_two_spellings(sqlite: Service) -> None:
    """A quota is not passed by writing a name differently."""
    sqlite.steward.put("/v1/datasets/census/quotas/alice", {"currency": "pure", "cap": "1/11"})
    assert sqlite.alice.reserve("k", cost="1/11").status_code == 201
    other = sqlite.analyst(" ALICE ", "census")
    assert other.reserve("l", cost="1/1000").json()["reason"] == "quota-exceeded"


def test_2_one_who_sees_only_quotas_of_others(sqlite: Service) -> None:
    sqlite.steward.put("/v1/datasets/census/quotas/alice", {"currency": "pure", "cap": "1/11"})
    assert sqlite.bob.reserve("k").json()["reason"] == "analyst"
    assert "alice" not in sqlite.bob.get("/v1/datasets/census").text
    assert "alice" in sqlite.alice.get("/v1/datasets/census").text


# -- 3: datasets -------------------------------------------------------------------------------------------------------


def _asking(client: Client, name: str, key: str) -> list[tuple[int, str]]:
    """Everything that one may ask about a dataset, alone and beside one of one's own."""
    alone = {"datasets": [name], "cost": "1/11"}
    beside = {"datasets": ["census", name], "cost": "1/11"}
    bad = {"datasets": [name], "cost": "not a number"}
    found = [client.put(f"/v1/reservations/{key}", body) for body in (alone, beside, bad)]
    found += [client.post("/v1/quote", body) for body in (alone, beside, bad)]
    parts = ("", "/history", "/history.csv", "/refusals", "/odometer?delta=1e-6")
    found += [client.get(f"/v1/datasets/{name}{part}") for part in parts]
    return [(each.status_code, each.text.replace(name, "NAME")) for each in found]


def test_3_a_dataset_that_is_not_ones_own(service: Service) -> None:
    """It is as if it did not exist, word for word; and nothing of it stands in any answer."""
    service.alice.reserve("k", cost="1/11", datasets=("taxes",))
    service.alice.reserve("both", cost="1/1000", datasets=("census", "taxes"), lease=5.0)
    before = service.events()
    hidden, missing = _asking(service.bob, "taxes", "k"), _asking(service.bob, "no-such", "k")
    assert hidden == missing
    assert {status for status, _ in hidden} == {404}
    assert service.events() == before
    service.clock.now += 60  # alice's lease has ended: the next reservation on census gives it back
    held = service.bob.reserve("mine").json()
    assert set(held["remaining"]) == set(held["charged"]) == {"census"}
    assert "taxes" not in service.bob.get("/v1/datasets").text + service.bob.get("/v1/datasets/census/history").text
    assert service.bob.reserve("more", cost="1").json()["remaining"].keys() == {"census"}


def test_3_a_token_for_less_of_the_same_analyst(sqlite: Service) -> None:
    """Who comes with a narrower token does not see by it what was done with the other."""
    sqlite.alice.reserve("k", cost="1/1000", datasets=("census", "taxes"))
    narrow = sqlite.analyst("alice", "census")
    answers = [narrow.get(path) for path in ("/v1/reservations/k", "/v1/datasets/census/history")]
    answers += [narrow.start("k"), narrow.get("/v1/datasets/census/history.csv")]
    assert [each.status_code for each in answers] == [200] * 4
    assert not [each.text for each in answers if "taxes" in each.text]


LAPLACE = {"mechanism": "laplace", "scale": 8.0}


def _grouped(service: Service) -> Client:
    """A group with a secret name above a dataset that carol sees, and its token."""
    said = {"adjacency": "add-remove", "unit": "person"}
    service.steward.put("/v1/datasets/topsecret", {**said, "group": True})
    for name in ("north", "south"):
        service.steward.put(f"/v1/datasets/{name}", {**said, "parent": "topsecret"})
    for name, cap in (("topsecret", "1/2"), ("north", "1"), ("south", "1")):
        service.steward.put(f"/v1/datasets/{name}/budget", {"currency": "pure", "cap": cap})
    return service.analyst("carol", "north")


def test_3_a_group_above_is_not_named(sqlite: Service) -> None:
    """Nor is said by how much it is short: that would be its balance."""
    carol = _grouped(sqlite)
    sqlite.analyst("dave", "south").reserve("k", cost="3/8", datasets=("south",))
    refused = carol.reserve("k", cost="1/4", datasets=("north",))
    assert refused.json()["reason"] == "parent-exceeded"
    assert refused.json()["text"] == "a group above the dataset would be exceeded"
    assert not {"shortfall"} & set(refused.json())
    quote = carol.post("/v1/quote", {"datasets": ["north"], "cost": "1/4"})
    assert (quote.json()["north"]["fits"], quote.json()["north"]["refused"]) == (False, "parent-exceeded")
    assert carol.reserve("l", cost="1/16", datasets=("north",)).json()["charged"].keys() == {"north"}
    sqlite.steward.put("/v1/datasets/topsecret/frozen", {"frozen": True, "reason": "a drill"})
    frozen = carol.start("l")
    assert (frozen.status_code, frozen.json()["reason"]) == (409, "frozen")
    looks = [carol.get(path) for path in ("/v1/datasets", "/v1/datasets/north", "/v1/datasets/north/history")]
    looks += [carol.get("/v1/datasets/north/refusals"), carol.get("/v1/datasets/north/history.csv")]
    for each in (refused, quote, frozen, carol.get("/v1/reservations/l"), *looks):
        assert "topsecret" not in each.text, each.text
    assert "topsecret" in sqlite.steward.get("/v1/datasets/north/refusals").text


def test_3_no_refusal_names_a_group(sqlite: Service) -> None:
    """Whatever a group above does not let in: it has no budget, it has quotas, it protects others."""
    said = {"adjacency": "add-remove", "unit": "person"}
    sqlite.steward.put("/v1/datasets/a-topsecret", {**said, "group": True})
    sqlite.steward.put("/v1/datasets/north", {**said, "parent": "a-topsecret"})
    sqlite.steward.put("/v1/datasets/north/budget", {"currency": "pure", "cap": "1"})
    carol, asked = sqlite.analyst("carol", "north"), {"datasets": ["north"], "cost": "1/4"}
    answers = [carol.put("/v1/reservations/k", asked), carol.post("/v1/quote", asked)]
    sqlite.steward.put("/v1/datasets/a-topsecret/budget", {"currency": "pure", "cap": "1"})
    other = {"datasets": ["north"], "plan": {"steps": [LAPLACE], "adjacency": "replace-one"}}
    answers += [carol.put("/v1/reservations/k", other), carol.post("/v1/quote", other)]
    sqlite.steward.put("/v1/datasets/a-topsecret/quotas/dave", {"currency": "pure", "cap": "1/2"})
    answers += [carol.put("/v1/reservations/k", asked), carol.post("/v1/quote", asked)]
    reasons = [each.json().get("reason") or each.json()["north"]["refused"] for each in answers]
    assert reasons == ["no-budget"] * 2 + ["adjacency"] * 2 + ["analyst"] * 2
    looks = [carol.get(f"/v1/datasets/north{part}") for part in ("", "/history", "/refusals", "/history.csv")]
    assert not [each.text for each in (*answers, *looks) if "topsecret" in each.text]


# -- 5, 18: tokens -----------------------------------------------------------------------------------------------------


def test_5_tokens_that_are_none(service: Service, serving: Callable[..., Service], place: str) -> None:
    token = service.bob.token
    assert token is not None
    made, secret = token.split("_", 2)[1:]
    wrong = [
        token[:-1], token + "A", token.upper(), token.lower() if token != token.lower() else token.swapcase(),
        f"pl_{made}_{'A' * 43}", f"pl_aaaaaaaa_{secret}", made, secret, "", "pl__", f"{token} {token}", "x" * 5000,
        f"pl_{made}_{secret[:-1]}\u00e9",
    ]  # fmt: skip
    for text in wrong:
        header = {"authorization": b"Bearer " + text.encode("latin-1")}
        answer = service.nobody.get("/v1/datasets", headers=header)
        assert (answer.status_code, answer.json()["reason"]) in ((401, "token"), (429, "rate")), text
    for headers in ({"authorization": f"Basic {token}"}, {"cookie": f"token={token}"}, {"x-token": token}):
        assert service.nobody.get("/v1/datasets", headers=headers).status_code in (401, 429)
    assert service.nobody.get(f"/v1/datasets?token={token}").status_code == 401
    twice = [("authorization", f"Bearer {token}"), ("authorization", f"Bearer {token}")]
    assert service.http.request("GET", "/v1/datasets", headers=twice).status_code == 401

    elsewhere = serving(place, create=False)
    theirs = elsewhere.client(token)
    assert service.bob.get("/v1/datasets").status_code == theirs.get("/v1/datasets").status_code == 200
    service.tokens.revoke(made)
    service.clock.now += 60  # the failed ones are forgotten
    assert service.bob.get("/v1/datasets").status_code == theirs.get("/v1/datasets").status_code == 401
    assert service.alice.get("/v1/datasets").status_code == 200
    service.clock.now = START + LIFE - 1
    assert service.alice.get("/v1/datasets").status_code == 200
    service.clock.now += 1
    assert service.alice.get("/v1/datasets").status_code == 401


def test_5_who_may_act_stands_in_the_history(service: Service) -> None:
    made = service.bob.token.split("_")[1]  # type: ignore[union-attr]
    service.tokens.revoke(made)
    service.tokens.revoke(made)
    bodies = [json.loads(line)["body"] for line in service.events()]
    told = [(e["kind"], e["role"], e.get("analyst"), e.get("datasets")) for e in bodies if e.get("id") == made]
    assert told == [(kind, "analyst", "bob", ["census"]) for kind in ("token", "token-revoked")]
    assert not [line for line in service.events() if tokens.digest(service.bob.token or "") in line]
    assert service.ledger.verify().clean
    assert service.tokens.get(made).used == ""  # type: ignore[union-attr]


def test_18_a_wrong_secret_costs_what_an_unknown_token_costs(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same number of digests, comparisons and questions to the store, whatever is wrong with a token."""
    seen: list[str] = []

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            seen.append(name)
            return function(*given)

        return call

    store = service.ledger.store
    monkeypatch.setattr(tokens, "digest", counted("digest", tokens.digest))
    monkeypatch.setattr(hmac, "compare_digest", counted("compare", hmac.compare_digest))
    monkeypatch.setattr(store, "look", counted("look", store.look))
    token = service.bob.token or ""
    costs = []
    for text in (token[:-1] + ("A" if token[-1] != "A" else "E"), f"pl_aaaaaaaa_{'A' * 43}", "nonsense", "", token):
        seen.clear()
        service.tokens.authenticate(text)
        costs.append(sorted(seen))
    assert costs[0] == costs[1] == costs[2] == costs[3] == ["compare", "digest", "look"]
