"""epsilon at many deltas, delta at many epsilons: neighbours share their lines.

The middle one of the open questions is answered by itself; what its lines answer well enough besides, they answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from privloss.losses.composed import ComposedLoss
from privloss.numerics.bound import Bound
from privloss.numerics.contour.many import Readable, epsilons
from privloss.numerics.contour.solve import Solved, readable_line
from privloss.numerics.contour.transform import TooExpensive, log_kappa
from privloss.numerics.floats import Real, raised

METHOD, SHARED = "exact privacy loss (contour)", "read on a shared line"
_GOOD = 1e-9  # relative width that is good enough to be shared, at least
_WIDER, _WIDEST = 3.0, 3e-7  # times the width where a line was drawn that are good enough, up to a limit
_FEW = 3  # questions that are not worth sharing
_IDLE = 2  # lines in a row that answered one question each

Drawn = tuple[Readable, float]  # what was drawn, and the eps that it was drawn for


def drawn(found: Solved | None, eps: float) -> Drawn | None:
    """The lines behind an epsilon, if they can be read elsewhere."""
    if found is None or not 0 < eps < math.inf:
        return None
    if found.classes is not None:
        return found.classes, eps
    line = readable_line(found.line)
    return None if line is None else (line, eps)


class Glance:
    """A direction that need not be read where one look shows that it stays below the other: beyond its largest loss, or
    by moments, kappa(c) e^(K(c) - c eps) <= delta at one of a few c (Prop. cdp2adp)."""

    def __init__(self, loss: ComposedLoss, eps: float) -> None:
        self.largest, self.c = loss.largest, np.geomspace(2.0, 500.0, 12) / eps
        try:
            self.log_mgf = loss.log_mgf_upper(self.c)
        except TooExpensive:
            self.log_mgf = np.full_like(self.c, math.inf)

    def at_most(self, eps: Real, log_delta: Real) -> NDArray[np.bool_]:
        """Whether delta(eps) <= delta is shown, at many places; arrays of one length."""
        rest, at = (self.log_mgf + log_kappa(self.c))[:, None], self.c[:, None] * eps
        with np.errstate(invalid="ignore"):
            bound = raised(rest - at, 16, np.abs(rest) + at + 1).min(axis=0)
        return np.asarray((eps >= self.largest) | ((eps > 0) & (bound <= log_delta)))


def many_epsilons(
    deltas: Sequence[float],
    tolerance: float,
    ask: Callable[[float], tuple[Bound, list[Drawn | Glance | None]]],
    levels: Callable[[int, float], tuple[float, float] | None],
    one: Callable[[float], Bound],
) -> list[Bound]:
    """`ask` answers one delta and says what was drawn in each direction; `levels` gives the logs of the interval of
    delta less its mass at infinity, in a direction. Once lines have answered nothing but what they were drawn for, what
    is left is asked one by one."""
    found: dict[int, Bound] = {}
    order = sorted(range(len(deltas)), key=lambda i: deltas[i])
    idle = 0
    while len(found) < len(deltas):
        still = [i for i in order if i not in found]
        middle = still[len(still) // 2]
        if idle >= _IDLE:
            found[middle] = one(deltas[middle])
            continue
        answer, lines = ask(deltas[middle])
        found[middle] = answer
        others = [i for i in still if i != middle]
        if len(others) < _FEW or any(line is None for line in lines):
            continue
        idle += 1
        fair = _fair(answer, tolerance)
        for i, (low, high) in zip(others, _all(lines, others, deltas, levels), strict=True):
            if 0 < low <= high <= low * (1 + fair):
                found[i], idle = Bound(low, high, answer.method, (*answer.notes, SHARED)), 0
    return [found[i] for i in range(len(deltas))]


def _all(
    lines: list[Drawn | Glance | None],
    some: list[int],
    deltas: Sequence[float],
    levels: Callable[[int, float], tuple[float, float] | None],
) -> list[tuple[float, float]]:
    """The larger of all directions at some deltas; (0, inf) where that is not known."""
    known = [[levels(k, deltas[i]) for i in some] for k in range(len(lines))]
    ends = [_read(line, known[k]) for k, line in enumerate(lines) if isinstance(line, tuple)]
    lower, upper = np.max([e[0] for e in ends], axis=0), np.max([e[1] for e in ends], axis=0)
    for k, line in enumerate(lines):
        if isinstance(line, Glance):
            least = np.array([-math.inf if level is None else level[0] for level in known[k]])
            below = line.at_most(lower, least)
            lower, upper = np.where(below, lower, 0.0), np.where(below, upper, math.inf)
    return list(zip(lower.tolist(), upper.tolist(), strict=True))


def _fair(answer: Bound, tolerance: float) -> float:
    """The relative width that is good enough to be shared: not much more than where the line was drawn."""
    return max(_GOOD, tolerance, min(_WIDER * answer.relative_width, _WIDEST))


def many_deltas(
    eps: Sequence[float],
    tolerance: float,
    ask: Callable[[float], tuple[Bound, list[Readable | None]]],
    whole: Callable[[int, tuple[float, float]], tuple[float, float]],
    known: list[list[Readable]],
    enough: float = 0.0,
) -> list[Bound]:
    """The same for delta: `whole` turns logs of bounds in a direction into bounds on delta. Lines `known` from earlier
    questions are read first, and new ones are added. An interval as narrow as `enough` is enough."""
    found: dict[int, Bound] = {}
    order = sorted(range(len(eps)), key=lambda i: eps[i])

    def read(lines: list[Readable], fair: float) -> None:
        others = [i for i in order if i not in found]
        if not others:
            return
        points = np.array([eps[i] for i in others])
        logs = [line.log_bounds(points) for line in lines]
        for n, i in enumerate(others):
            ends = [whole(k, (float(low[n]), min(float(high[n]), 0.0))) for k, (low, high) in enumerate(logs)]
            low, high = max(e[0] for e in ends), max(e[1] for e in ends)
            if 0 < low <= high <= low * (1 + fair) or low <= high <= low + enough:
                found[i] = Bound(low, high, METHOD, (SHARED,))

    for lines in known:
        read(lines, max(_GOOD, tolerance))
    while len(found) < len(eps):
        still = [i for i in order if i not in found]
        middle = still[len(still) // 2]
        found[middle], drawn_now = ask(eps[middle])
        if found[middle].upper <= enough:  # delta falls with eps
            found |= {i: Bound(0.0, found[middle].upper, METHOD, (SHARED,)) for i in still if eps[i] > eps[middle]}
        lines = [line for line in drawn_now if line is not None]
        if len(lines) == len(drawn_now):
            known.append(lines)
            read(lines, _fair(found[middle], tolerance))
    return [found[i] for i in range(len(eps))]


def _read(line: Drawn, levels: list[tuple[float, float] | None]) -> tuple[Real, Real]:
    known = [i for i, level in enumerate(levels) if level is not None and math.isfinite(level[0])]
    lower, upper = np.full(len(levels), -math.inf), np.full(len(levels), math.inf)
    if known:
        pairs = np.array([levels[i] for i in known], dtype=float).T
        lower[known], upper[known] = epsilons(line[0], line[1], pairs)
    return lower, upper
