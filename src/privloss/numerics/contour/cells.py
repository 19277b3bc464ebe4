"""A line of one class that never dies out, as sums over atoms do not: worthwhile nodes only, and a tiny blur.

As in `sparse.py`, but what is known of a cell is a bound on |T_j| itself. The blur costs mu^2 times the density of the
class near eps (`line.py`); mu is chosen so that this is a small share of delta, and the line ends where e^(-mu^2 t^2/2)
has ended it. Where that is too far, the blur is wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privloss.numerics.contour.line import Line
from privloss.numerics.contour.sparse import least
from privloss.numerics.contour.transform import AtomSide, LineValues, TooExpensive
from privloss.numerics.floats import UNIT, Complex, Real, padded_down, padded_up, raised

_BLUR_SHARE, _FINEST = 20.0, 1e-12  # share of delta that a blur may cost: this many times the tolerance
_SKIPPED = 0.005  # of that may be what nodes left out add
_CUT = math.log(1e-12)
_CELL, _COARSE = 2.0, 1.0  # width, in units of one over the spread of all steps, of a single one
_ROW, _PARTS = 64, 8  # cells looked at together: of the whole line, of a coarse cell
_CHUNK = 65_536  # cells at a time
_MOST_CELLS, _MOST_NODES = 1_000_000, 250_000
_CELL_WORK, _NODE_WORK = 30_000_000, 4_000_000  # the same times atoms
_WIDER, _WIDEST, _PATIENCE, _SURELY = 4.0, 0.01, 1, 12.0
_ATTEMPTS, _ENOUGH, _NARROWER = 8, 8.0, 0.05  # lines with other blurs, costs that are not worth another
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Place:
    """Where a line is wanted."""

    j: int
    c: float
    period: float
    eps: float
    log_delta: float
    log_kernel: float  # about the log of the integrand at its saddle, over delta
    tolerance: float
    image_points: Real
    image_logs: Real  # upper bounds on log T_j there

    @property
    def blur(self) -> float:
        """The share of delta that a blur may cost."""
        return min(max(_BLUR_SHARE * self.tolerance, _FINEST), 0.1)


def sparse_line(side: AtomSide, at: Place) -> Line:
    """With the smallest blur that can be afforded, down to one that costs hardly anything."""
    whole, single = side.spreads(at.j, at.c)
    # the class adds about e^kernel / (sqrt(2 pi) spread) to delta, and its density is c (c+1) times that
    log_density = at.log_kernel + math.log(at.c * (at.c + 1) / max(whole, 1e-300)) - _LOG_SQRT_2PI
    mu = min(math.sqrt(at.blur) * math.exp(-0.5 * max(log_density, -60.0)), _WIDEST / at.c)
    step = 2 * math.pi / at.period
    per_cell = max(1, int(_CELL / max(whole, 1e-300) / step))
    coarser = 2 ** max(int(math.log2(max(_COARSE / max(single, 1e-300) / (per_cell * step), 1.0))), 0)
    best: tuple[float, Line] | None = None
    for attempt in range(_ATTEMPTS):
        drawing = _Drawing(side, at, mu, step, per_cell, coarser)
        line = drawing.line() if mu * at.c < 1.0 else None
        if line is None:
            if best is not None or not mu * at.c < 1.0:
                break
            mu = max(_WIDER * mu, drawing.affordable if attempt >= _PATIENCE else 0.0)
            continue
        cost = _cost(line, at)
        if best is None or cost < best[0]:
            best = cost, line
        if cost < _ENOUGH * at.blur:
            break
        mu *= max(math.sqrt(at.blur / cost), _NARROWER)
    if best is None:
        raise TooExpensive("no blur is small enough")
    return best[1]


def _cost(line: Line, at: Place) -> float:
    """About the share of delta that the blur costs: more than was thought where the loss comes in clusters."""
    density = float((line.kernel * np.exp(1j * (line.values.phase - at.eps * line.t)) * _poles(line)).real.sum())
    log = float(line.values.log_modulus[0]) - line.c * at.eps - at.log_delta
    return line.mu**2 * max(density, 0.0) * math.exp(min(log, 600.0))


def _poles(line: Line) -> Complex:
    z = line.c + 1j * line.t
    return np.asarray(z * (z + 1), dtype=complex)


@dataclass(frozen=True, eq=False)
class _Drawing:
    side: AtomSide
    at: Place
    mu: float
    step: float
    per_cell: int  # nodes
    coarser: int  # cells that are first looked at as one: a power of two

    @cached_property
    def log_start(self) -> float:
        """An upper bound on log T_j(c)."""
        return float(self.side.log_upper(self.at.j, np.array([self.at.c]))[0])

    @property
    def most_cells(self) -> float:
        return min(_MOST_CELLS, _CELL_WORK / max(self.side.atoms, 1))

    @property
    def most_nodes(self) -> float:
        return min(_MOST_NODES, _NODE_WORK / max(self.side.atoms, 1))

    @property
    def affordable(self) -> float:
        """A blur that ends the line before it has too many nodes, even if all of them matter."""
        return _SURELY / (min(self.most_nodes, self.most_cells * self.per_cell) * self.step)

    @property
    def width(self) -> float:
        return self.per_cell * self.step

    @cached_property
    def cells(self) -> int:
        """How many there are up to where the blur has ended the line."""
        wish = self.log_start - self.at.c * self.at.eps - self.at.log_delta - _CUT
        height = math.sqrt(2 * max(wish - math.log(math.pi / self.mu), 1.0)) / self.mu
        return max(math.ceil(height / self.width / self.coarser), 1) * self.coarser

    def worthwhile(self) -> tuple[Whole, float, float] | None:
        """Cells that matter, and what all others add to the sums over 1/t^2 and over 1 on the scale of T_j(c); None if
        there are too many."""
        budget = (
            _SKIPPED * self.at.blur * math.exp(min(self.at.log_delta + self.at.c * self.at.eps - self.log_start, 600.0))
        )
        size, row, lost, lost_density = self.coarser, _ROW, 0.0, 0.0
        count = self.cells // size
        if count > self.most_cells:
            return None
        first = np.arange(0, self.cells, size * row, dtype=np.int64)
        index, share, density = (found.ravel()[:count] for found in self._rows(first, size, row))
        while size > 1:
            matter = (share > 0.5 * budget * size / self.cells) | (index == 0)
            lost, lost_density = lost + float(share[~matter].sum()), lost_density + float(density[~matter].sum())
            row = min(_PARTS, size)
            size //= row
            if matter.sum() * row > self.most_cells:
                return None
            index, share, density = (found.ravel() for found in self._rows(index[matter], size, row))
        keep = ~least(np.asarray(share, dtype=float), 0.5 * budget)
        keep[index == 0] = True
        lost, lost_density = lost + float(share[~keep].sum()), lost_density + float(density[~keep].sum())
        return np.sort(index[keep]), lost, lost_density

    def _rows(self, starts: Whole, size: int, count: int) -> tuple[Whole, Real, Real]:
        """For `count` groups of so many cells from each start on: the first cell, and what all nodes in the group may
        add to the sums over 1/t^2 and over 1."""
        at, wide = self.at, size * self.width
        index = starts[:, None] + size * np.arange(count, dtype=np.int64)
        most = max(1, _CHUNK // count)
        parts = [
            self.side.cells(at.j, at.c, self.width * starts[i : i + most], wide, count)
            for i in range(0, len(starts), most)
        ]
        logs = np.concatenate([np.zeros((0, count)), *parts]) - self.log_start
        left = self.width * index
        density = np.exp(np.minimum(logs, 0.0) - 0.5 * (self.mu * left) ** 2) * (
            size * self.per_cell * self.step / math.pi
        )
        return index, density / np.maximum(left**2, at.c * (at.c + 1)), density

    def line(self) -> Line | None:
        """None if it has too many nodes."""
        found = self.worthwhile()
        if found is None or len(found[0]) * self.per_cell > self.most_nodes:
            return None
        kept, skipped, skipped_density = found
        at, c, bend = self.at, self.at.c, 0.5 * self.mu * self.mu
        t = self.step * (kept[:, None] * self.per_cell + np.arange(self.per_cell)).ravel()
        values = _blurred(self.side.line(at.j, c, t), c, t, self.mu)
        at_c, end = float(values.log_modulus[0]), self.cells * self.width - self.step
        room = padded_up(math.exp(min(self.log_start + bend * c * (c + 1) - at_c, 700.0)), 1e-6)
        # beyond its end the line stays below T_j(c), and falls with the blur
        beyond = self.log_start - at_c + padded_up(bend * c * (c + 1), 1e-12) - padded_down(bend * end * end, 1e-12)
        logs = at.image_logs - at_c + bend * at.image_points * (at.image_points + 1)
        return Line(
            c=c,
            step=self.step,
            t=t,
            values=values,
            log_beyond=beyond,
            image_points=at.image_points,
            image_logs=raised(logs, 8, np.abs(at.image_logs) + abs(at_c) + np.abs(logs)),
            largest=math.inf,
            lattice=None,
            mu=self.mu,
            height=end,
            skipped=skipped * room,
            skipped_density=skipped_density * room,
        )


def _blurred(values: LineValues, c: float, t: Real, mu: float) -> LineValues:
    """With an independent N(mu^2/2, mu^2) added to the loss."""
    bend = 0.5 * mu * mu
    real, imaginary = bend * (c * (c + 1) - t * t), bend * t * (2 * c + 1)
    size = np.abs(real) + np.abs(imaginary) + np.abs(values.log_modulus) + np.abs(values.phase)
    return LineValues(values.log_modulus + real, values.phase + imaginary, values.error + 8 * UNIT * size)
