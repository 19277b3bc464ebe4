"""Epsilon over a grid of parameters.

>>> import privloss as pl
>>> found = pl.sweep(lambda noise, rate: pl.Gaussian(noise).poisson(rate) * 1000,
...                  noise=[1.0, 2.0], rate=[0.001, 0.01], delta=1e-6)
>>> [[round(cell.upper, 3) for cell in row] for row in found.table()]
[[0.186, 2.125], [0.061, 0.721]]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from privloss.answers import exact
from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism, Plan
from privloss.numerics.bound import Bound

Progress = Callable[[Iterable[Any], int], Iterable[Any]]  # wraps the points, knows how many


@dataclass(frozen=True)
class Sweep:
    """Answers for every point of the grid, the last parameter running fastest."""

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    delta: float
    answers: tuple[Bound, ...]

    def points(self) -> list[dict[str, Any]]:
        """One dictionary per point."""
        return [
            {**dict(zip(self.names, point, strict=True)), "epsilon": answer}
            for point, answer in zip(itertools.product(*self.values), self.answers, strict=True)
        ]

    def table(self) -> list[list[Bound]]:
        """Rows over the first parameter, columns over the second."""
        if len(self.names) != 2:
            raise InvalidInput(f"parameters = {self.names!r}: a table has two.")
        width = len(self.values[1])
        return [list(self.answers[i : i + width]) for i in range(0, len(self.answers), width)]


def _plainly(points: Iterable[Any], count: int) -> Iterable[Any]:
    return points


def sweep(
    family: Callable[..., Mechanism | Plan],
    *,
    delta: float,
    adjacency: str | None = None,
    progress: Progress = _plainly,
    **grid: Sequence[Any],
) -> Sweep:
    """epsilon(delta) of family(**point) for every point of the grid."""
    if not grid or any(len(values) == 0 for values in grid.values()):
        raise InvalidInput(f"grid = {grid!r}: needs at least one parameter, each with at least one value.")
    names, values = tuple(grid), tuple(tuple(v) for v in grid.values())
    points = list(itertools.product(*values))
    answers = []
    for point in progress(points, len(points)):
        plan = family(**dict(zip(names, point, strict=True))).as_plan()
        answers.append(exact.one_epsilon(plan, delta, adjacency=adjacency))
    return Sweep(names, values, delta, tuple(answers))
