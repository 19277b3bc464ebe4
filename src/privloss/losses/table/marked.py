"""Tables split by the largest loss: one kind of step whose outcomes are marked, and sums over those with low marks.

A mark is a class 0..last of an outcome; `last` holds outcomes that may never come. With M_j(z) = E[e^(zZ); mark j],

    S_j(z) - 1 = sum over marks <= j of m (e^(zv) - 1 - zv) + z E[Z; mark <= j] - P[mark > j, or Z = inf],
    E[Z; mark <= j] = sum over marks <= j of m (e^-v - 1 + v) + Q[all others] - P[all others],

sums of few terms, exact up to rounding. On a cell of the line |S_j|^2 exceeds its larger end value by at most
S_j(c)^2 V w^2/4, V the variance of the tilted loss (`numerics/contour/sparse.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privloss.losses.table.table import Table
from privloss.numerics.contour.sparse import fall_below
from privloss.numerics.floats import UNIT, Complex, Real, padded_up, raised
from privloss.numerics.stable import exp_minus_1_minus, product
from privloss.numerics.work import charge

_BLOCK = 200_000  # nodes times outcomes at a time
_BASE = 256
_TOGETHER = 40_000  # multiplications of one product of matrices, see `stable.product`


@dataclass(frozen=True, eq=False)
class Sums:
    """S - 1, or M of one class, at some nodes, and bounds on their absolute errors."""

    value: Complex
    error: Real


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Some outcomes of a table; `slack` and `wobble` are roundings of masses and values as in `Table`."""

    values: Real
    masses: Real
    slack: Real
    wobble: Real
    absolute: float
    mean: float = 0.0  # E[Z; these]
    mean_error: float = 0.0
    others: float = 0.0  # P of all others
    others_error: float = 0.0

    def minus_1(self, c: float, t: Real) -> Sums:
        """E[e^(zZ); these] - 1."""

        value, error = np.zeros(len(t), dtype=complex), np.zeros(len(t))
        for at, z, u in self._blocks(c, t):
            each = self.masses * exp_minus_1_minus(u)
            size, grown = np.abs(u), np.exp(np.maximum(u.real, 0.0))
            # |d (e^u - 1 - u)| <= |e^u - 1| |du|
            moved = np.minimum(size, 2.0) * grown * self._moved(z, size)
            value[at] = each.sum(axis=1)
            error[at] = UNIT * (np.abs(each) * self._units + self.masses * moved).sum(axis=1)
        z = c + 1j * t
        value = value + z * self.mean - self.others
        slope = self.mean_error + 8 * UNIT * abs(self.mean)
        return Sums(value, error + np.abs(z) * slope + self.others_error + 4 * UNIT * np.abs(value))

    def transform(self, c: float, t: Real) -> Sums:
        """E[e^(zZ); these]."""
        value, error = np.zeros(len(t), dtype=complex), np.zeros(len(t))
        for at, z, u in self._blocks(c, t):
            each = self.masses * np.exp(u)
            value[at] = each.sum(axis=1)
            error[at] = UNIT * (np.abs(each) * (self._units + self._moved(z, np.abs(u)))).sum(axis=1)
        return Sums(value, error)

    @property
    def _units(self) -> Real:
        """Roundings of a term of a sum, but for those of z v."""
        return self.slack + 32 + len(self.values)

    def _moved(self, z: Complex, size: Real) -> Real:
        """Roundings of z v."""
        return np.asarray(size * (self.wobble + 4) + np.abs(z) * self.absolute)

    def _blocks(self, c: float, t: Real) -> Iterator[tuple[slice, Complex, Complex]]:
        """Some heights at a time: where they are, z as a column, and zv."""
        charge(4.0 * len(self.values) * len(t))
        block = max(1, _BLOCK // max(len(self.values), 1))
        for start in range(0, len(t), block):
            z = (c + 1j * t[start : start + block])[:, None]
            yield slice(start, start + block), z, z * self.values

    def tilted_sum(self, c: float) -> float:
        """An upper bound on E[e^(cZ); these]."""
        found = self.transform(c, np.zeros(1))
        return raised(float(found.value[0].real) + float(found.error[0]), 4)

    def squares(self, c: float, starts: Real, width: float, count: int) -> Real:
        """|E[e^(zZ); these]|^2 over its value at height 0, rounded up, at heights starts + k width, 0 <= k <= count:
        an array (starts, count + 1). Starts are multiples of `count` widths."""
        weights, _ = self.tilted(c)
        charge(len(weights) * (len(starts) + 0.1 * len(starts) * (count + 1)))
        near = np.exp(1j * np.multiply.outer(self.values, width * np.arange(count + 1))) * weights[:, None]
        far = self._turned(starts, width * count)
        rows = max(1, _TOGETHER // near.size)
        far = np.concatenate([far, np.zeros((-len(starts) % rows, len(weights)))])
        found = product(far.reshape(-1, rows, len(weights)), near).reshape(-1, count + 1)[: len(starts)]
        off = UNIT * (128 + 4 * len(weights) + 2 * float((weights * self.slack).sum()))
        drift = 2 * UNIT * float(weights @ ((self.wobble + 8) * np.abs(self.values) + self.absolute))
        highest = (starts + width * (count + 1))[:, None]
        return np.asarray(found.real**2 + found.imag**2 + 2 * (off + drift * (highest + c)))

    def _turned(self, starts: Real, unit: float) -> Complex:
        """e^(i t v) at multiples t of a unit, each a product of two of a few: (starts, outcomes)."""
        high, low = np.divmod(np.rint(starts / unit).astype(np.int64), _BASE)
        found, at = np.unique(high, return_inverse=True)
        coarse = np.exp(1j * np.multiply.outer(found * (_BASE * unit), self.values))
        fine = np.exp(1j * np.multiply.outer(unit * np.arange(min(_BASE, int(low.max()) + 1)), self.values))
        return np.asarray(coarse[at] * fine[low])

    def falls(self, c: float, starts: Real, width: float, count: int) -> Real:
        """Lower bounds on log of E[e^(zZ)] at height 0 over its modulus, on `count` cells from each start on."""
        if not len(self.values):
            return np.zeros((len(starts), count))
        squares = self.squares(c, starts, width, count)
        most = np.minimum(np.maximum(squares[:, 1:], squares[:, :-1]), 1.0)
        return fall_below(most, np.array([[self.variance(c)]]), width)

    def tilted(self, c: float) -> tuple[Real, float]:
        """The masses times e^(cv), made to sum to one, and the log of their sum."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses) + c * self.values
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        return weights / total, top + math.log(total)

    def variance(self, c: float) -> float:
        """Of the tilted loss, rounded up."""
        weights, _ = self.tilted(c)
        centre = float(weights @ self.values)
        return (
            padded_up(float(weights @ (self.values - centre) ** 2), 1e-9)
            + 1e-20 * float(np.abs(self.values).max()) ** 2
        )


@dataclass(frozen=True, eq=False)
class MarkedTable:
    """One kind of step in one direction."""

    row: Table
    marks: NDArray[np.int64]
    last: int
    _below: dict[int, Outcomes] = field(default_factory=dict, repr=False)

    def turned(self) -> MarkedTable:
        """The same outcomes with the same marks, the other measure first."""
        even = Table(
            self.row.values,
            self.row.masses,
            self.row.delta,
            self.row.back,
            self.row.slack,
            self.row.wobble,
            self.row.missing,
            absolute=self.row.absolute,
        )
        return MarkedTable(even.reversed(), self.marks, self.last)

    def below(self, j: int) -> Outcomes:
        """Those with marks up to j < last."""
        if j not in self._below:
            self._below[j] = self._made(j)
        return self._below[j]

    def own(self, j: int) -> Outcomes:
        """Those with mark j."""
        return Outcomes(*self._some(self.marks == j), self.row.absolute)

    def _some(self, at: NDArray[np.bool_]) -> tuple[Real, Real, Real, Real]:
        row = self.row
        slack, wobble = (
            np.broadcast_to(np.asarray(x, dtype=float), row.values.shape)[at] for x in (row.slack, row.wobble)
        )
        return row.values[at], row.masses[at], slack, wobble

    def _made(self, j: int) -> Outcomes:
        row, here = self.row, self.marks <= j
        values, masses, slack, wobble = self._some(here)
        _, out, out_slack, _ = self._some(~here)
        back = np.exp(np.log(np.maximum(out, 1e-320)) - row.values[~here])
        out_wobble = np.broadcast_to(np.asarray(row.wobble, dtype=float), row.values.shape)[~here]
        moved = (np.abs(row.values[~here]) * (out_wobble + 4) + row.absolute) * back
        lost, lost_back = (0.0, 0.0) if row.missing is None else (float(f(0.0, np.zeros(1))[0]) for f in row.missing)
        others, others_back = math.fsum(out) + row.delta, math.fsum(back) + row.back
        others_error = UNIT * float((out_slack + 4) @ out) + 8 * UNIT * others + lost
        back_error = UNIT * float((out_slack + 4) @ back + moved.sum()) + 8 * UNIT * others_back + lost_back
        # as in `Table.mean`; the masses must be those of the mean to first order
        terms = masses * np.real(exp_minus_1_minus(-values))
        growth = np.abs(np.expm1(-values))
        drift = growth * (np.abs(values) * wobble + row.absolute)
        error = UNIT * float((terms * (slack + 16) + masses * drift + (slack + 2) * masses * growth).sum())
        mean = math.fsum(terms) + (others_back - others)
        error += others_error + back_error
        return Outcomes(
            values, masses, slack, wobble, row.absolute, mean, raised(error, 8), others, raised(others_error, 8)
        )

    def mass_of(self, j: int) -> tuple[float, float]:
        """P[mark j] and its error; outcomes that are not in the table may be of the last class."""
        _, masses, slack, _ = self._some(self.marks == j)
        off = UNIT * float((slack + 4) @ masses)
        if j == self.last and self.row.missing is not None:
            off += float(self.row.missing[0](0.0, np.zeros(1))[0])
        return math.fsum(masses), raised(off, 8)

    def rare_mass(self, j: int) -> tuple[float, float]:
        """P[mark > j, or Z = inf] and its error."""
        part = self.below(j)
        return part.others, part.others_error
