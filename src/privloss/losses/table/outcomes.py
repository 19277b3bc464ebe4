"""Every outcome of a composition, one by one, where there are few enough: exact sums for tables used a few times."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privloss.losses.table.table import Table
from privloss.numerics.floats import Real

MOST_OUTCOMES = 20_000


def outcomes(rows: Sequence[tuple[Table, int]]) -> float:
    """How many: for a row with m values used n times, the number of ways to split n into m counts."""
    log = 0.0
    for row, n in rows:
        log += math.lgamma(n + len(row.values)) - math.lgamma(n + 1) - math.lgamma(len(row.values))
        if log > math.log(10 * MOST_OUTCOMES):
            return math.inf
    return round(math.exp(log))


def whole(rows: Sequence[tuple[Table, int]]) -> Table:
    """The composition as one row; masses are multinomial, computed in logarithms."""
    values, logs, size, wobble = np.zeros(1), np.zeros(1), 0.0, 0.0
    kept, kept_back = 0.0, 0.0
    for row, n in rows:
        with np.errstate(divide="ignore"):
            log_masses = np.log(row.masses)
        v, m = _splits(row.values, log_masses, n)
        values = (values[:, None] + v).ravel()
        logs = (logs[:, None] + m).ravel()
        slack, off = float(np.max(row.slack)), float(np.max(row.wobble))
        size += math.lgamma(n + 1) + n * (slack + 2 + float(np.abs(log_masses[np.isfinite(log_masses)]).max()))
        wobble += n * ((off + 2) * float(np.abs(row.values).max()) + row.absolute)
        kept += n * math.log1p(-row.delta) if row.delta < 1 else -math.inf
        kept_back += n * math.log1p(-row.back) if row.back < 1 else -math.inf
    # the error of a sum is that of its terms, however small the sum
    lost = -math.expm1(kept), -math.expm1(kept_back)
    return Table(values, np.exp(logs), *lost, slack=16 + 8 * size, wobble=4.0, absolute=wobble)


def _splits(values: Real, log_masses: Real, n: int) -> tuple[Real, Real]:
    """Values and log masses of n independent draws, one entry per split of n."""
    factorials = np.array([math.lgamma(k + 1) for k in range(n + 1)])

    def rest(first: int, left: int) -> tuple[Real, Real]:
        if first == len(values) - 1:
            return np.array([left * values[first]]), np.array([_times(left, log_masses[first]) - factorials[left]])
        parts = [rest(first + 1, left - k) for k in range(left + 1)]
        added = [k * values[first] + v for k, (v, _) in enumerate(parts)]
        masses = [_times(k, log_masses[first]) - factorials[k] + m for k, (_, m) in enumerate(parts)]
        return np.concatenate(added), np.concatenate(masses)

    v, m = rest(0, n)
    return v, m + factorials[n]


def _times(k: int, log: float) -> float:
    return k * float(log) if k else 0.0
