"""Every outcome of a composition, one by one, where there are few enough: exact sums for tables used a few times.

Where the values of a table are equally spaced, outcomes of the same sum are one: n uses of m values have n (m-1) + 1 of
them, and their masses are convolutions, sums of positive terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real, raised

MOST_OUTCOMES = 20_000
FEW_OUTCOMES = 64  # so few are quicker than a line, on a lattice too
_UNEVEN = 8  # units of the largest value by which equally spaced ones may be off
_UNDERFLOW, _LOG_LEAST = 1e-300, -690.0  # products above e^-690 are whole; smaller ones lose less than 1e-300 each


def outcomes(rows: Sequence[tuple[Table, int]]) -> float:
    """How many: for a row with m values used n times, the number of ways to split n into m counts."""
    log = 0.0
    for row, n in rows:
        if _spacing(row.values) is not None:
            log += math.log(n * (len(row.values) - 1) + 1)
        else:
            log += math.lgamma(n + len(row.values)) - math.lgamma(n + 1) - math.lgamma(len(row.values))
        if log > math.log(10 * MOST_OUTCOMES):
            return math.inf
    return round(math.exp(log))


@dataclass(frozen=True)
class Uses:
    """Some uses of a table: values and log masses, the roundings of the masses, those of the values (of 1), and what
    tails left out and products that underflow add at most to M(0), in either direction."""

    values: Real
    logs: Real
    units: float
    off: float
    beyond: Real


def uses(row: Table, n: int) -> Uses:
    """So many independent draws."""
    even = _spacing(row.values)
    values, logs, units = _splits(row, n) if even is None else _convolved(row, n)
    beyond = np.full(2, 0.0 if even is None else _lost(row, n))
    if row.missing is not None:
        beyond += [n * float(tail(0.0, np.zeros(1))[0]) for tail in row.missing]
    size = float(np.abs(row.values).max())
    # the error of a sum is that of its terms, however small the sum
    moved = 0.0 if even is None else even[1]
    off = n * ((float(np.max(row.wobble)) + 2) * size + row.absolute + moved) + 4 * float(np.abs(values).max())
    return Uses(values, logs, units, off, beyond)


def whole(rows: Sequence[tuple[Table, int]]) -> Table:
    """The composition as one row."""
    values, logs, kept, kept_back = np.zeros(1), np.zeros(1), 0.0, 0.0
    members = [uses(row, n) for row, n in rows]
    for one, (row, n) in zip(members, rows, strict=True):
        values = (values[:, None] + one.values).ravel()
        logs = (logs[:, None] + one.logs).ravel()
        kept += n * math.log1p(-row.delta) if row.delta < 1 else -math.inf
        kept_back += n * math.log1p(-row.back) if row.back < 1 else -math.inf
    # the chance that some use falls among what is left out is at most the sum of theirs
    forth, back = (raised(math.fsum(float(one.beyond[i]) for one in members), 4) for i in (0, 1))
    short = max(forth, back) > 0 or any(row.missing is not None for row, _ in rows)
    return Table(
        values,
        np.exp(logs),
        -math.expm1(kept),
        -math.expm1(kept_back),
        slack=16 + math.fsum(one.units for one in members),
        wobble=4.0,
        missing=(_at_zero(forth), _at_zero(back)) if short else None,
        absolute=math.fsum(one.off for one in members),
    )


def _at_zero(mass: float) -> Callable[[float, Real], Real]:
    """What is missing of M at 0; elsewhere nothing is known."""
    return lambda c, t: np.full(len(t), mass if c == 0 else math.inf)


# -- equally spaced values ---------------------------------------------------------------------------------------------


def _spacing(values: Real) -> tuple[float, float] | None:
    """The distance of values that are equally spaced up to roundings, and those (of 1); None if they are not."""
    if len(values) < 2:
        return None
    ordered = np.sort(values)
    spacing = float(ordered[-1] - ordered[0]) / (len(values) - 1)
    wrong = np.abs(ordered - (ordered[0] + spacing * np.arange(len(values)))).max()
    size = float(np.abs(values).max())
    # the places to compare with are rounded themselves, by at most two units of the largest
    return (spacing, float(wrong) / UNIT + 4 * size) if wrong <= _UNEVEN * UNIT * size else None


def _convolved(row: Table, n: int) -> tuple[Real, Real, float]:
    """Values and log masses of n independent draws, one entry per sum, and the roundings of the masses."""
    order = np.argsort(row.values)
    spacing, _ = _spacing(row.values) or (0.0, 0.0)
    square, slack = row.masses[order], float(np.max(row.slack))
    power, units, own, left = np.ones(1), 0.0, slack, n
    while left:
        if left % 2:  # a sum of so many products, all positive
            units += own + min(len(power), len(square)) + 1
            power = np.convolve(power, square)
        left //= 2
        if left:
            own = 2 * own + len(square) + 1
            square = np.convolve(square, square)
    values = n * row.values[order[0]] + spacing * np.arange(len(power))
    with np.errstate(divide="ignore"):
        logs = np.log(power)
    return values, logs, units + 4 + 4 * float(np.abs(logs[np.isfinite(logs)]).max())


def _lost(row: Table, n: int) -> float:
    """More than what products of masses that underflow can take away, if any do."""
    least = float(row.masses.min())
    surely = least > 0 and n * math.log(least) > _LOG_LEAST
    return 0.0 if surely else _UNDERFLOW * (n * len(row.values)) ** 2


# -- other tables ------------------------------------------------------------------------------------------------------


def _splits(row: Table, n: int) -> tuple[Real, Real, float]:
    """Values and log masses of n independent draws, one entry per split of n: multinomial, computed in logarithms."""
    values, factorials = row.values, np.array([math.lgamma(k + 1) for k in range(n + 1)])
    with np.errstate(divide="ignore"):
        log_masses = np.log(row.masses)
    if n == 1:
        return values, log_masses, 2 * float(np.max(row.slack)) + 8 * float(np.abs(log_masses[row.masses > 0]).max())

    # how many uses are left, and the outcomes of those that are not
    parts: dict[int, list[tuple[Real, Real]]] = {n: [(np.zeros(1), np.zeros(1))]}
    for value, log_mass in zip(values[:-1].tolist(), log_masses[:-1].tolist(), strict=True):
        grown: dict[int, list[tuple[Real, Real]]] = {}
        for left, (sums, logs) in ((left, _joined(found)) for left, found in parts.items()):
            for k in range(left + 1):
                more = (sums + k * value, logs + _times(k, log_mass) - factorials[k]) if k else (sums, logs)
                grown.setdefault(left - k, []).append(more)
        parts = grown
    last = [
        (sums + left * values[-1], logs + _times(left, log_masses[-1]) - factorials[left])
        for left, (sums, logs) in ((left, _joined(found)) for left, found in parts.items())
    ]
    v, m = _joined(last)
    largest = float(np.abs(log_masses[np.isfinite(log_masses)]).max())
    size = math.lgamma(n + 1) + n * (float(np.max(row.slack)) + 2 + largest)
    return v, m + factorials[n], 8 * size


def _joined(found: Sequence[tuple[Real, Real]]) -> tuple[Real, Real]:
    return np.concatenate([v for v, _ in found]), np.concatenate([m for _, m in found])


def _times(k: int, log: float) -> float:
    return k * float(log) if k else 0.0
