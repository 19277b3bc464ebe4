"""m independent draws out of n records, for mechanisms of which a largest loss is known (or a box with a delta).

The record is drawn K ~ Bin(m, 1/n) times. Given where, the data differ in K records from those with other records in
these places: with q = P[K > 0] and a' = 1 + q (a - 1), a >= 1,

    H_a' <= sum over k of P[K = k] delta_k(log a)

by advanced joint convexity (Balle, Barthe, Gaboardi 2018, Thm. 2 and 10), delta_k the profile of k records replaced.
Both orders of the neighbours have this bound, so the symmetric pair with this profile dominates and composes.
"""

from __future__ import annotations

import math
from fractions import Fraction

from privloss.losses.base import PrivacyLoss
from privloss.losses.chains import approx
from privloss.losses.table.polygon import Point, from_hull, lower_hull, mirror_images
from privloss.losses.table.table import Table
from privloss.numerics.floats import raised

_RARE = 1e-30  # how often a record is drawn is told apart down to this probability
_FURTHEST = 300.0  # larger losses count as disclosure


def binomial_tail(m: int, p: float) -> tuple[list[float], float]:
    """P[K = k] for k = 1, 2, ... and what is left, K ~ Bin(m, p), rounded up."""
    found, k = [], 0
    log = m * math.log1p(-p) if p < 1 else (-math.inf if m else 0.0)
    if p == 1:
        return [0.0] * (m - 1) + [1.0], 0.0
    while k <= m and (k <= m * p or log > math.log(_RARE)):
        if k > 0:
            # k sums of logarithms no larger than these
            found.append(min(raised(math.exp(log), 8 * (k + 4) * (80 - m * math.log1p(-p))), 1.0))
        log += math.log((m - k) * p / ((k + 1) * (1 - p))) if k < m else 0.0
        k += 1
    # beyond the mean the probabilities fall
    rest = 0.0 if k > m else min(2 * math.exp(log) * (m - k + 1), 1.0)
    return found, rest


def box_height(epsilon: float, delta: float, at: float) -> float:
    """delta(at) of an (epsilon, delta)-DP box, rounded up: delta + (1-delta) (e^epsilon - e^at)_+ / (e^epsilon + 1)."""
    gain = -math.expm1(at - epsilon) / (1 + math.exp(-epsilon)) if epsilon > at else 0.0
    return min((delta + (1 - delta) * gain) * (1 + 1e-14 * (1 + epsilon)), 1.0)


def drawn_box(loss: PrivacyLoss, m: int, n: int) -> Table | None:
    """The pair, or None where the mechanism has no largest loss."""
    both = (loss, loss.reversed())
    top = max(side.largest for side in both)
    slack = max(side.delta_inf_bounds[1] for side in both)
    if not top < math.inf or slack >= 1:
        return None
    weights, rest = binomial_tail(m, 1 / n)
    groups = [approx(top, slack, k) for k in range(1, len(weights) + 1)]
    told = [(w, *box) for w, box in zip(weights, groups, strict=True) if box[0] <= _FURTHEST]
    hidden = math.fsum([*(w for w, box in zip(weights, groups, strict=True) if box[0] > _FURTHEST), rest])
    rate = Fraction(min(math.fsum([*weights, rest]), 1.0))
    corners = sorted({0.0, *(eps for _, eps, _ in told)})
    points: list[Point] = []
    for at in corners:
        height = math.fsum([*(w * box_height(eps, d, at) for w, eps, d in told), hidden])
        points.append((1 + rate * (Fraction(_up(math.exp(at))) - 1), Fraction(min(height * (1 + 1e-14) + 1e-300, 1.0))))
    return from_hull(lower_hull(mirror_images(points)))


def _up(ratio: float) -> float:
    """A profile falls: a height holds at any larger place too."""
    return ratio if ratio == 1 else raised(ratio, 4)
