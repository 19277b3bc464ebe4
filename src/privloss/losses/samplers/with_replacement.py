"""m independent draws out of n records: a record may come several times."""

from __future__ import annotations

import math

from privloss.adjacency import ADD_REMOVE, ZERO_OUT
from privloss.errors import Unsupported
from privloss.losses.closed.point import PointLoss
from privloss.losses.density.normal import FURTHEST, NormalPair, normal_table
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.samplers.setting import Setting, distance_text
from privloss.losses.step import Step
from privloss.losses.table.hits import binned, hit_table
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.symmetric import fold
from privloss.losses.table.table import Table

_RARE = 1e-30  # probability of drawing a record so often that it counts as disclosed
_MOST_DRAWS = 6  # draws of one record that are told apart in a lower end
_MOST_PER_RECORD = 1_000


def with_replacement(step: Step, n: int, m: int, at: Setting) -> Step:
    """The record is drawn K ~ Bin(m, 1/n) times. Revealing K > 0 (joint convexity) leaves, with q = P[K > 0], a sample
    of rate q of the pair that shows K and N(K s) against N(0) (Balle, Barthe, Gaboardi 2018, Thm. 10)."""
    distances = at.distances(step)
    if m > _MOST_PER_RECORD * n:
        raise Unsupported(f"{at.sampled}: m / n = {m / n:g} draws per record are supported up to {_MOST_PER_RECORD}.")
    if n == 1:
        raise Unsupported(f"{at.sampled}: n = 1 leaves no other record; nothing is sampled.")
    surely = -math.expm1(m * math.log1p(-1 / n))
    rate = min(surely, 1 - 1e-12)  # the rest of "surely" is disclosed
    draws, s, folded = _binomial(m, 1 / n), distances.replace, at.adjacency != ADD_REMOVE
    what = "symmetric pair" if folded else "pair, both directions"
    theorem = (
        f"with replacement: the number of draws revealed, {what} of (1-q) N(0) + q N(K s) against N(0), q = P[K > 0] "
        "(Balle, Barthe, Gaboardi 2018, Thm. 10; Zhu, Dong, Wang 2022, Thm. 10, 11); lower end: all others alike"
    )
    text = f"sampler: {m} draws with replacement out of {n} records, afresh at every step; n public"
    reasons = (theorem,), (f"gaussian: {distance_text(s)}; {text}",)
    if s > FURTHEST:  # every hit counts as disclosure
        above = PointLoss(math.log1p(-rate), 0.0 if folded else math.log1p(-rate), rate)
        return Step(*reasons, above, mirrored=folded, attained=(GaussianMixtureLoss.one(rate, 1 / s),))
    bound = _revealed_draws(draws, rate, surely, s, folded)
    lowest = (distances.add or s) if at.adjacency == ZERO_OUT else s  # others that contribute 0, or all alike
    hits = tuple((p, k * lowest) for k, p in draws[1:_MOST_DRAWS])
    rest = math.fsum(p for _, p in draws[_MOST_DRAWS:])  # half-lines are the best tests, and gain with every draw
    below = binned((*hits, (rest, _MOST_DRAWS * lowest)), ())
    return Step(*reasons, TableLoss.one(bound), mirrored=folded, attained=(TableLoss.one(below),))


def _revealed_draws(draws: list[tuple[int, float]], rate: float, surely: float, s: float, folded: bool) -> Table:
    """A sample of rate q of "K draws", K shown: one draw finely, more of them coarsely, very many as disclosure."""
    rare, disclosed = [], 2 * _RARE + (surely - rate)
    for k, p in draws[2:]:
        if k * s <= FURTHEST:
            table = hit_table(rate, k * s)
            rare.append((p / rate, fold(table) if folded else table))
        else:
            # a hit discloses, and a miss shows Q: a post-processing of disclosure and the other pairs, mixed
            disclosed += p * (1 + 1e-9)
    once = draws[1][1] / rate
    once = 1 - math.fsum([disclosed, *(w for w, _ in rare)]) if once > 0.5 else once
    first = NormalPair(((rate, s),), folded=folded)
    return normal_table([(once, first)], rare, disclosed, slack=0.0 if once > 0.5 else 4096.0)


def _binomial(m: int, p: float) -> list[tuple[int, float]]:
    """(k, P[K = k]) for K ~ Bin(m, p), until next to nothing is left."""
    found, k = [], 0
    log = m * math.log1p(-p)
    while k <= m and (k <= m * p or log > math.log(_RARE)):
        found.append((k, math.exp(log)))
        log += math.log((m - k) * p / ((k + 1) * (1 - p))) if k < m else 0.0
        k += 1
    return found
