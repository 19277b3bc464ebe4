"""Samplers other than plain Poisson under add-remove: for each scheme and adjacency the pair, and why it is worst.

Everything rests on advanced joint convexity (Balle, Barthe, Gaboardi 2018, Thm. 2): with a = 1 + q (a' - 1),
H_a((1-q) U + q V, (1-q) U + q W) = q H_a'(V, (1-b) U + b W), b = a/a'. Where U, V, W are outputs on data that differ by
one replacement, the right side is at most q H_a'(N(s), N(0)), which is H_a of ((1-q) N(0) + q N(s), N(0)); as
neighbours may be taken in either order, the symmetric pair with this profile dominates every step, in any order of
directions, and so composes (Zhu, Dong, Wang 2022, Thm. 10 and 11). The pair ((1-q) N(0) + q N(s), N(0)) itself need
not: for replaced records the worst direction may change from step to step (Lebeda, Regehr, Kamath, Steinke 2024).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc

from privloss.errors import Unsupported
from privloss.losses.base import PrivacyLoss
from privloss.losses.collected import Collect, Collected
from privloss.losses.discrete import DiscreteLoss
from privloss.losses.distances import NOTHING, Distances, distance_text, mixture, rows
from privloss.losses.entries import fixed_size_rows
from privloss.losses.epochs import collect_allocated, collect_shuffled
from privloss.losses.folding import binned, fold, hit_table
from privloss.losses.gaussian import GaussianLoss
from privloss.losses.gaussian_mixture import GaussianMixtureLoss
from privloss.losses.normal_row import FURTHEST, NormalPair, normal_row
from privloss.losses.point import PointLoss
from privloss.mechanisms.black_box import GDP
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.groups import PoissonGroup
from privloss.mechanisms.sampling import Allocated, FixedSize, Sampled, Shuffled, TruncatedPoisson, WithReplacement

_RARE = 1e-30  # probability of drawing a record so often that it counts as disclosed
_MOST_DRAWS = 6  # draws of one record that are told apart in a lower end
_MOST_SUMMED, _MOST_PER_RECORD, _MOST_PEOPLE = 1_000_000, 1_000, 900
_SYMMETRIC = (
    "symmetric pair of (1-q) N(0) + q N(s) against N(0): joint convexity bounds both orders of the neighbours, and one "
    "pair that dominates both composes (Balle, Barthe, Gaboardi 2018; Zhu, Dong, Wang 2022, Thm. 10, 11)"
)


def collect_sampler(found: Collected, mechanism: Sampled, times: int, adjacency: str, collect: Collect) -> None:
    """Add `times` steps (for shuffle and allocation: epochs) of a sampled mechanism."""
    if isinstance(mechanism, FixedSize):
        _fixed_size(found, mechanism, times, adjacency, collect)
    elif isinstance(mechanism, Shuffled):
        collect_shuffled(found, mechanism, times, adjacency, collect)
    elif not isinstance(mechanism.mechanism, Gaussian):
        raise Unsupported(
            f"{mechanism!r}: {mechanism.kind} sampling has a proven bound for Gaussian noise only; for other "
            "mechanisms use poisson, fixed-size or shuffle."
        )
    elif isinstance(mechanism, PoissonGroup):
        _group(found, mechanism, _usable(mechanism, adjacency), times, adjacency)
    elif isinstance(mechanism, WithReplacement):
        _with_replacement(found, mechanism, _usable(mechanism, adjacency), times, adjacency)
    elif isinstance(mechanism, TruncatedPoisson):
        _truncated(found, mechanism, _usable(mechanism, adjacency), times, adjacency, collect)
    elif isinstance(mechanism, Allocated):
        collect_allocated(found, mechanism, _usable(mechanism, adjacency), times, adjacency, collect)


def _usable(mechanism: Sampled, adjacency: str) -> Distances:
    inner = mechanism.mechanism
    if not isinstance(inner, Gaussian):
        raise Unsupported(f"{mechanism!r}: needs Gaussian noise.")
    found = Distances.of(inner, adjacency)
    if not found.replace < math.inf:
        raise Unsupported(f"{mechanism!r}: without noise this sampler has no finite bound; use poisson or fixed-size.")
    return found


def poisson_replace_one(found: Collected, inner: Gaussian, rate: float, times: int) -> None:
    """(1-q) N(0) + q N(s) against (1-q) N(0) + q N(-s).

    By joint convexity it is enough to bound P_x[E] - a' ((1-b) P_0[E] + b P_x'[E]) over all events E and contributions
    x, x' of norm at most 1. Among all events of the same probability under N(0) a half-space in the direction of x has
    the largest probability under N(x) and the smallest under N(-x) (Neyman and Pearson), and both grow with the norm:
    so the pair with x' = -x of norm 1 and a half-space does better. It is attained, and its own mirror image.
    """
    if inner.noise_multiplier is None:
        raise Unsupported(
            f"{inner!r} on a Poisson sample under replace-one: needs the bound on one record's contribution as well as "
            "the sensitivity; give noise_multiplier = noise / clipping norm, or ask under add-remove."
        )
    found.say(
        "Poisson-sampled Gaussian under replace-one: (1-q) N(0) + q N(C) against (1-q) N(0) + q N(-C) "
        "(joint convexity and Neyman-Pearson; docs/samplers.md)",
        f"gaussian: contributions up to C replaced by any other, noise_multiplier = noise / C given; sampler: Poisson, "
        f"every record independently with probability {rate!r} at every step",
    )
    distance = Distances.of(inner, "replace-one").add or math.inf
    if math.isinf(distance):
        found.points.append((math.log1p(-rate), 0.0, rate, times))
        return
    if distance > FURTHEST:
        found.between(GaussianLoss(times * (2 * distance) ** 2), mixture(rate, 1 / distance, times))
        return
    pair = NormalPair(((rate, distance),), ((rate, distance),))
    found.rows.append((normal_row([(1.0, pair)]), times))


def _fixed_size(found: Collected, sampler: FixedSize, times: int, adjacency: str, collect: Collect) -> None:
    inner, rate = sampler.mechanism, sampler.m / sampler.n
    if isinstance(inner, GDP) and inner.mu > 0:
        inner = Gaussian(sigma=1 / inner.mu, sensitivity=1.0)
    text = (
        f"sampler: fixed size, {sampler.m} of {sampler.n} records without replacement, afresh at every step; n public"
    )
    if adjacency == "add-remove" and sampler.m == sampler.n:
        raise Unsupported(f"{sampler!r} under add-remove: a neighbour with n - 1 records has no batch of m = n.")
    if sampler.m == sampler.n:
        found.say("the whole data: no sampling", text)
        collect(found, inner, times, adjacency)
        return
    if not isinstance(inner, Gaussian):
        if adjacency != "replace-one":
            raise Unsupported(
                f"{sampler!r} under {adjacency}: the bound needs the guarantee for replaced records; "
                "ask under replace-one."
            )
        found.say(_SYMMETRIC, f"{inner!r}: its guarantee holds under replace-one; {text}")
        above, below = fixed_size_rows(inner, rate)
        found.between(rows(above, times), rows(below, times))
        return
    distances = Distances.of(inner, adjacency)
    if math.isinf(distances.replace):
        found.say(_SYMMETRIC, text)
        shown = math.log1p(-rate) if adjacency == "add-remove" else 0.0  # what a miss tells
        found.points.append((math.log1p(-rate), shown, rate, times))
        return
    if adjacency == "add-remove":
        # with n records: without the record (probability 1 - m/n) the batch is that of the n - 1 others; with it, one
        # of the others is replaced. So the pair is that of a Poisson sample with the distance of a replacement
        found.say(
            "fixed size under add-remove: (1-q) N(0) + q N(s) against N(0), s for a replacement, q = m/n with n the "
            "larger size, both directions (Zhu, Dong, Wang 2022, Thm. 11)",
            f"gaussian: {distance_text(distances.replace)}; {text}",
        )
        found.mixtures.append((rate, 1 / distances.replace, times))
        return
    found.say(
        f"fixed size under {adjacency}: {_SYMMETRIC}; lower end: all other records alike, the pair itself",
        f"gaussian: {distance_text(distances.replace)}; {text}",
    )
    bound: PrivacyLoss = GaussianLoss(times * distances.replace**2)
    if distances.replace <= FURTHEST:
        bound = rows(normal_row([(1.0, NormalPair(((rate, distances.replace),), folded=True))]), times)
    if adjacency == "replace-one":
        found.between(bound, mixture(rate, 1 / distances.replace, times))
    else:  # the record moves the sum by 2, its null record by 1: it takes the place of another that contributes -1
        add = distances.add or distances.replace
        found.between(bound, rows(binned(((rate, distances.replace),), ((rate, add),)), times))


def _with_replacement(
    found: Collected, sampler: WithReplacement, distances: Distances, times: int, adjacency: str
) -> None:
    """The record is drawn K ~ Bin(m, 1/n) times. Revealing K > 0 (joint convexity) leaves, with q = P[K > 0], a sample
    of rate q of the pair that shows K and N(K s) against N(0) (Balle, Barthe, Gaboardi 2018, Thm. 10)."""
    n, m = sampler.n, sampler.m
    if m > _MOST_PER_RECORD * n:
        raise Unsupported(f"{sampler!r}: m / n = {m / n:g} draws per record are supported up to {_MOST_PER_RECORD}.")
    if n == 1:
        raise Unsupported(f"{sampler!r}: n = 1 leaves no other record; nothing is sampled.")
    surely = -math.expm1(m * math.log1p(-1 / n))
    rate = min(surely, 1 - 1e-12)  # the rest of "surely" is disclosed
    draws = _binomial(m, 1 / n)
    s = distances.replace
    folded = adjacency != "add-remove"
    first = NormalPair(((rate, s),), folded=folded)
    if s > FURTHEST:  # every hit counts as disclosure
        shown = 0.0 if folded else math.log1p(-rate)
        above = PointLoss(times * math.log1p(-rate), times * shown, rate if times == 1 else None)
        found.between(above, mixture(rate, 1 / s, times))
        return
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
    row = normal_row([(once, first)], rare, disclosed, slack=0.0 if once > 0.5 else 4096.0)
    lowest = (distances.add or s) if adjacency == "zero-out" else s  # others that contribute 0, or all alike
    hits = tuple((p, k * lowest) for k, p in draws[1:_MOST_DRAWS])
    rest = math.fsum(p for _, p in draws[_MOST_DRAWS:])  # half-lines are the best tests, and gain with every draw
    below = binned((*hits, (rest, _MOST_DRAWS * lowest)), ())
    what = "symmetric pair" if folded else "pair, both directions"
    found.say(
        f"with replacement: the number of draws revealed, {what} of (1-q) N(0) + q N(K s) against N(0), q = P[K > 0] "
        "(Balle, Barthe, Gaboardi 2018, Thm. 10; Zhu, Dong, Wang 2022, Thm. 10, 11); lower end: all others alike",
        f"gaussian: {distance_text(s)}; sampler: {m} draws with replacement out of {n} records, afresh at every step; "
        "n public",
    )
    found.between(rows(row, times), rows(below, times))


def _group(found: Collected, sampler: PoissonGroup, distances: Distances, times: int, adjacency: str) -> None:
    """K ~ Bin(people, q) of the group are sampled: sum P[K = k] N(k s) against N(0). For any contributions an event of
    probability p without the group has at most the probability that a half-space gets from contributions all alike."""
    if adjacency == "replace-one" or distances.add is None:
        raise Unsupported(
            f"{sampler!r} under {adjacency}: groups on a sample are supported under add-remove and zero-out."
        )
    if sampler.rate == 0:
        return
    found.say(
        "group on a Poisson sample: sum P[K = k] N(k s) against N(0), K binomial, both directions (Neyman-Pearson; "
        "docs/samplers.md)",
        f"gaussian: {distance_text(distances.add)} for each of {sampler.people} people; sampler: Poisson, every record "
        f"independently with probability {sampler.rate!r} at every step",
    )
    people, rate = sampler.people, sampler.rate
    if rate == 1:
        found.mu_squared.append(times * (people * distances.add) ** 2)
        return
    # too steep to draw, or a miss so rare that rounding hides it: without sampling
    if people * distances.add > FURTHEST or people * math.log1p(-rate) < math.log(1e-6) or people > _MOST_PEOPLE:
        hit = -math.expm1(people * math.log1p(-rate))
        found.between(GaussianLoss(times * (people * distances.add) ** 2), mixture(hit, 1 / distances.add, times))
        return
    hits = tuple(
        (math.comb(people, k) * rate**k * (1 - rate) ** (people - k), k * distances.add) for k in range(1, people + 1)
    )
    pair = NormalPair(tuple((w, d) for w, d in hits if w > 1e-300), missed=(1 - rate) ** people)
    found.rows.append((normal_row([(1.0, pair)], slack=16.0 * people), times))


def _binomial(m: int, p: float) -> list[tuple[int, float]]:
    """(k, P[K = k]) for K ~ Bin(m, p), until next to nothing is left."""
    found, k = [], 0
    log = m * math.log1p(-p)
    while k <= m and (k <= m * p or log > math.log(_RARE)):
        found.append((k, math.exp(log)))
        log += math.log((m - k) * p / ((k + 1) * (1 - p))) if k < m else 0.0
        k += 1
    return found


def _truncated(
    found: Collected, sampler: TruncatedPoisson, distances: Distances, times: int, adjacency: str, collect: Collect
) -> None:
    """How many others were sampled, S ~ Bin(others, q), may be revealed. While S < most nothing is cut off. Otherwise
    the record, if sampled and kept, takes the place of another: a hit of rate at most q at the distance of a
    replacement. That is worse than the first case, so more others and a rounded-up probability are safe."""
    inner, rate, most = sampler.mechanism, sampler.rate, sampler.most
    others = sampler.n if adjacency == "add-remove" else sampler.n - 1  # a neighbour may have one more than n
    over = min(float(betainc(most, others - most + 1, rate)) * (1 + 1e-6) + 1e-300, 1.0) if most <= others else 0.0
    text = (
        f"sampler: Poisson, every one of {sampler.n} records with probability {rate!r}, cut down to {most} at random; "
        f"cut down with probability {over:.3g}"
    )
    if rate == 0:
        return
    if most > others:
        found.say("nothing is ever cut off", text)
        collect(found, inner.poisson(rate), times, adjacency)
        return
    if distances.add is None:
        raise Unsupported(f"{sampler!r} under replace-one: give noise_multiplier = noise / clipping norm.")
    add, replace = distances.add, distances.replace
    found.say(
        "truncated Poisson: the number of others revealed; below the maximum a Poisson sample, above it the record "
        "replaces another (joint convexity; docs/samplers.md); lower end: others that contribute nothing",
        f"gaussian: {distance_text(add)}, replaced {distance_text(replace)}; {text}",
    )
    kept = _kept(sampler)
    below: PrivacyLoss = rows(NOTHING, times)
    if kept > 0:
        below = _two_sided(kept, add, times) if adjacency == "replace-one" else mixture(kept, 1 / add, times)
    if replace > FURTHEST:
        found.between(GaussianLoss(times * replace**2), below)
        return
    sampled = rate if rate < 1 else 1 - 1e-12  # the rest of "for sure" is disclosed
    table = hit_table(sampled, replace)
    table = table if adjacency == "add-remove" else fold(table)
    hits = ((sampled, add),)
    usual = NormalPair(hits, hits if adjacency == "replace-one" else ())
    lost = rate - sampled
    row = normal_row([(max(1 - over - lost, 1e-300), usual)], [(over, table)], lost)
    found.between(rows(row, times), below)


def _kept(sampler: TruncatedPoisson) -> float:
    """The probability that a record is in the batch, rounded down: E[min(Bin(n, q), most)]/n."""
    n, rate, most = sampler.n, sampler.rate, min(sampler.most, sampler.n)
    if most > _MOST_SUMMED:
        return 0.0
    k = np.arange(1, most + 1)  # P[Bin(n, q) >= k] is a beta function, also for n beyond whole numbers of 32 bits
    return max(min(float(betainc(k, n - k + 1, rate).sum()) / n, rate) * (1 - 1e-6), 0.0)


def _two_sided(rate: float, distance: float, times: int) -> DiscreteLoss | GaussianMixtureLoss:
    """A record at +s against one at -s; a mixture against N(0) where that is too steep to draw."""
    if distance > FURTHEST:
        return mixture(rate, 1 / distance, times)
    return rows(normal_row([(1.0, NormalPair(((rate, distance),), ((rate, distance),)))]), times)
