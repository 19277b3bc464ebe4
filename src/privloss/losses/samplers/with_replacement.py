"""m independent draws out of n records: a record may come several times."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import ndtr

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE, ZERO_OUT
from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.point import PointLoss
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.samplers.draws import drawn_box
from privloss.losses.samplers.fixed_size import gaussian_fixed_size
from privloss.losses.samplers.setting import Setting, distance_text
from privloss.losses.step import NoPair, Step
from privloss.losses.table.hits import Hits, binned, hits_table, shown_hits, with_disclosure
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.polygon import Point, from_hull, lower_hull, mirror_images
from privloss.losses.table.table import Table
from privloss.numerics.floats import UNIT, Real, raised

_RARE = 1e-30  # how often a record is drawn is told apart down to this probability;
_DISCLOSED = 64 * _RARE  # all that lies beyond, which counts as disclosure
_MOST_SHOWN, _OFTEN = 60, 0.2  # a second bound tells so many numbers of draws apart, for records drawn often
_TOLD = 20.0  # the largest distance that is told from disclosure, in units of the noise
_MOST_DRAWS = 6  # draws of one record that are told apart in a lower end
_MOST_PER_RECORD = 1_000
_SELDOM = 1e-6  # a record that is missed less often: rounding would hide it
_ATOMS, _POINTS, _FURTHEST_SEEN = 400, 400, 36.0  # where a profile is asked for; N(0) has next to nothing beyond


def with_replacement(step: Step, n: int, m: int, at: Setting) -> Step:
    """The record is drawn K ~ Bin(m, 1/n) times, and takes the places of as many draws of others, which do not depend
    on K. Given what was drawn in all places, K records move the sum by at most K s."""
    if step.distances is None and step.symmetric is not None:
        return _drawn(step, n, m, at)
    distances = at.distances(step)
    if m > _MOST_PER_RECORD * n:
        raise Unsupported(f"{at.sampled}: m / n = {m / n:g} draws per record are supported up to {_MOST_PER_RECORD}.")
    if n == 1:
        raise Unsupported(f"{at.sampled}: n = 1 leaves no other record; nothing is sampled.")
    draws, s = _binomial(m, 1 / n), distances.replace
    text = f"sampler: {m} draws with replacement out of {n} records, afresh at every step; n public"
    about = (f"gaussian: {distance_text(s)}; {text}",)
    if m == 1:
        return gaussian_fixed_size(distances, 1 / n, text, at.adjacency)
    if at.adjacency == ADD_REMOVE:
        return _added(draws, s, about)
    apart = (distances.add or s) if at.adjacency == ZERO_OUT else s  # the record, and what it is compared with
    theorem = (
        "with replacement: the symmetric pair of joint convexity, (1-q) N(0) + q N(K s) against N(0) with K hidden, "
        "and against another record with K shown (Balle, Barthe, Gaboardi 2018; docs/samplers.md); lower end: all "
        "others alike"
    )
    hits = tuple((p, float(k)) for k, p in draws[1:])
    bound = _replaced(hits, s, apart, _roundings(draws))
    plain = _shown_step(tuple((p, k * apart) for p, k in hits), 0.0 if apart < s else _OFTEN)
    lower = [(s, 0.0)] if apart == s else [(s, apart), (apart, 0.0)]  # others at -1, or at 0
    attained = tuple(TableLoss.one(binned(_capped(draws, a), _capped(draws, b) if b else ())) for a, b in lower)
    return Step((theorem,), about, TableLoss.one(bound), mirrored=True, attained=attained, without_sampler=plain)


def _drawn(step: Step, n: int, m: int, at: Setting) -> Step:
    """Other mechanisms, with a largest loss, under replace-one."""
    if at.adjacency != REPLACE_ONE:
        raise Unsupported(
            f"{at.sampled} under {at.adjacency}: the bound needs the guarantee for replaced records; "
            "ask under replace-one."
        )
    if m > _MOST_PER_RECORD * n or n == 1:
        raise Unsupported(f"{at.sampled}: needs n > 1 records, and at most {_MOST_PER_RECORD} draws per record.")
    if step.loss is None:
        return step
    table = drawn_box(step.loss, m, n)
    if table is None:
        raise Unsupported(f"{at.sampled}: without a largest loss no bound is proven with replacement; use poisson.")
    try:
        if step.symmetric is None:
            raise NoPair
        below = step.symmetric(-math.expm1(m * math.log1p(-1 / n)) * (1 - 1e-14)).attained
    except NoPair:
        below = (None,)
    text = f"sampler: {m} draws with replacement out of {n} records, afresh at every step; n public"
    theorem = (
        "with replacement: the symmetric pair of the profile sum P[K = k] delta_k, delta_k of a group of k by its "
        "largest loss (Balle, Barthe, Gaboardi 2018, Thm. 10); lower end: a query that only asks "
        "whether the record was drawn"
    )
    about = f"{at.inner}: its guarantee holds under replace-one; {text}"
    return Step((theorem,), (about,), TableLoss.one(table), mirrored=True, attained=below)


def _capped(draws: list[tuple[int, float]], s: float) -> Hits:
    """The draws with their distances; from some number on they count as that many (half-lines are the best tests, and
    gain with every draw)."""
    rest = math.fsum(p for _, p in draws[_MOST_DRAWS:])
    return (*((p, k * s) for k, p in draws[1:_MOST_DRAWS]), (rest, _MOST_DRAWS * s))


def _added(draws: list[tuple[int, float]], s: float, about: tuple[str]) -> Step:
    """Given the draws of the others in all places, a half-line has at least the probability of any event of the same
    probability without the record, for every K at once (Neyman-Pearson): sum P[K = k] N(k s) against N(0)."""
    theorem = (
        "with replacement under add-remove: sum P[K = k] N(k s) against N(0), K binomial, both directions "
        "(Neyman-Pearson; docs/samplers.md)"
    )
    missed = draws[0][1]
    told = [(p, k * s) for k, p in draws[1:] if k * s <= _TOLD]
    beyond = math.fsum(p for k, p in draws[1:] if k * s > _TOLD)
    if not told or missed < _SELDOM:
        return _all_disclosed(draws, s, missed, theorem, about)
    hidden = beyond * (1 + 1e-9) + _DISCLOSED
    above = hits_table(tuple((p / (1 - hidden), d) for p, d in told), missed / (1 - hidden), _ATOMS)
    bound = with_disclosure(above, hidden)
    below = TableLoss.one(binned(_capped(draws, s), ()))
    plain = _shown_step(tuple((p, k * s) for k, p in draws[1:]))
    return Step((theorem,), about, TableLoss.one(bound), attained=(below,), without_sampler=plain)


def _shown_step(hits: Hits, often: float = _OFTEN) -> Step | None:
    """A second bound, K shown: for records that are drawn often, or compared with one that is closer than others."""
    if len(hits) > _MOST_SHOWN or math.fsum(w for w, _ in hits) < often:
        return None
    return Step((), (), TableLoss.one(shown_hits(hits)), mirrored=True)


def _all_disclosed(draws: list[tuple[int, float]], s: float, missed: float, theorem: str, about: tuple[str]) -> Step:
    """Where the pair cannot be drawn: hits that are far away count as disclosure, and so do all if misses are rare."""
    if s > _TOLD:
        above: PrivacyLoss = PointLoss(math.log(missed), math.log(missed), -math.expm1(math.log(missed)))
        return Step((theorem,), about, above, attained=(GaussianMixtureLoss.one(1 - missed, 1 / s),))
    shown = shown_hits(tuple((p, k * s) for k, p in draws[1:]))
    below = TableLoss.one(binned(_capped(draws, s), ()))
    return Step((theorem,), about, TableLoss.one(shown), mirrored=True, attained=(below,))


def _replaced(hits: Hits, s: float, apart: float, units: float) -> Table:
    """With q = P[K > 0], V the output if the record was drawn, W if the other one was, U if neither was, and
    a' = 1 + q (a - 1), b = a'/a for a >= 1:  H_a' <= q ((1 - b) H_a(V, U) + b H_a(V, W)). The first is at most that of
    K hidden, sum P[K = k | K > 0] N(k s) against N(0); the second that of K shown, at the distance of the two records.
    Both orders of the neighbours have this bound, and a profile lies below its chords.
    """
    top = min(max(k for _, k in hits) * s + 9.0, _FURTHEST_SEEN)
    y = np.linspace(0.0, top, _POINTS)
    rate = Fraction(math.fsum(p for p, _ in hits))
    under_u = ndtr(-y)
    with np.errstate(over="ignore"):
        logs = np.logaddexp.reduce([math.log(p) + k * s * y - 0.5 * (k * s) ** 2 for p, k in hits if p > 0])
        a = np.exp(logs - math.log(rate))
    use = (a > 1) & (logs < 600)
    y, a, under_u = y[use], a[use], under_u[use]
    under_v = np.asarray(sum(p * ndtr(k * s - y) for p, k in hits))
    weight = float(rate) * a * under_u
    hidden = np.maximum(under_v - weight, 0.0) + units * UNIT * (under_v + weight)
    shown = _shown(hits, apart, np.log(a), units)
    lost = _DISCLOSED
    points: list[Point] = [
        (Fraction(1), Fraction(min(float(_shown(hits, apart, np.zeros(1), units)[0]) + _DISCLOSED, 1.0)))
    ]
    for alpha, one, two in zip(a, hidden, shown, strict=True):
        grown = 1 + rate * (Fraction(float(alpha)) - 1)
        share = float(grown) / float(alpha)
        height = raised((1 - share) * float(one) + share * float(two), 64, float(one) + float(two))
        points.append((grown, Fraction(min(height + lost, 1.0))))
    return from_hull(lower_hull(mirror_images(points)))


def _shown(hits: Hits, apart: float, logs: Real, units: float) -> Real:
    """sum P[K = k] H_a(N(k d), N(0)) at log a, rounded up."""
    total = np.zeros_like(logs)
    for p, k in hits:
        d = k * apart
        first, second = ndtr(0.5 * d - logs / d), np.exp(np.minimum(logs, 690.0)) * ndtr(-0.5 * d - logs / d)
        total = total + p * (np.maximum(first - second, 0.0) + units * UNIT * (1 + logs) * (first + second))
    return total


def _roundings(draws: list[tuple[int, float]]) -> float:
    """Of the probabilities: each step of the sum of logarithms rounds what it has, |log P[K = 0]| or |log _RARE|."""
    return 256 + len(draws) * (80 - math.log(max(draws[0][1], 1e-300)) + _MOST_PER_RECORD * (draws[0][1] == 0))


def _binomial(m: int, p: float) -> list[tuple[int, float]]:
    """(k, P[K = k]) for K ~ Bin(m, p), until next to nothing is left."""
    found, k = [], 0
    log = m * math.log1p(-p)
    while k <= m and (k <= m * p or log > math.log(_RARE)):
        found.append((k, math.exp(log)))
        log += math.log((m - k) * p / ((k + 1) * (1 - p))) if k < m else 0.0
        k += 1
    return found
