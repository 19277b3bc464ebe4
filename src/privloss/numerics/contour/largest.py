"""delta(eps) as a sum over classes of the largest loss, each read on a line of its own, or bounded.

Let T_j be the transform of the part of a measure in class j (`Side`, forward), and T_j(-1 - z) that of the reversed
measure (`Side`, backward). A class adds E[(1 - e^(eps - Z))_+; j] to delta(eps), which is

* read on a forward line, as in `line.py`;
* or T_j(0) - e^eps T_j(-1) + e^eps E_reversed[(1 - e^(-eps - Z))_+; j], the last term read on a backward line at -eps:
  cheap where the class lies above eps, so that hardly anything of it falls below;
* whichever of the two integrals is far below delta is not read but bounded by kappa(c) e^(K(c) - c eps).
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from privloss.numerics.contour.cells import Place, sparse_line
from privloss.numerics.contour.line import Line
from privloss.numerics.contour.reading import Bounded, Read, Residues, SplitReading
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
_HOPELESS = 1e-7  # and one that asks for shorter lines
_SLACK = math.log(12.0)  # of what is negligible, where lines are read besides
_GOOD = 3e-11  # relative error of a line that is worth no finer nodes


def draw(rare: RareLosses, eps: float, log_delta: float, tolerance: float, reach: float = 1.0) -> SplitReading:
    """A line, or a bound, for every class; numbers beyond the range of doubles on the way mean that there is none. To
    be read at eps and, with a few digits less, from eps/reach to eps*reach, if that can be."""
    if reach > 1:
        with contextlib.suppress(TooExpensive):
            return _drawn(rare, eps, log_delta, tolerance, reach)
    return _drawn(rare, eps, log_delta, tolerance, 1.0)


def _drawn(rare: RareLosses, eps: float, log_delta: float, tolerance: float, reach: float) -> SplitReading:
    try:
        with np.errstate(all="ignore"):  # what is lost becomes a bound that says nothing
            return _draw(*rare.sides(eps * math.sqrt(reach), log_delta), eps, log_delta, tolerance, reach)
    except (ValueError, OverflowError, ZeroDivisionError) as problem:
        raise TooExpensive(f"out of range: {problem}") from None


def _tilts(forward: Side, backward: Side, eps: float, log_delta: float) -> Real:
    """Points c to try: down to about one over the largest loss where classes above eps cannot be read backward; for
    atoms, far enough up for tiny deltas."""
    most = _MOST if forward.falls else max(_MOST, -_DEEP * log_delta)
    least = _LEAST if backward.reaches_up else min(_LEAST, 0.5 * eps / forward.scale(forward.classes))
    count = _TILTS * math.log(most / least) / math.log(_MOST / _LEAST)
    return np.geomspace(least / eps, most / eps, round(count))


def _draw(forward: Side, backward: Side, eps: float, log_delta: float, tolerance: float, reach: float) -> SplitReading:
    """`log_delta` is about the log of delta(eps)."""
    tilts = _tilts(forward, backward, eps, log_delta)
    logs, places, sizes = _guesses(forward, tilts), np.array([eps]), np.array([log_delta])
    if reach > 1:
        places = eps * np.array([1.0, 1 / reach, reach])
        sizes = log_delta + _rough(logs, tilts, places) - _rough(logs, tilts, places[:1]) + [0.0, _SLACK, _SLACK]
    there = _guesses(backward, tilts)
    plans = [_Plan(forward, places, sizes, tilts, logs), _Plan(backward, -places, sizes - places, tilts, there)]
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


def _guesses(side: Side, tilts: Real) -> Real:
    """log T_j at the tilts and, last, at about 0, (classes, len(tilts) + 1)."""
    logs = side.guesses(np.append(tilts, 1e-9 * tilts[0]))
    if not side.reaches_up:  # the last class has no moments
        logs[-1, :-1] = np.inf
    return logs


def _rough(logs: Real, tilts: Real, eps: Real) -> Real:
    """About log delta at each eps, but for a factor that hardly changes: the sum of the bounds on all classes."""
    points = np.append(tilts, 0.0)
    each = (logs + log_kappa(points))[:, None, :] - eps[:, None] * points
    return np.asarray(np.logaddexp.reduce(each.min(axis=2), axis=0))


@dataclass(frozen=True, eq=False)
class _Plan:
    """One side: where its lines could lie. `places` are the eps where they will be read, the first one above all, and
    `sizes` about the logs of delta there."""

    side: Side
    places: Real
    sizes: Real
    tilts: Real  # c > 0
    logs: Real  # log T_j(c) and, last, at about 0

    @property
    def eps(self) -> float:
        return float(self.places[0])

    @property
    def log_delta(self) -> float:
        return float(self.sizes[0])

    def share(self, c: Real | float) -> Real:
        """The largest, over all places, of -c eps - log delta: what e^K(c) is to be multiplied by."""
        return np.asarray((-np.multiply.outer(c, self.places) - self.sizes).max(axis=-1))

    @cached_property
    def heights(self) -> Real:
        """log T_j(c) - c eps - log delta, (classes, len(tilts))."""
        return np.asarray(self.logs[:, :-1] + self.share(self.tilts))

    @cached_property
    def bounds(self) -> Real:
        """The same with log kappa(c)."""
        return np.asarray(self.heights + log_kappa(self.tilts))

    @cached_property
    def masses(self) -> Real:
        """log T_j(0) - log delta, a guess."""
        return np.asarray(self.logs[:, -1] - self.sizes.min())

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
        return np.asarray(self.heights[j] - np.log(self.tilts) - np.log1p(self.tilts))

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
            off = self._off(values, t, c)
            if off < _GOOD:
                break
            side = side.finer()
        if off > _HOPELESS and len(self.places) > 1:
            raise TooExpensive("too far from one another to be read on one line")
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
            bounds = logs + self.share(points) + log_kappa(points) - _IMAGES
            need = float(np.max(bounds / np.abs(points - c)))
            lower = self.tilts[(self.tilts > c) & (self.tilts < 0.9 * right)]
            if need <= 1.05 * period or not len(lower):
                break
            right = float(lower[-1])
        return points, logs, max(period, need)

    def _off(self, values: LineValues, t: Real, c: float) -> float:
        """The error of a line, relative to delta."""
        size = np.exp(np.minimum(values.log_modulus + self.share(c) + values.error, 600.0))
        share = size * np.minimum(values.error, 1.0) / np.hypot(c, t) / np.hypot(c + 1, t)
        return float(share.sum()) * float(t[1] - t[0]) / math.pi

    def _cut(self, j: int, c: float, i: int) -> tuple[float, float]:
        """A height from which on nothing is missing, and the bound there."""
        share = self.share(c)

        def short(log: Real | float, t: Real | float) -> Real:
            return np.asarray(log + share - np.log(np.pi * np.asarray(t)) - _CUT)

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
            x, y = self.tilts[i - 1 : i + 2], self.logs[j][i - 1 : i + 2]
            bend = 2 * ((y[2] - y[1]) / (x[2] - x[1]) - (y[1] - y[0]) / (x[1] - x[0])) / (x[2] - x[0])
            if bend > 0:
                need = max(float(self.heights[j][i]) - _CUT, 1.0)
                own = min(own, math.sqrt(2 * need / bend)) if j else math.sqrt(2 * need / bend)
        return own
