"""A Poisson sample of which, if it has more than `most` records, a uniform choice of `most` is kept."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import betainc

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE
from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.density.normal import FURTHEST, NormalPair, normal_table
from privloss.losses.mixture.loss import GaussianMixtureLoss
from privloss.losses.samplers.cut_down import CutDown, against_another, against_none, against_null
from privloss.losses.samplers.poisson import poisson, two_sided
from privloss.losses.samplers.setting import Setting, distance_text
from privloss.losses.step import Distances, Step
from privloss.losses.symmetric.pair import HitPair, Split, SymmetricPair
from privloss.losses.table.hits import hit_table
from privloss.losses.table.loss import TableLoss
from privloss.losses.table.symmetric import fold
from privloss.losses.table.table import Table
from privloss.numerics.floats import lowered, raised

_MOST_SUMMED = 1_000_000
_MOST_CUT = 20_000
_SELDOM = 1e-3  # samples that are cut down less often are best seen as Poisson samples with an exception


def truncated_poisson(step: Step, rate: float, n: int, most: int, at: Setting) -> Step:
    """How many others were sampled, S ~ Bin(others, q), may be revealed. While S < most nothing is cut off. Otherwise
    the record, if sampled and kept, takes the place of another: a hit of rate at most q at the distance of a
    replacement. That is worse than the first case, so more others and a rounded-up probability are safe. Mostly it is
    better not to tell S >= most from S = most - 1 (`cut_down`)."""
    distances = at.distances(step)
    others = n if at.adjacency == ADD_REMOVE else n - 1  # a neighbour may have one more than n
    over = min(float(betainc(most, others - most + 1, rate)) * (1 + 1e-6) + 1e-300, 1.0) if most <= others else 0.0
    text = (
        f"sampler: Poisson, every one of {n} records with probability {rate!r}, cut down to {most} at random; "
        f"cut down with probability {over:.3g}"
    )
    if rate == 0:
        return poisson(step, rate, at)
    if most > others:
        return poisson(step, rate, at).assuming(text)
    if distances.add is None:
        raise Unsupported(f"{at.sampled} under replace-one: give noise_multiplier = noise / clipping norm.")
    add, s = distances.add, distances.replace
    theorem = (
        "truncated Poisson: the number of others revealed, as far as it matters; below the maximum a Poisson sample, "
        "above it the record beside one other less, or in its place (joint convexity; docs/samplers.md); lower end: "
        "others that contribute nothing"
    )
    about = f"gaussian: {distance_text(add)}, replaced {distance_text(s)}; {text}"
    plain = Step((), (), GaussianLoss(s**2), mirrored=True)
    mirrored = at.adjacency == REPLACE_ONE
    bound = _replacing(rate, over, add, s, at.adjacency)
    sizes = [n - 1, n] if at.adjacency == ADD_REMOVE else [n - 1]
    closer = None
    if over >= _SELDOM:
        closer = _without_replacements(sizes, rate, most, distances, at.adjacency, over)
    if closer is not None:
        bound = TableLoss.one(closer)
    below = _attained(_kept(n, rate, most), add, mirrored)
    found = Step(
        (theorem,),
        (about,),
        bound,
        mirrored=mirrored or (s > FURTHEST and closer is None),
        attained=(below,),
        without_sampler=plain,
    )
    return at.with_null(step, found)


def _replacing(rate: float, over: float, add: float, s: float, adjacency: str) -> PrivacyLoss:
    """Below the maximum a Poisson sample, above it a hit at the distance of a replacement."""
    if s > FURTHEST:
        return GaussianLoss(s**2)
    sampled = rate if rate < 1 else 1 - 1e-12  # the rest of "for sure" is disclosed
    table = hit_table(sampled, s)
    table = table if adjacency == ADD_REMOVE else fold(table)
    usual = NormalPair(((sampled, add),), ((sampled, add),) if adjacency == REPLACE_ONE else ())
    lost = rate - sampled
    row = normal_table([(max(1 - over - lost, 1e-300), usual)], [(over, table)], lost)
    return TableLoss.one(replace(row, split=_split(rate, over, 1 / add, 1 / s, adjacency)))


def _split(rate: float, over: float, sigma: float, replaced: float, adjacency: str) -> Split | None:
    """Both cases as exact pairs."""
    if not (rate < 1 and over < 1):
        return None
    usual = SymmetricPair(rate, sigma, True) if adjacency == REPLACE_ONE else HitPair(rate, sigma)
    other = HitPair(rate, replaced) if adjacency == ADD_REMOVE else SymmetricPair(rate, replaced, False)
    return Split(((1 - over, usual), (over, other)))


def _without_replacements(
    sizes: list[int], rate: float, most: int, distances: Distances, adjacency: str, over: float
) -> Table | None:
    """The bound of `cut_down`, where it looks better: in terms of the mean square of the likelihood ratios."""
    add, s = distances.add or distances.replace, distances.replace
    if min(sizes) < most or not rate < 1 or add > FURTHEST:
        return None
    parts = [CutDown.of(others, rate, most) for others in sizes]
    if not all(part.known for part in parts):
        return None
    here = max(part.square() for part in parts) * math.expm1(add**2)
    there = rate**2 * ((1 - over) * math.expm1(add**2) + over * math.expm1(s**2)) if s <= FURTHEST else math.inf
    if here > there:
        return None
    if adjacency == ADD_REMOVE:
        return against_none(parts, add)
    return against_another(parts[0], add) if adjacency == REPLACE_ONE else against_null(parts[0], add)


def _attained(kept: float, add: float, mirrored: bool) -> PrivacyLoss | None:
    """Others that contribute nothing: a Poisson sample with the probability of being kept."""
    if kept <= 0:
        return None
    if not mirrored:
        return GaussianMixtureLoss.one(kept, 1 / add)
    found = two_sided(kept, add)
    return found.attained[0] if found.attained else found.loss


def _kept(n: int, rate: float, most: int) -> float:
    """The probability that a record is in the batch, rounded down: E[min(Bin(n, q), most)]/n, or q less what is cut
    off, E[(Bin(n, q) - most)_+]/n, whichever loses less to rounding."""
    most = min(most, n)
    if most > _MOST_SUMMED:
        return 0.0
    k = np.arange(1, most + 1)  # P[Bin(n, q) >= k] is a beta function, also for n beyond whole numbers of 32 bits
    kept = max(min(float(betainc(k, n - k + 1, rate).sum()) / n, rate) * (1 - 1e-6), 0.0)
    last = min(n, most + _MOST_CUT)
    k = np.arange(most + 1, last + 1)
    cut = float(betainc(k, n - k + 1, rate).sum()) if len(k) else 0.0
    if last < n:  # P[Bin >= k] falls with k
        cut += (n - last) * float(betainc(last + 1, n - last, rate))
    return max(kept, lowered(rate - raised(cut / n * (1 + 1e-6), 4), 4))
