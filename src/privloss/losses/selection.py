"""The best of a random number of runs: what selection does to a privacy profile, and instances that attain part of it.

K runs of a base, K secret, and only the best output is shown. f(u) = E u^K. Order the outcomes from worst to best, ties
at random, and let u = P[<= y], v = Q[<= y] for the base: the output has the densities f'(u) dp and f'(v) dq.

*Truncated negative binomial*, f(u) = ((1 - (1-g) u)^-h - 1)/(g^-h - 1), h > -1: f' is (1 - (1-g) u)^-(h+1) up to a
factor, so f'(u)/f'(v) = ((g + (1-g)(1-v)) / (g + (1-g)(1-u)))^(h+1). With e^e - 1 >= ((1-g)/g) delta(e) and 1 - v <=
e^e (1 - u) + delta(e) the quotient is at most e^e. Hence, f' rising with f'(1) = m = E K,

    delta_A(x) = int (f'(u) dp - e^x f'(v) dq)_+ <= int f'(u) (dp - e^(x - (h+1) e) dq)_+ <= m delta(x - (h+1) e).

*Poisson*, f(u) = e^(m (u-1)): f'(u)/f'(v) = e^(m (u - v)), and with w = 1 - u, u - v <= (e^e - 1) w + delta(e) for
every e. Outcomes with w > w0 together have probability at most f(1 - w0) = e^(-m w0):

    delta_A(x) <= e^(-m w0) + m delta(x - m min over e of ((e^e - 1) w0 + delta(e))),     without e^(-m w0) for w0 = 1.

*All laws*: delta_A(x) <= 1 - f(1 - delta(0)), the chance that K coupled runs do not all agree.

*Below*: a test of the base with Q-mass q and P-mass p is an outcome that may be ranked first or last; two nested tests
are three outcomes, the inner one ranked second, above what only the outer one accepts and below the rest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privloss.losses.table.build import from_vectors
from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real, lowered, raised

Profile = Callable[[Sequence[float]], Sequence[float]]  # upper ends of delta at many epsilons
_CLOSE = 1e-12  # relative error of gamma, and what it does to masses
_SMALLEST = 1e-200  # gamma: shapes near -1 have such numbers of runs, mostly one and hardly ever very many
_LOGARITHMIC = 1e-200  # shapes that are 0 to all digits
_LOWEST = 1e-4  # of the largest shift: the smallest that is tried
_MANY = 30.0  # e^x beyond is e^x - 1 to its last digit but a few
_STEPS = ((1e-3, 0.06), (1e-11, 0.02), (1e-15, 0.08), (0.0, 0.4))  # of log delta between points, down to which delta
_FINEST = 8_000  # lattice points up to the largest epsilon
_LEAST = 1e-30  # the smallest delta of the base that is looked for
_BETWEEN = 16  # epsilons at which the profile is looked at, between two of different orders of magnitude


@dataclass(frozen=True)
class Trials:
    """The law of the number of runs: `mean` and `shape` (infinite: Poisson), or exactly `fixed`."""

    mean: float
    shape: float
    fixed: int | None = None

    @property
    def gamma(self) -> float:
        """The parameter that has this mean, rounded down: less only raises the bound (the mean falls in gamma). 0 if it
        is below `_SMALLEST`."""
        if self.shape == 1:
            return lowered(1 / self.mean, 4)
        enough = self.mean * (1 + _CLOSE)  # far above the roundings of `_mean`
        low, high = _SMALLEST, 1.0
        if _mean(low, self.shape) < enough:
            return 0.0
        for _ in range(200):
            mid = math.sqrt(low) * math.sqrt(high) if low < 0.25 else 0.5 * (low + high)
            low, high = (mid, high) if _mean(mid, self.shape) >= enough else (low, mid)
        return low

    def gained(self, u: Real, w: Real) -> Real:
        """f(u + w) - f(u), with its digits where w is small."""
        if self.fixed is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                share = -np.expm1(-self.fixed * np.log1p(w / u))  # of f(u + w)
            return np.where(w > 0, (u + w) ** self.fixed * share, 0.0)
        if math.isinf(self.shape):
            grown, before = self.mean * w, self.mean * (u - 1)
            few = np.exp(before) * np.expm1(np.minimum(grown, _MANY))
            many = np.exp(self.mean * (u + w - 1)) - np.exp(before)  # no digits are lost
            return np.asarray(np.where(grown < _MANY, few, many))
        if self.mean == 1:
            return w
        gamma, shape = self.gamma, self.shape
        rest = 1 - u + gamma * u  # never 0
        inner = np.log1p(-np.minimum((1 - gamma) * w / rest, 1 - 1e-16))
        if abs(shape) < _LOGARITHMIC:
            return np.asarray(inner / math.log(gamma))
        if shape < 0:
            return np.asarray(rest**-shape * np.expm1(-shape * inner) / math.expm1(-shape * math.log(gamma)))
        last = np.exp(shape * (math.log(gamma) - np.log(rest) - inner))
        return np.asarray(last * np.expm1(shape * inner) / math.expm1(shape * math.log(gamma)))

    @property
    def slack(self) -> float:
        """Units that `gained` may be off: its roundings; f' <= m (its logarithm's: (h+1) m) times those of u, w; and
        what a mean too large by twice `_CLOSE` does. log f' = log m + (h+1) log(g / (1 - (1-g) u)) moves by that and
        (h+1) times what log g does, which is less than 4 (1 + min(h+1, m)) of it in all."""
        powers = self.shape + 1 if math.isfinite(self.shape) else 1.0
        return 8 * (1 + min(powers, self.mean)) * _CLOSE / UNIT + 16 * self.mean * max(powers, 1.0)

    @property
    def nothing(self) -> float:
        """The chance of no run at all."""
        return math.exp(-self.mean) if self.fixed is None and math.isinf(self.shape) else 0.0


def _mean(gamma: float, shape: float) -> float:
    """Without a cancellation near gamma = 1."""
    if gamma == 1:
        return 1.0
    if abs(shape) < _LOGARITHMIC:
        return (1 - gamma) / (gamma * -math.log(gamma))
    powered = shape * math.log(gamma)
    return shape * (1 - gamma) / gamma / -math.expm1(powered) if powered < 700 else 0.0


# -- above -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """delta_A(x) <= extra + mean * delta(x - shift), for any of several (shift, extra)."""

    mean: float
    ways: tuple[tuple[float, float], ...]

    @property
    def least(self) -> float:
        return min(shift for shift, _ in self.ways)


@dataclass(frozen=True)
class Look:
    """The profile of the base at some epsilons that are as far apart as it asks for: `logs` are logarithms of delta."""

    at: Real
    deltas: Real

    @property
    def logs(self) -> Real:
        """Never rising: an upper end at a smaller epsilon is one at a larger one."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.log(self.deltas), math.log(_LEAST) - 1))


def look(profile: Profile, marks: Sequence[float]) -> Look:
    """From 0 to the last mark; `marks` are epsilons of falling deltas, which may be of many orders of magnitude."""
    ends = [0.0, *sorted({m for m in marks if 0 < m < math.inf})]
    at = np.unique(np.concatenate([np.linspace(a, b, _BETWEEN + 1) for a, b in itertools.pairwise([0.0, *ends])]))
    return Look(at, np.minimum.accumulate(np.array(profile([float(e) for e in at]))))


def cost(trials: Trials, profile: Profile, seen: Look) -> Cost:
    """What selection adds to epsilon, from the profile of the base."""
    if math.isinf(trials.shape):
        return _poisson_cost(trials.mean, seen)
    gamma = trials.gamma if trials.mean > 1 else 1.0
    root = _root(raised((1 - gamma) / gamma, 8), profile)
    return Cost(trials.mean, ((raised(raised(trials.shape + 1, 2) * root, 2), 0.0),))


def _root(factor: float, profile: Profile) -> float:
    """An e with e^e - 1 >= factor * delta(e), about the least."""
    if factor == 0:
        return 0.0
    found = math.log1p(raised(factor * profile([0.0])[0], 4))
    high = raised(found, 16, 1 + found)  # enough as delta falls
    tried = [float(e) for e in np.geomspace(high * _LOWEST, high, 32)]
    for _ in range(9):
        enough = [
            lowered(math.expm1(e), 4) >= raised(factor * d, 4) for e, d in zip(tried, profile(tried), strict=True)
        ]
        first = enough.index(True) if True in enough else len(tried) - 1
        high = tried[first] if True in enough else high
        tried = [float(e) for e in np.linspace(tried[first - 1] if first else 0.0, high, 12)[1:]]
    return high


def _poisson_cost(mean: float, seen: Look) -> Cost:
    ways = [(raised(mean * float(seen.deltas[0]), 4), 0.0)]  # w0 = 1 and e = 0
    for share in np.geomspace(1e-3, 1.0, 40):
        w = float(share)
        grown = raised(float(np.min(raised(np.expm1(np.minimum(seen.at, 700.0)) * w + seen.deltas, 8))), 4)
        ways.append((raised(mean * grown, 4), 0.0 if w == 1 else raised(math.exp(-mean * w), 8)))
    return Cost(mean, tuple((float(a), float(b)) for a, b in ways))


def concentration(trials: Trials, shift: float, rho: float) -> float:
    """rho of the best of the runs of a rho-zCDP base. f'(u)/f'(v) <= e^shift gives E[L_A^(a-1)] <= M e^((a-1) (shift +
    D_a)), M = m and the chance of no run, hence D_a(A) <= rho a + shift + log M/(a-1). Up to a = 1 + sqrt(log M/rho)
    the bound at that a serves, as divergences rise with a; beyond it this bound over a is smaller still."""
    runs = math.log(raised(trials.mean + trials.nothing, 4))
    return raised(rho + shift + 2 * math.sqrt(rho * runs), 16)


def bound_points(trials: Trials, spent: Cost, profile: Profile, seen: Look, top: float) -> list[tuple[float, float]]:
    """(x, upper bound on delta_A(x)), x whole multiples of one number, closer where delta falls faster; beyond the last
    epsilon that was `seen` nothing is asked, `top` is the base's largest loss (infinite if there is none)."""
    first, y, logs = float(seen.deltas[0]), seen.at, seen.logs
    agree = 1 - float(trials.gained(np.zeros(1), np.array([1 - first]))[0]) - trials.nothing
    whole = min(raised(agree, 2 * trials.slack, 1.0), 1.0) if first < 1 else 1.0
    points = [(0.0, whole)]
    xs = _places(spent, y, logs)
    chosen = [_best_way(spent, x, y, logs) for x in xs]
    asked = [max(lowered(x - shift, 4, x + shift), 0.0) for x, (shift, _) in zip(xs, chosen, strict=True)]
    for x, (_, extra), delta in zip(xs, chosen, profile(asked), strict=True):
        points.append((x, min(raised(extra + spent.mean * delta, 8), whole)))
    if top < math.inf:
        points += [(raised(top + shift, 4), extra) for shift, extra in spent.ways]
    return points


def _places(spent: Cost, y: Real, logs: Real) -> list[float]:
    """Where to ask: multiples of a decimal unit, spaced by what log delta of the base loses, known at some epsilons."""
    shift, reach = spent.least, float(y[-1])
    if reach <= 0:
        return [raised(shift, 4)]
    falls = -np.diff(logs)
    levels = np.exp(logs[1:])
    steps = falls / np.select([levels > least for least, _ in _STEPS], [step for _, step in _STEPS]) + 0.5
    measure = np.concatenate([[0.0], np.cumsum(steps)])
    found = shift + np.interp(np.arange(math.ceil(measure[-1]) + 1), measure, y)
    closest = float(np.diff(found).min()) if len(found) > 1 else reach
    unit = _round(max(closest, (shift + reach) / _FINEST))
    ticks = np.unique(np.ceil(found / unit - 1e-6))
    if len(spent.ways) > 1:  # other ways have larger shifts
        ticks = np.unique(np.concatenate([ticks, np.ceil((max(s for s, _ in spent.ways) + y) / unit)]))
    return [round(float(k) * unit, 9) for k in ticks]


def _round(size: float) -> float:
    """1, 2 or 5 times a power of ten, about as large: with few digits, sums of its multiples are on a lattice."""
    power = 10.0 ** math.floor(math.log10(size))
    return round(max(k * power for k in (1, 2, 5) if k * power <= size * 1.2), 9)


def _best_way(spent: Cost, x: float, y: Real, logs: Real) -> tuple[float, float]:
    """The way that looks best; any is valid where x is at least its shift."""
    usable = [way for way in spent.ways if way[0] <= x]
    if not usable:  # below all shifts delta of the base at 0 is asked, and the bound holds all the more
        return (x, 0.0)
    guess = np.exp(np.interp([x - shift for shift, _ in usable], y, logs))
    return usable[int(np.argmin([extra + spent.mean * d for (_, extra), d in zip(usable, guess, strict=True)]))]


# -- below -------------------------------------------------------------------------------------------------------------


def instances(trials: Trials, tests: Sequence[tuple[float, float]], at: Sequence[float]) -> list[Table]:
    """The best instances for questions at these epsilons: `tests` are (q, p) of nested events of one pair."""
    kept = sorted({(q, p) for q, p in tests if 1e-12 < q < p < 1})
    if not kept:
        return []
    q, p = np.array(kept).T
    rows = [_ranked(trials, np.zeros(len(p)), p), _ranked(trials, 1 - p, p)]
    backs = [_ranked(trials, np.zeros(len(q)), q), _ranked(trials, 1 - q, q)]
    i, j = np.triu_indices(len(q), 1)
    use = p[i] < p[j]
    i, j = i[use], j[use]
    rows.append(_ranked(trials, p[j] - p[i], p[i]))
    backs.append(_ranked(trials, q[j] - q[i], q[i]))
    forth, back = np.concatenate(rows), np.concatenate(backs)
    alike = np.all((forth > 0) == (back > 0), axis=1)  # others have lost a mass to rounding
    if not alike.any():
        return []
    forth, back = forth[alike], back[alike]
    chosen = {int(np.argmax((np.maximum(forth - math.exp(x) * back, 0.0)).sum(axis=1))) for x in np.minimum(at, 700.0)}
    return [_table(forth[k], back[k], trials) for k in sorted(chosen)]


def _ranked(trials: Trials, worse: Real, inner: Real) -> Real:
    """Masses of the three outcomes when so much of the base is ranked below an event and so much is the event."""
    above = np.maximum(1 - worse - inner, 0.0)
    low, middle = trials.gained(np.zeros(len(worse)), worse), trials.gained(worse, inner)
    return np.stack([low, middle, trials.gained(worse + inner, above)], axis=1)


def _table(forth: Real, back: Real, trials: Trials) -> Table:
    """One of them as a row; no run at all looks the same on both sides."""
    rows = [[float(m) for m in side if m > 0] for side in (forth, back)]
    ends = [trials.nothing] if trials.nothing > 0 else []
    table = from_vectors([*rows[0], *ends], [*rows[1], *ends])
    return replace(table, slack=table.slack + trials.slack, absolute=table.absolute + 2 * trials.slack, exact=False)
