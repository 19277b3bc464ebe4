"""The matrix C of a matrix mechanism: dense, or Toeplitz and lower triangular, given by its first column.

Column s is what a contribution at step s does to the released rows. Dense matrices may have any rows (a tree's nodes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privloss.numerics.floats import Real

MOST_TOEPLITZ = 10_000_000  # steps of a matrix that is not banded
MOST_ENTRIES = 150_000_000  # of a dense matrix


@dataclass(frozen=True, eq=False)
class Dense:
    """C as an array: rows that are released, columns that are steps."""

    array: Real

    @property
    def steps(self) -> int:
        return int(self.array.shape[1])

    @property
    def rows(self) -> int:
        return int(self.array.shape[0])

    @cached_property
    def nonnegative(self) -> bool:
        return bool(self.array.min() >= 0)

    @cached_property
    def squared_norms(self) -> Real:
        """Of the columns; rows + 1 relative roundings."""
        return np.asarray(np.einsum("ij,ij->j", self.array, self.array))

    @cached_property
    def supports(self) -> tuple[Any, Any]:
        """First and last row of every column that is not 0 (rows and -1 for a column of zeros)."""
        seen = self.array != 0
        some = seen.any(axis=0)
        first = np.where(some, seen.argmax(axis=0), self.rows)
        last = np.where(some, self.rows - 1 - seen[::-1].argmax(axis=0), -1)
        return first, last

    @cached_property
    def bands(self) -> int:
        """The least b such that columns b or more apart share no row."""
        seen = self.array != 0
        some = seen.any(axis=1)
        first, last = seen.argmax(axis=1), self.steps - 1 - seen[:, ::-1].argmax(axis=1)
        return int(np.where(some, last - first + 1, 1).max())

    @property
    def causal_bands(self) -> int | None:
        """The same for a square lower triangular matrix, None for another."""
        first, _ = self.supports
        if self.rows != self.steps or not bool(np.all(first >= np.arange(self.steps))):
            return None
        return self.bands


@dataclass(frozen=True, eq=False)
class Toeplitz:
    """C with C[s + j, s] = coefficients[j], `steps` rows and columns."""

    coefficients: Real
    steps: int

    @cached_property
    def short(self) -> Real:
        """The coefficients without those beyond the matrix and zeros at the end."""
        kept = self.coefficients[: self.steps]
        nonzero = np.flatnonzero(kept)
        return np.asarray(kept[: int(nonzero[-1]) + 1] if len(nonzero) else kept[:1])

    @property
    def bands(self) -> int:
        return len(self.short)

    @cached_property
    def nonnegative(self) -> bool:
        return bool(self.short.min() >= 0)

    @cached_property
    def non_increasing(self) -> bool:
        return bool(np.all(np.diff(self.short) <= 0))

    @cached_property
    def full(self) -> Real:
        """All coefficients of the first column."""
        return np.concatenate([self.short, np.zeros(self.steps - len(self.short))])

    @cached_property
    def majorant(self) -> Toeplitz:
        """Non-negative and non-increasing, entrywise at least |C|."""
        grown = np.maximum.accumulate(np.abs(self.short)[::-1])[::-1]
        return Toeplitz(np.asarray(grown), self.steps)

    @cached_property
    def magnitudes(self) -> Toeplitz:
        """|C|."""
        return Toeplitz(np.abs(self.short), self.steps)

    def dense(self) -> Dense:
        """The matrix itself."""
        column = self.full
        lag = np.subtract.outer(np.arange(self.steps), np.arange(self.steps))
        return Dense(np.where(lag >= 0, column[np.abs(lag)], 0.0))


Strategy = Dense | Toeplitz
