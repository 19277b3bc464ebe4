"""How far one record can move C x: sens^2 = max over its patterns of steps and its contributions, of norm <= 1 each,
of sum_(i, j in pattern) X_ij <u_i, u_j>, X = C'C. Both ends, roundings charged; proofs: docs/matrix.md.

- single: the largest column norm.
- fixed epochs: the patterns {j, j+b, j+2b, ...}; for X >= 0 the norm of the sum of the columns.
- minimum separation b, at most k steps: exact for C whose columns b apart share no row, and for Toeplitz matrices with
  coefficients >= 0 that do not increase. Otherwise v_i = the most that row i of |X| gives to a pattern with step i, and
  the most that a pattern gets from v: an upper end. Below: an ascent over patterns and signs, each of them attained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.errors import Unsupported
from privloss.losses.matrix.patterns import best_pattern, best_sums, most_steps
from privloss.losses.matrix.strategy import MOST_TOEPLITZ, Dense, Strategy, Toeplitz
from privloss.numerics.floats import UNIT, Real, lowered, raised

SINGLE, EPOCHS, SEPARATED = "single", "fixed-epochs", "min-separation"
_BLOCK, _CHUNK = 512, 2048
_ROUNDS = 20  # of the ascent; every round gains
_DENSE_TOO = 1500  # steps up to which a Toeplitz matrix is also looked at as a dense one
_STARTS = 16
_MOST_TURNED = 200  # contributions whose signs are turned one by one

_ONE = "single participation: the largest column norm of C"
_SUMS = "the norm of the sum of a pattern's columns (C'C >= 0 on patterns)"
_BANDED = "columns of C that far apart share no row: the largest sum of squared column norms (dynamic programming)"
_MONOTONE = "Toeplitz, >= 0, not increasing: the columns 0, b, 2b, ..."
_BOUND = "above: dynamic programming over |C'C|; below: an ascent over patterns and signs"


@dataclass(frozen=True)
class Participation:
    """Which steps one record may take part in: `separation` b, at most `most` of them."""

    kind: str
    separation: int = 1
    most: int | None = None


@dataclass(frozen=True)
class Squared:
    """Both ends of sens^2, and why."""

    low: float
    high: float
    why: str

    def met(self, other: Squared) -> Squared:
        """The same number, known from two sides."""
        return Squared(max(self.low, other.low), min(self.high, other.high), self.why)


def squared_sensitivity(strategy: Strategy, how: Participation) -> Squared:
    """sens^2 of one record whose contributions have norm at most 1."""
    if isinstance(strategy, Toeplitz):
        return _toeplitz(strategy, how)
    if how.kind == SINGLE:
        return _around(float(strategy.squared_norms.max()), strategy.rows + 4, _ONE)
    if how.kind == EPOCHS:
        return _dense_epochs(strategy, how.separation)
    most = most_steps(strategy.steps, how.separation, how.most)
    if strategy.bands <= how.separation:
        total = float(best_sums(strategy.squared_norms[None, :], how.separation, most)[0])
        return _around(total, strategy.rows + most + 8, _BANDED)
    return _dense_separated(strategy, how.separation, most)


def _around(value: float, units: float, why: str) -> Squared:
    """A sum of terms >= 0 with so many relative roundings."""
    return Squared(max(lowered(value, 2 * units), 0.0), raised(value, 2 * units), why)


# -- dense -------------------------------------------------------------------------------------------------------------


def _moved(columns: Real, signs: Real) -> tuple[float, float]:
    """||sum of signed columns||^2 and the size of its terms, || sum |columns| ||^2: a component errs by k units of
    sum |C_ts|, its square by 2k units of the square of that, the sum by as many units as there are rows."""
    size = np.abs(columns).sum(axis=1)
    found = columns @ signs
    return float(found @ found), float(size @ size)


def _below(columns: Real, signs: Real) -> float:
    value, size = _moved(columns, signs)
    return float(max(lowered(value, 2 * (columns.shape[0] + columns.shape[1] + 8), size), 0.0))


def _dense_epochs(c: Dense, b: int) -> Squared:
    """Every pattern {j, j + b, ...}."""
    k = most_steps(c.steps, b, None)
    if c.nonnegative:
        sums = np.zeros((c.rows, min(b, c.steps)))
        for start in range(0, c.steps, b):
            part = c.array[:, start : start + b]
            sums[:, : part.shape[1]] += part
        most = float(np.einsum("ij,ij->j", sums, sums).max())
        return _around(most, 2 * k + c.rows + 8, f"fixed epochs: {_SUMS}")
    low = high = 0.0
    for j in range(min(b, c.steps)):
        columns = c.array[:, j::b]
        low, high = max(low, _best_signs(columns)), max(high, _sum_of_magnitudes(columns))
    return Squared(low, high, "fixed epochs: above the sum of |C'C| over a pattern, below signs")


def _sum_of_magnitudes(columns: Real) -> float:
    """sum |X_ij| over a pattern; X_ij errs by rows + 2 units of |C_i| |C_j| (Cauchy)."""
    x = np.abs(columns.T @ columns)
    norms = np.sqrt(np.diag(x))
    size = float(norms.sum()) ** 2
    return float(raised(float(x.sum()), 2 * (columns.shape[0] + len(x) ** 2 + 8), size))


def _best_signs(columns: Real) -> float:
    """The norm of a signed sum of all columns; where to begin, the largest eigenvectors tell."""
    vectors = np.linalg.eigh(columns.T @ columns)[1].T[-_STARTS:]
    starts = (np.ones(columns.shape[1]), *np.where(vectors < 0, -1.0, 1.0))
    return max(_below(columns, _turned(columns, start)) for start in starts)


def _turned(columns: Real, signs: Real) -> Real:
    """Every sign turned towards the sum of the others until nothing is gained."""
    x, signs = columns.T @ columns, signs.copy()
    for _ in range(_ROUNDS):
        old = signs.copy()
        for i in range(len(x)):
            others = float(x[i] @ signs) - x[i, i] * signs[i]
            signs[i] = -1.0 if others < 0 else 1.0
        if bool(np.all(signs == old)):
            break
    return np.asarray(signs)


def _dense_separated(c: Dense, b: int, k: int) -> Squared:
    """Any C: v_i >= sum over a pattern with i of |X_ij|, so that a pattern is worth at most the sum of its v_i."""
    v = _rows_of_magnitudes(c, b, k)
    high = raised(float(best_sums(v[None, :], b, k)[0]), 2 * (c.rows + 2 * k + 16))
    low = max(_ascent(c, b, k, start) for start in _starts(c, v, b, k))
    return Squared(min(low, high), high, f"minimum separation: {_BOUND}")


def _rows_of_magnitudes(c: Dense, b: int, k: int) -> Real:
    """v_i, the most that a pattern gets from row i of |X| when it has step i and hence no other closer than b."""
    first, last = c.supports
    norms = np.sqrt(c.squared_norms)
    steps = np.arange(c.steps)
    found = np.zeros(c.steps)
    for start in range(0, c.steps, _BLOCK):
        own = slice(start, min(start + _BLOCK, c.steps))
        x = np.zeros((own.stop - start, c.steps))
        for begin in range(0, c.steps, _CHUNK):
            other = slice(begin, min(begin + _CHUNK, c.steps))
            top = max(int(first[own].min()), int(first[other].min()))
            end = min(int(last[own].max()), int(last[other].max())) + 1
            if top < end:
                x[:, other] = np.abs(c.array[top:end, own].T @ c.array[top:end, other])
        if not c.nonnegative:  # X_ij may cancel: rows + 2 units of |C_i| |C_j|
            x += 2 * (c.rows + 4) * UNIT * np.outer(norms[own], norms)
        near = np.abs(steps[own, None] - steps[None, :])
        x[(near < b) & (near > 0)] = 0.0
        found[own] = best_sums(x, b, k)
    return found


def _starts(c: Dense, v: Real, b: int, k: int) -> list[list[int]]:
    """Patterns to begin with: the best for v, equally spaced ones, and single steps."""
    few = _STARTS if c.steps <= _DENSE_TOO else 1
    shifts = sorted({round(i * (b - 1) / few) for i in range(few)})
    alone = [[int(i)] for i in np.argsort(-v)[:few]]
    return [best_pattern(v, b, k), *(list(range(j, c.steps, b))[:k] for j in shifts if j < c.steps), *alone]


def _ascent(c: Dense, b: int, k: int, pattern: list[int]) -> float:
    """||C u||^2 is convex in u, so the pattern and signs that are best for its tangent are at least as good."""
    best = 0.0
    signs: Real = np.ones(len(pattern))
    for _ in range(_ROUNDS):
        columns = c.array[:, pattern]
        if not c.nonnegative and len(pattern) <= _MOST_TURNED:
            signs = _turned(columns, signs)
        found = _below(columns, signs)
        if found <= best * (1 + 1e-12):
            break
        best, slope = found, c.array.T @ (columns @ signs)
        pattern = best_pattern(np.abs(slope), b, k)
        signs = np.where(slope[pattern] < 0, -1.0, 1.0)
    return best


# -- Toeplitz ----------------------------------------------------------------------------------------------------------


def _toeplitz(c: Toeplitz, how: Participation) -> Squared:
    if how.kind == SINGLE:  # later columns are the first one cut short
        return _around(float(c.short @ c.short), len(c.short) + 4, _ONE)
    b, most = how.separation, most_steps(c.steps, how.separation, how.most)
    if c.bands <= b:
        return _toeplitz_banded(c, b, most)
    if c.steps > MOST_TOEPLITZ:
        raise Unsupported(f"steps = {c.steps}: a Toeplitz matrix with more bands than b is supported up to 10^7 steps.")
    if how.kind == EPOCHS and c.nonnegative:  # a later pattern has the same gaps and fewer rows
        return Squared(*_spaced(c, b, most), f"fixed epochs: {_SUMS}")
    if c.nonnegative and c.non_increasing:
        return Squared(*_spaced(c, b, most), f"minimum separation: {_MONOTONE}")
    above = c.magnitudes if how.kind == EPOCHS else c.majorant
    low = _spaced(c, b, most)[0] if c.nonnegative else 0.0
    found = Squared(low, _spaced(above, b, most)[1], f"Toeplitz: above {_MONOTONE} of a larger matrix; {_BOUND}")
    if c.steps <= _DENSE_TOO:
        return found.met(squared_sensitivity(c.dense(), how))
    return found if found.low > 0 else Squared(_one_start(c, b, most), found.high, found.why)


def _toeplitz_banded(c: Toeplitz, b: int, most: int) -> Squared:
    """Squared column norms do not increase: the columns 0, b, 2b, ..., all of them whole but the last."""
    partial = np.cumsum(c.short**2)
    whole = min(most, (c.steps - c.bands) // b + 1)
    rest = [float(partial[c.steps - s * b - 1]) for s in range(whole, most)]
    return _around(math.fsum([whole * float(partial[-1]), *rest]), c.bands + 8, _BANDED)


def _spaced(c: Toeplitz, b: int, most: int) -> tuple[float, float]:
    """||sum of the columns 0, b, ..., (most-1) b||^2 for C >= 0: sums along every b-th row, and their differences,
    which err by as many units of the longer sum as it has terms."""
    padded = np.zeros(b * -(-c.steps // b))
    padded[: c.steps] = c.full
    sums = np.cumsum(padded.reshape(-1, b), axis=0)
    earlier = np.zeros_like(sums)
    if most < len(sums):
        earlier[most:] = sums[:-most]
    error = (2 * len(sums) + 4) * UNIT * sums
    ends = [np.maximum(sums - earlier + sign * error, 0.0).ravel()[: c.steps] for sign in (-1, 1)]
    low, high = (float(s @ s) for s in ends)
    return lowered(low, 2 * c.steps + 8), raised(high, 2 * c.steps + 8)


def _one_start(c: Toeplitz, b: int, most: int) -> float:
    """A large matrix with signs: the columns 0, b, ... with the signs that fit best one after the other."""
    total, size, units = np.zeros(c.steps), np.zeros(c.steps), 2 * (most + c.steps + 8)
    for s in range(most):
        column = c.full[: c.steps - s * b]
        sign = -1.0 if float(total[s * b :] @ column) < 0 else 1.0
        total[s * b :] += sign * column
        size[s * b :] += np.abs(column)
    return max(lowered(float(total @ total), units, float(size @ size)), 0.0)
