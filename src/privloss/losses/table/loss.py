"""Bundles of losses with finitely many values (`row.py`), on a line or on a lattice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privloss.losses.base import Concentration, PrivacyLoss
from privloss.losses.density.few_uses import MOST_USES, FewUses
from privloss.losses.symmetric.rare import PairedRare
from privloss.losses.table.brackets import MOST_ROWS, Brackets, bracketed
from privloss.losses.table.lattice import Steps, common_lattice
from privloss.losses.table.rare import RareTables
from privloss.losses.table.table import Density, Table
from privloss.losses.table.turned import turned
from privloss.numerics.contour.reading import Reading
from privloss.numerics.contour.sparse import fall_below
from privloss.numerics.contour.transform import Lattice, LineValues, RareLosses, TooExpensive
from privloss.numerics.floats import UNIT, Real, lowered, padded_up, raised
from privloss.numerics.work import charge

_MAX_WORK = 40_000_000
_BLOCK = 500_000
_MOST_KINDS = 40  # of steps in a plan that are split by the largest loss
_CELL, _MOST_CELLS = 0.2, 3_000  # of the search for the decay, in units of the spread
_PER_RATIO, _BELOW = 12.0, 16.0  # heights to a factor of e, and how far below the first that is asked for
_LARGE = 300.0  # log of what is surely a double
_MANY = 100.0  # nats by which the atoms alone would let a line fall, so that its end need not be known well
_FADED = 0.9  # share of M(c) below which V/t is good enough there
_ROUGH = 1e-3  # share of M(c) that quadrature may miss where decay is proven


@dataclass(frozen=True, eq=False)
class TableLoss(PrivacyLoss):
    """Bundle of rows with counts."""

    place = 6
    rows: tuple[Table, ...]
    count: Real

    @classmethod
    def one(cls, table: Table) -> TableLoss:
        """A single use."""
        return cls((table,), np.ones(1))

    def times(self, count: int) -> TableLoss:
        return TableLoss(self.rows, count * self.count)

    @classmethod
    def merged(cls, parts: Sequence[TableLoss]) -> Sequence[TableLoss]:
        return (cls(tuple(r for p in parts for r in p.rows), np.concatenate([p.count for p in parts])),)

    def reversed(self) -> TableLoss:
        return TableLoss(tuple(r.reversed() for r in self.rows), self.count)

    def concentration(self) -> Concentration:
        """Tables without a largest loss bring their own rho; the others are searched."""
        members = list(zip(self.rows, self.count, strict=True))
        bound = math.fsum(float(n) * r.rho for r, n in members if math.isinf(r.largest))
        rest = [(r, n) for r, n in members if math.isfinite(r.largest)]
        if len(rest) == len(members):
            return Concentration(searched=self)
        left = TableLoss(tuple(r for r, _ in rest), np.array([float(n) for _, n in rest])) if rest else None
        return Concentration(bound=bound, searched=left)

    @property
    def symmetric(self) -> bool:
        return all(r.symmetric for r in self.rows)

    @property
    def kinds(self) -> int:
        return sum(1 + int(np.max(r.slack)) for r in self.rows)  # masses carry `slack` roundings each

    @property
    def delta_inf(self) -> float:
        if self.delta_inf_exact:
            return max(r.delta for r in self.rows)
        logs = [
            n * math.log1p(-r.delta) if r.delta < 1 else -math.inf for r, n in zip(self.rows, self.count, strict=True)
        ]
        return -math.expm1(math.fsum(logs))

    @property
    def delta_inf_exact(self) -> bool:
        seen = [(r.exact, n) for r, n in zip(self.rows, self.count, strict=True) if r.delta > 0]
        return not seen or (len(seen) == 1 and seen[0][0] and bool(seen[0][1] == 1))

    @property
    def largest(self) -> float:
        total = math.fsum(n * r.largest for r, n in zip(self.rows, self.count, strict=True))
        return raised(total, 4)

    @property
    def largest_lower(self) -> float:
        total = math.fsum(n * r.largest_lower for r, n in zip(self.rows, self.count, strict=True))
        return lowered(total, 4)

    @property
    def solved_by_closed_form(self) -> bool:
        return self._single or self._few is not None

    @cached_property
    def _few(self) -> FewUses | None:
        """A few uses of one density between two atoms, whose lines hardly fall."""
        density = self.rows[0].density
        if len(self.rows) > 1 or density is None or density.few is None or not 1 < self.count[0] <= MOST_USES:
            return None
        few = density.few[0](int(self.count[0]))
        return few if few.short else None

    @property
    def _single(self) -> bool:
        return bool(self.count.sum() == 1)

    @cached_property
    def lattice(self) -> Lattice | None:
        steps = self.lattice_steps()
        return None if steps is None else common_lattice(steps)

    def lattice_steps(self) -> list[Steps] | None:
        # values with an absolute error are on no lattice: next to a large mass even a tiny shift would count
        if any(r.density is not None or r.absolute != 0 for r in self.rows):
            return None
        return [Steps(r.values, int(n)) for r, n in zip(self.rows, self.count, strict=True)]

    def tables(self) -> list[tuple[Table, int]] | None:
        if any(r.density is not None for r in self.rows):
            return None
        return [(r, int(n)) for r, n in zip(self.rows, self.count, strict=True)]

    @property
    def densities(self) -> bool:
        return len(self.rows) <= MOST_ROWS and any(r.density is not None for r in self.rows)

    def brackets(self, log_delta: float) -> Brackets | None:
        if not self.densities:
            return None
        return Brackets(tuple(bracketed(r, log_delta) for r in self.rows), self.count)

    def rare_losses(self, rest: PrivacyLoss | None) -> RareLosses | None:
        members = list(zip(self.rows, self.count, strict=True))
        pairs = [(r.split, n) for r, n in members if r.split is not None]
        others = [(r, n) for r, n in members if r.split is None]
        if not pairs:
            return self._rare_tables(rest)
        if len(pairs) > _MOST_KINDS or (others and rest is not None):
            return None
        if others:
            rest = TableLoss(tuple(r for r, _ in others), np.array([n for _, n in others]))
        return PairedRare(tuple(p for p, _ in pairs), np.array([n for _, n in pairs]), rest)

    def _rare_tables(self, rest: PrivacyLoss | None) -> RareLosses | None:
        if len(self.rows) > _MOST_KINDS or any(r.density is not None for r in self.rows):
            return None
        return RareTables(self.rows, self.count, rest)

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c)

    def moments(self, c: float) -> tuple[float, float, float]:
        totals = [0.0, 0.0, 0.0]
        for row, n in zip(self.rows, self.count, strict=True):
            weights = row.tilted(c)
            first = float(weights @ row.values) if c else row.mean[0] / (1 - row.delta)
            second = float(weights @ (row.values - first) ** 2)
            k = _rough_log_mgf(row, c)
            totals = [a + float(n) * b for a, b in zip(totals, (k, first, second), strict=True)]
        return totals[0], totals[1], totals[2]

    def log_mgf_upper(self, c: Real) -> Real:
        found = []
        for point in c:
            at = self.vertical(float(point)).line(np.zeros(1), 1e-14)
            found.append(float(at.log_modulus[0] + at.error[0]))
        return np.array(found)

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        if self._single:
            return self.rows[0].hockey_stick(eps)
        if self._few is None or eps < 0:
            return None
        try:
            return self._few.hockey_stick(eps)
        except (TooExpensive, OverflowError):
            return None

    def closed_reading(self, log_delta: float) -> Reading | None:
        return None if self._few is None else self._few.reading(log_delta)

    def mean_bounds(self) -> tuple[float, float]:
        each = [
            (n * r.mean[0] / (1 - r.delta), n * r.mean[1] / (1 - r.delta))
            for r, n in zip(self.rows, self.count, strict=True)
        ]
        mean = math.fsum(m for m, _ in each)
        slack = math.fsum(e + 8 * UNIT * abs(m) for m, e in each)
        for row, n in zip(self.rows, self.count, strict=True):
            for extra in (row.missing, None if row.density is None else row.density.error):
                # Cauchy's estimate on |z| = 1/2: the derivative at 0 errs by at most twice the error around it
                slack += 0.0 if extra is None else float(2 * n * extra[0](0.5, np.full(1, 0.5))[0]) / (1 - row.delta)
        return mean - slack, mean + slack

    def weakest(self) -> TableLoss:
        best = max((r for r in self.rows), key=lambda r: r.largest)
        return TableLoss((best,), np.ones(1))


def _rough_log_mgf(row: Table, c: float) -> float:
    """K of one row to a few digits."""
    u = c * row.values
    if np.abs(u).max() > _LARGE:
        return float(row.log_mgf(c, np.zeros(1))[0][0])
    rise = float(row.masses @ (np.expm1(u) - u)) + c * row.mean[0]
    return math.log1p(max(rise / (1 - row.delta), -1 + 1e-15)) + math.log1p(-row.delta)


@dataclass(frozen=True, eq=False)
class _Vertical:
    loss: TableLoss
    c: float
    _sizes: dict[int, float] = field(default_factory=dict, repr=False)  # by the id of a row
    _seen: list[tuple[float, list[tuple[Real, Real] | None]]] = field(default_factory=list, repr=False)

    def line(self, t: Real, goal: float) -> LineValues:
        rows = self.loss.rows
        if sum(len(r.values) for r in rows) * len(t) > _MAX_WORK:
            raise TooExpensive("line of atoms")
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for row, times in zip(rows, self.loss.count, strict=True):
            block = max(1, _BLOCK // len(row.values))
            for start in range(0, len(t), block):
                at = slice(start, start + block)
                re, im, err = row.log_mgf(self.c, t[at])
                modulus[at] += times * re
                phase[at] += times * im
                error[at] += times * (err + 8 * UNIT * (np.abs(re) + np.abs(im)))
        return LineValues(modulus, phase, error + len(rows) * UNIT * (np.abs(modulus) + np.abs(phase)))

    def decay(self, t: float) -> float:
        """Atoms do not decay, densities fall like V/t."""
        total = 0.0
        for row, times, seen in zip(self.loss.rows, self.loss.count, self._seen_from(t), strict=True):
            if seen is not None:
                heights, highest = seen
                at = int(np.searchsorted(heights, t, side="right")) - 1
                near = float(highest[at]) if 0 <= at < len(highest) else 0.0 if at < 0 else -math.inf
                log = (
                    max(near, self._faded(row, max(t, float(heights[-1])))) if t < heights[-1] else self._faded(row, t)
                )
                total += float(times) * min(log, 0.0)
        return total

    def _faded(self, row: Table, t: float) -> float:
        """log |M(c+iu)/M(c)| <= this for all u >= t, by the variation of the density."""
        fade = row.fade(self.c)
        if fade is None:
            return 0.0
        most = fade[0] + fade[1] / max(t, 1e-9) + self._beyond(row)
        return padded_up(math.log(max(most, 1e-300)) - self._log_size(row), 1e-9, 1.0) if most < math.inf else 0.0

    def _beyond(self, row: Table) -> float:
        """What lies beyond the nodes of a density: it need not fade at all."""
        return 0.0 if row.missing is None else float(row.missing[0](self.c, np.zeros(1))[0])

    def _seen_from(self, t: float) -> list[tuple[Real, Real] | None]:
        """For each row with a density: heights from a little below t on, and from each on the largest
        log |M(c+it)/M(c)| up to the last (cells as in `numerics.sparse`): where a density is smooth this falls like a
        Gaussian long before V/t does."""
        if not self._seen or t < self._seen[0][0]:
            first = t / _BELOW
            members = zip(self.loss.rows, self.loss.count, strict=True)
            self._seen[:] = [(first, [self._seen_of(row, float(n), first) for row, n in members])]
        return self._seen[0][1]

    def _seen_of(self, row: Table, count: float, first: float) -> tuple[Real, Real] | None:
        if row.density is None:
            return None
        variance = self._variance(row)
        spread = 1 / math.sqrt(max(variance, 1e-300))
        # up to where the variation takes over
        atoms, variation = (x * math.exp(min(-self._log_size(row), 600.0)) for x in row.fade(self.c) or (1.0, 0.0))
        end = max(2 * variation / spread, 40.0)
        if count * (1 - atoms) > _MANY:  # even a part of what the atoms leave is enough
            end = min(end, max(4 * variation / (1 - atoms) / spread, 4.0))
        cells = int(min(end / _CELL, _MOST_CELLS))
        low = min(max(first / spread, 1e-6), 1.0)
        near = np.geomspace(low, 2.0, int(_PER_RATIO * math.log(2.0 / low)) + 2)
        heights = spread * np.concatenate([near, 2.0 + _CELL * np.arange(1, cells)])
        squares = self._squares(row, row.tilted(self.c), heights)
        rise = 0.25 * variance * np.diff(heights) ** 2
        logs = 0.5 * np.log(np.minimum(np.maximum(squares[1:], squares[:-1]) + rise, 1.0))
        return heights, padded_up(np.maximum.accumulate(logs[::-1])[::-1], 1e-15, 1.0)

    def _variance(self, row: Table) -> float:
        """Of the tilted loss, rounded up."""
        weights = row.tilted(self.c)
        centre = float(weights @ row.values)
        top = float(np.abs(row.values).max())
        # what lies beyond the nodes of a density carries next to nothing, or there is no line
        rest = 1e-12 if row.density is None else 1e-20
        if row.density is not None and math.log(max(self._beyond(row), 1e-300)) - self._log_size(row) > math.log(1e-25):
            raise TooExpensive("a tilt beyond the nodes")
        return padded_up(float(weights @ (row.values - centre) ** 2), 1e-9) + rest * top**2

    def _log_size(self, row: Table) -> float:
        """A lower bound on log M(c) of one row; -1e300 for none."""
        if id(row) not in self._sizes:
            re, _, error = row.log_mgf(self.c, np.zeros(1))
            self._sizes[id(row)] = float(re[0] - 2 * error[0]) if error[0] < 0.1 else -1e300
        return self._sizes[id(row)]

    def _squares(self, row: Table, weights: Real, t: Real) -> Real:
        """|M(c+it)/M(c)|^2, rounded up."""
        squares = np.empty(len(t))
        block = max(1, _BLOCK // len(row.values))
        for first in range(0, len(t), block):
            at = slice(first, first + block)
            if row.density is not None:
                squares[at] = self._smooth_squares(row, row.density, weights, t[at])
            else:
                squares[at] = turned(row.values, weights, t[at]) ** 2
        if row.density is None:
            top = float(np.abs(row.values).max())
            slack, wobble = float(np.max(row.slack)), float(np.max(row.wobble))
            squares += UNIT * (64 + 4 * slack + 2 * len(weights) + 4 * ((wobble + 8) * top + row.absolute) * t)
            if row.missing is not None:
                with np.errstate(divide="ignore"):
                    lost = np.log(row.missing[0](self.c, t)) - self._log_size(row)
                squares += 4 * np.exp(np.minimum(lost, 0.0))
        return squares

    def _smooth_squares(self, row: Table, density: Density, weights: Real, t: Real) -> Real:
        """The same with a density: a sum over nodes and their error, where that is small; what there is elsewhere."""
        size, top = self._log_size(row), float(np.abs(row.values).max())
        squares = np.empty(len(t))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            off = density.error[0](self.c, t) + (0.0 if row.missing is None else row.missing[0](self.c, t))
            off = off * math.exp(min(-size, 700.0))
            total = float(np.logaddexp.reduce(np.log(np.maximum(row.masses, 1e-320)) + self.c * row.values))
        rough = off < _ROUGH
        near = t[rough]
        found = turned(row.values, weights, near) * math.exp(min(total - size, 700.0))
        units = 64 + 4 * float(np.max(row.slack)) + 2 * len(weights)
        wrong = units + 4 * ((float(np.max(row.wobble)) + 8) * top + row.absolute) * near + 8 * self.c * top
        squares[rough] = np.minimum(found + off[rough] + UNIT * wrong * (1 + found), 1.0) ** 2
        if not np.all(rough):
            atoms, variation = row.fade(self.c) or (math.inf, 0.0)
            faded = (atoms + variation / np.maximum(t, 1e-9) + self._beyond(row)) * math.exp(min(-size, 700.0))
            squares[~rough] = padded_up(faded[~rough], 1e-9, 1.0) ** 2
            poor = ~rough & ~(faded < _FADED)
            if np.any(poor):
                re, _, error = row.log_mgf(self.c, t[poor])
                squares[poor] = np.exp(np.minimum(2 * (re + error) - 2 * size, 0.0))
        return squares

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        """y = |sum w_i e^(itv_i)|^2 at the edges, w the tilted masses."""
        if sum(len(r.values) for r in self.loss.rows) * count > _MAX_WORK / 2:
            raise TooExpensive("cells of atoms")
        total, edges = np.zeros(count), start + width * np.arange(count + 1)
        for row, times in zip(self.loss.rows, self.loss.count, strict=True):
            charge(1.0 * len(row.values) * len(edges))
            squares = self._squares(row, row.tilted(self.c), edges)
            variance = self._variance(row)
            most = np.minimum(np.maximum(squares[1:], squares[:-1]), 1.0)[None]
            fall = fall_below(most, np.array([[variance]]), width)[0]
            fade = row.fade(self.c)
            if fade is not None:
                most = fade[0] + fade[1] / np.maximum(edges[:-1], 1e-9) + self._beyond(row)
                log = np.log(np.maximum(most, 1e-300)) - self._log_size(row)
                fall = np.maximum(fall, -np.minimum(padded_up(log, 1e-9, 1.0), 0.0))
            total += times * fall
        return total
