"""Which nodes of a long line are worth evaluating.

Atoms keep |e^K(c+it)| from dying out, but away from the few heights where many of them resonate it is tiny. Cut the
line into cells; on each, `Vertical.cells` proves a fall F with |e^K(c+it)| <= e^(K(c) - F). Nodes of cells that add
next to nothing are left out, and what they could have added is kept as an error.

How a fall is proven on a cell: for any random variable X, y(t) = |E e^(itX)|^2 = E cos(t (X - X')) has
|y''| <= 2 Var X, so between two heights at distance w it exceeds the larger end value by at most Var X w^2/4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing

from privloss.numerics.contour.transform import TooExpensive, Vertical
from privloss.numerics.floats import Real, padded_up

MAX_CELLS = 1_000_000
_MAX_NODES = 400_000
_CHUNK = 65_536
_ROUNDED = 1e-9  # more than the rounding of a sum of shares
_UP = padded_up(1.0, 1e-12)


@dataclass(frozen=True)
class Nodes:
    """Indices n of nodes t = n * step, and bounds on what the others up to the end would add, on the scale e^K(c):
    to the sum over 1/t^2 (for delta) and to the plain sum (for a density)."""

    index: np.typing.NDArray[np.int64]
    skipped: float
    skipped_density: float


def fall_below(squares: Real, variance: Real, width: float) -> Real:
    """The fall -1/2 log y on each cell from the larger y at its edges; arrays (rows, cells), `variance` (rows, 1)."""
    most = squares + 0.25 * width * width * variance
    return np.asarray(-0.5 * np.log(np.minimum(most * _UP + 1e-300, 1.0)))


def least(share: Real, budget: float) -> np.typing.NDArray[np.bool_]:
    """Which shares are the smallest, as many as together stay within the budget (up to the rounding of their sum).

    >>> least(np.array([0.3, 1e-9, 0.5, 0.1]), 0.5)
    array([ True,  True, False,  True])
    """
    found = np.asarray(share <= 0.1 * budget / len(share))  # together a tenth at most; only the others are sorted
    rest = np.flatnonzero(~found & (share <= budget))
    rest = rest[np.argsort(share[rest])]
    found[rest[float(share[found].sum()) + np.cumsum(share[rest]) <= budget]] = True
    return found


def worthwhile(
    vertical: Vertical, c: float, step: float, last: int, variance: float, budget: float, mu: float = 0.0
) -> Nodes:
    """Nodes 0..last but for those that together add less than `budget` to the sum over 1/t^2."""
    per_cell = max(1, int(2.0 / math.sqrt(max(variance, 1e-300)) / step))
    cells = last // per_cell + 1
    if cells > MAX_CELLS:
        raise TooExpensive(f"{cells} cells")
    width = per_cell * step
    # a cell that falls this far cannot matter: all of them together stay within a tenth of the budget
    enough = math.log(10 * cells * width / (math.pi * c * (c + 1)) / budget) if budget > 0 else math.inf
    parts = [
        vertical.cells(start * width, width, min(_CHUNK, cells - start), max(enough, 1.0))
        for start in range(0, cells, _CHUNK)
    ]
    left = width * np.arange(cells)
    fall = np.concatenate(parts) + 0.5 * (mu * left) ** 2
    density = np.exp(-np.minimum(fall, 700.0)) * (per_cell * step / math.pi)
    share = density / np.maximum(left**2, c * (c + 1))
    keep = ~least(share, budget)
    keep[0] = True
    kept = np.flatnonzero(keep)
    if len(kept) * per_cell > _MAX_NODES:
        raise TooExpensive(f"{len(kept) * per_cell} nodes")
    index = (kept[:, None] * per_cell + np.arange(per_cell)).ravel().astype(np.int64)
    skipped, skipped_density = (padded_up(float(s[~keep].sum()), _ROUNDED) for s in (share, density))
    return Nodes(index[index <= last], skipped, skipped_density)
