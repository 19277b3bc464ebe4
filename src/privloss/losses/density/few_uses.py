"""A few uses of a density between two atoms (Laplace noise on a sample): what makes lines fall slowly is taken off.

One use has atoms at both ends b of its losses and a density p between them, so its transform M(z) falls only like the
atoms and like 1/z. Let p_m be the jump of the m-th derivative of p at an end (times (-1)^m at the upper end, -(-1)^m at
the lower one). By parts M is the sum over both ends of e^(zb) (atom + sum over m < J of p_m/z^(m+1)), up to W/|z|^J,
W the integral of |p^(J)| e^(cx). Re-expanded in powers of xi = a/(z + a), up to the J-th, this is

    N(z) = U(xi) e^(z b_1) + D(xi) e^(z b_0),        U, D polynomials of degree J.

N^n is a sum of xi^k e^(z b) with b = i b_1 + (n-i) b_0, whose integrals with e^(-z eps)/(z(z+1)) are closed:

    H_k(x) = integral of e^(-(x-s)) P(k, as) over 0 < s < x,    x = b - eps > 0, and 0 for x <= 0,

P the regularised incomplete gamma function; H_k - H_(k+1) = J_(k+1)/a with J_j = e^-x (a/(a-1))^j P(j, (a-1)x) > 0, and
H_0 = 1 - e^-x, so that sums of positive terms give all of them. M^n - N^n is left for a line, and falls like z^-(J+2).

*Any* U and D are right: their coefficients are taken as the doubles they are, and their roundings e_k only add e_k/|z|
to what is bounded beyond the last height. With y in (x, 1) the re-expansion of z^-(m+1) leaves out at most
a^-(m+1) (x/y)^(J+1) (y/(1-y))^(m+1), x = |xi|.

*Images.* The trapezoid sum with period L gives sum over j of e^(cjL) g(eps + jL), g = delta - (that of N^n). For
L >= n (b_1 - b_0) and 0 <= eps < n b_1 there is none to the right; the first to the left is known, as
delta(eps - L) = 1 - e^(eps - L) below all losses; the others are at most e^(-2cL) (1 + sum of coefficients) over
1 - e^-cL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from privloss.losses.density.legendre import NODES, LogBound, error, log_ends, panels
from privloss.losses.mixture.marked import turned
from privloss.numerics.contour.reading import Sum
from privloss.numerics.contour.transform import TooExpensive, log_kappa
from privloss.numerics.floats import UNIT, Complex, Real, lowered, padded_up, raised
from privloss.numerics.stable import exp_or_inf

TERMS = 16  # J
_STRETCH = 0.7  # a, in units of J over the length on which p changes at an end
_PERIOD, _TILT = 1.15, 20.0  # L over n (b_1 - b_0); c L at least
_TILTS = 20
_CUT = 1e-11  # share of about delta that is cut off
_FAINT = 1e-13  # share of delta for which images need not be known
_PER_PANEL = 11.0  # radians
_MOST = 60_000_000  # nodes times heights
_MOST_NODES = 40_000
_SHORT = 400.0  # range of losses, over the length on which p changes, for which lines are short
MOST_USES = 60
_MOST_COLUMNS = 3_000
_SHARES = np.linspace(0.02, 0.98, 49)


@dataclass(frozen=True)
class End:
    """One end of the losses: where, the atom, the jumps p_m and bounds on their roundings."""

    at: float
    atom: float
    jumps: Real
    wrong: Real


@dataclass(frozen=True, eq=False)
class FewUses:
    """n uses of one loss: the density in terms of a variable between `low` and `high`."""

    upper: End
    lower: End
    count: int
    low: float
    high: float
    log_mass: Callable[[Real], Real]  # log of the P-density by that variable
    loss: Callable[[Real], Real]
    bound: LogBound  # off the axis, as in `legendre.py`, less c b_1
    rest: Callable[[float], float]  # c -> W e^(-c b_1)
    rate: float  # an upper bound on the slope of the loss by the variable
    length: float  # on which p changes at the ends
    slack: float

    @cached_property
    def _a(self) -> float:
        return max(_STRETCH * TERMS / self.length, 4.0)

    @property
    def largest(self) -> float:
        """The modulus of the largest loss or of its distance from another, which roundings are measured by."""
        return max(abs(self.upper.at), abs(self.lower.at)) + self.upper.at - self.lower.at

    @property
    def short(self) -> bool:
        """Whether the line has few heights."""
        return self.count * (self.upper.at - self.lower.at) < _SHORT * self.length

    @cached_property
    def _period(self) -> float:
        return _PERIOD * self.count * (self.upper.at - self.lower.at)

    @cached_property
    def _polynomials(self) -> tuple[Real, Real]:
        """U and D: z^-(m+1) is the sum over k of C(k-1, m) a^(k-1-m) (z+a)^-k."""
        found = []
        for end in (self.upper, self.lower):
            own = np.zeros(TERMS + 1)
            own[0] = end.atom
            for m, jump in enumerate(end.jumps):
                for k in range(m + 1, TERMS + 1):
                    own[k] += jump * math.comb(k - 1, m) * self._a ** -(m + 1)
            found.append(own)
        return found[0], found[1]

    @cached_property
    def _powers(self) -> tuple[Real, Real]:
        """b, and the coefficients of each, (n + 1, n J + 1)."""
        n, (up, down) = self.count, self._polynomials
        ups, downs = [np.ones(1)], [np.ones(1)]
        for _ in range(n):
            ups.append(np.convolve(ups[-1], up))
            downs.append(np.convolve(downs[-1], down))
        rows = [math.comb(n, i) * np.convolve(ups[i], downs[n - i]) for i in range(n + 1)]
        i = np.arange(n + 1)
        return i * self.upper.at + (n - i) * self.lower.at, np.array(rows)

    @cached_property
    def _sizes(self) -> Real:
        """The sum over each row of what the coefficients are made of."""
        n, (up, down) = self.count, (np.abs(p).sum() for p in self._polynomials)
        return np.array([math.comb(n, i) * up**i * down ** (n - i) for i in range(n + 1)])

    def closed(self, eps: float) -> tuple[float, float]:
        """The part of N^n, and its error."""
        b, rows = self._powers
        x = b - eps
        some = x > 0
        if not np.any(some):
            return 0.0, 0.0
        heads, units = _gammas(x[some], self._a, rows.shape[1])
        terms = rows[some] * heads
        # the coefficients: n J roundings of what they are made of; x is as wrong as b and eps, dH/dx <= 1
        off = UNIT * float((self._sizes[some] * heads.max(axis=1)).sum()) * (16 + 4 * rows.shape[1])
        shift = 8 * UNIT * float((self._sizes[some] * (np.abs(b[some]) + abs(eps))).sum())
        return float(terms.sum()), off + shift + UNIT * float(np.abs(terms).sum(axis=1) @ units)

    def hockey_stick(self, eps: float) -> tuple[float, float]:
        """log of bounds on delta(eps), eps >= 0."""
        if eps >= raised(self.count * self.upper.at, 8):
            return -math.inf, -math.inf
        return log_ends(*self.on_line(self._line(eps, abs(self.closed(eps)[0])), eps))

    def on_line(self, line: Remainder, eps: float) -> tuple[float, float]:
        """delta(eps) and its error."""
        value, wrong = self.closed(eps)
        above, doubt = line.read(eps)
        weight = math.exp(-line.c * self._period)
        far = weight * weight * (1 + float(self._sizes.sum())) / (1 - weight)
        gap = image = off = 0.0
        if weight * (1 + float(self._sizes.sum())) < _FAINT * abs(value):  # both are at most that
            far += 2 * weight * (1 + float(self._sizes.sum()))
        else:
            image, off = self.closed(eps - self._period)
            gap = -math.expm1(eps - self._period) - image
        doubt += wrong + weight * (off + 4 * UNIT * (1 + abs(image))) + 1.01 * far
        doubt += 8 * UNIT * (abs(value) + abs(above) + weight * abs(gap) * (2 + line.c * self._period))
        total = value + above - weight * gap
        if not (math.isfinite(total) and math.isfinite(doubt)):  # out of the range of doubles
            return 0.5, 0.5
        return total, padded_up(doubt, 1e-6)

    def reading(self, log_delta: float) -> FewReading | None:
        """One line for eps near the one that belongs to delta, which the moments bound says roughly."""
        losses, masses = self._coarse
        tilts = np.geomspace(1.0, 3e3, 40) / (self.count * self.upper.at)
        with np.errstate(over="ignore"):
            sums = np.exp(np.multiply.outer(tilts, losses - self.upper.at)) @ masses
        logs = self.count * (np.log(sums) + tilts * self.upper.at)
        eps = float(((logs + log_kappa(tilts) - log_delta) / tilts).min())
        if not 0 < eps < self.count * self.upper.at:
            return None
        return FewReading(self, self._line(eps, math.exp(max(log_delta, -700.0))), eps, log_delta)

    # -- the line ------------------------------------------------------------------------------------------------------

    @cached_property
    def _lines(self) -> dict[int, Remainder]:
        return {}

    @cached_property
    def _coarse(self) -> tuple[Real, Real]:
        """Losses and masses for choosing tilts."""
        x, weights, _ = panels(self.low, self.high, 0.5)
        losses = np.append(self.loss(x), [self.upper.at, self.lower.at])
        return losses, np.append(weights * np.exp(self.log_mass(x)), [self.upper.atom, self.lower.atom])

    def _line(self, eps: float, about: float) -> Remainder:
        """The one of a few tilts that makes the integrand smallest."""
        losses, masses = self._coarse
        tilts = _TILT / self._period * 2.0 ** (0.5 * np.arange(_TILTS))
        tilts = tilts[: max(int((tilts <= self._most_tilt).sum()), 1)]
        with np.errstate(over="ignore", under="ignore"):
            sums = np.exp(np.multiply.outer(tilts, losses - self.upper.at)) @ masses
        x = self.count * self.upper.at - eps
        heights = self.count * np.log(sums) + tilts * x - np.log(tilts)
        i = int(np.argmin(heights))
        if i not in self._lines:
            goal = _CUT * max(about, 1e-6 * math.exp(min(float(heights[i]), 700.0)))
            self._lines[i] = Remainder.on(self, float(tilts[i]), goal * math.exp(-min(float(tilts[i]) * x, 600.0)))
        return self._lines[i]

    @property
    def _most_tilt(self) -> float:
        """From which on quadrature needs too many nodes."""
        return _MOST_NODES / NODES * _PER_PANEL / ((self.high - self.low) * self.rate)

    def beyond(self, c: float, t: Real, whole: float) -> Real:
        """A bound on the integral of |M^n - N^n|/|z(z+1)| beyond each height, over pi; `whole` is M(c), or more."""
        xi = self._a / np.hypot(self._a + c, t)
        worst, total = np.zeros_like(t), np.zeros_like(t)
        m = np.arange(TERMS)[:, None, None]
        y = xi[None, :, None] + (1 - xi)[None, :, None] * _SHARES
        with np.errstate(over="ignore", divide="ignore", under="ignore"):
            left = ((TERMS + 1) * np.log(xi[None, :, None] / y) + (m + 1) * np.log(y / (1 - y))).min(axis=2)
        size = 0.0
        for end, own in zip((self.upper, self.lower), self._polynomials, strict=True):
            grown = math.exp(c * (end.at - self.upper.at))
            scaled = np.abs(end.jumps) * self._a ** -(np.arange(TERMS) + 1.0)
            total = total + grown * (scaled @ np.exp(left))
            # roundings of the jumps and of the coefficients made of them
            wrong = end.wrong * self._a ** -(np.arange(TERMS) + 1.0)
            ways = np.array([math.comb(TERMS, j + 1) for j in range(TERMS)])
            worst = worst + grown * float((wrong + 4 * (TERMS + 4) * UNIT * scaled) @ ways) * xi
            size += grown * float(np.abs(own).sum())
        rest = self.rest(c)
        most = max(size, whole) ** (self.count - 1)
        # |z|^-J and the other parts, which fall with t, times t^-2
        each = rest * t ** -(TERMS + 1.0) / (TERMS + 1) + (total + worst) / t
        return np.asarray(padded_up(self.count * most * each / math.pi, 1e-9))


@dataclass(frozen=True, eq=False)
class FewReading:
    """Several eps near the one that a line was drawn for, as `contour/reading.py` solves them."""

    few: FewUses
    line: Remainder
    eps: float
    reference: float

    def read(self, eps: Real) -> Sum:
        found = np.array([self.few.on_line(self.line, float(e)) for e in eps]) * math.exp(-self.reference)
        return Sum(found[:, 0], found[:, 1], found[:, 1])

    def log_bounds(self, eps: Real) -> tuple[Real, Real]:
        ends = np.array([log_ends(*self.few.on_line(self.line, float(e))) for e in eps])
        return lowered(ends[:, 0], 4, 1 + np.abs(ends[:, 0])), raised(ends[:, 1], 4, 1 + np.abs(ends[:, 1]))

    def log_value(self, eps: float) -> float:
        return math.log(max(self.few.on_line(self.line, eps)[0], 1e-300))


@dataclass(frozen=True, eq=False)
class Remainder:
    """M^n - N^n at equally spaced heights of one line, for losses less b_1 each: nothing is large then."""

    c: float
    period: float
    t: Real
    most: float  # n b_1
    values: Complex  # over z (z + 1)
    errors: Real
    cut: float

    @classmethod
    def on(cls, few: FewUses, c: float, goal: float) -> Remainder:
        with np.errstate(all="ignore"):  # beyond the range of doubles nothing is known, which `on_line` says
            return cls._on(few, c, goal)

    @classmethod
    def _on(cls, few: FewUses, c: float, goal: float) -> Remainder:
        step = 2 * math.pi / few._period
        heights = few._a * np.geomspace(0.3, 300.0, 120)
        real, doubt = cls._transform(few, c, np.zeros(1), min(0.5, _PER_PANEL / (few.rate * c)))
        top = float(real[0].real + doubt[0])
        bounds = few.beyond(c, heights, top)
        k = int(np.argmax(bounds <= goal)) if np.any(bounds <= goal) else len(heights) - 1
        size = math.ceil(heights[k] / step)
        width = min(0.5, _PER_PANEL / (few.rate * math.hypot(float(heights[k]), c)))
        if size * (few.high - few.low) / width * NODES > _MOST:
            raise TooExpensive("a long line of a few uses")
        t = step * np.arange(size + 1)
        whole, off = cls._transform(few, c, t, width)
        xi = few._a / (few._a + c + 1j * t)
        taken, doubt = np.zeros_like(whole), np.zeros_like(t)
        for end, own in zip((few.upper, few.lower), few._polynomials, strict=True):
            turn = np.exp((c + 1j * t) * (end.at - few.upper.at))
            taken = taken + np.polyval(own[::-1], xi) * turn
            doubt = doubt + float(np.abs(own).sum()) * np.abs(turn) * (64 + 8 * np.hypot(c, t) * few.largest)
        n, z = few.count, c + 1j * t
        most = np.maximum(np.abs(whole), np.abs(taken)) + off + UNIT * doubt
        errors = n * most ** (n - 1) * (off + UNIT * doubt) + 16 * n * UNIT * most**n
        kernel = 1 / (z * (z + 1))
        cut = float(few.beyond(c, np.array([step * size]), top)[0])
        return cls(
            c, few._period, t, n * few.upper.at, (whole**n - taken**n) * kernel, 1.01 * errors * np.abs(kernel), cut
        )

    @classmethod
    def _transform(cls, few: FewUses, c: float, t: Real, width: float) -> tuple[Complex, Real]:
        """M and its error."""
        x, weights, half = panels(few.low, few.high, width)
        losses = few.loss(x) - few.upper.at
        log_mass = np.log(weights) + few.log_mass(x)
        drift = np.full(len(x), 16 * few.largest)
        value, off = turned(log_mass, losses, np.full(len(x), few.slack), drift, c, t)
        off = off + error(half, len(x) // NODES, few.bound)(c, t)
        for end in (few.upper, few.lower):
            turn = np.exp((c + 1j * t) * (end.at - few.upper.at))
            value = value + end.atom * turn
            off = off + UNIT * end.atom * np.abs(turn) * (few.slack + 16 + 8 * np.hypot(c, t) * few.largest)
        return value, off

    def read(self, eps: float) -> tuple[float, float]:
        """The integral at eps, images included, and its error."""
        left = self.most - eps
        turns = np.exp(1j * self.t * left) * self.values
        once = exp_or_inf(self.c * left)
        total = float(turns.real.sum()) * 2 - float(turns.real[0])
        wrong = self.errors + 8 * UNIT * (2 + (abs(eps) + 2 * self.most) * np.hypot(self.c, self.t)) * np.abs(
            self.values
        )
        off = 2 * float(wrong.sum()) + 32 * UNIT * float(np.abs(self.values).sum())
        return once * total / self.period, once * (off / self.period + self.cut)


def _gammas(x: Real, a: float, size: int) -> tuple[Real, Real]:
    """H_k(x) for k < size, one row for each x, and relative roundings of a row in units.

    P(j, y) is the tail of a Poisson law of mean y: the sum of its probabilities from j on.
    """
    y = (a - 1) * x
    far = y > 2.0 * size + 60.0
    columns = size + 60
    if not np.all(far):
        top = float(y[~far].max())
        columns = max(columns, int(top + 12 * math.sqrt(top) + 60))
    if columns > _MOST_COLUMNS:
        raise TooExpensive("too many powers")
    j = np.arange(columns)
    logs = gammaln(j + 1.0)
    law = np.exp(np.outer(np.log(y), j) - y[:, None] - logs)
    grown = np.exp(j * -math.log1p(-1 / a) - x[:, None])
    found = np.empty((len(x), size))
    if np.any(far):  # 1 minus few probabilities, and H_0 minus few J_j
        below = np.concatenate([np.zeros((int(far.sum()), 1)), np.cumsum(law[far], axis=1)[:, :-1]], axis=1)
        steps = grown[far] * (1 - below) / a
        found[far] = -np.expm1(-x[far])[:, None] - np.cumsum(steps[:, : size + 1], axis=1)[:, :size] + steps[:, :1]
    near = ~far
    if np.any(near):
        tails = np.cumsum(law[near][:, ::-1], axis=1)[:, ::-1]
        steps = grown[near] * tails / a
        found[near] = np.cumsum(steps[:, ::-1], axis=1)[:, ::-1][:, 1 : size + 1]
    units = 64 + 8.0 * columns + 16 * (y + columns * np.abs(np.log(y)) + logs[-1])
    return found, units
