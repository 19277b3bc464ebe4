"""How likely it is that the largest mark of all uses is j: shared by every loss that is split by its largest mark."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from privloss.losses.base import PrivacyLoss
from privloss.numerics.floats import UNIT, lowered, raised


class Marks(NamedTuple):
    """One kind of use: P[mark = j], P[mark >= j], how far each may be off, and how many uses there are."""

    here: float
    off: float
    beyond: float
    off_beyond: float
    uses: float


def class_mass(kinds: Iterable[Marks], rest: PrivacyLoss | None) -> tuple[float, float]:
    """An interval for T_j(0) = prod S_j - prod S_(j-1), S_(j-1) = 1 - P[mark >= j], S_j = S_(j-1) + P[mark = j].

    Each S is at least 1 - beyond - off_beyond, so log S is off by at most off / that, and the quotient S_j / S_(j-1) by
    at most (off + off_beyond here) / that^2, as |d(u/v)| <= |du|/v + u |dv|/v^2.
    """
    base = rise = slack = base_slack = 0.0
    for here, off, beyond, off_beyond, n in kinds:
        least = 1 - beyond - off_beyond
        base += n * math.log1p(-beyond)
        rise += n * math.log1p(here / (1 - beyond))
        slack += n * (off + off_beyond * here) / least**2
        base_slack += n * off_beyond / least
    if rest is not None:
        other = rest.vertical(0.0).line(np.zeros(1), 1e-14)
        base, base_slack = base + float(other.log_modulus[0]), base_slack + float(other.error[0])
    share = base_slack + 8 * UNIT * (4 + abs(base) + rise)
    lower = math.exp(base - share) * math.expm1(max(lowered(rise, 8) - slack, 0.0))
    upper = math.exp(min(base + share, 0.0)) * math.expm1(min(raised(rise, 8) + slack, 700.0))
    return lowered(lower, 8), min(raised(upper, 8), 1.0)
