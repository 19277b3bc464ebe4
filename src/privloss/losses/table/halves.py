"""Dozens of unequal tables: the outcomes of either half, one by one, and their sums by bisection.

delta(eps) is the sum of m (1 - e^(eps - v)) over outcomes with v > eps. An outcome is one of each half, v = v_a + v_b,
m = m_a m_b; with the second half sorted and its masses under P and Q added from the top, every v_a needs one bisection
and two partial sums. So fifty boxes need twice 2^25 terms, not 2^50, and far fewer where eps is large: what falls short
of the largest value by more than eps does is left out, exactly. Where all values lie on a lattice, outcomes of the same
sum are one, and boxes of four decimals have a few thousand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from privloss.losses.table.outcomes import Uses, outcomes, uses
from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real, log_lowered, log_raised, padded_up

MOST_USES = 64  # of tables, beyond which halves are too long
MOST_LATTICE_USES = 512
MOST_OWN = 512  # outcomes of all uses of one table
_MOST_TERMS, _SHORTER = 2**17, 0.8  # of one half; how much less is tried where they would be more
_LOG_FEW = 28 * math.log(2)  # outcomes of both halves, beyond which a sum takes its time
_MOST_ADDED = 2**24  # terms on a lattice
_BLOCK = 512  # sums are taken in blocks, so that few roundings add up
_TINY = 1e-290  # more than what products that underflow may lose

Outcomes = tuple[Real, Real]  # values and masses


def shares(row: Table, n: int) -> tuple[int, ...]:
    """The uses of a table in one part or, where that has too many outcomes, in two; none if they have too many too."""
    if outcomes([(row, n)]) <= MOST_OWN:
        return (n,)
    return (n - n // 2, n // 2) if n > 1 and outcomes([(row, n - n // 2)]) <= _MOST_TERMS else ()


class Halves:
    """The composition of tables (no densities) with their counts."""

    def __init__(self, rows: Sequence[tuple[Table, int]], spacing: float | None = None) -> None:
        self._rows, self._spacing = rows, spacing

    @cached_property
    def short(self) -> bool:
        """Whether the outcomes are so few that their sum is cheap."""
        if self._spacing is None:
            return math.fsum(math.log(len(one.values)) for one in self._members) <= _LOG_FEW
        entries = sum(len(one.values) for one in self._members)
        cells = math.fsum(float(np.ptp(one.values)) for one in self._members) / self._spacing
        return cells <= _MOST_TERMS and cells * entries <= _MOST_ADDED

    @cached_property
    def _members(self) -> list[Uses]:
        """The widest first, so that most outcomes come late."""
        found = [uses(row, k) for row, n in self._rows for k in shares(row, n)]
        return sorted(found, key=lambda one: float(np.ptp(one.values)), reverse=True)

    @cached_property
    def _top(self) -> float:
        return math.fsum(float(one.values.max()) for one in self._members)

    @cached_property
    def _off(self) -> float:
        """A bound on the error of the value of any outcome."""
        size = math.fsum(float(np.abs(one.values).max()) for one in self._members)
        own = math.fsum(one.off for one in self._members)
        apart = 0.0
        if self._spacing is not None:
            apart = math.fsum(float(np.abs(m - self._spacing * _places(m, self._spacing)).max()) for m in self._missing)
        return padded_up(UNIT * (own + 8 * (1 + len(self._members)) * size) + apart, 0.1)

    @property
    def _missing(self) -> list[Real]:
        """By how much the values of each member fall short of its largest."""
        return [one.values.max() - one.values for one in self._members]

    @cached_property
    def _beyond(self) -> float:
        """The chance that some use falls among tails left out is at most the sum of theirs."""
        return padded_up(math.fsum(float(one.beyond[0]) for one in self._members), 1e-12)

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """log of lower and upper bounds on sum m (1 - e^(eps - v))_+; None where there are too many outcomes."""
        if eps >= self._top + 4 * self._off:
            return -math.inf, log_raised(math.log(self._beyond), 4) if self._beyond > 0 else -math.inf
        if eps < self.least:
            return None
        values, masses, others, under_p, under_q = self._sorted
        # Outcomes with v > eps - 2 off as computed: all that truly exceed eps, and (1 - e^(eps-v))_+ of none is further
        # than 5 off from what is added here.
        first = np.searchsorted(others, eps - 2 * self._off - values, side="right")
        above = masses * under_p[first]
        total, mass = _sum(above - masses * np.exp(eps - values) * under_q[first]), _sum(above)
        # e^(eps - v_a) times the sum under Q is at most e^(3 off) times that under P: both err by their roundings
        units = math.fsum(one.units + 4 for one in self._members) + 4 * (8 + abs(eps) + 2 * abs(self._top))
        units += 4 * _BLOCK + (len(values) + len(others)) / _BLOCK
        if self._spacing is not None:
            units += sum(len(one.values) for one in self._members)  # sums of as many products, all positive
        wrong = padded_up((5 * self._off + 3 * units * UNIT) * mass, 1e-6)
        low, high = total - wrong, total + wrong + self._beyond + _TINY
        return log_lowered(math.log(low), 4) if low > 0 else -math.inf, min(log_raised(math.log(high), 4), 0.0)

    @cached_property
    def least(self) -> float:
        """The least eps that can be answered, 0 if all can."""
        return max(self._top + 4 * self._off - self._kept[0], 0.0)

    @cached_property
    def _kept(self) -> tuple[float, Outcomes, Outcomes]:
        """By how much outcomes may fall short of the largest, and the outcomes of both halves that do not."""
        short = padded_up(self._top + 5 * self._off, 1e-15)
        while True:
            one, two = (_outcomes(self._members[i::2], short, self._spacing) for i in (0, 1))
            if one is not None and two is not None:
                return short, one, two
            short *= _SHORTER

    @cached_property
    def _sorted(self) -> tuple[Real, Real, Real, Real, Real]:
        """Values and masses of one half; values of the other, rising, and its masses under P and Q from each on."""
        _, one, (values, masses) = self._kept
        order = np.argsort(values)
        values, masses = values[order], masses[order]
        return *one, values, _from_the_top(masses), _from_the_top(masses * np.exp(-values))


def _outcomes(members: Sequence[Uses], short: float, spacing: float | None) -> Outcomes | None:
    """Values and masses of all outcomes that fall short of the largest by at most this; None if too many."""
    found = shortfalls(members, short, _MOST_TERMS) if spacing is None else _on_lattice(members, spacing)
    return None if found is None else (math.fsum(float(one.values.max()) for one in members) - found[0], found[1])


def shortfalls(members: Sequence[Uses], short: float, most: int) -> Outcomes | None:
    """By how much outcomes fall short of the largest, at most this, and their masses; None if they are too many."""
    missing, masses = np.zeros(1), np.ones(1)
    for one in members:
        top, own = float(one.values.max()), np.exp(one.logs)
        parts = [(missing + (top - v), masses * m) for v, m in zip(one.values.tolist(), own.tolist(), strict=True)]
        kept = [p[0] <= short for p in parts]
        missing = np.concatenate([p[0][k] for p, k in zip(parts, kept, strict=True)])
        masses = np.concatenate([p[1][k] for p, k in zip(parts, kept, strict=True)])
        if len(missing) > most:
            return None
    return missing, masses


def _places(missing: Real, spacing: float) -> Real:
    return np.asarray(np.rint(missing / spacing))


def _on_lattice(members: Sequence[Uses], spacing: float) -> Outcomes:
    """The same for all outcomes on a lattice, one entry for each of its points."""
    masses = np.ones(1)
    for one in members:
        places = _places(one.values.max() - one.values, spacing).astype(np.int64)
        grown = np.zeros(len(masses) + int(places.max()))
        for place, mass in zip(places.tolist(), np.exp(one.logs).tolist(), strict=True):
            grown[place : place + len(masses)] += mass * masses
        masses = grown
    reached = np.flatnonzero(masses > 0)
    return spacing * reached, masses[reached]


def _blocks(values: Real) -> Real:
    return np.concatenate([values, np.zeros(-len(values) % _BLOCK)]).reshape(-1, _BLOCK)


def _sum(values: Real) -> float:
    return math.fsum(_blocks(values).sum(axis=1).tolist())


def _from_the_top(masses: Real) -> Real:
    """The sum of the masses from each on, and 0 at the end."""
    rows = np.cumsum(_blocks(masses[::-1]), axis=1)
    rows[1:] += np.cumsum(rows[:-1, -1])[:, None]
    return np.concatenate([[0.0], rows.ravel()[: len(masses)]])[::-1]
