"""Every problem a service can tell has a type here; long histories and runs of verify are put together."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import privloss as pl
from privloss.client.connection import Reply
from privloss.client.problems import NotAllowed, NotThere, problem_of
from privloss.errors import InvalidInput, Unsupported
from privloss.ledger import maintenance
from privloss.ledger.answers import AlreadySpentError, RefusedError
from privloss.ledger.ledger import Ledger
from privloss.ledger.refusals import Refusal
from privloss.ledger.stores.base import LedgerError, LostReply
from privloss.service.problems import Problem
from tests.client.real import Real
from tests.client.scripted import Scripted, refuses, says
from tests.client.test_asking import Time, at

SERVICE = Path(pl.__file__).parent / "service"
# status and reason of every problem in the service's code
TOLD = {
    (int(status), reason)
    for path in SERVICE.glob("*.py")
    for status, reason in re.findall(r'Problem\(\s*(\d{3}), "([a-z-]+)"', path.read_text())
}
KINDS: dict[str, type[Exception]] = {
    "invalid": InvalidInput, "not-json": InvalidInput, "too-large": InvalidInput, "too-deep": InvalidInput,
    "token": NotAllowed, "role": NotAllowed, "unsupported": Unsupported, "price-timeout": Unsupported,
    "price-memory": Unsupported, "not-verified": NotThere, "lost-reply": LostReply, "failed": LostReply,
    "unknown-key": RefusedError, "unknown-dataset": RefusedError,
}  # fmt: skip
OTHERS = {"busy", "rate", "host", "method", "unknown-path"}  # LedgerError; the first two after asking again
PAGES = {"form", "session", "origin", "login"}  # of the pages, which no program asks


def test_the_code_was_read() -> None:
    assert {(401, "token"), (403, "role"), (422, "price-timeout"), (413, "too-large"), (502, "lost-reply")} <= TOLD


@pytest.mark.parametrize(("status", "reason"), sorted(each for each in TOLD if each[1] not in PAGES))
def test_every_problem_has_a_type(status: int, reason: str) -> None:
    said = Problem(status, reason, "a sentence").response()
    found = problem_of(Reply(said.status_code, dict(said.headers), bytes(said.body)))
    assert type(found) is KINDS.get(reason, LedgerError)
    assert (reason in KINDS) != (reason in OTHERS)
    assert "a sentence" in str(found)


@pytest.mark.parametrize("refusal", Refusal)
def test_every_refusal_is_the_same_here(refusal: Refusal) -> None:
    facts = {"charged": {"d": {"epsilon": "1"}}, "remaining": {"d": {"epsilon": "0"}}, "shortfall": {"epsilon": "1"}}
    said = Problem(409, refusal.code, "a sentence", **facts).response()
    found = problem_of(Reply(409, dict(said.headers), bytes(said.body)))
    assert isinstance(found, RefusedError)
    assert isinstance(found, AlreadySpentError) == (refusal is Refusal.ALREADY_STARTED)
    assert (found.refused.reason, found.refused.text) == (refusal, "a sentence")
    assert {
        "charged": found.refused.charged,
        "remaining": found.remaining,
        "shortfall": found.refused.shortfall,
    } == facts


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, InvalidInput), (401, NotAllowed), (404, LedgerError), (500, LostReply), (302, LedgerError)],
)
def test_a_proxy_gives_no_reason(status: int, kind: type[Exception]) -> None:
    for media, body in (("text/html", b"<h1>no</h1>"), ("application/json", b"[1"), ("application/json", b"[]")):
        assert type(problem_of(Reply(status, {"content-type": media}, body))) is kind


@pytest.mark.parametrize("body", ["[]", "1", "[" * 100_000])
def test_an_answer_that_is_no_object_is_an_error(body: str) -> None:
    def answer(handler: object) -> None:
        from tests.client.scripted import raw

        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        raw((head + body).encode())(handler)  # type: ignore[arg-type]

    with Scripted(answer) as service, pytest.raises(LedgerError, match="not JSON"):
        at(service.place).status("d")


# -- a run of verify ---------------------------------------------------------------------------------------------------

CLEAN = {"clean": True, "problems": [], "events": 3, "head": "h", "ends": {"d": [3, "x"]}, "attached": 0, "refuted": 0}


def _begun(process: str, run: int, joined: bool = False) -> object:
    return says(202, {"running": True, "process": process, "run": run, "joined": joined})


def _ran(process: str, run: int | None, running: bool, **more: object) -> object:
    last = None if run is None else {**CLEAN, "run": run, **more}
    return says(200, {"running": running, "process": process, "last": last})


@pytest.mark.parametrize(
    "answers",
    [
        [_begun("a", 1), _ran("a", None, True), _ran("a", 1, False)],
        # one that was running already may not have seen everything: another
        [_begun("a", 4, joined=True), _ran("a", 4, False), _begun("a", 5), _ran("a", 4, True), _ran("a", 5, False)],
        # two processes behind one address
        [_begun("a", 1), _ran("b", 7, False), _begun("b", 8), _ran("a", None, True), _ran("b", 8, False)],
        [_begun("a", 1), refuses(404, "not-verified"), _begun("b", 1), _ran("a", 1, False)],
    ],
)
def test_verify_waits_for_a_run_that_is_new_enough(answers: list[object]) -> None:
    with Scripted(*answers) as service:  # type: ignore[arg-type]
        found = at(service.place).verify()
    assert (found.clean, found.events, found.ends) == (True, 3, {"d": (3, "x")})
    assert service.answers == []


def test_a_run_that_failed_is_no_clean_ledger() -> None:
    failed = _ran("a", 1, False, clean=None, problems=["not finished: MemoryError"])
    with Scripted(_begun("a", 1), failed) as service, pytest.raises(LedgerError, match="could not verify"):  # type: ignore[arg-type]
        at(service.place).verify()


# -- long histories ----------------------------------------------------------------------------------------------------


def test_a_long_history_comes_in_pages_and_in_order(
    sqlite_place: str, real: Callable[..., Real], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that of a ledger that was restored, which stands in another chain."""
    kept, clock = Ledger.create(str(tmp_path / "first.db"), group=True), Time()
    kept.clock = lambda: 1.7e9 + clock.now
    kept.add_dataset("d", adjacency="add-remove")
    kept.set_budget("d", currency="pure", cap="1000")
    for number in range(300):
        clock.now += 1
        kept.reserve("d", cost=1, key=f"k{number}")
        kept.void(f"k{number}")
    maintenance.backup(kept, tmp_path / "backup")
    kept.close()
    service = real(sqlite_place)
    maintenance.restore(tmp_path / "backup", service.ledger)
    service.ledger.freeze("d", False, reason="reconciled")
    remote = service.remote(service.token("auditor"))
    whole = service.ledger.history("d")
    assert len(whole) == 604
    assert [event["kind"] for event in whole[-2:]] == ["restored", "frozen"]
    assert remote.history("d") == whole
    assert remote.history("d", last=550) == whole[-550:]
    assert remote.history("d", last=500) == whole[-500:]
    assert remote.history("d", kind="reserved") == service.ledger.history("d", kind="reserved")
    assert remote.history("d", kind="restored") == whole[-2:-1]
    assert remote.history("d", since=1.7e9 + 100.5, until=1.7e9 + 200)[0]["key"] == "k100"


def test_works_with_the_standard_library_alone() -> None:
    """Nothing that `privloss[serve]` brings is loaded by asking a service, nor numpy by a typed cost."""
    import subprocess
    import sys

    with Scripted(says(201, {"key": "k", "state": "RESERVED", "charged": {}, "remaining": {}})) as service:
        code = (
            "import sys, privloss as pl; ledger = pl.Ledger(sys.argv[1], token='pl_x');"
            "ledger.reserve('d', cost='1/11', key='k');"
            "print(sorted({'httpx', 'starlette', 'pydantic', 'uvicorn', 'psycopg', 'numpy'} & set(sys.modules)))"
        )
        found = subprocess.run([sys.executable, "-c", code, service.place], capture_output=True, text=True)
    assert found.stdout == "[]\n", found.stderr
