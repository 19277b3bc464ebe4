"""The command line in this process: what a process of its own prints, without the second that one takes to start."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

import pytest

from privloss.cli.main import main


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert end.value.code is None or isinstance(end.value.code, int)
    return Done(end.value.code or 0, out.getvalue(), err.getvalue())
