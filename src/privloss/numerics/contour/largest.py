"""delta(eps) as a sum over classes of the largest loss, each read on a line of its own, or bounded.

Let T_j be the transform of the part of a measure in class j (`Side`, forward), and T_j(-1 - z) that of the reversed
measure (`Side`, backward). A class adds E[(1 - e^(eps - Z))_+; j] to delta(eps), which is

* read on a forward line, as in `line.py`;
* or T_j(0) - e^eps T_j(-1) + e^eps E_reversed[(1 - e^(-eps - Z))_+; j], the last term read on a backward line at -eps:
  cheap where the class lies above eps, so that hardly anything of it falls below;
* whichever of the two integrals is far below delta is not read but bounded by kappa(c) e^(K(c) - c eps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from privloss.numerics.contour.cells import Place, sparse_line
from privloss.numerics.contour.line import Line
from privloss.numerics.contour.reading import Bounded, Read, Residues, SplitReading, solved
from privloss.numerics.contour.transform import (
    AtomSide,
    DensitySide,
    LineValues,
    RareLosses,
    Side,
    TooExpensive,
    log_kappa,
)
from privloss.numerics.floats import Real, raised

_TILTS = 40  # points c tried on either side
_LEAST, _MOST, _DEEP = 0.4, 200.0, 2.5  # of c eps; of c eps over -log delta
_NEGLIGIBLE = math.log(2e-12)  # share of delta that need not be read
_CUT = math.log(2e-13)  # and that may be cut off a line
_IMAGES = math.log(1e-13)
_MOST_NODES = 30_000
_FINER = 4  # attempts with more quadrature nodes
_TALL = 2.0  # nats below delta from which on any tilt will do
_HEIGHTS = np.geomspace(0.35, 6.0, 12)  # tried, in units of a first guess
_BEYOND, _STRETCH = 4.0, 1.18  # proofs need more height than the truth: so many nats further down, and beyond
_STEEP = 40.0  # c times the losses of a class
_CANCELLING = 0.4  # of a longer period that a nat above delta is worth
_REDRAWN, _NEAR = 8, 0.12  # how often, and how far in log eps lines may serve
_ELSEWHERE, _FAIR = (1.3, 0.8, 1.6), 1e-7  # where else lines are drawn, relative to eps, if the width exceeds this
_SHORTER, _FALLEN, _SMALLEST = 2.5, 1.0, 1e-6  # the search for a usual loss: a factor, nats of delta over it, an end
_GOOD = 3e-11  # relative error of a line that is worth no finer nodes


def draw(rare: RareLosses, eps: float, log_delta: float, tolerance: float) -> SplitReading:
    """A line, or a bound, for every class; numbers beyond the range of doubles on the way mean that there is none."""
    try:
        with np.errstate(all="ignore"):  # what is lost becomes a bound that says nothing
            return _draw(*rare.sides(eps, log_delta), eps, log_delta, tolerance)
    except (ValueError, OverflowError, ZeroDivisionError) as problem:
        raise TooExpensive(f"out of range: {problem}") from None


def _tilts(forward: Side, backward: Side, eps: float, log_delta: float) -> Real:
    """Points c to try: down to about one over the largest loss where classes above eps cannot be read backward; for
    atoms, far enough up for tiny deltas."""
    most = _MOST if forward.falls else max(_MOST, -_DEEP * log_delta)
    least = _LEAST if backward.reaches_up else min(_LEAST, 0.5 * eps / forward.scale(forward.classes))
    count = _TILTS * math.log(most / least) / math.log(_MOST / _LEAST)
    return np.geomspace(least / eps, most / eps, round(count))


def _draw(forward: Side, backward: Side, eps: float, log_delta: float, tolerance: float) -> SplitReading:
    """`log_delta` is about the log of delta(eps)."""
    tilts = _tilts(forward, backward, eps, log_delta)
    plans = [_Plan.on(forward, tilts, eps, log_delta), _Plan.on(backward, tilts, -eps, log_delta - eps)]
    terms: list[Bounded | Read | Residues] = []
    nodes = 0
    for j in range(forward.classes):
        ahead, back = plans
        if ahead.masses[j] < _NEGLIGIBLE:  # delta is at most the mass: kappa(0) = 1
            terms.append(Bounded(0.0, float(forward.log_upper(j, np.zeros(1))[0]), False))
            continue
        if ahead.negligible(j):
            terms.append(ahead.bounded(j, False))
            continue
        if j and back.negligible(j):
            terms += [Residues(forward.mass(j), backward.mass(j)), back.bounded(j, True)]
            continue
        if j == forward.classes - 1:
            raise TooExpensive("the last class falls below eps")
        use_back = j > 0 and back.cost(j) < ahead.cost(j)
        if use_back:
            terms.append(Residues(forward.mass(j), backward.mass(j)))
        line = (back if use_back else ahead).drawn(j, tolerance)
        nodes += len(line.t)
        terms.append(Read(line, use_back))
    return SplitReading(tuple(terms), log_delta, eps, nodes)


@dataclass(frozen=True, eq=False)
class _Plan:
    """One side: where its lines could lie."""

    side: Side
    eps: float
    log_delta: float
    tilts: Real  # c > 0
    sizes: Real  # log T_j(c) - c eps - log delta, (classes, len(tilts))
    bounds: Real  # the same with log kappa(c)
    masses: Real  # log T_j(0) - log delta, a guess

    @classmethod
    def on(cls, side: Side, tilts: Real, eps: float, log_delta: float) -> _Plan:
        logs = side.guesses(np.append(tilts, 1e-9 * tilts[0]))
        if not side.reaches_up:  # the last class has no moments
            logs[-1, :-1] = np.inf
        sizes = logs[:, :-1] - tilts * eps - log_delta
        return cls(side, eps, log_delta, tilts, sizes, sizes + log_kappa(tilts), logs[:, -1] - log_delta)

    def negligible(self, j: int) -> bool:
        return bool(self.bounds[j].min() < _NEGLIGIBLE)

    def bounded(self, j: int, backward: bool) -> Bounded:
        c = float(self.tilts[int(np.argmax(self.bounds[j] < _NEGLIGIBLE))])  # the smallest that is enough
        return Bounded(c, float(self.side.log_upper(j, np.array([c]))[0]), backward)

    def cost(self, j: int) -> float:
        """The period, and what must cancel: the integrand over delta at the saddle."""
        height = float(self._kernel(j).min()) - math.log(abs(self.eps))  # times a width of about 1/eps
        return self.period(j)[1] * math.exp(_CANCELLING * max(height, 0.0))

    def _kernel(self, j: int) -> Real:
        return np.asarray(self.sizes[j] - np.log(self.tilts) - np.log1p(self.tilts))

    def period(self, j: int) -> tuple[int, float, float, float]:
        """The index of the tilt that needs the shortest period, the period, and where to bound images on each side."""
        kernel = self._kernel(j)
        wide = kernel <= max(kernel.min() + 1.5, -_TALL)
        tame = self.tilts * self.side.scale(j) < _STEEP  # beyond, windows weigh more than what they hold
        wide = wide & tame if j and np.any(wide & tame) else wide
        points, bounds = np.append(self.tilts, 0.0), np.append(self.bounds[j], self.masses[j])
        gaps = points[None, :] - self.tilts[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.maximum(bounds - _IMAGES, 0.5) / np.abs(gaps)
        left = np.where((gaps < 0) & np.isfinite(reach), reach, np.inf)
        right = np.where((gaps > 0) & np.isfinite(reach), reach, np.inf)
        need = np.where(wide, np.maximum(left.min(axis=1), right.min(axis=1)), np.inf)
        i = int(np.argmin(need))
        nearest = int(np.argmax(right[i] <= need[i]))  # bounds are sharper at small tilts
        return i, float(need[i]), float(points[int(np.argmin(left[i]))]), float(points[nearest])

    def drawn(self, j: int, tolerance: float) -> Line:
        i, period, left, right = self.period(j)
        if not math.isfinite(period):
            raise TooExpensive("no period found")
        c = float(self.tilts[i])
        points, logs, period = self._images(j, c, period, left, right)
        if not self.side.falls:
            at = float(self._kernel(j).min())
            place = Place(j, c, period, self.eps, self.log_delta, at, tolerance, points, logs)
            return sparse_line(cast(AtomSide, self.side), place)
        step = 2 * math.pi / period
        height, log_beyond = self._cut(j, c, i)
        count = math.ceil(height / step)
        if count > _MOST_NODES:
            raise TooExpensive(f"{count} nodes")
        t = step * np.arange(count + 1)
        side = cast(DensitySide, self.side)
        for _ in range(_FINER):
            values = side.line(j, c, t)
            if self._off(values, t, c) < _GOOD:
                break
            side = side.finer()
        at_c = float(values.log_modulus[0])
        return Line(
            c=c,
            step=step,
            t=t,
            values=values,
            log_beyond=log_beyond - at_c,
            image_points=points,
            image_logs=raised(logs - at_c, 4, np.abs(logs) + abs(at_c)),
            largest=math.inf,
            lattice=None,
            mu=0.0,
        )

    def _images(self, j: int, c: float, period: float, left: float, right: float) -> tuple[Real, Real, float]:
        """Where images are bounded, the bounds on log T_j there, and the period that they ask for: guesses of the
        bounds may have been too small at large tilts, and then a smaller one is better."""
        for _ in range(4):
            points = np.array([left, right])
            logs = self.side.log_upper(j, points)
            bounds = logs - points * self.eps - self.log_delta + log_kappa(points) - _IMAGES
            need = float(np.max(bounds / np.abs(points - c)))
            lower = self.tilts[(self.tilts > c) & (self.tilts < 0.9 * right)]
            if need <= 1.05 * period or not len(lower):
                break
            right = float(lower[-1])
        return points, logs, max(period, need)

    def _off(self, values: LineValues, t: Real, c: float) -> float:
        """The error of a line, relative to delta."""
        size = np.exp(np.minimum(values.log_modulus - c * self.eps - self.log_delta + values.error, 600.0))
        share = size * np.minimum(values.error, 1.0) / np.hypot(c, t) / np.hypot(c + 1, t)
        return float(share.sum()) * float(t[1] - t[0]) / math.pi

    def _cut(self, j: int, c: float, i: int) -> tuple[float, float]:
        """A height from which on nothing is missing, and the bound there."""

        def short(log: Real | float, t: Real | float) -> Real:
            return np.asarray(log - c * self.eps - self.log_delta - np.log(np.pi * np.asarray(t)) - _CUT)

        side = cast(DensitySide, self.side)
        heights = self._first_height(j, i) * _HEIGHTS
        gaps = short(side.moduli(j, c, heights), heights) + _BEYOND
        k = int(np.argmax(gaps < 0)) if np.any(gaps < 0) else len(gaps) - 1
        t = float(heights[k])
        if k and gaps[k] < 0 < gaps[k - 1]:
            t *= float(heights[k - 1] / t) ** (gaps[k] / (gaps[k] - gaps[k - 1]))
        t *= _STRETCH
        fall = side.decay(j, c)
        before, rise = (0.0, math.inf), 0.0
        for _ in range(32):
            log = fall.log_upper(t)
            gap = float(short(log, t))
            if gap <= 0:
                return t, log
            if before[1] < math.inf:  # a little beyond where the secant vanishes
                rise = 1.15 * gap * (t / before[0] - 1) / max(before[1] - gap, 1e-9)
            before = t, gap
            t *= 1.0 + min(max(rise or 0.03 * gap, 0.06), 0.8)
        raise TooExpensive("the line does not fall")

    def _first_height(self, j: int, i: int) -> float:
        """Where a sum of Gaussian shape, or else the class itself, would have fallen."""
        own = 45.0 / self.side.scale(j)
        if 0 < i < len(self.tilts) - 1:
            x, y = self.tilts[i - 1 : i + 2], (self.sizes[j] + self.tilts * self.eps)[i - 1 : i + 2]
            bend = 2 * ((y[2] - y[1]) / (x[2] - x[1]) - (y[1] - y[0]) / (x[1] - x[0])) / (x[2] - x[0])
            if bend > 0:
                need = max(float(self.sizes[j][i]) - _CUT, 1.0)
                own = min(own, math.sqrt(2 * need / bend)) if j else math.sqrt(2 * need / bend)
        return own


def epsilon_by_classes(
    rare: RareLosses, level: tuple[float, float], guess: float, tolerance: float
) -> tuple[float, float, SplitReading]:
    """(lower, upper) with delta(upper) <= delta <= delta(lower), and what they were read from; `guess` is about eps.

    Where some line is poor though eps is known, classes for an eps a little off may have better ones.
    """
    eps, lowest, highest = guess, -math.inf, math.inf
    best: tuple[float, SplitReading] | None = None
    elsewhere, factor = iter(_ELSEWHERE), 0.0
    for _ in range(_REDRAWN):
        try:
            reading = draw(rare, eps, level[0], tolerance)
        except TooExpensive:
            if best is None:
                raise
            break
        if reading.log_upper(np.zeros(1))[0] <= level[0]:  # any line may be read at any eps
            return -math.inf, 0.0, reading
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
    return lowest, highest, best[1]


def delta_by_classes(
    rare: RareLosses, eps: float, spread: float, tolerance: float
) -> tuple[tuple[float, float], SplitReading]:
    """log of lower and upper bounds on delta(eps); `spread` is the standard deviation of the loss.

    Far below what losses usually are delta(eps) is nearly delta(0), and classes are drawn for a usual loss instead:
    their lines may be read anywhere, also at 0.
    """
    place, log_delta = _usual(rare, eps, spread)
    for _ in range(_REDRAWN):
        reading = draw(rare, place, log_delta, tolerance)
        found = log_delta + math.log(max(float(reading.read(np.array([place])).value[0]), 1e-30))
        if abs(found - log_delta) < 2.0:
            break
        log_delta = found
    at = np.array([eps])
    return (float(reading.log_lower(at)[0]), float(reading.log_upper(at)[0])), reading


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
