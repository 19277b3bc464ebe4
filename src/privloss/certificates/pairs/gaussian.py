"""Gaussian noise on samples, for the checker: one function for each sampler (docs/certificates.md, section 11, and
docs/samplers.md for the proofs)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from flint import arb, ctx

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE, ZERO_OUT
from privloss.certificates.balls import need, tail
from privloss.certificates.budget import charge
from privloss.certificates.pairs.base import NOTHING, NOTHING_SAMPLED, Named, Normal, Pair, Table, Triple, even
from privloss.certificates.pairs.blend import Blend
from privloss.certificates.pairs.densities import folded_hit
from privloss.certificates.pairs.mixture import Mixture
from privloss.certificates.pairs.noise import Step, distances
from privloss.certificates.pairs.unsampled import unsampled

_ENOUGH = 256  # bits of a tail of a binomial distribution
SHUFFLED = "shuffled epochs: given the permutation a record touches one step; "


def _hit(rate: arb, a: arb, b: arb | int = 0) -> list[Triple]:
    """(1-q) N(0) + q N(a) against (1-q) N(0) + q N(b)."""
    return [(1 - rate, arb(0), arb(0)), (rate, a, arb(b))]


def _both(triples: list[Triple]) -> tuple[Pair, Pair]:
    return Mixture(triples), Mixture([(w, b, a) for w, a, b in triples])


def _replaced(rate: arb, distance: arb, adjacency: str) -> tuple[Pair, Pair]:
    """A hit that takes the place of another record; under adjacencies without an order the symmetric pair of it."""
    if adjacency == ADD_REMOVE:
        return _both(_hit(rate, distance))
    folded = folded_hit(rate, distance)
    return folded, folded


def _blended(parts: list[tuple[arb, tuple[Pair, Pair]]], infinite: arb) -> tuple[Pair, Pair]:
    forward, backward = ([(w, both[i]) for w, both in parts] for i in (0, 1))
    return Blend(forward, infinite), Blend(backward, infinite)


def _poisson(step: Step, sampling: Step, adjacency: str) -> Named:
    rate, (add, _) = arb(float(sampling["rate"])), distances(step, adjacency)
    if rate == 1:
        return unsampled(step, adjacency)
    if rate == 0:
        return NOTHING_SAMPLED
    if adjacency == REPLACE_ONE:
        need("noise_multiplier" in step, "plan: Poisson under replace-one needs a noise multiplier")
        text = "Poisson under replace-one: (1-q) N(0) + q N(s) against (1-q) N(0) + q N(-s)"
        return even(text, Mixture(_hit(rate, add, -add)))
    return Named("Poisson: (1-q) N(0) + q N(s) against N(0), both directions", _both(_hit(rate, add)))


def _fixed_size(step: Step, sampling: Step, adjacency: str) -> Named:
    rate, (_, replace) = arb(sampling["m"]) / arb(sampling["n"]), distances(step, adjacency)
    if sampling["m"] == sampling["n"]:
        need(adjacency != ADD_REMOVE, "plan: a neighbour with n - 1 records has no batch of n")
        return unsampled(step, adjacency)
    pairs = _both(_hit(rate, replace))
    if adjacency == ADD_REMOVE:
        return Named("fixed size, add-remove: a Poisson sample with the distance of a replacement", pairs)
    folded = folded_hit(rate, replace)
    text = "fixed size: symmetric pair of (1-q) N(0) + q N(s) against N(0); attained: the pair itself"
    return Named(text, (folded, folded), pairs if adjacency == REPLACE_ONE else NOTHING, True)


def _with_replacement(step: Step, sampling: Step, adjacency: str) -> Named:
    """K ~ Bin(m, 1/n) draws, revealed when positive; what is rarer than 2^-bits counts as disclosure."""
    n, m, (add, s) = sampling["n"], sampling["m"], distances(step, adjacency)
    need(n > 1 and m <= 100 * n, "plan: draws with replacement need n > 1 and m <= 100 n")
    draws = _draws(n, m)
    rate, rest = 1 - draws[0], 1 - sum(draws, arb(0))
    found = [(p / rate, _replaced(rate, k * s, adjacency)) for k, p in enumerate(draws) if k]
    pairs = _blended(found, rest / rate)
    least = add if adjacency == ZERO_OUT else s
    hits = [(p, k * least, arb(0)) for k, p in enumerate(draws)]
    hits[-1] = (hits[-1][0] + rest, *hits[-1][1:])
    text = "with replacement: the number of draws revealed; attained: all other records alike"
    return Named(text, pairs, _both(hits), adjacency != ADD_REMOVE)


def _draws(n: int, m: int) -> list[arb]:
    """P[K = 0], P[K = 1], ... for K ~ Bin(m, 1/n), as far as they count."""
    charge(400)
    chance, draws = (1 - 1 / arb(n)) ** m, list[arb]()
    for k in range(m + 1):
        draws.append(chance)
        chance = chance * (m - k) / (k + 1) / (n - 1)
        if k > 2 * m / n and (chance * 2 < arb(2) ** -90 or k > 60):  # each next is at most half of the last
            break
    return draws


def _truncated(step: Step, sampling: Step, adjacency: str) -> Named:
    """S ~ Bin(others, q) revealed; from `most` on the record replaces another."""
    rate, n, most = arb(float(sampling["rate"])), sampling["n"], sampling["most"]
    add, replace = distances(step, adjacency)
    others = n if adjacency == ADD_REMOVE else n - 1
    plain = _poisson(step, sampling, adjacency)
    if most > others or rate == 0:
        return plain
    need(rate < 1, "plan: truncated Poisson needs a rate below 1")
    need(adjacency != REPLACE_ONE or "noise_multiplier" in step, "plan: needs a noise multiplier")
    over = _exceeded(rate, most, others) if others <= 10**7 else arb(1)
    pairs = _blended([(1 - over, plain.pairs), (over, _replaced(rate, replace, adjacency))], arb(0))
    kept = rate * (1 - over)
    below = _hit(kept, add, -add if adjacency == REPLACE_ONE else 0)
    attained = _both(below) if kept > 0 else NOTHING
    text = "truncated Poisson: the number of others revealed; attained: others that contribute nothing"
    return Named(text, pairs, attained, plain.symmetric)


def _exceeded(rate: arb, most: int, others: int) -> arb:
    """At least P[Bin(others, rate) >= most]; any upper bound will do, so few bits are enough."""
    bits = min(int(ctx.prec), _ENOUGH)
    charge(40_000 * (bits / _ENOUGH) ** 2, exact=True)
    with ctx.workprec(bits):
        over = rate.beta_lower(arb(most), arb(others - most + 1), regularized=1)
        return arb(over.abs_upper()) if over.is_finite() and over < 1 else arb(1)


def _shuffled(step: Step, sampling: Step, adjacency: str) -> Named:
    need(adjacency != ADD_REMOVE, "plan: shuffling has no pair under add-remove")
    plain = unsampled(step, adjacency)
    if sampling["steps"] == 1:
        return plain
    add, replace = distances(step, adjacency)
    there, away = (replace, arb(0)) if adjacency == REPLACE_ONE else (add, arb(0))
    if adjacency == ZERO_OUT and "noise_multiplier" in step:
        there, away = replace, add
    below = _largest_of(sampling["steps"], there, away)
    text = SHUFFLED + plain.theorem + "; attained: the largest output"
    return Named(text, plain.pairs, below, True)


def _allocated(step: Step, sampling: Step, adjacency: str) -> Named:
    steps, k, (add, replace) = sampling["steps"], sampling.get("k", 1), distances(step, adjacency)
    pair = Normal(k * (replace if adjacency == REPLACE_ONE else add) ** 2)
    below = NOTHING if k > 1 or adjacency == REPLACE_ONE else _largest_of(steps, add, arb(0))
    text = "allocation: given its places a record touches k steps (no amplification); attained: the largest output"
    return Named(text, (pair, pair), None if k == steps else below, True)


def _largest_of(steps: int, there: arb, away: arb) -> tuple[Pair, Pair]:
    """Which of 300 bins the largest of `steps` outputs falls into, one of them moved: post-processing."""
    charge(300 * 32)
    edges = [-8 + j * (17 + there) / 299 for j in range(300)]

    def masses(distance: arb) -> list[arb]:
        cdf = [arb(0), *(tail(distance - x) * tail(-x) ** (steps - 1) for x in edges), arb(1)]
        return [high - low for low, high in itertools.pairwise(cdf)]

    rows = [(p, q) for p, q in zip(masses(there), masses(away), strict=True) if p > 0 and q > 0]
    left = [1 - sum((r[i] for r in rows), arb(0)) for i in (0, 1)]  # left out: a lower end may
    return Table(rows, 0, abs(left[0])), Table([(q, p) for p, q in rows], 0, abs(left[1]))


GAUSSIAN: dict[str, Callable[[Step, Step, str], Named]] = {
    "poisson": _poisson,
    "fixed-size": _fixed_size,
    "with-replacement": _with_replacement,
    "truncated-poisson": _truncated,
    "shuffle": _shuffled,
    "allocation": _allocated,
}
