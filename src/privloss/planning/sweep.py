"""Epsilon over a grid of parameters, on all cores; or delta, or the parameter that keeps a promise.

>>> import privloss as pl
>>> found = pl.sweep(lambda noise, rate: pl.Gaussian(noise).poisson(rate) * 1000,
...                  noise=[1.0, 2.0], rate=[0.001, 0.01], delta=1e-6)
>>> [[round(cell.upper, 3) for cell in row] for row in found.table()]
[[0.186, 2.125], [0.061, 0.721]]

Give several deltas, and they are one more parameter of the grid; each plan is made once and asked for all of them:

>>> found = pl.sweep(lambda steps: pl.Gaussian(9.0) * steps, steps=[10, 100], delta=[1e-5, 1e-6])
>>> [(p["steps"], p["delta"], round(p["epsilon"].upper, 3)) for p in found]
[(10, 1e-05, 1.347), (10, 1e-06, 1.533), (100, 1e-05, 4.947), (100, 1e-06, 5.511)]

With `find` every cell is a calibration of that parameter:

>>> found = pl.sweep(lambda noise, steps: pl.Gaussian(noise) * steps, find="noise",
...                  steps=[1, 100], epsilon=1, delta=1e-6)
>>> [round(p["noise"], 3) for p in found]
[4.225, 42.247]

With `file` every answer is kept as it comes, and the same call goes on where it was stopped (`sweep_file`).
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privloss.adjacency import ADJACENCIES
from privloss.answers import exact
from privloss.errors import InvalidInput, MissingExtra
from privloss.mechanisms.base import Mechanism, Plan
from privloss.numerics import check
from privloss.numerics.bound import Bound
from privloss.planning import cores
from privloss.planning.calibrate import calibrate
from privloss.planning.outcome import Outcome
from privloss.planning.sweep_file import INSTALL, SweepFile, format_of
from privloss.planning.target import Target

Progress = Callable[[int, int], None]  # cells done, of how many
Family = Callable[..., Mechanism | Plan]
_PROBES = (1, 2)  # where a family is looked at to tell it from others


@dataclass(frozen=True)
class Sweep:
    """Answers for every cell of the grid, the last parameter running fastest. A cell without an answer has None, and
    the reason why."""

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    given: dict[str, float]  # what was asked for in every cell
    answer: str  # the name of what the intervals bound
    find: str | None
    outcomes: tuple[Outcome, ...]

    @property
    def delta(self) -> float | None:
        """The delta of every cell, if it is the same for all."""
        return self.given.get("delta")

    @property
    def answers(self) -> tuple[Bound | None, ...]:
        return tuple(outcome.answer for outcome in self.outcomes)

    @property
    def problems(self) -> list[tuple[dict[str, Any], str]]:
        """The cells without an answer, and why."""
        return [(p, o.problem) for p, o in zip(self.places(), self.outcomes, strict=True) if o.answer is None]

    def places(self) -> Iterator[dict[str, Any]]:
        """The parameters of every cell."""
        return (dict(zip(self.names, point, strict=True)) for point in itertools.product(*self.values))

    def points(self) -> list[dict[str, Any]]:
        """One dictionary per cell: its parameters and its answer, or None and the `problem`."""
        found = []
        for place, outcome in zip(self.places(), self.outcomes, strict=True):
            value = {} if self.find is None else {self.find: outcome.value}
            problem = {} if outcome.answer is not None else {"problem": outcome.problem}
            found.append({**place, **value, self.answer: outcome.answer, **problem})
        return found

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.points())

    def __len__(self) -> int:
        return len(self.outcomes)

    def rows(self) -> list[dict[str, Any]]:
        """One flat record of numbers and texts per cell, all with the same keys: the columns of the files."""
        return [
            {**place, **self.given, **outcome.columns(self.answer, self.find)}
            for place, outcome in zip(self.places(), self.outcomes, strict=True)
        ]

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra(f"to_frame needs pandas: {INSTALL} (or use rows()).") from None
        return pandas.DataFrame(self.rows())

    def table(self) -> list[list[Any]]:
        """Rows over the first parameter, columns over the second; the intervals, or the values found."""
        if len(self.names) != 2:
            raise InvalidInput(f"parameters = {self.names!r}: a table has two.")
        width = len(self.values[1])
        cells = [outcome.answer if self.find is None else outcome.value for outcome in self.outcomes]
        return [cells[i : i + width] for i in range(0, len(cells), width)]

    def describe(self) -> str:
        """What was asked, for titles."""
        given = ", ".join(f"{name} = {value:g}" for name, value in self.given.items())
        return f"{self.find or self.answer}{' at ' if given else ''}{given}"


def sweep(
    family: Family,
    *,
    delta: Any = None,
    epsilon: Any = None,
    tpr: Any = None,
    fpr: Any = None,
    advantage: Any = None,
    find: str | None = None,
    search: Mapping[str, Any] | None = None,
    adjacency: str | None = None,
    file: str | Path | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
    **grid: Iterable[Any],
) -> Sweep:
    """family(**point) for every point of the grid: its epsilon at `delta`, or its delta at `epsilon`, or with `find`
    the parameter of that name which just meets the target (`search` has further arguments of `calibrate`).

    What is asked for may be one number or several. `file` (.csv or .parquet) keeps the answers and is gone on from if
    it is there; `progress(done, of)` is called as cells are done. A cell that is refused, or fails, has its reason.
    """
    asked = {"epsilon": epsilon, "delta": delta, "tpr": tpr, "fpr": fpr, "advantage": advantage}
    question = _Question.of(family, {k: v for k, v in asked.items() if v is not None}, find, search, adjacency, grid)
    workers = cores.available(processes)
    kept = _kept(question, Path(file)) if file is not None else None
    seen = dict(kept.seen) if kept is not None else {}
    width = question.width
    jobs = [j for j in range(question.jobs) if any(j * width + k not in seen for k in range(width))]
    total = question.jobs * width
    if progress is not None and seen:
        progress(len(seen), total)
    try:
        with cores.answered(question.ask, jobs, workers) as answers:
            for job, outcomes in answers:
                new = {job * width + k: o for k, o in enumerate(outcomes) if job * width + k not in seen}
                seen |= new
                if kept is not None:
                    kept.add(new.items())
                if progress is not None:
                    progress(len(seen), total)
    finally:
        if kept is not None:
            kept.close()
    return question.result([seen[cell] for cell in range(total)])


def _kept(question: _Question, path: Path) -> SweepFile:
    places = [{**place, **question.given} for place in question.result([]).places()]
    return format_of(path)(path, question.told(), places, question.answer, question.find)


@dataclass(frozen=True)
class _Question:
    """One sweep: `jobs` plans or calibrations, each with `width` cells."""

    family: Family
    axes: dict[str, tuple[Any, ...]]  # the grid, and what is asked for with several values
    given: dict[str, float]
    answer: str
    find: str | None
    search: dict[str, Any]
    adjacency: str | None
    shared: str | None  # the axis of which all values are asked of one plan at once

    @classmethod
    def of(
        cls,
        family: Family,
        asked: dict[str, Any],
        find: str | None,
        search: Mapping[str, Any] | None,
        adjacency: str | None,
        grid: Mapping[str, Iterable[Any]],
    ) -> _Question:
        if adjacency is not None:
            check.choice("adjacency", adjacency, ADJACENCIES)
        axes = {name: _several(name, values) for name, values in grid.items()}
        targets: dict[str, Any] = {name: _several(name, v) if _is_several(v) else v for name, v in asked.items()}
        several = {name: v for name, v in targets.items() if isinstance(v, tuple)}
        if not {**axes, **several}:
            raise InvalidInput(f"grid = {dict(grid)!r}: needs at least one parameter with its values.")
        if find is None:
            made = cls._of_plans(family, targets, axes, adjacency)
            if search is not None:
                raise InvalidInput(f"search = {search!r}: goes with `find`.")
        else:
            given = {name: v for name, v in targets.items() if name not in several}
            for point in itertools.product(*several.values()):
                Target.of(**{**given, **dict(zip(several, point, strict=True))})
            options = dict(search or {})
            made = cls(family, {**axes, **several}, given, "achieved", str(find), options, adjacency, None)
        made._check_names(set(axes))
        return made

    @classmethod
    def _of_plans(
        cls, family: Family, targets: dict[str, Any], axes: dict[str, tuple[Any, ...]], adjacency: str | None
    ) -> _Question:
        if len(targets) != 1 or not set(targets) <= {"epsilon", "delta"}:
            raise InvalidInput(
                f"asked for = {sorted(targets)!r}: give delta (for epsilon) or epsilon (for delta); a parameter of the "
                "family needs another name, and targets of a calibration need `find`."
            )
        ((name, wanted),) = targets.items()
        answer, top = ("epsilon", 1.0) if name == "delta" else ("delta", math.inf)
        if not isinstance(wanted, tuple):
            given = {name: check.number(name, wanted, low=0, high=top)}
            return cls(family, axes, given, answer, None, {}, adjacency, None)
        several = tuple(check.number(f"{name}[{i}]", v, low=0, high=top) for i, v in enumerate(wanted))
        return cls(family, {**axes, name: several}, {}, answer, None, {}, adjacency, name)

    def _check_names(self, grid: set[str]) -> None:
        """Names may stand only once, and the family must take those of the grid."""
        own = {"cell", *self.given, *Outcome(None, "-").columns(self.answer, self.find), self.answer}
        for name in self.axes:
            if name in own:
                raise InvalidInput(f"{name}: is the name of another column; call the parameter something else.")
        if not callable(self.family):
            raise InvalidInput(f"family = {self.family!r}: must be a function from parameters to a plan.")
        names = [*grid, *([self.find] if self.find is not None else [])]
        try:
            inspect.signature(self.family).bind(**dict.fromkeys(names))
        except TypeError as problem:
            raise InvalidInput(f"family: does not take the parameters {', '.join(names)} ({problem}).") from None
        except ValueError:  # a function that does not say what it takes
            return

    @property
    def width(self) -> int:
        return len(self.axes[self.shared]) if self.shared is not None else 1

    @property
    def jobs(self) -> int:
        return math.prod(len(values) for values in self.axes.values()) // self.width

    def place(self, job: int) -> dict[str, Any]:
        """The parameters of a job, without the shared axis."""
        found = {}
        for name, values in reversed([(n, v) for n, v in self.axes.items() if n != self.shared]):
            job, at = divmod(job, len(values))
            found[name] = values[at]
        return dict(reversed(found.items()))

    def plan(self, place: Mapping[str, Any]) -> Plan:
        made = self.family(**place)
        if not isinstance(made, (Mechanism, Plan)):
            raise InvalidInput(f"family = {made!r}: must be a plan or a mechanism.")
        return made.as_plan()

    def ask(self, job: int) -> list[Outcome]:
        """The outcomes of all cells of a job; whatever goes wrong is one of them."""
        place = self.place(job)
        try:
            if self.find is not None:
                return [self._calibrated(place)]
            plan = self.plan(place)
        except Exception as problem:
            return [Outcome.failed(problem)] * self.width
        values = self.axes[self.shared] if self.shared is not None else tuple(self.given.values())
        try:
            return [Outcome(bound) for bound in self._bounds(plan, values)]
        except Exception as problem:
            if len(values) == 1:
                return [Outcome.failed(problem)]
        return [self._alone(plan, value) for value in values]  # one of them failed: the others have answers

    def _alone(self, plan: Plan, value: float) -> Outcome:
        try:
            return Outcome(self._bounds(plan, (value,))[0])
        except Exception as problem:
            return Outcome.failed(problem)

    def _bounds(self, plan: Plan, values: tuple[float, ...]) -> list[Bound]:
        ask = exact.epsilon if self.answer == "epsilon" else exact.delta
        found = ask(plan, list(values), adjacency=self.adjacency)
        return [found] if isinstance(found, Bound) else list(found)

    def _calibrated(self, place: dict[str, Any]) -> Outcome:
        targets = {**self.given, **{n: v for n, v in place.items() if n in _TARGETS}}
        rest = {n: v for n, v in place.items() if n not in _TARGETS}
        found = calibrate(
            lambda value: self.plan({**rest, str(self.find): value}),
            adjacency=self.adjacency, **targets, **self.search,
        )  # fmt: skip
        return Outcome(found.achieved, "", found.value, found.refused)

    def told(self) -> dict[str, Any]:
        """What makes this sweep this one: the grid, what is asked, and every plan the family makes."""
        return {
            "answer": self.answer, "find": self.find, "grid": {n: list(v) for n, v in self.axes.items()},
            "given": self.given, "adjacency": self.adjacency, "search": self.search, "plans": self._fingerprint(),
        }  # fmt: skip

    def _fingerprint(self) -> str:
        """Of all plans, so that the file of another family is noticed; of a calibration's, at two values."""
        found = hashlib.sha256()
        for job in range(self.jobs):
            rest = {n: v for n, v in self.place(job).items() if self.find is None or n not in _TARGETS}
            for probe in _PROBES if self.find is not None else (None,):
                place = rest if self.find is None else {**rest, self.find: probe}
                try:
                    text = json.dumps(self.plan(place).to_dict(), sort_keys=True, default=repr)
                except Exception as problem:
                    text = Outcome.failed(problem).problem
                found.update(text.encode() + b"\n")
        return found.hexdigest()

    def result(self, outcomes: list[Outcome]) -> Sweep:
        names, values = tuple(self.axes), tuple(self.axes.values())
        return Sweep(names, values, self.given, self.answer, self.find, tuple(outcomes))


_TARGETS = ("epsilon", "delta", "tpr", "fpr", "advantage")


def _is_several(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


def _several(name: str, values: Any) -> tuple[Any, ...]:
    """The values of one parameter, plain Python numbers where they are numbers."""
    if not _is_several(values):
        raise InvalidInput(f"{name} = {values!r}: must be a list of values.")
    found = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if not found:
        raise InvalidInput(f"{name} = {values!r}: needs at least one value; every parameter of the grid does.")
    return found
