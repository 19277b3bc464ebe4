"""Where to split a composition of tables by its largest loss: searched, any choice is sound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.signal import lfilter

from privloss.losses.base import PrivacyLoss
from privloss.losses.table.classes import TableSide
from privloss.losses.table.marked import MarkedTable
from privloss.losses.table.table import Table
from privloss.numerics.floats import Real

_LOWEST, _BULK, _RATIO, _TOP = 1 / 12, 2.0, 2.0, 4.0  # classes, in units of eps and of the spread of the bulk
_USUAL = 1.0  # times that a loss is expected, below which it does not belong to the bulk
_LEFT = 1e-14  # share of delta that outcomes without a class may have
_SIZE, _NOISE = 4096, 1e-15  # of the grid, and of its transform
_SMALL, _SELDOM = 1e-13, 1e-3  # deltas that the grid cannot show, and rarer losses that do not decide them
_ROOM, _LEFT_SHARE = 9.0, 0.4  # standard deviations on either side, and how much of the grid lies below 0
_BLUR = 2.4  # steps of the grid: what it cannot show is gone


@dataclass(frozen=True, eq=False)
class RareTables:
    """Tables with their counts, and the rest of a plan in the same direction."""

    rows: tuple[Table, ...]
    counts: Real
    rest: PrivacyLoss | None

    def decisive(self, eps: float, log_delta: float) -> bool:
        # alone, a single line is a class of its own; what stands beside may let it fall
        return self.rest is None or self._single(_SELDOM * math.exp(max(log_delta, -680.0))) > eps

    def rough_epsilon(self, log_delta: float) -> float:
        """About the eps that belongs to delta; nan where the grid cannot tell."""
        delta = math.exp(max(log_delta, -700.0))
        if delta < _SMALL:
            return self._tilted(log_delta)
        grid, profile = self._rough(self._single(delta))
        if not profile[0] > delta:
            return math.nan
        i = int(np.argmax(profile < delta))
        if not i:
            return math.nan
        low, high = math.log(profile[i - 1]), math.log(max(profile[i], 1e-300))
        return float(grid[i - 1] + (grid[i] - grid[i - 1]) * (low - math.log(delta)) / max(low - high, 1e-300))

    def rough_log_delta(self, eps: float) -> float:
        grid, profile = self._rough(eps)
        return float(np.interp(eps, grid, np.log(np.maximum(profile, _NOISE))))

    def _tilted(self, log_delta: float) -> float:
        """By Chernoff's bound without losses far rarer than delta, where the grid sees nothing but noise."""
        single = self._single(math.exp(max(log_delta, -690.0)))
        c = np.geomspace(0.05, 500.0, 120) / max(single, self._bulk(single))
        total = np.zeros(len(c)) if self.rest is None else self.rest.log_mgf_upper(c)
        with np.errstate(all="ignore"):
            for (v, m, expected), n in zip(self._sorted, self.counts, strict=True):
                seen = expected >= _SELDOM * math.exp(max(log_delta, -680.0))
                total = total + n * np.log(np.exp(np.multiply.outer(c, v[seen])) @ m[seen])
            found = (total - log_delta) / c
        return float(np.nanmin(found)) if np.any(np.isfinite(found)) else math.nan

    @cached_property
    def _sorted(self) -> list[tuple[Real, Real, Real]]:
        """Losses falling, their masses, and how often the larger ones are expected."""
        found = []
        for row, n in zip(self.rows, self.counts, strict=True):
            order = np.argsort(-row.values)
            found.append((row.values[order], row.masses[order], n * np.cumsum(row.masses[order])))
        return found

    def _single(self, delta: float) -> float:
        """The loss that single steps exceed about that often."""
        largest = [float(v[int(np.argmax(n >= delta))]) for v, _, n in self._sorted]
        return max(*largest, 1e-12)

    def _rough(self, eps: float) -> tuple[Real, Real]:
        """delta on a grid of losses, slightly blurred, for an eps in mind."""
        mean = spread = 0.0
        if self.rest is not None:
            _, mean, spread = self.rest.moments(0.0)
        for (v, m, _), n in zip(self._sorted, self.counts, strict=True):
            low = np.minimum(v, eps)
            mean, spread = mean + n * float(m @ low), spread + n * float(m @ (low * low))
        room = _ROOM * math.sqrt(max(spread, 0.0)) + 1e-300
        reach = max(mean, 0.0) + room + 6 * max(eps, 0.0)
        step = max(reach / (1 - _LEFT_SHARE), room / _LEFT_SHARE) / _SIZE
        zero = int(_LEFT_SHARE * _SIZE)
        grid = step * (np.arange(_SIZE) - zero)
        t = 2 * math.pi * np.fft.rfftfreq(_SIZE, step)
        log_phi = -0.5 * (_BLUR * step * t) ** 2 + 0j
        with np.errstate(all="ignore"):
            for (v, m, _), n in zip(self._sorted, self.counts, strict=True):
                near = (v < reach) & (m > 1e-25)
                log_phi = log_phi + n * np.log(np.exp(1j * np.multiply.outer(t, v[near])) @ m[near])
            if self.rest is not None:
                line = self.rest.vertical(1e-9).line(t, 1e-4)
                log_phi = log_phi + line.log_modulus + 1j * line.phase
            density = np.roll(np.fft.irfft(np.conj(np.exp(log_phi)), _SIZE), zero)
            far = sum(n * float(m[v >= reach].sum()) for (v, m, _), n in zip(self._sorted, self.counts, strict=True))
            above = np.cumsum(density[::-1])[::-1] - density
            # the integral of e^(x - y) P[Z > y] over y > x
            profile = step * lfilter([1.0], [1.0, -math.exp(-step)], above[::-1])[::-1] + far
        positive = grid > 0
        return grid[positive], np.where(np.isfinite(profile[positive]), profile[positive], 1.0)

    def sides(self, eps: float, log_delta: float) -> tuple[TableSide, TableSide]:
        """All classes, forward and backward, for reading near eps."""
        levels = self._levels(eps)
        marks = []
        for row, n in zip(self.rows, self.counts, strict=True):
            found = np.searchsorted(levels, row.values, side="left").astype(np.int64)
            order = np.argsort(row.masses)
            never = np.cumsum(row.masses[order]) * n * len(self.rows) < _LEFT * math.exp(max(log_delta, -690.0))
            found[order[never]] = len(levels) + 1
            marks.append(found)
        used = np.unique(np.concatenate([[0], *(m[m <= len(levels)] for m in marks)]))
        last = len(used)
        steps = tuple(
            MarkedTable(row, np.where(m > len(levels), last, np.searchsorted(used, m)), last)
            for row, m in zip(self.rows, marks, strict=True)
        )
        tops = np.append(levels, max(float(row.values.max()) for row in self.rows))[used]
        turned = tuple(step.turned() for step in steps)
        back = None if self.rest is None else self.rest.reversed()
        return TableSide(steps, self.counts, self.rest, tops), TableSide(turned, self.counts, back, tops)

    def _levels(self, eps: float) -> Real:
        """Largest losses of classes, from the bulk to well above eps."""
        bulk = self._bulk(eps)
        lowest = max(_BULK * bulk, _LOWEST * eps)
        top = max(_TOP * eps, 2 * _RATIO * lowest, 2.5 * (eps + 9 * bulk))
        count = max(int(math.log(top / lowest) / math.log(_RATIO)), 1)
        return np.asarray(top * _RATIO ** np.arange(-count, 1.0))

    def _bulk(self, eps: float) -> float:
        """The standard deviation of all losses; those above eps count as eps, and of each kind those that are not even
        expected once in a while as the largest that is."""
        total = 0.0 if self.rest is None else max(self.rest.moments(0.0)[2], 0.0)
        for (v, m, expected), n in zip(self._sorted, self.counts, strict=True):
            usual = float(v[int(np.argmax(expected >= _USUAL))]) if expected[-1] >= _USUAL else eps
            total += n * float(m @ np.minimum(v, min(max(usual, 0.0), eps)) ** 2)
        return math.sqrt(total)
