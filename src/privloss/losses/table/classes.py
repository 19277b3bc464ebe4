"""The transforms T_j of "the largest mark of all steps is j" for tables (identity in `losses/mixture/largest.py`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.losses.class_mass import Marks, class_mass
from privloss.losses.mixture.largest import LARGE, expm1_polar
from privloss.losses.table.marked import MarkedTable, Outcomes
from privloss.numerics.contour.transform import LineValues
from privloss.numerics.floats import UNIT, Real, padded_up
from privloss.numerics.stable import log1p_polar
from privloss.numerics.work import charge

_LEAST = 1e-320
_FEW_STARTS, _ENOUGH = 2_000, 60.0  # rows of cells for which steps of other kinds are asked, and the fall wanted
_ROW = 2e4  # evaluations that take as long as asking one of them for one row


@dataclass(frozen=True, eq=False)
class TableSide:
    """All classes of some kinds of table with counts, and the rest of a plan, in one direction."""

    steps: tuple[MarkedTable, ...]
    counts: Real
    rest: PrivacyLoss | None
    levels: Real  # the largest losses of the classes, in the direction P against Q
    reaches_up: bool = True  # what may never come is bounded by its mass, all else is finite
    falls: bool = False  # a blur is needed
    _real: dict[tuple[int, float], tuple[float, float]] = field(default_factory=dict, repr=False)

    @property
    def classes(self) -> int:
        return self.steps[0].last + 1

    @property
    def atoms(self) -> int:
        return sum(int((step.marks < step.last).sum()) for step in self.steps)

    def scale(self, j: int) -> float:
        return float(self.levels[min(j, len(self.levels) - 1)])

    @cached_property
    def _rest_upper(self) -> dict[float, float]:
        return {}

    def _other(self, c: float) -> float:
        """An upper bound on K(c) of the rest."""
        if self.rest is None or c == 0:
            return 0.0
        if c not in self._rest_upper:
            self._rest_upper[c] = float(self.rest.log_mgf_upper(np.array([c]))[0])
        return self._rest_upper[c]

    # -- on the axis ---------------------------------------------------------------------------------------------------

    def guesses(self, c: Real) -> Real:
        """log T_j at real points c, (classes, len(c)), to a few digits: for searching only."""
        base = np.zeros(len(c))
        found = []
        with np.errstate(all="ignore"):
            for j in range(self.classes - 1):
                rise = np.zeros(len(c))
                for step, n in zip(self.steps, self.counts, strict=True):
                    if not j:
                        part = step.below(0)
                        u = np.multiply.outer(c, part.values)
                        each = np.where(np.abs(u) < 1e-3, 0.5 * u * u * (1 + u / 3), np.exp(u) - 1 - u)
                        base = base + n * np.log1p(each @ part.masses + c * part.mean - part.others)
                        continue
                    own = step.own(j)
                    ahead = np.exp(np.multiply.outer(c, own.values)) @ own.masses
                    rise = rise + n * np.log1p(ahead / self._guessed(step, j - 1, c))
                found.append(base if not j else base + np.where(rise > LARGE, rise, np.log(np.expm1(rise))))
                base = base + rise
            last = math.log(max(self.mass(self.classes - 1)[1], _LEAST))
            found.append(np.where(c < 0.5 * float(c.max()) * 1e-6, last, np.inf))
        other = 0.0 if self.rest is None else self.rest.log_mgf_upper(np.maximum(c, 1e-12))
        total = np.array(found) + other
        return np.where(np.isnan(total), np.inf, total)

    def _guessed(self, step: MarkedTable, j: int, c: Real) -> Real:
        part = step.below(j)
        return np.asarray(np.exp(np.multiply.outer(c, part.values)) @ part.masses)

    def log_upper(self, j: int, c: Real) -> Real:
        """Upper bounds on log T_j at real points c >= 0."""
        return np.array([self._log_upper(j, float(point)) for point in c])

    def _log_upper(self, j: int, c: float) -> float:
        if j == self.classes - 1 and c > 0:
            return math.inf
        if c == 0 and j:
            return padded_up(math.log(max(self.mass(j)[1], _LEAST)), 1e-13, 1.0)
        found = self.line(j, c, np.zeros(1))
        log = float(found.log_modulus[0])
        return padded_up(log + float(found.error[0]), 1e-13, 1 + abs(log)) if math.isfinite(log) else math.inf

    def mass(self, j: int) -> tuple[float, float]:
        """An interval for T_j(0), 1 <= j: without marks nothing is left."""
        kinds = zip(self.steps, self.counts, strict=True)
        return class_mass((Marks(*step.mass_of(j), *step.rare_mass(j - 1), n) for step, n in kinds), self.rest)

    # -- on a line -----------------------------------------------------------------------------------------------------

    def line(self, j: int, c: float, t: Real) -> LineValues:
        """T_j on Re z = c at any heights t."""
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        rise, rise_error = np.zeros_like(t, dtype=complex), np.zeros_like(t)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            for step, n in zip(self.steps, self.counts, strict=True):
                below = step.below(max(j - 1, 0)).minus_1(c, t)
                log_abs, arg = log1p_polar(below.value.real, below.value.imag)
                log_abs = np.maximum(log_abs, -600.0)  # an exact zero must not hide its error
                share = below.error * np.exp(-log_abs)
                modulus, phase = modulus + n * log_abs, phase + n * arg
                error = error + n * np.log1p(share) + 8 * UNIT * n * (np.abs(log_abs) + np.abs(arg))
                if not j:
                    continue
                own = step.own(j).transform(c, t)
                ratio = own.value / (1 + below.value)
                off = (own.error + np.abs(ratio) * below.error) * np.exp(-log_abs) / np.maximum(1 - share, 1e-300)
                log_abs, arg = log1p_polar(ratio.real, ratio.imag)
                off = np.where(share < 1, off + 8 * UNIT * np.abs(ratio), np.inf) * np.exp(-log_abs)
                rise = rise + n * (log_abs + 1j * arg)
                # |log(1 + x)| <= -log(1 - |x|), which is below 1.4 |x| up to 1/2
                each = np.where(off < 0.5, 1.4 * off, np.where(off < 1, -np.log1p(-np.minimum(off, 1.0)), np.inf))
                rise_error = rise_error + n * (each + 8 * UNIT * (np.abs(log_abs) + np.abs(arg)))
            if j:
                log_abs, arg, extra = expm1_polar(rise, rise_error)
                modulus, phase, error = modulus + log_abs, phase + arg, error + extra
        if self.rest is not None:
            other = self.rest.vertical(c).line(t, 1e-13)
            modulus, phase = modulus + other.log_modulus, phase + other.phase
            error = error + other.error + 4 * UNIT * (np.abs(modulus) + np.abs(phase))
        return LineValues(modulus, phase, np.where(np.isnan(error), np.inf, error))

    def spreads(self, j: int, c: float) -> tuple[float, float]:
        """About the standard deviation of the tilted loss, of all steps and of one: for searching only."""
        total, widest = 0.0 if self.rest is None else max(self.rest.moments(max(c, 1e-12))[2], 0.0), 0.0
        for step, n in zip(self.steps, self.counts, strict=True):
            own = step.below(j if j < step.last else 0).variance(c)
            total, widest = total + n * own, max(widest, own)
        return math.sqrt(total), math.sqrt(widest)

    def cells(self, j: int, c: float, starts: Real, width: float, count: int) -> Real:
        """log of upper bounds on |T_j(c + it)| on `count` cells of a width from each start on.

        |prod (b + m)^n - prod b^n| is at most prod (|b| + |m|)^n - prod |b|^n, which rises with |b| and |m|, and
        at most prod |b + m|^n + prod |b|^n.
        """
        base, rise, high = (np.zeros((len(starts), count)) for _ in range(3))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for step, n in zip(self.steps, self.counts, strict=True):
                before = step.below(max(j - 1, 0))
                log_b = self._at(before, c) - before.falls(c, starts, width, count)
                base = base + n * log_b
                if not j:
                    continue
                own, after = step.own(j), step.below(j)
                log_m = math.log(max(own.tilted_sum(c), _LEAST))
                rise = rise + n * np.logaddexp(0.0, log_m - log_b)
                high = high + n * (self._at(after, c) - after.falls(c, starts, width, count))
            if j:
                grown = base + np.where(
                    rise > LARGE, rise, np.log(np.maximum(np.expm1(np.minimum(rise, LARGE)), _LEAST))
                )
                base = np.minimum(grown, np.logaddexp(high, base))
        if self.rest is not None:
            vertical = self.rest.vertical(c)
            base = base + self._other(c)
            if len(starts) <= _FEW_STARTS:
                charge(_ROW * len(starts) * self.rest.kinds)
                base = base - np.array([vertical.cells(float(start), width, count, _ENOUGH) for start in starts])
        return np.asarray(padded_up(np.where(np.isnan(base), np.inf, base), 1e-12, 1 + np.abs(base)))

    def _at(self, part: Outcomes, c: float) -> float:
        """An upper bound on log E[e^(cZ); these]."""
        found = part.minus_1(c, np.zeros(1))
        return math.log1p(float(found.value[0].real) + float(found.error[0])) + 8 * UNIT
