"""epsilon at many deltas, delta at many epsilons: neighbours share their lines.

The middle one of the open questions is answered by itself; what its lines answer well enough besides, they answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from privloss.numerics.bound import Bound
from privloss.numerics.contour.line import Line
from privloss.numerics.contour.many import Silent, epsilons, log_bounds
from privloss.numerics.contour.reading import SplitReading
from privloss.numerics.contour.solve import DeltaRead, Solved
from privloss.numerics.floats import Real

METHOD, SHARED = "exact privacy loss (contour)", "read on a shared line"
_REACH = 4.0  # how far from its own eps a line is read, as a factor
_GOOD = 1e-9  # relative width that is good enough to be shared, at least
_FEW = 3  # questions that are not worth sharing

Drawn = tuple[Line | SplitReading | Silent, float]  # what was drawn, and the eps that it was drawn for


def drawn(found: Solved | DeltaRead | None, eps: float) -> Drawn | None:
    """The lines behind an answer, if they can be read elsewhere."""
    if found is None or not 0 < eps < math.inf:
        return None
    if found.classes is not None:
        return found.classes, eps
    if found.line is None or found.line.lattice is not None or found.line.mu > 0:
        return None
    return found.line, eps


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


def many_deltas(
    eps: Sequence[float],
    tolerance: float,
    ask: Callable[[float], tuple[Bound, list[Drawn | None]]],
    whole: Callable[[int, tuple[float, float]], tuple[float, float]],
    known: list[list[Drawn]],
) -> list[Bound]:
    """The same for delta: `whole` turns logs of bounds in a direction into bounds on delta. Lines `known` from earlier
    questions are read first, and new ones are added."""
    found: dict[int, Bound] = {}
    order = sorted(range(len(eps)), key=lambda i: eps[i])

    def read(lines: list[Drawn]) -> None:
        others = [i for i in order if i not in found and lines[0][1] / _REACH < eps[i] < lines[0][1] * _REACH]
        if not others:
            return
        points = np.array([eps[i] for i in others])
        logs = [log_bounds(line[0], points) for line in lines]
        for n, i in enumerate(others):
            ends = [whole(k, (float(low[n]), min(float(high[n]), 0.0))) for k, (low, high) in enumerate(logs)]
            low, high = max(e[0] for e in ends), max(e[1] for e in ends)
            if 0 < low <= high <= low * (1 + max(_GOOD, tolerance)):
                found[i] = Bound(low, high, METHOD, (SHARED,))

    for lines in known:
        read(lines)
    while len(found) < len(eps):
        still = [i for i in order if i not in found]
        middle = still[len(still) // 2]
        found[middle], drawn_now = ask(eps[middle])
        lines = [line for line in drawn_now if line is not None]
        if len(lines) == len(drawn_now):
            known.append(lines)
            read(lines)
    return [found[i] for i in range(len(eps))]


def _read(line: Drawn, levels: list[tuple[float, float] | None]) -> tuple[Real, Real]:
    known = [i for i, level in enumerate(levels) if level is not None and math.isfinite(level[0])]
    lower, upper = np.full(len(levels), -math.inf), np.full(len(levels), math.inf)
    if known:
        pairs = np.array([levels[i] for i in known], dtype=float).T
        lower[known], upper[known] = epsilons(line[0], line[1], pairs)
    return lower, upper
