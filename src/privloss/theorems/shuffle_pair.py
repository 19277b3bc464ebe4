"""The pairs behind shuffled reports, each written as a sum: delta(eps) = E[(X_1 + ... + X_n)_+] / n, X_i independent.

Why a sum. Let everybody use one randomiser R, let all but one person hold fixed values, and let w be a measure with
w <= R(x) for every value x, of total mass g. Each other report is drawn from w/g with probability g; whoever sees
which ones were not, and what those said, sees more than the shuffled reports. What is left are C + 1 reports in random
order, C ~ Bin(n-1, g), of which one comes from R(x0) or from R(x1). With l = (R(x0) - e^eps R(x1)) / w their density
difference is the mean of g l over the reports (relative to independent draws from w/g), and P[Bin(n-1, g) = m-1] g/m =
P[Bin(n, g) = m]/n turns delta into E[(X_1 + ... + X_n)_+]/n, where X = l(Y), Y drawn from w, and X = 0 with
probability 1 - g (Balle, Bell, Gascon, Nissim 2019, Lem. 5.3). The same formula holds with w = R(y), g = 1, and then
with equality, if all the others hold the value y.

>>> low, high = log_delta(blanket(1.0, 0.5, 2), 1.0, people=1)       # one person: (e - e^0.5) / (e + 1)
>>> low <= math.log((math.e - math.exp(0.5)) / (math.e + 1)) <= high
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from privloss.numerics.floats import UNIT, Real, lowered, padded_up, raised
from privloss.numerics.stable import exp_or_inf, log1p_polar

_BLURS = (3e-3, 4e-4)  # deviation of the blur, in units of 1/c: costs about its square, relative to delta
_REACH = 9.0  # the sum along the line ends where the blur has fallen to e^(-_REACH^2 / 2)
_FAR = 28.0  # what wraps around is smaller than the result by about e^-_FAR
_MOST_NODES = 2**21
_LONGEST = 29_000.0  # of c T: keeps the blur below 0.02 with that many nodes
_CHUNK = 2**15
_HOPELESS = -2000.0  # far below the logarithm of the smallest double
_GONE = 1e-300  # tilted masses below this are left out, and counted as an error


@dataclass(frozen=True)
class Law:
    """A random variable X with a few values, in units of e^eps0; the first value has the largest mass."""

    values: tuple[float, ...]
    masses: tuple[float, ...]


def _law(*atoms: tuple[float, float]) -> Law:
    merged: dict[float, float] = {}
    for value, mass in atoms:  # at eps = 0 several values are 0
        merged[value] = merged.get(value, 0.0) + mass
    ordered = sorted(((v, m) for v, m in merged.items() if m > 0), key=lambda a: -a[1])
    return Law(tuple(v for v, _ in ordered), tuple(m for _, m in ordered))


def blanket(eps0: float, eps: float, answers: int) -> Law:
    """X for k-ary randomised response, w the least of all R(x): mass p = 1/(e^eps0 + k - 1) for each answer.

    R(x0) has e^eps0 p, p, p at x0, x1 and any other answer, R(x1) has p, e^eps0 p, p. So X is e^eps0 - e^eps or
    1 - e^(eps0 + eps) with probability p each, 1 - e^eps with (k-2) p, and 0 with 1 - k p = (e^eps0 - 1) p.

    For k = 2 this law is an upper bound for *every* eps0-local randomiser R. Take w = e^-eps0 max(R(x0), R(x1)), which
    lies below every R(x). Where t = R(x0)/R(x1) >= 1, X = e^eps0 (1 - e^eps/t) is affine in 1/t; where t <= 1,
    X = e^eps0 (t - e^eps) is affine in t. Moving each t to the ends of its interval (e^-eps0, 1, e^eps0), its mean
    kept, makes X larger in convex order and so raises E[(X_1 + ... + X_n)_+]; it keeps the masses of R(x0) and R(x1),
    which forces the masses q at each extreme end and (1 - (e^eps0 + 1) q) e^-eps0 at t = 1, for some
    q <= 1/(e^eps0 + 1). Growing q moves mass from the values 0 and e^eps0 (1 - e^eps), at t = 1, to the extreme
    values, again with the mean kept, since these two lie between the extreme ones: the largest law in convex order has
    q = 1/(e^eps0 + 1), and that is binary randomised response.
    """
    rare, p, up, down, other = _shared(eps0, eps, answers)
    return _law((up, p), (down, p), (other, (answers - 2) * p), (0.0, -math.expm1(-eps0) * p / rare))


def held(eps0: float, eps: float, answers: int) -> tuple[Law, ...]:
    """X for k-ary randomised response where all the others hold x0 or, for k >= 3, a third value: real mechanisms."""
    rare, p, up, down, other = _shared(eps0, eps, answers)
    same = _law((up * rare, p / rare), (down, p), (other, (answers - 2) * p))
    if answers == 2:
        return (same,)
    return same, _law((up, p), (down, p), (other * rare, p / rare), (other, (answers - 3) * p))


def _shared(eps0: float, eps: float, answers: int) -> tuple[float, float, float, float, float]:
    """e^-eps0, p, and 1 - e^(eps - eps0), e^-eps0 - e^eps, e^-eps0 (1 - e^eps), all to a few roundings."""
    rare = math.exp(-eps0)
    p = rare / (1 + (answers - 1) * rare)
    return rare, p, -math.expm1(eps - eps0), math.expm1(-eps0) - math.expm1(eps), -math.expm1(eps) * rare


def log_delta(law: Law, eps0: float, people: int) -> tuple[float, float]:
    """(log lower, log upper) of e^eps0 E[(X_1 + ... + X_n)_+] / n."""
    low, high = log_positive_part(law, people)
    if high == -math.inf:
        return low, high
    shift, size = eps0 - math.log(people), 2 + eps0 + math.log(people)
    return lowered(lowered(low + shift, 8, size), 4, abs(low)), raised(raised(high + shift, 8, size), 4, abs(high))


def log_positive_part(law: Law, people: int) -> tuple[float, float]:
    """(log lower, log upper) of E[W_+] for W = X_1 + ... + X_n.

    Let Z be normal, independent, of mean 0 and deviation s. By Jensen's inequality E[(W+Z)_+] >= E[W_+], and
    E[(w+Z)_+] - w_+ = s (f(x) - x F(-x)) at x = |w|/s is at most s f(x), f and F the normal density and distribution
    function: the blur adds at most s^2 times the density of W + Z at 0. For every c > 0 the trapezoidal rule with
    step 2 pi/T along Re u = c, applied to E[e^(u(W+Z))]/u^2, gives E of the sum of (W+Z+jT)_+ e^(-cjT) over all
    integers j (Poisson summation): again an upper bound. The terms j != 0 are bounded through
    x_+ <= e^(ax)/(e a), with a < c for j > 0 and a > c for j < 0. Every c, s and T is sound.

    The outcome "everybody gives the first value" is taken out of the transform and added back as it is: if few
    reports differ, it is an atom so heavy that even its blur would be seen.
    """
    values, masses = np.array(law.values), np.array(law.masses)
    if not values.max() > 0:
        return -math.inf, -math.inf
    rest = float(masses[1:].sum())
    log_all = people * math.log1p(-rest) if rest < 0.5 else people * math.log(float(masses[0]))
    log_all_error = 32 * UNIT * people * (rest if rest < 0.5 else 1.0 - log_all / people)
    low, high = _line_sum(_Sum(values, masses, people, log_all, log_all_error))
    if values[0] > 0:  # the first value may itself be positive
        alone = log_all + math.log(people * float(values[0]))
        slack = log_all_error + 16 * UNIT * (1 + abs(alone))
        low, high = float(np.logaddexp(low, alone - slack)), float(np.logaddexp(high, alone + slack))
    return lowered(low, 8, 1.0), raised(high, 8, 1.0)


@dataclass(frozen=True)
class _Sum:
    """n independent copies of X, and the log of the probability that all take the first value."""

    values: Real
    masses: Real
    people: int
    log_all: float
    log_all_error: float

    def tilt(self) -> float:
        """The c where E[e^(cW)]/c^2 is about least; any c > 0 would do."""
        top = float(np.abs(self.values).max())

        def slope(log_c: float) -> float:
            u = math.exp(log_c) * (self.values / top)
            weights = self.masses * np.exp(u - u.max())
            return min(self.people * float((weights * u).sum() / weights.sum()) - 2, 1e300)

        low = high = -math.log(self.people) - 7  # here n c max X < 2
        while slope(high) < 0:
            low, high = high, high + 4
        return math.exp(brentq(slope, low, high, xtol=1e-3) if low < high else low) / top

    def cumulant(self, c: float) -> tuple[float, float]:
        """log E[e^(cX)] and a bound on its error, inherited roundings of the values and masses included."""
        u = c * self.values
        with np.errstate(over="ignore"):
            grown, power = np.expm1(u), np.exp(u)
        excess = float((self.masses * grown).sum())
        if -0.5 < excess < math.inf:
            size = float((self.masses * (np.abs(grown) + np.abs(u) * power)).sum())
            return math.log1p(excess), 32 * UNIT * size / (1 + excess)
        logs = np.log(self.masses) + u
        weights = np.exp(logs - logs.max())
        value = float(logs.max() + math.log(weights.sum()))
        spread = float((weights * np.abs(u))[weights > 0].sum() / weights.sum())
        return value, 32 * UNIT * (1 + spread + abs(value))


def _line_sum(law: _Sum) -> tuple[float, float]:
    """(log lower, log upper) of E[W_+], without the outcome where all take the first value."""
    c, n = law.tilt(), law.people
    k, slack = law.cumulant(c)
    if n * k - math.log(c) < _HOPELESS:  # x_+ <= e^(cx)/(e c) will do
        return -math.inf, raised(n * (k + slack) - math.log(c) - 1, 16, abs(n * k - math.log(c)))
    wrap, log_wrap = _period(law, c, k, slack)
    for wish in _BLURS:
        blur = max(wish, _REACH * wrap / (2 * math.pi * _MOST_NODES))
        total = _along(law, c, k, slack, wrap, blur)
        # the nodes beyond the last one, x >= _REACH / blur: an integral of e^(-(blur x)^2 / 2), over x^2 and plain
        cut = wrap / math.pi * math.exp((blur * blur - _REACH * _REACH) / 2)
        rounding = total.error + cut * blur / _REACH
        smooth = blur * blur * (total.density + total.density_error + cut / (blur * _REACH))
        if smooth <= 0.02 * total.value:
            break  # otherwise outcomes very close to 0 carry much of the mass: look closer
    low = total.value - rounding - smooth - exp_or_inf(log_wrap)
    high = max(total.value + rounding, _GONE)
    scale, error = n * k - math.log(c * wrap), n * slack + 16 * UNIT * (4 + abs(n * k) + abs(math.log(c)))
    return scale - error + math.log(low) if low > 0 else -math.inf, scale + error + math.log(high)


def _period(law: _Sum, c: float, k: float, slack: float) -> tuple[float, float]:
    """c T, and the log of what wraps around, in units of e^(nk)/(c c T).

    The terms j > 0 are bounded with a = c/2, the terms j < 0 with a = (1 + r) c.
    """
    n = law.people

    def risen(factor: float) -> float:
        value, error = law.cumulant(factor * c)
        return n * (value - k + error + slack) + 1e-3  # the blur adds (factor * blur)^2 / 2 <= 0.0008

    ahead = risen(0.5)
    wrap, r, behind = min(
        (min(max(2 * (ahead + _FAR), (behind + _FAR) / r, 40.0), _LONGEST), r, behind)
        for r in (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
        if (behind := risen(1 + r)) < math.inf
    )
    forward = math.log(2 * wrap) - 1 + ahead - wrap / 2 - math.log(-math.expm1(-wrap / 2))
    back = math.log(wrap / (1 + r)) - 1 + behind - r * wrap - math.log(-math.expm1(-r * wrap))
    return wrap, padded_up(float(np.logaddexp(forward, back)), 1e-9, 1.0)


@dataclass(frozen=True)
class _Total:
    value: float
    error: float
    density: float
    density_error: float


def _along(law: _Sum, c: float, k: float, slack: float, wrap: float, blur: float) -> _Total:
    """Sums over the nodes u = c (1 + i x), x = 0, 2 pi/wrap, ..., of E[e^(u(W+Z))] e^(-nk), over (u/c)^2 and plain."""
    n = law.people
    tilted = law.masses * np.exp(c * law.values - k)
    seen = tilted > _GONE
    weights, speeds = tilted[seen], c * law.values[seen]
    # |computed - true| of the mean of e^(i x speed): relative errors of weights and speeds, times the angle
    relative = UNIT * (64 + 8 * (np.abs(speeds) + abs(k))) + slack
    drift = float((weights * relative * np.abs(speeds)).sum())
    phase_all = n * c * float(law.values[0])
    log_all = law.log_all + phase_all - n * k
    all_error = law.log_all_error + n * slack + 64 * UNIT * (1 + n * abs(k) + abs(phase_all))
    parts = []
    nodes = math.ceil(_REACH / blur * wrap / (2 * math.pi)) + 1
    for start in range(0, nodes, _CHUNK):
        x = 2 * math.pi / wrap * np.arange(start, min(start + _CHUNK, nodes))
        re, im = np.zeros_like(x), np.zeros_like(x)
        for weight, speed in zip(weights, speeds, strict=True):
            re -= 2 * weight * np.sin(0.5 * speed * x) ** 2
            im += weight * np.sin(speed * x)
        with np.errstate(divide="ignore"):
            log_size, angle = log1p_polar(re, im)
        off = drift * x + 8 * _GONE
        share = np.exp(0.5 * blur * blur * (1 - x * x)) * np.where(x > 0, 2.0, 1.0)  # nodes come in conjugate pairs
        size = np.exp(np.maximum(n * log_size, -1e4))
        # |a^n - b^n| <= n |a - b| max(|a|, |b|)^(n-1), and the roundings of power, angle and blur
        wrong = n * off * np.exp((n - 1) * np.log(np.exp(log_size) + off))
        wrong += size * 8 * UNIT * (8 + n * (np.abs(np.maximum(log_size, -1e4 / n)) + np.abs(angle)) + (blur * x) ** 2)
        turn = blur * blur * x
        real, imaginary = size * np.cos(n * angle + turn), size * np.sin(n * angle + turn)
        if log_all > -80:  # otherwise it is as good as blurred
            alone = math.exp(log_all)
            real -= alone * np.cos(phase_all * x + turn)
            imaginary -= alone * np.sin(phase_all * x + turn)
            wrong += alone * (all_error + 8 * UNIT * abs(phase_all) * x)
        square = 1 + x * x
        # 1/(1 + ix)^2 = ((1 - x^2) - 2ix) / (1 + x^2)^2
        value = share * (real * (1 - x * x) + imaginary * 2 * x) / square**2
        parts.append(_Total(*(float(s.sum()) for s in (value, share * wrong / square, share * real, share * wrong))))
        parts[-1] = _with_summation(parts[-1], np.abs(value), np.abs(share * real))
    return _Total(*(math.fsum(getattr(p, name) for p in parts) for name in _Total.__dataclass_fields__))


def _with_summation(total: _Total, values: Any, densities: Any) -> _Total:
    few = 64 * UNIT
    return _Total(
        total.value,
        padded_up(total.error, 1e-9) + few * float(values.sum()),
        total.density,
        padded_up(total.density_error, 1e-9) + few * float(densities.sum()),
    )
