"""What the programs' side of the service answers, beyond the walk of `test_service.py` and the attacks."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from privloss.service import jobs
from privloss.service.counted import on_port
from privloss.service.strict import loads
from privloss.service.workers import Workers
from tests.service.inside import GAUSSIAN, Service
from tests.service.outside import free_port

NEW = {"adjacency": "add-remove", "unit": "person"}


class Count:
    """Workers, and what they were asked for."""

    def __init__(self, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[str] = []
        asked = workers._asked

        async def seen(job: Any, arguments: Any) -> Any:
            self.jobs.append(job.__name__)
            return await asked(job, arguments)

        monkeypatch.setattr(workers, "_asked", seen)
        monkeypatch.setattr("privloss.service.workers._LARGEST_KEPT", 0)  # nothing is remembered


def test_a_known_key_is_not_priced_again(sqlite: Service, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same request again is read, and answered by its key; another request under the key is refused."""
    count = Count(workers, monkeypatch)
    of_no_other_test = {"steps": [{"mechanism": "gaussian", "noise_multiplier": 10.37}]}
    asked = {"datasets": ["taxes"], "plan": of_no_other_test}
    first = sqlite.alice.put("/v1/reservations/k", asked)
    assert (first.status_code, count.jobs) == (201, ["describe", "price"])
    again = sqlite.alice.put("/v1/reservations/k", asked)
    assert (again.status_code, again.json()["charged"]) == (200, first.json()["charged"])
    assert count.jobs == ["describe", "price", "describe"]
    other = {"steps": [{"mechanism": "gaussian", "noise_multiplier": 11.0}]}
    refused = sqlite.alice.put("/v1/reservations/k", {"datasets": ["taxes"], "plan": other})
    assert (refused.status_code, refused.json()["reason"]) == (409, "key-reused")
    sqlite.alice.move("k", "void")
    assert sqlite.alice.put("/v1/reservations/k", asked).json()["reason"] == "wrong-state"
    assert "price" not in count.jobs[2:]


def test_amounts_are_texts_with_doubles_beside_them(sqlite: Service) -> None:
    for name, more in (("year", {}), ("stream", {"blocks": "day"})):
        sqlite.steward.put(f"/v1/datasets/{name}", {**NEW, **more})
        sqlite.steward.put(f"/v1/datasets/{name}/budget", {"currency": "pure", "cap": "1"})
    sqlite.steward.put("/v1/datasets/year/budget", {"currency": "pure", "cap": "1/2", "every": "year"})
    sqlite.steward.put("/v1/datasets/year/quotas/carol", {"currency": "pure", "cap": "1/3"})
    carol = sqlite.analyst("carol", "year", "stream")
    carol.reserve("a", datasets=("year",))
    carol.reserve("b", datasets=("stream",), blocks="2026-11-16")
    year, stream = (carol.get(f"/v1/datasets/{name}").json() for name in ("year", "stream"))
    assert (year["reserved"], year["approx"]["reserved"]) == ("1/11", pytest.approx(1 / 11))
    (period,) = year["approx"]["period"]["spent"].values()
    assert period["reserved"] == year["approx"]["analysts"]["carol"]["epsilon"]["spent"] == pytest.approx(1 / 11)
    assert stream["approx"]["spent"]["2026-11-16"]["reserved"] == pytest.approx(1 / 11)
    short = carol.reserve("c", cost="9/10", datasets=("year",)).json()
    assert short["approx"]["shortfall"]["epsilon"] > 0
    assert short["approx"]["charged"] == {"year": {"epsilon": 0.9}}
    quote = carol.post("/v1/quote", {"datasets": ["year"], "cost": "1/4"}).json()["year"]
    assert (quote["approx"]["charged"], quote["fits"]) == ({"epsilon": 0.25}, False) or quote["fits"]
    (event,) = carol.get("/v1/datasets/year/history?kind=reserved").json()["events"]
    assert event["approx"]["charges"] == {"year": {"epsilon": pytest.approx(1 / 11)}}
    for text in (json.dumps(year), json.dumps(stream), json.dumps(short)):
        assert "Infinity" not in text


def test_a_problem_says_what_is_short(sqlite: Service) -> None:
    answer = sqlite.alice.reserve("k", cost="2")
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert (found["type"], found["title"], found["status"]) == ("about:blank", "Refused", 409)
    assert found["detail"] == found["text"] == "dataset 'census' would be exceeded"
    assert (found["reason"], found["shortfall"]) == ("budget-exceeded", {"epsilon": "1"})
    assert found["remaining"] == {"census": {"epsilon": "1"}}


def test_history_in_pages(sqlite: Service) -> None:
    for number in range(7):
        sqlite.alice.reserve(f"k{number}", cost="1/1000")
    seen, after = [], 0
    while after is not None:
        page = sqlite.alice.get(f"/v1/datasets/census/history?kind=reserved&limit=3&after={after}").json()
        seen, after = seen + [event["key"] for event in page["events"]], page["next"]
    assert seen == [f"k{number}" for number in range(7)]
    last = sqlite.alice.get("/v1/datasets/census/history?kind=reserved&last=2").json()["events"]
    assert [event["key"] for event in last] == ["k5", "k6"]


def test_the_last_events_are_looked_for_among_so_many(sqlite: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who has done nothing must not have the whole history read each time."""
    sqlite.bob.reserve("old", cost="1/1000")
    for number in range(5):
        sqlite.alice.reserve(f"k{number}", cost="1/1000")
    monkeypatch.setattr("privloss.service.api_datasets._LOOKED", 5)
    assert sqlite.bob.get("/v1/datasets/census/history?last=3").json()["events"] == []
    assert len(sqlite.alice.get("/v1/datasets/census/history?last=3").json()["events"]) == 3


def test_verify(service: Service, place: str) -> None:
    assert service.auditor.get("/v1/verify").json()["reason"] == "not-verified"
    assert service.auditor.post("/v1/verify").status_code == 202
    service.services.verifying.wait()
    last = service.auditor.get("/v1/verify").json()["last"]
    assert (last["clean"], last["problems"]) == (True, [])
    store = service.ledger.store
    table = "balance" if place.startswith("postgres") else "standing"
    with store.transaction() as cursor:
        store.execute(cursor, f"UPDATE {table} SET committed = '1' WHERE dataset = ? AND component <> ''", ["census"])
    service.auditor.post("/v1/verify")
    service.services.verifying.wait()
    assert service.auditor.get("/v1/verify").json()["last"]["clean"] is False
    assert "privloss_verify_clean 0.0" in service.auditor.get("/metrics").text


def test_verifying_ends_with_the_service(serving: Callable[..., Service], sqlite_place: str) -> None:
    """However long the history is: between two of its steps."""
    service = serving(sqlite_place)
    verifying, began, steps = service.services.verifying, threading.Event(), []
    go_on = verifying._go_on

    def slowly(done: int, of: int) -> None:
        steps.append(done)
        began.set()
        while not verifying._ending:
            threading.Event().wait(0.001)
        go_on(done, of)

    verifying._go_on = slowly  # type: ignore[method-assign]
    service.auditor.post("/v1/verify")
    assert began.wait(300)
    service.services.close()
    assert verifying.last()["last"]["clean"] is None  # type: ignore[index]
    assert len(steps) == 1


def test_a_steward_gives_back_what_was_not_started(sqlite: Service) -> None:
    for key in ("held", "started"):
        sqlite.alice.reserve(key)
    sqlite.alice.start("started")
    assert sqlite.steward.post("/v1/reservations/held/void?analyst=alice", {}).json()["state"] == "VOIDED"
    assert sqlite.steward.post("/v1/reservations/started/void?analyst=alice", {}).json()["reason"] == "wrong-state"
    assert sqlite.steward.get("/v1/reservations/alice%2Fheld").json()["key"] == "alice/held"
    assert sqlite.auditor.get("/v1/reservations/held").status_code == 404
    assert sqlite.alice.get("/v1/reservations/held").json()["key"] == "held"


def test_a_quote_knows_quotas(sqlite: Service) -> None:
    """What a quote says fits, is let in."""
    sqlite.steward.put("/v1/datasets/census/quotas/alice", {"currency": "pure", "cap": "1/11"})
    for cost, fits in (("1/12", True), ("1/10", False)):
        row = sqlite.alice.post("/v1/quote", {"datasets": ["census"], "cost": cost}).json()["census"]
        assert row["fits"] is fits
        assert sqlite.alice.reserve(f"k{cost[2:]}", cost=cost).is_success is fits
    asked = {"datasets": ["census"], "cost": "1/10", "analyst": "alice"}
    assert sqlite.steward.post("/v1/quote", asked).json()["census"]["refused"] == "quota-exceeded"
    assert sqlite.bob.post("/v1/quote", {**asked, "analyst": None}).json()["census"]["refused"] == "analyst"


def test_export_is_the_history(service: Service) -> None:
    service.alice.reserve("k")
    answer = service.auditor.get("/v1/export")
    assert answer.headers["content-disposition"] == 'attachment; filename="ledger.jsonl"'
    assert answer.text.splitlines() == service.events()
    sheet = service.auditor.get("/v1/export.csv").content.decode().splitlines()
    assert len(sheet) == len(service.events()) + 1


def test_metrics(service: Service) -> None:
    service.alice.reserve("k", cost="1/4")
    service.steward.put("/v1/datasets/taxes/frozen", {"frozen": True, "reason": "a drill"})
    service.alice.reserve("l", cost="2")
    found = service.auditor.get("/metrics").text.splitlines()
    for line in (
        'privloss_requests_total{route="/v1/reservations/{key}",status="201"} 1.0',
        'privloss_refusals_total{reason="budget-exceeded"} 1.0', 'privloss_open_reservations{dataset="census"} 1.0',
        'privloss_budget_left_ratio{dataset="census"} 0.75', 'privloss_frozen{dataset="taxes"} 1.0',
        'privloss_frozen{dataset="census"} 0.0', "privloss_auth_failures_total 0.0", "privloss_pricing 0.0",
    ):  # fmt: skip
        assert line in found, line
    assert not [line for line in found if "alice" in line]
    assert service.alice.get("/metrics").status_code == 403
    assert service.nobody.get("/metrics").status_code == 401


def test_metrics_name_only_so_many_datasets(sqlite: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privloss.service.gauges._MOST", 1)
    text = sqlite.auditor.get("/metrics").text
    assert 'dataset="census"' in text
    assert 'dataset="taxes"' not in text


def test_metrics_on_a_port_of_their_own(sqlite: Service) -> None:
    port = free_port()
    with on_port(sqlite.services.metrics, port), httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        assert "privloss_requests_total" in client.get("/metrics").text
        assert client.get("/metrics", headers={"host": "evil.example"}).status_code == 404
        assert client.get("/").status_code == 404


def test_ready_follows_the_store(sqlite: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sqlite.nobody.get("/health/ready").json() == {"ready": True}
    monkeypatch.setattr(sqlite.services, "answers", lambda: False)
    assert sqlite.nobody.get("/health/ready").status_code == 503


def test_what_the_last_transaction_did_is_in_the_answer(service: Service) -> None:
    """An answer is given after its commit: another reader finds what it says."""
    done = threading.Barrier(2)

    def spend() -> None:
        service.alice.reserve("k")
        done.wait()

    threading.Thread(target=spend).start()
    done.wait()
    assert service.bob.get("/v1/datasets/census").json()["reserved"] == "1/11"


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2.5, "x", true, null, {"b": "\\u00e9\\ud83d\\ude00"}]}', "[]", '"x"', "1e3"]
)
def test_strict_json_reads_what_is_json(text: str) -> None:
    assert loads(text.encode()) == json.loads(text)


def test_jobs_answer_what_the_library_answers(sqlite: Service, serving: Callable[..., Service]) -> None:
    import privloss as pl

    plan = pl.Plan.from_dict(GAUSSIAN)
    answer = sqlite.alice.post("/v1/answer", {"plan": GAUSSIAN, "delta": 1e-6}).json()
    assert answer["epsilon"]["upper"] == plan.epsilon(1e-6).upper
    compared = sqlite.alice.post("/v1/compare", {"plan": GAUSSIAN, "delta": 1e-6}).json()
    assert len(compared["bounds"]) > 1
    tuned = sqlite.alice.post("/v1/calibrate", {"plan": GAUSSIAN, "epsilon": 1.0, "delta": 1e-6}).json()
    assert tuned["epsilon"]["upper"] <= 1.0
    certificate = sqlite.alice.post("/v1/certify", {"plan": GAUSSIAN, "delta": 1e-6}).json()
    assert pl.verify(certificate)
    assert jobs.describe(GAUSSIAN)["adjacency"] == "add-remove"
