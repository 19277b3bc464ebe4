"""Grids of questions: every cell once, on all cores, stopped and resumed, refused where the file is another one's."""

from __future__ import annotations

import csv
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privloss as pl
from privloss.planning import cores, sweep_file
from privloss.planning.sweep import Sweep

HERE = {"processes": 1}


def sgd(s: float, n: int) -> pl.Plan:
    return pl.Gaussian(s) * n


GRID: dict[str, Any] = {"s": [1.0, 2.0], "n": [1, 5, 9]}


# -- answers -----------------------------------------------------------------------------------------------------------


def test_a_grid() -> None:
    seen = []
    found = pl.sweep(sgd, **GRID, delta=1e-6, progress=lambda done, of: seen.append((done, of)), **HERE)
    assert seen == [(i, 6) for i in range(1, 7)]
    assert found.table()[1][2] == (pl.Gaussian(2.0) * 9).epsilon(1e-6)
    assert found.points()[4] == {"s": 2.0, "n": 5, "epsilon": (pl.Gaussian(2.0) * 5).epsilon(1e-6)}
    assert (len(found), found.delta, found.describe()) == (6, 1e-6, "epsilon at delta = 1e-06")
    assert [p["n"] for p in found] == [1, 5, 9, 1, 5, 9]


def test_one_plan_is_asked_for_all_deltas_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from privloss.answers import exact

    made, asked = [], []
    real = exact.epsilon
    monkeypatch.setattr(exact, "epsilon", lambda plan, d, **more: (asked.append(list(d)), real(plan, d, **more))[1])

    def family(s: float) -> pl.Plan:
        made.append(s)
        return pl.Gaussian(s) * 3

    deltas = np.array([1e-3, 1e-6, 1e-9])
    found = pl.sweep(family, s=np.array([1.0, 2.0]), delta=deltas, **HERE)
    assert (made, asked) == ([1.0, 2.0], [list(deltas)] * 2)
    assert found.names == ("s", "delta")
    monkeypatch.undo()
    alone = [(pl.Gaussian(s) * 3).epsilon(d).upper for s in (1.0, 2.0) for d in deltas]
    assert [p["epsilon"].upper for p in found] == pytest.approx(alone, rel=1e-9)
    assert found.delta is None


def test_delta_at_epsilon() -> None:
    found = pl.sweep(lambda s: pl.Gaussian(s), s=[1.0, 2.0], epsilon=[0.5, 1.0], **HERE)
    assert [[c.upper for c in row] for row in found.table()] == [
        [pl.Gaussian(s).delta(e).upper for e in (0.5, 1.0)] for s in (1.0, 2.0)
    ]


def test_many_calibrations() -> None:
    found = pl.sweep(sgd, find="s", n=[1, 10], epsilon=[1.0, 2.0], delta=1e-6, **HERE)
    for point in found:
        alone = pl.calibrate(lambda s: sgd(s, point["n"]), epsilon=point["epsilon"], delta=1e-6)  # noqa: B023
        assert (point["s"], point["achieved"]) == (alone.value, alone.achieved)
    assert found.table()[0][0] == found.points()[0]["s"]
    most = pl.sweep(sgd, find="n", s=[20.0, 30.0], epsilon=1, delta=1e-6, search={"whole": True}, **HERE)
    assert [type(p["n"]) for p in most] == [int, int]
    assert most.rows()[0]["n_refused"] == most.points()[0]["n"] + 1
    attack = pl.sweep(lambda s: pl.Gaussian(s), find="s", advantage=[0.1, 0.2], **HERE)
    assert [pl.Gaussian(p["s"]).total_variation().upper <= p["advantage"] for p in attack] == [True, True]


def test_a_cell_that_is_refused_or_fails_has_its_reason() -> None:
    def family(kind: str) -> Any:
        if kind == "refused":
            return (pl.Gaussian(1.0) + pl.RDP([2.0], [0.1])).poisson(0.1)
        if kind == "broken":
            return pl.Gaussian(1 / 0)
        return "nothing" if kind == "no plan" else pl.Gaussian(1.0)

    kinds = ["fine", "refused", "broken", "no plan", "fine"]
    found = pl.sweep(family, kind=kinds, delta=[1e-5, 1e-6], **HERE)
    assert [a is not None for a in found.answers] == [k == "fine" for k in kinds for _ in range(2)]
    reasons = {place["kind"]: reason for place, reason in found.problems}
    assert "ZeroDivisionError" in reasons["broken"]
    assert "must be a plan" in reasons["no plan"]
    assert reasons["refused"]
    assert found.points()[2]["problem"] == reasons["refused"]
    assert math.isnan(found.outcomes[2].number)
    unreachable = pl.sweep(
        lambda s: pl.Gaussian(s), find="s", epsilon=[1e-3, 1], delta=1e-6, search={"high": 10.0}, **HERE
    )
    assert "cannot be met" in unreachable.problems[0][1]
    assert len(unreachable.problems) == 1


def test_one_delta_that_fails_does_not_take_the_others_along(monkeypatch: pytest.MonkeyPatch) -> None:
    from privloss.answers import exact

    real = exact.epsilon

    def sometimes(plan: pl.Plan, deltas: list[float], **more: Any) -> Any:
        if list(deltas)[1:2] == [1e-6] or list(deltas) == [1e-6]:
            raise MemoryError("too large")
        return real(plan, deltas, **more)

    monkeypatch.setattr(exact, "epsilon", sometimes)
    found = pl.sweep(lambda s: pl.Gaussian(s), s=[1.0], delta=[1e-5, 1e-6, 1e-7], **HERE)
    assert [o.problem for o in found.outcomes] == ["", "MemoryError: too large", ""]
    monkeypatch.undo()
    assert found.answers[2] == pl.Gaussian(1.0).epsilon(1e-7)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"delta": 1e-6}, "grid"),
        ({"s": [], "delta": 1e-6}, "at least one value"),
        ({"s": 3.0, "delta": 1e-6}, "list of values"),
        ({"s": "12", "delta": 1e-6}, "list of values"),
        ({"s": [1.0]}, "give delta"),
        ({"s": [1.0], "delta": 1e-6, "epsilon": 1.0}, "needs another name"),
        ({"s": [1.0], "advantage": 0.1}, "find"),
        ({"s": [1.0], "delta": [1e-6, 2.0]}, r"delta\[1\] = 2.0"),
        ({"s": [1.0], "delta": 1e-6, "adjacency": "nearby"}, "adjacency"),
        ({"s": [1.0], "delta": 1e-6, "processes": 0}, "processes"),
        ({"s": [1.0], "delta": 1e-6, "file": "x.txt"}, "must end in"),
        ({"s": [1.0], "delta": 1e-6, "file": "nowhere/x.csv"}, "does not exist"),
        ({"s": [1.0], "delta": 1e-6, "search": {}}, "goes with"),
        ({"q": [1.0], "delta": 1e-6}, "does not take"),
        ({"find": "s", "epsilon": [1.0, 2.0]}, "go together"),
        ({"find": "s", "tpr": [0.1, 0.3], "fpr": 0.2}, "guessing"),
    ],
)
def test_bad_questions_are_refused_before_anything_is_computed(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(pl.InvalidInput, match=words):
        pl.sweep(lambda s: 1 / 0, **arguments)


def test_columns_have_one_meaning() -> None:
    with pytest.raises(pl.InvalidInput, match="another column"):
        pl.sweep(lambda method: pl.Gaussian(method), method=[1.0], delta=1e-6)


# -- all cores ---------------------------------------------------------------------------------------------------------


def test_every_job_is_done_once_on_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_ALONE", 0.0)
    unsendable = {"lock": iter(())}  # workers are forked: what is asked need not be pickled
    here, helped = os.getpid(), multiprocessing.get_context("fork").Event()

    def ask(job: int) -> tuple[int, int, int]:
        assert list(unsendable["lock"]) == []
        if os.getpid() != here:
            helped.set()
        elif job > 0:  # the others start after the first, and must get their turn, however busy the machine is
            helped.wait()
        return job, job * job, os.getpid()

    with cores.answered(ask, range(50), 3) as answers:
        found = list(answers)
    assert sorted(job for job, _ in found) == list(range(50))
    assert all((a, b) == (job, job * job) for job, (a, b, _) in found)
    assert os.getpid() in {pid for _, (_, _, pid) in found}
    assert len({pid for _, (_, _, pid) in found}) > 1


def test_a_sweep_on_all_cores_is_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone = pl.sweep(sgd, **GRID, delta=[1e-5, 1e-6], file=tmp_path / "alone.csv", **HERE)
    monkeypatch.setattr(cores, "_ALONE", 0.0)
    together = pl.sweep(sgd, **GRID, delta=[1e-5, 1e-6], file=tmp_path / "together.csv", processes=3)
    assert together == alone
    assert (tmp_path / "together.csv").read_text() == (tmp_path / "alone.csv").read_text()


def test_workers_end_when_the_caller_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_ALONE", 0.0)
    before = set(multiprocessing.active_children())
    here, never = os.getpid(), multiprocessing.get_context("fork").Event()

    def ask(job: int) -> None:
        if job >= 3 and os.getpid() != here:
            never.wait()  # a worker that would never end by itself

    with cores.answered(ask, range(20), 2) as answers:
        for job, _ in answers:
            if job == 2:
                break
    assert set(multiprocessing.active_children()) == before


def test_a_worker_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_ALONE", 0.0)
    with pytest.raises(pl.PrivlossError, match="worker"), cores.answered(_die, range(4), 2) as answers:
        for _ in answers:
            pass


def _die(job: int) -> None:
    if job:
        os.kill(os.getpid(), signal.SIGKILL)


# -- files -------------------------------------------------------------------------------------------------------------

FORMATS = [".csv", ".parquet"]


class Stop(Exception):
    pass


def ask(file: Path, until: int | None = None, **changes: Any) -> Sweep:
    """The sweep of this section; `until` stops it after so many cells."""

    def watch(done: int, of: int) -> None:
        if until is not None and done >= until:
            raise KeyboardInterrupt

    question: dict[str, Any] = {"family": sgd, **GRID, "delta": [1e-5, 1e-6], "progress": watch, **HERE, **changes}
    return pl.sweep(**question, file=file)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("until", [2, 6, 10])
def test_stopped_and_resumed(tmp_path: Path, ending: str, until: int) -> None:
    whole = ask(tmp_path / f"whole{ending}")
    file = tmp_path / f"part{ending}"
    with pytest.raises(KeyboardInterrupt):
        ask(file, until)
    made = []

    def family(s: float, n: int) -> pl.Plan:
        made.append((s, n))
        return sgd(s, n)

    resumed = ask(file, family=family)
    assert resumed == whole
    assert len(made) == 6 + (12 - until) // 2  # all for the fingerprint, and those that were left
    assert [o.answer.method for o in resumed.outcomes if o.answer] == [
        o.answer.method for o in whole.outcomes if o.answer
    ]
    assert file.read_bytes() == (tmp_path / f"whole{ending}").read_bytes()
    made.clear()
    assert ask(file, family=family) == whole  # complete: nothing is asked
    assert len(made) == 6


def test_the_file_is_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    found = ask(file)
    lines = file.read_text().splitlines()
    assert json.loads(lines[0].removeprefix("# "))["grid"] == {**GRID, "delta": [1e-5, 1e-6]}
    assert lines[1] == "cell,s,n,delta,epsilon_lower,epsilon_upper,method,notes,problem"
    assert len(lines) == 2 + 12
    for i, line in enumerate(lines[2:]):
        entries = line.split(",")
        bound = found.answers[i]
        assert bound is not None
        assert int(entries[0]) == i
        assert [float(e) for e in entries[4:6]] == [bound.lower, bound.upper]


def test_a_half_written_line_is_dropped_wherever_it_ends(tmp_path: Path) -> None:
    """Cut after every byte: what is left is believed line by line, and a number that lost digits never."""
    whole = ask(tmp_path / "whole.csv")
    data = (tmp_path / "whole.csv").read_bytes()
    body = len(data.split(b"\n")[0]) + 2 + len(data.split(b"\n")[1])
    last = len(data.rstrip(b"\n").rpartition(b"\n")[0]) + 1
    file = tmp_path / "cut.csv"
    (tmp_path / "tail.csv").write_bytes(data + b"x" * 1000)
    assert ask(tmp_path / "tail.csv") == whole
    assert (tmp_path / "tail.csv").read_bytes() == data
    for length in [0, 1, 10, body - 60, body - 1, body, *range(last - 3, len(data))]:
        file.write_bytes(data[:length])
        assert ask(file) == whole, length
        assert file.read_bytes() == data, length


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"s": [1.0, 3.0]}, "grid"),
        ({"s": [1.0, 2.0, 3.0]}, "grid"),
        ({"delta": [1e-5, 1e-7]}, "grid"),
        ({"delta": 1e-5}, "grid"),
        ({"delta": None, "epsilon": [1e-5, 1e-6]}, "answer"),
        ({"adjacency": "replace-one"}, "adjacency"),
        ({"family": lambda s, n: pl.Gaussian(s) * (n + 1)}, "plans"),
        ({"family": lambda s, n: (pl.Gaussian(s) * n).under("zero-out")}, "plans"),
        ({"n": [5, 1, 9]}, "grid"),
        ({"find": "x", "family": lambda s, n, x: pl.Gaussian(s) * n, "epsilon": 1.0}, "answer"),
    ],
)
def test_the_file_of_another_question_is_refused(tmp_path: Path, ending: str, changes: Any, word: str) -> None:
    file = tmp_path / f"a{ending}"
    with pytest.raises(KeyboardInterrupt):
        ask(file, 4)
    before = file.read_bytes()
    with pytest.raises(pl.InvalidInput, match=f"another sweep, with {word}"):
        ask(file, **changes)
    assert file.read_bytes() == before


def test_other_calibrations_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    base: dict[str, Any] = {"find": "s", "n": [1, 2], "epsilon": 1.0, "delta": 1e-6, "file": file, **HERE}
    first = pl.sweep(sgd, **base)
    assert pl.sweep(lambda s, n: 1 / 0 if s not in (1, 2) else sgd(s, n), **base) == first  # read back, not asked again
    for changes in ({"epsilon": 2.0}, {"search": {"low": 0.1}}, {"family": lambda s, n: pl.Laplace(s) * n}):
        with pytest.raises(pl.InvalidInput, match="another sweep"):
            pl.sweep(**{"family": sgd, **base, **changes})


def spoil(text: str, how: str) -> str:
    lines = text.splitlines()
    if how == "twice":
        lines.append(lines[3])
    elif how == "no such cell":
        lines[3] = "12" + lines[3][1:]
    elif how == "another point":
        lines[3] = lines[3].replace("1.0,", "2.0,", 1)
    elif how == "not a number":
        lines[3] = ",".join(["x" if i == 4 else e for i, e in enumerate(lines[3].split(","))])
    elif how == "upside down":
        parts = lines[3].split(",")
        lines[3] = ",".join([*parts[:4], "9.0", "1.0", *parts[6:]])
    elif how == "nothing said":
        parts = lines[3].split(",")
        lines[3] = ",".join([*parts[:4], "", "", *parts[6:]])
    elif how == "short in the middle":
        lines[3] = lines[3][:20]
    elif how == "nan":
        parts = lines[3].split(",")
        lines[3] = ",".join([*parts[:4], "nan", "nan", *parts[6:]])
    elif how == "columns":
        lines[1] = lines[1].replace("epsilon_lower", "epsilon_upper")
    elif how == "format":
        lines[0] = lines[0].replace('"privloss sweep": 1', '"privloss sweep": 2')
    elif how == "not a sweep":
        lines = ["a,b", "1,2"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "how",
    [
        "twice", "no such cell", "another point", "not a number", "upside down", "nothing said", "short in the middle",
        "nan", "columns", "format", "not a sweep",
    ],
)  # fmt: skip
def test_what_this_sweep_did_not_write_is_refused(tmp_path: Path, how: str) -> None:
    file = tmp_path / "a.csv"
    with pytest.raises(KeyboardInterrupt):
        ask(file, 4)
    file.write_text(spoil(file.read_text(), how))
    before = file.read_bytes()
    with pytest.raises(pl.InvalidInput, match=r"a\.csv") as problem:
        ask(file)
    assert "\n" not in str(problem.value)
    assert file.read_bytes() == before
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe binary \n")
    with pytest.raises(pl.InvalidInput, match="not the file of a sweep"):
        ask(tmp_path / "b.csv")


def test_problems_are_kept_too(tmp_path: Path) -> None:
    def family(s: float) -> pl.Plan:
        if s == 2:
            raise ValueError("two,\nlines")
        return pl.Gaussian(s) * 2

    question: dict[str, Any] = {"s": [1, 2, 3.5], "delta": 1e-6, "file": tmp_path / "a.csv", **HERE}
    first = pl.sweep(family, **question)
    assert first.outcomes[1].problem == "ValueError: two, lines"
    assert pl.sweep(family, **question) == first


def test_two_sweeps_do_not_write_one_file(tmp_path: Path) -> None:
    def watch(done: int, of: int) -> None:
        with pytest.raises(pl.InvalidInput, match="another sweep is writing"):
            ask(tmp_path / "a.csv")
        raise Stop

    with pytest.raises(Stop):
        ask(tmp_path / "a.csv", progress=watch)
    assert len(ask(tmp_path / "a.csv")) == 12


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(pl.MissingExtra, match=r"pip install 'privloss\[frames\]'"):
        ask(tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


def test_a_parquet_file_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(b"no table")
    with pytest.raises(pl.InvalidInput, match="not a Parquet file"):
        ask(file)
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"cell": [0]}), file)
    with pytest.raises(pl.InvalidInput, match="not the file of a sweep"):
        ask(file)
    monkeypatch.setattr(sweep_file, "_EVERY", 0.0)  # replaced after every answer
    mixed = pl.sweep(sgd, s=[1, 2.5], n=[1, 2], delta=1e-6, file=tmp_path / "b.parquet", **HERE)
    assert pl.sweep(sgd, s=[1, 2.5], n=[1, 2], delta=1e-6, file=tmp_path / "b.parquet", **HERE) == mixed
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pl.sweep(sgd, **GRID, delta=1e-6, **HERE)
    assert found.rows()[5]["epsilon_upper"] == (pl.Gaussian(2.0) * 9).epsilon(1e-6).upper
    with monkeypatch.context() as m:
        m.setitem(sys.modules, "pandas", None)
        with pytest.raises(pl.MissingExtra, match=r"pip install 'privloss\[frames\]'"):
            found.to_frame()
    frame = found.to_frame()
    assert list(frame.columns) == list(found.rows()[0])
    assert list(frame["n"]) == [1, 5, 9, 1, 5, 9]
    assert frame["epsilon_upper"].max() == (pl.Gaussian(1.0) * 9).epsilon(1e-6).upper


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_is_interrupted_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "map.csv"
    many = ["--noise-multiplier", "0.7:4:40", "--sample-rate", "0.001:0.1:30", "--steps", "1000"]
    grid = [*many, "--delta", "1e-5,1e-6"]
    command = [sys.executable, "-m", "privloss", "sweep", *grid, "--out", str(file)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=_interruptible
    )
    while process.poll() is None and (not file.exists() or file.read_bytes().count(b"\n") < 20):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode != 0
    assert "goes on from there" in err
    data = file.read_bytes()
    assert data.endswith(b"\n")
    assert 20 <= data.count(b"\n") < 2402
    assert {len(row) for row in csv.reader(data.decode().splitlines()[1:])} == {9}


def _interruptible() -> None:
    """Who runs the tests in the background of a shell has Ctrl-C ignored, and so have all children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_while_workers_are_started_is_not_lost() -> None:
    """Python prints and forgets what is raised in a hook of fork; Ctrl-C must wait until the workers are there."""
    code = (
        "import os, signal, time\nfrom privloss.planning import cores\n"
        "os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "try:\n    with cores.answered(lambda n: time.sleep(0.02), range(200), 2) as answers:\n        list(answers)\n"
        "except KeyboardInterrupt:\n    print('stopped')\n"
    )
    call = [sys.executable, "-c", code]
    ended = subprocess.run(call, capture_output=True, text=True, check=False, preexec_fn=_interruptible)
    assert ended.stdout == "stopped\n"
