"""Plans in which every loss takes finitely many values, moved to a lattice: a finite line
(docs/certificates.md, section 6)."""

from __future__ import annotations

from dataclasses import dataclass

from flint import acb, arb

from privloss.certificates.balls import (
    MOST_NODES,
    Rejected,
    Use,
    given,
    most,
    need,
    turning_sums,
    whole,
)
from privloss.certificates.budget import charge
from privloss.certificates.methods.bounds import DeltaBounds, Enclosure, product
from privloss.certificates.methods.chernoff import images
from privloss.certificates.pairs.base import Pair, Steps

MOST_PERIODS = 10_000_000


class Shifted(Pair):
    """Losses 0, h, 2h, ... with given probabilities."""

    def __init__(self, masses: list[arb], h: arb) -> None:
        self.masses = [(n, p) for n, p in enumerate(masses) if not p == 0]  # noqa: SIM201 (a ball that may be 0 counts)
        self.h = h

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        weights = [p * (c * n * self.h).exp() for n, p in self.masses]
        return turning_sums(weights, [step * n * self.h for n, _ in self.masses], count)


@dataclass(frozen=True)
class Moved:
    """A step on the lattice: its losses less the first, and how far they were moved at most."""

    pair: Shifted
    first: arb
    gap: arb

    @classmethod
    def of(cls, pair: Pair, h: arb, nodes: int) -> Moved:
        """Each loss to the nearest place; which that is may be rounded, as the gap is computed afterwards."""
        need(pair.atoms_only, "lattice: a step has more than atoms")
        first = min((loss for _, loss in pair.atoms), key=lambda x: float(x.mid()))
        places = [round(float(((loss - first) / h).mid())) for _, loss in pair.atoms]
        need(min(places) >= 0 and max(places) <= MOST_NODES, "lattice: the spacing is too small")
        charge(4 * len(places) + max(places))
        gap = most(abs(loss - first - n * h) for (_, loss), n in zip(pair.atoms, places, strict=True))
        masses = [arb(0)] * (max(places) + 1)
        for (mass, _), n in zip(pair.atoms, places, strict=True):
            masses[n] += mass
        return cls(Shifted(masses, h), first, gap)


def by_lattice(steps: Steps, use: Use) -> DeltaBounds:
    """All losses moved to a lattice of spacing h: a finite line of N nodes, of which those beyond the first `evaluated`
    may be bounded instead. The sum of the moves is at most w, and f_lattice(x + w) <= f(x) <= f_lattice(x - w)."""
    c, h, count = given(use, "c"), given(use, "h"), whole(use, "N", MOST_PERIODS)
    last = min(whole(use, "evaluated", MOST_NODES), count // 2) if "evaluated" in use else count // 2
    length = h * count
    step = 2 * arb.pi() / length
    need(last <= MOST_NODES, "lattice: too many nodes")
    start, moved, rest, lattice = arb(0), arb(0), arb(1), list[tuple[Pair, int]]()
    for pair, times in steps:
        on = Moved.of(pair, h, last + 1)
        start, moved = start + times * on.first, moved + times * on.gap
        lattice.append((on.pair, times))
        if last < count // 2:  # the bound is one for the losses where they were: |e^(z gap) - 1| <= e^(|z| gap) - 1
            shift = pair.mgf(acb(c)).real * (((c + arb.pi() / h) * on.gap).exp() - 1)
            rest *= ((pair.beyond_lattice(c, step * last, h) + shift) * (-c * on.first).exp()) ** times
    charge(2 * last)
    nodes = [acb(c, n * step) for n in range(last + 1)]
    values = product(lattice, {}, c, step, last)
    alias = images(lattice, use, c, length)
    weight = [1 if n == 0 or 2 * n == count else 2 for n in range(last + 1)]  # M at -t is conjugate
    both = 1 / (1 - (-c * h).exp()) + 1 / (1 - (-(c + 1) * h).exp())  # >= |kernel|, as x <= at

    def read(x: arb) -> Enclosure:
        """The sum of p_j (1 - e^(x - jh)) over j >= j0, with its images; the right j0 is floor(x/h) + 1."""
        found, cut = list[arb](), arb(0)
        for j in _starts(x / h):
            charge(10 * (last + 1))
            total, at = arb(0), j * h
            for value, z, n in zip(values, nodes, weight, strict=True):
                kernel = 1 / (1 - (-z * h).exp()) - (x - at).exp() / (1 - (-(z + 1) * h).exp())
                total += n * (value * (-z * at).exp() * kernel).real
            found.append(total / count if not found else found[-1].union(total / count))
            cut = cut.max(rest * (-c * at).exp() * both) if last < count // 2 else cut
        return found[-1] - cut, found[-1] + cut

    return lambda x: (read(x - start + moved)[0] - alias(x - start + moved), read(x - start - moved)[1])


def _starts(x: arb) -> range:
    """The whole numbers of which one is floor(x) + 1; at most four."""
    low, high = (end.floor().unique_fmpz() for end in (x.lower(), x.upper()))
    if low is None or high is None or high > low + 3:
        raise Rejected("lattice: needs more precision")
    return range(int(low) + 1, int(high) + 2)
