"""Sensitivities of matrix mechanisms by brute force: every pattern of steps, every choice of signs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Pattern = tuple[int, ...]


def separated(steps: int, apart: int, most: int) -> Iterator[Pattern]:
    """All sets of at most `most` steps, any two of them `apart` or more."""
    for size in range(1, most + 1):
        for chosen in itertools.combinations(range(steps), size):
            if all(b - a >= apart for a, b in itertools.pairwise(chosen)):
                yield chosen


def epochs(steps: int, length: int) -> Iterator[Pattern]:
    """One step of every epoch, the same one."""
    return (tuple(range(j, steps, length)) for j in range(min(length, steps)))


def squared(c: Array, patterns: Iterable[Pattern]) -> float:
    """max || sum of +- columns ||^2."""
    best = 0.0
    for pattern in patterns:
        columns = c[:, list(pattern)]
        for signs in itertools.product((1.0, -1.0), repeat=len(pattern) - 1):
            total = columns @ np.array((1.0, *signs))
            best = max(best, float(total @ total))
    return best
