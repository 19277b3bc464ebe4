"""Choosing windows, lines and quadratures of a split by the largest loss, in floating point: any choice is sound.

Windows, tilts and periods are those of the floating-point engine; heights of cuts and steps of quadratures are found
with rough views of the checker's own bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from privloss.certificates.balls import MOST_NODES, Rejected, Use
from privloss.certificates.pairs.base import Steps
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.numerics.contour.largest import Bounded, Read, Residues, draw
from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import Real

_ANGLES = np.array([0.03, 0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.45, 0.6, 0.8, 1.0, 1.25, 1.5])[:, None]
_CELLS = 160
_GOAL = 30.0  # nats by which every error stays below delta
_FEW = 8.0  # nats of what is only bounded
_ROOM = 4.0  # nats to spare
_AROUND = 70.0  # nats by which a strip may be heavier than the axis
_MULTIPLES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024.0])
_HIGHER, _TRIES = 1.12, 60  # of a cut that is too low
_MOST_PRODUCTS = 60_000_000


@dataclass(frozen=True)
class Ask:
    """The transform wanted at c, up to the height t, with an error of e^-nats of its value at c."""

    backward: bool
    c: float
    t: float
    nats: float

    @property
    def power(self) -> float:
        return -self.c if self.backward else self.c + 1


@dataclass(frozen=True, eq=False)
class PartModel:
    """A part of marked outcomes in doubles; outcomes in units of the noise."""

    rate: float
    shift: float
    centre: Real
    width: Real
    high: int
    low: int | None
    _views: dict[tuple[bool, float], View] = field(default_factory=dict, repr=False)

    def log_ratio(self, y: Real) -> Real:
        return np.asarray(np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + self.shift * (y - self.shift / 2)))

    def log_density(self, y: Real, power: float) -> Real:
        """log of phi r^power w."""
        total = -0.5 * y * y - 0.5 * math.log(2 * math.pi) + power * self.log_ratio(y)
        for i in range(self.high, len(self.centre)):
            total = total + log_ndtr((self.centre[i] - y) / self.width[i])
        if self.low is not None:
            total = total + log_ndtr((y - self.centre[self.low]) / self.width[self.low])
        return np.asarray(total)

    def view(self, backward: bool, c: float) -> View:
        key = backward, c
        if key not in self._views:
            self._views[key] = View.of(self, Ask(backward, c, 0.0, 90.0))
        return self._views[key]

    def span(self, ask: Ask) -> tuple[float, float]:
        """Where the nodes must lie."""
        y = self.grid
        logs = self.log_density(y, ask.power)
        least = float(logs.max()) - ask.nats - _ROOM
        inside = np.nonzero(logs > least)[0]
        first = float(y[max(inside[0] - 1, 0)])
        if self.low is not None:  # to the left of all nodes phi is bounded by 1
            passed = log_ndtr((y - self.centre[self.low]) / self.width[self.low])
            low = passed + (math.log1p(-self.rate) if ask.backward else self.log_ratio(y)) * ask.power
            first = min(first, float(y[max(int(np.argmax(low > least)) - 1, 0)]))
        return first, float(y[min(inside[-1] + 1, len(y) - 1)])

    @cached_property
    def grid(self) -> Real:
        return np.linspace(-30.0, 60.0 + float(self.centre[-1]), 6000)

    def use(self, asks: list[Ask], bend: float | None) -> Use:
        """Nodes that serve all that is asked."""
        spans = [self.span(ask) for ask in asks]
        low, high = min(s[0] for s in spans), max(s[1] for s in spans)
        cost = np.zeros(len(_ANGLES))
        lift = _ANGLES[:, 0] / self.shift
        for ask in asks:
            view = View.of(self, ask)
            short = view.carried(ask.t) - view.log_total + ask.nats + _ROOM
            cost = np.maximum(cost, short)
        h = 2 * math.pi * lift / cost
        best = int(np.argmax(h))
        use: Use = {"h": min(float(h[best]), 0.5), "v": float(lift[best]), "from": low}
        use["nodes"] = math.ceil((high - low) / use["h"]) + 2
        if bend is not None:
            use["bend"] = bend
        if use["nodes"] > MOST_NODES:
            raise Rejected("too many nodes")
        return use


@dataclass(frozen=True, eq=False)
class View:
    """Cells of a part at one tilt; arrays (angles, cells)."""

    part: PartModel
    backward: bool
    log_total: float
    log_size: Real
    arg: Real  # at the edges
    layers: tuple[Real, Real]  # heights over the total, and widths

    @classmethod
    def of(cls, part: PartModel, ask: Ask) -> View:
        power = ask.power
        low, high = part.span(replace(ask, nats=ask.nats + _AROUND))
        y = np.linspace(low, high, _CELLS + 1)
        step = (high - low) / _CELLS
        log_total = float(np.logaddexp.reduce(part.log_density(y, power))) + math.log(step)
        log_hit = math.log(part.rate) + part.shift * (y - part.shift / 2)
        hit = np.exp(np.minimum(log_hit, 600.0))
        real, imag = 1 - part.rate + hit * np.cos(_ANGLES), hit * np.sin(_ANGLES)
        lift = _ANGLES / part.shift
        near = np.where(y[:-1] > 0, y[:-1], np.where(y[1:] < 0, y[1:], 0.0))
        size = 0.5 * lift**2 - 0.5 * near**2 - 0.5 * math.log(2 * math.pi) + math.log(step)
        moduli = power * (np.log(np.hypot(real, imag))[:, :-1] if ask.backward else part.log_ratio(y)[None, 1:])
        size = size + moduli
        for i in [*range(part.high, len(part.centre)), *([] if part.low is None else [part.low])]:
            growth = 0.5 * (lift / part.width[i]) ** 2
            away = (y - part.centre[i]) / part.width[i]
            through, held = log_ndtr(-away)[:-1], log_ndtr(away)[1:]
            if i == part.low:
                through, held = held, through
            size = size + np.minimum(growth + through, np.logaddexp(0.0, growth + held))
        layers = part_layers(part, power, y, log_total) if part.low is None else (np.zeros(1), np.zeros(1))
        return cls(part, ask.backward, log_total, size, np.arctan2(imag, real), layers)

    def carried(self, turn: float) -> Real:
        """log of the integral over |..| e^(turn arg), for every angle."""
        arg = self.arg[:, 1:] if turn > 0 else self.arg[:, :-1]
        return np.asarray(np.logaddexp.reduce(self.log_size + turn * arg, axis=1))

    def fallen(self, t: float) -> tuple[float, float]:
        """log of the bound on all heights from t on, over the value at c; and the lift that shows it."""
        falls = self.carried(-t) - self.log_total
        best = int(np.argmin(falls))
        log, lift = min(float(falls[best]), 0.0), float(_ANGLES[best, 0]) / self.part.shift
        heights, widths = self.layers
        gaps = np.maximum(widths[None, :] - 2 / (_MULTIPLES[:, None] * t), 0.0)
        deficit = np.minimum(gaps @ heights, 1.0)
        gain = float((deficit * (2 - deficit) / _MULTIPLES**2).max())
        return min(log, 0.5 * math.log1p(-min(gain, 1 - 1e-15))), lift


def part_layers(part: PartModel, power: float, y: Real, log_total: float) -> tuple[Real, Real]:
    """Boxes below the density of the loss, widest last."""
    log_r = part.log_ratio(y)
    log_hit = math.log(part.rate) + part.shift * (y - part.shift / 2)
    size = -0.5 * np.maximum(y[:-1] ** 2, y[1:] ** 2) - 0.5 * math.log(2 * math.pi) - log_hit[1:] - math.log(part.shift)
    size = size + np.minimum((power + 1) * log_r[:-1], (power + 1) * log_r[1:])
    for i in range(part.high, len(part.centre)):
        size = size + log_ndtr((part.centre[i] - y[1:]) / part.width[i])
    lows = np.exp(size - log_total)
    peak = int(np.argmax(lows))
    lows[peak:] = np.minimum.accumulate(lows[peak:])
    lows[: peak + 1] = np.minimum.accumulate(lows[: peak + 1][::-1])[::-1]
    levels = np.sort(lows)[::-1]
    left = np.searchsorted(lows[: peak + 1], levels, side="left")
    right = peak + np.searchsorted(-lows[peak:], -levels, side="right")
    heights = levels - np.append(levels[1:], 0.0)
    return heights, log_r[right] - log_r[left]


def split(steps: Steps, eps: float, log_delta: float) -> Use:
    """All parameters; `Rejected` where the engine finds no lines."""
    found = [_hit(pair.triples) for pair, _ in steps]
    if not eps > 0 or any(hit is None for hit in found):
        raise Rejected("not a sample of Gaussian noise")
    rates, shifts = (np.array([hit[i] for hit in found if hit is not None]) for i in (0, 1))
    counts = np.array([float(times) for _, times in steps])
    rare = GaussianMixtureLoss(rates, 1 / shifts, counts).rare_losses(None)
    if rare is None:
        raise Rejected("too many kinds of steps")
    try:
        reading = draw(rare, eps, log_delta)
    except TooExpensive as problem:
        raise Rejected(str(problem)) from None
    windows = [step.windows for step in rare.sides(eps, log_delta)[0].steps]
    kinds = [
        _Kind(float(q), float(s), int(n), w.centre * s, w.width * s)
        for q, s, n, w in zip(rates, shifts, counts, windows, strict=True)
    ]
    use: Use = {"method": "split", "steps": {}, "classes": []}
    for i, kind in enumerate(kinds):
        use["steps"][str(i)] = {"centres": kind.centre.tolist(), "widths": kind.width.tolist()}
    residues, products = False, 0
    for term in reading.terms:
        if isinstance(term, Residues):
            residues = True
            continue
        maker = _Class(kinds, len(use["classes"]), eps, log_delta)
        made = maker.bounded(term, residues) if isinstance(term, Bounded) else maker.read(term)
        residues = False
        use["classes"].append(made)
        quads = [quad for parts in made["steps"].values() for quad in parts.values()]
        products += made.get("N", 1) * sum(quad["nodes"] for quad in quads)
    if products > _MOST_PRODUCTS:
        raise Rejected("too much work")
    return use


def _hit(triples: Any) -> tuple[float, float] | None:
    """Rate and distance of (1-q) N(0) + q N(s) against N(0)."""
    if len(triples) != 2 or any(b != 0 for *_, b in triples) or triples[0][1] != 0 or not triples[1][1] > 0:
        return None
    return float(triples[1][0].mid()), float(triples[1][1].mid())


@dataclass(frozen=True, eq=False)
class _Kind:
    rate: float
    shift: float
    times: int
    centre: Real
    width: Real

    def parts(self, j: int) -> list[tuple[str, PartModel]]:
        own = PartModel(self.rate, self.shift, self.centre, self.width, j, j - 1 if j else None)
        below = PartModel(self.rate, self.shift, self.centre, self.width, j - 1, None)
        return [("below", below), ("own", own)] if j else [("own", own)]


class _Class:
    """The parameters of one class."""

    def __init__(self, kinds: list[_Kind], j: int, eps: float, log_delta: float) -> None:
        self.kinds, self.j, self.eps, self.log_delta = kinds, j, eps, log_delta
        self.parts = [kind.parts(j) for kind in kinds]

    def log_value(self, backward: bool, c: float, falls: list[list[float]] | None = None) -> float:
        """log T_j(c), or of a bound if the parts have fallen."""
        base = rise = 0.0
        for i, (kind, parts) in enumerate(zip(self.kinds, self.parts, strict=True)):
            logs = [part.view(backward, c).log_total for _, part in parts]
            logs = logs if falls is None else [x + y for x, y in zip(logs, falls[i], strict=True)]
            if len(logs) == 1:
                base += kind.times * logs[0]
                continue
            base += kind.times * logs[0]
            rise += kind.times * float(np.logaddexp(0.0, logs[1] - logs[0]))
        if not self.j:
            return base
        return base + (rise if rise > 30 else math.log(max(math.expm1(rise), 1e-320)))

    def bounded(self, term: Bounded, residues: bool) -> Use:
        """A Chernoff bound; with residues before it, of what remains."""
        asks = [Ask(term.backward, term.c, 0.0, _FEW)]
        if residues:
            asks += [self._mass(False), self._mass(True)]
        return {"read": "residues" if residues else "negligible", "c": term.c, **self._quads(asks, None)}

    def _mass(self, backward: bool) -> Ask:
        over = self.log_value(backward, 0.0) - self.log_delta + (self.eps if backward else 0.0)
        return Ask(backward, 0.0, 0.0, _GOAL + max(over, 0.0))

    def read(self, term: Read) -> Use:
        line, back = term.line, term.backward
        at, level = (-self.eps, self.log_delta - self.eps) if back else (self.eps, self.log_delta)
        height = self.log_value(back, line.c) - line.c * at - level - math.log1p(line.c)
        count, bends = self._cut(back, line.c, line.step, len(line.t), at, level)
        asks = [Ask(back, line.c, count * line.step, _GOAL + max(height, 0.0))]
        left, right = (float(x) for x in line.image_points)
        asks += [Ask(back, point, 0.0, _FEW) for point in (left, right)]
        if back:
            asks += [self._mass(False), self._mass(True)]
        use: Use = {"read": "backward" if back else "forward", "c": line.c, "L": 2 * math.pi / line.step, "N": count}
        return {**use, "left": left, "right": right, **self._quads(asks, bends)}

    def _cut(self, back: bool, c: float, step: float, guess: int, at: float, level: float) -> tuple[int, list[list[float]]]:
        """How many nodes, and the lifts that show that nothing is missing beyond."""
        t = 0.6 * guess * step
        for _ in range(_TRIES):
            views = [[part.view(back, c).fallen(t) for _, part in parts] for parts in self.parts]
            log = self.log_value(back, c, [[fall for fall, _ in found] for found in views])
            if log - c * at - math.log(math.pi * t) + _GOAL - level < 0:
                return math.ceil(t / step) + 1, [[lift for _, lift in found] for found in views]
            t *= _HIGHER
        raise Rejected("the line does not fall")

    def _quads(self, asks: list[Ask], bends: list[list[float]] | None) -> Use:
        steps = {}
        for i, (kind, parts) in enumerate(zip(self.kinds, self.parts, strict=True)):
            more = math.log(kind.times)
            quads = {}
            for k, (name, part) in enumerate(parts):
                wanted = [Ask(a.backward, a.c, a.t, a.nats + (more if name == "below" or not self.j else 3.0)) for a in asks]
                quads[name] = part.use(wanted, None if bends is None else bends[i][k])
            steps[str(i)] = quads
        return {"steps": steps}
