"""A run is let in by its token, of which the log keeps only the hash: crashes, forks and readers get nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from privloss.ledger import maintenance
from privloss.ledger.ledger import AlreadySpentError, Ledger, RefusedError
from privloss.ledger.state import run_hash

TOKEN = "0123456789abcdef"


def _fill(made: Ledger) -> Ledger:
    made.add_dataset("d", adjacency="add-remove")
    made.set_budget("d", currency="pure", cap="1")
    return made


# Forks with one ledger open, so that children share whatever the parent has drawn at random; each enters if it may,
# writes one letter, and dies.
DIES = """
import os, sys
from privloss.ledger.ledger import AlreadySpentError, Ledger
made = Ledger(sys.argv[1])
made.reserve('d', cost='0.1', key='k')
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        try:
            with made.spend('d', cost='0.1', key='k'):
                os.write(1, b'A')
                os._exit(7)
        except AlreadySpentError:
            os.write(1, b'-')
            os._exit(0)
    os.waitpid(child, 0)
made.close()
"""


def test_forked_children_that_die_release_one_answer(place: str) -> None:
    made = _fill(Ledger.create(place))
    run = subprocess.run([sys.executable, "-c", DIES, place, "20"], capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("A" + "-" * 19, 0), run.stderr
    assert made.status("d")["reserved"] == "0.1"
    assert made.verify().clean


ENTERS = """
import sys
from privloss.ledger.ledger import AlreadySpentError, Ledger
made = Ledger(sys.argv[1])
print('ready', flush=True)
sys.stdin.readline()
try:
    with made.spend('d', cost='0.1', key='k'):
        print('entered')
except AlreadySpentError:
    print('refused')
made.close()
"""


def test_of_eight_processes_with_one_key_one_enters(place: str) -> None:
    _fill(Ledger.create(place))
    call = [sys.executable, "-c", ENTERS, place]
    runs = [subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    for run in runs:
        assert run.stdout is not None
        run.stdout.readline()
    for run in runs:  # all are there: go
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
    said = sorted(run.communicate()[0].strip() for run in runs)
    assert said == ["entered", *["refused"] * 7]


def test_the_second_and_third_start_are_refused(place: str) -> None:
    made = _fill(Ledger.create(place))
    made.reserve("d", cost="0.1", key="k")
    made.start("k")
    for _ in range(2):
        with pytest.raises(AlreadySpentError):
            made.start("k")
    assert [event["kind"] for event in made.history("d")][-3:] == ["started", "refused", "refused"]


def test_the_log_alone_does_not_repeat_a_start(place: str, tmp_path: Path) -> None:
    """Whoever can read the events has the hash of the token, which is no token."""
    made = _fill(Ledger.create(place))
    made.reserve("d", cost="0.1", key="k")
    made.start("k", token=TOKEN)
    text = "\n".join(made.export())
    assert TOKEN not in text
    events = [json.loads(line)["body"] for line in text.splitlines()]
    (run,) = [event["run"] for event in events if event["kind"] == "started"]
    assert run == run_hash(TOKEN)
    for stolen in (run, run[:16], run.upper()):
        with pytest.raises(AlreadySpentError):
            made.start("k", token=stolen)
    maintenance.backup(made, tmp_path / "backup")
    assert TOKEN not in (tmp_path / "backup").read_text()
    if "://" not in place:
        assert TOKEN.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("privloss.db*"))
    assert made.start("k", token=TOKEN).state == "STARTED"  # its own caller, whose reply was lost


def test_each_spend_draws_its_own_token(place: str) -> None:
    made = _fill(Ledger.create(place))
    for key in ("a", "b", "c"):
        with made.spend("d", cost="0.1", key=key):
            pass
    runs = [event["run"] for event in made.history("d", kind="started")]
    assert len(set(runs)) == 3
    assert all(len(run) == 64 for run in runs)


def test_a_key_given_back_lets_nobody_in(place: str) -> None:
    made = _fill(Ledger.create(place))
    made.reserve("d", cost="0.1", key="k")
    made.void("k")
    for _ in range(2):
        with pytest.raises(RefusedError, match="VOIDED: it was given back; use a new key"):
            made.reserve("d", cost="0.1", key="k")
    with pytest.raises(RefusedError, match="use a new key"), made.spend("d", cost="0.1", key="k"):
        os._exit(1)  # must not be reached
    assert made.status("d")["reserved"] == "0"


def test_an_expired_key_lets_nobody_in(place: str) -> None:
    now = [1000.0]
    made = _fill(Ledger.create(place, clock=lambda: now[0]))
    made.reserve("d", cost="0.6", key="k", lease=10)
    now[0] += 11
    with pytest.raises(RefusedError, match="lease-expired"):
        made.start("k")
    with pytest.raises(RefusedError, match="use a new key"):  # the reservation ends here: it is given back
        made.reserve("d", cost="0.6", key="k", lease=10)
    with pytest.raises(RefusedError, match="use a new key"):
        made.start("k")
    with made.spend("d", cost="0.6", key="another"):
        pass
    assert made.status("d")["committed"] == "0.6"
    assert made.verify().clean
