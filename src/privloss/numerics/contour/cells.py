"""A line of one class that never dies out, as sums over atoms do not: worthwhile nodes only, and a tiny blur.

As in `sparse.py`, but what is known of a cell is a bound on |T_j| itself. The blur costs mu^2 times the density of the
class near eps (`line.py`); mu is chosen so that this is a small share of delta, and the line ends where e^(-mu^2 t^2/2)
has ended it. Where that is too far, the blur is wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privloss.numerics.contour.line import Line
from privloss.numerics.contour.transform import AtomSide, LineValues, TooExpensive
from privloss.numerics.floats import UNIT, Real, padded_up, raised

_BLUR = 1e-10  # share of delta that a blur may cost
_SKIPPED = 1e-11  # and that nodes left out may add
_CUT = math.log(1e-12)
_CELL = 2.0  # width, in units of one over the spread
_CHUNK = 65_536  # cells at a time
_MOST_CELLS, _MOST_NODES = 1_000_000, 250_000
_WIDER = 2.0


@dataclass(frozen=True)
class Place:
    """Where a line is wanted."""

    j: int
    c: float
    period: float
    eps: float
    log_delta: float
    log_share: float  # about the log of the density of the class at eps over c delta
    image_points: Real
    image_logs: Real  # upper bounds on log T_j there


def sparse_line(side: AtomSide, at: Place) -> Line:
    """With the smallest blur that can be afforded, down to one that costs hardly anything."""
    spread = max(side.spread(at.j, at.c), 1e-300)
    mu = math.sqrt(_BLUR * math.exp(min(max(-at.log_share, -40.0), 40.0)) / at.c) / max(at.c, 1.0)
    mu = min(mu, 0.01 / at.c)
    step = 2 * math.pi / at.period
    per_cell = max(1, int(_CELL / spread / step))
    width = per_cell * step
    mu = max(mu, 8.0 / (_MOST_CELLS * width))
    while mu * at.c < 1.0:
        found = _drawn(side, at, mu, step, per_cell)
        if found is not None:
            return found
        mu *= _WIDER
    raise TooExpensive("no blur is small enough")


def _drawn(side: AtomSide, at: Place, mu: float, step: float, per_cell: int) -> Line | None:
    j, c, width = at.j, at.c, per_cell * step
    log_start = float(side.log_upper(j, np.array([c]))[0])
    wish = log_start - c * at.eps - at.log_delta - _CUT
    height = math.sqrt(2 * max(wish - math.log(math.pi / mu), 1.0)) / mu
    cells = math.ceil(height / width)
    left = width * np.arange(cells)
    logs = np.concatenate([
        side.cells(j, c, first, width, min(_CHUNK, cells - first)) for first in range(0, cells, _CHUNK)
    ])
    density = np.exp(np.minimum(logs - log_start, 0.0) - 0.5 * (mu * left) ** 2) * (per_cell * step / math.pi)
    share = density / np.maximum(left**2, c * (c + 1))
    budget = _SKIPPED * math.exp(min(at.log_delta + c * at.eps - log_start, 600.0))
    order = np.argsort(share)
    keep = np.ones(cells, dtype=bool)
    keep[order[np.cumsum(share[order]) <= budget]] = False
    keep[0] = True
    kept = np.flatnonzero(keep)
    if len(kept) * per_cell > _MOST_NODES:
        return None
    index = (kept[:, None] * per_cell + np.arange(per_cell)).ravel()
    t = step * index
    values = _blurred(side.line(j, c, t), c, t, mu)
    at_c = float(values.log_modulus[0])
    room = padded_up(math.exp(min(log_start - at_c, 700.0)), 1e-6)
    bend = 0.5 * mu * mu
    end = float(cells * width)
    return Line(
        c=c,
        step=step,
        t=t,
        values=values,
        log_beyond=log_start - at_c + padded_up(bend * c * (c + 1), 1e-12) - padded_up(bend * end * end, -1e-12),
        image_points=at.image_points,
        image_logs=raised(at.image_logs - at_c + bend * at.image_points * (at.image_points + 1), 8, np.abs(at.image_logs) + abs(at_c)),
        largest=math.inf,
        lattice=None,
        mu=mu,
        height=end,
        skipped=float(share[~keep].sum()) * room,
        skipped_density=float(density[~keep].sum()) * room,
    )


def _blurred(values: LineValues, c: float, t: Real, mu: float) -> LineValues:
    """With an independent N(mu^2/2, mu^2) added to the loss."""
    bend = 0.5 * mu * mu
    real, imaginary = bend * (c * (c + 1) - t * t), bend * t * (2 * c + 1)
    size = np.abs(real) + np.abs(imaginary) + np.abs(values.log_modulus) + np.abs(values.phase)
    return LineValues(values.log_modulus + real, values.phase + imaginary, values.error + 8 * UNIT * size)
