"""A crash before every statement of a spend: after reopening, the ledger is in a state the model allows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from privloss.ledger.ledger import AlreadySpentError, Ledger


class Crash(BaseException):
    """The process would have died here."""


STATES = [None, "RESERVED", "STARTED", "COMMITTED"]


def _spend(ledger: Ledger) -> None:
    with ledger.spend(["d", "e"], cost="1/3", key="k"):
        pass


def _prepare(place: str) -> Ledger:
    made = Ledger.create(place)
    for name in ("d", "e"):
        made.add_dataset(name, adjacency="add-remove")
        made.set_budget(name, currency="pure", cap="1")
    return made


def test_crash_at_every_statement(place: str) -> None:
    made = _prepare(place)
    _spend(made)  # settings change: they were used
    statements: list[str] = []
    counted = Ledger(place)
    counted.store.boundary = statements.append
    with counted.spend(["d", "e"], cost="1/1000", key="counted"):
        pass
    total = len(statements)
    assert total > 25
    seen = set()
    for crash_at in range(total):
        count = [0]

        def boundary(statement: str, count: list[int] = count, crash_at: int = crash_at) -> None:
            if count[0] == crash_at:
                count[0] += 1
                raise Crash
            count[0] += 1

        fresh = Ledger(place)
        key = f"k{crash_at}"
        # every dataset gets its own room: the cap holds three spends, so give them back through their states
        fresh.store.boundary = boundary
        with pytest.raises(Crash), fresh.spend(["d", "e"], cost="1/1000", key=key):
            pass
        again = Ledger(place)  # reopened
        with again.store.reading() as cursor:
            found = again.store.everything(cursor).analyses.get(key)
        state = None if found is None else found.state
        assert state in STATES
        seen.add(state)
        assert again.verify().clean
        if state in (None, "RESERVED"):  # no data was read: the same key goes on where it stopped
            with again.spend(["d", "e"], cost="1/1000", key=key):
                pass
        else:
            with (
                pytest.raises(AlreadySpentError, match="spent already"),
                again.spend(["d", "e"], cost="1/1000", key=key),
            ):
                pass
        fresh.close()
        again.close()
    assert seen >= {None, "RESERVED", "STARTED"}
    assert made.verify().clean


@pytest.mark.parametrize("moment", [0, 5, 11, 17, 23, 29, 31])
def test_killed_for_real(tmp_path: Path, moment: int) -> None:
    """kill -9 of a process before one of its statements."""
    place = str(tmp_path / "privloss.db")
    _prepare(place).close()
    code = f"""
import os, signal
from privloss.ledger.ledger import Ledger
made, count = Ledger({place!r}), [0]
def boundary(statement):
    if count[0] == {moment}:
        os.kill(os.getpid(), signal.SIGKILL)
    count[0] += 1
made.store.boundary = boundary
with made.spend(["d", "e"], cost="1/3", key="k"):
    pass
"""
    run = subprocess.run([sys.executable, "-c", code], check=False)
    assert run.returncode == -9
    made = Ledger(place)
    assert made.verify().clean
    status = {name: made.status(name) for name in ("d", "e")}
    assert status["d"]["reserved"] == status["e"]["reserved"]  # all or nothing
    assert status["d"]["committed"] == status["e"]["committed"]
    with made.store.reading() as cursor:
        found = made.store.everything(cursor).analyses.get("k")
    if found is None or found.state == "RESERVED":
        _spend(made)
    else:  # the block may have been entered
        with pytest.raises(AlreadySpentError):
            _spend(made)
        made.commit("k")
    assert made.status("d")["committed"] == "1/3"
    assert os.path.exists(place)
