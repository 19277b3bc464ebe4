"""The client asks again where that is safe and nowhere else, and trusts neither cut-off answers nor strange names."""

from __future__ import annotations

import os
import ssl
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.client.asking import Patience
from privloss.client.ledger import RemoteLedger
from privloss.client.problems import NotAllowed
from privloss.errors import InvalidInput
from privloss.ledger.stores.base import LedgerError, LostReply, NoAnswer
from tests.client.scripted import CUT_OFF, HANGS_UP, Answer, Scripted, raw, refuses, says

TOKEN = "pl_abcdefgh_" + "x" * 43
HELD = {"key": "k", "state": "RESERVED", "charged": {"d": {"epsilon": "1/11"}}, "remaining": {"d": {"epsilon": "0"}}}
STARTED = {**HELD, "state": "STARTED"}
STATUS = {"dataset": "d", "committed": "0"}


class Time:
    """Goes on only when somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def at(place: str, time: Time | None = None, **more: Any) -> RemoteLedger:
    chosen = time or Time()
    patience = Patience(10.0, lambda: chosen.now, chosen.sleep, lambda: 1.0)
    return RemoteLedger(place, token=TOKEN, patience=patience, **more)


def reserve(ledger: pl.Ledger) -> object:
    return ledger.reserve("d", cost="1/11", key="k")


def add(ledger: pl.Ledger) -> object:
    return ledger.add_dataset("d", adjacency="add-remove")  # type: ignore[func-returns-value]


# -- once more, or not -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lost", [HANGS_UP, CUT_OFF, raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n")]
)
@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (reserve, HELD),
        (lambda ledger: ledger.commit("k"), HELD),
        (lambda ledger: ledger.void("k"), HELD),
        (lambda ledger: ledger.status("d"), STATUS),
        (lambda ledger: ledger.freeze("d"), {}),
        (lambda ledger: ledger.set_budget("d", currency="pure", cap=1), {}),
        (lambda ledger: ledger.quote("d", cost="1/11"), {}),
    ],
)
def test_a_lost_answer_is_asked_for_again(lost: Answer, ask: Callable[[pl.Ledger], object], answer: Any) -> None:
    with Scripted(lost, lost, says(200, answer)) as service:
        ask(at(service.place))
    first, *others = [(each.method, each.path, each.body) for each in service.asked]
    assert others == [first, first]


def test_a_start_is_asked_for_again_with_the_same_run_and_only_with_that() -> None:
    with Scripted(HANGS_UP, says(200, STARTED), says(200, STARTED)) as service:
        ledger = at(service.place)
        assert ledger.start("k").state == "STARTED"
        ledger.start("k")
    first, again, other = [each.body["run"] for each in service.asked]
    assert first == again != other
    assert len(first) >= 16


@pytest.mark.parametrize("lost", [HANGS_UP, CUT_OFF, raw(b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n")])
def test_what_may_have_taken_effect_is_not_asked_twice_if_that_matters(lost: Answer) -> None:
    with Scripted(lost) as service, pytest.raises(LostReply, match="not known whether"):
        add(at(service.place))
    assert len(service.asked) == 1


def test_what_cannot_have_taken_effect_is_asked_again() -> None:
    busy = refuses(503, "busy", headers={"Retry_After": "1"})
    with Scripted(busy, refuses(429, "rate"), says(201, {})) as service:
        add(at(service.place))
    assert len(service.asked) == 3


def test_waits_as_long_as_it_is_asked_to_and_grows_otherwise() -> None:
    time = Time()
    busy = refuses(503, "busy")
    with Scripted(refuses(429, "rate", headers={"Retry_After": "3"}), busy, busy, says(200, STATUS)) as service:
        at(service.place, time).status("d")
    assert time.slept == [3.0, 0.1, 0.2]


def test_patience_ends() -> None:
    """A refusal that asks for more patience than there is ends at once; a lost answer is said to be one."""
    time = Time()
    later = refuses(429, "rate", "slower", {"Retry_After": "11"})
    with Scripted(later) as service, pytest.raises(NoAnswer, match="slower"):
        at(service.place, time).status("d")
    assert time.slept == []
    with Scripted(*[HANGS_UP] * 30) as service, pytest.raises(LostReply, match="not known whether it took effect"):
        reserve(at(service.place, time))
    assert 9 < time.now <= 10
    nobody = service.port  # closed by now
    with pytest.raises(NoAnswer, match="does not answer"):
        reserve(at(f"http://127.0.0.1:{nobody}"))


def test_nobody_is_asked_where_nobody_listens_and_then_somebody_is() -> None:
    """A service that is being restarted: the client comes back to it."""
    with Scripted() as first:
        place, port = first.place, first.port
    started = list[Scripted]()

    class Restarting(Time):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if not started:
                started.append(Scripted(says(200, STATUS), port=port).__enter__())

    assert at(place, Restarting()).status("d") == STATUS
    started[0].__exit__()


# -- connections -------------------------------------------------------------------------------------------------------


def test_a_connection_is_kept() -> None:
    with Scripted(*[says(200, STATUS)] * 3) as service:
        ledger = at(service.place)
        for _ in range(3):
            ledger.status("d")
    assert len({each.connection for each in service.asked}) == 1


def test_a_connection_the_service_has_closed_is_not_used_again() -> None:
    """Without a retry: nothing was sent over it."""
    time = Time()
    with Scripted(says(200, STATUS, Connection="close"), says(200, STATUS)) as service:
        ledger = at(service.place, time)
        ledger.status("d")
        ledger.status("d")
    assert time.slept == []


def test_threads_do_not_share_a_connection_at_one_time() -> None:
    both = threading.Barrier(2)

    def answer(handler: Any) -> None:
        both.wait(30)  # two requests are being answered at once
        says(200, STATUS)(handler)

    with Scripted(answer, answer) as service, ThreadPoolExecutor(2) as pool:
        ledger = at(service.place)
        assert list(pool.map(lambda _: ledger.status("d"), range(2))) == [STATUS] * 2
    assert len({each.connection for each in service.asked}) == 2


def test_a_forked_child_opens_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scripted(says(200, STATUS), says(200, STATUS)) as service:
        ledger = at(service.place)
        ledger.status("d")
        here = os.getpid()
        monkeypatch.setattr("privloss.client.connection.os.getpid", lambda: here + 1)
        ledger.status("d")
    assert len({each.connection for each in service.asked}) == 2


# -- what is sent, and to whom -----------------------------------------------------------------------------------------


def test_the_token_is_sent_as_a_header_and_shown_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    with Scripted(says(200, STATUS), refuses(401, "token", "no such token")) as service:
        ledger = at(service.place)
        ledger.status("d")
        with pytest.raises(NotAllowed) as problem:
            ledger.status("d")
    assert service.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in service.asked[0].path
    assert TOKEN not in f"{problem.value!r} {ledger!r} {capsys.readouterr()}"


def test_a_redirect_is_not_followed() -> None:
    """It could lead the token to another host."""
    with Scripted(says(200, STATUS)) as other:
        moved = says(302, {}, Location=f"{other.place}/v1/datasets/d")
        with Scripted(moved) as service, pytest.raises(LedgerError, match="302"):
            at(service.place).status("d")
    assert other.asked == []


@pytest.mark.parametrize("token", ["", "pl_a b", "pl_a\r\nHost: x", "pl_\u00e9", "x" * 501])
def test_a_token_that_would_break_the_header_is_refused_unshown(token: str) -> None:
    with pytest.raises(InvalidInput, match="give the token") as problem:
        pl.Ledger("https://localhost", token=token)
    assert not token or token not in str(problem.value)


def test_the_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVLOSS_TOKEN", "pl_from_there")
    with Scripted(says(200, STATUS)) as service:
        monkeypatch.setenv("PRIVLOSS_LEDGER", service.place)
        with_nothing_said: pl.Ledger = pl.Ledger()
        assert isinstance(with_nothing_said, RemoteLedger)
        with_nothing_said.status("d")
    assert service.asked[0].headers["authorization"] == "Bearer pl_from_there"


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("http://budget.example.org", "plain http"),
        ("http://10.0.0.1", "plain http"),
        ("http://localhost.example.org", "plain http"),
        ("http://127.0.0.1@example.org", "no user"),
        ("https://ann:secret@example.org", "no user"),
        ("https://example.org/?token=pl_x", "no user, query"),
        ("https://example.org:port", "is no address"),
        ("https://", "must be the address"),
        ("https://ex\u00e4mple.org", "must be the address"),
    ],
)
def test_addresses_that_are_refused(place: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as problem:
        pl.Ledger(place, token=TOKEN)
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize("place", ["http://127.0.0.1:1", "http://localhost", "http://[::1]:8080/", "https://a.b/c/"])
def test_addresses_that_are_taken(place: str) -> None:
    ledger = pl.Ledger(place, token=TOKEN)
    assert place.rstrip("/") in repr(ledger).replace(":80'", "'").replace(":443", "")


def test_a_local_ledger_takes_no_token_and_a_remote_one_no_clock(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is for a service"):
        pl.Ledger(str(tmp_path / "x.db"), token=TOKEN)
    with pytest.raises(InvalidInput, match="service's own"):
        pl.Ledger("https://localhost", token=TOKEN, group=True)
    with pytest.raises(InvalidInput, match="is a service"):
        pl.Ledger.create("https://localhost")


# -- certificates ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For localhost alone, signed by itself, with its key."""
    home = tmp_path_factory.mktemp("certificate")
    call = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    more = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(home / "key.pem"), "-out", str(home / "cert.pem")]
    subprocess.run([*call, *more, *files], check=True, capture_output=True)
    return home


def _serving(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return context


def test_tls_checks_who_answers(certificate: Path) -> None:
    """A certificate that nobody vouches for, and one for another name, are refused before the token is sent."""
    trusting = ssl.create_default_context(cafile=certificate / "cert.pem")
    with Scripted(says(200, STATUS), context=_serving(certificate)) as service:
        place = f"https://localhost:{service.port}"
        with pytest.raises(LedgerError, match="not trusted"):
            at(place).status("d")
        with pytest.raises(LedgerError, match="not trusted"):
            at(f"https://127.0.0.1:{service.port}", context=trusting).status("d")
        assert service.asked == []
        assert at(place, context=trusting).status("d") == STATUS


def test_the_usual_trust_checks_certificate_and_name() -> None:
    ledger = RemoteLedger("https://localhost", token=TOKEN)
    context = ledger._asking._connections._context
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
