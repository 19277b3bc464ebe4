"""What became of one cell of a sweep, and how a file spells it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privloss.errors import InvalidInput, PrivlossError
from privloss.numerics.bound import Bound

_BETWEEN = " | "  # notes in one column


@dataclass(frozen=True)
class Outcome:
    """An answer, or the reason why there is none; of a calibration also the value found and the one refused."""

    answer: Bound | None
    problem: str = ""
    value: float | int | None = None
    refused: float | int | None = None

    @classmethod
    def failed(cls, problem: Exception) -> Outcome:
        text = str(problem) if isinstance(problem, PrivlossError) else f"{type(problem).__name__}: {problem}"
        return cls(None, " ".join(text.split()) or type(problem).__name__)

    @property
    def number(self) -> float:
        """The value found, or else the upper end; NaN where there is none."""
        if self.answer is None:
            return math.nan
        return self.answer.upper if self.value is None else float(self.value)

    def columns(self, answer: str, find: str | None) -> dict[str, Any]:
        """One flat record, always with the same keys."""
        bound = self.answer
        found: dict[str, Any] = {} if find is None else {find: self.value, f"{find}_refused": self.refused}
        return {
            **found,
            f"{answer}_lower": None if bound is None else bound.lower,
            f"{answer}_upper": None if bound is None else bound.upper,
            "method": "" if bound is None else bound.method,
            "notes": "" if bound is None else _BETWEEN.join(bound.notes),
            "problem": self.problem,
        }

    @classmethod
    def read(cls, record: Mapping[str, Any], answer: str, find: str | None) -> Outcome:
        """The inverse of `columns`; entries may be text. Anything that is not an outcome is refused."""
        low, high = number(record[f"{answer}_lower"]), number(record[f"{answer}_upper"])
        problem = str(record["problem"] or "")
        value = None if find is None else number(record[find])
        refused = None if find is None else number(record[f"{find}_refused"])
        if problem:
            if (low, high, value, refused) != (None, None, None, None):
                raise InvalidInput(f"problem = {problem!r}: there is an answer too.")
            return cls(None, problem)
        if low is None or high is None or (find is not None and value is None):
            raise InvalidInput("neither an answer nor a problem.")
        notes = str(record["notes"] or "")
        bound = Bound(
            float(low), float(high), str(record["method"] or ""), tuple(notes.split(_BETWEEN) if notes else ())
        )
        return cls(bound, "", value, refused)


def number(entry: Any) -> float | int | None:
    """A number of a file; None for an empty entry. Whole numbers stay whole."""
    if entry is None or entry == "":
        return None
    if not isinstance(entry, str):
        return entry if isinstance(entry, int) else float(entry)
    try:
        return int(entry)
    except ValueError:
        return float(entry)
