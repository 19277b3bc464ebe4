"""epsilon and delta from classes of the largest loss: where to draw them, and again where that was not good enough."""

from __future__ import annotations

import contextlib
import math

import numpy as np

from privloss.numerics.contour.largest import draw
from privloss.numerics.contour.many import epsilons
from privloss.numerics.contour.reading import SplitReading, solved
from privloss.numerics.contour.transform import RareLosses, TooExpensive

_REDRAWN, _NEAR = 8, 0.12  # how often, and how far in log eps lines may serve
_ELSEWHERE, _FAIR = (1.3, 0.8, 1.6), 1e-7  # where else lines are drawn, relative to eps, if the width exceeds this
_FURTHER, _TRIES = 5.0, 6  # how much further down eps is looked for on lines for a usual loss, and how often
_SHORTER, _FALLEN, _SMALLEST = 2.5, 1.0, 1e-6  # the search for a usual loss: a factor, nats of delta over it, an end


def epsilon_by_classes(
    rare: RareLosses, level: tuple[float, float], guess: float, spread: float, tolerance: float, reach: float = 1.0
) -> tuple[float, float, SplitReading]:
    """(lower, upper) with delta(upper) <= delta <= delta(lower), and what they were read from; `guess` is about eps,
    `spread` the standard deviation of the loss.

    Where some line is poor though eps is known, classes for an eps a little off may have better ones; and those for a
    usual loss, where eps is far below.
    """
    try:
        lower, upper, eps, reading = _near(rare, level, guess, tolerance, reach)
    except TooExpensive:
        if not 0 < guess < spread:
            raise
        return _far_below(rare, level, guess, spread, tolerance, reach)
    if 0 < eps < spread and not lower >= (1 - _FAIR) * upper:
        with contextlib.suppress(TooExpensive):
            least, most, usual = _far_below(rare, level, eps, spread, tolerance, reach)
            if most - least < upper - lower:
                return max(lower, least), min(upper, most), usual
    return lower, upper, reading


def _far_below(
    rare: RareLosses, level: tuple[float, float], guess: float, spread: float, tolerance: float, reach: float
) -> tuple[float, float, SplitReading]:
    """Both ends, read off lines for a usual loss."""
    usual = _for_usual(rare, guess, spread, tolerance, reach)
    if usual.log_upper(np.zeros(1))[0] <= level[0]:
        return -math.inf, 0.0, usual
    for near in guess / _FURTHER ** np.arange(_TRIES):
        (lower,), (upper,) = epsilons(usual, near, np.array([[level[0]], [level[1]]]))
        if upper < math.inf:
            return float(lower), float(upper), usual
    raise TooExpensive("epsilon is not where the lines tell")


def _near(
    rare: RareLosses, level: tuple[float, float], guess: float, tolerance: float, reach: float
) -> tuple[float, float, float, SplitReading]:
    """Both ends, where eps lies, and the lines, which are drawn where eps seems to be, again and again."""
    eps, root, lowest, highest = guess, guess, -math.inf, math.inf
    best: tuple[float, SplitReading] | None = None
    elsewhere, factor = iter(_ELSEWHERE), 0.0
    for _ in range(_REDRAWN):
        try:
            reading = draw(rare, eps, level[0], tolerance, reach)
        except TooExpensive:
            if best is None:
                raise
            break
        if reading.log_upper(np.zeros(1))[0] <= level[0]:  # any line may be read at any eps
            return -math.inf, 0.0, 0.0, reading
        lower, upper, root = solved(reading, level)
        lowest, highest = max(lowest, lower), min(highest, upper)
        if best is None or upper - lower < best[0]:
            best = upper - lower, reading
        if not factor and abs(math.log(root / eps)) >= _NEAR:
            eps = root
            continue
        factor = next(elsewhere, 0.0)
        if not factor or highest - lowest < _FAIR * highest:
            break
        eps = factor * root
    assert best is not None
    return lowest, highest, root, best[1]


def delta_by_classes(
    rare: RareLosses, eps: float, spread: float, tolerance: float, reach: float = 1.0
) -> tuple[tuple[float, float], SplitReading]:
    """log of lower and upper bounds on delta(eps); `spread` is the standard deviation of the loss.

    Far below what losses usually are delta(eps) is nearly delta(0), and classes are drawn for a usual loss instead:
    their lines may be read anywhere, also at 0.
    """
    reading, at = _for_usual(rare, eps, spread, tolerance, reach), np.array([eps])
    return (float(reading.log_lower(at)[0]), float(reading.log_upper(at)[0])), reading


def _for_usual(rare: RareLosses, eps: float, spread: float, tolerance: float, reach: float) -> SplitReading:
    """Lines for eps, or for a usual loss if that is larger."""
    place, log_delta = _usual(rare, eps, spread)
    for _ in range(_REDRAWN):
        reading = draw(rare, place, log_delta, tolerance, reach)
        found = log_delta + math.log(max(float(reading.read(np.array([place])).value[0]), 1e-30))
        if abs(found - log_delta) < 2.0:
            break
        log_delta = found
    return reading


def _usual(rare: RareLosses, eps: float, spread: float) -> tuple[float, float]:
    """Where to draw for eps, and about log delta there: eps itself, or a larger one where delta has fallen a little."""
    log_delta = rare.rough_log_delta(eps) if eps > 0 else 0.0
    if not eps < spread < math.inf:
        return eps, log_delta
    place, there = spread, rare.rough_log_delta(spread)
    while place > _SHORTER * eps and place > _SMALLEST * spread:
        nearer = rare.rough_log_delta(place / _SHORTER)
        if nearer - there < _FALLEN:
            return place, there
        place, there = place / _SHORTER, nearer
    return (place, there) if eps == 0 else (eps, log_delta)
