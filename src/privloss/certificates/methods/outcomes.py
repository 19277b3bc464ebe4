"""All outcomes of a plan with few, one by one, and none: beyond the largest losses (docs/certificates.md, section
7)."""

from __future__ import annotations

import math

from flint import arb

from privloss.certificates.balls import Rejected, Use, need
from privloss.certificates.methods.bounds import DeltaBounds, Enclosure
from privloss.certificates.pairs.base import Steps

MOST_SUMS = 400_000


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
            counts = [
                (left - n, made * math.comb(left, n) * mass**n, total + n * loss)
                for left, made, total in counts
                for n in (range(left + 1) if not last else (left,))
            ]
        counts = counts if atoms else []
        outcomes = [(m * made, x + total) for m, x in outcomes for _, made, total in counts]

    def read(x: arb) -> Enclosure:
        total = sum((m * (1 - (x - loss).exp()).max(arb(0)) for m, loss in outcomes), arb(0))
        return total, total

    return read
