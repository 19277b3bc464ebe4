"""The file of a sweep: every answer is kept as it comes, and a sweep that was stopped goes on from there.

A CSV file begins with one line `# {...}`, which says in JSON what was asked, then a header, then one line per cell in
the order in which they were answered (in the order of the grid once all are there). Every line is written whole and
ends with a newline; what follows the last newline is a line that was being written when the sweep was stopped, and is
dropped. Everything before it must be what this sweep would have written: the same question, known cells, each once.
A Parquet file has the same columns and keeps the question in its metadata; it is replaced as a whole every few seconds.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from privloss.errors import InvalidInput, MissingExtra
from privloss.planning.outcome import Outcome, number

FORMAT = 1
_NAME = "privloss sweep"  # the key of the format's version
_EVERY = 5.0  # seconds between two writings of a Parquet file
INSTALL = "pip install 'privloss[frames]'"


class SweepFile:
    """What all formats share: reading back, and refusing what is not ours."""

    def __init__(
        self,
        path: Path,
        question: dict[str, Any],
        points: Sequence[dict[str, Any]],
        answer: str,
        find: str | None,
    ) -> None:
        self.path, self.points, self.answer, self.find = path, points, answer, find
        self.question = json.loads(json.dumps({_NAME: FORMAT, **question}, default=repr))
        self.names = ["cell", *points[0], *Outcome(None, "-").columns(answer, find)]
        self.seen: dict[int, Outcome] = {}

    def record(self, cell: int) -> dict[str, Any]:
        return {"cell": cell, **self.points[cell], **self.seen[cell].columns(self.answer, self.find)}

    def add(self, cells: Iterable[tuple[int, Outcome]]) -> None:
        """Keep some answers."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave a valid file."""
        raise NotImplementedError

    def _check_question(self, text: str) -> None:
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict) or _NAME not in found:
            raise InvalidInput(f"{self.path}: is not the file of a sweep; give another name.")
        if found[_NAME] != FORMAT:
            raise InvalidInput(f"{self.path}: has format {found[_NAME]!r}, this release reads {FORMAT}.")
        for key in (*self.question, *found):
            if found.get(key) != self.question.get(key):
                raise InvalidInput(
                    f"{self.path}: belongs to another sweep, with {key} = {_short(found.get(key))} instead of "
                    f"{_short(self.question.get(key))}; give another name."
                )

    def _take(self, record: dict[str, Any], where: str) -> None:
        """Believe one record, or refuse the file."""
        try:
            cell = number(record["cell"])
            if not isinstance(cell, int) or not 0 <= cell < len(self.points):
                raise InvalidInput(f"cell = {record['cell']!r}: is not in the grid.")
            if cell in self.seen:
                raise InvalidInput(f"cell = {cell}: stands there twice.")
            for name, value in self.points[cell].items():
                if not _same(record[name], value):
                    raise InvalidInput(f"{name} = {record[name]!r}: cell {cell} has {value!r}.")
            self.seen[cell] = Outcome.read(record, self.answer, self.find)
        except (InvalidInput, KeyError, TypeError, ValueError) as problem:
            raise InvalidInput(f"{self.path}, {where}: was not written by this sweep ({problem})") from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class CsvFile(SweepFile):
    """Lines that are appended."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.preamble = f"# {json.dumps(self.question)}\n" + _line(self.names)
        self.file: IO[bytes] = self.path.open("r+b" if self.path.exists() else "x+b")
        try:
            _lock(self.file, self.path)
            data = self.file.read()
            kept = data[: data.rfind(b"\n") + 1]
            if self.preamble.encode().startswith(data):  # nothing yet, or not even its beginning
                kept = b""
            else:
                self._read(kept)
            self.file.seek(len(kept))
            self.file.truncate()
            if not kept:
                self._write(self.preamble)
        except BaseException:
            self.file.close()
            raise

    def _read(self, data: bytes) -> None:
        try:
            first, _, rest = data.decode().partition("\n")
        except UnicodeDecodeError:
            first, rest = "", ""
        self._check_question(first.removeprefix("# ") if first.startswith("# ") else "")
        rows = csv.reader(io.StringIO(rest, newline=""))
        if next(rows, None) != self.names:
            raise InvalidInput(f"{self.path}, line 2: must name the columns {', '.join(self.names)}.")
        for row in rows:
            where = f"line {rows.line_num + 1}"
            if len(row) != len(self.names):
                raise InvalidInput(f"{self.path}, {where}: has {len(row)} entries instead of {len(self.names)}.")
            self._take(dict(zip(self.names, row, strict=True)), where)

    def _write(self, text: str) -> None:
        self.file.write(text.encode())
        self.file.flush()

    def _lines(self, cells: Iterable[int]) -> str:
        return "".join(_line([_text(v) for v in self.record(cell).values()]) for cell in cells)

    def add(self, cells: Iterable[tuple[int, Outcome]]) -> None:
        new = dict(cells)
        self.seen |= new
        self._write(self._lines(new))

    def close(self) -> None:
        if len(self.seen) == len(self.points) and list(self.seen) != sorted(self.seen):
            _replace(self.path, lambda new: new.write_bytes((self.preamble + self._lines(sorted(self.seen))).encode()))
        self.file.close()


def _lock(file: IO[bytes], path: Path) -> None:
    """Two sweeps must not write one file (where the system knows locks)."""
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput(f"{path}: another sweep is writing it.") from None


def _line(entries: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(entries)
    return text.getvalue()


def _text(value: Any) -> str:
    return "" if value is None else " ".join(str(value).splitlines())


def _same(entry: Any, value: Any) -> bool:
    """Whether an entry of a file is this value of the grid (a column of numbers does not tell 1 from 1.0)."""
    return _text(entry) == _text(value) or (isinstance(value, (int, float)) and number(entry) == value)


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside the file, then take its place in one step."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


class ParquetFile(SweepFile):
    """A table that is replaced as a whole."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.arrow, self.parquet = _pyarrow()
        self.written = time.monotonic()
        if not self.path.exists():
            self._save()
            return
        try:
            table = self.parquet.read_table(self.path)
        except (self.arrow.ArrowInvalid, OSError):
            raise InvalidInput(f"{self.path}: is not a Parquet file; give another name.") from None
        self._check_question((table.schema.metadata or {}).get(_NAME.encode(), b"").decode(errors="replace"))
        for i, record in enumerate(table.to_pylist()):
            self._take(record, f"row {i + 1}")

    def add(self, cells: Iterable[tuple[int, Outcome]]) -> None:
        self.seen |= dict(cells)
        if time.monotonic() - self.written > _EVERY:
            self._save()

    def _save(self) -> None:
        records = [self.record(cell) for cell in sorted(self.seen)]
        texts = {"method", "notes", "problem"}
        whole = {"cell"}
        columns = {}
        for name in self.names:
            values = [r[name] for r in records]
            kinds = {type(self.points[0][name])} if name in self.points[0] else set()
            kinds |= {type(v) for v in values if v is not None}
            if name in texts or not kinds <= {int, float}:
                columns[name] = self.arrow.array([None if v is None else str(v) for v in values], self.arrow.string())
            elif name in whole or kinds == {int}:
                columns[name] = self.arrow.array(values, self.arrow.int64())
            else:
                columns[name] = self.arrow.array(values, self.arrow.float64())
        table = self.arrow.table(columns).replace_schema_metadata({_NAME: json.dumps(self.question)})
        _replace(self.path, lambda new: self.parquet.write_table(table, new))
        self.written = time.monotonic()

    def close(self) -> None:
        self._save()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(f"Parquet files need pyarrow: {INSTALL} (or give a file that ends in .csv).") from None
    return pyarrow, pyarrow.parquet


FORMATS: dict[str, type[SweepFile]] = {".csv": CsvFile, ".parquet": ParquetFile}


def format_of(path: Path) -> type[SweepFile]:
    """By the end of the name; checked before anything is computed."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidInput(f"file = {str(path)!r}: must end in one of {', '.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise InvalidInput(f"file = {str(path)!r}: the directory {str(path.parent)!r} does not exist.")
    if FORMATS[path.suffix.lower()] is ParquetFile:
        _pyarrow()
    return FORMATS[path.suffix.lower()]
