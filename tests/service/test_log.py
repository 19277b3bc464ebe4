"""The log's own thread: nothing waits for it, and what it cannot write it says."""

from __future__ import annotations

import io
import json
import logging
import threading

import pytest

from privloss.service import log


class Slow(io.StringIO):
    """Is written when somebody lets it; may be closed on the other side."""

    def __init__(self, broken: bool = False) -> None:
        super().__init__()
        self.gate, self.reached, self.broken = threading.Event(), threading.Event(), broken

    def write(self, text: str) -> int:
        self.reached.set()
        self.gate.wait()
        if self.broken:
            raise BrokenPipeError
        return super().write(text)


def _say(handler: logging.Handler, what: object) -> None:
    handler.handle(logging.LogRecord("privloss.service", logging.INFO, "", 0, what, None, None))


def _made(stream: Slow) -> log.Behind:
    made = log.Behind(stream)
    made.setFormatter(log.Lines())
    return made


def test_nobody_waits_for_who_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """In order; beyond a number lines are lost, and counted."""
    monkeypatch.setattr(log, "_MOST", 5)
    stream = Slow()
    handler = _made(stream)
    _say(handler, {"request": "first"})
    stream.reached.wait()
    for number in range(8):
        _say(handler, {"request": number})
    stream.gate.set()
    handler.flush()
    _say(handler, {"request": "last"})
    handler.flush()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line.get("request") for line in lines] == ["first", 0, 1, 2, 3, 4, None, "last"]
    assert lines[6]["text"] == "3 lines were lost: nobody has read the log"


def test_a_line_that_cannot_be_written_silences_no_other() -> None:
    stream = Slow()
    stream.gate.set()
    handler = _made(stream)
    _say(handler, ("a text with %d", "no number"))
    handler.handle(logging.LogRecord("x", logging.INFO, "", 0, "%d", ("no number",), None))
    _say(handler, {"request": 1})
    handler.flush()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line.get("request") for line in lines] == [None, None, 1]
    assert "TypeError" in lines[1]["text"]


def test_a_log_that_has_gone_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Slow(broken=True)
    stream.gate.set()
    handler = _made(stream)
    for number in range(3):
        _say(handler, {"request": number})
        handler.flush()
    blocked = Slow()
    other = _made(blocked)
    monkeypatch.setattr(log, "_PATIENCE", 0.01)
    _say(other, {"request": 1})
    other.flush()  # gives up
    blocked.gate.set()
