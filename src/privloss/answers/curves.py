"""epsilon at many deltas, delta at many epsilons: neighbours share their lines.

The middle one of the open questions is answered by itself; what its lines answer well enough besides is taken from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from privloss.numerics.bound import Bound
from privloss.numerics.contour.largest import SplitReading
from privloss.numerics.contour.line import Line
from privloss.numerics.contour.many import epsilons
from privloss.numerics.contour.solve import Solved
from privloss.numerics.floats import Real

SHARED = "read on a shared line"
_GOOD = 1e-9  # relative width that is good enough to be shared, at least
_FEW = 3  # questions that are not worth sharing

Drawn = tuple[Line | SplitReading, float]  # what was drawn, and the eps that it was drawn for


def drawn(solved: Solved | None) -> Drawn | None:
    """The lines behind an answer, if they can be read elsewhere."""
    if solved is None or not 0 < solved.upper < math.inf:
        return None
    if solved.classes is not None:
        return solved.classes, solved.upper
    if solved.line is None or solved.line.lattice is not None or solved.line.mu > 0:
        return None
    return solved.line, solved.upper


def many_epsilons(
    deltas: Sequence[float],
    tolerance: float,
    ask: Callable[[float], tuple[Bound, list[Drawn | None]]],
    levels: Callable[[int, float], tuple[float, float] | None],
) -> list[Bound]:
    """`ask` answers one delta and says what was drawn in each direction; `levels` gives the logs of the interval of
    delta less its mass at infinity, in a direction."""
    found: dict[int, Bound] = {}
    order = sorted(range(len(deltas)), key=lambda i: deltas[i])
    while len(found) < len(deltas):
        still = [i for i in order if i not in found]
        middle = still[len(still) // 2]
        answer, lines = ask(deltas[middle])
        found[middle] = answer
        others = [i for i in still if i != middle]
        if len(others) < _FEW or any(line is None for line in lines):
            continue
        ends = [_read(line, [levels(k, deltas[i]) for i in others]) for k, line in enumerate(lines) if line is not None]
        lower, upper = np.max([e[0] for e in ends], axis=0), np.max([e[1] for e in ends], axis=0)
        for i, low, high in zip(others, lower, upper, strict=True):
            if 0 < low <= high <= low * (1 + max(_GOOD, tolerance)):
                found[i] = Bound(float(low), float(high), answer.method, (*answer.notes, SHARED))
    return [found[i] for i in range(len(deltas))]


def _read(line: Drawn, levels: list[tuple[float, float] | None]) -> tuple[Real, Real]:
    known = [i for i, level in enumerate(levels) if level is not None and math.isfinite(level[0])]
    lower, upper = np.full(len(levels), -math.inf), np.full(len(levels), math.inf)
    if known:
        pairs = np.array([levels[i] for i in known], dtype=float).T
        lower[known], upper[known] = epsilons(line[0], line[1], pairs)
    return lower, upper
