"""Rough views of parts of marked outcomes, in doubles: for choosing parameters, never for a bound.

They follow the bounds of `pairs/marked.py` factor by factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from privloss.certificates.balls import MOST_NODES, Rejected, Use
from privloss.numerics.floats import Real

_ANGLES = np.array([0.03, 0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.45, 0.6, 0.8, 1.0, 1.25, 1.5])[:, None]
REACH = 18.0  # widths from a window's centre to its end
_CELLS = 160
_POINTS = 700  # of a grid over outcomes
ROOM = 4.0  # nats to spare
_AROUND = 40.0  # nats that ways off the real axis may weigh more
_MULTIPLES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024.0])


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

    def bent(self) -> Ask:
        """What a way off the real axis asks for."""
        return replace(self, t=0.0, nats=self.nats + _AROUND)


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of step in doubles, outcomes in units of the noise."""

    reversed: bool
    rate: float
    shift: float
    times: int
    centre: Real
    width: Real
    top: float

    @property
    def use(self) -> Use:
        return {"centres": self.centre.tolist(), "widths": self.width.tolist(), "reach": REACH, "top": self.top}

    def parts(self, j: int) -> list[tuple[str, PartModel]]:
        own = PartModel(self, j, j - 1 if j else None)
        return [("below", PartModel(self, j - 1, None)), ("own", own)] if j else [("own", own)]


@dataclass(frozen=True, eq=False)
class PartModel:
    """A part of marked outcomes in doubles."""

    kind: Kind
    high: int
    low: int | None

    @property
    def end(self) -> float:
        kind = self.kind
        if self.high == len(kind.centre):
            return kind.top
        return float(kind.centre[self.high] + REACH * kind.width[self.high])

    def log_ratio(self, y: Real) -> Real:
        rate, shift = self.kind.rate, self.kind.shift
        return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + shift * (y - shift / 2)))

    def log_plain(self, y: Real) -> Real:
        """log of phi w."""
        centre, width = self.kind.centre, self.kind.width
        total = -0.5 * y * y - 0.5 * math.log(2 * math.pi)
        for i in range(self.high, len(centre)):
            total = total + log_ndtr((centre[i] - y) / width[i])
        if self.low is not None:
            total = total + log_ndtr((y - centre[self.low]) / width[self.low])
        return np.asarray(total)

    @cached_property
    def grid(self) -> tuple[Real, Real, Real]:
        """Outcomes, log r and log of phi w there."""
        low = -16.0 if self.low is None else float(self.kind.centre[self.low] - 22 * self.kind.width[self.low])
        y = np.linspace(low, self.end, _POINTS)
        return y, self.log_ratio(y), self.log_plain(y)

    def log_totals(self, powers: Real) -> tuple[Real, Real]:
        """log of the transform at real points, and of the integrand at the end over it."""
        y, log_r, plain = self.grid
        logs = np.multiply.outer(powers, log_r) + plain
        top = logs.max(axis=1)
        total = top + np.log(np.exp(logs - top[:, None]).sum(axis=1)) + math.log(y[1] - y[0])
        return total, logs[:, -1] - total

    def span(self, ask: Ask) -> float:
        """Where the nodes must begin."""
        y, log_r, plain = self.grid
        logs = ask.power * log_r + plain
        least = float(logs.max()) - ask.nats - ROOM
        first = int(np.argmax(logs > least))
        if self.low is not None:  # to the left of all nodes phi is bounded by 1
            passed = log_ndtr((y - self.kind.centre[self.low]) / self.kind.width[self.low])
            passed = passed + (math.log1p(-self.kind.rate) if ask.backward else log_r) * ask.power
            first = min(first, int(np.argmax(passed > least)))
        return float(y[max(first - 1, 0)])

    def use(self, asks: list[Ask], bend: float | None) -> Use:
        """Nodes that serve all that is asked; with a bend, the more so the first."""
        low = min(self.span(ask) for ask in asks)
        low = low if bend is None else min(low, self.span(asks[0].bent()))
        lift, cost = _ANGLES[:, 0] / self.kind.shift, np.full(len(_ANGLES), 1.0)
        for ask in asks:
            view = View(self, ask.backward, ask.c, low)
            cost = np.maximum(cost, view.carried(ask.t) - view.log_total + ask.nats + ROOM)
            cost = np.maximum(cost, lift * view.slope(ask.t) + view.log_end - view.log_total + ask.nats + ROOM)
        h = 2 * math.pi * lift / cost
        best = int(np.argmax(h))
        use: Use = {"h": min(float(h[best]), 0.5), "v": float(lift[best])}
        use["nodes"] = math.ceil((self.end - low) / use["h"]) + 1
        if bend is not None:
            use["bend"] = bend
        if use["nodes"] > MOST_NODES:
            raise Rejected("too many nodes")
        return use


class View:
    """Cells of a part at one tilt; arrays (angles, cells)."""

    def __init__(self, part: PartModel, backward: bool, c: float, low: float) -> None:
        self.part, kind = part, part.kind
        self.power = -c if backward else c + 1
        self.y = y = np.linspace(low, part.end, _CELLS + 1)
        step = float(y[1] - y[0])
        total, end = part.log_totals(np.array([self.power]))
        self.log_total, self.log_end = float(total[0]), float(total[0] + end[0])
        self.log_r = part.log_ratio(y)
        self.log_hit = math.log(kind.rate) + kind.shift * (y - kind.shift / 2)
        hit = np.exp(np.minimum(self.log_hit, 600.0))
        real, imag = 1 - kind.rate + hit * np.cos(_ANGLES), hit * np.sin(_ANGLES)
        self.lift = _ANGLES / kind.shift
        near = np.where(y[:-1] > 0, y[:-1], np.where(y[1:] < 0, y[1:], 0.0))
        size = 0.5 * self.lift**2 - 0.5 * near**2 - 0.5 * math.log(2 * math.pi) + math.log(step)
        size = size + self.power * (np.log(np.hypot(real, imag))[:, :-1] if backward else self.log_r[None, 1:])
        left = 0.5 * self.lift**2 + log_ndtr(low) + self.power * (math.log1p(-kind.rate) if backward else self.log_r[0])
        for i in [*range(part.high, len(kind.centre)), *([] if part.low is None else [part.low])]:
            growth = 0.5 * (self.lift / kind.width[i]) ** 2
            away = (y - kind.centre[i]) / kind.width[i]
            through, held = log_ndtr(-away)[:-1], log_ndtr(away)[1:]
            if i == part.low:
                through, held = held, through
            size = size + np.minimum(growth + through, np.logaddexp(0.0, growth + held))
            if i == part.low:
                left = left + growth + log_ndtr(away[0])
        self.log_size, self.arg, self.log_left = size, np.arctan2(imag, real), left[:, 0]

    def carried(self, turn: float) -> Real:
        """log of the integral over |..| e^(turn arg), for every angle."""
        arg = self.arg[:, 1:] if turn > 0 else self.arg[:, :-1]
        left = self.log_left + max(turn, 0.0) * self.arg[:, 0]
        return np.asarray(np.logaddexp(np.logaddexp.reduce(self.log_size + turn * arg, axis=1), left))

    def slope(self, t: float) -> Real:
        """How fast the integrand may grow upwards from the end, for every angle."""
        part, kind = self.part, self.part.kind
        found = 0.5 * self.lift + t * kind.shift * min(math.exp(min(self.log_hit[-1], 0.0)) / (1 - kind.rate), 1.0)
        for i in [*range(part.high, len(kind.centre)), *([] if part.low is None else [part.low])]:
            away = (part.end - kind.centre[i]) / kind.width[i] * (-1 if i == part.low else 1)
            closed = 0.5 * (self.lift / kind.width[i]) ** 2 + log_ndtr(away) > math.log(0.1)
            found = found + np.where(closed, 0.5 * self.lift / kind.width[i] ** 2, 0.0)
        return np.asarray(found[:, 0])

    @cached_property
    def layers(self) -> tuple[Real, Real]:
        """Boxes below the density of the loss: heights over the total, and widths."""
        kind, y, log_r, power = self.part.kind, self.y, self.log_r, self.power + 1
        if self.part.low is not None:
            return np.zeros(1), np.zeros(1)
        size = -0.5 * np.maximum(y[:-1] ** 2, y[1:] ** 2) - 0.5 * math.log(2 * math.pi) - self.log_hit[1:]
        size = size - math.log(kind.shift) + np.minimum(power * log_r[:-1], power * log_r[1:])
        for i in range(self.part.high, len(kind.centre)):
            size = size + log_ndtr((kind.centre[i] - y[1:]) / kind.width[i])
        lows = np.exp(size - self.log_total)
        peak = int(np.argmax(lows))
        lows[peak:] = np.minimum.accumulate(lows[peak:])
        lows[: peak + 1] = np.minimum.accumulate(lows[: peak + 1][::-1])[::-1]
        levels = np.sort(lows)[::-1]
        left = np.searchsorted(lows[: peak + 1], levels, side="left")
        right = peak + np.searchsorted(-lows[peak:], -levels, side="right")
        return levels - np.append(levels[1:], 0.0), log_r[right] - log_r[left]

    def fallen(self, t: float) -> tuple[float, float]:
        """log of the bound on all heights from t on, over the value at c; and the lift that shows it."""
        falls = self.carried(-t) - self.log_total
        best = int(np.argmin(falls))
        log, lift = min(float(falls[best]), 0.0), float(self.lift[best, 0])
        heights, widths = self.layers
        gaps = np.maximum(widths[None, :] - 2 / (_MULTIPLES[:, None] * t), 0.0)
        deficit = np.minimum(gaps @ heights, 1.0)
        gain = float((deficit * (2 - deficit) / _MULTIPLES**2).max())
        return min(log, 0.5 * math.log1p(-min(gain, 1 - 1e-15))), lift
