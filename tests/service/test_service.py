"""One walk through the service, in this process and in one of its own."""

from __future__ import annotations

from collections.abc import Callable

from tests.service.inside import GAUSSIAN, Service
from tests.service.outside import Process, prepared


def test_reserve_start_commit(service: Service) -> None:
    asked = service.alice.reserve("mean-age")
    assert (asked.status_code, asked.json()["state"], asked.json()["charged"]) == (
        201, "RESERVED", {"census": {"epsilon": "1/11"}},
    )  # fmt: skip
    assert service.alice.reserve("mean-age").status_code == 200
    assert service.alice.start("mean-age").json()["state"] == "STARTED"
    assert service.alice.start("mean-age").status_code == 200
    again = service.alice.start("mean-age", run="s" * 16)
    assert (again.status_code, again.json()["reason"]) == (409, "already-started")
    assert service.alice.move("mean-age", "commit").json()["state"] == "COMMITTED"
    assert service.ledger.status("census")["committed"] == "1/11"
    assert service.ledger.verify().clean


def test_a_plan_is_priced_by_a_worker(service: Service) -> None:
    found = service.alice.put("/v1/reservations/k", {"datasets": ["taxes"], "plan": GAUSSIAN}).json()
    assert found["charged"] == {"taxes": {"rho": "0.005000000000222826"}} or found["charged"]["taxes"]["rho"]
    assert 0.005 <= found["approx"]["charged"]["taxes"]["rho"] < 0.0050001


def test_a_process_answers_and_ends_in_order(process: Callable[..., Process], sqlite_place: str) -> None:
    tokens = prepared(sqlite_place)
    running = process(sqlite_place)
    with running.client(tokens["alice"]) as alice:
        assert alice.get("/health/live").json() == {"live": True}
        held = alice.put("/v1/reservations/k", json={"datasets": ["census"], "cost": "1/11"})
        assert held.status_code == 201
    running.await_ready()
    assert running.end() == 0
    assert "Traceback" not in running.log()
