"""One key lets one caller in, once: not a second thread, process or task, not again after a crash, not while frozen."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import privloss as pl
from privloss.cli.main import main
from privloss.ledger import maintenance
from privloss.ledger.ledger import AlreadySpentError, Ledger, RefusedError
from privloss.ledger.stores.base import LostReply
from tests.ledger.forging import appended

TOKEN = "0123456789abcdef"


def _fill(made: Ledger) -> Ledger:
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")
    return made


@pytest.fixture
def ledger(place: str) -> Ledger:
    return _fill(Ledger.create(place))


def _refused(ask: Callable[[], object]) -> str:
    with pytest.raises(RefusedError) as problem:
        ask()
    return problem.value.refused.reason.code


def _spend(ledger: Ledger, key: str = "k") -> None:
    with ledger.spend("d", cost="0.1", key=key):
        pass


# -- a second caller ---------------------------------------------------------------------------------------------------


def test_two_threads(ledger: Ledger, place: str) -> None:
    """Both have reserved before either starts; the second asks while the first is inside."""
    inside, asked = threading.Event(), threading.Event()
    entered: list[str] = []
    ledger.reserve("d", cost="0.1", key="k")

    def first() -> None:
        with ledger.spend("d", cost="0.1", key="k"):
            entered.append("first")
            inside.set()
            asked.wait()

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait()
    try:
        with pytest.raises(AlreadySpentError, match=r"spent already.*use a new key"):
            _spend(Ledger(place))
    finally:
        asked.set()
        thread.join()
    assert entered == ["first"]
    assert ledger.status("d")["committed"] == "0.1"
    assert ledger.verify().clean


def test_many_at_once(place: str) -> None:
    _fill(Ledger.create(place))
    entered, refused, barrier = [], [], threading.Barrier(6)

    def ask() -> None:
        own = Ledger(place)
        barrier.wait()
        try:
            with own.spend("d", cost="0.1", key="k"):
                entered.append(1)
        except AlreadySpentError:
            refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(entered), len(refused)) == (1, 5)


def test_nested(ledger: Ledger) -> None:
    with ledger.spend("d", cost="0.1", key="k"), pytest.raises(AlreadySpentError):
        _spend(ledger)
    assert ledger.status("d")["committed"] == "0.1"


def test_processes(place: str) -> None:
    _fill(Ledger.create(place))
    code = (
        "import sys\nfrom privloss.ledger.ledger import AlreadySpentError, Ledger\n"
        "made = Ledger(sys.argv[1])\n"
        "try:\n    with made.spend('d', cost='0.1', key='k'):\n        print('entered')\n"
        "except AlreadySpentError:\n    print('refused')\n"
    )
    call = [sys.executable, "-c", code, place]
    runs = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = sorted(run.communicate()[0].strip() for run in runs)
    assert said == ["entered", "refused", "refused", "refused"]


@pytest.mark.parametrize("grouped", [False, True])
def test_tasks(tmp_path: Path, grouped: bool) -> None:
    made = _fill(Ledger.create(str(tmp_path / "a.db"), group=grouped))
    entered: list[int] = []

    async def ask(number: int) -> None:
        async with made.aspend("d", cost="0.1", key="k"):
            entered.append(number)
            await asyncio.sleep(0.01)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(ask(i) for i in range(5)), return_exceptions=True)

    answers = asyncio.run(all_of_them())
    assert len(entered) == 1
    assert sum(isinstance(answer, AlreadySpentError) for answer in answers) == 4
    assert made.verify().clean


def test_a_decorated_function(ledger: Ledger) -> None:
    @ledger.spending("d", cost="0.1")
    def answer(number: int) -> int:
        if number == 0:
            with pytest.raises(AlreadySpentError):
                answer(5, key="k")
        return number

    assert answer(0, key="k") == 0
    for number in (0, 1):  # the same arguments, or others
        with pytest.raises(AlreadySpentError):
            answer(number, key="k")
    assert answer(1, key="other") == 1


def test_the_command_line(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as stop:
            main(["ledger", *arguments, "--db", place])
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out + err

    _fill(Ledger.create(place))
    assert run("reserve", "d", "--cost", "0.1", "--key", "first")[0] == 0
    assert run("start", "first", "--token", TOKEN)[0] == 0
    assert run("start", "first", "--token", TOKEN)[0] == 0  # a lost reply
    for more in ((), ("--token", TOKEN[::-1])):
        code, said = run("start", "first", *more)
        assert (code, "(already-started)" in said, "use a new key" in said) == (3, True, True)
    code, said = run("start", "first", "--token", "short")
    assert (code, "drawn at random" in said) == (2, True)
    assert run("commit", "first")[0] == 0
    assert run("start", "first", "--token", TOKEN)[0] == 3  # committed: the data has been read


# -- after a crash, a lease, a lost reply ------------------------------------------------------------------------------


def test_no_way_back_after_a_crash(ledger: Ledger, place: str) -> None:
    code = (
        "import os, sys\nfrom privloss.ledger.ledger import Ledger\n"
        "with Ledger(sys.argv[1]).spend('d', cost='0.1', key='k'):\n    os._exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, place], check=False).returncode == 7
    assert _refused(lambda: _spend(ledger)) == "already-started"
    assert ledger.status("d")["reserved"] == "0.1"  # an answer may be out: it stays charged
    _spend(ledger, "another")
    assert ledger.commit("k").state == "COMMITTED"


def test_a_lease_that_ended_lets_nobody_in(ledger: Ledger) -> None:
    now = [1000.0]
    ledger.clock = lambda: now[0]
    ledger.reserve("d", cost="0.1", key="k")
    ledger.start("k", lease=1)
    now[0] += 100
    assert _refused(lambda: ledger.start("k")) == "already-started"
    ledger.reserve("d", cost="0.1", key="late", lease=1)
    assert _refused(lambda: ledger.start("k")) == "already-started"  # committed by then
    now[0] += 100
    with pytest.raises(RefusedError, match="under a new key"):
        ledger.start("late")


def test_a_lost_reply_is_asked_again_by_its_own_caller(ledger: Ledger) -> None:
    ledger.reserve("d", cost="0.1", key="k")
    assert ledger.start("k", token=TOKEN).state == "STARTED"
    events = ledger.verify().events
    assert ledger.start("k", token=TOKEN).state == "STARTED"
    assert ledger.verify().events == events
    assert _refused(lambda: ledger.start("k")) == "already-started"
    assert _refused(lambda: ledger.start("k", token=TOKEN + "x")) == "already-started"
    for bad in ("", "short", 5, "x" * 201, "\n" * 20):
        with pytest.raises(pl.InvalidInput, match="drawn at random"):
            ledger.start("k", token=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("waits", [False, True])
def test_a_reply_lost_on_the_way_into_a_block(ledger: Ledger, waits: bool) -> None:
    """The start is durable, its answer gets lost: the block is entered all the same, and by nobody else."""
    run, lost = ledger.store.run, []

    def lose(command: Any, clock: Any = None) -> Any:
        outcome = run(command, clock)
        if getattr(command, "to", "") == "STARTED" and not lost:
            lost.append(command)
            raise LostReply("the connection is gone.")
        return outcome

    ledger.store.run = lose  # type: ignore[method-assign]
    entered = []

    async def spend() -> None:
        async with ledger.aspend("d", cost="0.1", key="k"):
            entered.append(1)

    if waits:
        asyncio.run(spend())
    else:
        with ledger.spend("d", cost="0.1", key="k"):
            entered.append(1)
    assert (len(lost), len(entered)) == (1, 1)
    assert [event["kind"] for event in ledger.history("d")][-3:] == ["reserved", "started", "committed"]
    assert _refused(lambda: _spend(ledger)) == "already-started"


def test_what_was_only_reserved_goes_on(ledger: Ledger) -> None:
    ledger.reserve("d", cost="0.1", key="k")
    _spend(ledger)
    assert ledger.status("d")["committed"] == "0.1"


# -- frozen ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["RESERVED", "STARTED"])
def test_nothing_enters_a_frozen_dataset(ledger: Ledger, state: str) -> None:
    ledger.reserve("d", cost="0.1", key="k")
    if state == "STARTED":
        ledger.start("k", token=TOKEN)
    ledger.freeze("d")
    assert _refused(lambda: _spend(ledger)) == "frozen"
    assert _refused(lambda: ledger.start("k", token=TOKEN)) == "frozen"
    assert _refused(lambda: ledger.reserve("d", cost="0.1", key="k")) == "frozen"
    if state == "STARTED":
        assert ledger.commit("k").state == "COMMITTED"  # what was read can be closed


def test_nothing_enters_a_restored_ledger(ledger: Ledger, tmp_path: Path) -> None:
    ledger.reserve("d", cost="0.1", key="reserved")
    ledger.reserve("d", cost="0.1", key="started")
    ledger.start("started", token=TOKEN)
    maintenance.backup(ledger, tmp_path / "b")
    restored = Ledger.create(str(tmp_path / "restored.db"))
    maintenance.restore(tmp_path / "b", restored)
    for key in ("reserved", "started"):
        assert _refused(lambda key=key: _spend(restored, key)) == "frozen"  # type: ignore[misc]
    restored.freeze("d", False)
    assert _refused(lambda: _spend(restored, "started")) == "already-started"
    assert restored.start("started", token=TOKEN).state == "STARTED"  # the token came along
    assert restored.verify().clean


# -- an audit sees it --------------------------------------------------------------------------------------------------


def _moved(kind: str, key: str = "k") -> dict[str, Any]:
    return {"kind": kind, "key": key, "accounts": ["d"]}


START = _moved("started")


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([START, START], "event 5 of 'd': key 'k' is started twice"),
        ([START, _moved("committed"), START], "event 6 of 'd': key 'k' is started, but it was closed"),
        ([_moved("committed")], "event 4 of 'd': key 'k' is committed, but it was RESERVED"),
        ([_moved("voided"), START], "event 5 of 'd': key 'k' is started, but it was closed"),
        ([START, _moved("voided")], "event 5 of 'd': key 'k' is voided, but it was STARTED"),
        ([_moved("started", "x")], "event 4 of 'd': key 'x' is started, but it was unknown"),
        ([{"kind": "frozen", "dataset": "d", "frozen": True}, START], "is started while dataset 'd' is frozen"),
    ],
)
def test_an_audit_sees_events_out_of_turn(tmp_path: Path, events: list[dict[str, Any]], says: str) -> None:
    made = _fill(Ledger.create(str(tmp_path / "a.db")))
    made.reserve("d", cost="0.1", key="k")
    assert made.verify().clean
    appended(tmp_path / "a.db", *events)
    assert says in made.verify().problems[0]


def test_a_ledger_of_version_one_is_brought_up(tmp_path: Path) -> None:
    """A key that an older release has started has no token: nobody enters under it."""
    old = Path(__file__).parents[1] / "data" / "ledger-0.1.0.sqlite"
    (tmp_path / "old.db").write_bytes(old.read_bytes())
    made = Ledger(str(tmp_path / "old.db"), clock=lambda: 1_750_000_060.0)
    assert made.verify().clean
    assert _refused(lambda: made.start("rho")) == "already-started"
    assert os.path.exists(tmp_path / "old.db")
    last = json.loads(list(made.export())[-1])["body"]
    assert (last["kind"], last["why"], last["key"]) == ("refused", "already-started", "rho")
