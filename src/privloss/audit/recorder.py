"""Declared sensitivities, checked on a pair of neighbours: no statistics, and no claim about privacy when nothing is
found.

The first run stores each release's value, public facts and output. On the replay with the neighbour every release
returns the *stored* output, so whatever the program does next is decided by what was published, as it would be; and the
distance of the two values must not exceed the sensitivity that was declared. A violation proves that the declared
sensitivity is false for this pair. All other randomness must go through `draw` or a seed that the replay repeats.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privloss.errors import InvalidInput, PrivlossError
from privloss.numerics import check


def _l2(d: Any) -> float:
    """Scaled: squares of 1e200 would be infinite, those of 1e-200 nothing."""
    most = float(np.abs(d).max(initial=0.0))
    return most * float(np.sqrt(np.square(d / most).sum())) if 0 < most < math.inf else most


NORMS: dict[str, Callable[[Any], float]] = {
    "l1": lambda d: float(np.abs(d).sum()),
    "l2": _l2,
    "linf": lambda d: float(np.abs(d).max(initial=0.0)),
}
_SLACK = 1e-9  # relative, for sums in another order


class Diverged(PrivlossError):
    """The replay did something else than the first run: control flow or calibration read the data."""


@dataclass(frozen=True)
class Violation:
    """Two neighbours whose values are further apart than declared."""

    release: int
    name: str
    distance: float
    sensitivity: float
    norm: str

    def __str__(self) -> str:
        return (
            f"release {self.release} ({self.name}): {self.norm} distance {self.distance:.6g} "
            f"> declared sensitivity {self.sensitivity:.6g}"
        )


@dataclass
class _Entry:
    name: str
    value: Any
    sensitivity: float
    norm: str
    public: dict[str, Any]
    output: Any


@dataclass
class Recorder:
    """`run(program, data)` once, `replay(program, neighbour)` then; the program calls `release` for what it publishes.

    >>> rng = np.random.default_rng(0)
    >>> def program(rec, data):
    ...     return rec.release("sum", sum(data), sensitivity=1.0, norm="l1",
    ...                        draw=lambda v: v + rng.laplace(scale=10.0), mechanism="laplace", scale=10.0)
    >>> rec = Recorder()
    >>> _ = rec.run(program, [1.0, 1.0])
    >>> rec.replay(program, [1.0, 1.0, 7.0])
    >>> print(rec.violations[0])
    release 0 (sum): l1 distance 7 > declared sensitivity 1
    """

    violations: list[Violation] = field(default_factory=list)
    _entries: list[_Entry] = field(default_factory=list, repr=False)
    _place: int | None = field(default=None, repr=False)
    _result: Any = field(default=None, repr=False)

    def run(self, program: Callable[[Recorder, Any], Any], data: Any) -> Any:
        """The first run: outputs are drawn and stored."""
        self._entries, self._place, self.violations = [], None, []
        self._result = program(self, data)
        return self._result

    def replay(self, program: Callable[[Recorder, Any], Any], neighbour: Any) -> None:
        """The run on a neighbour: outputs are repeated, values compared."""
        if not self._entries:
            raise InvalidInput("replay: there is no first run with a release yet.")
        self._place = 0
        try:
            result = program(self, neighbour)
        except PrivlossError:
            raise
        except Exception as problem:
            raise Diverged(f"the replay raised {type(problem).__name__}: {problem}") from problem
        place, self._place = self._place, None
        if place != len(self._entries):
            raise Diverged(f"the replay made {place} releases, the first run {len(self._entries)}.")
        if not _same(result, self._result):
            raise Diverged("the replay returned something else though all its releases were the same.")

    def release(
        self, name: str, value: Any, *, sensitivity: float, norm: str, draw: Callable[[Any], Any], **public: Any
    ) -> Any:
        """Publish draw(value). `public` are facts that must not depend on data: mechanism, noise scale, rate."""
        sensitivity = check.number("sensitivity", sensitivity, low=0)
        check.choice("norm", norm, tuple(NORMS))
        if self._place is None:
            output = draw(value)
            # copies: what the program does to its arrays afterwards must not change what is replayed and compared
            kept = copy.deepcopy((public, output))
            self._entries.append(_Entry(name, _numbers(name, value), sensitivity, norm, *kept))
            return output
        if self._place >= len(self._entries):
            raise Diverged(f"the replay made more releases than the first run: {name!r} is number {self._place + 1}.")
        entry, number = self._entries[self._place], self._place
        self._place += 1
        here = _numbers(name, value)
        for what, first, second in (
            ("name", entry.name, name), ("shape", entry.value.shape, here.shape), ("norm", entry.norm, norm),
            ("sensitivity", entry.sensitivity, sensitivity), ("public facts", entry.public, public),
        ):  # fmt: skip
            if not _same(first, second):
                raise Diverged(f"release {number}: {what} {second!r} in the replay, {first!r} in the first run.")
        distance = NORMS[norm](_apart(here, entry.value))
        if not distance <= sensitivity * (1 + _SLACK):  # so that NaN fails
            self.violations.append(Violation(number, name, distance, sensitivity, norm))
        return copy.deepcopy(entry.output)

    def plan(self) -> Any:
        """The recorded releases as a plan, from the public facts `mechanism` and its parameters."""
        from privloss.mechanisms.base import Plan

        steps = []
        for number, entry in enumerate(self._entries):
            if "mechanism" not in entry.public:
                raise InvalidInput(f"release {number} ({entry.name}): has no public fact 'mechanism'.")
            steps.append({**entry.public, "sensitivity": entry.sensitivity})
        return Plan.from_dict({"steps": steps})


def _numbers(name: str, value: Any) -> Any:
    """A copy of what is released: whole numbers as they are, all others as doubles."""
    try:
        found = np.array(value)
        if found.dtype.kind in "biu" or (found.dtype.kind == "O" and all(isinstance(x, int) for x in found.flat)):
            return found.astype(object)
        if found.dtype.kind in "fO":
            return found.astype(float)
    except (TypeError, ValueError):
        pass
    raise InvalidInput(f"value of release {name!r}: must be real numbers; release real and imaginary parts as two.")


def _apart(first: Any, second: Any) -> Any:
    """The difference; of whole numbers exactly, though doubles may not hold them. Infinity is 0 from itself; NaN stays
    NaN, which is no distance within any sensitivity."""
    with np.errstate(invalid="ignore"):
        return np.where(first == second, 0.0, np.asarray(first - second).astype(float))


def _same(first: Any, second: Any) -> bool:
    """Equal, NaN to NaN, in all parts."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_same(first[k], second[k]) for k in first)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(_same, first, second))
    a, b = np.asarray(first), np.asarray(second)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc"))
