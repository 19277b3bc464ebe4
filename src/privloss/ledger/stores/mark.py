"""A mark beside an SQLite file: how many events it has held. A file with fewer is an older copy, or lacks its log.

The mark is written after each commit and not synced: it may lag behind, never run ahead. Whoever copies it back with
the file is not noticed; a signed head kept elsewhere notices that too.
"""

from __future__ import annotations

import os
from pathlib import Path

_WIDTH = 20  # of the number, in digits


class Mark:
    """The number of the last event, in a file of its own."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + "-mark")
        self._file: int | None = None

    def read(self) -> int:
        try:
            return int(self.path.read_bytes()[:_WIDTH] or b"0")
        except (OSError, ValueError):
            return 0

    def write(self, number: int) -> None:
        """Best effort: a mark that cannot be written guards nothing, and must not stop the ledger."""
        try:
            if self._file is None:
                self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._file, b"%020d" % number, 0)
        except OSError:
            pass

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
