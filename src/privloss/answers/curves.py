"""epsilon at many deltas, delta at many epsilons: neighbours share their lines.

One of the open questions is answered by itself; what its lines answer well enough besides, they answer. Lines reach
far where they are drawn for that, so the next one is asked at such a distance from what is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from privloss.losses.composed import ComposedLoss
from privloss.numerics.bound import Bound
from privloss.numerics.contour.found import Solved, readable_line
from privloss.numerics.contour.many import Readable, epsilons
from privloss.numerics.contour.transform import TooExpensive, log_kappa
from privloss.numerics.floats import Real, raised

METHOD, SHARED = "exact privacy loss (contour)", "read on a shared line"
_GOOD = 1e-9  # relative width that is good enough to be shared, at least
_WIDER, _WIDEST = 3.0, 3e-7  # times the width where a line was drawn that are good enough, up to a limit
_REACH = 1.7  # how far in eps, as a factor, lines are meant to be read
_OVERLAP = 1.25  # and how much farther they are drawn for, in log eps
_SLOPE = 0.1  # of log eps over log delta, before it is known
FEW = 3  # questions that are not worth sharing
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
        self.largest, self.log_lost, self.c = loss.largest, loss.log_lost, np.geomspace(2.0, 500.0, 12) / eps
        try:
            self.log_mgf = loss.log_mgf_upper(self.c)
        except TooExpensive:
            self.log_mgf = np.full_like(self.c, math.inf)

    def log_bounds(self, eps: Real) -> tuple[Real, Real]:
        """Nothing from below; from above by moments where eps > 0."""
        rest, at = (self.log_mgf + log_kappa(self.c))[:, None], self.c[:, None] * eps
        with np.errstate(invalid="ignore"):
            upper = raised(rest - at, 16, np.abs(rest) + at + 1).min(axis=0)
        if self.log_lost > -math.inf:
            upper = raised(np.logaddexp(upper, self.log_lost), 8, 1 + np.abs(upper))
        upper = np.where(eps >= self.largest, self.log_lost, np.where(eps > 0, np.minimum(upper, 0.0), 0.0))
        return np.full(len(eps), -math.inf), upper

    def at_most(self, eps: Real, log_delta: Real) -> NDArray[np.bool_]:
        """Whether delta(eps) <= delta is shown, at many places; arrays of one length."""
        return np.asarray(self.log_bounds(eps)[1] <= log_delta)


def many_epsilons(
    deltas: Sequence[float],
    tolerance: float,
    ask: Callable[[float, float], tuple[Bound, list[Drawn | Glance | None]]],
    levels: Callable[[int, float], tuple[float, float] | None],
    one: Callable[[float], Bound],
) -> list[Bound]:
    """`ask` answers one delta and says what was drawn, for such a reach, in each direction; `levels` gives the logs of
    the interval of delta less its mass at infinity, in a direction. Once lines have answered nothing but what they were
    drawn for, what is left is asked one by one."""
    found: dict[int, Bound] = {}
    order = sorted(range(len(deltas)), key=lambda i: -deltas[i])
    idle = 0
    while len(found) < len(deltas):
        where, reach = _next(_about(order, deltas, found), [i not in found for i in order])
        asked = order[where]
        if idle >= _IDLE:
            found[asked] = one(deltas[asked])
            continue
        answer, lines = ask(deltas[asked], reach)
        found[asked] = answer
        others = [i for i in order if i not in found]
        if len(others) < FEW or any(line is None for line in lines):
            continue
        idle += 1
        fair = _fair(answer, tolerance)
        for i, (low, high) in zip(others, _all(lines, others, deltas, levels), strict=True):
            if 0 < low <= high <= low * (1 + fair):
                found[i], idle = Bound(low, high, answer.method, (*answer.notes, SHARED)), 0
    return [found[i] for i in range(len(deltas))]


def _about(order: list[int], deltas: Sequence[float], found: dict[int, Bound]) -> Real:
    """About the log of each epsilon, straight in the log of delta between what is found, and beyond."""
    logs = -np.log(np.maximum([deltas[i] for i in order], 1e-320))
    known = [n for n, i in enumerate(order) if i in found and 0 < found[i].upper < math.inf]
    if not known:
        return _SLOPE * logs
    x, y = logs[known], np.log([found[order[n]].upper for n in known])
    rises = [_SLOPE, _SLOPE] if len(known) == 1 else [(y[k + 1] - y[k]) / (x[k + 1] - x[k]) for k in (0, -2)]
    below, above = np.minimum(logs - x[0], 0.0), np.maximum(logs - x[-1], 0.0)
    return np.asarray(np.interp(logs, x, y) + rises[0] * below + rises[1] * above)


def _next(places: Real, is_open: Sequence[bool]) -> tuple[int, float]:
    """Which question to ask, and how far its lines should reach, of the widest row of open ones: beside what is known,
    so far from it that lines meet; the middle one if nothing is. `places` are logs of eps, about, and rise."""
    edges = np.flatnonzero(np.diff([0, *map(int, is_open), 0]))
    rows = [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    first, last = max(rows, key=lambda row: (places[row[1]] - places[row[0]], row[1] - row[0]))
    span = max(float(places[last] - places[first]), 0.0)
    half = 0.5 * span / max(math.ceil(0.5 * span / math.log(_REACH)), 1)
    if last - first + 1 == len(places):
        return len(places) // 2, math.exp(half) if span < 2 * math.log(_REACH) else _REACH
    target = places[first] + half if first else places[last] - half  # a row that is not all has a known neighbour
    return first + int(np.argmin(np.abs(places[first : last + 1] - target))), math.exp(_OVERLAP * half)


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
    ask: Callable[[float, float], tuple[Bound, list[Readable | None]]],
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
    places = np.log(np.maximum([eps[i] for i in order], 1e-300))
    while len(found) < len(eps):
        where, reach = _next(places, [i not in found for i in order])
        asked = order[where]
        found[asked], drawn_now = ask(eps[asked], reach)
        if found[asked].upper <= enough:  # delta falls with eps
            rest = Bound(0.0, found[asked].upper, METHOD, (SHARED,))
            found |= {i: rest for i in order[where + 1 :] if i not in found}
        lines = [line for line in drawn_now if line is not None]
        if len(lines) == len(drawn_now):
            known.append(lines)
            read(lines, _fair(found[asked], tolerance))
    return [found[i] for i in range(len(eps))]


def _read(line: Drawn, levels: list[tuple[float, float] | None]) -> tuple[Real, Real]:
    known = [i for i, level in enumerate(levels) if level is not None and math.isfinite(level[0])]
    lower, upper = np.full(len(levels), -math.inf), np.full(len(levels), math.inf)
    if known:
        pairs = np.array([levels[i] for i in known], dtype=float).T
        lower[known], upper[known] = epsilons(line[0], line[1], pairs)
    return lower, upper
