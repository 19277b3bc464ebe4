"""Drawing a line: how high, how dense, on a lattice or blurred. Any choice is sound, only the width depends on it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privloss.numerics.contour.line import Line
from privloss.numerics.contour.saddle import Saddle
from privloss.numerics.contour.sparse import MAX_CELLS, worthwhile
from privloss.numerics.contour.transform import Lattice, LineValues, TooExpensive, Transform, Vertical, log_kappa
from privloss.numerics.floats import Real, padded_up, raised

MAX_NODES = 100_000
_BLUR_NODES = (250_000, 120_000, 60_000, 30_000, 15_000, 4_000)
_SHORT = 2_000  # nodes beyond which it pays to leave some out
_ATTEMPTS = 12  # doublings of a blur
_CHEAP = 64  # nodes below which more digits than asked for come free
_FINEST, _COARSEST = 1e-13, 1e-4
_BLUR_SHARE, _FINEST_BLUR = 20.0, 1e-11  # a blur may cost this many times the goal: its price is many nodes
_STEPS = np.array([-5.0, 1.0, 2.5, 6.0])  # where to look for image bounds, in units of the saddle's width


def draw(transform: Transform, saddle: Saddle, eps: float, goal: float, blur: bool = True) -> Line:
    """A line through the saddle; numbers beyond the range of doubles on the way mean that there is none."""
    try:
        return _draw(transform, saddle, eps, goal, blur)
    except (ValueError, OverflowError, ZeroDivisionError) as problem:
        raise TooExpensive(f"out of range: {problem}") from None


def _draw(transform: Transform, saddle: Saddle, eps: float, goal: float, may_blur: bool) -> Line:
    """A line through the saddle whose four errors are about `goal` relative to delta(eps); finer where cheap."""
    c, k = saddle.c, saddle.k
    if not math.isfinite(saddle.eps) or not math.isfinite(saddle.log_share):
        raise TooExpensive("no saddle found")
    need, finest = -math.log(min(max(goal / 16, _FINEST), _COARSEST)), -math.log(_FINEST)
    share = saddle.log_share + min(0.0, c * (saddle.eps - eps))
    images = _Images.around(transform, saddle)
    period = images.period(eps, share, finest)
    if not math.isfinite(period):
        raise TooExpensive("no period found")
    lattice, last = transform.lattice, math.inf
    if lattice is not None:
        cells = 2 * math.ceil(period / lattice.spacing / 2) + 1  # odd: no node at pi/h to be shared
        period, last = cells * lattice.spacing, (cells - 1) // 2
    step = 2 * math.pi / period
    vertical = transform.vertical(c) if lattice is None else transform.lattice_vertical(c)

    def missing(wish: float) -> Callable[[float, float], float]:
        return lambda t, decay: decay + wish - share - math.log(math.pi * t)

    guess = math.sqrt(2.6 * (finest - share) / saddle.curvature)
    cut = None
    if guess < 2 * _CHEAP * step:
        cut = find_cut(vertical, missing(finest), step, last, guess, _CHEAP)
    if cut is None:
        step = step if lattice is not None else 2 * math.pi / images.period(eps, share, need)
        limit = _SHORT if transform.pointwise or not may_blur else MAX_NODES
        cut = find_cut(vertical, missing(need), step, last, max(0.8 * guess, 1.2 * _CHEAP * step), limit)
    if cut is not None:
        t = step * np.arange(cut.nodes + 1)
        drawn = _Drawn(t, vertical.line(t, math.exp(-finest)), cut.log_beyond)
    elif not may_blur:
        raise TooExpensive("the line does not fall")
    else:
        blur = -math.log(min(max(_BLUR_SHARE * goal, _FINEST_BLUR), _COARSEST))
        drawn, lattice = _long_line(transform, vertical, saddle, step, last, (need, blur), share)
    at_c, mu = float(drawn.values.log_modulus[0]), drawn.mu
    return Line(
        c=c,
        step=step,
        t=drawn.t,
        values=drawn.values,
        log_beyond=drawn.log_beyond + float(drawn.values.error[0]),
        image_points=images.points,
        image_logs=raised(images.logs + (k - at_c), 4, abs(k) + abs(at_c)) + images.blurred(mu),
        largest=transform.largest,
        lattice=lattice,
        mu=mu,
        log_lost=transform.log_lost,
        height=drawn.height,
        skipped=drawn.skipped * math.exp(min(float(drawn.values.error[0]), 700.0)),
        skipped_density=drawn.skipped_density * math.exp(min(float(drawn.values.error[0]), 700.0)),
    )


@dataclass(frozen=True)
class _Images:
    """Bounds on K(b) - K(c) at points b on either side of c, to keep the images of the trapezoid rule small."""

    c: float
    largest: float
    points: Real
    logs: Real

    @classmethod
    def around(cls, transform: Transform, saddle: Saddle) -> _Images:
        c, k = saddle.c, saddle.k
        points = c + _STEPS / math.sqrt(saddle.curvature)
        points = points[points > 0.02 * c]
        logs = np.append(transform.log_mgf_upper(points) - k, raised(-k, 4))
        # delta <= 1: b = 0, kappa = 1, K(0) <= 0
        return cls(c, transform.largest, np.append(points, 0.0), logs)

    def period(self, eps: float, share: float, wish: float) -> float:
        """A period that keeps the images on both sides below e^-wish."""
        c, points = self.c, self.points
        base, left = log_kappa(points) + self.logs + (c - points) * eps - share, points < c
        with np.errstate(divide="ignore", invalid="ignore"):  # no period, no line
            reach = (wish + base) / np.abs(points - c)
        right = float(reach[~left].min())
        if math.isfinite(self.largest):
            right = min(right, padded_up(self.largest - eps, 1e-9) + 1e-300)
        return max(float(reach[left].min()), right, 1e-300)

    def blurred(self, mu: float) -> Real:
        """What a blur adds to K at the points."""
        return raised(0.5 * mu * mu * self.points * (self.points + 1), 8)


@dataclass(frozen=True)
class _Drawn:
    """Nodes and values of a line, and what is missing from it."""

    t: Real
    values: LineValues
    log_beyond: float
    mu: float = 0.0
    height: float = math.nan
    skipped: float = 0.0
    skipped_density: float = 0.0


def _long_line(
    transform: Transform,
    vertical: Vertical,
    saddle: Saddle,
    step: float,
    last: float,
    needs: tuple[float, float],
    share: float,
) -> tuple[_Drawn, Lattice | None]:
    """A line that does not die out soon: on the lattice if that is affordable, otherwise blurred."""
    if transform.lattice is not None and transform.pointwise:
        with contextlib.suppress(TooExpensive):
            budget = math.exp(share - needs[0])
            return _on_lattice(vertical, saddle.c, step, int(last), saddle.curvature, budget), transform.lattice
    draw = _blurred_sparse if transform.pointwise else _blurred
    return draw(transform, saddle, step, needs[1], share), None


def _on_lattice(vertical: Vertical, c: float, step: float, last: int, variance: float, budget: float) -> _Drawn:
    """The worthwhile nodes of a lattice's line, which ends: nothing is cut."""
    nodes = worthwhile(vertical, c, step, last, variance, budget)
    t = step * nodes.index
    return _Drawn(t, vertical.line(t, _FINEST), -math.inf, skipped=nodes.skipped, skipped_density=nodes.skipped_density)


def _blurred(transform: Transform, saddle: Saddle, step: float, need: float, share: float) -> _Drawn:
    """The line of the blurred transform, with as many nodes as can be afforded: the more, the smaller the blur."""
    for nodes in _BLUR_NODES:
        height = nodes * step
        mu = math.sqrt(2 * max(need - share - math.log(math.pi * height), 1.0)) / height
        if not mu * saddle.c < 1.0:  # so much blur would say nothing
            break
        vertical = transform.blurred(mu).vertical(saddle.c)
        t = step * np.arange(nodes + 1)
        try:
            return _Drawn(t, vertical.line(t, 1e-10), vertical.decay(height), mu)
        except TooExpensive:
            continue
    raise TooExpensive("no blur is small enough")


def _blurred_sparse(transform: Transform, saddle: Saddle, step: float, need: float, share: float) -> _Drawn:
    """The same from worthwhile nodes only, with a blur that costs about e^-need, or more if that needs too many.

    The blur costs mu^2 times the density, which is about c(c+1) delta.
    """
    c = saddle.c
    mu = math.sqrt(math.exp(-need) / (c * (c + 1)))
    widest = max(step, 2 / math.sqrt(saddle.curvature))  # of a cell: fewer than MAX_CELLS of them reach the height
    mu = max(mu, math.sqrt(2 * max(need - share, 1.0)) / (MAX_CELLS * widest))
    for _ in range(_ATTEMPTS):
        if not mu * c < 1.0:
            break
        # e^(-mu^2 height^2/2) / (pi height) = e^(share - need), nearly
        height = math.sqrt(2 * max(need - share - math.log(math.pi / mu), 1.0)) / mu
        last = math.ceil(height / step)
        try:
            vertical = transform.blurred(mu).vertical(c)
            nodes = worthwhile(vertical, c, step, last, saddle.curvature, math.exp(share - need))
            t = step * nodes.index
            values = vertical.line(t, 1e-10)
        except TooExpensive:
            mu *= 2.0
            continue
        beyond = vertical.decay(last * step)
        return _Drawn(t, values, beyond, mu, last * step, nodes.skipped, nodes.skipped_density)
    raise TooExpensive("no blur is small enough")


@dataclass(frozen=True)
class _Cut:
    """Where the line is cut, and the bound on log |e^K| - K(c) beyond."""

    nodes: int
    log_beyond: float


def find_cut(
    vertical: Vertical, missing: Callable[[float, float], float], step: float, last: float, guess: float, limit: int
) -> _Cut | None:
    """The least number of nodes (roughly) after which nothing is missing, or None if that exceeds the limit.

    `missing(t, decay)` says by how many nats the decay found at t falls short; `last` is where a lattice's line ends:
    nothing is cut there.
    """
    if last <= limit and last * step < 2 * guess:
        return _Cut(int(last), -math.inf)
    most = int(min(limit, last))
    seen: list[tuple[float, float]] = []  # heights and log of the decay wanted there over the decay found, falling
    low, high, best = 0.0, math.log(most), None
    x = min(max(math.log(max(guess / step, 1.0)), 0.7), high)
    for attempt in range(14):
        count = min(math.ceil(math.exp(x)), most)
        decay = vertical.decay(step * count)
        gap = missing(step * count, decay)
        if gap <= 0:
            best, high = _Cut(count, decay), x
            if gap > (-8.0 if count < 256 else -2.5) or x - low < 0.06 or count <= _CHEAP:
                return best
        elif count >= most:
            return _Cut(int(last), -math.inf) if last <= limit else None
        else:
            low = x
        seen.append((x, math.log(max(gap - decay + 1.0, 1e-300) / max(-decay, 1e-9))))
        x += _move(seen, attempt)
        if not low < x < high:
            x = 0.5 * (low + high) if best else high
    return best


def _move(seen: list[tuple[float, float]], attempt: int) -> float:
    """How far to go in log t so that the decay, about a power of t, meets what is wanted.

    A Gaussian line falls like t^2; a few hits make it fall like log t, at first not at all, and then ever faster.
    """
    x, short = seen[-1]
    power = 1.6
    if len(seen) > 1:
        found = (seen[-2][1] - short) / (x - seen[-2][0])
        power = min(max(found, 1.0 if abs(short) > 0.4 else 0.25), 2.0)
    move = short / power
    return max(move, 0.05 * (1 + attempt)) if short > 0 else min(move, -0.03)
