"""The log: one line of JSON for each record, on standard error, written by a thread of its own: for what a request has
to say nobody waits.

A line never holds bodies, headers, queries or addresses of databases; whatever looks like a token is blanked wherever
it came from.
"""

from __future__ import annotations

import functools
import json
import logging
import queue
import re
import sys
import threading
from datetime import UTC, datetime
from typing import TextIO

_SECRET = re.compile(r"pl_[a-z0-9]{8}_[A-Za-z0-9_-]*|\b(postgres(?:ql)?://)\S*@")
_SECRETS = ("pl_", "postgres")  # without one of which it finds nothing
_TEXT = json.JSONEncoder(ensure_ascii=True, default=str).encode
_PAUSE = 0.02  # seconds in which lines are gathered, to be written at once
_MOST, _PATIENCE = 20_000, 5.0  # lines that wait where nobody reads; seconds for the last of them in the end


class Lines(logging.Formatter):
    """Each record as one JSON object on one line; line breaks in names are escaped, so nobody can forge another."""

    def format(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        at = f"{_second(second)}.{int((record.created - second) * 1e3):03d}Z"
        said = record.msg if isinstance(record.msg, dict) else {"text": record.getMessage()}
        text = _TEXT({"time": at, "level": record.levelname.lower(), **said})
        return _SECRET.sub(r"\1...", text) if any(map(text.__contains__, _SECRETS)) else text


@functools.lru_cache(maxsize=2)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().removesuffix("+00:00")


class Behind(logging.Handler):
    """Writes in a thread what others hand over; `flush` waits until it is written."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream, self._hurry = stream, threading.Event()
        self._lost = 0  # lines, since the last that was written
        self._queue: queue.SimpleQueue[logging.LogRecord | threading.Event] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="privloss-log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """One thread at a time, as of every handler."""
        if self._queue.qsize() >= _MOST:
            self._lost += 1
            return
        if self._lost:
            text = f"{self._lost} lines were lost: nobody has read the log"
            self._queue.put(logging.LogRecord(record.name, logging.ERROR, "", 0, text, None, None))
            self._lost = 0
        self._queue.put(record)

    def flush(self) -> None:
        written = threading.Event()
        self._hurry.set()
        self._queue.put(written)
        written.wait(_PATIENCE)
        self._hurry.clear()

    def _work(self) -> None:
        while True:
            found = [self._queue.get()]
            self._hurry.wait(_PAUSE)
            while not self._queue.empty():
                found.append(self._queue.get())
            try:
                self._stream.write(
                    "".join([self._line(each) for each in found if not isinstance(each, threading.Event)])
                )
                self._stream.flush()
            except (OSError, ValueError):  # nobody reads it any more
                pass
            for each in found:
                if isinstance(each, threading.Event):
                    each.set()

    def _line(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record) + "\n"
        except Exception as error:  # a line that cannot be written must not silence the others
            return f'{{"level": "error", "text": "a line of the log could not be written: {type(error).__name__}"}}\n'


def to_stderr() -> None:
    """Send the lines there, and nowhere else; also what the server itself has to say."""
    handler = Behind(sys.stderr)
    handler.setFormatter(Lines())
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # nobody asks, and it takes time
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    for name, level in (("privloss.service", logging.INFO), ("uvicorn", logging.WARNING), ("pebble", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
        logger.setLevel(level)
