"""A few outcomes z_k of some parts of Z, apart from the rest R: an identity, not a bound.

    delta(eps) = sum over k of m_k delta_R(eps - z_k),

and below zero delta_R(x) = 1 - e^x + e^x delta_B(-x), B the rest in the other direction (no mass at infinity in R: the
hockey-stick divergences of a pair and of its mirror image). Where R has rare large values and eps lies close to some
z_k, no single line serves both scales, and every term here is read on lines of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privloss.numerics.contour.transform import Apart, Transform, log_kappa
from privloss.numerics.floats import Real, exp_down, exp_up, lowered, raised

if TYPE_CHECKING:
    from privloss.numerics.contour.many import Readable

_DRAWN = 24  # how often lines are drawn while eps is sought
_STRIDE, _CLOSE, _NEAR = 2.0, 1e-7, 1e-6  # the longest step, the last one, the distance at which a slope is taken
_WIDENED = 12
_LARGE = 700.0  # e^x beyond this overflows
_NEGLIGIBLE = math.log(1e-13)  # share of delta that outcomes may have which are not read
_FARTHEST = 400.0  # c x of the largest tilts


class Far(NamedTuple):
    """delta_R(x) <= kappa(c) e^(K(c) - c x) + P[what was left out], for every x (Prop. cdp2adp)."""

    c: float
    log_mgf: float
    log_lost: float

    @classmethod
    def at(cls, transform: Transform, x: float, log_small: float = -math.inf) -> Far:
        """For about the best c at x; outcomes of probability e^log_small may be left out."""
        if log_small > -math.inf:
            transform = transform.rid_of(log_small - 1.0)
        tilts = np.geomspace(0.5, _FARTHEST, 14) / x
        guesses = [transform.moments(float(c))[0] - c * x for c in tilts]
        c = float(tilts[int(np.nanargmin(guesses))])
        return cls(c, float(transform.log_mgf_upper(np.array([c]))[0]), transform.log_lost)

    def log_upper(self, x: float) -> float:
        log = float(log_kappa(np.array(self.c))) + self.log_mgf - self.c * x
        log = raised(log, 16, 1 + abs(self.log_mgf) + self.c * abs(x))
        return log if self.log_lost == -math.inf else raised(float(np.logaddexp(log, self.log_lost)), 8, 1 + abs(log))

    def log_bounds(self, eps: Real) -> tuple[Real, Real]:
        return np.full(len(eps), -math.inf), np.array([self.log_upper(float(x)) for x in eps])


class Read(NamedTuple):
    """delta at one point, and what it was read from, if that may be read elsewhere; otherwise up to `pad` away."""

    logs: tuple[float, float]
    readable: Readable | None
    pad: float = 0.0


Ask = Callable[[Transform, float, float], Read]  # the engine's delta at eps, with a tolerance


@dataclass(frozen=True, eq=False)
class _Term:
    """delta_R near one x = eps - z_k, read forward at x or backward at -x; it falls in x."""

    x: float
    read: Read
    whole: Transform
    backward: bool

    def bounds(self, low: float, high: float) -> tuple[float, float]:
        """Lower and upper bounds on delta_R for all x in [low, high]."""
        return self._at(high)[0], self._at(low)[1]

    def _at(self, x: float) -> tuple[float, float]:
        logs = self._logs(x)
        lower, upper = exp_down(min(logs[0], 0.0)), exp_up(min(logs[1], 0.0))
        if not self.backward:
            return lower, upper
        if x > _LARGE:
            return 0.0, 1.0
        grown, fallen = math.exp(x), -math.expm1(x)
        size = 8 * (abs(fallen) + grown * upper)
        low, high = fallen + grown * lower, fallen + grown * upper
        return max(lowered(low, 2, size), 0.0), min(raised(high, 2, size), 1.0)

    def _logs(self, x: float) -> tuple[float, float]:
        at = -x if self.backward else x
        if at >= self.whole.largest:
            return -math.inf, -math.inf
        if self.read.readable is not None:
            found = self.read.readable.log_bounds(np.array([at]))
            return float(found[0][0]), float(found[1][0])
        lower, upper = self.read.logs
        own, pad = abs(self.x), self.read.pad  # delta falls
        if at < 0 and own <= pad and upper < 0:  # and by no more than e^x, where 0 was asked
            upper = min(raised(math.log(math.exp(upper) - at), 4, 1.0 - upper), 0.0)
        return -math.inf if at > own + pad else lower, 0.0 if at < own - pad else upper


@dataclass(frozen=True, eq=False)
class _Drawn:
    """All terms, drawn for one eps; those that hardly matter are bounded by moments of the rest."""

    apart: Apart
    terms: tuple[_Term, ...]
    far: Far | None

    def log_bounds(self, eps: float) -> tuple[float, float]:
        apart, read = self.apart, len(self.terms)
        lower, upper = 0.0, apart.left
        off = apart.off + 2.3e-16 * (abs(eps) + float(np.abs(apart.values).max()))
        for i, term in enumerate(self.terms):
            x = eps - float(apart.values[i])
            least, most = term.bounds(x - off, x + off)
            lower += float(apart.masses[0][i]) * least
            upper += float(apart.masses[1][i]) * most
        if self.far is not None:  # smaller losses, and delta_R falls
            x = eps - float(apart.values[read]) - off
            upper += float(apart.masses[1][read:].sum()) * exp_up(min(self.far.log_upper(x), 0.0))
        units = 4 + 2 * len(apart.values)
        lower, upper = lowered(lower, units), min(raised(upper, units), 1.0)
        return (
            lowered(math.log(lower), 4, 1 + abs(math.log(lower))) if lower > 0 else -math.inf,
            min(raised(math.log(upper), 4, 1 + abs(math.log(upper))), 0.0) if upper > 0 else -math.inf,
        )


def _draw(apart: Apart, eps: float, log_small: float, tolerance: float, ask: Ask) -> _Drawn:
    """What is surely below e^log_small is not read."""
    terms: list[_Term] = []
    waiting, far = float(apart.masses[1].sum()), None
    for value, high in zip(apart.values.tolist(), apart.masses[1].tolist(), strict=True):
        x = eps - value
        if x > 0:
            far = Far.at(apart.rest, x, log_small)
            if math.log(waiting) + far.log_upper(x) <= log_small:
                break
            far = None
        whole = apart.back if x < 0 else apart.rest
        terms.append(_Term(x, _read(whole, abs(x), apart.off, tolerance, ask), whole, x < 0))
        waiting = max(waiting - high, 1e-300)
    return _Drawn(apart, tuple(terms), far)


def _read(whole: Transform, x: float, off: float, tolerance: float, ask: Ask) -> Read:
    found = ask(whole, x, tolerance)
    if found.readable is not None or x >= whole.largest:
        return found
    pad = 4 * off + 1e-12 * x
    return Read((ask(whole, x + pad, tolerance).logs[0], ask(whole, max(x - pad, 0.0), tolerance).logs[1]), None, pad)


def delta_apart(apart: Apart, eps: float, log_about: float, tolerance: float, ask: Ask) -> tuple[float, float]:
    """log of lower and upper bounds on delta(eps); `log_about` is not much below it."""
    return _draw(apart, eps, log_about + _NEGLIGIBLE, tolerance, ask).log_bounds(eps)


def epsilon_apart(
    apart: Apart, level: tuple[float, float], guess: float, tolerance: float, ask: Ask
) -> tuple[float, float]:
    """(lower, upper) with delta(upper) <= delta <= delta(lower); an end that could not be met is infinite.

    Newton steps on log delta, each on terms drawn anew, or bisection where they leave the range that holds eps.
    """
    eps, low, high = guess, 0.0, math.inf
    for _ in range(_DRAWN):
        drawn = _draw(apart, eps, level[0] + _NEGLIGIBLE, tolerance, ask)
        least, most = drawn.log_bounds(eps)
        low, high = (max(low, eps) if least >= level[1] else low), (min(high, eps) if most <= level[0] else high)
        slope = _slope(drawn, eps)
        new = eps + (0.5 * (least + most) - level[0]) / slope if slope > 0 else -1.0
        if low <= new <= high and abs(new - eps) <= _CLOSE * eps:
            return _ends(drawn, level, new, slope)
        known = least >= level[1] or most <= level[0]
        if not known:  # too far out for any line
            new = 0.5 * (low + eps)
        elif not low < new < high or not eps / _STRIDE < new < eps * _STRIDE:
            new = 0.5 * (low + high) if high < math.inf else _STRIDE * eps
        eps = new
    return low if low > 0 else -math.inf, high


def _slope(drawn: _Drawn, eps: float) -> float:
    """-d log delta / d eps; 0 where it cannot be told."""
    here, there = (0.5 * sum(drawn.log_bounds(at)) for at in (eps, eps * (1 + _NEAR)))
    return max((here - there) / (_NEAR * eps), 0.0) if math.isfinite(here - there) else 0.0


def _ends(drawn: _Drawn, level: tuple[float, float], root: float, slope: float) -> tuple[float, float]:
    """Away from the root until both ends are sure."""
    least, most = drawn.log_bounds(root)
    up, down = (max(1.05 * off / slope, 4e-16 * root) for off in (most - level[0], level[1] - least))
    high_met = low_met = False
    for _ in range(_WIDENED):
        high_met = high_met or drawn.log_bounds(root + up)[1] <= level[0]
        low_met = low_met or drawn.log_bounds(max(root - down, 0.0))[0] >= level[1]
        if high_met and low_met:
            break
        up, down = up if high_met else 3 * up, down if low_met else 3 * down
    return max(root - down, 0.0) if low_met else -math.inf, root + up if high_met else math.inf
