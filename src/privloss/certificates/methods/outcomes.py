"""All outcomes of a plan with few, one by one, and none: beyond the largest losses (docs/certificates.md, section
7)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from flint import arb

from privloss.certificates.balls import Rejected, Use, need
from privloss.certificates.budget import charge
from privloss.certificates.methods.bounds import DeltaBounds, Enclosure
from privloss.certificates.pairs.base import Steps

MOST_SUMS = 400_000
_EXACT = 4000  # uses up to which binomial coefficients are whole numbers


def _binomials(n: int) -> Iterator[arb]:
    """n over 0, .., n over n, each from the one before."""
    ways, ball = 1, arb(1)
    for k in range(n + 1):
        yield arb(ways) if n <= _EXACT else ball
        if n <= _EXACT:
            charge(n / 1000, exact=True)
            ways = ways * (n - k) // (k + 1)
        else:
            ball = ball * (n - k) / (k + 1)


def by_largest(steps: Steps, use: Use) -> DeltaBounds:
    """f(x) = 0 from the sum of the largest losses on."""
    total = arb(0)
    for pair, times in steps:
        top = pair.largest()
        if top is None:
            raise Rejected("largest: a step has no largest loss")
        total += times * top

    def read(x: arb) -> Enclosure:
        need(bool(x >= total), f"largest: {x.str(12)} is not surely >= {total.str(12)}")
        return arb(0), arb(0)

    return read


def by_sum(steps: Steps, use: Use) -> DeltaBounds:
    """Every outcome of a plan with few: counts of each outcome, multinomial probabilities."""
    outcomes = [(arb(1), arb(0))]
    for pair, times in steps:
        need(pair.atoms_only, "sum: a step has other than finitely many losses")
        atoms = pair.atoms
        need(math.comb(times + len(atoms) - 1, times) * len(outcomes) <= MOST_SUMS, "sum: too many outcomes")
        counts = [(times, arb(1), arb(0))]  # uses left, probability of those made, their loss
        for i, (mass, loss) in enumerate(atoms):
            last = i == len(atoms) - 1
            charge(4 * (len(counts) if last else sum(left + 1 for left, _, _ in counts)))
            if last:
                counts = [(0, made * mass**left, total + left * loss) for left, made, total in counts]
                break
            counts = [
                (left - n, made * ways * mass**n, total + n * loss)
                for left, made, total in counts
                for n, ways in enumerate(_binomials(left))
            ]
        counts = counts if atoms else []
        charge(2 * len(outcomes) * len(counts))
        outcomes = [(m * made, x + total) for m, x in outcomes for _, made, total in counts]

    def read(x: arb) -> Enclosure:
        charge(3 * len(outcomes))
        total = sum((m * (1 - (x - loss).exp()).max(arb(0)) for m, loss in outcomes), arb(0))
        return total, total

    return read
