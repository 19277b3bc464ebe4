"""One progress bar for every command: on stderr, if that is a terminal, once the command has worked for a second.

`main` waits around each command (`waiting`). A command that knows how far it is names its work with `progress_bar` and
calls `bar.step(done, of)`; others show a bar that only moves. As soon as anything is printed the bar is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import IO, Any

_PATIENCE = 1.0  # seconds without a progress bar


class Bar:
    """The bar of one command; `rich` is loaded when there is something to show."""

    def __init__(self, text: str) -> None:
        self.text, self.count, self.shown = text, (0, 0), False
        self._lock, self._over = Lock(), False
        self._live: Any = None
        self.timer = Timer(_PATIENCE, self._show)
        self.timer.daemon = True

    def step(self, done: int, of: int) -> None:
        with self._lock:
            self.count = done, of
            self._update()

    def name(self, text: str) -> None:
        """Say what is being done now."""
        with self._lock:
            self.text, self.count = text, (0, 0)
            self._update()

    def _update(self) -> None:
        if self._live is not None:
            done, of = self.count
            self._live.update(self._live.task_ids[0], description=self.text, completed=done, total=of or None)

    def _show(self) -> None:
        live = _live(self.text)
        with self._lock:
            if live is not None and not self._over:
                self._live, self.shown = live, True
                self._update()
                live.start()

    def end(self) -> None:
        """Take it away, or see to it that it never comes."""
        self.timer.cancel()
        with self._lock:
            self._over = True
            if self._live is not None:
                self._live.stop()
                self._live = None


def _live(text: str) -> Any:
    """The bar itself; None if stderr is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    live = Progress(console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    live.add_task(text, total=None)
    return live


class _Announced:
    """Standard output that takes the bar away before anything is written."""

    def __init__(self, out: IO[str], bar: Bar) -> None:
        self._out, self._bar = out, bar

    def write(self, text: str) -> int:
        self._bar.end()
        return self._out.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


_current: list[Bar] = []  # of the command that runs


def _perhaps_terminal() -> bool:
    """Cheap, before rich is loaded, which has the last word."""
    return sys.stderr.isatty() or "FORCE_COLOR" in os.environ or "TTY_COMPATIBLE" in os.environ


@contextmanager
def waiting(text: str) -> Iterator[Bar]:
    """A bar around all that a command does, its printing included."""
    bar, out = Bar(text), sys.stdout
    if not _perhaps_terminal():
        yield bar
        return
    sys.stdout = _Announced(out, bar)
    _current.append(bar)
    bar.timer.start()
    try:
        yield bar
    finally:
        bar.end()
        _current.remove(bar)
        sys.stdout = out


@contextmanager
def progress_bar(text: str) -> Iterator[Bar]:
    """The same around one piece of work: the bar of the command, if there is one, under another name."""
    if _current:
        _current[-1].name(text)
        try:
            yield _current[-1]
        finally:
            _current[-1].end()
        return
    with waiting(text) as bar:
        yield bar
