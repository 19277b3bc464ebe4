"""Shuffled reports of binary randomised response, exactly: the largest delta over all values that the others may hold.

What is seen is the number of ones. Let p = 1/(e^eps0 + 1), let j of the n - 1 others hold a one, and let W be the
number of ones among their reports. Where the changed record holds a one instead of a zero, the outcome is W + B with
P[B = 1] = 1 - p or p (the other order is this one with ones and zeros swapped, n - 1 - j for j). W is a sum of
independent bits, so its law is log-concave, and the likelihood ratio grows with the number of ones. Hence
delta = max over k of

    h(k) = P[W + B > k | one] - e^eps P[W + B > k | zero] = a P[W = k] - b P[W > k],

a = 1 - p - e^eps p, b = e^eps - 1.

*Which k.* h(k) - h(k-1) = (a + b) P[W = k] - a P[W = k-1] >= 0 if and only if P[W = k] e^(m k) does not fall from k - 1
to k, m = log(1 + b/a). That is the law of W tilted by m, again of a sum of independent bits; it is log-concave, so the
best k is its mode, which lies less than 1 from its mean (Darroch 1964). The whole numbers next to the mean are tried,
for every j.

*The value.* For every c > 0 the sum of h(k) e^(uk) over all integers k is G(u) = E[e^(uW)] (a - b/(e^u - 1)) on
Re u = c, so the mean of G(u) e^(-uk) over N equally spaced u = c + i x, |x| <= pi, is h(k) plus the sum of
h(k + lN) e^(clN) over l != 0. Those are bounded by |h(k)| <= (a + b) E[e^(yW)] e^(-yk) for any y >= 0, with y < c for
l < 0 and y > c for l > 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privloss.numerics.floats import UNIT, Complex, Real, widened
from privloss.numerics.solve import decreasing_root
from privloss.numerics.stable import log1p_polar

MOST_PEOPLE = 1_000_000  # beyond, going through all j takes too long
_REACH = 9.5  # the nodes end where |E e^(uW)| has fallen to about e^(-_REACH^2 / 2)
_FAR = 38.0  # what wraps around is smaller by about e^-_FAR
_CHUNK = 2**12
_ROUNDS, _BESIDE = 12, 16  # of solving for epsilon, and how many j beside the worst one are added each time


@dataclass(frozen=True)
class _Bits:
    """The numbers that do not depend on j: a and b, and the logs of E e^(uB) for bits that are one mostly or rarely."""

    rare: float  # p
    a: float
    b: float

    @classmethod
    def at(cls, eps0: float, eps: float) -> _Bits:
        small = math.exp(-eps0)
        return cls(small / (1 + small), -math.expm1(eps - eps0) / (1 + small), math.expm1(eps))

    def logs(self, y: float) -> tuple[float, float]:
        """log E e^(yB), for one bit that is one with probability 1 - p, and for one with p; y >= 0."""
        return y + math.log1p(self.rare * math.expm1(-y)), math.log1p(self.rare * math.expm1(y))

    def means(self, y: float) -> tuple[float, float]:
        """The means of the two tilted bits."""
        odds = self.rare / (1 - self.rare)
        return 1 / (1 + odds * math.exp(-y)), odds * math.exp(y) / (1 + odds * math.exp(y))

    def around(self, c: float, x: Real) -> tuple[Real, Real, Real, Real]:
        """log|.| and angle of E e^(uB)/E e^(cB), u = c + i x, for both kinds of bits: 1 + w (e^(ix) - 1)."""
        found: list[Real] = []
        for w in self.means(c):
            found.extend(log1p_polar(-2 * w * np.sin(0.5 * x) ** 2, w * np.sin(x)))
        return found[0], found[1], found[2], found[3]


class Found(NamedTuple):
    """The logs of both ends of delta, and the j that has the largest upper one."""

    low: float
    high: float
    worst: float


def log_delta(eps0: float, eps: float, people: int, among: Real | None = None) -> Found:
    """delta(eps) of n shuffled bits, 0 <= eps < eps0: the largest over all j, or over some of them."""
    bits, others = _Bits.at(eps0, eps), people - 1
    if others == 0:
        return Found(*widened(math.log(bits.a), 32, 1 + abs(math.log(bits.a))), 0.0)
    best = math.log1p(bits.b / bits.a)
    spread = math.sqrt(others * sum(w * (1 - w) for w in bits.means(best)) / 2 + 0.25)
    line = _Line.of(bits, others, max(best, 0.5 / spread))
    ones, zeros = bits.means(best)
    j = np.arange(people, dtype=float) if among is None else among
    middle = np.rint(j * ones + (others - j) * zeros)
    most = line.at_most(j, middle - 1)  # of all three k
    order = np.argsort(-most, kind="stable")
    low, high, worst = -math.inf, -math.inf, 0.0
    for start in range(0, len(j), _CHUNK):
        some = order[start : start + _CHUNK]
        if most[some[0]] <= low:  # and so are all that follow
            break
        for shift in (-1.0, 0.0, 1.0):
            bottom, top = line.read(j[some], middle[some] + shift)
            low = max(low, float(bottom.max()))
            if top.max() > high:
                high, worst = float(top.max()), float(j[some[int(top.argmax())]])
    return Found(low, high, worst)


def epsilon(eps0: float, people: int, log_target: tuple[float, float], start: float) -> tuple[float, float]:
    """Bounds on the eps at which delta is e^log_target: solved for a few j, then all are asked once."""
    chosen = {0.0, float(people - 1), float((people - 1) // 2)}
    lower = 0.0
    for _ in range(_ROUNDS):
        some = np.array(sorted(chosen))

        def ends(eps: float, some: Real = some) -> tuple[float, float]:
            return log_delta(eps0, eps, people, some)[:2] if eps < eps0 else (-math.inf, -math.inf)

        low, high = decreasing_root(ends, log_target, start)
        lower = max(lower, low)
        start = high = min(high, eps0)
        for upper in (high, min(high * (1 + 1e-9), eps0)):
            if upper >= eps0:
                return lower, eps0
            everyone = log_delta(eps0, upper, people)
            if everyone.high <= log_target[0]:
                return lower, upper
        near = everyone.worst + np.arange(-_BESIDE, _BESIDE + 1)
        chosen |= {float(v) for v in near if 0 <= v < people}
    return lower, eps0


@dataclass(frozen=True)
class _Line:
    bits: _Bits
    others: int
    c: float
    size: int  # N
    x: Real
    weight: Complex  # of the nodes: 2 for conjugate pairs, over N, times a - b/(e^u - 1)
    turns: tuple[Real, Real, Real, Real]

    @classmethod
    def of(cls, bits: _Bits, others: int, c: float) -> _Line:
        """Every c > 0 and N is sound; N so that what wraps around is small, and the nodes to where E e^(uW) is."""
        variances = [w * (1 - w) for w in bits.means(c)]
        spread = math.sqrt(others * max(variances) + 0.25)
        size = math.ceil(max(2 * math.sqrt(2 * _FAR) * spread, _FAR / c, 2.0) + 4)
        size = min(size, max(others + math.ceil(_FAR / c), 4) + 4)
        last = min(_REACH / math.sqrt(others * min(variances) + 1e-300), math.pi)
        count = min(math.ceil(last * size / (2 * math.pi)), size // 2)
        x = 2 * math.pi / size * np.arange(count + 1)
        weight = np.where(x > 0, 2.0, 1.0) / size
        if 2 * count == size:
            weight[-1] = 1.0 / size  # the node at -1 is its own conjugate
        # a - b/(e^u - 1) = (a (e^u - 1) - b)/(e^u - 1)
        grown = math.expm1(c) * np.cos(x) - 2 * np.sin(0.5 * x) ** 2 + 1j * math.exp(c) * np.sin(x)
        return cls(bits, others, c, size, x, weight * (bits.a * grown - bits.b) / grown, bits.around(c, x))

    def read(self, j: Real, k: Real) -> tuple[Real, Real]:
        """(log lower, log upper) of h(k) for every j; -inf for a lower end that is not positive."""
        n, c, rest = self.others, self.c, self.others - j
        r1, t1, r0, t0 = (v[None, :] for v in self.turns)
        log1, log0 = self.bits.logs(c)
        plain = np.exp(j[:, None] * r1 + rest[:, None] * r0)
        angle = j[:, None] * t1 + rest[:, None] * t0 - k[:, None] * self.x + np.angle(self.weight)
        total = (plain * np.cos(angle)) @ np.abs(self.weight)
        # the moduli carry roundings of n log|.|, the angles of n x, both below n x; the weights those of what they were
        # made from; and the sum its own
        drift = UNIT * (64 + 64 * n * np.abs(self.x) + len(self.x)) * np.abs(self.weight)
        beside = self.bits.b / np.hypot(math.expm1(c), 2 * math.exp(c / 2) * np.sin(self.x / 2))
        error = plain @ (drift + 128 / self.size * UNIT * (self.bits.a + beside))
        error = error + self._cut(j) + np.exp(self._wrapped(j, k))
        scale = j * log1 + rest * log0 - c * k
        slack = UNIT * (64 + 16 * (j * log1 + rest * log0 + c * np.abs(k)))
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(total > error, np.log(np.maximum(total - error, 0.0)) + scale - slack, -np.inf)
            return low, np.log(np.maximum(total + error, 1e-300)) + scale + slack

    def at_most(self, j: Real, k: Real) -> Real:
        """log of an upper bound on h at k and beyond: (a + b) P[W >= k] <= (a + b) E[e^(cW)] e^(-ck)."""
        log1, log0 = self.bits.logs(self.c)
        return np.asarray(j * log1 + (self.others - j) * log0 - self.c * k + math.log(self.bits.a + self.bits.b) + 1e-6)

    def _cut(self, j: Real) -> Real:
        """The nodes that were left out: |1 + w (e^(ix) - 1)|^2 = 1 - 4 w (1-w) sin^2(x/2) falls in x up to pi."""
        left = self.size - (2 * len(self.x) - 1)
        if left <= 0:
            return np.zeros_like(j)
        r1, _, r0, _ = self.bits.around(self.c, self.x[-1:])
        most = self.bits.a + self.bits.b / math.expm1(self.c)
        return left / self.size * most * np.exp(j * r1 + (self.others - j) * r0) * (1 + 1e-6)

    def _wrapped(self, j: Real, k: Real) -> Real:
        """log of a bound on the sum of |h(k + lN)| e^(clN) over l != 0, in units of E[e^(cW)] e^(-ck)."""
        rest, at = self.others - j, self.bits.logs(self.c)
        found = [np.full_like(j, np.inf), np.full_like(j, np.inf)]
        for factor in (0.0, 0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0):
            y = factor * self.c
            top = self.bits.logs(y)
            gap = abs(y - self.c) * self.size
            rise = j * (top[0] - at[0]) + rest * (top[1] - at[1]) - (y - self.c) * k
            rise = rise - gap - math.log(-math.expm1(-gap)) + math.log(self.bits.a + self.bits.b)
            side = int(factor > 1)
            found[side] = np.minimum(found[side], rise + 1e-6)
        return np.minimum(np.logaddexp(found[0], found[1]), 700.0)
